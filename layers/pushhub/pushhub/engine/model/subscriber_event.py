"""What the engine finds out about a subscriber, for the protocol that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SubscriberEventKind(StrEnum):
    """What happened."""

    FAILING = "failing"
    """Nothing but failures came from it for so long that its owner is warned.

    Each warning is the same event however often it is told.
    """
    DISABLE = "disable"
    """It is to be disabled: it asked for it, or nothing but failures came from it for too long.

    From then on ``Subscriber.disabled`` is to be True.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriberEvent:
    """One event.

    Attributes:
        kind: What happened.
        project: Owner of the queue.
        queue: Name of the queue.
        queue_uid: Its generation.
        subscriber_id: The subscriber.
        at: Epoch milliseconds.
        reason: Why, in a word: ``status_410``, ``asked_to_disable``, ``failing``.
        failing_since: When the first failure since the last success was, epoch milliseconds; None where that does not
            matter.
        percent: How much of the time is used up after which it is disabled.
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
        """What it is told for: the same each time it is told again, so that what follows from it can be made once."""
        since = self.failing_since or self.at
        return f"{self.queue_uid}/{self.subscriber_id}/{self.kind}/{self.reason}/{since}/{self.percent or ''}"
