"""What went on in a project lately, hour by hour."""

from __future__ import annotations

from collections.abc import Callable

from pushhub.base.ports import Clock
from pushhub.engine.model.activity import HOUR_MS, Activity
from pushhub.engine.ports import ActivityStore


class ProjectActivity:
    """Tells what went on. Counts follow what happened by a minute or two, as delivery records do.

    Args:
        store: Where it is counted; asked for when it is needed.
        clock: Says which hour this is.
    """

    def __init__(self, *, store: Callable[[], ActivityStore], clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def lately(self, project_id: str, hours: int) -> list[tuple[int, Activity]]:
        """The last hours, oldest first, this one included: when each began (epoch milliseconds),
        and what went on in it.

        Args:
            project_id: The project.
            hours: How many; a week's at most are known.
        """
        last = self._clock.now() // HOUR_MS * HOUR_MS
        first = last - (hours - 1) * HOUR_MS
        known = self._store().activity(project_id, first, last)
        return [(hour, known.get(hour, Activity())) for hour in range(first, last + 1, HOUR_MS)]
