"""What the schedule holds: which delivery is to be looked at when, and how far each of its shards was read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pushhub.engine.model.work import WorkOrder

if TYPE_CHECKING:
    from pushhub.engine.model.keys import DeliveryKey


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleEntry:
    """One wait of a delivery.

    Attributes:
        key: The delivery.
        queue: Name of its queue.
        version: Of the delivery that waits; once it has another, the entry is void.
        wakes_at: Epoch milliseconds.
        polls: Its ``update_url`` is to be asked (hub protocol).
    """

    key: DeliveryKey
    queue: str
    version: int
    wakes_at: int
    polls: bool = False

    @property
    def order(self) -> WorkOrder:
        """An order without the message, which push reads when the attempt is really made."""
        return WorkOrder(key=self.key, queue=self.queue, version=self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far a shard of the schedule was read.

    Attributes:
        shard: Number of the shard.
        minute: The minute being read, in minutes since the epoch.
        after: Place of the last entry read in it; empty at its start.
        taken_until: Until when a run reads on from here and others leave it alone, epoch milliseconds; 0 when none
            does.
    """

    shard: int
    minute: int
    after: str = ""
    taken_until: int = 0

    def at(self, minute: int, after: str) -> Position:
        """The same shard, read to another place."""
        return replace(self, minute=minute, after=after)
