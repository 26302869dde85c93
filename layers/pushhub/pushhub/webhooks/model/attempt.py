"""Attempts as they are logged: one HTTP request made for a message, and its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from pushhub.base.fields import APART, SPARSE, Stored, field_metadata
from pushhub.base.gates import NO_PROOF, Proof
from pushhub.webhooks.model.ids import attempt_id

KEPT_BYTES = 20_000
"""Bytes of an answer's body that are kept."""


class MessageStatus(IntEnum):
    """The status of a message at an endpoint, in the numbers of the API."""

    SUCCESS = 0
    PENDING = 1
    FAIL = 2
    SENDING = 3
    CANCELED = 4

    @property
    def text(self) -> str:
        """The status as a word."""
        return self.name.lower()


class Trigger(IntEnum):
    """Why an attempt was made, in the numbers of the API."""

    SCHEDULED = 0
    MANUAL = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedAttempt:
    """An attempt.

    Attributes:
        app_id: Application of the endpoint.
        engine_id: The engine's id of the message.
        number: Counts the attempts of the delivery, from 1.
        manual: Whether a person requested it.
        status_code: HTTP status, 0 when no answer came.
        success: Whether the endpoint accepted the message.
        response: Text of the answer's body, or what went wrong.
        duration_ms: How long it took, milliseconds.
        listed_until: When it is removed from the log, epoch milliseconds.
        before_at: When the attempt before it for the same delivery began, epoch milliseconds; None for the first.
        proof: What the endpoint was shown of who asks.
    """

    project: str = field(metadata=field_metadata(stored=APART))
    app_id: str = field(metadata=field_metadata(stored=Stored(name="app")))
    endpoint_id: str = field(metadata=field_metadata(stored=APART))
    engine_id: str = field(metadata=field_metadata(stored=APART))
    url: str
    manual: bool = field(default=False, metadata=field_metadata(stored=SPARSE))
    number: int = field(metadata=field_metadata(stored=Stored(name="n")))
    status_code: int = field(default=0, metadata=field_metadata(stored=Stored(name="code", sparse=True)))
    success: bool = field(default=False, metadata=field_metadata(stored=Stored(name="ok", sparse=True)))
    response: str = field(metadata=field_metadata(stored=APART))
    duration_ms: int = field(default=0, metadata=field_metadata(stored=Stored(name="ms", sparse=True)))
    started_at: int = field(metadata=field_metadata(stored=Stored(name="at")))
    before_at: int | None = field(default=None, metadata=field_metadata(stored=Stored(name="before", sparse=True)))
    event_type: str = field(metadata=field_metadata(stored=Stored(name="type")))
    channels: tuple[str, ...] = field(default=(), metadata=field_metadata(stored=SPARSE))
    tags: tuple[str, ...] = field(default=(), metadata=field_metadata(stored=SPARSE))
    listed_until: int = field(metadata=field_metadata(stored=APART))
    proof: Proof = field(default=NO_PROOF, metadata=field_metadata(stored=SPARSE))

    @property
    def attempt_id(self) -> str:
        """As clients see it."""
        return attempt_id(self.engine_id, self.endpoint_id, self.number, self.started_at)

    @property
    def status(self) -> MessageStatus:
        """Success or failure."""
        return MessageStatus.SUCCESS if self.success else MessageStatus.FAIL

    @property
    def status_class(self) -> int:
        """The class of the HTTP status (hundreds); 0 when no answer came."""
        return self.status_code // 100 * 100
