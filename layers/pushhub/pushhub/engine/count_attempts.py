"""Counts what came of attempts at subscribers that fail, so that their owners can replay it.

One that is well costs nothing.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from pushhub.base.errors import Unavailable
from pushhub.engine.model.activity import HOUR_MS
from pushhub.engine.model.attempt_counts import MINUTE_MS, AttemptCounts, CountedSubscriber, counts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.base.ports import Telemetry
    from pushhub.engine.model.record import DeliveryRecord
    from pushhub.engine.ports import AttemptCountStore

MOST_AT_ONCE = 100
"""Subscribers' hours that are written for the records of one object at most; those with most failures come first."""

KNOWN = 5_000
"""Subscribers remembered that failed lately; the one that failed longest ago is forgotten first."""


class CountAttempts:
    """Counts attempts at each subscriber from its first failure on, until it has not failed for an hour.

    A statistic: failing to count fails nothing else. Each execution environment knows by itself who failed: successes
    that another one sees may go uncounted, failures never.

    Args:
        store: Where it is counted.
        telemetry: Told of what was not counted.
    """

    def __init__(self, *, store: AttemptCountStore, telemetry: Telemetry) -> None:
        self._store = store
        self._telemetry = telemetry
        self._failed_at: OrderedDict[CountedSubscriber, int] = OrderedDict()
        self._lock = threading.Lock()

    def count(self, records: Sequence[DeliveryRecord]) -> None:
        """Count the attempts among some records that were just written for the first time."""
        found = counts_of(records)
        in_trouble = [
            (subscriber, hour, counts)
            for (subscriber, hour), counts in sorted(found.items(), key=lambda each: -each[1].failed)
            if self._is_in_trouble(subscriber, hour, counts)
        ]
        for subscriber, hour, counts in in_trouble[:MOST_AT_ONCE]:
            try:
                self._store.add_attempts(subscriber, hour, counts)
            except Unavailable as error:
                self._telemetry.event("attempts_not_counted", error=str(error), project=subscriber.project)

    def _is_in_trouble(self, subscriber: CountedSubscriber, hour: int, counts: AttemptCounts) -> bool:
        first_ms = hour + min(minute for minute, _ in counts.minutes) * MINUTE_MS
        with self._lock:
            if counts.failed:
                self._failed_at[subscriber] = hour + max(minute for minute, _ in counts.minutes) * MINUTE_MS
                self._failed_at.move_to_end(subscriber)
                if len(self._failed_at) > KNOWN:
                    self._failed_at.popitem(last=False)
                return True
            failed_at = self._failed_at.get(subscriber)
            return failed_at is not None and first_ms - failed_at < HOUR_MS
