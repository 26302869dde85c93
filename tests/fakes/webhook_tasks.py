"""Portal tokens and background tasks, in memory."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pushhub.base.errors import Conflict
from pushhub.webhooks.model.autoconfig import Autoconfig
from pushhub.webhooks.model.connector import Connector
from pushhub.webhooks.model.integration import AppIntegration
from pushhub.webhooks.model.page import KeyRange, taken
from pushhub.webhooks.model.portal import PortalAccess
from pushhub.webhooks.model.portal_frame import PortalFrame
from pushhub.webhooks.model.task import Task, TaskStatus
from pushhub.webhooks.ports import UidTaken


class FakePortalTokens:
    """Keeps tokens in a dictionary."""

    def __init__(self) -> None:
        self._accesses: dict[tuple[str, str, str], PortalAccess] = {}

    def put_access(self, access: PortalAccess) -> None:
        self._accesses[_key(access)] = access

    def change_access(self, access: PortalAccess) -> None:
        stored = self._accesses.get(_key(access))
        if stored is not None and stored.expires_at // 1000 >= access.expires_at // 1000:
            self._accesses[_key(access)] = access

    def access(self, project_id: str, app_id: str, digest: str) -> PortalAccess | None:
        return self._accesses.get((project_id, app_id, digest))

    def accesses(self, project_id: str, app_id: str) -> list[PortalAccess]:
        return [each for key, each in self._accesses.items() if key[:2] == (project_id, app_id)]

    def remove_accesses(self, accesses: Sequence[PortalAccess]) -> None:
        for each in accesses:
            self._accesses.pop(_key(each), None)


class FakeAppIntegrations:
    """Keeps integrations in a dictionary."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str], AppIntegration] = {}

    def integration(self, project_id: str, app_id: str, integration_id: str) -> AppIntegration | None:
        return self._kept.get((project_id, app_id, integration_id))

    def integrations(self, project_id: str, app_id: str, span: KeyRange) -> Iterator[AppIntegration]:
        found = [each for key, each in self._kept.items() if key[:2] == (project_id, app_id)]
        return iter(taken(found, lambda each: each.integration_id, span))

    def put_integration(self, integration: AppIntegration) -> None:
        self._kept[integration.project, integration.app_id, integration.integration_id] = integration

    def change_integration(self, integration: AppIntegration) -> bool:
        there = self.integration(integration.project, integration.app_id, integration.integration_id) is not None
        if there:
            self.put_integration(integration)
        return there

    def delete_integration(self, integration: AppIntegration) -> None:
        self._kept.pop((integration.project, integration.app_id, integration.integration_id), None)


class FakeConnectors:
    """Keeps connectors in a dictionary."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Connector] = {}

    def connector(self, project_id: str, name: str) -> Connector | None:
        of_project = [each for key, each in self._kept.items() if key[0] == project_id]
        return next((each for each in of_project if name in (each.connector_id, each.fields.uid)), None)

    def connectors(self, project_id: str, span: KeyRange) -> Iterator[Connector]:
        of_project = [each for key, each in self._kept.items() if key[0] == project_id]
        return iter(taken(of_project, lambda each: each.connector_id, span))

    def put_connector(self, connector: Connector) -> Connector:
        key, uid = (connector.project, connector.connector_id), connector.fields.uid
        there = self._kept.get(key)
        if (there.version if there else 0) != connector.version:
            raise Conflict("it changed")
        if there is None and uid is not None and self.connector(connector.project, uid) is not None:
            raise UidTaken
        self._kept[key] = replace(connector, version=connector.version + 1)
        return self._kept[key]

    def delete_connector(self, connector: Connector) -> None:
        self._kept.pop((connector.project, connector.connector_id), None)


class FakeAutoconfigs:
    """Keeps autoconfigurations in a dictionary."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str], Autoconfig] = {}

    def autoconfig(self, project_id: str, app_id: str, autoconfig_id: str) -> Autoconfig | None:
        return self._kept.get((project_id, app_id, autoconfig_id))

    def put_autoconfig(self, autoconfig: Autoconfig) -> None:
        self._kept[autoconfig.project, autoconfig.app_id, autoconfig.autoconfig_id] = autoconfig

    def change_autoconfig(self, before: Autoconfig, after: Autoconfig) -> bool:
        if self.autoconfig(before.project, before.app_id, before.autoconfig_id) != before:
            return False
        self.put_autoconfig(after)
        return True

    def delete_autoconfig(self, autoconfig: Autoconfig) -> None:
        self._kept.pop((autoconfig.project, autoconfig.app_id, autoconfig.autoconfig_id), None)


class FakePortalFrames:
    """Keeps frames in a dictionary."""

    def __init__(self) -> None:
        self._frames: dict[str, PortalFrame] = {}

    def frame(self, wanted: PortalFrame) -> PortalFrame:
        return self._frames.get(wanted.name, wanted)

    def put_frame(self, frame: PortalFrame) -> None:
        self._frames[frame.name] = frame


class FakeTasks:
    """Keeps tasks in a dictionary."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: dict[tuple[str, str], Task] = {}
        self._turns: dict[str, int] = {}

    def task(self, project_id: str, task_id: str) -> Task | None:
        return self._tasks.get((project_id, task_id))

    def tasks(self, project_id: str, span: KeyRange) -> Iterator[Task]:
        found = [each for key, each in self._tasks.items() if key[0] == project_id]
        return iter(taken(found, lambda each: each.task_id, span))

    def put_task(self, task: Task) -> Task:
        with self._lock:
            stored = self._tasks.get((task.project, task.task_id))
            if (stored.version if stored else 0) != task.version:
                raise Conflict("it changed")
            raised = replace(task, version=task.version + 1)
            self._tasks[task.project, task.task_id] = raised
            return raised

    def running_tasks(self, project_id: str) -> Iterator[Task]:
        running = [each for each in self._running() if each.project == project_id]
        return iter(sorted(running, key=lambda each: each.task_id))

    def projects_with_tasks(self) -> list[str]:
        return sorted({each.project for each in self._running()})

    def take_turn(self, project_id: str, *, now: int, until: int) -> bool:
        with self._lock:
            if self._turns.get(project_id, 0) > now:
                return False
            self._turns[project_id] = until
            return True

    def has_turn(self, project_id: str, *, now: int) -> bool:
        return self._turns.get(project_id, 0) > now

    def give_turn_back(self, project_id: str, until: int) -> None:
        with self._lock:
            if self._turns.get(project_id) == until:
                del self._turns[project_id]

    def _running(self) -> list[Task]:
        return [each for each in self._tasks.values() if each.status is TaskStatus.RUNNING]


class FakeTaskRuns:
    """Records the runs that were started.

    Attributes:
        started: Projects, in order.
    """

    def __init__(self) -> None:
        self.started: list[str] = []

    def start(self, project_id: str) -> None:
        self.started.append(project_id)


class FakeOperationalCounts:
    """Counts in a dictionary."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, int]] = Counter()

    def count(self, project_id: str, what: str, minute: int) -> int:
        self._counts[project_id, what, minute] += 1
        return self._counts[project_id, what, minute]


class FakePlaces:
    """Keeps places in a dictionary."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str, str], str] = {}

    def place(self, project_id: str, app_id: str, consumer: str) -> str | None:
        return self._places.get((project_id, app_id, consumer))

    def put_place(self, project_id: str, app_id: str, consumer: str, place: str) -> None:
        self._places[project_id, app_id, consumer] = place


def _key(access: PortalAccess) -> tuple[str, str, str]:
    return access.project, access.app_id, access.digest
