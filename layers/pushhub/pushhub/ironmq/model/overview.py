"""Queues with their counts. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pushhub.engine.model.queue import Queue
    from pushhub.engine.model.subscriber_health import SubscriberHealth


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueInfo:
    """A queue with its counts.

    Attributes:
        size: Pull queues: messages in the queue, including reserved and delayed ones. Push queues: deliveries that wait
            after a first attempt.
        total_messages: Messages ever posted.
    """

    queue: Queue
    size: int
    total_messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSeen:
    """A queue in a list, with what waits in it.

    Attributes:
        waiting: Pull queues: messages in the queue. Push queues: deliveries that are owed, each counted once.
        complete: Whether these are all; otherwise there are more.
        health: How its subscribers are doing, as one; None of a pull queue.
    """

    queue: Queue
    waiting: int
    complete: bool
    health: SubscriberHealth | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Queues, counted.

    Attributes:
        counted: How many were looked at.
        waiting: Those in which something waits, with their counts.
        error_queues: Names of queues to which those that were looked at report what they give up.
        oldest: The message that has waited longest in each of the largest of them, by queue.
        after: The last name that was looked at, if there are more; None at the end.
    """

    counted: int
    waiting: Sequence[QueueInfo]
    error_queues: frozenset[str]
    oldest: Mapping[str, str]
    after: str | None
