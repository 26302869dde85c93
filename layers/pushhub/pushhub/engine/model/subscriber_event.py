"""What the engine reports about a subscriber to the protocol it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SubscriberEventKind(StrEnum):
    """What happened."""

    FAILING = "failing"
    """It has done nothing but fail for so long that its owner is warned.

    A warning reported several times is still the same event.
    """
    DISABLE = "disable"
    """It is to be disabled, because it asked for it or because it did nothing but fail for too long.

    ``Subscriber.disabled`` must be True from then on.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriberEvent:
    """One event.

    Attributes:
        reason: One word: ``status_410``, ``asked_to_disable``, ``failing``.
        failing_since: First failure since the last success, epoch milliseconds; None where that is irrelevant.
        percent: Percentage used up of the time after which it is disabled.
    """

    kind: SubscriberEventKind
    project: str
    queue: str
    queue_uid: str
    subscriber_id: str
    at: int
    reason: str
    failing_since: int | None = None
    percent: int | None = None

    @property
    def cause(self) -> str:
        """Idempotency key of the event: the same each time it is reported, so that its effects happen once."""
        since = self.failing_since or self.at
        return f"{self.queue_uid}/{self.subscriber_id}/{self.kind}/{self.reason}/{since}/{self.percent or ''}"
