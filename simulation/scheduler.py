"""Virtual time: everything that runs is a task, one at a time, and the seed decides who is next among those whose time
has come.

A task is a greenlet, so the hub's own code runs unchanged: where it would wait for a service, a future or a clock, its
task gives way and goes on when that moment has come. Nothing else in the process waits, so a run is the same each time
it is made from the same seed.
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


class Killed(BaseException):
    """The process this task belongs to is gone. No handler of the hub's may catch it."""


class Scheduler:
    """Runs tasks in virtual time.

    Args:
        seed: Decides between tasks whose moment is the same.

    Attributes:
        now: Microseconds since the start.
        lines: What happened, if it is kept.
        switches: Tasks resumed so far.
    """

    def __init__(self, seed: str) -> None:
        self.now = 0
        self.lines: list[tuple[int, str]] | None = None
        self.switches = 0
        self._order = Random(f"{seed}/order")
        self._main = getcurrent()
        self._moments: list[tuple[int, float, int, Callable[[], object]]] = []
        self._number = 0
        self._until = 0
        self._over = False
        self._hash = hashlib.blake2b(digest_size=16)

    def at(self, moment: int, action: Callable[[], object]) -> None:
        """Do something at a moment (microseconds): outside of any task, so it must not wait."""
        self._number += 1
        heapq.heappush(self._moments, (max(moment, self.now), self._order.random(), self._number, action))

    def spawn(self, work: Callable[[], object], *, after: int = 0) -> None:
        """Begin a task, some microseconds from now."""

        def run() -> None:
            try:
                work()
            except Killed:
                return

        self.at(self.now + after, greenlet(run, self._main).switch)

    def sleep(self, duration: int) -> None:
        """Let the current task wait some microseconds.

        Raises:
            Killed: The simulation is over.
        """
        if self._over:
            raise Killed
        moment = self.now + max(0, duration)
        if moment <= self._until and (not self._moments or self._moments[0][0] > moment):
            # Nobody else would run meanwhile.
            self.now = moment
            return
        self.at(moment, getcurrent().switch)
        self.give_way()

    def give_way(self) -> None:
        """Let others run until something resumes the current task.

        Raises:
            Killed: The simulation is over.
        """
        if self._over:
            raise Killed
        self._main.switch()
        if self._over:
            raise Killed

    def run(self, until: int) -> None:
        """Run everything whose moment comes up to a time (microseconds)."""
        self._until = until
        while self._moments and self._moments[0][0] <= until:
            moment, _, _, action = heapq.heappop(self._moments)
            self.now = max(self.now, moment)
            self.switches += 1
            action()
        self.now = max(self.now, until)

    def end(self) -> None:
        """Nothing runs any more; tasks that are left end where they wait."""
        self._over = True
        moments, self._moments = self._moments, []
        for _, _, _, action in sorted(moments, key=lambda each: each[2]):
            # A task that waits is told so that its stack is unwound now, not when Python collects it.
            task = getattr(action, "__self__", None)
            if isinstance(task, greenlet) and task:
                task.switch()
        self._moments = []

    def note(self, line: str, more: Callable[[], str] = str) -> None:
        """Tell what happened: it goes into the run's fingerprint, and into :attr:`lines` if they are kept,
        with what else there is to tell.
        """
        self._hash.update(f"{self.now} {line}\n".encode())
        if self.lines is not None:
            self.lines.append((self.now, f"{line} {more()}".rstrip()))

    @property
    def fingerprint(self) -> str:
        """The same for two runs if and only if the same things happened in them at the same moments."""
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
        """It has happened: whoever waits goes on."""
        self._set = True
        waiting, self._waiting = self._waiting, []
        for wake in waiting:
            self._scheduler.at(self._scheduler.now, wake)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has happened, some seconds at most; whether it has."""
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
    """A future whose waiting is virtual: whoever waits for it, by itself or among others, gives way to other tasks."""

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
    """Runs each call as a task of its own.

    Args:
        scheduler: Runs them.
        threads: How many run at a time.
        begin: Called in each task first, and given what to run.
    """

    def __init__(self, scheduler: Scheduler, threads: int, begin: Callable[[Callable[[], None]], None]) -> None:
        self._scheduler = scheduler
        self._free = threads
        self._begin = begin
        self._queued: list[Callable[[], None]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a call side by side with the caller."""
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
