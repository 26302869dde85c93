"""The slow lane: a separate queue for subscribers known to be slow, so that no other orders are stuck behind theirs.

Each execution environment finds slow subscribers by itself, with one attempt, and shares them in a list that all
environments read when they are busy. So within seconds, runs of first attempts and retries stop waiting for such a
subscriber, however many environments there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.errors import Unavailable
from pushhub.engine.component import Component
from pushhub.engine.model.concurrency import REMEMBERED_MS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.flow.ports import SlowSubscribers
    from pushhub.engine.model.keys import Addressee
    from pushhub.engine.ports import WorkQueue

FRESH_MS = 10_000
"""Maximum age of the cached list."""

LISTED = 1_000
"""Maximum number of subscribers read from the list; when it is full, none are added.

Each environment finds any others by itself.
"""

BUSY_ORDERS = 10
"""A smaller batch is handled without reading the list: nothing waits behind it."""


class SlowLane(Component):
    """One execution environment's view of the slow lane; for one thread at a time."""

    queue: WorkQueue  # Where orders for slow subscribers wait.
    subscribers: SlowSubscribers
    clock: Clock
    telemetry: Telemetry

    def __post_init__(self) -> None:
        self._listed: dict[Addressee, int] = {}
        self._read_at: int | None = None

    @property
    def listed(self) -> Mapping[Addressee, int]:
        """Who was on the list when that was last read, and until when, epoch milliseconds."""
        return self._listed

    def refresh(self, orders: int) -> None:
        """Read the list again if the cached one is old and a batch of this many orders makes it worthwhile.

        If it cannot be read, the old one is used.
        """
        now = self.clock.now()
        if orders < BUSY_ORDERS or (self._read_at is not None and now - self._read_at < FRESH_MS):
            return
        self._read_at = now
        try:
            self._listed = self.subscribers.slow(now, LISTED)
        except Unavailable as error:
            self._failed("slow_list_unread", error)

    def tell(self, keys: Sequence[Addressee]) -> None:
        """List subscribers that were found to be slow; those that cannot be listed are left for each environment to
        find.
        """
        now = self.clock.now()
        new = [key for key in keys if self._listed.get(key, 0) <= now][: max(0, LISTED - len(self._listed))]
        if not new:
            return
        until = now + REMEMBERED_MS
        try:
            self.subscribers.note_slow(new, until)
        except Unavailable as error:
            self._failed("slow_list_unwritten", error)
        self._listed |= dict.fromkeys(new, until)
        self.telemetry.count("SubscribersSlow", len(new))

    def _failed(self, event: str, error: Unavailable) -> None:
        self.telemetry.count("CallsFailed")
        self.telemetry.event(event, error=str(error))
