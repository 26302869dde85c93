"""The turns that a run of push has: at subscribers with limits, and in the slow lane at all.

Only the run that has a subscriber's turn begins attempts at it, so the limits are kept in its memory
(:class:`pushhub.engine.model.flow.Pace`), and it takes the next order as soon as one is done. Other runs put their
orders into the subscriber's line. Whoever gives a turn back while somebody stands in line sends a *call*, an order that
asks another run to take the turn; so nothing waits without a turn, or a call on its way. ``wake`` makes up for a call
that was lost with its run (:class:`Callers`).

A rate above :data:`~pushhub.engine.model.flow.PART_PER_S` is divided into parts, each with a turn, a mark and a line of
its own, so that several runs can work on it. A run takes what parts it can, and leaves one to others when it has
several and falls behind. Where orders stand follows from their time, so whoever finds some in the line of another part,
after the rate has changed, moves them (decision 0133).

Nobody is overlooked between the end of a turn and the beginning of the next: who steps into the line looks afterwards
whether somebody has the turn, and who gives a turn back looks afterwards whether somebody has stepped in.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from pushhub.base.errors import Unavailable
from pushhub.engine.component import Component
from pushhub.engine.model.backoff import MAX_DELAY_MS
from pushhub.engine.model.flow import BURST_MS, FlowKey, InLine, Limits, Pace, Terms
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

AHEAD, MOST_AHEAD = 20, 1_000
"""So many places are looked at ahead after the number of a rate's parts has changed, and at most so many."""

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

BEHIND_MS = 1_000
"""A run that has several parts of a rate leaves one to others that has been behind its time for so long."""

LEFT_MS = 10_000
"""How long a run does not take a part again that it has left to others."""

KNOWN = 5_000
"""Maximum number of subscribers kept in memory; the one asked longest ago is forgotten first."""


@dataclass
class Turn:
    """A turn that the run has. Times are epoch milliseconds.

    Attributes:
        window: The subscriber, as :mod:`pushhub.engine.windows` knows it.
        pace: When attempts may begin.
        until: Until when the run has it.
        called_at: When a call that is on its way arrives.
        late_since: Since when it has been behind its time, with orders waiting; 0 while it is not.
        waiting: Orders that wait for their attempt, with their stored deliveries.
        fetched: Orders from the line that were not looked at yet.
        seconds: Orders from the line for deliveries whose first order the run has in hand.
        behind: The same, but to be looked at once the run is done with the first, if they still stand there.
        in_hand: Orders from the line that are not done yet, by place.
        shrunk: Places some of whose orders are done.
        kept: Places that stay as they are, because of an error.
        looks_at: When the line is looked at.
        ahead: How many places are looked at ahead, as orders of other parts of the rate may stand there; 0 if none do.
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
    late_since: int = 0
    waiting: deque[tuple[Received, Delivery | None]] = field(default_factory=deque)
    fetched: deque[Received] = field(default_factory=deque)
    seconds: list[Received] = field(default_factory=list)
    behind: list[Received] = field(default_factory=list)
    in_hand: dict[str, list[WorkOrder]] = field(default_factory=dict)
    shrunk: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    ahead: int = 0
    unsure: bool = False
    asking: bool = False
    lined: bool = False
    closing: bool = False
    lost: bool = False

    @property
    def part(self) -> int:
        """Which part of the subscriber's rate it is for."""
        return self.key.part

    @property
    def astray(self) -> bool:
        """Whether the rate has no such part any more: nothing begins, and whoever stands in its line is moved."""
        return self.part >= self.terms.limits.parts and not (self.unsure or self.asking)

    @property
    def wants(self) -> int:
        """How many orders should be ready."""
        limits, most = self.terms.limits.of_a_part, KEPT
        if limits.rate_per_s:
            most = max(1, round(limits.rate_per_s * HORIZON_MS / 1000))
        if limits.concurrency is not None:
            most = min(most, limits.concurrency) if limits.rate_per_s else limits.concurrency
        return min(most, MOST_IN_HAND)

    @property
    def keeps(self) -> int:
        """How many received orders may wait in memory."""
        limits, most = self.terms.limits.of_a_part, KEPT
        if limits.rate_per_s:
            most = round(limits.rate_per_s * KEPT_MS / 1000) if limits.rate_per_s * HORIZON_MS >= 1000 else 1
        elif limits.concurrency is not None:
            most = KEPT * limits.concurrency
        return min(most, MOST_IN_HAND)

    @property
    def has_enough(self) -> bool:
        """Whether more orders wait than may begin at once after a pause."""
        rate = self.terms.limits.of_a_part.rate_per_s
        return rate is not None and len(self.waiting) >= rate * BURST_MS / 1000

    def leave_to_seconds(self, key: DeliveryKey) -> None:
        """The first order for a delivery waits elsewhere, from where a second one may have come: that one is looked
        at.
        """
        self.behind += [each for each in self.seconds if each.order.key == key]
        self.seconds = [each for each in self.seconds if each.order.key != key]

    def is_behind(self, now: int) -> bool:
        """Whether it has been behind its time for a while although orders wait; to be asked several times a second."""
        late = bool(self.waiting) and not self.closing and self.pace.is_late(now)
        self.late_since = (self.late_since or now) if late else 0
        return late and now - self.late_since >= BEHIND_MS

    def waits_long(self, now: int) -> bool:
        """Whether the next attempt is so far away that another run should be called for it."""
        return not (self.unsure or self.asking) and self.pace.wait_ms(now) > HORIZON_MS

    @property
    def idle(self) -> bool:
        """Whether nothing is in progress and nothing waits."""
        busy = self.pace.under_way or self.waiting or self.fetched or self.seconds or self.behind
        return not (busy or self.lined)

    def times_standing(self, received: Received) -> int:
        """How often an order stands in its place, as far as the run has not changed that or left it as it is."""
        return 0 if received.place in self.kept else self.in_hand.get(received.place, []).count(received.order)


class Turns(Component):
    """The turns of one run after the other; for one thread at a time."""

    store: FlowStore  # Who has which turn, and the lines.
    calls: OrderSink  # Where calls for the parts of a rate go to which somebody was moved.
    clock: Clock
    telemetry: Telemetry

    def __post_init__(self) -> None:
        self._terms: OrderedDict[Key, Terms] = OrderedDict()
        self._elsewhere: OrderedDict[FlowKey, int] = OrderedDict()
        self._left: OrderedDict[FlowKey, int] = OrderedDict()
        self._tended: OrderedDict[FlowKey, int] = OrderedDict()
        self._turns: dict[Key, list[Turn]] = {}
        self._aside: dict[tuple[str, DeliveryKey], tuple[FlowKey, str]] = {}
        self._standing_aside: dict[str, list[WorkOrder]] = {}
        self._holder = ""
        self._lined = secrets.randbelow(1_000)

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
        turns = self.of(key)
        if terms is not None:
            _remember(self._terms, key, terms)
        elif self._terms.pop(key, None) and turns:
            terms = Terms(limits=Limits(), longest_ms=turns[0].terms.longest_ms)
        for turn in turns:
            if terms is not None and turn.terms != terms:
                turn.terms, turn.unsure = terms, False
                turn.ahead = AHEAD if terms.limits.parts > 1 else 0
                turn.pace.change(terms.limits.of_a_part, self.clock.now())

    def forget(self, key: Key) -> None:
        """Know nothing of a subscriber."""
        self._terms.pop(key, None)

    # -- having turns

    @property
    def here(self) -> list[Turn]:
        """All turns that the run has."""
        return [turn for turns in self._turns.values() for turn in turns]

    def of(self, key: Key) -> Sequence[Turn]:
        """The turns at a subscriber that the run has: one, or several parts' of its rate."""
        return self._turns.get(key, ())

    def is_elsewhere(self, key: Key) -> bool:
        """Whether other runs had all turns at a subscriber a moment ago, or calls for them were on their way."""
        return self.free_part(key, self._terms.get(key)) is None

    def free_part(self, key: Key, terms: Terms | None) -> int | None:
        """One of the parts of a subscriber's rate that nobody is known to have; None if there is none."""
        now, parts = self.clock.now(), terms.limits.parts if terms else 1
        own = {turn.part for turn in self.of(key)}
        free = [each for each in range(parts) if each not in own and self._elsewhere.get(_flow(key, each), 0) <= now]
        return secrets.choice(free) if free else None

    def is_left(self, call: WorkOrder) -> bool:
        """Whether the run has left what a call is for to others, and has other parts of it."""
        flow = _flow(call.addressee, call.part)
        return bool(self.of(call.addressee)) and self._left.get(flow, 0) > self.clock.now()

    def leave_to_others(self, turn: Turn) -> None:
        """The run does not take a part again soon."""
        until = self.clock.now() + LEFT_MS
        _remember(self._left, turn.key, until)
        _remember(self._elsewhere, turn.key, until)

    def take(self, key: Key, queue: str, terms: Terms, part: int = 0) -> tuple[Turn, int] | None:
        """Take the turn at a subscriber, or of a part of its rate, unless somebody else has it.

        Returns:
            The turn, and how many concurrent attempts the subscriber had earned; 0 if nobody has had it before.
        """
        flow, now = _flow(key, part), self.clock.now()
        until = now + terms.outlasts_ms + LEASE_MS
        before = self.store.take_turn(flow, self._holder, terms, now=now, until=until)
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
            pace=Pace(terms.limits.of_a_part, mark),
            until=until,
            called_at=before.called_at,
            looks_at=now + LOOK_MS,
            ahead=AHEAD if terms.limits.parts > 1 else 0,
        )
        self._turns.setdefault(key, []).append(turn)
        self._elsewhere.pop(flow, None)
        return turn, before.places

    def answer(self, call: WorkOrder) -> tuple[Turn, int] | None:
        """Take the turn that a call is for, with the terms stored; otherwise like :meth:`take`."""
        key = call.addressee
        flow = _flow(key, call.part)
        turn = self._part(key, call.part)
        if turn is None:
            state = self.store.flow(flow)
            terms = state.terms if state else Terms(limits=Limits(), longest_ms=LEASE_MS)
            taken = self.take(key, call.queue, terms, call.part)
            if taken is None:
                return None
            turn, places = taken
        else:
            places = 1
        turn.lined, turn.looks_at, turn.called_at = True, 0, 0
        # The terms stored there may be older than the parts of the rate.
        turn.unsure = bool(turn.terms.limits.rate_per_s or turn.part)
        return turn, places

    def hold(self, turn: Turn) -> bool:
        """Whether an attempt may begin within the turn; extends it in time."""
        now, outlasts_ms = self.clock.now(), turn.terms.outlasts_ms
        if turn.until - now < outlasts_ms + RENEW_MS and not turn.lost:
            self._extend(turn)
        turn.closing |= turn.lost
        return not turn.lost and turn.until - now >= outlasts_ms + MARGIN_MS

    def _extend(self, turn: Turn) -> None:
        now = self.clock.now()
        until = now + turn.terms.outlasts_ms + LEASE_MS
        try:
            before = self.store.take_turn(turn.key, self._holder, turn.terms, now=now, until=until)
        except Unavailable as error:
            self._failed("turn_not_extended", error, turn.key)
        else:
            turn.lost = before is None
            turn.until = turn.until if turn.lost else until

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
        self._turns[turn.window].remove(turn)
        if not self._turns[turn.window]:
            del self._turns[turn.window]
        now = self.clock.now()
        called_at = None
        if call_ms is not None and not now < turn.called_at <= now + call_ms + HORIZON_MS:
            called_at = now + min(call_ms, MAX_DELAY_MS)
        try:
            self._stand_aside(turn, under_way)
            self._leave_places(turn)
            self.store.give_back(turn.key, self._holder, mark=turn.pace.mark, places=places, called_at=called_at)
            if called_at is not None:
                _remember(self._elsewhere, turn.key, max(called_at, self._elsewhere.get(turn.key, 0)))
                self._call(turn.key, turn.window, turn.queue, called_at - now, to)
            elif call_ms is None and not turn.lost:
                found = self.store.line(turn.key, 1 + len(turn.kept), now=now)
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
        place = self.store.stand_aside(turn.key, orders, self.clock.now() + turn.terms.longest_ms + LEASE_MS)
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
                self.store.step_out(flow, place, self._standing_aside[place])
            except Unavailable as error:
                # Whoever finds them there finds their deliveries done.
                self._failed("place_not_left", error, flow)

    def _leave_places(self, turn: Turn) -> None:
        """Orders from the line that were done leave it; the others stay."""
        for place in turn.shrunk - turn.kept:
            self.store.step_out(turn.key, place, turn.in_hand[place])

    # -- the line

    def line_up(self, key: Key, orders: Sequence[Received], now: int) -> list[int]:
        """Put received orders for a subscriber at the end of its line, or of those of the parts of its rate.

        Returns:
            Parts whose turns the run should take: nobody has them, and no call is on its way.

        Raises:
            Unavailable: Some may not stand there.
        """
        terms = self._terms.get(key)
        parts = terms.limits.parts if terms else 1
        lined: set[int] = set()
        size = min(PLACE_ORDERS, max(KEPT, -(-len(orders) // parts)))
        for number, start in enumerate(range(0, len(orders), size)):
            # One part after the other.
            self._lined += 1
            at = now + number + (self._lined - now - number) % parts
            lined.add(self._stand(key, [each.order for each in orders[start : start + size]], parts, at))
        self.telemetry.count("DeliveriesPutAside", len(orders))
        return [each for each in sorted(lined) if self._is_free(key, each)]

    def _stand(self, key: Key, orders: Sequence[WorkOrder], parts: int, at: int) -> int:
        """Put orders where they belong by their time; returns which part of the rate that is."""
        part = at % parts
        flow, now = _flow(key, part), self.clock.now()
        if now - self._tended.get(flow, 0) >= TENDED_MS:
            self.store.tend(flow, now)
            _remember(self._tended, flow, now)
        self.store.stand(flow, orders, at)
        return part

    def _is_free(self, key: Key, part: int) -> bool:
        """Whether nobody has the turn of a line in which somebody stands now, and no call for it is on its way."""
        turn, flow, now = self._part(key, part), _flow(key, part), self.clock.now()
        if turn is not None:
            turn.lined = True
            return False
        state = self.store.flow(flow)
        if state is not None and state.until > now:
            _remember(self._elsewhere, flow, max(now + LOOK_MS, self._elsewhere.get(flow, 0)))
            return False
        return state is None or state.called_at <= now

    def _part(self, key: Key, part: int) -> Turn | None:
        return next((each for each in self.of(key) if each.part == part), None)

    def look(self, turn: Turn) -> None:
        """Fetch orders from the line, if some could soon begin and it is time."""
        now = self.clock.now()
        wanted = turn.wants - len(turn.waiting) - len(turn.fetched)
        if (wanted <= 0 and not turn.ahead) or turn.closing or now < turn.looks_at:
            return
        places = max(2, wanted // PLACE_ORDERS + 1, wanted // KEPT) if wanted > 0 else 0
        most = len(turn.in_hand) + len(turn.kept) + max(places, turn.ahead)
        try:
            found = self.store.line(turn.key, most, now=now)
        except Unavailable as error:
            self._failed("line_not_read", error, turn.key)
            turn.looks_at = now + LOOK_MS
            return
        new = [each for each in found if each.place not in turn.in_hand and each.place not in turn.kept]
        turn.lined = bool(new)
        turn.looks_at = now if new else now + LOOK_MS
        here = self._without_moved(turn, new)
        if len(here) == len(new) and not (turn.unsure or turn.asking):
            # Nobody stands wrong among those; perhaps behind them.
            turn.ahead = 2 * turn.ahead if len(found) == most and turn.ahead < MOST_AHEAD else 0
        for each in here[:places]:
            turn.in_hand[each.place] = [*each.orders]
            turn.fetched += [
                Received(order=order, sqs_id=each.place, receipt_handle="", received_at=now, place=each.place)
                for order in each.orders
            ]

    def _without_moved(self, turn: Turn, found: Sequence[InLine]) -> list[InLine]:
        """Those that belong where they stand; the others, from before a change of the rate, are moved."""
        parts = turn.terms.limits.parts
        if turn.unsure or turn.asking or (parts == 1 and not turn.part):
            return [*found]
        here: list[InLine] = []
        for each in found:
            at = _time_of(each.place)
            if not turn.astray and (at is None or at % parts == turn.part):
                here.append(each)
            else:
                self._move(turn, each, ())
        return here

    def standing(self, received: Received) -> Turn | None:
        """The turn of the run in whose line an order stands."""
        return next((turn for turn in self.of(received.order.addressee) if received.place in turn.in_hand), None)

    def clear_out(self, turn: Turn, busy: Iterable[Received]) -> None:
        """Move what the run has from the line of a part that there is no more, but for orders that it works on."""
        places = {(each.place, each.order.key) for each in busy}
        for place, orders in [*turn.in_hand.items()]:
            rest = [each for each in orders if (place, each.key) in places]
            going = [each for each in orders if (place, each.key) not in places]
            if not going or place in turn.kept:
                continue
            if self._move(turn, InLine(place=place, orders=tuple(going)), rest) and rest:
                turn.in_hand[place] = rest
            else:
                del turn.in_hand[place]
                turn.shrunk.discard(place)

    def _move(self, turn: Turn, standing: InLine, rest: Sequence[WorkOrder]) -> bool:
        """Move those that stand in a place, but for the rest, to the line of their part, and have its turn taken; they
        stay where they are if that fails.
        """
        parts, at = turn.terms.limits.parts, _time_of(standing.place)
        try:
            part = self._stand(turn.window, standing.orders, parts, self.clock.now() if at is None else at)
            self.store.step_out(turn.key, standing.place, rest)
            if self._is_free(turn.window, part):
                self._call(_flow(turn.window, part), turn.window, turn.queue, 0, self.calls)
        except Unavailable as error:
            # What stands in both lines is found done in one of them.
            self._failed("place_not_moved", error, turn.key)
            turn.kept.add(standing.place)
            return False
        return True

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
            self.store.step_out(turn.key, received.place, ())
        except Unavailable as error:
            # Whoever has the turn next finds the deliveries done.
            self._failed("place_not_left", error, turn.key)
            turn.kept.add(received.place)

    def _call(self, flow: FlowKey, key: Key, queue: str, in_ms: int, to: OrderSink) -> None:
        project, queue_uid, subscriber_id = key
        order = WorkOrder.calling(DeliveryKey(project, queue_uid, "", subscriber_id), queue, flow.part)
        try:
            # A call that comes early waits in its run.
            to.send([(order, in_ms // 1000)])
        except Unavailable as error:
            self._failed("call_not_sent", error, flow)

    def _failed(self, event: str, error: Unavailable, flow: FlowKey) -> None:
        self.telemetry.count("CallsFailed")
        self.telemetry.event(event, error=str(error), project=flow.project, flow=flow.name)


class Callers(Component):
    """Calls for the turns of lines: each minute where nobody works them off, and at once where limits have changed."""

    lines: Lines
    queue: OrderSink  # Where a call goes.
    clock: Clock
    telemetry: Telemetry

    def run(self, remaining_ms: Callable[[], int]) -> int:
        """Tend all lines, as far as the remaining milliseconds allow; returns the number of calls."""
        return sum(self._tend(key, added_at) for key, added_at in _while(remaining_ms, self.lines.tended()))

    def hurry(self, key: Key, queue: str) -> None:
        """A subscriber's limits have changed: call for its turn now if the next attempt is arranged for later.

        Without effect if that fails: the arranged call comes.
        """
        flow, now = _flow(key), self.clock.now()
        try:
            state = self.lines.flow(flow)
            # Whoever has the turn may be about to arrange a call under the former terms.
            if state is not None and (state.until > now or state.called_at > now + HORIZON_MS):
                project, queue_uid, subscriber_id = key
                call = WorkOrder.calling(DeliveryKey(project, queue_uid, "", subscriber_id), queue)
                self.queue.send([(call, HURRY_S)])
        except Unavailable as error:
            self.telemetry.count("CallsFailed")
            self.telemetry.event("turn_not_hurried", error=str(error), project=flow.project, flow=flow.name)

    def _tend(self, key: FlowKey, added_at: int) -> bool:
        now = self.clock.now()
        state = self.lines.flow(key)
        if state is not None and (state.until > now or now < state.called_at + LOST_MS):
            return False
        first = self.lines.line(key, 1, now=now)
        if not first:
            if now - added_at > UNTENDED_MS and not self.lines.line(key, 1):
                self.lines.untend(key, added_at)
            return False
        if state is None or self.lines.call(key, now, now):
            order = first[0].orders[0]
            self.queue.send([(WorkOrder.calling(order.key, order.queue, key.part), 0)])
            self.telemetry.count("TurnsCalled")
            return True
        return False


def _while(remaining_ms: Callable[[], int], lines: Iterable[tuple[FlowKey, int]]) -> Iterable[tuple[FlowKey, int]]:
    for each in lines:
        if remaining_ms() <= AGAIN_MS:
            return
        yield each


def _flow(key: Key, part: int = 0) -> FlowKey:
    return FlowKey.of_subscriber(*key, part)


def _time_of(place: str) -> int | None:
    """When somebody stepped into the line; None of one who stands aside."""
    time = place.partition("#")[0]
    return int(time) if time.isdigit() else None


def _remember(known: OrderedDict[_K, _V], key: _K, value: _V) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > KNOWN:
        known.popitem(last=False)
