"""What went on by project and hour, in memory."""

from __future__ import annotations

from pushhub.engine.model.activity import Activity

__all__ = ["FakeActivity"]


class FakeActivity:
    """Implements :class:`pushhub.engine.ports.ActivityStore`."""

    def __init__(self) -> None:
        self._hours: dict[tuple[str, int], Activity] = {}

    def add_activity(self, project_id: str, hour: int, activity: Activity) -> None:
        """See the port."""
        self._hours[project_id, hour] = self._hours.get((project_id, hour), Activity()) + activity

    def activity(self, project_id: str, first: int, last: int) -> dict[int, Activity]:
        """See the port."""
        return {
            hour: activity
            for (project, hour), activity in self._hours.items()
            if project == project_id and first <= hour <= last
        }
