"""One run of push: which attempt begins when, who waits where, and what comes next for each. Pure.

A run is a generator of actions (:mod:`pushhub.engine.model.actions`). Whoever drives it does each action and sends back
what came of it, having told the time (:meth:`Run.tick`); the run asks nobody else, so a test can play any part.

Waiting for an answer costs a thread, not a run of the function. While a run waits for a slow endpoint, it receives and
processes further orders itself, as long as they cannot outlast it. What comes next for a delivery is arranged soon
after its attempt rather than at the end of the batch: one slow endpoint must not hold up its neighbours' retries.

No subscriber gets more threads than its answers have earned (:mod:`pushhub.engine.model.concurrency`). Slow first
attempts and retries move to the slow lane before anything is read for them. Orders for subscribers with limits, and all
in the slow lane, wait for a lease (:mod:`pushhub.engine.model.lease`). ``docs/flow-control.md`` has the reasons.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pushhub.engine.model.actions import (
    Action,
    AddToBacklog,
    AnswerWakeUp,
    AnyUnderWay,
    Arrange,
    Arranged,
    Await,
    Begin,
    ClearOut,
    Completions,
    Count,
    Delete,
    GiveBack,
    Glance,
    Granted,
    Hide,
    Hold,
    Keep,
    ListSlow,
    Look,
    Read,
    ReadSlowList,
    Receive,
    Send,
    Settle,
    SettleAside,
    SettleDuplicates,
    Sleep,
    States,
    Take,
    TellFault,
    To,
    ToSlowLane,
)
from pushhub.engine.model.backoff import MAX_DELAY_MS
from pushhub.engine.model.concurrency import SHARE_OF_A_PROJECT
from pushhub.engine.model.flow import SHORT_ATTEMPT_MS, Limits, Terms
from pushhub.engine.model.following import Ended, Follow, Following, Wait, doubled, unsure
from pushhub.engine.model.lease import HORIZON_MS, Lease, Release
from pushhub.engine.model.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pushhub.engine.model.concurrency import ConcurrencyLimits
    from pushhub.engine.model.keys import Addressee, DeliveryKey, MessageKey
    from pushhub.engine.model.leases import KnownLeases
    from pushhub.engine.model.received import Loaded, Received
    from pushhub.engine.model.work import WorkOrder

_T = TypeVar("_T")
Steps = Generator[Action[Any], Any, _T]

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


class Lane(StrEnum):
    """Where a run is seen from the slow lane."""

    NONE = "none"
    """Its orders have no slow lane."""
    BESIDE = "beside"
    """It is in a hurry: orders for slow subscribers belong to the slow lane."""
    SLOW = "slow"
    """It works on the orders of the slow lane."""


class OrderVerdict(StrEnum):
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
class Running:
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


class Run:
    """One run.

    Args:
        batch: What it begins with; a delivery that occurs twice is attempted once.
        lane: Where it is seen from the slow lane.
        longest_ms: How long an attempt may take here, including its follow-up. Runs are long if that is more than
            :data:`~pushhub.engine.model.flow.SHORT_ATTEMPT_MS`.
        limits: Attempts in progress; it outlives the run.
        leases: Leases here and elsewhere; it outlives the run.
        listed: Who is listed as slow, and until when.
        choose: Chooses one of several parts of a rate, at random.

    Attributes:
        ledger: What it has in hand.
        running: Attempts in progress, by number.
        ended: Orders that are done, and what comes next for each.
        now: The time, epoch milliseconds.
        remaining_ms: Milliseconds it has left.
    """

    def __init__(
        self,
        batch: Sequence[Received],
        *,
        lane: Lane,
        longest_ms: int,
        limits: ConcurrencyLimits,
        leases: KnownLeases,
        listed: Mapping[Addressee, int],
        choose: Callable[[Sequence[int]], int],
    ) -> None:
        self.ledger = Ledger(batch)
        self.running: dict[int, Running] = {}
        self.ended: list[Ended] = []
        self.now = self.remaining_ms = 0
        self._batch = batch
        self._lane = lane
        self._longest_ms = longest_ms
        self._limits = limits
        self._leases = leases
        self._listed = listed
        self._choose = choose
        self._no_limits = Terms(limits=Limits(), longest_ms=longest_ms)
        self._begun = 0
        self._receiving = False
        self._refills = True
        self._looks_at = 0

    def tick(self, now: int, remaining_ms: int) -> None:
        """Time has passed. To be called before each step."""
        self.now, self.remaining_ms = now, remaining_ms

    def steps(self) -> Steps[None]:
        """All that is to be done, from the first order to the last."""
        yield from self._hide()
        yield from self._take_in(self._batch)
        while self.busy:
            yield from self._hide()
            yield from self._tend_leases()
            yield from self._begin()
            yield from self._refill()
            yield from self._finish()

    @property
    def busy(self) -> bool:
        """Whether anything is left to do."""
        return bool(self.ledger.waiting or self.running or self.ended or self._receiving or self._leases.here)

    @property
    def orders(self) -> list[Received]:
        """Orders that wait for a thread, have one, or are done and not arranged yet."""
        waiting = [each.received for each in self.ledger.waiting]
        attempted = [each.received for each in self.running.values()]
        return [*waiting, *(each.received for each in self.ended), *attempted]

    @property
    def _is_long(self) -> bool:
        """Whether it lasts for minutes."""
        return self._longest_ms > SHORT_ATTEMPT_MS

    @property
    def _in_a_hurry(self) -> bool:
        return self._lane is Lane.BESIDE

    @property
    def _is_slow_lane(self) -> bool:
        return self._lane is Lane.SLOW

    # -- taking orders in hand

    def _take_in(self, batch: Sequence[Received]) -> Steps[None]:
        """Add orders to the run."""
        if self._in_a_hurry:
            self._listed = yield from ReadSlowList(len(batch))
            if not self._is_long:
                batch = yield from self._without_slow(batch)
        yield from self._answer([each for each in batch if each.order.wakes])
        batch = yield from self._without_backlogged([each for each in batch if not each.order.wakes])
        batch = yield from self._without_begun(batch)
        if not batch:
            return
        now = self.now
        unread = {each.order.key for each in batch if not each.is_fresh(now)}
        keys = [key for key in self.ledger.unknown(batch) if key in unread]
        states = States({}, {}, {}, now)
        if keys:
            read = yield from Read(keys, self._messages_for(batch), len(batch))
            if read is None:
                yield from self._keep_unsure(batch)
                return
            states = read
            if states.damaged:
                # Each waits for somebody to mend it, and touches no other.
                aside = [each for each in batch if each.order.key in states.damaged]
                for each in aside:
                    yield from TellFault(each, states.damaged[each.order.key])
                yield from self._keep([unsure(each, self.now, MAX_DELAY_MS) for each in aside])
                batch = [each for each in batch if each.order.key not in states.damaged]
        behind = self.ledger.admit(batch, states, self._in_backlog())
        if behind:
            now = self.now
            yield from self._keep(
                [Wait(each, now + (MANUAL_ASIDE_MS if each.order.manual else ASIDE_MS)) for each in behind]
            )

    def _messages_for(self, orders: Sequence[Received]) -> list[MessageKey]:
        """The messages that orders do not carry, and that are worth reading with their deliveries: not under a rate or
        at a slow subscriber, where most attempts begin so much later that they have to read them again.
        """
        bare = [each.order for each in orders if each.order.message is None]
        return [*dict.fromkeys(each.key.message for each in bare if self._begins_soon(each.addressee))]

    def _begins_soon(self, addressee: Addressee) -> bool:
        terms = self._leases.terms(addressee)
        return not (terms and terms.limits.rate_per_s) and not self._is_slow(addressee, self.now)

    def _in_backlog(self) -> set[DeliveryKey]:
        """Deliveries whose orders the run only has from a backlog."""
        waiting = [*self.ledger.waiting, *(each for lease in self._leases.here for each in lease.waiting)]
        return {each.received.order.key for each in waiting if each.received.place}

    def _without_slow(self, batch: Sequence[Received]) -> Steps[Sequence[Received]]:
        """Orders other than those that would hold up others, which move to the slow lane."""
        now = self.now
        slow = [self._holds_up(each.order, now) for each in batch]
        yield from self._to_slow_lane([each for each, moves in zip(batch, slow, strict=True) if moves])
        return [each for each, moves in zip(batch, slow, strict=True) if not moves]

    def _without_backlogged(self, batch: Sequence[Received]) -> Steps[Sequence[Received]]:
        """Orders other than those that have to wait in a backlog for certain; nothing is read for those."""
        left: list[Received] = []
        backlogged: defaultdict[Addressee, list[Received]] = defaultdict(list)
        for each in batch:
            addressee = each.order.addressee
            leases = self._leases.of(addressee)
            waits = (
                all(lease.backlogged for lease in leases) if leases else self._leases.is_elsewhere(addressee, self.now)
            )
            if waits and self._needed_terms(addressee, polled=False):
                backlogged[addressee].append(each)
            else:
                left.append(each)
        for addressee, orders in backlogged.items():
            yield from self._to_backlog(addressee, orders)
        return left

    def _without_begun(self, batch: Sequence[Received]) -> Steps[Sequence[Received]]:
        """Orders without the stream's for what ingest's order has begun, which are nearly all of those: seconds later,
        a read at half the price shows that. What it does not show is looked at as everything else is.
        """
        seconds = [each.order.key for each in batch if each.may_be_second]
        if not seconds:
            return batch
        seen = yield from Glance([*dict.fromkeys(seconds)])
        begun = {key for key, stored in seen.items() if stored.begun}
        return [each for each in batch if not (each.may_be_second and each.order.key in begun)]

    # -- beginning attempts

    def _begin(self) -> Steps[None]:
        """Begin every attempt for which there is a thread, and a lease if it needs one.

        No project has more than its share of the threads while others have orders in the run.
        """
        leased = {lease.key.project for lease in self._leases.here if lease.waiting}
        projects = len(self._projects() | leased)
        several, alone = self._in_a_hurry and projects > 1, self._is_slow_lane and projects == 1
        if several:
            # Free threads go to the one with the fewest.
            self.ledger.waiting.sort(key=lambda each: self._limits.held(each.received.order.key.project))
        slow: list[Received] = []
        backlogged: defaultdict[Addressee, list[Received]] = defaultdict(list)
        waiting, self.ledger.waiting = self.ledger.waiting, []
        for loaded in waiting:
            match self.verdict(loaded, several=several):
                case OrderVerdict.BEGIN:
                    yield from self._submit(loaded)
                case OrderVerdict.WAIT:
                    self.ledger.waiting.append(loaded)
                case OrderVerdict.SLOW_LANE:
                    slow.append(loaded.received)
                case OrderVerdict.PUT_ASIDE:
                    yield from self._put_aside(loaded)
                case OrderVerdict.TAKE_BACK:
                    self._take_back(loaded)
                case OrderVerdict.LEASE:
                    if not (yield from self._waits_for_lease(loaded)):
                        backlogged[loaded.received.order.addressee].append(loaded.received)
        for addressee, orders in backlogged.items():
            yield from self._to_backlog(addressee, orders)
            yield from self._leave(orders)
        if slow:
            yield from self._to_slow_lane(slow)
            yield from self._leave(slow)
        for lease in self._leases.here:
            yield from self._begin_leased(lease, several=several, alone=alone)

    def _projects(self) -> set[str]:
        """Projects with orders that wait for a thread or have one."""
        waiting = {each.received.order.key.project for each in self.ledger.waiting}
        return waiting | {each.addressee[0] for each in self.running.values()}

    def verdict(self, loaded: Loaded, *, several: bool) -> OrderVerdict:
        """What becomes of an order that waits for a thread.

        Args:
            loaded: The order, with its delivery.
            several: Whether several projects share the threads.
        """
        received, stored = loaded.received, loaded.stored
        addressee = received.order.addressee
        polled = stored is not None and stored.update_url is not None
        if self._in_a_hurry and not polled and self._holds_up(received.order, self.now):
            return OrderVerdict.SLOW_LANE
        if self._needed_terms(addressee, polled=polled):
            return OrderVerdict.TAKE_BACK if self._leases.with_entry_of(received) else OrderVerdict.LEASE
        if self._is_left_to_itself(addressee):
            return OrderVerdict.PUT_ASIDE
        return OrderVerdict.BEGIN if self._has_room(addressee, several=several) else OrderVerdict.WAIT

    def _lists(self, addressee: Addressee, now: int) -> bool:
        """Whether a subscriber was on the list of slow ones when that was last read."""
        return self._lane is not Lane.NONE and self._listed.get(addressee, 0) > now

    def _is_slow(self, addressee: Addressee, now: int) -> bool:
        """Whether a subscriber is slow, as far as anybody knows."""
        return self._limits.slow(addressee, now) or self._lists(addressee, now)

    def _holds_up(self, order: WorkOrder, now: int) -> bool:
        """Whether an order would hold up others."""
        addressee = order.addressee
        leased = bool(self._leases.of(addressee))
        return self._lists(addressee, now) or self._limits.holds_up(addressee, now, leased=leased)

    def _is_left_to_itself(self, addressee: Addressee) -> bool:
        """Whether a subscriber is slow and may not be asked now, where it has no slow lane."""
        if not self._limits.slow(addressee, self.now):
            return False
        attempts = 2 if self._is_long else 1
        return self.remaining_ms < attempts * self._longest_ms or not self._limits.admits(addressee, self.now)

    def _has_room(self, addressee: Addressee, *, several: bool, leased: bool = False, alone: bool = False) -> bool:
        """Whether there is a thread for another attempt at a subscriber."""
        if several and self._limits.held(addressee[0]) >= SHARE_OF_A_PROJECT:
            return False
        running = len(self.running)
        spare_threads = running < AT_ONCE // 2
        return running < AT_ONCE and self._limits.admits(
            addressee, self.now, leased=leased, alone=alone, spare_threads=spare_threads
        )

    def _submit(self, loaded: Loaded, lease: Lease | None = None) -> Steps[None]:
        """Begin an attempt."""
        self._limits.begin(loaded.received.order.addressee, self.now)
        self._begun += 1
        self.running[self._begun] = Running(loaded, self.now, lease)
        yield from Begin(self._begun, loaded, lease)

    def _put_aside(self, loaded: Loaded) -> Steps[None]:
        """An order waits like a retry, without an attempt."""
        received, stored = loaded.received, loaded.stored
        due_at = self.now + doubled(ASIDE_MS, received, MOST_ASIDE_MS)
        follow = Follow.LATER if stored is None or stored.update_url is None else Follow.POLL
        self.ended.append(Ended(received, Following(follow, due_at)))
        yield from Count("DeliveriesPutAside", 1)

    def _to_slow_lane(self, orders: Sequence[Received]) -> Steps[None]:
        """Move orders to the slow lane.

        They are packed again, and never stay in the SQS message they came in: another order of that message may be in
        progress.
        """
        if not orders:
            return
        # An order received again may be the one that changed its delivery, so from here on it is for the current state.
        bare = [each.order if each.receive_count == 1 else each.order.for_any_state for each in orders]
        if not (yield from ToSlowLane(bare)):
            yield from self._keep_unsure(orders)
        yield from Count("DeliveriesPutAside", len(bare))

    # -- leases

    def _needed_terms(self, addressee: Addressee, *, polled: bool) -> Terms | None:
        """The terms of a subscriber at which attempts need a lease; None if they need none."""
        return self._leases.terms(addressee) or (self._no_limits if self._is_slow_lane and not polled else None)

    def _take_back(self, loaded: Loaded) -> None:
        """An order goes back to the lease in whose backlog it is."""
        lease = self._leases.with_entry_of(loaded.received)
        if lease is not None and not lease.take_back(loaded):
            self.ledger.release(loaded.received.order.key)

    def _waits_for_lease(self, loaded: Loaded) -> Steps[bool]:
        """Whether an order waits in this run, rather than in the backlog, because the run has the lease."""
        lease = yield from self._lease_for(loaded.received)
        if lease is None or not lease.accepts:
            return False
        lease.add(loaded)
        return True

    def _lease_for(self, received: Received) -> Steps[Lease | None]:
        """The lease at an order's subscriber, of the part of its rate for which the fewest wait; None if the run may
        have none.
        """
        addressee = received.order.addressee
        terms = self._needed_terms(addressee, polled=False) or self._no_limits
        leases = self._leases.of(addressee)
        lease = min(leases, key=lambda each: (not each.accepts, len(each.waiting)), default=None)
        if lease is not None and not lease.has_enough:
            return lease
        free = self._leases.free_parts(addressee, terms, self.now)
        if not free or self._is_over_for(terms):
            return lease
        return (yield from self._take_lease(received.order, terms, self._choose(free))) or lease

    def _is_over_for(self, terms: Terms) -> bool:
        """Whether the run begins no attempts under some terms: it may end before them, or is too short for any."""
        return self.remaining_ms <= terms.longest_ms or terms.longest_ms > self._longest_ms

    def _take_lease(self, order: WorkOrder, terms: Terms, part: int) -> Steps[Lease | None]:
        """Take the lease at an order's subscriber, unless somebody has it."""
        return self._granted((yield from Take(order.addressee, order.queue, terms, part, order.identity)))

    def _granted(self, granted: Granted | None) -> Lease | None:
        """Remember how many concurrent attempts a subscriber has earned whose lease was taken."""
        lease, places = granted or Granted(None)
        if lease is None:
            return None
        if places:
            self._limits.grant(lease.addressee, places, self.now)
        elif not lease.part:
            self._limits.meet(lease.addressee, self.now)
        return lease

    def _answer(self, wake_ups: Sequence[Received]) -> Steps[None]:
        """Take the leases that the run is woken for; a wake-up for a lease that somebody has is void."""
        for each in wake_ups:
            if self._leases.is_left(each.order, self.now) and (yield from Send(each.order, 1, To.RETRY)):
                continue
            granted = yield from AnswerWakeUp(each.order)
            if granted is None:
                yield from self._keep_unsure([each])
            else:
                self._granted(granted)

    def _to_backlog(self, addressee: Addressee, orders: Sequence[Received]) -> Steps[None]:
        """Put orders into their subscriber's backlog, or those of its rate's parts; take the leases that nobody has."""
        free = yield from AddToBacklog(addressee, orders)
        if free is None:
            yield from self._keep_unsure(orders)
            return
        for part in free:
            terms = self._needed_terms(addressee, polled=False) or self._no_limits
            if lease := (yield from self._take_lease(orders[0].order, terms, part)):
                lease.expect_backlog()

    def _leave(self, orders: Sequence[Received]) -> Steps[None]:
        """The run is done with orders that wait elsewhere now."""
        for each in orders:
            self.ledger.release(each.order.key)
        self.ledger.settle(orders)
        yield from SettleAside(orders)
        yield from self._delete_finished()

    def _begin_leased(self, lease: Lease, *, several: bool, alone: bool) -> Steps[None]:
        """Begin what may begin under a lease that the run has."""
        addressee = lease.addressee
        while lease.begins:
            now = self.now
            if self._is_over_for(lease.terms) or (self._in_a_hurry and self._is_slow(addressee, now)):
                lease.close()
            elif lease.unsure:
                yield from self._submit(lease.ask())
            elif (
                lease.paced(now)
                or not self._has_room(addressee, several=several, leased=True, alone=alone)
                or not (yield from Hold(lease))
            ):
                return
            else:
                yield from self._submit(lease.begin(now), lease)

    def _tend_leases(self) -> Steps[None]:
        """Fetch orders from the backlogs of the run's leases, and give back those that it does not need any more."""
        for lease in self._leases.here:
            now = self.now
            if self._is_over_for(lease.terms):
                lease.close()
            if not lease.closing:
                yield from self._fetch(lease)
            release = lease.release(
                now,
                # How many a slow one may have at a time counts like a limit.
                counts=self._is_slow_lane or lease.terms.limits.concurrency is not None,
                has_others=len(self._leases.of(lease.addressee)) > 1,
                crowded=partial(self._limits.crowded, lease.addressee, now),
            )
            if release is not None and any(each.received.place in lease.entries for each in self.ended):
                # What is done leaves the backlog before anybody looks into it under the next lease.
                yield from self._flush()
            elif release is not None:
                yield from self._give_back(lease, release)
            elif lease.closing:
                yield from Hold(lease)

    def _fetch(self, lease: Lease) -> Steps[None]:
        """Have as many orders from the backlog ready as may soon begin."""
        yield from Hold(lease)
        if lease.superfluous:
            yield from self._clear_out(lease)
        yield from Look(lease)
        yield from SettleDuplicates(lease, self.ledger.in_hand)
        chosen = lease.choose(self.ledger.in_hand, {each.place for each in self.orders})
        if not chosen:
            return
        states = yield from Read([each.order.key for each in chosen], self._messages_for(chosen), len(chosen))
        if states is None:
            for each in chosen:
                yield from Settle(lease, each, True)
            return
        self.ledger.hold(chosen)
        for each in chosen:
            lease.add(states.loaded(each))

    def _give_back(self, lease: Lease, release: Release) -> Steps[None]:
        """Give a lease back; what waits for it goes to the backlog."""
        if release.to_others:
            self._leases.leave_to_others(lease, self.now)
        yield from self._withdraw(lease)
        to = To.POLL if lease.terms.longest_ms > SHORT_ATTEMPT_MS else To.RETRY
        if self._is_slow_lane or (self._in_a_hurry and self._is_slow(lease.addressee, self.now)):
            to = To.SLOW_LANE
        places = self._limits.places(lease.addressee, self.now)
        self._limits.met(lease.addressee)
        attempted = [each.received for each in self.running.values() if each.lease is lease]
        again = yield from GiveBack(lease, places, release.wake_up_ms if lease.has_backlog else None, to, attempted)
        if again:
            yield from self._take_again(lease)
        if lease.terms.longest_ms > self._longest_ms:
            # Whoever sees its subscriber here may find other terms, and nobody here would learn of them.
            self._leases.forget(lease.addressee)

    def _withdraw(self, lease: Lease) -> Steps[None]:
        """Orders that wait for a lease go to the backlog, again or for the first time."""
        waiting = lease.withdraw()
        for each in waiting:
            self.ledger.release(each.order.key)
        if own := [each for each in waiting if not each.place]:
            yield from self._to_backlog(lease.addressee, own)
            yield from self._leave(own)

    def _clear_out(self, lease: Lease) -> Steps[None]:
        """The rate has no such part any more: what waits for its lease waits for another part's."""
        yield from self._withdraw(lease)
        yield from SettleDuplicates(lease, self.ledger.in_hand)
        others = (each for each in self._leases.of(lease.addressee) if each is not lease)
        waiting = [loaded.received for other in others for loaded in other.waiting]
        yield from ClearOut(lease, [*self.orders, *waiting, *lease.duplicates])

    def _take_again(self, before: Lease) -> Steps[None]:
        """Something was put into the backlog while the lease was given back."""
        fields = {"project": before.key.project}
        granted = yield from Take(before.addressee, before.queue, before.terms, before.part, fields)
        if lease := self._granted(granted):
            lease.go_on_from(before)

    # -- receiving, and the end of attempts

    def _refill(self) -> Steps[None]:
        """Receive further orders while waiting for an answer, or while threads are idle, as long as they could still be
        attempted in this run.
        """
        if self._receiving or not self._refills or len(self.running) >= AT_ONCE:
            return
        waits = len(self.ledger.waiting) < AT_ONCE and (yield from self._waits())
        idle = self._in_a_hurry and self.now >= self._looks_at and self._is_idle()
        attempts = 2 if self._is_slow_lane else 1
        if (waits or idle) and self.remaining_ms > attempts * self._longest_ms:
            self._receiving = True
            yield from Receive(REFILL_WAIT_S if waits else 0)

    def _waits(self) -> Steps[bool]:
        """Whether the run waits for the time of an attempt, or has waited for an answer for long."""
        if self.now >= self._looks_at and any(lease.waiting for lease in self._leases.here):
            return True
        long = [number for number, each in self.running.items() if self.now - each.begun >= REFILL_AFTER_MS]
        return bool(long) and (yield from AnyUnderWay(long))

    def _is_idle(self) -> bool:
        """Whether threads are idle although orders wait: for subscribers that have not earned more attempts yet."""
        return 0 < len(self.ledger.waiting) < WAITING and len(self.running) < AT_ONCE // 2

    def _finish(self) -> Steps[None]:
        """Wait briefly for attempts to finish, and arrange the next step for those that have."""
        happened = yield from self._await()
        now = self.now
        if self._lane is not Lane.NONE and (slow := self._limits.newly_slow(now)):
            self._listed = yield from ListSlow(slow)
        for number in [each for each in self.running if each in happened.ended]:
            self._end(self.running.pop(number), happened.ended[number], now)
        if happened.over:
            self._receiving = False
            yield from self._refilled(happened.received)
        if self.ended and (happened.nothing or not self.running or len(self.ended) >= FLUSH_COUNT):
            yield from self._flush()

    def _await(self) -> Steps[Completions]:
        """What has finished; waits briefly if nothing has, but not beyond the time of the next attempt under a
        lease.
        """
        now, at_most_ms = self.now, max(1, round(FLUSH_SECONDS * 1000))
        leases = [lease.wake_in_ms(now, at_most_ms) for lease in self._leases.here]
        waits_ms = [each for each in leases if each is not None]
        wait_s = min([at_most_ms, *waits_ms]) / 1000
        if self.running or self._receiving:
            return (yield from Await(min(FLUSH_SECONDS, wait_s)))
        if waits_ms and min(waits_ms) <= HORIZON_MS and not self.ledger.waiting and not self.ended:
            yield from Sleep(wait_s)
        return Completions({})

    def _end(self, attempt: Running, following: Following, now: int) -> None:
        """An attempt is over."""
        addressee = attempt.addressee
        # What was begun under a lease here, under terms that are too long now, goes on where the lease goes.
        outlasts = following.outlasts(self._longest_ms) and bool(self._leases.of(addressee))
        ends = following.follow is not Follow.LEASE and not outlasts
        self._limits.end(addressee, attempt.begun, now, answered=following.answered is not False if ends else None)
        if attempt.lease is not None:
            attempt.lease.end(attempted=following.answered is not None)
        if not ends or following.answered is not None:
            self._leases.learn(addressee, None if following.terms == self._no_limits else following.terms, now)
        for lease in self._leases.of(addressee) if attempt.lease is None else ():
            lease.asked()
        if ends:
            self.ended.append(Ended(attempt.received, following))
        else:
            self.ledger.waiting.append(attempt.loaded)

    def _flush(self) -> Steps[None]:
        """Arrange the next step of what the run is done with, and let go of it."""
        ended, self.ended = self.ended, []
        duplicates = [(self.ledger.release(each.order.key), following.follow) for each, following in ended]
        kept = yield from Arrange(ended)
        self.ledger.keep(kept)
        self.ledger.settle(each.received for each in ended)
        for each, following in ended:
            for lease in self._leases.of(each.order.addressee):
                if following.follow is Follow.ANOTHER:
                    lease.look_at_duplicates(each.order.key)
                yield from Arranged(lease, each, each.sqs_id in kept)
        yield from SettleAside([each.received for each in ended if each.received.sqs_id not in kept])
        if others := [each for each, follow in duplicates if each is not None and follow is Follow.ANOTHER]:
            yield from self._take_in(others)
        yield from self._delete_finished()

    def _refilled(self, batch: Sequence[Received] | None) -> Steps[None]:
        """Further orders were received, or could not be."""
        if batch is None:
            self._refills = False
            return
        if not batch:
            self._looks_at = self.now + REFILL_AFTER_MS
        self.ledger.receive(batch)
        yield from self._take_in(batch)
        yield from self._delete_finished()

    # -- SQS messages

    def _keep(self, waits: Sequence[Wait]) -> Steps[None]:
        """Orders wait where they came from."""
        kept = yield from Keep(waits)
        self.ledger.keep(kept)

    def _keep_unsure(self, orders: Sequence[Received]) -> Steps[None]:
        """Orders stay in their queue for a while, as a call of our own has failed."""
        yield from self._keep([unsure(each, self.now) for each in orders])

    def _delete_finished(self) -> Steps[None]:
        """Delete the messages that the run received itself and has finished."""
        finished = self.ledger.pop_finished()
        if finished:
            yield from Delete(finished, self.ledger.kept)

    def _hide(self) -> Steps[None]:
        """A message that cannot be hidden any longer comes back, and its orders may be carried out twice."""
        yield from Hide(self.ledger.kept)
