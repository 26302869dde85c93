"""The push use case: a batch of orders from SQS, carried on side by side, and what follows for each of them arranged.

What follows is arranged soon after each delivery is through, not when the whole batch is: one slow endpoint must not hold back its
neighbours' retries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait

from pushhub.base.errors import Unavailable
from pushhub.base.ports import Clock, Telemetry
from pushhub.engine.deliver import Deliver, Follow, Following, order_identity
from pushhub.engine.faults import described
from pushhub.engine.model.backoff import MAX_DELAY_MS, visibility_seconds
from pushhub.engine.model.delivery import Delivery
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.ports import Deliveries, Received, WorkQueue

UNSURE_WAIT_MS = 10_000
"""How soon an order is looked at again when one of our own calls failed and its effect is unknown; doubled with each receive."""

FRESH_AFTER_RECEIVES = 10
"""Receives after which a waiting order travels on in a new SQS message. A queue gives a message up after 20 receives or more (a guard against
poison), and some waits are short and many: a poll each second, retries without end."""

FRESH_AFTER_MS = 4 * 86_400_000
"""Age at which a waiting order travels on in a new SQS message; SQS drops a message 14 days after it was sent, however often it was received."""

FLUSH_SECONDS = 0.2
"""How long a finished delivery may wait for others before what follows is arranged."""

FLUSH_COUNT = 10
"""SQS takes this many entries in one call."""


class Push:
    """Works on batches of orders.

    Args:
        messages: Deliveries.
        deliver: Carries one delivery on.
        retry_queue: Where deliveries wait for their next try.
        errors_queue: Where exhausted deliveries go.
        poll_queue: Where deliveries wait for their next poll (hub protocol).
        clock: Time.
        telemetry: Wide events and metrics.
        executor: Runs the deliveries of a batch side by side.
    """

    def __init__(
        self,
        *,
        messages: Deliveries,
        deliver: Deliver,
        retry_queue: WorkQueue,
        errors_queue: WorkQueue,
        poll_queue: WorkQueue,
        clock: Clock,
        telemetry: Telemetry,
        executor: Executor,
    ) -> None:
        self._messages = messages
        self._deliver = deliver
        self._retry_queue = retry_queue
        self._errors_queue = errors_queue
        self._poll_queue = poll_queue
        self._clock = clock
        self._telemetry = telemetry
        self._executor = executor

    def run(self, batch: Sequence[Received], *, source: WorkQueue, remaining_ms: Callable[[], int]) -> set[str]:
        """Work on a batch.

        Args:
            batch: As received; the same delivery twice is attempted once.
            source: The queue it came from. Waits are spent there when it is the one they belong to.
            remaining_ms: Milliseconds this invocation has left.

        Returns:
            SQS ids of the orders to keep (batch item failures); all others are settled or handed on.
        """
        firsts: dict[tuple[str, str, str, str], Received] = {}
        for received in batch:
            firsts.setdefault(received.order.key, received)
        try:
            stored = self._messages.deliveries([each.order for each in firsts.values()])
        except Unavailable as error:
            self._call_failed("states_unreadable", error, orders=len(batch))
            return self._wait([(each, self._unsure(each)) for each in batch], source)
        running = {
            self._executor.submit(self._carry_on, received, stored.get(key), remaining_ms): received
            for key, received in firsts.items()
        }
        return self._arrange_as_they_finish(running, source)

    def _carry_on(self, received: Received, stored: Delivery | None, remaining_ms: Callable[[], int]) -> Following:
        """Carry one delivery on, on a thread of its own; a fault of ours in it must not touch its neighbours."""
        try:
            return self._deliver.run(received, stored, remaining_ms)
        except Unavailable as error:
            self._call_failed("attempt_unrecorded", error, **order_identity(received.order))
        except Exception as error:  # noqa: BLE001 (the dead-letter queue keeps it in sight)
            self._telemetry.count("PushFaults")
            self._telemetry.event("push_fault", **described(error), **order_identity(received.order))
            return Following(Follow.FAULT, self._unsure(received))
        return Following(Follow.LATER, self._unsure(received))

    def _unsure(self, received: Received) -> int:
        """When to look again at an order that a fault of ours kept us from, epoch milliseconds."""
        doublings = min(received.receive_count - 1, 10)
        return self._clock.now() + min(UNSURE_WAIT_MS << doublings, MAX_DELAY_MS)

    def _arrange_as_they_finish(self, running: dict[Future[Following], Received], source: WorkQueue) -> set[str]:
        keep: set[str] = set()
        pending = set(running)
        through: list[tuple[Received, Following]] = []
        while pending or through:
            done, pending = wait(pending, timeout=FLUSH_SECONDS, return_when=FIRST_COMPLETED)
            through += [(running[each], each.result()) for each in done]
            if through and (not done or not pending or len(through) >= FLUSH_COUNT):
                keep |= self._arrange(through, source)
                through = []
        return keep

    def _arrange(self, through: Sequence[tuple[Received, Following]], source: WorkQueue) -> set[str]:
        """Exhausted ones to the errors queue, waits to where they are spent; the SQS ids to keep are returned."""
        errors = [received for received, following in through if following.follow is Follow.ERROR]
        kept: list[tuple[Received, int]] = []
        if errors and not self._sent(self._errors_queue, [(each.order, 0) for each in errors]):
            kept += [(each, self._unsure(each)) for each in errors]
        for follow, queue in ((Follow.LATER, self._retry_queue), (Follow.POLL, self._poll_queue)):
            waits = [(received, following.due_at) for received, following in through if following.follow is follow]
            if source is queue:
                kept += waits
            elif waits and not self._moved(waits, queue):
                kept += [(each, self._unsure(each)) for each, _ in waits]
        stuck = [(received, following.due_at) for received, following in through if following.follow is Follow.FAULT]
        return self._wait(kept, source) | self._hide(stuck, source)

    def _wait(self, kept: Sequence[tuple[Received, int]], source: WorkQueue) -> set[str]:
        """Let orders wait in the queue they came from; the SQS ids to keep. Worn messages are replaced by new ones."""
        worn = [each for each in kept if self._is_worn(each[0])]
        if worn and self._moved(worn, source):
            kept = [each for each in kept if not self._is_worn(each[0])]
        return self._hide(kept, source)

    def _is_worn(self, received: Received) -> bool:
        age_ms = 0 if received.sent_at is None else received.received_at - received.sent_at
        return received.receive_count >= FRESH_AFTER_RECEIVES or age_ms >= FRESH_AFTER_MS

    def _moved(self, waits: Sequence[tuple[Received, int]], queue: WorkQueue) -> bool:
        """Send waiting orders to the queue where their wait belongs."""
        now = self._clock.now()
        delays = [-(-min(MAX_DELAY_MS, max(0, due_at - now)) // 1000) for _, due_at in waits]
        return self._sent(queue, [(each.order, delay) for (each, _), delay in zip(waits, delays, strict=True)])

    def _call_failed(self, event: str, error: Unavailable, **fields: object) -> None:
        """Tell of a call of our own that failed: its order is looked at again, and an attempt that was made may be made again."""
        self._telemetry.count("CallsFailed")
        self._telemetry.event(event, error=str(error), **fields)

    def _sent(self, queue: WorkQueue, orders: Sequence[tuple[WorkOrder, int]]) -> bool:
        try:
            queue.send(orders)
        except Unavailable as error:
            self._call_failed("orders_not_sent", error, orders=len(orders))
            return False
        return True

    def _hide(self, kept: Sequence[tuple[Received, int]], source: WorkQueue) -> set[str]:
        """Hide kept orders until their time; one that cannot be hidden comes back when the queue's own timeout ends."""
        if not kept:
            return set()
        now = self._clock.now()
        waits = [
            (each.receipt_handle, visibility_seconds(due_at - now, received_at=each.received_at, now=now))
            for each, due_at in kept
        ]
        try:
            failed = source.defer(waits)
        except Unavailable as error:
            self._call_failed("visibility_unchanged", error, orders=len(waits))
        else:
            if failed:
                self._telemetry.event("visibility_unchanged", error="refused", orders=len(failed))
        return {each.sqs_id for each, _ in kept}
