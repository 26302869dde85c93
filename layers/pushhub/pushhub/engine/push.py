"""The push use case: works on a batch of SQS orders in parallel, and arranges what comes next for each.

That happens soon after each delivery is done rather than at the end of the batch: one slow endpoint must not hold up
its neighbours' retries.

Waiting for an answer costs a thread, not a run of the function. While a run waits for a slow endpoint, it receives and
processes further orders itself, as long as they cannot outlast it. And no subscriber gets more threads than its answers
have earned (:mod:`pushhub.engine.windows`): orders for a slow one are put aside and come back later. Slow first
attempts and retries move to the slow lane, a separate queue with its own runs (:mod:`pushhub.engine.slow_lane`), before
anything is read for them.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pushhub.base.errors import Unavailable
from pushhub.engine.deliver import Deliver, Follow, Following
from pushhub.engine.faults import described
from pushhub.engine.finished import Finished
from pushhub.engine.model.backoff import MAX_DELAY_MS, visibility_seconds
from pushhub.engine.windows import SHARE_OF_A_PROJECT, Key, Windows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.keys import DeliveryKey
    from pushhub.engine.model.work import WorkOrder
    from pushhub.engine.ports import Deliveries, Received, WorkQueue
    from pushhub.engine.slow_lane import SlowLane

UNSURE_WAIT_MS = 10_000
"""How soon an order is retried when one of our own calls failed with unknown effect.

Doubled with each receive.
"""

FRESH_AFTER_RECEIVES = 10
"""Number of receives after which a waiting order is moved to a new SQS message.

A queue gives up a message after 20 or more receives (as a guard against poison), and some waits are short and frequent:
a poll each second, retries without end.
"""

FRESH_AFTER_MS = 4 * 86_400_000
"""Age at which a waiting order is moved to a new SQS message; SQS drops a message 14 days after it was sent, however
often it was received.
"""

HIDDEN_WAIT_MS = 60_000
"""The longest wait spent as a visibility timeout, without a new message.

A hidden message is in flight, and SQS stops delivering at 120,000 in-flight messages. Longer waits therefore become
delays of new messages, which do not count: the queue can hold 2,000 retries per second that wait a minute each.
"""

FLUSH_SECONDS = 0.2
"""How long a finished delivery may wait for others before its next step is arranged."""

FLUSH_COUNT = 10
"""Maximum number of entries in one SQS call."""

AT_ONCE = 99
"""Concurrent attempts; the executor has one more thread, which receives."""

REFILL_AFTER_MS = 500
"""A run that has waited this long for an answer receives further orders itself, unless there are already as many orders
waiting for a thread as there are threads.
"""

REFILL_WAIT_S = 1
"""How long one such receive waits for orders. It can delay the end of a run whose attempts are all done by as much."""

WAITING = 1_000
"""A run with idle threads receives further orders at once, as long as fewer than these wait in it for subscribers that
have not earned more attempts yet. Such a receive does not wait.
"""

LONGEST_ATTEMPT_MS = 190_000
"""Maximum duration of an attempt and its follow-up: an endpoint of the hub protocol has three minutes to answer."""

ASIDE_MS = 15_000
"""How soon an order for a slow subscriber is retried; doubled with each receive."""


@dataclass
class _Run:
    """One run of the function.

    Attributes:
        source: The queue that its batch, and everything it receives itself, came from.
        slow: The slow lane's queue; None when this run handles orders that have none.
        remaining_ms: Milliseconds it has left.
        given: SQS ids of its batch; those to keep are what the run returns.
        waiting: Orders waiting for a thread, with their stored deliveries.
        running: Attempts in progress: the order, the subscriber's window, and when it began.
        finished: Attempts and receives as they finish.
        through: Orders that are done, and what comes next for each.
        keys: Deliveries waiting or running, each with a flag for a manual try only.
        handles: Receipt handles of messages it received itself, by SQS id.
        left: Orders of those messages that are not done yet.
        keep: SQS ids of messages that stay in the queue.
        refill: A receive in progress.
        refills: Whether it may receive further orders.
        looks_at: When it may look for orders for its idle threads again, epoch milliseconds.
    """

    source: WorkQueue
    slow: WorkQueue | None
    remaining_ms: Callable[[], int]
    given: frozenset[str]
    waiting: list[tuple[Received, Delivery | None]] = field(default_factory=list)
    running: dict[Future[Following], tuple[Received, Key, int]] = field(default_factory=dict)
    finished: Finished = field(default_factory=Finished)
    through: list[tuple[Received, Following]] = field(default_factory=list)
    keys: dict[DeliveryKey, bool] = field(default_factory=dict)
    handles: dict[str, str] = field(default_factory=dict)
    left: Counter[str] = field(default_factory=Counter)
    keep: set[str] = field(default_factory=set)
    refill: Future[list[Received]] | None = None
    refills: bool = True
    looks_at: int = 0

    @property
    def hurried(self) -> bool:
        """Whether orders for slow subscribers belong elsewhere."""
        return self.slow is not None and self.slow is not self.source

    @property
    def projects(self) -> set[str]:
        """Projects with orders that wait for a thread or have one."""
        waiting = {received.order.key.project for received, _ in self.waiting}
        return waiting | {key[0] for _, key, _ in self.running.values()}

    @property
    def busy(self) -> bool:
        """Whether anything is left to do."""
        return bool(self.waiting or self.running or self.through or self.refill)


class Push:
    """Works on batches of orders.

    Args:
        messages: Deliveries.
        deliver: Works on one delivery.
        retry_queue: Where deliveries wait for their next try.
        errors_queue: Where exhausted deliveries go.
        poll_queue: Where deliveries wait for their next poll (hub protocol).
        slow_lane: Where orders for slow subscribers go; None leaves them in the queue they came from.
        executor: Runs the deliveries of a batch in parallel; has more than :data:`AT_ONCE` threads.
    """

    def __init__(
        self,
        *,
        messages: Deliveries,
        deliver: Deliver,
        retry_queue: WorkQueue,
        errors_queue: WorkQueue,
        poll_queue: WorkQueue,
        slow_lane: SlowLane | None = None,
        clock: Clock,
        telemetry: Telemetry,
        executor: Executor,
    ) -> None:
        self._messages = messages
        self._deliver = deliver
        self._retry_queue = retry_queue
        self._errors_queue = errors_queue
        self._poll_queue = poll_queue
        self._slow_lane = slow_lane
        self._clock = clock
        self._telemetry = telemetry
        self._executor = executor
        self._windows = Windows()

    def run(self, batch: Sequence[Received], *, source: WorkQueue, remaining_ms: Callable[[], int]) -> set[str]:
        """Work on a batch.

        Args:
            batch: As received; a delivery that occurs twice is attempted once.
            source: The queue it came from. Waits that belong to this queue are spent there.
            remaining_ms: Milliseconds this invocation has left.

        Returns:
            SQS ids of the orders to keep (batch item failures); all others are settled or passed on.
        """
        run = _Run(
            source=source,
            slow=self._slow_lane.queue if self._slow_lane else None,
            remaining_ms=remaining_ms,
            given=frozenset(each.sqs_id for each in batch),
        )
        self._windows.start_over()
        self._take(run, batch)
        while run.busy:
            self._begin(run)
            self._refill(run)
            self._finish(run)
        return run.keep & run.given

    def _take(self, run: _Run, batch: Sequence[Received]) -> None:
        """Add orders to a run. A delivery that the run is already handling is not attempted a second time.

        The order for a manual try is for that try only, so it must not replace the automatic one.
        """
        if self._slow_lane is not None and run.hurried:
            self._slow_lane.refresh(len(batch))
            now = self._clock.now()
            hold_up = [self._holds_up(each.order, now) for each in batch]
            self._to_slow_lane(run, [each for each, slow in zip(batch, hold_up, strict=True) if slow])
            batch = [each for each, slow in zip(batch, hold_up, strict=True) if not slow]
        if not batch:
            return
        new = dict.fromkeys(each.order.key for each in batch if each.order.key not in run.keys)
        try:
            stored = self._messages.deliveries([*new])
        except Unavailable as error:
            self._call_failed("states_unreadable", error, orders=len(batch))
            run.keep |= self._wait([(each, self._unsure(each)) for each in batch], run.source)
            return
        firsts: dict[DeliveryKey, Received] = {}
        behind: list[Received] = []
        for received in sorted(batch, key=lambda each: each.order.manual):
            order = received.order
            if order.key in new:
                if not _is_void(received, stored.get(order.key)):
                    firsts.setdefault(order.key, received)
            elif run.keys[order.key] and not order.manual:
                behind.append(received)
        if behind:
            run.keep |= self._wait([(each, self._clock.now() + ASIDE_MS) for each in behind], run.source)
        run.left.update(each.sqs_id for each in firsts.values())
        run.keys |= {key: received.order.manual for key, received in firsts.items()}
        run.waiting += [(received, stored.get(key)) for key, received in firsts.items()]

    def _begin(self, run: _Run) -> None:
        """Begin every attempt for which there is a thread.

        Orders for slow subscribers that may not have one now are put aside. No project has more than its share of the
        threads while others have orders in the run.
        """
        if not run.waiting:
            return
        still: list[tuple[Received, Delivery | None]] = []
        aside: list[Received] = []
        several = run.hurried and len(run.projects) > 1
        if several:
            # Free threads go to the one with the fewest.
            run.waiting.sort(key=lambda each: self._windows.held(each[0].order.key.project))
        for received, stored in run.waiting:
            now, key = self._clock.now(), _window_key(received.order)
            slow = self._windows.slow(key, now)
            polled = stored is not None and stored.update_url is not None
            if run.hurried and not polled and self._holds_up(received.order, now):
                aside.append(received)
            elif slow and (run.remaining_ms() < 2 * LONGEST_ATTEMPT_MS or not self._windows.admits(key, now)):
                if run.slow is run.source and not polled:
                    aside.append(received)
                else:
                    self._put_aside(run, received, stored)
            elif several and self._windows.held(key[0]) >= SHARE_OF_A_PROJECT:
                still.append((received, stored))
            elif len(run.running) < AT_ONCE and self._windows.admits(key, now):
                self._windows.begin(key, now)
                attempt = self._executor.submit(self._carry_on, received, stored, run.remaining_ms)
                run.running[attempt] = received, key, now
                run.finished.expect(attempt)
            else:
                still.append((received, stored))
        run.waiting = still
        if aside:
            for each in aside:
                run.keys.pop(each.order.key, None)
            self._to_slow_lane(run, aside)
            run.left.subtract(each.sqs_id for each in aside)
            self._give_up_own(run)

    def _holds_up(self, order: WorkOrder, now: int) -> bool:
        key = _window_key(order)
        listed = self._slow_lane is not None and self._slow_lane.lists(key)
        return listed or self._windows.holds_up(key, now)

    def _to_slow_lane(self, run: _Run, orders: Sequence[Received]) -> None:
        """Move orders to the slow lane at once, or, from the lane itself, back to its end after some time.

        They are packed again, and never stay in the SQS message they came in: another order of that message may be in
        progress.
        """
        if run.slow is None:
            return
        waits: dict[int, list[Received]] = {}
        for each in orders:
            delay_s = 0 if run.hurried else self._windows.aside_s(_window_key(each.order), self._clock.now())
            waits.setdefault(delay_s, []).append(each)
        for delay_s, together in waits.items():
            # An order received again may be the one that changed its delivery, so from here on it is for the current
            # state.
            bare = [each.order if each.receive_count == 1 else replace(each.order, version=None) for each in together]
            try:
                run.slow.send_packed(bare, delay_s)
            except Unavailable as error:
                self._call_failed("orders_not_sent", error, orders=len(bare))
                run.keep |= self._wait([(each, self._unsure(each)) for each in together], run.source)
            self._telemetry.count("DeliveriesPutAside", len(bare))

    def _put_aside(self, run: _Run, received: Received, stored: Delivery | None) -> None:
        doublings = min(received.receive_count - 1, 10)
        due_at = self._clock.now() + min(ASIDE_MS << doublings, MAX_DELAY_MS)
        follow = Follow.LATER if stored is None or stored.update_url is None else Follow.POLL
        run.through.append((received, Following(follow, due_at)))
        self._telemetry.count("DeliveriesPutAside")

    def _refill(self, run: _Run) -> None:
        """Receive further orders while waiting for an answer, or while threads are idle, as long as they could still be
        attempted in this run.
        """
        if run.refill is not None or not run.refills or len(run.running) >= AT_ONCE:
            return
        now = self._clock.now()
        waits = len(run.waiting) < AT_ONCE and any(
            now - begun >= REFILL_AFTER_MS and not attempt.done() for attempt, (_, _, begun) in run.running.items()
        )
        idle = run.hurried and now >= run.looks_at and self._idle(run)
        attempts = 2 if run.slow is run.source else 1
        if (waits or idle) and run.remaining_ms() > attempts * LONGEST_ATTEMPT_MS:
            run.refill = self._executor.submit(run.source.receive, REFILL_WAIT_S if waits else 0)
            run.finished.expect(run.refill)

    def _idle(self, run: _Run) -> bool:
        """Whether threads are idle although orders wait: for subscribers that have not earned more attempts yet."""
        return 0 < len(run.waiting) < WAITING and len(run.running) < AT_ONCE // 2

    def _finish(self, run: _Run) -> None:
        """Wait briefly for attempts to finish, and arrange the next step for those that have."""
        done = run.finished.take(FLUSH_SECONDS) if run.running or run.refill is not None else set()
        now = self._clock.now()
        if self._slow_lane is not None:
            self._slow_lane.tell(self._windows.newly_slow(now))
        for attempt in [each for each in run.running if each in done]:
            received, key, begun = run.running.pop(attempt)
            self._windows.end(key, begun, now)
            run.through.append((received, attempt.result()))
        if run.refill is not None and run.refill in done:
            self._refilled(run, run.refill)
            run.refill = None
        if run.through and (not done or not run.running or len(run.through) >= FLUSH_COUNT):
            through, run.through = run.through, []
            for each, _ in through:
                run.keys.pop(each.order.key, None)
            run.keep |= self._arrange(through, run)
            run.left.subtract(each.sqs_id for each, _ in through)
            self._give_up_own(run)

    def _refilled(self, run: _Run, refill: Future[list[Received]]) -> None:
        try:
            batch = refill.result()
        except Unavailable as error:
            self._call_failed("orders_not_received", error)
            run.refills = False
            return
        if not batch:
            run.looks_at = self._clock.now() + REFILL_AFTER_MS
        run.handles |= {each.sqs_id: each.receipt_handle for each in batch}
        self._take(run, batch)
        self._give_up_own(run)

    def _give_up_own(self, run: _Run) -> None:
        """Delete the messages that the run received itself and has finished.

        A message that cannot be deleted comes back, which is harmless.
        """
        over = [sqs_id for sqs_id in run.handles if run.left[sqs_id] <= 0]
        handles = {sqs_id: run.handles.pop(sqs_id) for sqs_id in over}
        done = [handle for sqs_id, handle in handles.items() if sqs_id not in run.keep]
        if not done:
            return
        try:
            run.source.delete(done)
        except Unavailable as error:
            self._call_failed("orders_not_deleted", error, orders=len(done))

    def _carry_on(self, received: Received, stored: Delivery | None, remaining_ms: Callable[[], int]) -> Following:
        """Work on one delivery in its own thread; an internal error must not affect its neighbours."""
        try:
            return self._deliver.run(received, stored, remaining_ms)
        except Unavailable as error:
            self._call_failed("attempt_unrecorded", error, **received.order.identity)
        except Exception as error:  # noqa: BLE001 (the dead-letter queue keeps it in sight)
            self._telemetry.count("PushFaults")
            self._telemetry.event("push_fault", **described(error), **received.order.identity)
            return Following(Follow.FAULT, self._unsure(received))
        return Following(Follow.LATER, self._unsure(received))

    def _unsure(self, received: Received) -> int:
        """When to retry an order after an internal error, epoch milliseconds."""
        doublings = min(received.receive_count - 1, 10)
        return self._clock.now() + min(UNSURE_WAIT_MS << doublings, MAX_DELAY_MS)

    def _arrange(self, through: Sequence[tuple[Received, Following]], run: _Run) -> set[str]:
        """Pass exhausted deliveries to the errors queue and waits to where they are spent; returns the SQS ids to
        keep.
        """
        source = run.source
        errors = [received for received, following in through if following.follow is Follow.ERROR]
        kept: list[tuple[Received, int]] = []
        if errors and not self._given_up([each.order for each in errors]):
            kept += [(each, self._unsure(each)) for each in errors]
        for follow, queue in ((Follow.LATER, self._retry_queue), (Follow.POLL, self._poll_queue)):
            waits = [(received, following.due_at) for received, following in through if following.follow is follow]
            if follow is Follow.LATER and run.slow is source:
                waits, kept_slow = self._stay_slow(waits, source)
                kept += kept_slow
            if source is queue:
                until = self._clock.now() + HIDDEN_WAIT_MS
                kept += [each for each in waits if each[1] <= until]
                waits = [each for each in waits if each[1] > until]
            if waits and not self._moved(waits, queue):
                kept += [(each, self._unsure(each)) for each, _ in waits]
        stuck = [(received, following.due_at) for received, following in through if following.follow is Follow.FAULT]
        return self._wait(kept, source) | self._hide(stuck, source)

    def _stay_slow(
        self, waits: Sequence[tuple[Received, int]], lane: WorkQueue
    ) -> tuple[list[tuple[Received, int]], list[tuple[Received, int]]]:
        """Make orders wait in the slow lane if their subscriber is still slow.

        Returns the others, and those to retry because the lane did not accept them.
        """
        now = self._clock.now()
        slow = [each for each in waits if self._windows.slow(_window_key(each[0].order), now)]
        prompt = [each for each in waits if not self._windows.slow(_window_key(each[0].order), now)]
        taken = not slow or self._moved(slow, lane)
        return prompt, [] if taken else [(each, self._unsure(each)) for each, _ in slow]

    def _wait(self, kept: Sequence[tuple[Received, int]], source: WorkQueue) -> set[str]:
        """Make orders wait in the queue they came from; returns the SQS ids to keep. Worn-out messages are replaced."""
        worn = [each for each in kept if self._is_worn(each[0])]
        if worn and self._moved(worn, source):
            kept = [each for each in kept if not self._is_worn(each[0])]
        return self._hide(kept, source)

    def _is_worn(self, received: Received) -> bool:
        age_ms = 0 if received.sent_at is None else received.received_at - received.sent_at
        return received.receive_count >= FRESH_AFTER_RECEIVES or age_ms >= FRESH_AFTER_MS

    def _moved(self, waits: Sequence[tuple[Received, int]], queue: WorkQueue) -> bool:
        """Send waiting orders to the queue where they belong.

        From there on they are for the current state of their delivery.
        """
        now = self._clock.now()
        delays = [-(-min(MAX_DELAY_MS, max(0, due_at - now)) // 1000) for _, due_at in waits]
        orders = [replace(each.order, version=None) for each, _ in waits]
        return self._sent(queue, list(zip(orders, delays, strict=True)))

    def _call_failed(self, event: str, error: Unavailable, **fields: object) -> None:
        """Report a failed call of our own: its order is retried, and an attempt already made may be repeated."""
        self._telemetry.count("CallsFailed")
        self._telemetry.event(event, error=str(error), **fields)

    def _given_up(self, orders: Sequence[WorkOrder]) -> bool:
        """Pass orders to the errors queue, in packs; its consumers read the current messages and deliveries."""
        try:
            self._errors_queue.send_packed([replace(each, message=None, version=None) for each in orders])
        except Unavailable as error:
            self._call_failed("orders_not_sent", error, orders=len(orders))
            return False
        return True

    def _sent(self, queue: WorkQueue, orders: Sequence[tuple[WorkOrder, int]]) -> bool:
        try:
            queue.send(orders)
        except Unavailable as error:
            self._call_failed("orders_not_sent", error, orders=len(orders))
            return False
        return True

    def _hide(self, kept: Sequence[tuple[Received, int]], source: WorkQueue) -> set[str]:
        """Hide kept orders until their time; one that cannot be hidden comes back after the queue's own timeout."""
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


def _window_key(order: WorkOrder) -> Key:
    return order.key.project, order.key.queue_uid, order.key.subscriber_id


def _is_void(received: Received, stored: Delivery | None) -> bool:
    """Whether an order is for an earlier state of its delivery: the run that changed the state has already arranged the
    next step.

    An order received again may be the one that made the change, so it counts.
    """
    version = received.order.version
    return version is not None and received.receive_count == 1 and stored is not None and stored.version != version
