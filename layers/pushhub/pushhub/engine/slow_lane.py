"""The slow lane: a queue of their own for subscribers that are known to be slow,
so that nobody else's orders stand behind theirs.

Each execution environment finds out by itself who is slow, with one attempt, and tells the others by a list that all
read when they are busy. So after some seconds no run of first attempts and of retries waits for such a subscriber any
more, however many environments there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.errors import Unavailable
from pushhub.engine.windows import REMEMBERED_MS, Key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.ports import SlowSubscribers, WorkQueue

FRESH_MS = 10_000
"""How old the list may be."""

LISTED = 1_000
"""Subscribers of the list that are read, and beyond which none is entered.

Each environment finds out for itself about any others.
"""

BUSY_ORDERS = 10
"""A batch of fewer orders is worked on without a look at the list: nobody waits behind it."""


class SlowLane:
    """One execution environment's view of the slow lane; used by one thread at a time.

    Args:
        queue: Where orders for slow subscribers wait.
        subscribers: The list.
        clock: Time.
        telemetry: Metrics.
    """

    def __init__(self, *, queue: WorkQueue, subscribers: SlowSubscribers, clock: Clock, telemetry: Telemetry) -> None:
        self.queue = queue
        self._subscribers = subscribers
        self._clock = clock
        self._telemetry = telemetry
        self._listed: dict[Key, int] = {}
        self._read_at: int | None = None

    def lists(self, key: Key) -> bool:
        """Whether a subscriber is on the list, as it was when last read."""
        return self._listed.get(key, 0) > self._clock.now()

    def refresh(self, orders: int) -> None:
        """Read the list anew if it is old and a batch of so many orders makes it worth while.

        An old one does when it cannot be read.
        """
        now = self._clock.now()
        if orders < BUSY_ORDERS or (self._read_at is not None and now - self._read_at < FRESH_MS):
            return
        self._read_at = now
        try:
            self._listed = self._subscribers.slow(now, LISTED)
        except Unavailable as error:
            self._failed("slow_list_unread", error)

    def tell(self, keys: Sequence[Key]) -> None:
        """Enter subscribers that were found to be slow; those that cannot be entered each environment finds out for
        itself.
        """
        new = [key for key in keys if not self.lists(key)][: max(0, LISTED - len(self._listed))]
        if not new:
            return
        until = self._clock.now() + REMEMBERED_MS
        try:
            self._subscribers.note_slow(new, until)
        except Unavailable as error:
            self._failed("slow_list_unwritten", error)
        self._listed |= dict.fromkeys(new, until)
        self._telemetry.count("SubscribersSlow", len(new))

    def _failed(self, event: str, error: Unavailable) -> None:
        self._telemetry.count("CallsFailed")
        self._telemetry.event(event, error=str(error))
