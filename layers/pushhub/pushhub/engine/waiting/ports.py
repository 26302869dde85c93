"""What waiting needs from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.message import Message
    from pushhub.engine.model.schedule import Position, ScheduleEntry


class Schedule(Protocol):
    """Waits that are too long for a queue. Shards are read in order of time, each by one run at a time."""

    def enter(self, delivery: Delivery) -> None:
        """Schedule a delivery to be woken at its ``wakes_at``, or in two to three minutes if that is later.

        Safe to repeat. Entries are never removed: one whose delivery has changed since is void.

        Raises:
            ValueError: It has no due time.
        """

    def positions(self) -> list[Position]:
        """The read position of each shard, ordered by shard number.

        Where a shard begins is decided, and stored, the first time.
        """

    def due(self, position: Position, now: int, limit: int) -> tuple[list[ScheduleEntry], Position]:
        """The next entries of a shard.

        Args:
            position: Where to continue.
            now: Epoch milliseconds; later entries are not read.
            limit: Maximum number of entries.

        Returns:
            Entries in order of time, and the position after them. No entries when nothing more is due, or when a long
            empty stretch was skipped.
        """

    def move(self, before: Position, after: Position) -> None:
        """Store how far a shard has been read, and whether a run is still reading it.

        Raises:
            Conflict: The shard is no longer at ``before``.
        """


class ShardRuns(Protocol):
    """Starts further runs of the function that wakes deliveries."""

    def start(self, shard: int) -> None:
        """Have one shard of the schedule read by a separate run; returns at once.

        If the run fails to start, the next minute makes up for it.
        """


class Outstanding(Protocol):
    """All messages, part by part."""

    def outstanding(self, part: int, parts: int) -> Iterator[tuple[Message, list[Delivery]]]:
        """The messages in one part of the table with their stored deliveries, fetched lazily page by page.

        A message is always entirely in one part. Eventually consistent. Reads, and pays for, everything in that part.
        """
