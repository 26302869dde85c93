"""Background tasks: stored, listed, cancelled, and executed in slices, so that no slice outlasts its invocation and
each task continues after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Conflict, HubError
from pushhub.webhooks.model.ids import Kind, first_id, is_id, new_id
from pushhub.webhooks.model.page import Page, Span, Window, page_of, span_of
from pushhub.webhooks.model.refusals import Refused, not_found
from pushhub.webhooks.model.task import Task, TaskAsk, TaskKind, TaskStatus

if TYPE_CHECKING:
    from pushhub.base.ports import Clock

KEPT_MS = 90 * 86_400_000
"""How long tasks are listed, milliseconds."""
SLICE_MS = 3_000
"""How long the request for a task may work on it before it is answered, milliseconds."""
LEASE_MS = 120_000
"""How long a crashed worker blocks its task for others, milliseconds; a slice is shorter."""
MARGIN_MS = 10_000
"""Time kept free at the end of an invocation, milliseconds."""


class TaskStore(Protocol):
    """Stores tasks. Reads are consistent. May raise ``Unavailable``."""

    def task(self, project_id: str, task_id: str) -> Task | None:
        """A task, or None."""
        ...

    def tasks(self, project_id: str, span: Span) -> Iterator[Task]:
        """The tasks of a project with ids in a span, in its direction."""
        ...

    def put_task(self, task: Task) -> Task:
        """Store a task in place of its version (0 for a new one); returns it with its version raised.

        Raises:
            Conflict: The stored one has another version.
        """
        ...

    def running_tasks(self) -> Iterator[Task]:
        """The unfinished tasks of all projects, oldest first in each project."""
        ...


Step = Callable[[Task], Task]
"""Does a small part of a task and returns its new state: ended when nothing is left, unchanged when it has to wait.

Safe to repeat.
"""


class Worker(Protocol):
    """Executes tasks of certain kinds."""

    def step(self, task: Task) -> Task:
        """See :data:`Step`.

        Raises:
            HubError: It cannot be done now.
        """
        ...


class Tasks:
    """The tasks of projects.

    Args:
        store: Where they are kept.
        workers: The workers by kind; created when first needed.
        ended: Called with each task that ended.
        clock: Time.
    """

    def __init__(
        self,
        *,
        store: TaskStore,
        workers: Mapping[TaskKind, Callable[[], Worker]],
        ended: Callable[[Task], None],
        clock: Clock,
    ) -> None:
        self._store = store
        self._workers = workers
        self._ended = ended
        self._clock = clock

    def begin(self, project_id: str, kind: TaskKind, ask: TaskAsk, *, app_id: str = "", endpoint_id: str = "") -> Task:
        """Store a new task and work on it for a moment; returns it in its initial state.

        Raises:
            Unavailable: It may not have been stored.
        """
        now = self._clock.now()
        begun = self._store.put_task(
            Task(
                project=project_id,
                task_id=new_id(Kind.TASK, now),
                kind=kind,
                app_id=app_id,
                endpoint_id=endpoint_id,
                ask=ask,
                created_at=now,
                updated_at=now,
            )
        )
        # It is stored, so it will certainly be done, only later.
        with suppress(HubError):
            self._work(begun, now + SLICE_MS)
        return begun

    def task(self, project_id: str, task_id: str) -> Task:
        """A task.

        Raises:
            NotFound: There is none.
        """
        found = self._store.task(project_id, task_id) if is_id(Kind.TASK, task_id) else None
        if found is None:
            raise not_found()
        return found

    def page(self, project_id: str, window: Window, *, kind: str = "", status: str = "") -> Page[Task]:
        """A page of a project's tasks of the last 90 days.

        Args:
            project_id: Owner.
            window: Which part.
            kind: Only tasks of this kind; empty for all.
            status: Only tasks with this status; empty for all.
        """
        span = span_of(window, above=first_id(Kind.TASK, self._clock.now() - KEPT_MS))
        found = self._store.tasks(project_id, span)
        return page_of(
            found,
            window,
            lambda each: each.task_id,
            lambda each: kind in ("", each.kind) and status in ("", each.status),
        )

    def cancel(self, project_id: str, task_id: str) -> Task:
        """Cancel a task; what it sent stays sent. Its worker notices before the next part.

        Raises:
            NotFound: There is none.
            Refused: It has already ended (409).
            Unavailable: It kept changing concurrently.
        """

        def once() -> Task:
            task = self.task(project_id, task_id)
            if task.status is not TaskStatus.RUNNING:
                raise Refused(409, "conflict", f"The task is {task.status} already")
            return self._store.put_task(task.ended(TaskStatus.FAILED, self._clock.now(), canceled=True))

        ended = until_saved(once, doing="cancelling a task")
        self._ended(ended)
        return ended

    def run(self, remaining_ms: Callable[[], int]) -> int:
        """Continue every unfinished task, each as far as its share of the time allows.

        Returns how many were worked on.

        Raises:
            Unavailable: The next run continues.
        """
        running = list(self._store.running_tasks())
        for number, task in enumerate(running):
            left = remaining_ms() - MARGIN_MS
            if left <= 0:
                return number
            # A task that cannot continue now does not block the others; the next run continues it.
            with suppress(HubError):
                self._work(task, self._clock.now() + left // (len(running) - number))
        return len(running)

    def _work(self, task: Task, until: int) -> None:
        """Do parts of a task until it ends, has to wait, is taken by another worker, or time is up."""
        if task.status is not TaskStatus.RUNNING or task.leased_until > self._clock.now():
            return
        worker = self._workers[task.kind]()
        # Another worker has it, or its owner ended it: nothing is left to do here.
        with suppress(Conflict):
            task = self._store.put_task(replace(task, leased_until=self._clock.now() + LEASE_MS))
            while self._clock.now() < until:
                after = worker.step(task)
                if after == task:
                    break
                task = self._store.put_task(after)
                if task.status is not TaskStatus.RUNNING:
                    self._ended(task)
                    return
            self._store.put_task(replace(task, leased_until=0))
