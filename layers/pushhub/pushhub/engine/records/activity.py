"""Recent activity of a project and its subscribers, hour by hour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.engine.component import Component
from pushhub.engine.model.activity import HOUR_MS, Activity, SubscriberActivity

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.records.ports import ActivityStore


@dataclass(frozen=True, slots=True, kw_only=True)
class AtSubscriber:
    """Recent activity at a subscriber.

    Attributes:
        hours: Start of each hour (epoch milliseconds), and the activity in it.
        complete: Whether all attempts are counted; in a project with very many busy subscribers, quieter ones may be
            undercounted.
    """

    hours: list[tuple[int, SubscriberActivity]]
    complete: bool


class ProjectActivity(Component):
    """Reports recent activity. Counts lag a minute or two behind, as delivery records do."""

    store: ActivityStore  # Where activity is counted.
    clock: Clock  # Determines the current hour.

    def lately(self, project_id: str, hours: int) -> list[tuple[int, Activity]]:
        """The most recent hours, oldest first and including the current one: the start of each (epoch milliseconds),
        and the activity in it.

        Args:
            hours: How many; at most a week is kept.
        """
        first, last = self._span(hours)
        known = self.store.activity(project_id, first, last)
        return [(hour, known.get(hour, Activity())) for hour in range(first, last + 1, HOUR_MS)]

    def at_subscriber(self, project_id: str, subscriber_id: str, hours: int) -> AtSubscriber:
        """The same for one subscriber.

        Args:
            subscriber_id: The hub's id of the subscriber; an unknown one has no activity.
            hours: How many; at most a week is kept.
        """
        first, last = self._span(hours)
        store = self.store
        known = store.subscriber_activity(project_id, subscriber_id, first, last)
        whole = store.activity(project_id, first, last)
        return AtSubscriber(
            hours=[(hour, known.get(hour, SubscriberActivity())) for hour in range(first, last + 1, HOUR_MS)],
            complete=not any(each.unattributed for each in whole.values()),
        )

    def _span(self, hours: int) -> tuple[int, int]:
        last = self.clock.now() // HOUR_MS * HOUR_MS
        return last - (hours - 1) * HOUR_MS, last
