"""The state of subscribers and their backlogs, in memory."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pushhub.base.errors import Conflict
from pushhub.engine.model.circuit import Health, SubscriberKey
from pushhub.engine.model.flow import BacklogEntry, FlowKey, LeaseState, Terms
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.ports import BacklogOrder


class FakeSubscribers:
    """Implements :class:`pushhub.engine.stores.SubscriberStore`.

    Attributes:
        writes: Every health written, in order, for assertions.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._healths: dict[SubscriberKey, Health] = {}
        self._behind: dict[DeliveryKey, WorkOrder] = {}
        self._taken_by_itself: dict[DeliveryKey, bool] = {}
        self._flows: dict[FlowKey, LeaseState] = {}
        self._holders: dict[FlowKey, str] = {}
        self._lines: dict[FlowKey, dict[str, tuple[WorkOrder, ...]]] = {}
        self._tended: dict[FlowKey, int] = {}
        self._places = itertools.count()
        self._looked_after: dict[SubscriberKey, int] = {}
        self._waiting: dict[SubscriberKey, dict[str, WorkOrder]] = {}
        self._slow: dict[tuple[str, str, str], int] = {}
        self.writes: list[Health] = []

    def lose(self) -> None:
        """The table is lost, and made anew."""
        kept = ("_lock", "_places", "writes")
        for name, each in vars(self).items():
            if name not in kept:
                each.clear()

    def health(self, key: SubscriberKey) -> Health | None:
        return self._healths.get(key)

    def healths(self, keys: Sequence[SubscriberKey]) -> dict[SubscriberKey, Health]:
        return {each: self._healths[each] for each in keys if each in self._healths}

    def healths_of(self, project_id: str) -> Iterator[Health]:
        return iter([each for key, each in self._healths.items() if key.project == project_id])

    def save(self, health: Health) -> None:
        with self._lock:
            stored = self._healths.get(health.key)
            if stored == health:
                return
            if (stored.version if stored else 0) != health.version - 1:
                raise Conflict(f"health of {health.key.subscriber_id} changed")
            self._healths[health.key] = health
            self.writes.append(health)

    def flow(self, key: FlowKey) -> LeaseState | None:
        return self._flows.get(key)

    def take_lease(self, key: FlowKey, holder: str, terms: Terms, *, now: int, until: int) -> LeaseState | None:
        with self._lock:
            before = replace(self._flows.get(key) or LeaseState(terms=terms), terms=terms)
            if before.until > now and self._holders.get(key) != holder:
                return None
            self._flows[key] = replace(before, until=until, places=before.places or 1)
            self._holders[key] = holder
            return before

    def give_back(self, key: FlowKey, holder: str, *, mark: int, places: int, woken_at: int | None = None) -> None:
        with self._lock:
            if self._holders.get(key) != holder:
                return
            del self._holders[key]
            before = self._flows[key]
            called = before.woken_at if woken_at is None else woken_at
            self._flows[key] = replace(before, until=0, mark=mark, places=places, woken_at=called)

    def note_wake_up(self, key: FlowKey, now: int, at: int) -> bool:
        with self._lock:
            before = self._flows.get(key)
            if before is None or before.woken_at > now:
                return False
            self._flows[key] = replace(before, woken_at=at)
            return True

    def add_to_backlog(self, key: FlowKey, orders: Sequence[WorkOrder], now: int) -> None:
        with self._lock:
            place = f"{now:015d}#{next(self._places):012d}"
            self._lines.setdefault(key, {})[place] = _in_line(orders)

    def set_aside(self, key: FlowKey, orders: Sequence[WorkOrder], until: int) -> str:
        with self._lock:
            place = f"~{until:015d}#{next(self._places):012d}"
            self._lines.setdefault(key, {})[place] = _in_line(orders)
            return place

    def backlog(self, key: FlowKey, limit: int, *, now: int | None = None) -> list[BacklogEntry]:
        reach = "~~" if now is None else f"~{now:015d}"
        with self._lock:
            places = [each for each in sorted(self._lines.get(key, {}).items()) if each[0] < reach][:limit]
            return [BacklogEntry(place=place, orders=orders) for place, orders in places]

    def remove_from_backlog(self, key: FlowKey, place: str, rest: Sequence[WorkOrder]) -> None:
        with self._lock:
            line = self._lines.setdefault(key, {})
            if rest:
                line[place] = _in_line(rest)
            else:
                line.pop(place, None)

    def list_backlog(self, key: FlowKey, now: int) -> None:
        self._tended[key] = now

    def listed_backlogs(self) -> Iterator[tuple[FlowKey, int]]:
        return iter(sorted(self._tended.items()))

    def unlist_backlog(self, key: FlowKey, added_at: int) -> None:
        if self._tended.get(key) == added_at:
            del self._tended[key]

    def wait_behind(self, before: DeliveryKey, order: WorkOrder) -> None:
        self._behind[before] = WorkOrder.decode(replace(order, message=None).encode())
        self._taken_by_itself.pop(before, None)

    def behind(self, ended: DeliveryKey) -> WorkOrder | None:
        return self._behind.get(ended)

    def take(self, before: DeliveryKey, order: WorkOrder, *, by_itself: bool) -> bool:
        with self._lock:
            return before in self._behind and self._taken_by_itself.setdefault(before, by_itself) is by_itself

    def let_go(self, ended: DeliveryKey) -> None:
        self._behind.pop(ended, None)
        self._taken_by_itself.pop(ended, None)

    def note_slow(self, keys: Sequence[tuple[str, str, str]], until: int) -> None:
        with self._lock:
            self._slow |= dict.fromkeys(keys, until)

    def slow(self, now: int, limit: int) -> dict[tuple[str, str, str], int]:
        with self._lock:
            noted = sorted(self._slow.items(), key=lambda each: -each[1])
        return {key: until for key, until in noted[:limit] if until > now}

    def look_after(self, key: SubscriberKey, now: int) -> None:
        self._looked_after[key] = now

    def looked_after(self) -> Iterator[SubscriberKey]:
        return iter(sorted(self._looked_after, key=lambda each: (each.project, each.queue_uid, each.subscriber_id)))

    def leave(self, key: SubscriberKey, since: int) -> None:
        if self._looked_after.get(key, since) < since:
            del self._looked_after[key]

    def add(self, key: SubscriberKey, order: WorkOrder, now: int) -> None:
        bare = replace(order, message=None)
        with self._lock:
            self._waiting.setdefault(key, {})[f"{now:015d}#{order.key.message_id}"] = WorkOrder.decode(bare.encode())

    def waiting(self, key: SubscriberKey, limit: int) -> list[BacklogOrder]:
        with self._lock:
            places = sorted(self._waiting.get(key, {}).items())[:limit]
            return [BacklogOrder(order=order, place=place) for place, order in places]

    def waiting_ids(self, key: SubscriberKey, limit: int) -> list[str]:
        return [*dict.fromkeys(each.partition("#")[2] for each in self._waiting.get(key, {}))][:limit]

    def remove(self, key: SubscriberKey, waiting: Sequence[BacklogOrder]) -> None:
        with self._lock:
            for each in waiting:
                self._waiting.get(key, {}).pop(each.place, None)


def _in_line(orders: Sequence[WorkOrder]) -> tuple[WorkOrder, ...]:
    return tuple(WorkOrder(key=each.key, queue=each.queue, manual=each.manual) for each in orders)
