"""How execution environments share a limit: each holds a seat for a few seconds and uses its share. Pure.

Time is divided into epochs. Who has a seat in an epoch is settled before it begins, so all holders agree on their
shares without coordinating each attempt. A newcomer gets a seat from the next epoch on, or at once if it is alone.
Attempts in flight outlast an epoch: where concurrency is limited, a newcomer starts only when the attempts of earlier
epochs are over, and a holder that left still counts until its own attempts are over.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.engine.model.circuit import SubscriberKey

EPOCH_MS = 10_000


def epoch_of(now: int) -> int:
    """The epoch that a time (epoch milliseconds) falls into."""
    return now // EPOCH_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that a subscriber wants to be sent.

    Attributes:
        rate_per_s: Requests per second, on average; None for no limit.
        concurrency: Concurrent requests; None for no limit.

    Raises:
        ValueError: A limit is not positive.
    """

    rate_per_s: float | None = None
    concurrency: int | None = None

    def __post_init__(self) -> None:
        if (self.rate_per_s is not None and self.rate_per_s <= 0) or (
            self.concurrency is not None and self.concurrency < 1
        ):
            raise ValueError("a limit must be positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """The seat of one environment, in epoch numbers.

    Attributes:
        first: First epoch in which it counts.
        begins: First epoch in which it may attempt; never before ``first``.
        last: Last epoch in which it counts.
    """

    first: int
    begins: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One environment's share of a limit in an epoch.

    Attributes:
        place: Its position among the holders, from 0.
        of: Number of holders.
    """

    place: int
    of: int

    def rate(self, rate_per_s: float) -> float:
        """Its share of the rate, in requests per second."""
        return rate_per_s / self.of

    def concurrency(self, limit: int) -> int:
        """Its share of the concurrent requests, possibly none; all shares add up to the limit."""
        return limit // self.of + (self.place < limit % self.of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seats:
    """The environments that share a subscriber's limit, as stored.

    Attributes:
        key: The subscriber.
        holders: Seats by the environment's id.
        version: Incremented by each change; 0 means never stored. Guards every write.
    """

    key: SubscriberKey
    holders: Mapping[str, Seat] = field(default_factory=dict)
    version: int = 0

    def with_seat(self, who: str, epoch: int, *, outlasts: int) -> Seats:
        """The seats after an environment took or extended its seat for this epoch and the next.

        Args:
            who: The environment's id.
            epoch: The current epoch.
            outlasts: Epochs that an attempt may run beyond the one it began in; 0 where concurrency is not limited.
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
        """An environment's share in an epoch; None while it may not attempt.

        Seats are ordered by arrival, so a newcomer never takes over somebody's place.
        """
        sitting = sorted((seat.first, name) for name, seat in self.holders.items() if seat.first <= epoch <= seat.last)
        own = self.holders.get(who)
        if own is None or not own.begins <= epoch <= own.last:
            return None
        return Share(place=sitting.index((own.first, who)), of=len(sitting))
