"""Activity by project and by subscriber, hour by hour, and delivery reports, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pushhub.engine.model.activity import Activity, SubscriberActivity
from pushhub.engine.records.ports import Report


class FakeActivity:
    """Implements :class:`pushhub.engine.records.ports.ActivityStore`."""

    def __init__(self) -> None:
        self._hours: dict[tuple[str, int], Activity] = {}
        self._at: dict[tuple[str, str, int], SubscriberActivity] = {}

    def add_activity(self, project_id: str, hour: int, activity: Activity) -> None:
        self._hours[project_id, hour] = self._hours.get((project_id, hour), Activity()) + activity

    def activity(self, project_id: str, first: int, last: int) -> dict[int, Activity]:
        return {
            hour: activity
            for (project, hour), activity in self._hours.items()
            if project == project_id and first <= hour <= last
        }

    def add_subscriber_activity(
        self, project_id: str, subscriber_id: str, hour: int, activity: SubscriberActivity
    ) -> None:
        key = (project_id, subscriber_id, hour)
        self._at[key] = self._at.get(key, SubscriberActivity()) + activity

    def subscriber_activity(
        self, project_id: str, subscriber_id: str, first: int, last: int
    ) -> dict[int, SubscriberActivity]:
        return {
            hour: activity
            for (project, subscriber, hour), activity in self._at.items()
            if (project, subscriber) == (project_id, subscriber_id) and first <= hour <= last
        }

    def activity_at(
        self, project_id: str, subscriber_ids: Sequence[str], hours: Sequence[int]
    ) -> dict[str, SubscriberActivity]:
        asked = [(project_id, each, hour) for each in subscriber_ids for hour in hours]
        found: dict[str, SubscriberActivity] = {}
        for key in asked:
            if key in self._at:
                found[key[1]] = found.get(key[1], SubscriberActivity()) + self._at[key]
        return found


class FakeReports:
    """Implements :class:`pushhub.engine.records.ports.ReportStore`.

    Attributes:
        report: The newest one, None for none.
        tables: Its tables by name.
    """

    def __init__(self) -> None:
        self.report: Report | None = Report(name="2026-11-15_2026-11-21", as_of="2026-11-22T01:30:00.000000+00:00")
        self.tables: dict[str, list[dict[str, Any]]] = {}

    def newest(self) -> Report | None:
        return self.report

    def rows(self, report: str, table: str) -> list[dict[str, Any]]:
        assert self.report is not None
        assert report == self.report.name
        return self.tables.get(table, [])
