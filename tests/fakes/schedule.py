"""The schedule in memory: entries stay, positions move past them."""

from __future__ import annotations

import threading
from collections import Counter

from tests.fakes.clock import FakeClock

from pushhub.base.errors import Conflict
from pushhub.engine.model.delivery import Delivery
from pushhub.engine.model.schedule import Position, ScheduleEntry

MINUTE_MS = 60_000


class FakeSchedule:
    """A list for each shard.

    Args:
        clock: Determines which minutes may still be written to.
        shards: Number of shards; a message's shard depends on its id.
    """

    def __init__(self, clock: FakeClock, shards: int = 4) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: dict[int, dict[str, ScheduleEntry]] = {shard: {} for shard in range(shards)}
        start = clock.now() // MINUTE_MS - 60
        self._positions = [Position(shard=shard, minute=start) for shard in range(shards)]
        self.looks: Counter[int] = Counter()

    def enter(self, delivery: Delivery) -> None:
        if delivery.wakes_at is None:
            raise ValueError("only a delivery with a due time can be scheduled")
        soonest = (self._clock.now() // MINUTE_MS + 2) * MINUTE_MS
        wakes_at = max(delivery.wakes_at, soonest)
        entry = ScheduleEntry(
            key=delivery.key,
            queue=delivery.queue,
            version=delivery.version,
            wakes_at=wakes_at,
            polls=delivery.update_url is not None,
        )
        with self._lock:
            shard = int(delivery.message_id) % len(self._entries)
            self._entries[shard][f"{wakes_at:015d}#{delivery.key}#{delivery.version}"] = entry

    def positions(self) -> list[Position]:
        return list(self._positions)

    def due(self, position: Position, now: int, limit: int) -> tuple[list[ScheduleEntry], Position]:
        self.looks[position.shard] += 1
        entries, found, places = self._entries[position.shard], list[ScheduleEntry](), list[str]()
        if entries:
            with self._lock:
                places = sorted(
                    place
                    for place, entry in entries.items()
                    if entry.wakes_at <= now
                    and (entry.wakes_at // MINUTE_MS, place) > (position.minute, position.after)
                    and entry.wakes_at // MINUTE_MS >= position.minute
                )[:limit]
                found = [entries[place] for place in places]
        if not found:
            minute = now // MINUTE_MS
            return [], position.at(minute, position.after if minute == position.minute else "")
        return found, position.at(found[-1].wakes_at // MINUTE_MS, places[-1])

    def move(self, before: Position, after: Position) -> None:
        with self._lock:
            if self._positions[before.shard] not in (before, after):
                raise Conflict(f"the position of shard {before.shard} of the schedule was changed")
            self._positions[before.shard] = after

    def waiting(self) -> list[ScheduleEntry]:
        """Entries that no position has passed, void or not, for assertions."""
        return [
            entry
            for position in self._positions
            for place, entry in sorted(self._entries[position.shard].items())
            if (entry.wakes_at // MINUTE_MS, place) > (position.minute, position.after)
        ]

    def lose(self) -> None:
        """Lose all entries."""
        for entries in self._entries.values():
            entries.clear()


class FakeShardRuns:
    """Records which runs were started.

    Attributes:
        started: Shards, in order.
    """

    def __init__(self) -> None:
        self.started: list[int] = []

    def start(self, shard: int) -> None:
        self.started.append(shard)
