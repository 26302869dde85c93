"""The state of subscribers and their backlogs, in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pushhub.base.errors import Conflict
from pushhub.engine.model.circuit import Health, SubscriberKey
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.seats import Seats
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.ports import Waiting

__all__ = ["FakeSubscribers"]


class FakeSubscribers:
    """Implements :class:`pushhub.engine.ports.SubscriberStore`.

    Attributes:
        writes: Every health written, in order, for assertions.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._healths: dict[SubscriberKey, Health] = {}
        self._behind: dict[DeliveryKey, WorkOrder] = {}
        self._seats: dict[SubscriberKey, Seats] = {}
        self._looked_after: set[SubscriberKey] = set()
        self._waiting: dict[SubscriberKey, dict[str, WorkOrder]] = {}
        self._slow: dict[tuple[str, str, str], int] = {}
        self.writes: list[Health] = []

    def health(self, key: SubscriberKey) -> Health | None:
        """See the port."""
        return self._healths.get(key)

    def save(self, health: Health) -> None:
        """See the port."""
        with self._lock:
            stored = self._healths.get(health.key)
            if stored == health:
                return
            if (stored.version if stored else 0) != health.version - 1:
                raise Conflict(f"health of {health.key.subscriber_id} changed")
            self._healths[health.key] = health
            self.writes.append(health)

    def seats(self, key: SubscriberKey) -> Seats | None:
        """See the port."""
        return self._seats.get(key)

    def save_seats(self, seats: Seats) -> None:
        """See the port."""
        with self._lock:
            stored = self._seats.get(seats.key)
            if stored == seats:
                return
            if (stored.version if stored else 0) != seats.version - 1:
                raise Conflict(f"seats of {seats.key.subscriber_id} changed")
            self._seats[seats.key] = seats

    def wait_behind(self, before: DeliveryKey, order: WorkOrder) -> None:
        """See the port."""
        self._behind[before] = WorkOrder.decode(replace(order, message=None).encode())

    def behind(self, ended: DeliveryKey) -> WorkOrder | None:
        """See the port."""
        return self._behind.get(ended)

    def let_go(self, ended: DeliveryKey) -> None:
        """See the port."""
        self._behind.pop(ended, None)

    def note_slow(self, keys: Sequence[tuple[str, str, str]], until: int) -> None:
        """See the port."""
        with self._lock:
            self._slow |= dict.fromkeys(keys, until)

    def slow(self, now: int, limit: int) -> dict[tuple[str, str, str], int]:
        """See the port."""
        with self._lock:
            noted = sorted(self._slow.items(), key=lambda each: -each[1])
        return {key: until for key, until in noted[:limit] if until > now}

    def look_after(self, key: SubscriberKey) -> None:
        """See the port."""
        self._looked_after.add(key)

    def looked_after(self) -> Iterator[SubscriberKey]:
        """See the port."""
        return iter(sorted(self._looked_after, key=lambda each: (each.project, each.queue_uid, each.subscriber_id)))

    def looked_after_of(self, project_id: str, limit: int) -> list[SubscriberKey]:
        """See the port."""
        return [each for each in self.looked_after() if each.project == project_id][:limit]

    def leave(self, key: SubscriberKey) -> None:
        """See the port."""
        self._looked_after.discard(key)

    def add(self, key: SubscriberKey, order: WorkOrder, now: int) -> None:
        """See the port."""
        bare = replace(order, message=None)
        with self._lock:
            self._waiting.setdefault(key, {})[f"{now:015d}#{order.key.message_id}"] = WorkOrder.decode(bare.encode())

    def waiting(self, key: SubscriberKey, limit: int) -> list[Waiting]:
        """See the port."""
        with self._lock:
            places = sorted(self._waiting.get(key, {}).items())[:limit]
            return [Waiting(order=order, place=place) for place, order in places]

    def count_waiting(self, key: SubscriberKey, most: int) -> int:
        """See the port."""
        return min(most, len(self._waiting.get(key, {})))

    def remove(self, key: SubscriberKey, waiting: Sequence[Waiting]) -> None:
        """See the port."""
        with self._lock:
            for each in waiting:
                self._waiting.get(key, {}).pop(each.place, None)
