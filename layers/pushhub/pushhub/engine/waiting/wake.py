"""Returns scheduled deliveries to a queue when they are due.

Each minute, one run looks at all shards of the schedule. It handles a shard with little to do itself, and starts a
separate run for each shard with much to do, so that throughput grows with the shards. Waking a delivery writes nothing:
a run just moves past what it has queued, and an order is void once its delivery has changed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pushhub.base.errors import Conflict, Unavailable
from pushhub.engine.component import Component

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.acceptance.order_queues import OrderQueues
    from pushhub.engine.model.schedule import Position, ScheduleEntry
    from pushhub.engine.model.work import WorkOrder
    from pushhub.engine.ports import WorkQueue
    from pushhub.engine.waiting.ports import Schedule, ShardRuns

PAGE = 1000
"""Entries per read of a shard. A shard with this many due gets a run of its own."""

LOOKS = 4
"""Shards looked at together. On a new stack, or after hours without a run, one look makes many reads. How far these
shards were read is stored before the next ones are looked at, so a run that dies has achieved something.
"""

SLICE = 100
"""Orders sent sequentially; the slices of a page are sent in parallel."""

MARGIN_MS = 10_000
"""Time kept free at the end of an invocation."""

LATE_MS = 120_000
"""Delay after which a woken delivery counts as late: twice the worst case with one run per minute."""

IDLE_MINUTES = 30
"""Number of empty minutes after which a shard's position is updated.

The execution environment knows that they are empty. A new one reads them again, which is cheaper than writing the
position more often.
"""


@dataclass
class _Look:
    """A look at the shards.

    Attributes:
        remaining_ms: Milliseconds the run has left.
        woken: Deliveries that it has woken.
        lost: Shards whose position was not where it was read.
        failed: Why the last shard that failed did.
    """

    remaining_ms: Callable[[], int]
    woken: int = 0
    lost: set[int] = field(default_factory=set)
    failed: Unavailable | None = None


class Wake(Component):
    """Wakes scheduled deliveries."""

    schedule: Schedule  # Provides the deliveries that are due.
    runs: ShardRuns  # Starts a separate run for one shard.
    queues: OrderQueues  # Where their orders go.
    clock: Clock
    telemetry: Telemetry
    executor: Executor  # Reads shards and sends orders in parallel.

    def run(self, remaining_ms: Callable[[], int], *, shard: int | None = None) -> int:
        """Queue what is due. A crash before the position is moved queues some of it twice, which is harmless.

        Args:
            remaining_ms: Milliseconds this invocation has left; the next one continues.
            shard: The one shard to read; None for all.

        Returns:
            Number of deliveries woken by this run.
        """
        look = _Look(remaining_ms)
        self._look(look, self._among(shard), alone=shard is not None)
        if look.lost:
            # They may only have been moved since this environment last read where they stand.
            look.lost, lost = set(), look.lost
            self._look(look, [each for each in self._among(shard) if each.shard in lost], alone=shard is not None)
        if look.failed is not None:
            raise look.failed
        return look.woken

    def _among(self, shard: int | None) -> list[Position]:
        """Positions that no other run has: of one shard, or of all."""
        now = self.clock.now()
        free = [each for each in self.schedule.positions() if each.taken_until <= now]
        return [each for each in free if shard is None or each.shard == shard]

    def _look(self, look: _Look, mine: Sequence[Position], *, alone: bool) -> None:
        """Look at shards, a few at a time.

        Args:
            look: Told what becomes of it.
            mine: Where to read.
            alone: Whether the run is for one shard only, however much it has to do.
        """
        now = self.clock.now()
        for first in range(0, len(mine), LOOKS):
            if first and look.remaining_ms() <= MARGIN_MS:
                break
            some = mine[first : first + LOOKS]
            found = [self.executor.submit(self.schedule.due, each, now, PAGE) for each in some]
            for position, each in zip(some, found, strict=True):
                try:
                    entries, passed = each.result()
                    if not alone and len(entries) >= PAGE and self._started(position.shard):
                        continue
                    self._work_off(look, position, entries, passed)
                except Unavailable as error:
                    # A failing shard must not hold up the others.
                    self.telemetry.event("shard_not_woken", error=str(error), shard=position.shard)
                    look.failed = error

    def _started(self, shard: int) -> bool:
        try:
            self.runs.start(shard)
        except Unavailable as error:
            self.telemetry.event("shard_run_not_started", error=str(error), shard=shard)
            return False
        return True

    def _work_off(self, look: _Look, position: Position, entries: Sequence[ScheduleEntry], passed: Position) -> None:
        """Queue the entries read from a shard's position, and all due entries after them."""
        if not entries:
            if passed.minute - position.minute >= IDLE_MINUTES:
                with suppress(Conflict):
                    self.schedule.move(position, passed)
            return
        taken = replace(position, taken_until=self.clock.now() + look.remaining_ms())
        try:
            self.schedule.move(position, taken)
        except Conflict:
            look.lost.add(position.shard)
            return
        try:
            while entries and look.remaining_ms() > MARGIN_MS:
                self._queue(entries)
                look.woken += len(entries)
                passed = replace(passed, taken_until=taken.taken_until)
                self.schedule.move(taken, passed)
                taken = passed
                entries, passed = self.schedule.due(taken, self.clock.now(), PAGE)
        finally:
            with suppress(Conflict, Unavailable):
                self.schedule.move(taken, replace(taken, taken_until=0))

    def _queue(self, entries: Sequence[ScheduleEntry]) -> None:
        sends: list[tuple[WorkQueue, list[WorkOrder]]] = []
        for queue in self.queues.all:
            its = (each for each in entries if self.queues.of(each.queue, polls=each.polls) is queue)
            orders = sorted((each.order for each in its), key=_addressee)
            sends += [(queue, orders[start : start + SLICE]) for start in range(0, len(orders), SLICE)]
        list(self.executor.map(lambda send: send[0].send_packed(send[1]), sends))
        now = self.clock.now()
        late = sum(now - each.wakes_at > LATE_MS for each in entries)
        self.telemetry.count("DeliveriesWoken", len(entries))
        if late:
            self.telemetry.count("DeliveriesWokenLate", late)
            longest = max(now - each.wakes_at for each in entries)
            self.telemetry.event("woken_late", deliveries=late, longest_ms=longest)


def _addressee(order: WorkOrder) -> tuple[str, str, str]:
    """Orders for the same subscriber share SQS messages when they are sent together."""
    return order.addressee
