"""The turns that a run of push has: at subscribers with limits, and in the slow lane at all.

Only the run that has a subscriber's turn begins attempts at it, so the limits are kept in its memory
(:class:`pushhub.engine.model.flow.Pace`), and it takes the next order as soon as one is done. Other runs put their
orders into the subscriber's line. Whoever gives a turn back while somebody stands in line sends a *call*, an order that
asks another run to take the turn; so nothing waits without a turn, or a call on its way. ``wake`` makes up for a call
that was lost with its run (:class:`Callers`).

Nobody is overlooked between the end of a turn and the beginning of the next: who steps into the line looks afterwards
whether somebody has the turn, and who gives a turn back looks afterwards whether somebody has stepped in.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from pushhub.base.errors import Unavailable
from pushhub.engine.model.backoff import MAX_DELAY_MS
from pushhub.engine.model.flow import FlowKey, Limits, Pace, Terms
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.ports import Received

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.ports import FlowStore, Lines, OrderSink
    from pushhub.engine.windows import Key

_K = TypeVar("_K")
_V = TypeVar("_V")

LEASE_MS = 15_000
"""A turn lasts this much longer than the attempts that its limits count. What a run leaves behind that dies is taken up
after that time.
"""

RENEW_MS = 5_000
"""A turn is extended when less than this is left."""

MARGIN_MS = 1_000
"""No attempt begins so shortly before the end of a turn: clocks differ a little."""

HORIZON_MS = 2_000
"""A run waits this long for the next attempt of a rate; for a later one it sends a call."""

KEPT_MS = 10_000
"""A run keeps as many of the orders that it received as the rate allows in this time; the others stand in line."""

KEPT = 10
"""How many orders it keeps otherwise, or for each of so many concurrent attempts."""

MOST_IN_HAND = 200
"""How many orders of a subscriber it keeps at most."""

PLACE_ORDERS = 100
"""Orders that stand in one place of the line: together they are written once."""

LOOK_MS = 1_000
"""How long after nobody stood in line that is looked at again."""

TENDED_MS = 300_000
"""How often a line is entered into the list of those that ``wake`` tends."""

UNTENDED_MS = 2 * TENDED_MS
"""How long after its last entry an empty line is taken off that list."""

LOST_MS = 60_000
"""How long after its time a call counts as lost."""

HURRY_S = 1
"""How soon a run is called after a change of limits: by then no copy of the queue from before it is in use."""

AGAIN_MS = 10_000
"""How soon what could not be done for an error of our own is tried again."""

KNOWN = 5_000
"""Maximum number of subscribers kept in memory; the one asked longest ago is forgotten first."""


@dataclass
class Turn:
    """A turn that the run has. Times are epoch milliseconds.

    Attributes:
        key: The flow.
        window: The subscriber, as :mod:`pushhub.engine.windows` knows it.
        queue: Name of its queue.
        terms: Under which terms.
        pace: When attempts may begin.
        until: Until when the run has it.
        called_at: When a call that is on its way arrives.
        waiting: Orders that wait for their attempt, with their stored deliveries.
        fetched: Orders from the line that were not looked at yet.
        seconds: Orders from the line for deliveries whose first order the run has in hand.
        in_hand: Orders from the line that are not done yet, by place.
        shrunk: Places some of whose orders are done.
        kept: Places that stay as they are, because of an error.
        looks_at: When the line is looked at.
        unsure: Whether the terms may have changed: a first order finds out.
        asking: Whether that order is on its way.
        lined: Whether somebody may stand in line.
        closing: Whether no attempt begins any more.
        lost: Whether somebody else has it.
    """

    key: FlowKey
    window: Key
    queue: str
    terms: Terms
    pace: Pace
    until: int
    called_at: int
    looks_at: int
    waiting: deque[tuple[Received, Delivery | None]] = field(default_factory=deque)
    fetched: deque[Received] = field(default_factory=deque)
    seconds: list[Received] = field(default_factory=list)
    in_hand: dict[str, list[WorkOrder]] = field(default_factory=dict)
    shrunk: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    unsure: bool = False
    asking: bool = False
    lined: bool = False
    closing: bool = False
    lost: bool = False

    @property
    def wants(self) -> int:
        """How many orders should be ready."""
        limits, most = self.terms.limits, KEPT
        if limits.rate_per_s:
            most = max(1, round(limits.rate_per_s * HORIZON_MS / 1000))
        if limits.concurrency is not None:
            most = min(most, limits.concurrency) if limits.rate_per_s else limits.concurrency
        return min(most, MOST_IN_HAND)

    @property
    def keeps(self) -> int:
        """How many received orders may wait in memory."""
        limits, most = self.terms.limits, KEPT
        if limits.rate_per_s:
            most = round(limits.rate_per_s * KEPT_MS / 1000) if limits.rate_per_s * HORIZON_MS >= 1000 else 1
        elif limits.concurrency is not None:
            most = KEPT * limits.concurrency
        return min(most, MOST_IN_HAND)

    def waits_long(self, now: int) -> bool:
        """Whether the next attempt is so far away that another run should be called for it."""
        return not (self.unsure or self.asking) and self.pace.wait_ms(now) > HORIZON_MS

    @property
    def idle(self) -> bool:
        """Whether nothing is in progress and nothing waits."""
        return not (self.pace.under_way or self.waiting or self.fetched or self.seconds or self.lined)


class Turns:
    """The turns of one run after the other; for one thread at a time.

    Args:
        store: Who has which turn, and the lines.
        clock: Time.
        telemetry: Metrics.
    """

    def __init__(self, *, store: FlowStore, clock: Clock, telemetry: Telemetry) -> None:
        self._store = store
        self._clock = clock
        self._telemetry = telemetry
        self._terms: OrderedDict[Key, Terms] = OrderedDict()
        self._elsewhere: OrderedDict[FlowKey, int] = OrderedDict()
        self._tended: OrderedDict[FlowKey, int] = OrderedDict()
        self._turns: dict[Key, Turn] = {}
        self._aside: dict[tuple[str, DeliveryKey], tuple[FlowKey, str]] = {}
        self._standing_aside: dict[str, list[WorkOrder]] = {}
        self._holder = ""

    def start_over(self) -> None:
        """Another run begins; what an aborted one had ends by itself."""
        self._turns = {}
        self._aside = {}
        self._standing_aside = {}
        self._holder = secrets.token_hex(8)

    # -- what is known of subscribers

    def terms(self, key: Key) -> Terms | None:
        """The terms of a subscriber with limits, as last seen."""
        return self._terms.get(key)

    def learn(self, key: Key, terms: Terms | None) -> None:
        """Remember the terms of a subscriber, or that it has none; a turn goes on under the new ones."""
        turn = self._turns.get(key)
        if terms is not None:
            _remember(self._terms, key, terms)
        elif self._terms.pop(key, None) and turn is not None:
            terms = Terms(limits=Limits(), longest_ms=turn.terms.longest_ms)
        if turn is not None and terms is not None and turn.terms != terms:
            turn.terms = terms
            turn.pace.change(terms.limits, self._clock.now())

    # -- having turns

    @property
    def here(self) -> list[Turn]:
        """All turns that the run has."""
        return [*self._turns.values()]

    def of(self, key: Key) -> Turn | None:
        """The turn at a subscriber, if the run has it."""
        return self._turns.get(key)

    def is_elsewhere(self, key: Key) -> bool:
        """Whether another run had the turn a moment ago, or a call was on its way."""
        return self._elsewhere.get(_flow(key), 0) > self._clock.now()

    def take(self, key: Key, queue: str, terms: Terms) -> tuple[Turn, int] | None:
        """Take the turn at a subscriber, unless somebody else has it.

        Returns:
            The turn, and how many concurrent attempts the subscriber had earned.

        Raises:
            Unavailable: The effect is unknown.
        """
        flow, now = _flow(key), self._clock.now()
        until = now + terms.outlasts_ms + LEASE_MS
        before = self._store.take_turn(flow, self._holder, terms, now=now, until=until)
        if before is None:
            _remember(self._elsewhere, flow, now + LOOK_MS)
            return None
        # Whoever did not give it back may have used all of its time.
        mark = max(before.mark, before.until) if before.until <= now else before.mark
        turn = Turn(
            key=flow,
            window=key,
            queue=queue,
            terms=terms,
            pace=Pace(terms.limits, mark),
            until=until,
            called_at=before.called_at,
            looks_at=now + LOOK_MS,
        )
        self._turns[key] = turn
        self._elsewhere.pop(flow, None)
        return turn, before.places

    def answer(self, call: WorkOrder) -> tuple[Turn, int] | None:
        """Take the turn that a call is for, with the terms stored; otherwise like :meth:`take`."""
        key = call.addressee
        turn = self._turns.get(key)
        if turn is None:
            state = self._store.flow(_flow(key))
            terms = state.terms if state else Terms(limits=Limits(), longest_ms=LEASE_MS)
            taken = self.take(key, call.queue, terms)
            if taken is None:
                return None
            turn, places = taken
        else:
            places = 0
        turn.lined, turn.looks_at, turn.called_at = True, 0, 0
        turn.unsure = bool(turn.terms.limits.rate_per_s)
        return turn, places

    def hold(self, turn: Turn) -> bool:
        """Whether an attempt may begin within the turn; extends it in time."""
        now, outlasts_ms = self._clock.now(), turn.terms.outlasts_ms
        if turn.until - now < outlasts_ms + RENEW_MS and not turn.lost:
            until = now + outlasts_ms + LEASE_MS
            try:
                before = self._store.take_turn(turn.key, self._holder, turn.terms, now=now, until=until)
            except Unavailable as error:
                self._failed("turn_not_extended", error, turn.key)
            else:
                turn.lost = before is None
                turn.until = turn.until if turn.lost else until
        turn.closing |= turn.lost
        return not turn.lost and turn.until - now >= outlasts_ms + MARGIN_MS

    def give_back(
        self, turn: Turn, *, places: int, call_ms: int | None, to: OrderSink, under_way: Iterable[Received] = ()
    ) -> bool:
        """Give a turn back.

        Args:
            turn: The turn; nothing is in progress that its limits count.
            places: Concurrent attempts that the subscriber has earned.
            call_ms: In how many milliseconds another run is called; None if nobody waits.
            to: Where a call goes.
            under_way: Orders whose attempts are in progress: whoever has the turn next leaves them alone.

        Returns:
            Whether somebody had stepped into the line meanwhile, and no call was sent.
        """
        del self._turns[turn.window]
        now = self._clock.now()
        called_at = None
        if call_ms is not None and not now < turn.called_at <= now + call_ms + HORIZON_MS:
            called_at = now + min(call_ms, MAX_DELAY_MS)
        try:
            self._stand_aside(turn, under_way)
            self._leave_places(turn)
            self._store.give_back(turn.key, self._holder, mark=turn.pace.mark, places=places, called_at=called_at)
            if called_at is not None:
                _remember(self._elsewhere, turn.key, called_at)
                self._call(turn.key, turn.window, turn.queue, called_at - now, to)
            elif call_ms is None and not turn.lost:
                found = self._store.line(turn.key, 1 + len(turn.kept), now=now)
                return any(each.place not in turn.kept for each in found)
        except Unavailable as error:
            self._failed("turn_not_given_back", error, turn.key)
        return False

    def _stand_aside(self, turn: Turn, under_way: Iterable[Received]) -> None:
        """Orders from the line whose attempts are in progress stand where nobody reaches them before these are over for
        certain. If the run dies, they are found there.
        """
        orders: list[WorkOrder] = []
        for each in under_way:
            standing = turn.in_hand.get(each.place, [])
            if each.order in standing and each.place not in turn.kept:
                standing.remove(each.order)
                turn.shrunk.add(each.place)
                orders.append(each.order)
                self._aside[each.place, each.order.key] = turn.key, ""
        if not orders:
            return
        place = self._store.stand_aside(turn.key, orders, self._clock.now() + turn.terms.longest_ms + LEASE_MS)
        self._standing_aside[place] = orders
        self._aside |= {each: (turn.key, place) for each, (_, known) in self._aside.items() if not known}

    def leave_aside(self, received: Iterable[Received]) -> None:
        """Orders that stood aside are done, or stand elsewhere."""
        shrunk: dict[str, FlowKey] = {}
        for each in received:
            flow, place = self._aside.pop((each.place, each.order.key), (None, ""))
            standing = self._standing_aside.get(place, [])
            if flow is not None and each.order in standing:
                standing.remove(each.order)
                shrunk[place] = flow
        for place, flow in shrunk.items():
            try:
                self._store.step_out(flow, place, self._standing_aside[place])
            except Unavailable as error:
                # Whoever finds them there finds their deliveries done.
                self._failed("place_not_left", error, flow)

    def _leave_places(self, turn: Turn) -> None:
        """Orders from the line that were done leave it; the others stay."""
        for place in turn.shrunk - turn.kept:
            self._store.step_out(turn.key, place, turn.in_hand[place])

    # -- the line

    def line_up(self, key: Key, orders: Sequence[Received], now: int) -> bool:
        """Put received orders for a subscriber at the end of its line.

        Returns:
            Whether the run should take the turn: nobody has it, and no call is on its way.

        Raises:
            Unavailable: Some may not stand there.
        """
        flow = _flow(key)
        if now - self._tended.get(flow, 0) >= TENDED_MS:
            self._store.tend(flow, now)
            _remember(self._tended, flow, now)
        for start in range(0, len(orders), PLACE_ORDERS):
            self._store.stand(flow, [each.order for each in orders[start : start + PLACE_ORDERS]], now)
        self._telemetry.count("DeliveriesPutAside", len(orders))
        turn = self._turns.get(key)
        if turn is not None:
            turn.lined = True
            return False
        state = self._store.flow(flow)
        if state is not None and state.until > now:
            _remember(self._elsewhere, flow, now + LOOK_MS)
            return False
        return state is None or state.called_at <= now

    def look(self, turn: Turn) -> None:
        """Fetch orders from the line, if some could soon begin and it is time."""
        now = self._clock.now()
        wanted = turn.wants - len(turn.waiting) - len(turn.fetched)
        if wanted <= 0 or turn.closing or now < turn.looks_at:
            return
        known = len(turn.in_hand) + len(turn.kept)
        try:
            found = self._store.line(turn.key, known + max(2, wanted // PLACE_ORDERS + 1, wanted // KEPT), now=now)
        except Unavailable as error:
            self._failed("line_not_read", error, turn.key)
            turn.looks_at = now + LOOK_MS
            return
        new = [each for each in found if each.place not in turn.in_hand and each.place not in turn.kept]
        turn.lined = bool(new)
        turn.looks_at = now if new else now + LOOK_MS
        for each in new:
            turn.in_hand[each.place] = [*each.orders]
            turn.fetched += [
                Received(order=order, sqs_id=each.place, receipt_handle="", received_at=now, place=each.place)
                for order in each.orders
            ]

    def done(self, turn: Turn, received: Received, *, keep: bool) -> None:
        """An order from the line is done, or its place is kept because of an error.

        Where the same order stands there twice, as after a call that was repeated, the other one stays.
        """
        orders = turn.in_hand.get(received.place)
        if orders is None:
            return
        if keep:
            turn.kept.add(received.place)
            return
        if received.order in orders:
            orders.remove(received.order)
        turn.shrunk.add(received.place)
        if orders or received.place in turn.kept:
            return
        del turn.in_hand[received.place]
        turn.shrunk.discard(received.place)
        try:
            self._store.step_out(turn.key, received.place, ())
        except Unavailable as error:
            # Whoever has the turn next finds the deliveries done.
            self._failed("place_not_left", error, turn.key)
            turn.kept.add(received.place)

    def _call(self, flow: FlowKey, key: Key, queue: str, in_ms: int, to: OrderSink) -> None:
        project, queue_uid, subscriber_id = key
        order = WorkOrder.calling(DeliveryKey(project, queue_uid, "", subscriber_id), queue)
        try:
            # A call that comes early waits in its run.
            to.send([(order, in_ms // 1000)])
        except Unavailable as error:
            self._failed("call_not_sent", error, flow)

    def _failed(self, event: str, error: Unavailable, flow: FlowKey) -> None:
        self._telemetry.count("CallsFailed")
        self._telemetry.event(event, error=str(error), project=flow.project, flow=flow.name)


class Callers:
    """Calls for the turns of lines: each minute where nobody works them off, and at once where limits have changed.

    Args:
        lines: The lines.
        queue: Where a call goes.
        clock: Time.
        telemetry: Metrics.
    """

    def __init__(self, *, lines: Lines, queue: OrderSink, clock: Clock, telemetry: Telemetry) -> None:
        self._lines = lines
        self._queue = queue
        self._clock = clock
        self._telemetry = telemetry

    def run(self, remaining_ms: Callable[[], int]) -> int:
        """Tend all lines, as far as the remaining milliseconds allow; returns the number of calls.

        Raises:
            Unavailable: Some line could not be tended; the next run tries again.
        """
        return sum(self._tend(key, added_at) for key, added_at in _while(remaining_ms, self._lines.tended()))

    def hurry(self, key: Key, queue: str) -> None:
        """A subscriber's limits have changed: call for its turn now if the next attempt is arranged for later.

        Without effect if that fails: the arranged call comes.

        Args:
            key: The subscriber.
            queue: Name of its queue.
        """
        flow, now = _flow(key), self._clock.now()
        try:
            state = self._lines.flow(flow)
            # Whoever has the turn may be about to arrange a call under the former terms.
            if state is not None and (state.until > now or state.called_at > now + HORIZON_MS):
                project, queue_uid, subscriber_id = key
                call = WorkOrder.calling(DeliveryKey(project, queue_uid, "", subscriber_id), queue)
                self._queue.send([(call, HURRY_S)])
        except Unavailable as error:
            self._telemetry.count("CallsFailed")
            self._telemetry.event("turn_not_hurried", error=str(error), project=flow.project, flow=flow.name)

    def _tend(self, key: FlowKey, added_at: int) -> bool:
        now = self._clock.now()
        state = self._lines.flow(key)
        if state is not None and (state.until > now or now < state.called_at + LOST_MS):
            return False
        first = self._lines.line(key, 1, now=now)
        if not first:
            if now - added_at > UNTENDED_MS and not self._lines.line(key, 1):
                self._lines.untend(key, added_at)
            return False
        if state is None or self._lines.call(key, now, now):
            order = first[0].orders[0]
            self._queue.send([(WorkOrder.calling(order.key, order.queue), 0)])
            self._telemetry.count("TurnsCalled")
            return True
        return False


def _while(remaining_ms: Callable[[], int], lines: Iterable[tuple[FlowKey, int]]) -> Iterable[tuple[FlowKey, int]]:
    for each in lines:
        if remaining_ms() <= AGAIN_MS:
            return
        yield each


def _flow(key: Key) -> FlowKey:
    return FlowKey.of_subscriber(*key)


def _remember(known: OrderedDict[_K, _V], key: _K, value: _V) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > KNOWN:
        known.popitem(last=False)
