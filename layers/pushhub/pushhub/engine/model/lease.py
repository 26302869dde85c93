"""A lease that a run of push has at a subscriber with limits, or in the slow lane at any. Pure.

Only the run that has a subscriber's lease begins attempts at it, so the limits are kept in its memory
(:class:`~pushhub.engine.model.flow.Pace`). What has to wait is in the subscriber's *backlog*; the run reads orders from
there as it needs them, and removes them once they are done. A rate above
:data:`~pushhub.engine.model.flow.PART_PER_S` is divided into parts, each with a lease and a backlog of its own.

A lease changes by its methods only. What is stored of it is changed by :class:`pushhub.engine.flow.leases.Leases`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pushhub.engine.model.flow import BURST_MS, BacklogEntry, FlowKey, Pace, Terms
from pushhub.engine.model.received import Loaded, Received

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Mapping

    from pushhub.engine.model.keys import Addressee, DeliveryKey
    from pushhub.engine.model.work import WorkOrder

HORIZON_MS = 2_000
"""A run waits this long for the next attempt of a rate; for a later one it sends a wake-up."""

KEPT_MS = 10_000
"""A run keeps as many of the orders that it received as the rate allows in this time; the others go to the backlog."""

KEPT = 10
"""How many orders it keeps otherwise, or for each of so many concurrent attempts."""

MOST_IN_HAND = 200
"""How many orders of a subscriber it keeps at most."""

AGAIN_MS = 10_000
"""How soon what could not be done for an error of our own is tried again."""

BEHIND_MS = 1_000
"""A run that has several parts of a rate leaves one to others that has been behind its time for so long."""

CROWDED_MS = 15_000
"""How soon another run is woken for a slow subscriber whose project has no place left in this one."""

AHEAD, MOST_AHEAD = 20, 1_000
"""So many entries are looked at ahead after the number of a rate's parts has changed, and at most so many."""

LOOK_MS = 1_000
"""How long after a backlog was empty it is looked at again."""


@dataclass(frozen=True, slots=True)
class Release:
    """A lease is to be given back.

    Attributes:
        wake_up_ms: In how many milliseconds another run is woken; None if nothing waits.
        to_others: Whether the run leaves it to others for a while, as it has more parts of the rate than it can keep
            up with.
    """

    wake_up_ms: int | None
    to_others: bool = False


@dataclass
class Lease:
    """A lease that the run has. Times are epoch milliseconds.

    Attributes:
        addressee: The subscriber.
        pace: When attempts may begin.
        until: Until when the run has it.
        woken_at: When a wake-up that is on its way arrives.
        looks_at: When the backlog is looked at.
        ahead: How many entries are looked at ahead, as orders of other parts of the rate may be among them; 0 if none
            are.
        late_since: Since when it has been behind its time, with orders waiting; 0 while it is not.
        waiting: Orders that wait for their attempt.
        fetched: Orders from the backlog whose deliveries were not read yet.
        duplicates: Orders from the backlog for deliveries whose first order the run has in hand.
        behind: The same, but to be looked at once the run is done with the first, if they are still there.
        entries: Orders from the backlog that are not done yet, by place.
        shrunk: Places some of whose orders are done.
        kept: Places that stay as they are, because of an error.
        unsure: Whether the terms may have changed: a first order finds out.
        asking: Whether that order is on its way.
        backlogged: Whether orders may be in the backlog.
        closing: Whether no attempt begins any more.
        lost: Whether another run has it.
    """

    key: FlowKey
    addressee: Addressee
    queue: str
    terms: Terms
    pace: Pace
    until: int
    woken_at: int
    looks_at: int
    ahead: int = 0
    late_since: int = 0
    waiting: deque[Loaded] = field(default_factory=deque)
    fetched: deque[Received] = field(default_factory=deque)
    duplicates: list[Received] = field(default_factory=list)
    behind: list[Received] = field(default_factory=list)
    entries: dict[str, list[WorkOrder]] = field(default_factory=dict)
    shrunk: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    unsure: bool = False
    asking: bool = False
    backlogged: bool = False
    closing: bool = False
    lost: bool = False

    # -- what it says

    @property
    def part(self) -> int:
        """Which part of the subscriber's rate it is for."""
        return self.key.part

    @property
    def superfluous(self) -> bool:
        """Whether the rate has no such part any more: nothing begins, and what is in its backlog is moved."""
        return self.part >= self.terms.limits.parts and not (self.unsure or self.asking)

    @property
    def accepts(self) -> bool:
        """Whether another received order may wait in memory rather than in the backlog."""
        open_ = not (self.closing or self.superfluous or self.backlogged)
        return open_ and len(self.waiting) < self._keeps

    @property
    def begins(self) -> bool:
        """Whether attempts may begin, as soon as its pace and the threads allow it."""
        return bool(self.waiting) and not self.closing and not self.superfluous

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
    def lacks(self) -> int:
        """How many orders more should be ready."""
        return max(0, self.wants - len(self.waiting) - len(self.fetched))

    @property
    def reads_on(self) -> bool:
        """Whether the backlog is to be read, as soon as it is time."""
        return not self.closing and bool(self.lacks or self.ahead)

    @property
    def _keeps(self) -> int:
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

    @property
    def idle(self) -> bool:
        """Whether nothing is in progress and nothing waits."""
        busy = self.pace.under_way or self.waiting or self.fetched or self.duplicates or self.behind
        return not (busy or self.backlogged)

    @property
    def has_backlog(self) -> bool:
        """Whether something may be left in the backlog when it is given back."""
        return bool(self.backlogged or self.entries or self.kept)

    def paced(self, now: int) -> bool:
        """Whether its limits allow no further attempt now."""
        return self.pace.full or bool(self.pace.wait_ms(now))

    def wake_in_ms(self, now: int, at_most_ms: int) -> int | None:
        """In how many milliseconds something is to be done for it; None if only the end of an attempt can change
        something.
        """
        if self.waiting and not self.pace.full:
            return self.pace.wait_ms(now) or at_most_ms
        # With enough ready, the backlog is not read before an attempt has ended.
        if self.backlogged and self.reads_on:
            return max(1, self.looks_at - now)
        return None

    # -- attempts

    def add(self, loaded: Loaded) -> None:
        """An order waits for its attempt."""
        self.waiting.append(loaded)

    def take_back(self, loaded: Loaded) -> bool:
        """An order that is in this backlog comes back unattempted: it waits here, and nowhere else. In the backlog of
        another part, somebody else might attempt it meanwhile.

        Returns:
            Whether it waits in memory; otherwise the run has it in hand no longer.
        """
        if self.accepts:
            self.waiting.append(loaded)
            return True
        if not self.superfluous:
            self.fetched.appendleft(loaded.received)
        return False

    def begin(self, now: int) -> Loaded:
        """The next attempt begins."""
        self.pace.begin(now)
        return self.waiting.popleft()

    def ask(self) -> Loaded:
        """The next order finds out the terms: it is not attempted, but comes back with those of now."""
        self.unsure, self.asking = False, True
        return self.waiting.popleft()

    def asked(self) -> None:
        """The order that finds out the terms has come back."""
        self.asking = False

    def end(self, *, attempted: bool) -> None:
        """An attempt is over; ``attempted``: whether a request was made."""
        self.pace.end(attempted=attempted)

    def close(self) -> None:
        """No attempt begins any more."""
        self.closing = True

    def withdraw(self) -> list[Received]:
        """What waits for an attempt, waits here no longer. Returns those that are not in the backlog as well."""
        waiting = [each.received for each in self.waiting]
        self.waiting.clear()
        self.fetched.clear()
        return waiting

    # -- terms and time

    def change(self, terms: Terms, now: int) -> None:
        """It goes on under other terms."""
        self.terms, self.unsure = terms, False
        self.ahead = AHEAD if terms.limits.parts > 1 else 0
        self.pace.change(terms.limits.of_a_part, now)

    def extend(self, until: int) -> None:
        """The run has it for longer."""
        self.until = until

    def lose(self) -> None:
        """Another run has it."""
        self.lost = self.closing = True

    def answer(self) -> None:
        """A wake-up for it has come: something is in the backlog, and the terms stored with it may be older than the
        parts of the rate.
        """
        self.expect_backlog()
        self.woken_at = 0
        self.unsure = bool(self.terms.limits.rate_per_s or self.part)

    def expect_backlog(self) -> None:
        """Something was put into the backlog, which is looked at now."""
        self.backlogged, self.looks_at = True, 0

    def note_backlog(self) -> None:
        """Something was put into the backlog."""
        self.backlogged = True

    def looked(self, *, found: bool, now: int) -> None:
        """The backlog was looked at, and there was something new or not; if not, it is looked at again later."""
        self.backlogged, self.looks_at = found, now if found else now + LOOK_MS

    def look_later(self, now: int) -> None:
        """The backlog could not be read now."""
        self.looks_at = now + LOOK_MS

    def look_further(self, *, more: bool) -> None:
        """Nothing of other parts was among the entries that were looked at; perhaps behind them, if there are more."""
        self.ahead = 2 * self.ahead if more and self.ahead < MOST_AHEAD else 0

    def go_on_from(self, before: Lease) -> None:
        """It was taken again at once, as something was put into the backlog while it was given back."""
        self.expect_backlog()
        self.kept = before.kept

    def release(self, now: int, *, counts: bool, has_others: bool, crowded: Callable[[], bool]) -> Release | None:
        """Whether it is time to give it back; to be asked several times a second.

        Args:
            counts: Whether attempts in progress count like a limit, so that it must be kept until they end.
            has_others: Whether the run has other parts of the rate.
            crowded: Whether the subscriber is slow, and others of its project have all places.
        """
        release: Release | None = None
        if self.closing:
            release = None if counts and self.pace.under_way and not self.lost else Release(0)
        elif self._is_behind(now) and has_others:
            release = Release(0, to_others=True)
        elif self.pace.under_way:
            release = None
        elif self.idle and now < self.looks_at:
            release = Release(AGAIN_MS if self.kept else None)
        elif self.waiting and self._waits_long(now):
            release = Release(self.pace.wait_ms(now))
        elif self.waiting and crowded():
            release = Release(CROWDED_MS)
        return release

    def _is_behind(self, now: int) -> bool:
        """Whether it has been behind its time for a while although orders wait."""
        late = bool(self.waiting) and not self.closing and self.pace.is_late(now)
        self.late_since = (self.late_since or now) if late else 0
        return late and now - self.late_since >= BEHIND_MS

    def _waits_long(self, now: int) -> bool:
        """Whether the next attempt is so far away that another run should be woken for it."""
        return not (self.unsure or self.asking) and self.pace.wait_ms(now) > HORIZON_MS

    # -- orders from the backlog

    def fetch(self, entries: Iterable[BacklogEntry], now: int) -> None:
        """Entries of the backlog were read."""
        for each in entries:
            self.entries[each.place] = [*each.orders]
            self.fetched += [
                Received(order=order, sqs_id=each.place, receipt_handle="", received_at=now, place=each.place)
                for order in each.orders
            ]

    def choose(self, in_hand: Mapping[DeliveryKey, bool], held: Container[str]) -> list[Received]:
        """Fetched orders whose attempts may soon begin, one for each delivery; their deliveries are to be read.

        Args:
            in_hand: Deliveries that the run has in hand, each with whether for a manual try only.
            held: Places of orders that the run has from a lease that it gave back. Such an order is where it was until
                it is done: if the run cannot put it into the backlog again, that place is all there is of it.
        """
        chosen: list[Received] = []
        while self.fetched and len(self.waiting) + len(chosen) < self.wants:
            each = self.fetched.popleft()
            same = [other.order.manual for other in chosen if other.order.key == each.order.key]
            if each.order.key in in_hand:
                same.append(in_hand[each.order.key])
            if not same:
                chosen.append(each)
            elif each.order.manual or all(same) or (each.place in held and self.times_in_backlog(each) == 1):
                # A manual try does not make the automatic ones, and may be asked for after the one in hand began.
                self.behind.append(each)
            else:
                self.duplicates.append(each)
        return chosen

    def pop_duplicates(self, in_hand: Container[DeliveryKey]) -> list[Received]:
        """Duplicates whose first orders the run is done with: those are settled, or wait elsewhere. Not before: the
        run that had the lease earlier may have taken the first one's place away.
        """
        over = [each for each in self.duplicates if each.order.key not in in_hand]
        self.duplicates = [each for each in self.duplicates if each.order.key in in_hand]
        return over

    def pop_duplicates_of(self, key: DeliveryKey) -> list[Received]:
        """The duplicates of one delivery."""
        found = [each for each in self.duplicates if each.order.key == key]
        self.duplicates = [each for each in self.duplicates if each.order.key != key]
        return found

    def look_behind(self, in_hand: Container[DeliveryKey]) -> None:
        """Those behind a first order that the run is done with are looked at, if they are still there."""
        behind, self.behind = self.behind, []
        for each in behind:
            if each.order.key in in_hand:
                self.behind.append(each)
            elif self.times_in_backlog(each) and not self.superfluous:
                self.fetched.append(each)

    def look_at_duplicates(self, key: DeliveryKey) -> None:
        """The first order for a delivery waits elsewhere, from where its duplicate may have come: that is looked at."""
        self.behind += self.pop_duplicates_of(key)

    def times_in_backlog(self, received: Received) -> int:
        """How often an order is in its place, as far as the run has not changed that or left it as it is."""
        return 0 if received.place in self.kept else self.entries.get(received.place, []).count(received.order)

    def keep(self, place: str) -> None:
        """An entry stays as it is, because of an error."""
        self.kept.add(place)

    def strike(self, received: Received) -> bool:
        """An order from the backlog is done. Where the same order is there twice, as after a call that was repeated,
        the other one stays.

        Returns:
            Whether its entry has no orders left and is to be removed.
        """
        orders = self.entries.get(received.place)
        if orders is None:
            return False
        if received.order in orders:
            orders.remove(received.order)
        self.shrunk.add(received.place)
        if orders or received.place in self.kept:
            return False
        self.forget(received.place)
        return True

    def set_aside(self, attempted: Iterable[Received]) -> list[Received]:
        """Orders whose attempts are in progress while it is given back leave their entries; returns those that were
        there.
        """
        aside: list[Received] = []
        for each in attempted:
            orders = self.entries.get(each.place, [])
            if each.order in orders and each.place not in self.kept:
                orders.remove(each.order)
                self.shrunk.add(each.place)
                aside.append(each)
        return aside

    def movable(self, busy: Collection[tuple[str, DeliveryKey]]) -> list[tuple[BacklogEntry, list[WorkOrder]]]:
        """Entries that are to be moved to other parts, but for orders that the run works on; each with those."""
        found: list[tuple[BacklogEntry, list[WorkOrder]]] = []
        for place, orders in self.entries.items():
            going = tuple(each for each in orders if (place, each.key) not in busy)
            if going and place not in self.kept:
                rest = [each for each in orders if (place, each.key) in busy]
                found.append((BacklogEntry(place=place, orders=going), rest))
        return found

    def moved(self, place: str, rest: list[WorkOrder]) -> None:
        """An entry was moved to another part, but for the rest."""
        if rest:
            self.entries[place] = rest
        else:
            self.forget(place)

    def forget(self, place: str) -> None:
        """The run has nothing of an entry any more."""
        self.entries.pop(place, None)
        self.shrunk.discard(place)
