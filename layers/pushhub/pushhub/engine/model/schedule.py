"""Contents of the schedule: which delivery is due when, and how far each shard has been read."""

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
        version: Version of the waiting delivery; once that changes, the entry is void.
        polls: Whether its ``update_url`` is to be polled (hub protocol).
    """

    key: DeliveryKey
    queue: str
    version: int
    wakes_at: int
    polls: bool = False

    @property
    def order(self) -> WorkOrder:
        """An order without the message, which push reads only when it really makes the attempt."""
        return WorkOrder(key=self.key, queue=self.queue, version=self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far a shard of the schedule has been read.

    Attributes:
        minute: The minute being read, in minutes since the epoch.
        after: Key of the last entry read in that minute; empty at its start.
        taken_until: Until when a run has claimed the shard and others leave it alone, epoch milliseconds; 0 when
            unclaimed.
    """

    shard: int
    minute: int
    after: str = ""
    taken_until: int = 0

    def at(self, minute: int, after: str) -> Position:
        """The same shard, read up to another place."""
        return replace(self, minute=minute, after=after)
