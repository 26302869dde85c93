"""What went on in a project and at its subscribers lately, hour by hour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.engine.model.activity import HOUR_MS, Activity, SubscriberActivity

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.ports import ActivityStore


@dataclass(frozen=True, slots=True, kw_only=True)
class AtSubscriber:
    """What went on at a subscriber.

    Attributes:
        hours: When each began (epoch milliseconds), and what went on in it.
        complete: Whether all attempts are counted; where a project has very many busy subscribers, quieter ones are not
            always.
    """

    hours: list[tuple[int, SubscriberActivity]]
    complete: bool


class ProjectActivity:
    """Tells what went on. Counts follow what happened by a minute or two, as delivery records do.

    Args:
        store: Where it is counted.
        clock: Says which hour this is.
    """

    def __init__(self, *, store: ActivityStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def lately(self, project_id: str, hours: int) -> list[tuple[int, Activity]]:
        """The last hours, oldest first, this one included: when each began (epoch milliseconds),
        and what went on in it.

        Args:
            project_id: The project.
            hours: How many; a week's at most are known.
        """
        first, last = self._span(hours)
        known = self._store.activity(project_id, first, last)
        return [(hour, known.get(hour, Activity())) for hour in range(first, last + 1, HOUR_MS)]

    def at_subscriber(self, project_id: str, subscriber_id: str, hours: int) -> AtSubscriber:
        """The same of one subscriber.

        Args:
            project_id: The project.
            subscriber_id: The hub's id of the subscriber; nothing happened at one that is not there.
            hours: How many; a week's at most are known.
        """
        first, last = self._span(hours)
        store = self._store
        known = store.subscriber_activity(project_id, subscriber_id, first, last)
        whole = store.activity(project_id, first, last)
        return AtSubscriber(
            hours=[(hour, known.get(hour, SubscriberActivity())) for hour in range(first, last + 1, HOUR_MS)],
            complete=not any(each.unattributed for each in whole.values()),
        )

    def _span(self, hours: int) -> tuple[int, int]:
        last = self._clock.now() // HOUR_MS * HOUR_MS
        return last - (hours - 1) * HOUR_MS, last
