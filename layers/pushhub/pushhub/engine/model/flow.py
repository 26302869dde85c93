"""How a subscriber's limits are kept: one run at a time has the subscriber's *lease*, and only that run begins
attempts. Pure.

So a rate and a number of concurrent attempts are kept in the memory of one run, exactly and without a write for each
attempt. What is stored is who has the lease and until when, and the *mark*: the time of the next attempt by the rate.
What has to wait is in the subscriber's *backlog*, in the order in which it came (docs/flow-control.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pushhub.engine.model.work import WorkOrder

SHORT_ATTEMPT_MS = 45_000
"""An attempt that may take longer, with the time to write what comes of it, is made by a run that lasts for minutes, of
the poll queue or the slow lane, and never by one of push: those end after 85 s, so that their queues show what they had
in hand within two minutes if they die, and half of that time is left in which they may take up further orders. So a
subscriber with a time limit of up to 40 s is push's.
"""

BURST_MS = 500
"""How late an attempt may begin without the later ones being put off: half a second's worth may begin at once."""


TOGETHER_MS = 1_000
"""Requests of attempts that waited for reads of our own since they began may come together with others up to so much
of the rate: a second's burst.
"""

PART_PER_S = 100
"""A higher rate is divided into parts of at most so many a second, each with a lease of its own: about what one run can
begin (docs/flow-control.md).
"""


class FlowKey(NamedTuple):
    """What has a limit, unique in the hub: a subscriber, or a part of its rate.

    Attributes:
        name: Unique in the project.
    """

    project: str
    name: str

    @classmethod
    def of_subscriber(cls, project: str, queue_uid: str, subscriber_id: str, part: int = 0) -> FlowKey:
        """The key of a subscriber of a queue's generation; of a part of its rate, which are counted from 0."""
        return cls(project, f"{queue_uid}#{subscriber_id}" + (f"#{part}" if part else ""))

    @property
    def part(self) -> int:
        """Which part of a subscriber's rate."""
        _, _, rest = self.name.partition("#")
        return int(rest.partition("#")[2] or 0)


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

    @property
    def parts(self) -> int:
        """Into how many parts the rate is divided. A number of concurrent requests is not: one run counts them."""
        if self.rate_per_s is None or self.concurrency is not None:
            return 1
        return max(1, math.ceil(self.rate_per_s / PART_PER_S))

    @property
    def of_a_part(self) -> Limits:
        """The limits of each part."""
        return self if self.parts == 1 else Limits(rate_per_s=(self.rate_per_s or 0) / self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Under what an attempt may begin.

    Attributes:
        longest_ms: How long an attempt may take, including its follow-up.
    """

    limits: Limits
    longest_ms: int

    @property
    def outlasts_ms(self) -> int:
        """How long before its end a lease must begin no more: attempts that are counted end within the lease."""
        return 0 if self.limits.concurrency is None else self.longest_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseState:
    """What is stored of a flow. Times are epoch milliseconds.

    Attributes:
        terms: As the last one who had the lease knew them.
        until: Until when somebody has the lease; 0 when it was given back.
        mark: When the next attempt may begin by the rate, as of the last lease that was given back.
        places: Concurrent attempts that the subscriber had earned then; 0 if nobody has had the lease before.
        woken_at: When a wake-up that is on its way arrives, or the last one has; 0 for none.
    """

    terms: Terms
    until: int = 0
    mark: int = 0
    places: int = 0
    woken_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogEntry:
    """Some orders for one subscriber, in their place in its backlog.

    Attributes:
        place: Sorts in the order of the backlog.
        orders: The orders, without their messages.
    """

    place: str
    orders: tuple[WorkOrder, ...] = field(default=())


class Pace:
    """When the run that has the lease may begin attempts, and those may make their requests. For one thread at a time,
    but for :meth:`asks`. Times are epoch milliseconds.

    Args:
        limits: The limits.
        mark: When the next attempt may begin by the rate.
    """

    def __init__(self, limits: Limits, mark: float) -> None:
        self.limits = limits
        self.under_way = 0
        self._mark = mark
        self._asked = mark
        self._asking = Lock()

    @property
    def mark(self) -> int:
        """When the next attempt may begin by the rate."""
        return math.ceil(max(self._mark, self._asked - TOGETHER_MS))

    @property
    def full(self) -> bool:
        """Whether as many attempts are in progress as may be."""
        return self.limits.concurrency is not None and self.under_way >= self.limits.concurrency

    def wait_ms(self, now: int) -> int:
        """Milliseconds until another attempt may begin by the rate; 0 for at once."""
        return max(0, self.mark - now) if self.limits.rate_per_s else 0

    def is_late(self, now: int) -> bool:
        """Whether attempts begin so late that some of the rate may soon be lost."""
        return bool(self.limits.rate_per_s) and now - self.mark > BURST_MS // 2

    def begin(self, now: int) -> None:
        """An attempt begins. A time of up to :data:`BURST_MS` that was not used is made up for."""
        self.under_way += 1
        if self.limits.rate_per_s:
            self._mark = max(self._mark, now - BURST_MS) + 1000 / self.limits.rate_per_s

    def asks(self, now: int) -> bool:
        """An attempt that has begun is ready to make its request: whether it may. Otherwise, too many are ready at the
        same moment, after a read that took long, and it has to begin again in its time.
        """
        with self._asking:
            rate = self.limits.rate_per_s
            if rate and now < self._asked - TOGETHER_MS:
                return False
            if rate:
                self._asked = max(self._asked, now) + 1000 / rate
            return True

    def end(self, *, attempted: bool) -> None:
        """An attempt is over; if no request was made after all, its time is free again."""
        self.under_way -= 1
        if self.limits.rate_per_s and not attempted:
            self._mark -= 1000 / self.limits.rate_per_s

    def change(self, limits: Limits, now: int) -> None:
        """The limits have changed: nothing is put off for longer than the new rate asks for."""
        self.limits = limits
        if limits.rate_per_s:
            self._mark = min(self._mark, now + 1000 / limits.rate_per_s)
            with self._asking:
                self._asked = min(self._asked, now + TOGETHER_MS + 1000 / limits.rate_per_s)
