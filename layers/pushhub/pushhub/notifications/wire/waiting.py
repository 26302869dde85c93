"""What waits for a subscriber, on the wire. An addition to Notifications 2.0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.base.times import iso_time

if TYPE_CHECKING:
    from pushhub.notifications.model.waiting import Waiting


def print_waiting(waiting: Waiting) -> dict[str, Any]:
    """What waits for a subscriber."""
    return {
        "subscription": waiting.topic.name,
        "nonPersistent": waiting.topic.non_persistent,
        "subscriber": waiting.subscriber,
        "shared": waiting.shared,
        "consumers": waiting.consumers,
        "unacknowledged": waiting.unacknowledged,
        "bytes": waiting.size,
        "oldest": None if waiting.oldest_at is None else iso_time(waiting.oldest_at),
    }
