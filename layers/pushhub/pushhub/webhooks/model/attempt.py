"""Attempts as they are logged: one HTTP request made for a message, and its answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

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
        project: Owner.
        app_id: Application of the endpoint.
        endpoint_id: The endpoint that was called.
        engine_id: The engine's id of the message.
        number: Counts the attempts of the delivery, from 1.
        manual: Whether a person requested it.
        url: The URL that was called.
        status_code: HTTP status, 0 when no answer came.
        success: Whether the endpoint accepted the message.
        response: Text of the answer's body, or what went wrong.
        duration_ms: How long it took, milliseconds.
        started_at: Epoch milliseconds.
        event_type: Of the message.
        channels: Of the message.
        tags: Of the message.
        listed_until: When it is removed from the log, epoch milliseconds.
        before_at: When the attempt before it for the same delivery began, epoch milliseconds; None for the first.
        proof: What the endpoint was shown of who asks.
    """

    project: str
    app_id: str
    endpoint_id: str
    engine_id: str
    number: int
    manual: bool
    url: str
    status_code: int
    success: bool
    response: str
    duration_ms: int
    started_at: int
    event_type: str
    channels: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    listed_until: int
    before_at: int | None = None
    proof: Proof = NO_PROOF

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
