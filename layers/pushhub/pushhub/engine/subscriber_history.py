"""Recent failures of a subscriber, for any token of its project: a few reads, whatever the traffic was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.errors import NotFound
from pushhub.engine.component import Component
from pushhub.engine.model.activity import HOUR_MS
from pushhub.engine.model.attempt_counts import CountedSubscriber

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.history import History
    from pushhub.engine.ports import AttemptCountStore, QueueSource

KEPT_MS = 8 * 24 * HOUR_MS
"""How far back counts are available."""


class SubscriberHistory(Component):
    """Reports the history of subscribers that failed."""

    store: AttemptCountStore  # Where attempts are counted.
    queues: QueueSource  # Queues of owners, to find a subscriber by name.
    clock: Clock  # Limits how far back to look.

    def told(
        self, project_id: str, queue: str, subscriber: str, *, since: int, until: int, most_windows: int
    ) -> History:
        """A subscriber's history in a time range; reads at most a week, one item per hour.

        Args:
            project_id: The project whose token was used.
            queue: Name of the queue; for a webhook endpoint, ``webhooks/`` and the application's id.
            subscriber: Its id, or in an owner's queue its name.
            since: Start, epoch milliseconds.
            until: End, epoch milliseconds.
            most_windows: Maximum number of outage windows.

        Raises:
            NotFound: It has no counts: it did not fail, or there is no such subscriber.
        """
        # Rarely used, so other requests should not pay for its imports.
        from pushhub.engine.history import history_of_counts  # noqa: PLC0415

        now = self.clock.now()
        first, last = max(since, now - KEPT_MS), min(until, now + HOUR_MS)
        counted = CountedSubscriber(project_id, queue, self._id_of(project_id, queue, subscriber))
        hours = self.store.attempts(counted, first - first % HOUR_MS, last) if first < last else {}
        found = history_of_counts(hours, since=first, until=last, most_windows=most_windows)
        if found is None:
            raise NotFound("No failure of this subscriber was counted in that time")
        return found

    def _id_of(self, project_id: str, queue: str, subscriber: str) -> str:
        known = self.queues.queue(project_id, queue)
        named = () if known is None or known.push is None else known.push.subscribers
        return next((each.subscriber_id for each in named if each.name == subscriber), subscriber)
