"""How execution environments share a limit: each has a seat for some seconds, and uses its part. Pure.

Time is cut into epochs. Who sits in an epoch is settled before it begins, so all who sit agree on their shares without
asking for each attempt. A newcomer sits from the next epoch on; one that is alone sits at once. Attempts in flight
outlast an epoch: where their number is limited, a newcomer begins only when those of before are over, and one that left
is counted until its own are.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.engine.model.circuit import SubscriberKey

EPOCH_MS = 10_000


def epoch_of(now: int) -> int:
    """The epoch of a time, epoch milliseconds."""
    return now // EPOCH_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a subscriber wants to be sent at most.

    Attributes:
        rate_per_s: Requests a second, on average; None for no limit.
        concurrency: Requests at a time; None for no limit.

    Raises:
        ValueError: A limit is not positive.
    """

    rate_per_s: float | None = None
    concurrency: int | None = None

    def __post_init__(self) -> None:
        if (self.rate_per_s is not None and self.rate_per_s <= 0) or (
            self.concurrency is not None and self.concurrency < 1
        ):
            raise ValueError("a limit is positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """One environment's. Numbers of epochs.

    Attributes:
        first: From then on it counts.
        begins: From then on it may attempt; never before ``first``.
        last: Up to then it counts.
    """

    first: int
    begins: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One environment's part of a limit in an epoch.

    Attributes:
        place: Its place among those who sit, from 0.
        of: How many sit.
    """

    place: int
    of: int

    def rate(self, rate_per_s: float) -> float:
        """Requests a second."""
        return rate_per_s / self.of

    def concurrency(self, limit: int) -> int:
        """Requests at a time, perhaps none; all shares together are the limit."""
        return limit // self.of + (self.place < limit % self.of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seats:
    """Who shares a subscriber's limit, as stored.

    Attributes:
        key: The subscriber.
        holders: By the environment's id.
        version: Raised by one with each change; 0 means never stored. Guards every write.
    """

    key: SubscriberKey
    holders: Mapping[str, Seat] = field(default_factory=dict)
    version: int = 0

    def with_seat(self, who: str, epoch: int, *, outlasts: int) -> Seats:
        """The seats with one for an environment, held on in this epoch and the next.

        Args:
            who: The environment's id.
            epoch: Now.
            outlasts: Epochs that an attempt begun in one may reach into; 0 where their number is not limited.
        """
        here = {name: seat for name, seat in self.holders.items() if seat.last >= epoch}
        seat = here.pop(who, None)
        if seat is None:
            first = epoch + 1 if here else epoch
            begins = first + outlasts if here else first
        else:
            first, begins = seat.first, seat.begins
        here[who] = Seat(first=first, begins=begins, last=max(first, epoch + 1) + outlasts)
        return replace(self, holders=here, version=self.version + 1)

    def share(self, who: str, epoch: int) -> Share | None:
        """An environment's share in an epoch; None while it may not begin.

        Who came first sits first, so nobody's share moves to a newcomer.
        """
        sitting = sorted((seat.first, name) for name, seat in self.holders.items() if seat.first <= epoch <= seat.last)
        own = self.holders.get(who)
        if own is None or not own.begins <= epoch <= own.last:
            return None
        return Share(place=sitting.index((own.first, who)), of=len(sitting))
