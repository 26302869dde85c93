"""The leases that a run of push has: at subscribers with limits, and in the slow lane at any.

Only the run that has a subscriber's lease begins attempts at it (:class:`pushhub.engine.model.lease.Lease`), and it
takes the next order as soon as one is done. Other runs put their orders into the subscriber's backlog. Whoever gives a
lease back while something is in the backlog sends a *wake-up*, an order that asks another run to take the lease; so
nothing waits without a lease, or a wake-up on its way. ``wake`` makes up for a wake-up that was lost with its run
(:class:`pushhub.engine.flow.wake_ups.WakeUps`).

A run takes what parts of a rate it can, and leaves one to others when it has several and falls behind. Which part an
order belongs to follows from its time in the backlog, so whoever finds some in the backlog of another part, after the
rate has changed, moves them.

Nobody is overlooked between the end of a lease and the beginning of the next: who adds to the backlog looks afterwards
whether somebody has the lease, and who gives a lease back looks afterwards whether something was added.

``docs/flow-control.md`` has the reasons.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING

from pushhub.base.errors import Unavailable
from pushhub.engine.component import Component
from pushhub.engine.model.backoff import MAX_DELAY_MS
from pushhub.engine.model.flow import BacklogEntry, FlowKey, Limits, Pace, Terms
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.lease import AHEAD, HORIZON_MS, KEPT, LOOK_MS, Lease
from pushhub.engine.model.leases import KnownLeases, flow_of, remember
from pushhub.engine.model.work import WorkOrder

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.flow.ports import FlowStore
    from pushhub.engine.model.keys import Addressee
    from pushhub.engine.model.received import Received
    from pushhub.engine.ports import OrderSink

LEASE_MS = 15_000
"""A lease lasts this much longer than the attempts that its limits count. What a run leaves behind that dies is taken
up after that time.
"""

RENEW_MS = 5_000
"""A lease is extended when less than this is left."""

MARGIN_MS = 1_000
"""No attempt begins so shortly before the end of a lease: clocks differ a little."""

ENTRY_ORDERS = 100
"""Orders in one entry of the backlog: together they are written once."""

TENDED_MS = 300_000
"""How often a backlog is entered into the list of those that ``wake`` tends."""


class Leases(Component):
    """The leases of one run after the other; for one thread at a time."""

    store: FlowStore  # Who has which lease, and the backlogs.
    calls: OrderSink  # Where wake-ups for the parts of a rate go to which orders were moved.
    clock: Clock
    telemetry: Telemetry

    def __post_init__(self) -> None:
        self.known = KnownLeases()
        self._tended: OrderedDict[FlowKey, int] = OrderedDict()
        self._aside: dict[tuple[str, DeliveryKey], tuple[FlowKey, str]] = {}
        self._entries_aside: dict[str, list[WorkOrder]] = {}
        self._holder = ""
        self._added = secrets.randbelow(1_000)

    def start_over(self) -> None:
        """Another run begins; the leases of an aborted one end by themselves."""
        self.known.start_over()
        self._aside = {}
        self._entries_aside = {}
        self._holder = secrets.token_hex(8)

    # -- having leases

    def take(self, addressee: Addressee, queue: str, terms: Terms, part: int = 0) -> tuple[Lease, int] | None:
        """Take the lease at a subscriber, or of a part of its rate, unless somebody else has it.

        Returns:
            The lease, and how many concurrent attempts the subscriber had earned; 0 if nobody has had it before.
        """
        flow, now = flow_of(addressee, part), self.clock.now()
        until = now + terms.outlasts_ms + LEASE_MS
        before = self.store.take_lease(flow, self._holder, terms, now=now, until=until)
        if before is None:
            self.known.note_elsewhere(flow, now + LOOK_MS)
            return None
        # Whoever did not give it back may have used all of its time.
        mark = max(before.mark, before.until) if before.until <= now else before.mark
        lease = Lease(
            key=flow,
            addressee=addressee,
            queue=queue,
            terms=terms,
            pace=Pace(terms.limits.of_a_part, mark),
            until=until,
            woken_at=before.woken_at,
            looks_at=now + LOOK_MS,
            ahead=AHEAD if terms.limits.parts > 1 else 0,
        )
        self.known.add(lease)
        return lease, before.places

    def answer(self, wake_up: WorkOrder) -> tuple[Lease, int] | None:
        """Take the lease that a wake-up is for, with the terms stored; otherwise like :meth:`take`."""
        addressee = wake_up.addressee
        flow = flow_of(addressee, wake_up.part)
        lease, places = self.known.part(addressee, wake_up.part), 1
        if lease is None:
            state = self.store.flow(flow)
            terms = state.terms if state else Terms(limits=Limits(), longest_ms=LEASE_MS)
            taken = self.take(addressee, wake_up.queue, terms, wake_up.part)
            if taken is None:
                return None
            lease, places = taken
        lease.answer()
        return lease, places

    def hold(self, lease: Lease) -> bool:
        """Whether an attempt may begin within the lease; extends it in time."""
        now, outlasts_ms = self.clock.now(), lease.terms.outlasts_ms
        if lease.until - now < outlasts_ms + RENEW_MS and not lease.lost:
            self._extend(lease)
        return not lease.lost and lease.until - now >= outlasts_ms + MARGIN_MS

    def _extend(self, lease: Lease) -> None:
        now = self.clock.now()
        until = now + lease.terms.outlasts_ms + LEASE_MS
        try:
            before = self.store.take_lease(lease.key, self._holder, lease.terms, now=now, until=until)
        except Unavailable as error:
            self._failed("lease_not_extended", error, lease.key)
            return
        if before is None:
            lease.lose()
        else:
            lease.extend(until)

    def give_back(
        self,
        lease: Lease,
        *,
        places: int,
        wake_up_ms: int | None,
        to: OrderSink,
        attempted: Iterable[Received] = (),
    ) -> bool:
        """Give a lease back.

        Args:
            lease: The lease; nothing is in progress that its limits count.
            places: Concurrent attempts that the subscriber has earned.
            wake_up_ms: In how many milliseconds another run is woken; None if nothing waits.
            to: Where a wake-up goes.
            attempted: Orders whose attempts are in progress: whoever has the lease next leaves them alone.

        Returns:
            Whether something was put into the backlog meanwhile, and no wake-up was sent.
        """
        self.known.remove(lease)
        now = self.clock.now()
        woken_at = None
        if wake_up_ms is not None and not now < lease.woken_at <= now + wake_up_ms + HORIZON_MS:
            woken_at = now + min(wake_up_ms, MAX_DELAY_MS)
        try:
            self._set_aside(lease, attempted)
            for place in lease.shrunk - lease.kept:
                self.store.remove_from_backlog(lease.key, place, lease.entries[place])
            self.store.give_back(lease.key, self._holder, mark=lease.pace.mark, places=places, woken_at=woken_at)
            if woken_at is not None:
                self.known.note_elsewhere_at_least(lease.key, woken_at)
                self._wake(lease.key, lease.addressee, lease.queue, woken_at - now, to)
            elif wake_up_ms is None and not lease.lost:
                found = self.store.backlog(lease.key, 1 + len(lease.kept), now=now)
                return any(each.place not in lease.kept for each in found)
        except Unavailable as error:
            self._failed("lease_not_given_back", error, lease.key)
        return False

    def _set_aside(self, lease: Lease, attempted: Iterable[Received]) -> None:
        """Orders from the backlog whose attempts are in progress go where nobody reaches them before these are over for
        certain. If the run dies, they are found there.
        """
        aside = lease.set_aside(attempted)
        if not aside:
            return
        orders = [each.order for each in aside]
        place = self.store.set_aside(lease.key, orders, self.clock.now() + lease.terms.longest_ms + LEASE_MS)
        self._entries_aside[place] = orders
        self._aside |= {(each.place, each.order.key): (lease.key, place) for each in aside}

    def settle_aside(self, received: Iterable[Received]) -> None:
        """Orders that were set aside are done, or wait elsewhere."""
        shrunk: dict[str, FlowKey] = {}
        for each in received:
            flow, place = self._aside.pop((each.place, each.order.key), (None, ""))
            orders = self._entries_aside.get(place, [])
            if flow is not None and each.order in orders:
                orders.remove(each.order)
                shrunk[place] = flow
        for place, flow in shrunk.items():
            try:
                self.store.remove_from_backlog(flow, place, self._entries_aside[place])
            except Unavailable as error:
                # Whoever finds them there finds their deliveries done.
                self._failed("backlog_entry_not_removed", error, flow)

    # -- the backlog

    def add(self, addressee: Addressee, orders: Sequence[Received], now: int) -> list[int]:
        """Put received orders for a subscriber into its backlog, or into those of the parts of its rate.

        Returns:
            Parts whose leases the run should take: nobody has them, and no wake-up is on its way.

        Raises:
            Unavailable: Some may not be there.
        """
        terms = self.known.terms(addressee)
        parts = terms.limits.parts if terms else 1
        added: set[int] = set()
        size = min(ENTRY_ORDERS, max(KEPT, -(-len(orders) // parts)))
        for number, start in enumerate(range(0, len(orders), size)):
            # One part after the other.
            self._added += 1
            at = now + number + (self._added - now - number) % parts
            added.add(self._put(addressee, [each.order for each in orders[start : start + size]], parts, at))
        self.telemetry.count("DeliveriesPutAside", len(orders))
        return [part for part in sorted(added) if self._is_free(addressee, part)]

    def _put(self, addressee: Addressee, orders: Sequence[WorkOrder], parts: int, at: int) -> int:
        """Put orders where they belong by their time; returns which part of the rate that is."""
        part = at % parts
        flow, now = flow_of(addressee, part), self.clock.now()
        if now - self._tended.get(flow, 0) >= TENDED_MS:
            self.store.list_backlog(flow, now)
            remember(self._tended, flow, now)
        self.store.add_to_backlog(flow, orders, at)
        return part

    def _is_free(self, addressee: Addressee, part: int) -> bool:
        """Whether nobody has the lease of a backlog to which something was added, and no wake-up for it is on its
        way.
        """
        lease, flow, now = self.known.part(addressee, part), flow_of(addressee, part), self.clock.now()
        if lease is not None:
            lease.note_backlog()
            return False
        state = self.store.flow(flow)
        if state is not None and state.until > now:
            self.known.note_elsewhere_at_least(flow, now + LOOK_MS)
            return False
        return state is None or state.woken_at <= now

    def look(self, lease: Lease) -> None:
        """Fetch orders from the backlog, if some could soon begin and it is time."""
        now = self.clock.now()
        if not lease.reads_on or now < lease.looks_at:
            return
        entries = max(2, lease.lacks // ENTRY_ORDERS + 1, lease.lacks // KEPT) if lease.lacks else 0
        most = len(lease.entries) + len(lease.kept) + max(entries, lease.ahead)
        try:
            found = self.store.backlog(lease.key, most, now=now)
        except Unavailable as error:
            self._failed("backlog_not_read", error, lease.key)
            lease.look_later(now)
            return
        new = [each for each in found if each.place not in lease.entries and each.place not in lease.kept]
        lease.looked(found=bool(new), now=now)
        here = self._without_moved(lease, new)
        if len(here) == len(new) and not (lease.unsure or lease.asking):
            lease.look_further(more=len(found) == most)
        lease.fetch(here[:entries], now)

    def _without_moved(self, lease: Lease, found: Sequence[BacklogEntry]) -> list[BacklogEntry]:
        """Entries that belong where they are; the others, from before a change of the rate, are moved."""
        parts = lease.terms.limits.parts
        if lease.unsure or lease.asking or (parts == 1 and not lease.part):
            return [*found]
        here: list[BacklogEntry] = []
        for each in found:
            at = _time_of(each.place)
            if not lease.superfluous and (at is None or at % parts == lease.part):
                here.append(each)
            else:
                self._move(lease, each, ())
        return here

    def clear_out(self, lease: Lease, busy: Iterable[Received]) -> None:
        """Move what the run has from the backlog of a part that there is no more, but for orders that it works on."""
        for entry, rest in lease.movable({(each.place, each.order.key) for each in busy}):
            lease.moved(entry.place, rest if self._move(lease, entry, rest) else [])

    def _move(self, lease: Lease, entry: BacklogEntry, rest: Sequence[WorkOrder]) -> bool:
        """Move an entry's orders, but for the rest, to the backlog of their part, and have its lease taken; they stay
        where they are if that fails.
        """
        parts, at = lease.terms.limits.parts, _time_of(entry.place)
        try:
            part = self._put(lease.addressee, entry.orders, parts, self.clock.now() if at is None else at)
            self.store.remove_from_backlog(lease.key, entry.place, rest)
            if self._is_free(lease.addressee, part):
                self._wake(flow_of(lease.addressee, part), lease.addressee, lease.queue, 0, self.calls)
        except Unavailable as error:
            # What is in both backlogs is found done in one of them.
            self._failed("backlog_entry_not_moved", error, lease.key)
            lease.keep(entry.place)
            return False
        return True

    def settle_duplicates(self, lease: Lease, in_hand: Container[DeliveryKey]) -> None:
        """Duplicates leave the backlog once the run is done with their first orders; others are looked at then."""
        for each in lease.pop_duplicates(in_hand):
            self.settle(lease, each, keep=False)
        lease.look_behind(in_hand)

    def arranged(self, lease: Lease, received: Received, *, keep: bool) -> None:
        """The next step of an order is arranged. If it could not be, it and its duplicates stay where they are."""
        if received.place:
            self.settle(lease, received, keep=keep)
        if keep:
            for each in lease.pop_duplicates_of(received.order.key):
                self.settle(lease, each, keep=True)

    def settle(self, lease: Lease, received: Received, *, keep: bool) -> None:
        """An order from the backlog is done, or its entry is kept because of an error."""
        if keep and received.place in lease.entries:
            lease.keep(received.place)
        elif lease.strike(received):
            try:
                self.store.remove_from_backlog(lease.key, received.place, ())
            except Unavailable as error:
                # Whoever has the lease next finds the deliveries done.
                self._failed("backlog_entry_not_removed", error, lease.key)
                lease.keep(received.place)

    def _wake(self, flow: FlowKey, addressee: Addressee, queue: str, in_ms: int, to: OrderSink) -> None:
        project, queue_uid, subscriber_id = addressee
        order = WorkOrder.wake_up(DeliveryKey(project, queue_uid, "", subscriber_id), queue, flow.part)
        try:
            # A wake-up that comes early waits in its run.
            to.send([(order, in_ms // 1000)])
        except Unavailable as error:
            self._failed("wake_up_not_sent", error, flow)

    def _failed(self, event: str, error: Unavailable, flow: FlowKey) -> None:
        self.telemetry.count("CallsFailed")
        self.telemetry.event(event, error=str(error), project=flow.project, flow=flow.name)


def _time_of(place: str) -> int | None:
    """When an entry was put into the backlog; None of one that was set aside."""
    time = place.partition("#")[0]
    return int(time) if time.isdigit() else None
