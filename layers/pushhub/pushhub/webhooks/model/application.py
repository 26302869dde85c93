"""Applications: one for each customer of a producer, with the endpoints that get its messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pushhub.base.fields import SPARSE, Setting, Stored, field_metadata
from pushhub.webhooks.model.ids import IdPrefix
from pushhub.webhooks.model.redaction import Redaction

if TYPE_CHECKING:
    from pushhub.base.signature_schemes import Scheme
    from pushhub.webhooks.model.source import Source

RATE: Final = Setting(means="Messages per second.", least=1, most=65_535, wire=("throttleRate", "rateLimit"))
UID: Final = Setting(means="Your own id for it.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationFields:
    """The fields of an application that its owner sets. The uid is unique in the project."""

    name: str = field(metadata=field_metadata(Setting(means="", least=1)))
    uid: str | None = field(default=None, metadata=field_metadata(UID))
    throttle_rate: int | None = field(default=None, metadata=field_metadata(RATE, Stored(name="rate")))
    metadata: Mapping[str, str] = field(
        default_factory=dict, metadata=field_metadata(Setting(means="The owner's own data."))
    )
    redaction: Redaction = field(
        default_factory=Redaction,
        metadata=field_metadata(
            Setting(
                means="What is withheld. An answer or payload that is not JSON is withheld completely.", hidden=True
            ),
            Stored(name="hidden", sparse=True),
        ),
    )
    search_fields: tuple[str, ...] = field(
        default=(),
        metadata=field_metadata(
            Setting(
                means="Fields of payloads, such as `order.id`, by whose values messages are found by the queue API's"
                " `/search`. Each costs a write for each message.",
                shown="There if messages are found by fields of their payloads.",
                hidden=True,
                wire=("searchFields",),
            ),
            Stored(name="found_by", sparse=True),
        ),
    )
    portal_consent: bool = field(
        default=False,
        metadata=field_metadata(
            Setting(
                means="Whether URLs that are set with a portal's token must consent (`cloudEvents.consent`).",
                shown="There and true if URLs set with a portal's token must consent.",
                hidden=True,
                wire=("portalConsent",),
            ),
            SPARSE,
        ),
    )
    eager: bool = field(
        default=False,
        metadata=field_metadata(
            Setting(
                means="Whether a post sends the first orders itself: faster on AWS, for one more SQS message.",
                shown="There and true if a post sends the first orders itself.",
                hidden=True,
            ),
            SPARSE,
        ),
    )

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
        signatures: The schemes of its endpoints that have none of their own; empty for those of its project.
        source: What it takes in, if it is a source; None for an application that only its project posts to.
        endpoints: Raised by each change of its endpoints, so that caches know when to read them again.
    """

    project: str
    app_id: str
    fields: ApplicationFields
    signatures: tuple[Scheme, ...] = ()
    source: Source | None = None
    created_at: int
    updated_at: int
    version: int = 0
    endpoints: int = 0

    @property
    def uid(self) -> str | None:
        """The owner's own id of it."""
        return self.fields.uid

    @property
    def is_stream(self) -> bool:
        """Whether it is a stream."""
        return self.app_id.startswith(IdPrefix.STREAM)
