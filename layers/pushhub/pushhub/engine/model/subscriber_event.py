"""What the engine finds out about a subscriber, for the protocol that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SubscriberEventKind(StrEnum):
    """What happened."""

    DISABLE = "disable"
    """It is to be disabled: it asked for it, or nothing but failures came from it for too long. From then on ``Subscriber.disabled`` is to be True."""


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
        reason: Why, in a word: ``status_410``, ``asked_to_disable``.
    """

    kind: SubscriberEventKind
    project: str
    queue: str
    queue_uid: str
    subscriber_id: str
    at: int
    reason: str
