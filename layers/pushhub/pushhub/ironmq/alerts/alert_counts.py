"""What was counted of the deliveries that an alert watches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.component import Component
from pushhub.engine.model.activity import HOUR_MS
from pushhub.ironmq.model.project_alert import HOURS_READ, Counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pushhub.engine.model.activity import Activity, SubscriberActivity
    from pushhub.engine.ports import QueueSource
    from pushhub.engine.records.ports import ActivityStore
    from pushhub.ironmq.model.project_alert import ProjectAlert


class AlertCounts(Component):
    """Reads the counts by hour of whatever an alert watches."""

    activity: ActivityStore  # What was counted, by project, subscriber and hour.
    queues: QueueSource

    def of(self, alert: ProjectAlert, now: int) -> dict[int, Counts]:
        """Counts by the start of their hour: the current one and those before it, as many as a window may need."""
        last = now - now % HOUR_MS
        first = last - (HOURS_READ - 1) * HOUR_MS
        if not alert.queue and not alert.subscriber:
            return _by_hour(self.activity.activity(alert.project, first, last))
        found: dict[int, Counts] = {}
        for subscriber_id in self._subscribers(alert):
            counted = self.activity.subscriber_activity(alert.project, subscriber_id, first, last)
            for hour, counts in _by_hour(counted).items():
                found[hour] = found.get(hour, Counts()) + counts
        return found

    def _subscribers(self, alert: ProjectAlert) -> Iterator[str]:
        if not alert.queue:
            yield alert.subscriber
            return
        queue = self.queues.queue(alert.project, alert.queue)
        for each in queue.push.subscribers if queue is not None and queue.push else ():
            if alert.subscriber in ("", each.name):
                yield each.subscriber_id


def _by_hour(counted: Mapping[int, Activity] | Mapping[int, SubscriberActivity]) -> dict[int, Counts]:
    return {
        hour: Counts(attempts=each.attempts, failed=each.failed, given_up=each.given_up)
        for hour, each in counted.items()
    }
