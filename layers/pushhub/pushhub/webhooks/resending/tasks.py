"""Background tasks: stored, listed, cancelled, and executed in slices by runs of which each is for one project.

So no task waits for another project's, no slice outlasts its invocation, and each task continues after a crash
(docs/decisions/webhooks.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Conflict, HubError, Unavailable
from pushhub.engine.component import Component
from pushhub.webhooks.model.ids import IdPrefix, first_id, is_id, new_id
from pushhub.webhooks.model.page import KeyRange, Page, Window, page_of, span_of
from pushhub.webhooks.model.refusals import Refused, not_found
from pushhub.webhooks.model.task import Task, TaskAsk, TaskKind, TaskStatus

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.webhooks.ports import RequestKey

KEPT_MS = 90 * 86_400_000
"""How long tasks are listed, milliseconds."""
SLICE_MS = 3_000
"""How long one task is worked on while others of its project wait, milliseconds."""
MARGIN_MS = 10_000
"""Time kept free at the end of an invocation, milliseconds."""


class TaskStore(Protocol):
    """Stores tasks. Reads are consistent. May raise ``Unavailable``."""

    def task(self, project_id: str, task_id: str) -> Task | None:
        """A task, or None."""

    def tasks(self, project_id: str, span: KeyRange) -> Iterator[Task]:
        """The tasks of a project with ids in a span, in its direction."""

    def put_task(self, task: Task) -> Task:
        """Store a task in place of its version (0 for a new one); returns it with its version raised.

        Raises:
            Conflict: The stored one has another version.
        """

    def running_tasks(self, project_id: str) -> Iterator[Task]:
        """The unfinished tasks of a project, oldest first."""

    def projects_with_tasks(self) -> Iterable[str]:
        """The projects with unfinished tasks, each once."""

    def take_turn(self, project_id: str, *, now: int, until: int) -> bool:
        """Take the right to work on a project's tasks, until then at most; False when another run has it."""

    def has_turn(self, project_id: str, *, now: int) -> bool:
        """Whether a run has this right now."""

    def give_turn_back(self, project_id: str, until: int) -> None:
        """Give the right back, unless it was over and somebody else has it."""


class TaskRuns(Protocol):
    """Starts runs that work on tasks."""

    def start(self, project_id: str) -> None:
        """Have the tasks of a project worked on, in a run of its own; returns at once.

        Raises:
            Unavailable: It may not run; the next minute makes up for it.
        """


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


class Tasks(Component):
    """The tasks of projects. Methods raise ``NotFound`` for what is not there."""

    store: TaskStore
    runs: TaskRuns
    # Notes which task a request makes, by project, key of the request, and a new id; returns the id that was noted
    # first.
    note_id: Callable[[str, RequestKey, str], str]
    workers: Mapping[TaskKind, Callable[[], Worker]]  # The workers by kind; created when first needed.
    ended: Callable[[Task], None]  # Called with each task that ended.
    clock: Clock

    def begin(
        self,
        project_id: str,
        kind: TaskKind,
        ask: TaskAsk,
        *,
        app_id: str = "",
        endpoint_id: str = "",
        key: RequestKey | None = None,
    ) -> Task:
        """Store a new task and have it begun; returns it in its initial state, however often the request is repeated.

        Args:
            key: Identifies repetitions of the request; None without an idempotency key.

        Raises:
            Unprocessable: The key was used for another request.
        """
        now = self.clock.now()
        task_id = new_id(IdPrefix.TASK, now)
        if key:
            task_id = self.note_id(project_id, key, task_id)
        task = Task(
            project=project_id,
            task_id=task_id,
            kind=kind,
            app_id=app_id,
            endpoint_id=endpoint_id,
            ask=ask,
            created_at=now,
            updated_at=now,
        )

        def stored_before() -> Task | None:
            try:
                self.store.put_task(task)
            except Conflict:
                if stored := self.store.task(project_id, task_id):
                    return stored
                raise
            return None

        if stored := until_saved(stored_before, doing="storing a task"):
            return replace(task, kind=stored.kind, created_at=stored.created_at, updated_at=stored.created_at)
        # It is stored, so it will certainly be done, only later. A run that has the turn looks for tasks again after it
        # has given the turn back: sixty requests are not sixty runs.
        with suppress(Unavailable):
            if not self.store.has_turn(project_id, now=self.clock.now()):
                self.runs.start(project_id)
        return task

    def task(self, project_id: str, task_id: str) -> Task:
        """A task."""
        found = self.store.task(project_id, task_id) if is_id(IdPrefix.TASK, task_id) else None
        if found is None:
            raise not_found()
        return found

    def page(self, project_id: str, window: Window, *, kind: str = "", status: str = "") -> Page[Task]:
        """A page of a project's tasks of the last 90 days.

        Args:
            kind: Only tasks of this kind; empty for all.
            status: Only tasks with this status; empty for all.
        """
        span = span_of(window, above=first_id(IdPrefix.TASK, self.clock.now() - KEPT_MS))
        found = self.store.tasks(project_id, span)
        return page_of(
            found,
            window,
            lambda each: each.task_id,
            lambda each: kind in ("", each.kind) and status in ("", each.status),
        )

    def cancel(self, project_id: str, task_id: str) -> Task:
        """Cancel a task; what it sent stays sent. Its worker notices before the next part.

        Raises:
            Refused: It has already ended (409).
            Unavailable: It kept changing concurrently.
        """

        def once() -> Task:
            task = self.task(project_id, task_id)
            if task.status is not TaskStatus.RUNNING:
                raise Refused(409, "conflict", f"The task is {task.status} already")
            return self.store.put_task(task.ended(TaskStatus.FAILED, self.clock.now(), canceled=True))

        ended = until_saved(once, doing="cancelling a task")
        self.ended(ended)
        return ended

    def run(self, remaining_ms: Callable[[], int]) -> int:
        """Start a run for each project with unfinished tasks; returns how many were started.

        Raises:
            Unavailable: The next minute continues.
        """
        started = 0
        for project_id in self.store.projects_with_tasks():
            if remaining_ms() <= MARGIN_MS:
                break
            with suppress(Unavailable):
                self.runs.start(project_id)
                started += 1
        return started

    def run_project(self, project_id: str, remaining_ms: Callable[[], int]) -> int:
        """Work on the tasks of a project, in turns, until none can continue or time is up; one run at a time does.

        Returns how many ended, have to wait, or cannot be done now.

        Raises:
            Unavailable: The next run continues.
        """
        settled: set[str] = set()
        while remaining_ms() > MARGIN_MS and self._workable(project_id, settled):
            now = self.clock.now()
            until = now + remaining_ms()
            if not self.store.take_turn(project_id, now=now, until=until):
                break
            try:
                self._work_off(project_id, settled, remaining_ms)
            finally:
                self.store.give_turn_back(project_id, until)
            # Somebody else's run, for a task stored meanwhile, may have seen the turn taken: look again.
        return len(settled)

    def _workable(self, project_id: str, settled: set[str]) -> list[Task]:
        return [each for each in self.store.running_tasks(project_id) if each.task_id not in settled]

    def _work_off(self, project_id: str, settled: set[str], remaining_ms: Callable[[], int]) -> None:
        """Do slices of the tasks that are not settled, and add to these."""
        while workable := self._workable(project_id, settled):
            for number, task in enumerate(workable):
                left = remaining_ms() - MARGIN_MS
                if left <= 0:
                    return
                share = left // (len(workable) - number)
                # A task that cannot continue now does not block the others; the next run continues it.
                settles = True
                with suppress(HubError):
                    settles = self._work(task, self.clock.now() + min(SLICE_MS, share))
                if settles:
                    settled.add(task.task_id)

    def _work(self, task: Task, until: int) -> bool:
        """Do parts of a task until it ends, has to wait, or time is up; returns whether it has ended or has to wait."""
        worker = self.workers[task.kind]()
        while True:
            after = worker.step(task)
            if after == task:
                return True
            try:
                task = self.store.put_task(after)
            except Conflict:
                # Its owner ended it, or a run whose time was up still had it: what is stored counts.
                return False
            if task.status is not TaskStatus.RUNNING:
                self.ended(task)
                return True
            if self.clock.now() >= until:
                return False
