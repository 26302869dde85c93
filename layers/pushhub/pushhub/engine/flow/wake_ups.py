"""Wake-ups for backlogs whose lease nobody has: each minute where none is on its way, and at once where limits have
changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.errors import Unavailable
from pushhub.base.rotation import from_another_start
from pushhub.engine.component import Component
from pushhub.engine.faults import described
from pushhub.engine.flow.leases import TENDED_MS
from pushhub.engine.model.flow import FlowKey
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.lease import AGAIN_MS, HORIZON_MS
from pushhub.engine.model.work import WorkOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.flow.ports import Backlogs
    from pushhub.engine.model.keys import Addressee
    from pushhub.engine.ports import OrderSink

UNTENDED_MS = 2 * TENDED_MS
"""How long after its last entry an empty backlog is taken off the list of those that are tended."""

LOST_MS = 60_000
"""How long after its time a wake-up counts as lost."""

HURRY_S = 1
"""How soon a run is woken after a change of limits: by then no copy of the queue from before it is in use."""


class WakeUps(Component):
    """Wakes runs for backlogs."""

    backlogs: Backlogs
    queue: OrderSink  # Where a wake-up goes.
    clock: Clock
    telemetry: Telemetry

    def run(self, remaining_ms: Callable[[], int]) -> int:
        """Tend all backlogs, as far as the remaining milliseconds allow; returns the number of wake-ups."""
        listed = from_another_start([*self.backlogs.listed_backlogs()], self.clock.now())
        return sum(self._tend_safely(key, added_at) for key, added_at in _while(remaining_ms, listed))

    def _tend_safely(self, key: FlowKey, added_at: int) -> bool:
        """A problem with one backlog must not delay the others. The next minute tries again."""
        try:
            return self._tend(key, added_at)
        except Exception as error:  # noqa: BLE001 (told, counted, and tried again each minute)
            self.telemetry.count("CallsFailed")
            self.telemetry.event("backlog_not_tended", **described(error), project=key.project, flow=key.name)
            return False

    def hurry(self, addressee: Addressee, queue: str) -> None:
        """A subscriber's limits have changed: wake a run for it now if the next attempt is arranged for later.

        Without effect if that fails: the arranged wake-up comes.
        """
        flow, now = FlowKey.of_subscriber(*addressee), self.clock.now()
        try:
            state = self.backlogs.flow(flow)
            # Whoever has the lease may be about to arrange a wake-up under the former terms.
            if state is not None and (state.until > now or state.woken_at > now + HORIZON_MS):
                project, queue_uid, subscriber_id = addressee
                wake_up = WorkOrder.wake_up(DeliveryKey(project, queue_uid, "", subscriber_id), queue)
                self.queue.send([(wake_up, HURRY_S)])
        except Unavailable as error:
            self.telemetry.count("CallsFailed")
            self.telemetry.event("wake_up_not_hurried", error=str(error), project=flow.project, flow=flow.name)

    def _tend(self, key: FlowKey, added_at: int) -> bool:
        now = self.clock.now()
        state = self.backlogs.flow(key)
        if state is not None and (state.until > now or now < state.woken_at + LOST_MS):
            return False
        first = self.backlogs.backlog(key, 1, now=now)
        if not first:
            if now - added_at > UNTENDED_MS and not self.backlogs.backlog(key, 1):
                self.backlogs.unlist_backlog(key, added_at)
            return False
        if state is None or self.backlogs.note_wake_up(key, now, now):
            order = first[0].orders[0]
            self.queue.send([(WorkOrder.wake_up(order.key, order.queue, key.part), 0)])
            self.telemetry.count("TurnsCalled")
            return True
        return False


def _while(remaining_ms: Callable[[], int], lines: Iterable[tuple[FlowKey, int]]) -> Iterable[tuple[FlowKey, int]]:
    for each in lines:
        if remaining_ms() <= AGAIN_MS:
            return
        yield each
