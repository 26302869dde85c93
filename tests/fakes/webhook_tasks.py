"""Portal tokens and background tasks, in memory."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pushhub.base.errors import Conflict
from pushhub.webhooks.model.page import KeyRange, taken
from pushhub.webhooks.model.portal import PortalAccess
from pushhub.webhooks.model.portal_frame import PortalFrame
from pushhub.webhooks.model.task import Task, TaskStatus

__all__ = ["FakePlaces", "FakePortalTokens", "FakeTaskRuns", "FakeTasks", "FakeToldCounts"]


class FakePortalTokens:
    """Keeps tokens in a dictionary."""

    def __init__(self) -> None:
        self._accesses: dict[tuple[str, str, str], PortalAccess] = {}

    def put_access(self, access: PortalAccess) -> None:
        """See the port."""
        self._accesses[_key(access)] = access

    def shorten_access(self, access: PortalAccess) -> None:
        """See the port."""
        if _key(access) in self._accesses:
            self._accesses[_key(access)] = access

    def access(self, project_id: str, app_id: str, digest: str) -> PortalAccess | None:
        """See the port."""
        return self._accesses.get((project_id, app_id, digest))

    def accesses(self, project_id: str, app_id: str) -> list[PortalAccess]:
        """See the port."""
        return [each for key, each in self._accesses.items() if key[:2] == (project_id, app_id)]

    def remove_accesses(self, accesses: Sequence[PortalAccess]) -> None:
        """See the port."""
        for each in accesses:
            self._accesses.pop(_key(each), None)


class FakePortalFrames:
    """Keeps frames in a dictionary."""

    def __init__(self) -> None:
        self._frames: dict[str, PortalFrame] = {}

    def frame(self, wanted: PortalFrame) -> PortalFrame:
        """See the port."""
        return self._frames.get(wanted.name, wanted)

    def put_frame(self, frame: PortalFrame) -> None:
        """See the port."""
        self._frames[frame.name] = frame


class FakeTasks:
    """Keeps tasks in a dictionary."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: dict[tuple[str, str], Task] = {}
        self._turns: dict[str, int] = {}

    def task(self, project_id: str, task_id: str) -> Task | None:
        """See the port."""
        return self._tasks.get((project_id, task_id))

    def tasks(self, project_id: str, span: KeyRange) -> Iterator[Task]:
        """See the port."""
        found = [each for key, each in self._tasks.items() if key[0] == project_id]
        return iter(taken(found, lambda each: each.task_id, span))

    def put_task(self, task: Task) -> Task:
        """See the port."""
        with self._lock:
            stored = self._tasks.get((task.project, task.task_id))
            if (stored.version if stored else 0) != task.version:
                raise Conflict("it changed")
            raised = replace(task, version=task.version + 1)
            self._tasks[task.project, task.task_id] = raised
            return raised

    def running_tasks(self, project_id: str) -> Iterator[Task]:
        """See the port."""
        running = [each for each in self._running() if each.project == project_id]
        return iter(sorted(running, key=lambda each: each.task_id))

    def projects_with_tasks(self) -> list[str]:
        """See the port."""
        return sorted({each.project for each in self._running()})

    def take_turn(self, project_id: str, *, now: int, until: int) -> bool:
        """See the port."""
        with self._lock:
            if self._turns.get(project_id, 0) > now:
                return False
            self._turns[project_id] = until
            return True

    def has_turn(self, project_id: str, *, now: int) -> bool:
        """See the port."""
        return self._turns.get(project_id, 0) > now

    def give_turn_back(self, project_id: str, until: int) -> None:
        """See the port."""
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
        """See the port."""
        self.started.append(project_id)


class FakeToldCounts:
    """Counts in a dictionary."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, int]] = Counter()

    def count(self, project_id: str, what: str, minute: int) -> int:
        """See the port."""
        self._counts[project_id, what, minute] += 1
        return self._counts[project_id, what, minute]


class FakePlaces:
    """Keeps places in a dictionary."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str, str], str] = {}

    def place(self, project_id: str, app_id: str, consumer: str) -> str | None:
        """See the port."""
        return self._places.get((project_id, app_id, consumer))

    def put_place(self, project_id: str, app_id: str, consumer: str, place: str) -> None:
        """See the port."""
        self._places[project_id, app_id, consumer] = place


def _key(access: PortalAccess) -> tuple[str, str, str]:
    return access.project, access.app_id, access.digest
