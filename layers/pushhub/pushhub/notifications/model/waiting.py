"""What waits for a subscriber of a topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pushhub.notifications.model.topic import Topic


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What waits for a subscriber.

    Attributes:
        shared: Whether several consumers may be connected.
        consumers: How many are.
        unacknowledged: Notifications that they were sent and have not acknowledged.
        size: Bytes of the topic from the oldest notification that the subscriber needs on, as the topic's limit counts.
        oldest_at: When that one was accepted, epoch milliseconds; None when nothing waits.
    """

    topic: Topic
    subscriber: str
    shared: bool
    consumers: int
    unacknowledged: int
    size: int
    oldest_at: int | None
