"""The push use case: works on a batch of SQS orders in parallel, and arranges what comes next for each.

That happens soon after each delivery is done rather than at the end of the batch: one slow endpoint must not hold up
its neighbours' retries.

Waiting for an answer costs a thread, not a run of the function. While a run waits for a slow endpoint, it receives and
processes further orders itself, as long as they cannot outlast it. And no subscriber gets more threads than its answers
have earned (:mod:`pushhub.engine.windows`). Slow first attempts and retries move to the slow lane, a separate queue
with its own runs (:mod:`pushhub.engine.slow_lane`), before anything is read for them.

Runs are short or long. A short one is over soon, so that its queue can show what it had in hand soon if it dies. What
may take longer than :data:`~pushhub.engine.job.SHORT_ATTEMPT_MS` is never begun there: its order moves to the poll
queue, whose runs are long, as are those of the slow lane (decision 0156).

Orders for subscribers with limits, and all in the slow lane, wait for their turn (:mod:`pushhub.engine.turns`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Unavailable
from pushhub.engine.component import Component
from pushhub.engine.faults import described
from pushhub.engine.finished import Finished
from pushhub.engine.in_hand import PROMPT_MS, InHand
from pushhub.engine.job import SHORT_ATTEMPT_MS, Follow, Following, MayAsk
from pushhub.engine.model.backoff import MAX_DELAY_MS, visibility_seconds
from pushhub.engine.model.eager import FRESH_MS, GOOD_FOR_MS
from pushhub.engine.model.flow import Limits, Terms
from pushhub.engine.turns import AGAIN_MS, HORIZON_MS, Turn, Turns
from pushhub.engine.windows import ASIDE_S, SHARE_OF_A_PROJECT, Key, Windows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.deliver import Deliver
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.keys import DeliveryKey
    from pushhub.engine.model.work import WorkOrder
    from pushhub.engine.ports import Deliveries, Received, WorkQueue
    from pushhub.engine.slow_lane import SlowLane

UNSURE_WAIT_MS, MOST_UNSURE_MS = 10_000, 120_000
"""How soon an order is retried when one of our own calls failed with unknown effect.

Doubled with each receive up to two minutes only, as an order is received again for each of its retries, too.
"""

FRESH_AFTER_RECEIVES = 10
"""Number of receives after which a waiting order is moved to a new SQS message.

A queue gives up a message after 100 receives or more (as a guard against poison), and some waits are short and
frequent: a poll each second, retries without end.
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

ASIDE_MS, MOST_ASIDE_MS = 15_000, 60_000
"""How soon an order for a slow subscriber is retried where there is no slow lane; doubled with each receive up to a
minute only, as an order is received again for each of its retries, too.
"""

MANUAL_ASIDE_MS = 5_000
"""How soon the order for a manual try is looked at again that comes while its delivery is attempted."""


@dataclass(frozen=True)
class _Running:
    """An attempt in progress.

    Attributes:
        stored: Its delivery, as it was before.
        key: The subscriber's window.
        begun: When it began, epoch milliseconds.
        turn: The turn that it belongs to.
    """

    received: Received
    stored: Delivery | None
    key: Key
    begun: int
    turn: Turn | None


@dataclass
class _Run:
    """One run of the function.

    Attributes:
        source: The queue that its batch, and everything it receives itself, came from.
        slow: The slow lane's queue; None when this run handles orders that have none.
        remaining_ms: Milliseconds it has left.
        given: SQS ids of its batch; those to keep are what the run returns.
        in_hand: All messages that it works on.
        waiting: Orders waiting for a thread, with their stored deliveries.
        finished: Attempts and receives as they finish.
        through: Orders that are done, and what comes next for each.
        keys: Deliveries waiting or running, each with a flag for a manual try only.
        spares: Further orders for those. They are all there is if the one in hand turns out to wait elsewhere: then
            they may be what was sent from there.
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
    in_hand: InHand
    waiting: list[tuple[Received, Delivery | None]] = field(default_factory=list)
    running: dict[Future[Following], _Running] = field(default_factory=dict)
    finished: Finished = field(default_factory=Finished)
    through: list[tuple[Received, Following]] = field(default_factory=list)
    keys: dict[DeliveryKey, bool] = field(default_factory=dict)
    spares: dict[DeliveryKey, Received] = field(default_factory=dict)
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
    def is_slow_lane(self) -> bool:
        """Whether it works on the orders of the slow lane."""
        return self.slow is self.source

    @property
    def projects(self) -> set[str]:
        """Projects with orders that wait for a thread or have one."""
        waiting = {received.order.key.project for received, _ in self.waiting}
        return waiting | {each.key[0] for each in self.running.values()}

    @property
    def busy(self) -> bool:
        """Whether anything is left to do."""
        return bool(self.waiting or self.running or self.through or self.refill)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextQueues:
    """Where the orders of a function go on to.

    Attributes:
        retry: Where deliveries wait for their next try.
        poll: Where deliveries wait for their next poll (hub protocol), or for an attempt that may take long.
        errors: Where exhausted deliveries go.
        slow_lane: Where orders for slow subscribers go; None leaves them in the queue they came from.
    """

    retry: WorkQueue
    poll: WorkQueue
    errors: WorkQueue
    slow_lane: SlowLane | None = None


class Push(Component):
    """Works on batches of orders."""

    messages: Deliveries
    deliver: Deliver
    queues: NextQueues  # Where orders go on to.
    turns: Turns  # The turns at subscribers with limits, and slow ones.
    clock: Clock
    telemetry: Telemetry
    executor: Executor  # Runs the deliveries of a batch in parallel; has more than :data:`AT_ONCE` threads.
    # How long an attempt of its runs may take, including its follow-up. Runs are long if that is more than
    # :data:`~pushhub.engine.job.SHORT_ATTEMPT_MS`.
    longest_ms: int

    def __post_init__(self) -> None:
        self._slow_lane = self.queues.slow_lane
        self._free = Terms(limits=Limits(), longest_ms=self.longest_ms)
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
            # The queue of a long run would hide what it had in hand for minutes if it died.
            in_hand=InHand(source, self.clock, first_ms=0 if self._is_long else PROMPT_MS),
        )
        run.in_hand.take(batch)
        self._keep_hidden(run)
        self._windows.start_over()
        self.turns.start_over()
        self._take(run, batch)
        while run.busy or self.turns.here:
            self._keep_hidden(run)
            self._tend(run)
            self._begin(run)
            self._refill(run)
            self._finish(run)
        return run.keep & run.given

    @property
    def _is_long(self) -> bool:
        """Whether its runs last for minutes."""
        return self.longest_ms > SHORT_ATTEMPT_MS

    def _take(self, run: _Run, batch: Sequence[Received]) -> None:
        """Add orders to a run. A delivery that the run is already handling is not attempted a second time; one further
        order for it is kept until the run is done with the first.

        The order for a manual try is for that try only, so it must not replace the automatic one, nor be replaced: the
        person may have asked for it after the attempt in hand began, and then it is one more.
        """
        if self._slow_lane is not None and run.hurried:
            self._slow_lane.refresh(len(batch))
        if self._slow_lane is not None and run.hurried and not self._is_long:
            now = self.clock.now()
            hold_up = [self._holds_up(each.order, now) for each in batch]
            self._to_slow_lane(run, [each for each, slow in zip(batch, hold_up, strict=True) if slow])
            batch = [each for each, slow in zip(batch, hold_up, strict=True) if not slow]
        self._answer(run, [each for each in batch if each.order.call])
        batch = self._without_lined(run, [each for each in batch if not each.order.call])
        batch = self._without_done(batch)
        if not batch:
            return
        new = dict.fromkeys(each.order.key for each in batch if each.order.key not in run.keys)
        now = self.clock.now()
        unread = {each.order.key for each in batch if not _is_fresh(each, now)}
        try:
            stored = self.messages.deliveries([key for key in new if key in unread]) if unread else {}
        except Unavailable as error:
            self._call_failed("states_unreadable", error, orders=len(batch))
            run.keep |= self._wait([(each, self._unsure(each)) for each in batch], run.source)
            return
        firsts: dict[DeliveryKey, Received] = {}
        behind: list[Received] = []
        for received in sorted(batch, key=lambda each: each.order.manual):
            order = received.order
            if order.key in new:
                if _is_void(received, stored.get(order.key)):
                    continue
                first = firsts.setdefault(order.key, received)
                if order.manual and not first.order.manual:
                    behind.append(received)
                elif first is not received and not order.manual:
                    self._spare(run, received)
            elif run.keys[order.key] or order.manual or order.key in self._in_line(run):
                behind.append(received)
            else:
                self._spare(run, received)
        if behind:
            now = self.clock.now()
            waits = [(each, now + (MANUAL_ASIDE_MS if each.order.manual else ASIDE_MS)) for each in behind]
            run.keep |= self._wait(waits, run.source)
        run.left.update(each.sqs_id for each in firsts.values())
        run.keys |= {key: received.order.manual for key, received in firsts.items()}
        run.waiting += [(received, stored.get(key)) for key, received in firsts.items()]

    def _spare(self, run: _Run, received: Received) -> None:
        """Keep an order beside that in hand; one for any state of its delivery rather than one for a single one."""
        key = received.order.key
        known = run.spares.get(key)
        if known is not None and known.order.version is None:
            return
        self._drop_spare(run, key)
        run.spares[key] = received
        run.left[received.sqs_id] += 1

    def _drop_spare(self, run: _Run, key: DeliveryKey) -> Received | None:
        """Be done with the order beside that in hand, if there is one; returns it."""
        spare = run.spares.pop(key, None)
        if spare is not None:
            run.left[spare.sqs_id] -= 1
        return spare

    def _done_with(self, run: _Run, key: DeliveryKey) -> Received | None:
        """The run has a delivery in hand no longer; returns the order beside that it had, which is dropped."""
        run.keys.pop(key, None)
        return self._drop_spare(run, key)

    def _in_line(self, run: _Run) -> set[DeliveryKey]:
        """Deliveries whose orders the run only has from a line. Whoever had the turn before and does not know yet that
        it has lost it may take them away there, so another order of theirs may be all that there is.
        """
        waiting = [*run.waiting, *(each for turn in self.turns.here for each in turn.waiting)]
        return {received.order.key for received, _ in waiting if received.place}

    def _without_done(self, batch: Sequence[Received]) -> Sequence[Received]:
        """Orders without the stream's for what ingest's order has begun, which are nearly all of those: seconds later,
        a read at half the price shows that. What it does not show is looked at as everything else is.
        """
        seconds = [each.order.key for each in batch if _may_be_second(each)]
        if not seconds:
            return batch
        try:
            seen = self.messages.deliveries([*dict.fromkeys(seconds)], consistent=False)
        except Unavailable:
            return batch
        begun = {key for key, stored in seen.items() if stored.begun}
        return [each for each in batch if not (_may_be_second(each) and each.order.key in begun)]

    def _begin(self, run: _Run) -> None:
        """Begin every attempt for which there is a thread, and whose turn it is if it needs one.

        No project has more than its share of the threads while others have orders in the run.
        """
        still: list[tuple[Received, Delivery | None]] = []
        aside: list[Received] = []
        lined: defaultdict[Key, list[Received]] = defaultdict(list)
        in_turn = {turn.key.project for turn in self.turns.here if turn.waiting}
        projects = len(run.projects | in_turn)
        several, alone = run.hurried and projects > 1, run.is_slow_lane and projects == 1
        if several:
            # Free threads go to the one with the fewest.
            run.waiting.sort(key=lambda each: self._windows.held(each[0].order.key.project))
        for received, stored in run.waiting:
            now, key = self.clock.now(), _window_key(received.order)
            polled = stored is not None and stored.update_url is not None
            if run.hurried and not polled and self._holds_up(received.order, now):
                aside.append(received)
            elif terms := self._needed(run, key, polled=polled):
                if standing := self.turns.standing(received):
                    self._goes_back(run, received, stored, standing)
                elif not self._waits_in_turn(run, received, stored, terms):
                    lined[key].append(received)
            elif self._is_left_to_itself(run, key, now):
                self._put_aside(run, received, stored)
            elif self._has_room(run, key, now, several=several):
                self._submit(run, received, stored, key)
            else:
                still.append((received, stored))
        run.waiting = still
        for key, orders in lined.items():
            self._line_up(run, key, orders)
            self._leave(run, orders)
        if aside:
            self._to_slow_lane(run, aside)
            self._leave(run, aside)
        for turn in self.turns.here:
            self._begin_in_turn(run, turn, several=several, alone=alone)

    def _is_left_to_itself(self, run: _Run, key: Key, now: int) -> bool:
        """Whether a subscriber is slow and may not be asked now, where it has no slow lane."""
        if not self._windows.slow(key, now):
            return False
        attempts = 2 if self._is_long else 1
        return run.remaining_ms() < attempts * self.longest_ms or not self._windows.admits(key, now)

    def _has_room(
        self, run: _Run, key: Key, now: int, *, several: bool, in_turn: bool = False, alone: bool = False
    ) -> bool:
        """Whether there is a thread for another attempt at a subscriber."""
        if several and self._windows.held(key[0]) >= SHARE_OF_A_PROJECT:
            return False
        running = len(run.running)
        roomy = running < AT_ONCE // 2
        return running < AT_ONCE and self._windows.admits(key, now, in_turn=in_turn, alone=alone, roomy=roomy)

    def _submit(
        self, run: _Run, received: Received, stored: Delivery | None, key: Key, turn: Turn | None = None
    ) -> None:
        now = self.clock.now()
        self._windows.begin(key, now)
        terms = turn.terms if turn else None
        may_ask = turn.pace.asks if turn else None
        may_take_ms = partial(self._may_take_ms, run)
        attempt = self.executor.submit(self._carry_on, received, stored, may_take_ms, terms, may_ask)
        run.running[attempt] = _Running(received, stored, key, now, turn)
        run.finished.expect(attempt)

    def _may_take_ms(self, run: _Run) -> int:
        """How long an attempt that begins now may take."""
        return min(run.remaining_ms(), self.longest_ms)

    def _is_over_for(self, run: _Run, terms: Terms) -> bool:
        """Whether a run begins no attempts under some terms: it may end before them, or is too short for any."""
        return run.remaining_ms() <= terms.longest_ms or terms.longest_ms > self.longest_ms

    def _holds_up(self, order: WorkOrder, now: int) -> bool:
        key = _window_key(order)
        listed = self._slow_lane is not None and self._slow_lane.lists(key)
        return listed or self._windows.holds_up(key, now, in_turn=bool(self.turns.of(key)))

    # -- turns

    def _needed(self, run: _Run, key: Key, *, polled: bool) -> Terms | None:
        """The terms of a subscriber whose orders wait for their turn."""
        return self.turns.terms(key) or (self._free if run.is_slow_lane and not polled else None)

    def _waits_in_turn(self, run: _Run, received: Received, stored: Delivery | None, terms: Terms) -> bool:
        """Whether an order waits in this run, rather than in line, because the run has the turn."""
        turn = self._turn(run, received, _window_key(received.order), terms)
        if turn is None or not _has_place(turn):
            return False
        turn.waiting.append((received, stored))
        return True

    def _goes_back(self, run: _Run, received: Received, stored: Delivery | None, turn: Turn) -> None:
        """An order that stands in the line of one of the run's turns waits there, and nowhere else: in another part's
        line somebody else might attempt it meanwhile.
        """
        if _has_place(turn):
            turn.waiting.append((received, stored))
            return
        self._done_with(run, received.order.key)
        if not turn.astray:
            turn.fetched.appendleft(received)

    def _turn(self, run: _Run, received: Received, key: Key, terms: Terms) -> Turn | None:
        """The turn at a subscriber, of the part of its rate for which the fewest wait; None if it may have none."""
        turns = self.turns.of(key)
        turn = min(turns, key=lambda each: (not _has_place(each), len(each.waiting)), default=None)
        if turn is not None and not turn.has_enough:
            return turn
        part = self.turns.free_part(key, terms)
        if part is None or self._is_over_for(run, terms):
            return turn
        return self._take_turn(received.order, key, terms, part) or turn

    def _take_turn(self, order: WorkOrder, key: Key, terms: Terms, part: int) -> Turn | None:
        try:
            taken = self.turns.take(key, order.queue, terms, part)
        except Unavailable as error:
            self._call_failed("turn_not_taken", error, **order.identity)
            return None
        return self._taken(taken)

    def _taken(self, taken: tuple[Turn, int] | None) -> Turn | None:
        if taken is None:
            return None
        turn, places = taken
        if places:
            self._windows.grant(turn.window, places, self.clock.now())
        elif not turn.part:
            self._windows.meet(turn.window, self.clock.now())
        return turn

    def _answer(self, run: _Run, calls: Sequence[Received]) -> None:
        """Take the turns that the run is called for; a call for a turn that somebody has is void."""
        for each in calls:
            if self.turns.is_left(each.order) and self._sent(self.queues.retry, [(each.order, 1)]):
                continue
            try:
                self._taken(self.turns.answer(each.order))
            except Unavailable as error:
                self._call_failed("turn_not_taken", error, **each.order.identity)
                run.keep |= self._wait([(each, self._unsure(each))], run.source)

    def _without_lined(self, run: _Run, batch: Sequence[Received]) -> list[Received]:
        """Orders other than those that have to stand in line for certain; nothing is read for those."""
        left: list[Received] = []
        lined: defaultdict[Key, list[Received]] = defaultdict(list)
        for each in batch:
            key = _window_key(each.order)
            turns = self.turns.of(key)
            behind = all(turn.lined for turn in turns) if turns else self.turns.is_elsewhere(key)
            if behind and self._needed(run, key, polled=False):
                lined[key].append(each)
            else:
                left.append(each)
        for key, orders in lined.items():
            self._line_up(run, key, orders)
        return left

    def _line_up(self, run: _Run, key: Key, orders: Sequence[Received]) -> None:
        """Put orders into their subscriber's line, or those of its rate's parts; take the turns that nobody has."""
        first = orders[0].order
        try:
            free = self.turns.line_up(key, orders, self.clock.now())
        except Unavailable as error:
            self._call_failed("not_lined_up", error, orders=len(orders), **first.identity)
            run.keep |= self._wait([(each, self._unsure(each)) for each in orders], run.source)
            return
        for part in free:
            if turn := self._take_turn(first, key, self._needed(run, key, polled=False) or self._free, part):
                turn.lined, turn.looks_at = True, 0

    def _leave(self, run: _Run, orders: Sequence[Received]) -> None:
        """The run is done with orders that wait elsewhere now."""
        for each in orders:
            self._done_with(run, each.order.key)
        run.left.subtract(each.sqs_id for each in orders)
        self.turns.leave_aside(orders)
        self._give_up_own(run)

    def _begin_in_turn(self, run: _Run, turn: Turn, *, several: bool, alone: bool) -> None:
        """Begin what may begin at a subscriber whose turn the run has."""
        key = turn.window
        while turn.waiting and not turn.closing and not turn.astray:
            now = self.clock.now()
            if self._is_over_for(run, turn.terms) or (run.hurried and self._is_slow(key, now)):
                turn.closing = True
            elif turn.unsure:
                # Without terms it is not attempted, but comes back with those of now.
                turn.unsure, turn.asking = False, True
                self._submit(run, *turn.waiting.popleft(), key)
            elif (
                turn.pace.full
                or turn.pace.wait_ms(now)
                or not self._has_room(run, key, now, several=several, in_turn=True, alone=alone)
                or not self.turns.hold(turn)
            ):
                return
            else:
                received, stored = turn.waiting.popleft()
                turn.pace.begin(now)
                self._submit(run, received, stored, key, turn)

    def _is_slow(self, key: Key, now: int) -> bool:
        return self._windows.slow(key, now) or (self._slow_lane is not None and self._slow_lane.lists(key))

    def _tend(self, run: _Run) -> None:
        """Fetch orders from the lines of the run's turns, and give back those that it does not need any more."""
        for turn in self.turns.here:
            now = self.clock.now()
            if self._is_over_for(run, turn.terms):
                turn.closing = True
            if not turn.closing:
                self.turns.hold(turn)
                if turn.astray:
                    self._clear_out(run, turn)
                self.turns.look(turn)
                self._strike_seconds(run, turn)
                self._read_fetched(run, turn)
            # How many a slow one may have at a time counts like a limit.
            counted = (run.is_slow_lane or turn.terms.limits.concurrency is not None) and turn.pace.under_way
            if turn.closing and counted and not turn.lost:
                self.turns.hold(turn)
            elif turn.closing:
                self._give_back(run, turn, 0)
            elif turn.is_behind(now) and len(self.turns.of(turn.window)) > 1:
                self.turns.leave_to_others(turn)
                self._give_back(run, turn, 0)
            elif turn.pace.under_way:
                continue
            elif turn.idle and now < turn.looks_at:
                self._give_back(run, turn, AGAIN_MS if turn.kept else None)
            elif turn.waiting and turn.waits_long(now):
                self._give_back(run, turn, turn.pace.wait_ms(now))
            elif turn.waiting and self._windows.crowded(turn.window, now):
                self._give_back(run, turn, ASIDE_S * 1000)

    def _leave_line(self, turn: Turn, received: Received, *, keep: bool) -> None:
        """An order is done. If it could not be arranged, it and those behind it stay where they stand."""
        if received.place:
            self.turns.done(turn, received, keep=keep)
        for each in [each for each in turn.seconds if keep and each.order.key == received.order.key]:
            turn.seconds.remove(each)
            self.turns.done(turn, each, keep=True)

    def _strike_seconds(self, run: _Run, turn: Turn) -> None:
        """Second orders for a delivery leave the line once the run is done with the first, which is then settled or
        stands elsewhere. Not before: whoever had the turn earlier may have taken the first one's place away. Those that
        are for something else are looked at then.
        """
        seconds, turn.seconds = turn.seconds, []
        for each in seconds:
            if each.order.key in run.keys:
                turn.seconds.append(each)
            else:
                self.turns.done(turn, each, keep=False)
        behind, turn.behind = turn.behind, []
        for each in behind:
            if each.order.key in run.keys:
                turn.behind.append(each)
            elif turn.times_standing(each) and not turn.astray:
                turn.fetched.append(each)

    def _read_fetched(self, run: _Run, turn: Turn) -> None:
        """Have as many orders from the line ready as may soon begin."""
        some: list[Received] = []
        # An order that the run has from a turn that it gave back stands where it stood, until it is done: if the run
        # cannot put it in line again, that place is all there is of it.
        held = {each.place for each, _ in [*run.waiting, *run.through]}
        held |= {each.received.place for each in run.running.values()}
        while turn.fetched and len(turn.waiting) + len(some) < turn.wants:
            each = turn.fetched.popleft()
            same = [other.order.manual for other in some if other.order.key == each.order.key]
            if each.order.key in run.keys:
                same.append(run.keys[each.order.key])
            if not same:
                some.append(each)
            elif each.order.manual or all(same) or (each.place in held and turn.times_standing(each) == 1):
                # A manual try does not make the automatic ones, and may be asked for after the one in hand began.
                turn.behind.append(each)
            else:
                turn.seconds.append(each)
        if not some:
            return
        try:
            stored = self.messages.deliveries([each.order.key for each in some])
        except Unavailable as error:
            self._call_failed("states_unreadable", error, orders=len(some))
            for each in some:
                self.turns.done(turn, each, keep=True)
            return
        run.keys |= {each.order.key: each.order.manual for each in some}
        turn.waiting += [(each, stored.get(each.order.key)) for each in some]

    def _give_back(self, run: _Run, turn: Turn, call_ms: int | None) -> None:
        """Give a turn back; what waits for it stands in line.

        Args:
            call_ms: In how many milliseconds another run is called; None if nobody waits.
        """
        self._put_back(run, turn)
        waits = call_ms is not None and bool(turn.lined or turn.in_hand or turn.kept)
        to = self.queues.poll if turn.terms.longest_ms > SHORT_ATTEMPT_MS else self.queues.retry
        if run.slow and (run.is_slow_lane or self._is_slow(turn.window, self.clock.now())):
            to = run.slow
        places = self._windows.places(turn.window, self.clock.now())
        self._windows.met(turn.window)
        again = self.turns.give_back(
            turn,
            places=places,
            call_ms=call_ms if waits else None,
            to=to,
            under_way=[each.received for each in run.running.values() if each.turn is turn],
        )
        if again:
            self._step_in_again(turn)
        if turn.terms.longest_ms > self.longest_ms:
            # Whoever sees its subscriber here may find other terms, and nobody here would learn of them.
            self.turns.forget(turn.window)

    def _put_back(self, run: _Run, turn: Turn) -> None:
        """Orders that wait for a turn stand in line again, or for the first time."""
        own = [received for received, _ in turn.waiting if not received.place]
        for received, _ in turn.waiting:
            self._done_with(run, received.order.key)
        turn.waiting.clear()
        turn.fetched.clear()
        if own:
            self._line_up(run, turn.window, own)
            self._leave(run, own)

    def _clear_out(self, run: _Run, turn: Turn) -> None:
        """The rate has no such part any more: what waits for its turn waits for another part's."""
        self._put_back(run, turn)
        self._strike_seconds(run, turn)
        others = (each for each in self.turns.of(turn.window) if each is not turn)
        waiting = [*run.waiting, *run.through, *(each for other in others for each in other.waiting)]
        busy = [*(received for received, _ in waiting), *(each.received for each in run.running.values())]
        self.turns.clear_out(turn, [*busy, *turn.seconds])

    def _step_in_again(self, before: Turn) -> None:
        """Somebody has stepped into the line while the turn was given back."""
        try:
            turn = self._taken(self.turns.take(before.window, before.queue, before.terms, before.part))
        except Unavailable as error:
            self._call_failed("turn_not_taken", error, project=before.key.project)
            return
        if turn is not None:
            turn.lined, turn.looks_at, turn.kept = True, 0, before.kept

    def _to_slow_lane(self, run: _Run, orders: Sequence[Received]) -> None:
        """Move orders to the slow lane.

        They are packed again, and never stay in the SQS message they came in: another order of that message may be in
        progress.
        """
        if run.slow is None:
            return
        if not orders:
            return
        # An order received again may be the one that changed its delivery, so from here on it is for the current state.
        bare = [each.order if each.receive_count == 1 else each.order.for_any_state for each in orders]
        if not self._sent_packed(run.slow, bare):
            run.keep |= self._wait([(each, self._unsure(each)) for each in orders], run.source)
        self.telemetry.count("DeliveriesPutAside", len(bare))

    def _put_aside(self, run: _Run, received: Received, stored: Delivery | None) -> None:
        doublings = min(received.receive_count - 1, 10)
        due_at = self.clock.now() + min(ASIDE_MS << doublings, MOST_ASIDE_MS)
        follow = Follow.LATER if stored is None or stored.update_url is None else Follow.POLL
        run.through.append((received, Following(follow, due_at)))
        self.telemetry.count("DeliveriesPutAside")

    def _refill(self, run: _Run) -> None:
        """Receive further orders while waiting for an answer, or while threads are idle, as long as they could still be
        attempted in this run.
        """
        if run.refill is not None or not run.refills or len(run.running) >= AT_ONCE:
            return
        now = self.clock.now()
        waits = len(run.waiting) < AT_ONCE and (
            (now >= run.looks_at and any(turn.waiting for turn in self.turns.here))
            or any(now - each.begun >= REFILL_AFTER_MS and not attempt.done() for attempt, each in run.running.items())
        )
        idle = run.hurried and now >= run.looks_at and self._idle(run)
        attempts = 2 if run.is_slow_lane else 1
        if (waits or idle) and run.remaining_ms() > attempts * self.longest_ms:
            run.refill = self.executor.submit(run.source.receive, REFILL_WAIT_S if waits else 0)
            run.finished.expect(run.refill)

    def _idle(self, run: _Run) -> bool:
        """Whether threads are idle although orders wait: for subscribers that have not earned more attempts yet."""
        return 0 < len(run.waiting) < WAITING and len(run.running) < AT_ONCE // 2

    def _finish(self, run: _Run) -> None:
        """Wait briefly for attempts to finish, and arrange the next step for those that have."""
        done = self._await(run)
        now = self.clock.now()
        if self._slow_lane is not None:
            self._slow_lane.tell(self._windows.newly_slow(now))
        for attempt in [each for each in run.running if each in done]:
            ended, following = run.running.pop(attempt), attempt.result()
            # What was begun in a turn here, under terms that are too long now, goes on where the turn goes.
            outlasts = self._outlasts(following) and bool(self.turns.of(ended.key))
            ends = following.follow is not Follow.TURN and not outlasts
            self._windows.end(ended.key, ended.begun, now, answered=following.answered is not False if ends else None)
            if ended.turn is not None:
                ended.turn.pace.end(attempted=following.answered is not None)
            if not ends or following.answered is not None:
                self.turns.learn(ended.key, None if following.terms == self._free else following.terms)
            for turn in self.turns.of(ended.key) if ended.turn is None else ():
                turn.asking = False
            if not ends:
                run.waiting.append((ended.received, ended.stored))
            else:
                run.through.append((ended.received, following))
        if run.refill is not None and run.refill in done:
            self._refilled(run, run.refill)
            run.refill = None
        if run.through and (not done or not run.running or len(run.through) >= FLUSH_COUNT):
            self._flush(run)

    def _outlasts(self, following: Following) -> bool:
        """Whether an attempt was not begun because it may take longer than any run here lasts."""
        terms = following.terms
        return following.answered is None and terms is not None and terms.longest_ms > self.longest_ms

    def _flush(self, run: _Run) -> None:
        """Arrange the next step of what the run is through with, and be done with it."""
        through, run.through = run.through, []
        spares = [(self._done_with(run, each.order.key), following.follow) for each, following in through]
        kept = self._arrange(through, run)
        run.keep |= kept
        run.left.subtract(each.sqs_id for each, _ in through)
        for each, following in through:
            for turn in self.turns.of(_window_key(each.order)):
                if following.follow is Follow.ANOTHER:
                    turn.leave_to_seconds(each.order.key)
                self._leave_line(turn, each, keep=each.sqs_id in kept)
        self.turns.leave_aside(each for each, _ in through if each.sqs_id not in kept)
        if others := [each for each, follow in spares if each is not None and follow is Follow.ANOTHER]:
            self._take(run, others)
        self._give_up_own(run)

    def _await(self, run: _Run) -> set[Future[Any]]:
        """The attempts and receives that have finished; waits briefly if there are none, but not beyond the next turn
        of an order.
        """
        now, at_most_ms = self.clock.now(), max(1, round(FLUSH_SECONDS * 1000))
        waits_ms = [at_most_ms]
        for turn in self.turns.here:
            if turn.waiting and not turn.pace.full:
                waits_ms.append(turn.pace.wait_ms(now) or at_most_ms)
            elif turn.lined:
                waits_ms.append(max(1, turn.looks_at - now))
        if run.running or run.refill is not None:
            return run.finished.take(min(FLUSH_SECONDS, min(waits_ms) / 1000))
        if len(waits_ms) > 1 and min(waits_ms[1:]) <= HORIZON_MS and not run.waiting and not run.through:
            self.clock.sleep(min(waits_ms) / 1000)
        return set()

    def _refilled(self, run: _Run, refill: Future[list[Received]]) -> None:
        try:
            batch = refill.result()
        except Unavailable as error:
            self._call_failed("orders_not_received", error)
            run.refills = False
            return
        if not batch:
            run.looks_at = self.clock.now() + REFILL_AFTER_MS
        run.in_hand.take(batch)
        run.handles |= {each.sqs_id: each.receipt_handle for each in batch}
        self._take(run, batch)
        self._give_up_own(run)

    def _give_up_own(self, run: _Run) -> None:
        """Delete the messages that the run received itself and has finished.

        A message that cannot be deleted comes back, which is harmless.
        """
        over = [sqs_id for sqs_id in run.handles if run.left[sqs_id] <= 0]
        handles = {sqs_id: run.handles.pop(sqs_id) for sqs_id in over}
        run.in_hand.let_go(handles)
        done = [handle for sqs_id, handle in handles.items() if sqs_id not in run.keep]
        if not done:
            return
        try:
            run.source.delete(done)
        except Unavailable as error:
            self._call_failed("orders_not_deleted", error, orders=len(done))

    def _keep_hidden(self, run: _Run) -> None:
        """A message that cannot be hidden any longer comes back, and its orders may be carried out twice."""
        try:
            failed = run.in_hand.keep_hidden(run.keep)
        except Unavailable as error:
            self._call_failed("visibility_unchanged", error)
        else:
            if failed:
                self.telemetry.event("visibility_unchanged", error="refused", orders=len(failed))

    def _carry_on(
        self,
        received: Received,
        stored: Delivery | None,
        remaining_ms: Callable[[], int],
        terms: Terms | None,
        may_ask: MayAsk | None,
    ) -> Following:
        """Work on one delivery in its own thread; an internal error must not affect its neighbours."""
        try:
            return self.deliver.run(received, stored, remaining_ms, terms, may_ask)
        except Unavailable as error:
            self._call_failed("attempt_unrecorded", error, **received.order.identity)
        except Exception as error:  # noqa: BLE001 (the dead-letter queue keeps it in sight)
            self.telemetry.count("PushFaults")
            self.telemetry.event("push_fault", **described(error), **received.order.identity)
            # Until somebody mends us: it must not use up its receives in an hour.
            return Following(Follow.FAULT, self._unsure(received, MAX_DELAY_MS), answered=False, terms=terms)
        # A request may have been made.
        return Following(Follow.LATER, self._unsure(received), answered=False, terms=terms)

    def _unsure(self, received: Received, most_ms: int = MOST_UNSURE_MS) -> int:
        """When to retry an order after an internal error, epoch milliseconds."""
        doublings = min(received.receive_count - 1, 10)
        return self.clock.now() + min(UNSURE_WAIT_MS << doublings, most_ms)

    def _arrange(self, through: Sequence[tuple[Received, Following]], run: _Run) -> set[str]:
        """Pass exhausted deliveries to the errors queue and waits to where they are spent; returns the SQS ids to
        keep.
        """
        source = run.source
        errors = [received for received, following in through if following.follow is Follow.ERROR]
        kept: list[tuple[Received, int]] = []
        if errors and not self._given_up([each.order for each in errors]):
            kept += [(each, self._unsure(each)) for each in errors]
        if run.slow is source:
            through, kept_slow = self._stay_slow(through, source)
            kept += kept_slow
        elsewhere = [received for received, following in through if self._outlasts(following)]
        if elsewhere and not self._sent_packed(self.queues.poll, [each.order.for_any_state for each in elsewhere]):
            kept += [(each, self._unsure(each)) for each in elsewhere]
        for queue in (self.queues.retry, self.queues.poll):
            waits = [(each, following.due_at) for each, following in through if self._waits_in(following) is queue]
            if source is queue:
                until = self.clock.now() + HIDDEN_WAIT_MS
                kept += [each for each in waits if each[1] <= until and not each[0].place]
                waits = [each for each in waits if each[1] > until or each[0].place]
            if waits and not self._moved(waits, queue):
                kept += [(each, self._unsure(each)) for each, _ in waits]
        stuck = [(received, following.due_at) for received, following in through if following.follow is Follow.FAULT]
        return self._wait(kept, source) | self._hide(stuck, source)

    def _waits_in(self, following: Following) -> WorkQueue | None:
        """The queue in which a delivery waits."""
        if self._outlasts(following) or following.follow not in (Follow.LATER, Follow.POLL):
            return None
        return self.queues.poll if following.long or following.follow is Follow.POLL else self.queues.retry

    def _stay_slow(
        self, through: Sequence[tuple[Received, Following]], lane: WorkQueue
    ) -> tuple[list[tuple[Received, Following]], list[tuple[Received, int]]]:
        """Make orders wait in the slow lane if their subscriber is still slow.

        Returns the others, and those to retry because the lane did not accept them.
        """
        now = self.clock.now()
        slow: list[tuple[Received, int]] = []
        others: list[tuple[Received, Following]] = []
        for received, following in through:
            if following.follow is Follow.LATER and self._windows.slow(_window_key(received.order), now):
                slow.append((received, following.due_at))
            else:
                others.append((received, following))
        taken = not slow or self._moved(slow, lane)
        return others, [] if taken else [(each, self._unsure(each)) for each, _ in slow]

    def _wait(self, kept: Sequence[tuple[Received, int]], source: WorkQueue) -> set[str]:
        """Make orders wait in the queue they came from, or where they stood in line; returns the SQS ids and places to
        keep. Worn-out messages are replaced.
        """
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
        now = self.clock.now()
        delays = [-(-min(MAX_DELAY_MS, max(0, due_at - now)) // 1000) for _, due_at in waits]
        orders = [each.order.for_any_state for each, _ in waits]
        return self._sent(queue, list(zip(orders, delays, strict=True)))

    def _call_failed(self, event: str, error: Unavailable, **fields: object) -> None:
        """Report a failed call of our own: its order is retried, and an attempt already made may be repeated."""
        self.telemetry.count("CallsFailed")
        self.telemetry.event(event, error=str(error), **fields)

    def _given_up(self, orders: Sequence[WorkOrder]) -> bool:
        """Pass orders to the errors queue, in packs; its consumers read the current messages and deliveries."""
        bare = [replace(each.for_any_state, message=None) for each in orders]
        return self._sent_packed(self.queues.errors, bare)

    def _sent(self, queue: WorkQueue, orders: Sequence[tuple[WorkOrder, int]]) -> bool:
        try:
            queue.send(orders)
        except Unavailable as error:
            self._call_failed("orders_not_sent", error, orders=len(orders))
            return False
        return True

    def _sent_packed(self, queue: WorkQueue, orders: Sequence[WorkOrder]) -> bool:
        try:
            queue.send_packed(orders)
        except Unavailable as error:
            self._call_failed("orders_not_sent", error, orders=len(orders))
            return False
        return True

    def _hide(self, kept: Sequence[tuple[Received, int]], source: WorkQueue) -> set[str]:
        """Hide kept orders until their time; one that cannot be hidden comes back after the queue's own timeout."""
        places = {each.place for each, _ in kept if each.place}
        kept = [each for each in kept if not each[0].place]
        if not kept:
            return places
        now = self.clock.now()
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
                self.telemetry.event("visibility_unchanged", error="refused", orders=len(failed))
        return places | {each.sqs_id for each, _ in kept}


def _has_place(turn: Turn) -> bool:
    """Whether another received order may wait for a turn in memory."""
    return not (turn.closing or turn.astray or turn.lined) and len(turn.waiting) < turn.keeps


def _window_key(order: WorkOrder) -> Key:
    return order.addressee


def _may_be_second(received: Received) -> bool:
    """Whether an order is the stream's for an attempt that ingest has ordered, and was not received before."""
    return received.order.second and received.receive_count == 1


def _is_fresh(received: Received, now: int) -> bool:
    """Whether an order is ingest's, which was not received before, for what was accepted a moment ago.

    The stream's order is still to come, so there is nobody but a queue that repeats itself who could have begun the
    attempt. That nobody did is not looked up: it costs a fifth of what an eager queue costs more.
    """
    order = received.order
    if order.until is None or received.receive_count > 1:
        return False
    return now - (order.until - GOOD_FOR_MS) < FRESH_MS


def _is_void(received: Received, stored: Delivery | None) -> bool:
    """Whether an order is for an earlier state of its delivery: the run that changed the state has already arranged the
    next step.

    An order received again may be the one that made the change, so it counts.
    """
    if _may_be_second(received) and stored is not None and stored.begun:
        return True
    version = received.order.version
    return version is not None and received.receive_count == 1 and stored is not None and stored.version != version
