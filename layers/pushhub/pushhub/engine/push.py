"""The push use case: works on a batch of SQS orders in parallel, and arranges what comes next for each.

That happens soon after each delivery is done rather than at the end of the batch: one slow endpoint must not hold up
its neighbours' retries.

Waiting for an answer costs a thread, not a run of the function. While a run waits for a slow endpoint, it receives and
processes further orders itself, as long as they cannot outlast it. And no subscriber gets more threads than its answers
have earned (:mod:`pushhub.engine.model.concurrency`). Slow first attempts and retries move to the slow lane, a separate
queue with its own runs (:mod:`pushhub.engine.slow_lane`), before anything is read for them.

Runs are short or long. A short one is over soon, so that its queue can show what it had in hand soon if it dies. What
may take longer than :data:`~pushhub.engine.job.SHORT_ATTEMPT_MS` is never begun there: its order moves to the poll
queue, whose runs are long, as are those of the slow lane.

Orders for subscribers with limits, and all in the slow lane, wait for a lease (:mod:`pushhub.engine.leases`).

What a run has in hand is the :class:`~pushhub.engine.model.ledger.Ledger`'s to know, where an order goes next
:class:`~pushhub.engine.forwarding.Forwarding`'s. ``docs/flow-control.md`` draws it all.
"""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Unavailable, Unreadable
from pushhub.engine.component import Component
from pushhub.engine.failed_calls import FailedCalls
from pushhub.engine.faults import described
from pushhub.engine.finished import Finished
from pushhub.engine.forwarding import Ended, Forwarding, Wait
from pushhub.engine.in_hand import PROMPT_MS, InHand
from pushhub.engine.job import SHORT_ATTEMPT_MS, Follow, Following, MayAsk
from pushhub.engine.model.backoff import MAX_DELAY_MS
from pushhub.engine.model.concurrency import SHARE_OF_A_PROJECT, ConcurrencyLimits
from pushhub.engine.model.flow import Limits, Terms
from pushhub.engine.model.lease import HORIZON_MS, Lease, Release
from pushhub.engine.model.ledger import Ledger
from pushhub.engine.model.received import Loaded, Received

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.deliver import Deliver
    from pushhub.engine.forwarding import NextQueues
    from pushhub.engine.leases import Leases
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.keys import Addressee, DeliveryKey
    from pushhub.engine.model.work import WorkOrder
    from pushhub.engine.ports import Deliveries, WorkQueue

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

ASIDE_MS, MOST_ASIDE_MS = 15_000, 60_000
"""How soon an order for a slow subscriber is retried where there is no slow lane; doubled with each receive up to a
minute only, as an order is received again for each of its retries, too.
"""

MANUAL_ASIDE_MS = 5_000
"""How soon the order for a manual try is looked at again that comes while its delivery is attempted."""


class Verdict(StrEnum):
    """What becomes of an order that waits for a thread."""

    BEGIN = "begin"
    """Its attempt begins."""
    WAIT = "wait"
    """It waits for a thread, or for an attempt at its subscriber to end."""
    SLOW_LANE = "slow lane"
    """It would hold up others: it moves to the slow lane."""
    PUT_ASIDE = "put aside"
    """Its subscriber is slow and may not be asked now, where there is no slow lane: it waits like a retry."""
    TAKE_BACK = "take back"
    """It is in the backlog of a lease that the run has: it waits there, and nowhere else."""
    LEASE = "lease"
    """It needs a lease at its subscriber: it waits for it in this run if that has the lease, or else in the backlog."""


@dataclass(frozen=True)
class _Running:
    """An attempt in progress.

    Attributes:
        loaded: Its order, with its delivery as it was before.
        begun: When it began, epoch milliseconds.
        lease: The lease that it belongs to.
    """

    loaded: Loaded
    begun: int
    lease: Lease | None

    @property
    def received(self) -> Received:
        """Its order."""
        return self.loaded.received

    @property
    def addressee(self) -> Addressee:
        """Its subscriber."""
        return self.received.order.addressee


@dataclass
class _Run:
    """One run of the function.

    Attributes:
        source: The queue that its batch, and everything it receives itself, came from.
        slow: The slow lane's queue; None when this run handles orders that have none.
        remaining_ms: Milliseconds it has left.
        ledger: What it has in hand.
        in_hand: The SQS messages that it works on.
        running: Attempts in progress.
        finished: Attempts and receives as they finish.
        ended: Orders that are done, and what comes next for each.
        refill: A receive in progress.
        refills: Whether it may receive further orders.
        looks_at: When it may look for orders for its idle threads again, epoch milliseconds.
    """

    source: WorkQueue
    slow: WorkQueue | None
    remaining_ms: Callable[[], int]
    ledger: Ledger
    in_hand: InHand
    running: dict[Future[Following], _Running] = field(default_factory=dict)
    finished: Finished = field(default_factory=Finished)
    ended: list[Ended] = field(default_factory=list)
    refill: Future[list[Received]] | None = None
    refills: bool = True
    looks_at: int = 0

    @property
    def in_a_hurry(self) -> bool:
        """Whether orders for slow subscribers belong elsewhere."""
        return self.slow is not None and self.slow is not self.source

    @property
    def is_slow_lane(self) -> bool:
        """Whether it works on the orders of the slow lane."""
        return self.slow is self.source

    @property
    def orders(self) -> list[Received]:
        """Orders that wait for a thread, have one, or are done and not arranged yet."""
        waiting = [each.received for each in self.ledger.waiting]
        attempted = [each.received for each in self.running.values()]
        return [*waiting, *(each.received for each in self.ended), *attempted]

    @property
    def projects(self) -> set[str]:
        """Projects with orders that wait for a thread or have one."""
        waiting = {each.received.order.key.project for each in self.ledger.waiting}
        return waiting | {each.addressee[0] for each in self.running.values()}

    @property
    def busy(self) -> bool:
        """Whether anything is left to do."""
        return bool(self.ledger.waiting or self.running or self.ended or self.refill)


class Push(Component):
    """Works on batches of orders."""

    messages: Deliveries
    deliver: Deliver
    queues: NextQueues  # Where orders go on to.
    leases: Leases  # At subscribers with limits, and slow ones.
    clock: Clock
    telemetry: Telemetry
    executor: Executor  # Runs the deliveries of a batch in parallel; has more than :data:`AT_ONCE` threads.
    # How long an attempt of its runs may take, including its follow-up. Runs are long if that is more than
    # :data:`~pushhub.engine.job.SHORT_ATTEMPT_MS`.
    longest_ms: int

    def __post_init__(self) -> None:
        self._slow_lane = self.queues.slow_lane
        self._no_limits = Terms(limits=Limits(), longest_ms=self.longest_ms)
        self._limits = ConcurrencyLimits()
        self._failed = FailedCalls(self.telemetry)
        self._forwarding = Forwarding(self.queues, self._limits, self.clock, self.telemetry, self.longest_ms)

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
            ledger=Ledger(batch),
            # The queue of a long run would hide what it had in hand for minutes if it died.
            in_hand=InHand(source, self.clock, first_ms=0 if self._is_long else PROMPT_MS),
        )
        run.in_hand.take(batch)
        self._keep_hidden(run)
        self._limits.start_over()
        self.leases.start_over()
        self._take(run, batch)
        while run.busy or self.leases.here:
            self._keep_hidden(run)
            self._tend_leases(run)
            self._begin(run)
            self._refill(run)
            self._finish(run)
        return run.ledger.kept_of_batch

    @property
    def _is_long(self) -> bool:
        """Whether its runs last for minutes."""
        return self.longest_ms > SHORT_ATTEMPT_MS

    # -- taking orders in hand

    def _take(self, run: _Run, batch: Sequence[Received]) -> None:
        """Add orders to a run."""
        if self._slow_lane is not None and run.in_a_hurry:
            self._slow_lane.refresh(len(batch))
            if not self._is_long:
                batch = self._without_slow(run, batch)
        self._answer(run, [each for each in batch if each.order.wakes])
        batch = self._without_backlogged(run, [each for each in batch if not each.order.wakes])
        batch = self._without_begun(batch)
        if not batch:
            return
        now = self.clock.now()
        unread = {each.order.key for each in batch if not each.is_fresh(now)}
        keys = [key for key in run.ledger.unknown(batch) if key in unread]
        try:
            stored, batch = self._states(run, batch, keys)
        except Unavailable as error:
            self._failed.tell("states_unreadable", error, orders=len(batch))
            self._keep_unsure(run, batch)
            return
        behind = run.ledger.admit(batch, stored, self._in_backlog(run))
        if behind:
            now = self.clock.now()
            waits = [Wait(each, now + (MANUAL_ASIDE_MS if each.order.manual else ASIDE_MS)) for each in behind]
            run.ledger.keep(self._forwarding.keep(waits, run.source))

    def _in_backlog(self, run: _Run) -> set[DeliveryKey]:
        """Deliveries whose orders the run only has from a backlog."""
        waiting = [*run.ledger.waiting, *(each for lease in self.leases.here for each in lease.waiting)]
        return {received.order.key for received, _ in waiting if received.place}

    def _without_slow(self, run: _Run, batch: Sequence[Received]) -> list[Received]:
        """Orders other than those that would hold up others, which move to the slow lane."""
        now = self.clock.now()
        slow = [self._holds_up(each.order, now) for each in batch]
        self._to_slow_lane(run, [each for each, moves in zip(batch, slow, strict=True) if moves])
        return [each for each, moves in zip(batch, slow, strict=True) if not moves]

    def _without_backlogged(self, run: _Run, batch: Sequence[Received]) -> list[Received]:
        """Orders other than those that have to wait in a backlog for certain; nothing is read for those."""
        left: list[Received] = []
        backlogged: defaultdict[Addressee, list[Received]] = defaultdict(list)
        for each in batch:
            addressee = each.order.addressee
            leases = self.leases.of(addressee)
            waits = all(lease.backlogged for lease in leases) if leases else self.leases.is_elsewhere(addressee)
            if waits and self._needed_terms(run, addressee, polled=False):
                backlogged[addressee].append(each)
            else:
                left.append(each)
        for addressee, orders in backlogged.items():
            self._to_backlog(run, addressee, orders)
        return left

    def _without_begun(self, batch: Sequence[Received]) -> Sequence[Received]:
        """Orders without the stream's for what ingest's order has begun, which are nearly all of those: seconds later,
        a read at half the price shows that. What it does not show is looked at as everything else is.
        """
        seconds = [each.order.key for each in batch if each.may_be_second]
        if not seconds:
            return batch
        try:
            seen = self.messages.deliveries([*dict.fromkeys(seconds)], consistent=False)
        except Unavailable:
            return batch
        begun = {key for key, stored in seen.items() if stored.begun}
        return [each for each in batch if not (each.may_be_second and each.order.key in begun)]

    # -- beginning attempts

    def _begin(self, run: _Run) -> None:
        """Begin every attempt for which there is a thread, and a lease if it needs one.

        No project has more than its share of the threads while others have orders in the run.
        """
        leased = {lease.key.project for lease in self.leases.here if lease.waiting}
        projects = len(run.projects | leased)
        several, alone = run.in_a_hurry and projects > 1, run.is_slow_lane and projects == 1
        if several:
            # Free threads go to the one with the fewest.
            run.ledger.waiting.sort(key=lambda each: self._limits.held(each.received.order.key.project))
        slow: list[Received] = []
        backlogged: defaultdict[Addressee, list[Received]] = defaultdict(list)
        waiting, run.ledger.waiting = run.ledger.waiting, []
        for loaded in waiting:
            match self._verdict(run, loaded, self.clock.now(), several=several):
                case Verdict.BEGIN:
                    self._submit(run, loaded)
                case Verdict.WAIT:
                    run.ledger.waiting.append(loaded)
                case Verdict.SLOW_LANE:
                    slow.append(loaded.received)
                case Verdict.PUT_ASIDE:
                    self._put_aside(run, loaded)
                case Verdict.TAKE_BACK:
                    self._take_back(run, loaded)
                case Verdict.LEASE:
                    if not self._waits_for_lease(run, loaded):
                        backlogged[loaded.received.order.addressee].append(loaded.received)
        for addressee, orders in backlogged.items():
            self._to_backlog(run, addressee, orders)
            self._leave(run, orders)
        if slow:
            self._to_slow_lane(run, slow)
            self._leave(run, slow)
        for lease in self.leases.here:
            self._begin_leased(run, lease, several=several, alone=alone)

    def _verdict(self, run: _Run, loaded: Loaded, now: int, *, several: bool) -> Verdict:
        """What becomes of an order that waits for a thread.

        Args:
            several: Whether several projects share the threads.
        """
        received, stored = loaded
        addressee = received.order.addressee
        polled = stored is not None and stored.update_url is not None
        if run.in_a_hurry and not polled and self._holds_up(received.order, now):
            return Verdict.SLOW_LANE
        if self._needed_terms(run, addressee, polled=polled):
            return Verdict.TAKE_BACK if self.leases.with_entry_of(received) else Verdict.LEASE
        if self._is_left_to_itself(run, addressee, now):
            return Verdict.PUT_ASIDE
        return Verdict.BEGIN if self._has_room(run, addressee, now, several=several) else Verdict.WAIT

    def _holds_up(self, order: WorkOrder, now: int) -> bool:
        """Whether an order would hold up others."""
        addressee = order.addressee
        listed = self._slow_lane is not None and self._slow_lane.lists(addressee)
        return listed or self._limits.holds_up(addressee, now, leased=bool(self.leases.of(addressee)))

    def _is_left_to_itself(self, run: _Run, addressee: Addressee, now: int) -> bool:
        """Whether a subscriber is slow and may not be asked now, where it has no slow lane."""
        if not self._limits.slow(addressee, now):
            return False
        attempts = 2 if self._is_long else 1
        return run.remaining_ms() < attempts * self.longest_ms or not self._limits.admits(addressee, now)

    def _has_room(
        self, run: _Run, addressee: Addressee, now: int, *, several: bool, leased: bool = False, alone: bool = False
    ) -> bool:
        """Whether there is a thread for another attempt at a subscriber."""
        if several and self._limits.held(addressee[0]) >= SHARE_OF_A_PROJECT:
            return False
        running = len(run.running)
        roomy = running < AT_ONCE // 2
        return running < AT_ONCE and self._limits.admits(addressee, now, leased=leased, alone=alone, roomy=roomy)

    def _submit(self, run: _Run, loaded: Loaded, lease: Lease | None = None) -> None:
        """Begin an attempt in a thread of its own."""
        now = self.clock.now()
        self._limits.begin(loaded.received.order.addressee, now)
        terms = lease.terms if lease else None
        may_ask = lease.pace.asks if lease else None
        may_take_ms = partial(self._may_take_ms, run)
        attempt = self.executor.submit(self._carry_on, loaded, may_take_ms, terms, may_ask)
        run.running[attempt] = _Running(loaded, now, lease)
        run.finished.expect(attempt)

    def _may_take_ms(self, run: _Run) -> int:
        """How long an attempt that begins now may take."""
        return min(run.remaining_ms(), self.longest_ms)

    def _carry_on(
        self, loaded: Loaded, remaining_ms: Callable[[], int], terms: Terms | None, may_ask: MayAsk | None
    ) -> Following:
        """Work on one delivery in its own thread; an internal error must not affect its neighbours."""
        received, stored = loaded
        try:
            return self.deliver.run(received, stored, remaining_ms, terms, may_ask)
        except Exception as error:  # noqa: BLE001 (the dead-letter queue keeps it in sight)
            if not isinstance(error, Unavailable) or isinstance(error, Unreadable):
                self._fault(received, error)
                # Until somebody mends us: it must not use up its receives in an hour.
                until = self._forwarding.unsure(received, MAX_DELAY_MS).until
                return Following(Follow.FAULT, until, answered=False, terms=terms)
            self._failed.tell("attempt_unrecorded", error, **received.order.identity)
        # A request may have been made.
        return Following(Follow.LATER, self._forwarding.unsure(received).until, answered=False, terms=terms)

    def _fault(self, received: Received, error: Exception) -> None:
        self.telemetry.count("PushFaults")
        self.telemetry.event("push_fault", **described(error), **received.order.identity)

    def _states(
        self, run: _Run, batch: Sequence[Received], keys: Sequence[DeliveryKey]
    ) -> tuple[dict[DeliveryKey, Delivery], Sequence[Received]]:
        """The states of deliveries, and the orders of the batch without those for states that cannot be read: such an
        order waits for somebody to mend it, and touches no other.

        Raises:
            Unavailable: They could not be fetched.
        """
        if not keys:
            return {}, batch
        try:
            return self.messages.deliveries(keys), batch
        except Unreadable:
            found: dict[DeliveryKey, Delivery] = {}
            damaged: dict[DeliveryKey, Unreadable] = {}
            for key in keys:
                try:
                    found |= self.messages.deliveries([key])
                except Unreadable as error:
                    damaged[key] = error
        aside = [each for each in batch if each.order.key in damaged]
        for each in aside:
            self._fault(each, damaged[each.order.key])
        waits = [self._forwarding.unsure(each, MAX_DELAY_MS) for each in aside]
        run.ledger.keep(self._forwarding.keep(waits, run.source))
        return found, [each for each in batch if each.order.key not in damaged]

    def _put_aside(self, run: _Run, loaded: Loaded) -> None:
        """An order waits like a retry, without an attempt."""
        received, stored = loaded
        doublings = min(received.receive_count - 1, 10)
        due_at = self.clock.now() + min(ASIDE_MS << doublings, MOST_ASIDE_MS)
        follow = Follow.LATER if stored is None or stored.update_url is None else Follow.POLL
        run.ended.append(Ended(received, Following(follow, due_at)))
        self.telemetry.count("DeliveriesPutAside")

    def _to_slow_lane(self, run: _Run, orders: Sequence[Received]) -> None:
        """Move orders to the slow lane.

        They are packed again, and never stay in the SQS message they came in: another order of that message may be in
        progress.
        """
        if run.slow is None or not orders:
            return
        # An order received again may be the one that changed its delivery, so from here on it is for the current state.
        bare = [each.order if each.receive_count == 1 else each.order.for_any_state for each in orders]
        if not self._forwarding.send_packed(run.slow, bare):
            self._keep_unsure(run, orders)
        self.telemetry.count("DeliveriesPutAside", len(bare))

    # -- leases

    def _needed_terms(self, run: _Run, addressee: Addressee, *, polled: bool) -> Terms | None:
        """The terms of a subscriber at which attempts need a lease; None if they need none."""
        return self.leases.terms(addressee) or (self._no_limits if run.is_slow_lane and not polled else None)

    def _take_back(self, run: _Run, loaded: Loaded) -> None:
        """An order goes back to the lease in whose backlog it is."""
        lease = self.leases.with_entry_of(loaded.received)
        if lease is not None and not lease.take_back(loaded):
            run.ledger.release(loaded.received.order.key)

    def _waits_for_lease(self, run: _Run, loaded: Loaded) -> bool:
        """Whether an order waits in this run, rather than in the backlog, because the run has the lease."""
        lease = self._lease_for(run, loaded.received)
        if lease is None or not lease.accepts:
            return False
        lease.add(loaded)
        return True

    def _lease_for(self, run: _Run, received: Received) -> Lease | None:
        """The lease at an order's subscriber, of the part of its rate for which the fewest wait; None if the run may
        have none.
        """
        addressee = received.order.addressee
        terms = self._needed_terms(run, addressee, polled=False) or self._no_limits
        leases = self.leases.of(addressee)
        lease = min(leases, key=lambda each: (not each.accepts, len(each.waiting)), default=None)
        if lease is not None and not lease.has_enough:
            return lease
        part = self.leases.free_part(addressee, terms)
        if part is None or self._is_over_for(run, terms):
            return lease
        return self._take_lease(received.order, terms, part) or lease

    def _is_over_for(self, run: _Run, terms: Terms) -> bool:
        """Whether a run begins no attempts under some terms: it may end before them, or is too short for any."""
        return run.remaining_ms() <= terms.longest_ms or terms.longest_ms > self.longest_ms

    def _take_lease(self, order: WorkOrder, terms: Terms, part: int) -> Lease | None:
        """Take the lease at an order's subscriber, unless somebody has it."""
        try:
            taken = self.leases.take(order.addressee, order.queue, terms, part)
        except Unavailable as error:
            self._failed.tell("turn_not_taken", error, **order.identity)
            return None
        return self._taken(taken)

    def _taken(self, taken: tuple[Lease, int] | None) -> Lease | None:
        """Remember how many concurrent attempts a subscriber has earned whose lease was taken."""
        if taken is None:
            return None
        lease, places = taken
        if places:
            self._limits.grant(lease.addressee, places, self.clock.now())
        elif not lease.part:
            self._limits.meet(lease.addressee, self.clock.now())
        return lease

    def _answer(self, run: _Run, wake_ups: Sequence[Received]) -> None:
        """Take the leases that the run is woken for; a wake-up for a lease that somebody has is void."""
        for each in wake_ups:
            if self.leases.is_left(each.order) and self._forwarding.send(self.queues.retry, [(each.order, 1)]):
                continue
            try:
                self._taken(self.leases.answer(each.order))
            except Unavailable as error:
                self._failed.tell("turn_not_taken", error, **each.order.identity)
                self._keep_unsure(run, [each])

    def _to_backlog(self, run: _Run, addressee: Addressee, orders: Sequence[Received]) -> None:
        """Put orders into their subscriber's backlog, or those of its rate's parts; take the leases that nobody has."""
        first = orders[0].order
        try:
            free = self.leases.add(addressee, orders, self.clock.now())
        except Unavailable as error:
            self._failed.tell("not_lined_up", error, orders=len(orders), **first.identity)
            self._keep_unsure(run, orders)
            return
        for part in free:
            terms = self._needed_terms(run, addressee, polled=False) or self._no_limits
            if lease := self._take_lease(first, terms, part):
                lease.expect_backlog()

    def _leave(self, run: _Run, orders: Sequence[Received]) -> None:
        """The run is done with orders that wait elsewhere now."""
        for each in orders:
            run.ledger.release(each.order.key)
        run.ledger.settle(orders)
        self.leases.settle_aside(orders)
        self._delete_finished(run)

    def _begin_leased(self, run: _Run, lease: Lease, *, several: bool, alone: bool) -> None:
        """Begin what may begin under a lease that the run has."""
        addressee = lease.addressee
        while lease.begins:
            now = self.clock.now()
            if self._is_over_for(run, lease.terms) or (run.in_a_hurry and self._is_slow(addressee, now)):
                lease.close()
            elif lease.unsure:
                self._submit(run, lease.ask())
            elif (
                lease.paced(now)
                or not self._has_room(run, addressee, now, several=several, leased=True, alone=alone)
                or not self.leases.hold(lease)
            ):
                return
            else:
                self._submit(run, lease.begin(now), lease)

    def _is_slow(self, addressee: Addressee, now: int) -> bool:
        """Whether a subscriber is slow, as far as anybody knows."""
        return self._limits.slow(addressee, now) or (self._slow_lane is not None and self._slow_lane.lists(addressee))

    def _tend_leases(self, run: _Run) -> None:
        """Fetch orders from the backlogs of the run's leases, and give back those that it does not need any more."""
        for lease in self.leases.here:
            now = self.clock.now()
            if self._is_over_for(run, lease.terms):
                lease.close()
            if not lease.closing:
                self._fetch(run, lease)
            release = lease.release(
                now,
                # How many a slow one may have at a time counts like a limit.
                counts=run.is_slow_lane or lease.terms.limits.concurrency is not None,
                has_others=len(self.leases.of(lease.addressee)) > 1,
                crowded=partial(self._limits.crowded, lease.addressee, now),
            )
            if release is not None:
                self._give_back(run, lease, release)
            elif lease.closing:
                self.leases.hold(lease)

    def _fetch(self, run: _Run, lease: Lease) -> None:
        """Have as many orders from the backlog ready as may soon begin."""
        self.leases.hold(lease)
        if lease.superfluous:
            self._clear_out(run, lease)
        self.leases.look(lease)
        self.leases.settle_duplicates(lease, run.ledger.in_hand)
        chosen = lease.choose(run.ledger.in_hand, {each.place for each in run.orders})
        if not chosen:
            return
        try:
            stored = self.messages.deliveries([each.order.key for each in chosen])
        except Unavailable as error:
            self._failed.tell("states_unreadable", error, orders=len(chosen))
            for each in chosen:
                self.leases.settle(lease, each, keep=True)
            return
        run.ledger.hold(chosen)
        for each in chosen:
            lease.add(Loaded(each, stored.get(each.order.key)))

    def _give_back(self, run: _Run, lease: Lease, release: Release) -> None:
        """Give a lease back; what waits for it goes to the backlog."""
        if release.to_others:
            self.leases.leave_to_others(lease)
        self._withdraw(run, lease)
        to = self.queues.poll if lease.terms.longest_ms > SHORT_ATTEMPT_MS else self.queues.retry
        if run.slow and (run.is_slow_lane or self._is_slow(lease.addressee, self.clock.now())):
            to = run.slow
        places = self._limits.places(lease.addressee, self.clock.now())
        self._limits.met(lease.addressee)
        again = self.leases.give_back(
            lease,
            places=places,
            wake_up_ms=release.wake_up_ms if lease.has_backlog else None,
            to=to,
            attempted=[each.received for each in run.running.values() if each.lease is lease],
        )
        if again:
            self._take_again(lease)
        if lease.terms.longest_ms > self.longest_ms:
            # Whoever sees its subscriber here may find other terms, and nobody here would learn of them.
            self.leases.forget(lease.addressee)

    def _withdraw(self, run: _Run, lease: Lease) -> None:
        """Orders that wait for a lease go to the backlog, again or for the first time."""
        waiting = lease.withdraw()
        for each in waiting:
            run.ledger.release(each.order.key)
        if own := [each for each in waiting if not each.place]:
            self._to_backlog(run, lease.addressee, own)
            self._leave(run, own)

    def _clear_out(self, run: _Run, lease: Lease) -> None:
        """The rate has no such part any more: what waits for its lease waits for another part's."""
        self._withdraw(run, lease)
        self.leases.settle_duplicates(lease, run.ledger.in_hand)
        others = (each for each in self.leases.of(lease.addressee) if each is not lease)
        waiting = [loaded.received for other in others for loaded in other.waiting]
        self.leases.clear_out(lease, [*run.orders, *waiting, *lease.duplicates])

    def _take_again(self, before: Lease) -> None:
        """Something was put into the backlog while the lease was given back."""
        try:
            lease = self._taken(self.leases.take(before.addressee, before.queue, before.terms, before.part))
        except Unavailable as error:
            self._failed.tell("turn_not_taken", error, project=before.key.project)
            return
        if lease is not None:
            lease.go_on_from(before)

    # -- receiving, and the end of attempts

    def _refill(self, run: _Run) -> None:
        """Receive further orders while waiting for an answer, or while threads are idle, as long as they could still be
        attempted in this run.
        """
        if run.refill is not None or not run.refills or len(run.running) >= AT_ONCE:
            return
        now = self.clock.now()
        waits = len(run.ledger.waiting) < AT_ONCE and (
            (now >= run.looks_at and any(lease.waiting for lease in self.leases.here))
            or any(now - each.begun >= REFILL_AFTER_MS and not attempt.done() for attempt, each in run.running.items())
        )
        idle = run.in_a_hurry and now >= run.looks_at and self._is_idle(run)
        attempts = 2 if run.is_slow_lane else 1
        if (waits or idle) and run.remaining_ms() > attempts * self.longest_ms:
            run.refill = self.executor.submit(run.source.receive, REFILL_WAIT_S if waits else 0)
            run.finished.expect(run.refill)

    def _is_idle(self, run: _Run) -> bool:
        """Whether threads are idle although orders wait: for subscribers that have not earned more attempts yet."""
        return 0 < len(run.ledger.waiting) < WAITING and len(run.running) < AT_ONCE // 2

    def _finish(self, run: _Run) -> None:
        """Wait briefly for attempts to finish, and arrange the next step for those that have."""
        done = self._await(run)
        now = self.clock.now()
        if self._slow_lane is not None:
            self._slow_lane.tell(self._limits.newly_slow(now))
        for attempt in [each for each in run.running if each in done]:
            self._end(run, run.running.pop(attempt), attempt.result(), now)
        if run.refill is not None and run.refill in done:
            self._refilled(run, run.refill)
            run.refill = None
        if run.ended and (not done or not run.running or len(run.ended) >= FLUSH_COUNT):
            self._flush(run)

    def _end(self, run: _Run, attempt: _Running, following: Following, now: int) -> None:
        """An attempt is over."""
        addressee = attempt.addressee
        # What was begun under a lease here, under terms that are too long now, goes on where the lease goes.
        outlasts = self._forwarding.outlasts(following) and bool(self.leases.of(addressee))
        ends = following.follow is not Follow.LEASE and not outlasts
        self._limits.end(addressee, attempt.begun, now, answered=following.answered is not False if ends else None)
        if attempt.lease is not None:
            attempt.lease.end(attempted=following.answered is not None)
        if not ends or following.answered is not None:
            self.leases.learn(addressee, None if following.terms == self._no_limits else following.terms)
        for lease in self.leases.of(addressee) if attempt.lease is None else ():
            lease.asked()
        if ends:
            run.ended.append(Ended(attempt.received, following))
        else:
            run.ledger.waiting.append(attempt.loaded)

    def _flush(self, run: _Run) -> None:
        """Arrange the next step of what the run is done with, and let go of it."""
        ended, run.ended = run.ended, []
        duplicates = [(run.ledger.release(each.order.key), following.follow) for each, following in ended]
        kept = self._forwarding.arrange(ended, run.source)
        run.ledger.keep(kept)
        run.ledger.settle(each.received for each in ended)
        for each, following in ended:
            for lease in self.leases.of(each.order.addressee):
                if following.follow is Follow.ANOTHER:
                    lease.look_at_duplicates(each.order.key)
                self.leases.arranged(lease, each, keep=each.sqs_id in kept)
        self.leases.settle_aside(each.received for each in ended if each.received.sqs_id not in kept)
        if others := [each for each, follow in duplicates if each is not None and follow is Follow.ANOTHER]:
            self._take(run, others)
        self._delete_finished(run)

    def _await(self, run: _Run) -> set[Future[Any]]:
        """The attempts and receives that have finished; waits briefly if there are none, but not beyond the time of the
        next attempt under a lease.
        """
        now, at_most_ms = self.clock.now(), max(1, round(FLUSH_SECONDS * 1000))
        leases = [lease.wake_in_ms(now, at_most_ms) for lease in self.leases.here]
        waits_ms = [each for each in leases if each is not None]
        wait_s = min([at_most_ms, *waits_ms]) / 1000
        if run.running or run.refill is not None:
            return run.finished.take(min(FLUSH_SECONDS, wait_s))
        if waits_ms and min(waits_ms) <= HORIZON_MS and not run.ledger.waiting and not run.ended:
            self.clock.sleep(wait_s)
        return set()

    def _refilled(self, run: _Run, refill: Future[list[Received]]) -> None:
        """Further orders were received."""
        try:
            batch = refill.result()
        except Unavailable as error:
            self._failed.tell("orders_not_received", error)
            run.refills = False
            return
        if not batch:
            run.looks_at = self.clock.now() + REFILL_AFTER_MS
        run.in_hand.take(batch)
        run.ledger.receive(batch)
        self._take(run, batch)
        self._delete_finished(run)

    # -- SQS messages

    def _keep_unsure(self, run: _Run, orders: Sequence[Received]) -> None:
        """Orders stay in their queue for a while, as a call of our own has failed."""
        run.ledger.keep(self._forwarding.keep_unsure(orders, run.source))

    def _delete_finished(self, run: _Run) -> None:
        """Delete the messages that the run received itself and has finished.

        A message that cannot be deleted comes back, which is harmless.
        """
        finished = run.ledger.pop_finished()
        run.in_hand.let_go(finished)
        done = [handle for sqs_id, handle in finished.items() if sqs_id not in run.ledger.kept]
        if not done:
            return
        try:
            run.source.delete(done)
        except Unavailable as error:
            self._failed.tell("orders_not_deleted", error, orders=len(done))

    def _keep_hidden(self, run: _Run) -> None:
        """A message that cannot be hidden any longer comes back, and its orders may be carried out twice."""
        try:
            failed = run.in_hand.keep_hidden(run.ledger.kept)
        except Unavailable as error:
            self._failed.tell("visibility_unchanged", error)
        else:
            if failed:
                self.telemetry.event("visibility_unchanged", error="refused", orders=len(failed))
