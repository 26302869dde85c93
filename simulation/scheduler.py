"""Virtual time: everything that runs is a task, one at a time, and the seed decides which of the due tasks is next.

A task is a greenlet, so the hub's own code runs unchanged: where it would wait for a service, a future or a clock, its
task yields and continues when that moment has come. Nothing else in the process waits, so runs with the same seed are
identical.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from random import Random
from typing import Any

from greenlet import getcurrent, greenlet

SECOND = 1_000_000
"""Microseconds, the unit of the scheduler's time."""


def current_task() -> tuple[str, str]:
    """The current task and the name of the execution environment it belongs to, if it does."""
    task = getcurrent()
    return str(id(task)), getattr(getattr(task, "environment", None), "name", "")


def current_work() -> str:
    """What the current task works on, as far as it belongs to an execution environment: the event of its run, what that
    has sent, and the call that it makes.
    """
    task = getcurrent()
    work = getattr(getattr(task, "environment", None), "work", None)
    return f"{work} {getattr(task, 'parameters', None)}"


class Killed(BaseException):
    """The process this task belongs to is gone. No handler in the hub may catch this."""


class Scheduler:
    """Runs tasks in virtual time.

    Args:
        seed: Decides between tasks that are due at the same moment.

    Attributes:
        now: Microseconds since the start.
        lines: The trace, if it is kept.
        switches: Tasks resumed so far.
    """

    def __init__(self, seed: str) -> None:
        self.now = 0
        self.lines: list[tuple[int, str]] | None = None
        self.switches = 0
        self._random = Random(f"{seed}/order").random
        self._main = getcurrent()
        self._moments: list[tuple[int, float, int, Callable[[], object]]] = []
        self._number = 0
        self._until = 0
        self._over = False
        self._hash = hashlib.blake2b(digest_size=16)

    def at(self, moment: int, action: Callable[[], object]) -> None:
        """Do something at a given moment (microseconds), outside of any task, so it must not wait."""
        self._number += 1
        heapq.heappush(self._moments, (max(moment, self.now), self._random(), self._number, action))

    def spawn(self, work: Callable[[], object], *, after: int = 0) -> None:
        """Begin a task after this many microseconds."""

        def run() -> None:
            try:
                work()
            except Killed:
                return

        self.at(self.now + after, greenlet(run, self._main).switch)

    def sleep(self, duration: int) -> None:
        """Make the current task wait for this many microseconds.

        Raises:
            Killed: The simulation is over.
        """
        if self._over:
            raise Killed
        moment = self.now + max(0, duration)
        if moment <= self._until and (not self._moments or self._moments[0][0] > moment):
            # No other task would run meanwhile.
            self.now = moment
            return
        self.at(moment, getcurrent().switch)
        self.give_way()

    def give_way(self) -> None:
        """Let other tasks run until something resumes the current one.

        Raises:
            Killed: The simulation is over.
        """
        if self._over:
            raise Killed
        self._main.switch()
        if self._over:
            raise Killed

    def run(self, until: int) -> None:
        """Run everything that is due up to a moment (microseconds)."""
        self._until, moments, pop = until, self._moments, heapq.heappop
        while moments and moments[0][0] <= until:
            moment, _, _, action = pop(moments)
            self.now = max(self.now, moment)
            self.switches += 1
            action()
        self.now = max(self.now, until)

    def end(self) -> None:
        """Stop everything; the remaining tasks end where they wait."""
        self._over = True
        moments, self._moments = self._moments, []
        for _, _, _, action in sorted(moments, key=lambda each: each[2]):
            # A waiting task is ended explicitly, so that its stack is unwound now and not when Python collects it.
            task = getattr(action, "__self__", None)
            if isinstance(task, greenlet) and task:
                task.switch()
        self._moments = []

    def note(self, line: str, more: Callable[[], str] = str) -> None:
        """Record an event: it becomes part of the run's fingerprint and, together with further details, of
        :attr:`lines` if they are kept.
        """
        self._hash.update(f"{self.now} {line}\n".encode())
        if self.lines is not None:
            self.lines.append((self.now, f"{line} {more()}".rstrip()))

    @property
    def fingerprint(self) -> str:
        """Equal for two runs if and only if the same events happened in both at the same moments."""
        return self._hash.hexdigest()


class Signal:
    """Something that tasks wait for; has the methods of :class:`threading.Event` that waiting for futures needs."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._waiting: list[Callable[[], None]] = []
        self._set = False

    def is_set(self) -> bool:
        """Whether it has happened."""
        return self._set

    def set(self) -> None:
        """It has happened: all waiting tasks continue."""
        self._set = True
        waiting, self._waiting = self._waiting, []
        for wake in waiting:
            self._scheduler.at(self._scheduler.now, wake)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has happened, or for this many seconds; returns whether it has."""
        if self._set:
            return True
        scheduler, task, over = self._scheduler, getcurrent(), [False]

        def wake() -> None:
            if not over[0]:
                over[0] = True
                task.switch()

        self._waiting.append(wake)
        if timeout is not None:
            scheduler.at(scheduler.now + round(timeout * SECOND), wake)
        scheduler.give_way()
        return self._set


class VirtualFuture(Future[Any]):
    """A future that is waited for in virtual time: tasks that wait for it, even among others, yield to other tasks."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._ended = Signal(scheduler)
        # concurrent.futures.wait() hangs a waiter with a real event on each future: that event is replaced.
        self._waiters: Any = _Waiters(scheduler)
        self.add_done_callback(lambda _: self._ended.set())

    def result(self, timeout: float | None = None) -> Any:
        """The result, waited for."""
        self._ended.wait(timeout)
        return super().result(0)


class _Waiters(list[Any]):
    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._scheduler = scheduler

    def append(self, waiter: Any) -> None:
        if not isinstance(waiter.event, Signal):
            waiter.event = Signal(self._scheduler)
        super().append(waiter)


class VirtualExecutor(Executor):
    """Runs each call in a task of its own.

    Args:
        scheduler: Runs the tasks.
        threads: How many run at the same time.
        begin: Called first in each task, with the call to make.
    """

    def __init__(self, scheduler: Scheduler, threads: int, begin: Callable[[Callable[[], None]], None]) -> None:
        self._scheduler = scheduler
        self._free = threads
        self._begin = begin
        self._queued: list[Callable[[], None]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a call concurrently with the caller."""
        future = VirtualFuture(self._scheduler)

        def work() -> None:
            try:
                result = fn(*args, **kwargs)
            except Killed:
                raise
            except BaseException as error:  # noqa: BLE001 (a future carries it)
                self._ended()
                future.set_exception(error)
            else:
                self._ended()
                future.set_result(result)

        self._queued.append(work)
        self._next()
        return future

    def map(self, fn: Callable[..., Any], *iterables: Iterable[Any], timeout: float | None = None, **_: Any) -> Any:
        """The results, in order."""
        futures = [self.submit(fn, *each) for each in zip(*iterables, strict=False)]
        return iter([each.result(timeout) for each in futures])

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing to give back."""

    def _ended(self) -> None:
        self._free += 1
        self._next()

    def _next(self) -> None:
        while self._queued and self._free > 0:
            self._free -= 1
            work = self._queued.pop(0)
            self._scheduler.spawn(lambda work=work: self._begin(work))  # type: ignore[misc]
