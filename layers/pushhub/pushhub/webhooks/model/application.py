"""Applications: one for each customer of a producer, with the endpoints that get its messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pushhub.base.fields import SPARSE, Stored, told
from pushhub.webhooks.model.redaction import Redaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationFields:
    """The fields of an application that its owner sets.

    Attributes:
        name: For people.
        uid: The owner's own id for it, unique in the project; None for none.
        throttle_rate: Messages per second to each of its endpoints; None for no limit.
        metadata: The owner's own data.
        redaction: What is redacted in payloads and answers.
        search_fields: By which values of payloads messages are found (:mod:`pushhub.engine.model.search`).
        portal_consent: Whether the endpoints that are set with a portal's token must consent.
        eager: Whether a post sends the first orders itself (:mod:`pushhub.engine.model.eager`).
    """

    name: str
    uid: str | None = None
    throttle_rate: int | None = field(default=None, metadata=told(stored=Stored(name="rate")))
    metadata: Mapping[str, str] = field(default_factory=dict)
    redaction: Redaction = field(default_factory=Redaction, metadata=told(stored=Stored(name="hidden", sparse=True)))
    search_fields: tuple[str, ...] = field(default=(), metadata=told(stored=Stored(name="found_by", sparse=True)))
    portal_consent: bool = field(default=False, metadata=told(stored=SPARSE))
    eager: bool = field(default=False, metadata=told(stored=SPARSE))

    @property
    def found_by(self) -> tuple[str, ...]:
        """The named fields that are not withheld."""
        return tuple(each for each in self.search_fields if not self.redaction.covers(each))


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """An application.

    Attributes:
        project: Owner: a project is what Svix calls an organization.
        app_id: See :mod:`pushhub.webhooks.model.ids`.
        fields: The fields its owner sets.
        created_at: Epoch milliseconds.
        updated_at: Epoch milliseconds.
        version: Raised by each write.
        endpoints: Raised by each change of its endpoints, so that caches know when to read them again.
    """

    project: str
    app_id: str
    fields: ApplicationFields
    created_at: int
    updated_at: int
    version: int = 0
    endpoints: int = 0

    @property
    def uid(self) -> str | None:
        """The owner's own id of it."""
        return self.fields.uid
