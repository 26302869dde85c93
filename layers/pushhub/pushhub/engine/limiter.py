"""Rate and concurrency limits of subscribers, shared by all execution environments at the cost of one write per
environment every ten seconds.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.base.conflicts import read_change_save
from pushhub.engine.model.backoff import MAX_DELAY_MS
from pushhub.engine.model.seats import EPOCH_MS, Limits, Seats, Share, epoch_of

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.model.circuit import SubscriberKey
    from pushhub.engine.ports import SeatStore

PATIENCE_MS = 1_000
"""A wait up to this is spent in the thread, a longer one in the queue."""

BUSY_MS = 2_000
"""How soon an order is retried when the concurrency limit is reached."""

KNOWN = 5_000
"""Maximum number of subscribers kept in memory; the least recently used is forgotten first, unless an attempt at it is
in progress.
"""


@dataclass
class _Known:
    """Activity of one environment at a subscriber. Times are epoch milliseconds.

    Attributes:
        seats: As last written.
        epoch: Epoch in which they were written.
        next_at: Earliest start of the next request.
        later_at: When the next order that has to wait should come back; staggered, so that they do not all come back
            together.
        under_way: Requests in progress.
    """

    seats: Seats
    epoch: int = -1
    next_at: float = 0
    later_at: float = 0
    under_way: int = 0


class Limiter:
    """Decides when an attempt may begin. Thread-safe.

    Args:
        seats: Who shares each limit.
        clock: Time; also used for sleeping.
    """

    def __init__(self, *, seats: SeatStore, clock: Clock) -> None:
        self._seats = seats
        self._clock = clock
        self._me = uuid.uuid4().hex[:12]
        self._known: OrderedDict[SubscriberKey, _Known] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, key: SubscriberKey, limits: Limits, *, longest_ms: int) -> int:
        """Begin an attempt, possibly after a short wait; call :meth:`end` when it is over.

        Args:
            key: The subscriber.
            limits: Its limits.
            longest_ms: How long an attempt may take.

        Returns:
            0 when it began, otherwise the milliseconds after which to try again.

        Raises:
            Unavailable: Its seats could not be read or written.
        """
        outlasts = 0 if limits.concurrency is None else -(-longest_ms // EPOCH_MS)
        known, share = self._seated(key, outlasts)
        now = self._clock.now()
        if share is None:
            return EPOCH_MS - now % EPOCH_MS
        with self._lock:
            if limits.concurrency is not None:
                mine = share.concurrency(limits.concurrency)
                if known.under_way >= mine:
                    return BUSY_MS if mine else EPOCH_MS
            begins_at = float(now)
            if limits.rate_per_s is not None:
                every_ms = 1000 / share.rate(limits.rate_per_s)
                begins_at = max(begins_at, known.next_at)
                if begins_at - now > PATIENCE_MS:
                    back_at = min(max(begins_at, known.later_at), now + MAX_DELAY_MS)
                    known.later_at = back_at + every_ms
                    return round(back_at - now)
                known.next_at = begins_at + every_ms
            known.under_way += 1
        if begins_at > now:
            self._clock.sleep((begins_at - now) / 1000)
        return 0

    def end(self, key: SubscriberKey) -> None:
        """An attempt that :meth:`begin` allowed is over."""
        with self._lock:
            known = self._known.get(key)
            if known is not None and known.under_way:
                known.under_way -= 1

    def _seated(self, key: SubscriberKey, outlasts: int) -> tuple[_Known, Share | None]:
        """The environment's share of a subscriber's limit; its seat is renewed once per epoch."""
        epoch = epoch_of(self._clock.now())
        with self._lock:
            known = self._known.setdefault(key, _Known(seats=Seats(key=key)))
            self._known.move_to_end(key)
            if len(self._known) > KNOWN:
                idle = next((each for each, other in self._known.items() if not other.under_way), None)
                if idle is not None and idle != key:
                    del self._known[idle]
            current = known.epoch == epoch
        if not current:
            seats = self._take(key, epoch, outlasts)
            with self._lock:
                known.seats, known.epoch = seats, epoch
        return known, known.seats.share(self._me, epoch)

    def _take(self, key: SubscriberKey, epoch: int, outlasts: int) -> Seats:
        taken: Seats = read_change_save(
            lambda: self._seats.seats(key) or Seats(key=key),
            lambda seats: seats.with_seat(self._me, epoch, outlasts=outlasts),
            self._seats.save_seats,
            doing="taking a share of a subscriber's limit",
        )
        return taken
