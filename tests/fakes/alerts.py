"""Alerts of projects, and what those of pull queues know of sizes, in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pushhub.base.errors import Conflict
from pushhub.ironmq.model.alert_level import AlertLevels
from pushhub.ironmq.model.project_alert import ProjectAlert


class FakeAlertLevels:
    """Implements :class:`pushhub.ironmq.queues.size_alerts.AlertLevelStore`."""

    def __init__(self) -> None:
        self._levels: dict[tuple[str, str], AlertLevels] = {}

    def levels(self, project_id: str, pull_uid: str) -> AlertLevels:
        return self._levels.get((project_id, pull_uid)) or AlertLevels(project=project_id, pull_uid=pull_uid)

    def save(self, levels: AlertLevels) -> None:
        if self.levels(levels.project, levels.pull_uid).version != levels.version:
            raise Conflict(f"alerts of {levels.pull_uid} were looked at meanwhile")
        self._levels[levels.project, levels.pull_uid] = replace(levels, version=levels.version + 1)


class FakeAlerts:
    """Implements :class:`pushhub.ironmq.alerts.ports.AlertStore`.

    Attributes:
        writes: Number of alerts written.
    """

    def __init__(self) -> None:
        self._alerts: dict[tuple[str, str], ProjectAlert] = {}
        self.writes = 0

    def alerts(self, project_id: str) -> list[ProjectAlert]:
        return [each for (project, _), each in self._alerts.items() if project == project_id]

    def all_alerts(self) -> Iterator[ProjectAlert]:
        yield from list(self._alerts.values())

    def alert(self, project_id: str, alert_id: str) -> ProjectAlert | None:
        return self._alerts.get((project_id, alert_id))

    def save(self, alert: ProjectAlert) -> ProjectAlert:
        stored = self._alerts.get((alert.project, alert.alert_id))
        if (stored.version if stored else 0) != alert.version:
            raise Conflict(f"{alert.alert_id} has another version than {alert.version}")
        saved = replace(alert, version=alert.version + 1)
        self._alerts[alert.project, alert.alert_id] = saved
        self.writes += 1
        return saved

    def remove(self, project_id: str, alert_id: str) -> bool:
        return self._alerts.pop((project_id, alert_id), None) is not None
