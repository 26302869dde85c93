"""Counts the outcomes of attempts at failing subscribers, so that their owners can replay the failures.

A healthy subscriber costs nothing.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from pushhub.base.errors import Unavailable
from pushhub.engine.component import Component
from pushhub.engine.model.activity import HOUR_MS
from pushhub.engine.model.attempt_counts import MINUTE_MS, AttemptCounts, CountedSubscriber, counts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.base.ports import Telemetry
    from pushhub.engine.model.record import DeliveryRecord
    from pushhub.engine.ports import AttemptCountStore

MOST_AT_ONCE = 100
"""Maximum number of subscriber hours written for one object of up to 1,000 records, and a tenth of the records for a
larger one; those with the most failures come first."""

KNOWN = 5_000
"""Number of recently failed subscribers kept in memory; the one whose failure is longest ago is forgotten first."""


class CountAttempts(Component):
    """Counts attempts at each subscriber from its first failure until it has not failed for an hour.

    This is a statistic: an error while counting affects nothing else. Each execution environment keeps its own list of
    failing subscribers, so successes may go uncounted when only another environment saw the failure; failures never do.
    """

    store: AttemptCountStore  # Where attempts are counted.
    telemetry: Telemetry  # Told of attempts that could not be counted.

    def __post_init__(self) -> None:
        self._failed_at: OrderedDict[CountedSubscriber, int] = OrderedDict()
        self._lock = threading.Lock()

    def count(self, records: Sequence[DeliveryRecord]) -> None:
        """Count the attempts in records that were just written for the first time."""
        found = counts_of(records)
        in_trouble = [
            (subscriber, hour, counts)
            for (subscriber, hour), counts in sorted(found.items(), key=lambda each: -each[1].failed)
            if self._is_in_trouble(subscriber, hour, counts)
        ]
        for subscriber, hour, counts in in_trouble[: max(MOST_AT_ONCE, len(records) // 10)]:
            try:
                self.store.add_attempts(subscriber, hour, counts)
            except Unavailable as error:
                self.telemetry.event("attempts_not_counted", error=str(error), project=subscriber.project)

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
