"""The leases that a run has, and what its environment knows of those that others have. Pure."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar

from pushhub.engine.model.flow import FlowKey, Limits, Terms

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from pushhub.engine.model.keys import Addressee
    from pushhub.engine.model.lease import Lease
    from pushhub.engine.model.received import Received
    from pushhub.engine.model.work import WorkOrder

_K = TypeVar("_K", bound="Hashable")
_V = TypeVar("_V")

LEFT_MS = 10_000
"""How long a run does not take a part again that it has left to others."""

KNOWN = 5_000
"""Maximum number of subscribers kept in memory; the one asked longest ago is forgotten first."""


class KnownLeases:
    """Leases here and elsewhere; for one thread at a time. Times are epoch milliseconds."""

    def __init__(self) -> None:
        self._terms: OrderedDict[Addressee, Terms] = OrderedDict()
        self._elsewhere: OrderedDict[FlowKey, int] = OrderedDict()
        self._left: OrderedDict[FlowKey, int] = OrderedDict()
        self._here: dict[Addressee, list[Lease]] = {}

    def start_over(self) -> None:
        """Another run begins; the leases of an aborted one end by themselves."""
        self._here = {}

    # -- subscribers

    def terms(self, addressee: Addressee) -> Terms | None:
        """The terms of a subscriber with limits, as last seen."""
        return self._terms.get(addressee)

    def learn(self, addressee: Addressee, terms: Terms | None, now: int) -> None:
        """Remember the terms of a subscriber, or that it has none; a lease goes on under the new ones."""
        leases = self.of(addressee)
        if terms is not None:
            remember(self._terms, addressee, terms)
        elif self._terms.pop(addressee, None) and leases:
            terms = Terms(limits=Limits(), longest_ms=leases[0].terms.longest_ms)
        for lease in leases:
            if terms is not None and lease.terms != terms:
                lease.change(terms, now)

    def forget(self, addressee: Addressee) -> None:
        """Know nothing of a subscriber."""
        self._terms.pop(addressee, None)

    # -- leases here

    @property
    def here(self) -> list[Lease]:
        """All leases that the run has."""
        return [lease for leases in self._here.values() for lease in leases]

    def of(self, addressee: Addressee) -> Sequence[Lease]:
        """The leases at a subscriber that the run has: one, or several parts' of its rate."""
        return self._here.get(addressee, ())

    def part(self, addressee: Addressee, part: int) -> Lease | None:
        """The run's lease of a part of a subscriber's rate."""
        return next((each for each in self.of(addressee) if each.part == part), None)

    def with_entry_of(self, received: Received) -> Lease | None:
        """The lease of the run in whose backlog an order is."""
        return next((lease for lease in self.of(received.order.addressee) if received.place in lease.entries), None)

    def add(self, lease: Lease) -> None:
        """The run has taken a lease."""
        self._here.setdefault(lease.addressee, []).append(lease)
        self._elsewhere.pop(lease.key, None)

    def remove(self, lease: Lease) -> None:
        """The run gives a lease back."""
        leases = self._here[lease.addressee]
        leases.remove(lease)
        if not leases:
            del self._here[lease.addressee]

    # -- leases elsewhere

    def note_elsewhere(self, flow: FlowKey, until: int) -> None:
        """Another run has a lease, or will be woken for it: nobody looks before a time."""
        remember(self._elsewhere, flow, until)

    def note_elsewhere_at_least(self, flow: FlowKey, until: int) -> None:
        """The same, unless it is known for longer."""
        remember(self._elsewhere, flow, max(until, self._elsewhere.get(flow, 0)))

    def is_elsewhere(self, addressee: Addressee, now: int) -> bool:
        """Whether other runs had all leases at a subscriber a moment ago, or wake-ups for them were on their way."""
        return not self.free_parts(addressee, self._terms.get(addressee), now)

    def free_parts(self, addressee: Addressee, terms: Terms | None, now: int) -> list[int]:
        """The parts of a subscriber's rate whose leases nobody is known to have."""
        own = {lease.part for lease in self.of(addressee)}
        parts = range(terms.limits.parts if terms else 1)
        return [part for part in parts if part not in own and self._elsewhere.get(flow_of(addressee, part), 0) <= now]

    def is_left(self, wake_up: WorkOrder, now: int) -> bool:
        """Whether the run has left what a wake-up is for to others, and has other parts of it."""
        flow = flow_of(wake_up.addressee, wake_up.part)
        return bool(self.of(wake_up.addressee)) and self._left.get(flow, 0) > now

    def leave_to_others(self, lease: Lease, now: int) -> None:
        """The run does not take a part again soon."""
        remember(self._left, lease.key, now + LEFT_MS)
        remember(self._elsewhere, lease.key, now + LEFT_MS)


def flow_of(addressee: Addressee, part: int = 0) -> FlowKey:
    """The key of a subscriber, or of a part of its rate."""
    return FlowKey.of_subscriber(*addressee, part)


def remember(known: OrderedDict[_K, _V], key: _K, value: _V) -> None:
    """Keep a value for a key among the :data:`KNOWN` that were kept last."""
    known[key] = value
    known.move_to_end(key)
    if len(known) > KNOWN:
        known.popitem(last=False)
