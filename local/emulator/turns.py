"""Which process a function's run gets.

On AWS a run that finds no environment free has one started, for which there are cores. Here a start takes one from all
others, and most runs are over sooner. So one process of a function starts at a time, and not before a run has waited a
moment for one; and a waiting run takes the first free process, whichever run it was started for.

On AWS one tenant's backlog takes no CPU from another's runs. Here runs for those who have runs already, of whatever
function, go to processes of lower priority, so that cores are theirs as far as nobody else wants them.

Nothing here knows MiniStack; :mod:`local.emulator.functions` has its processes take these turns.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

PATIENCE_S = 0.02
"""How long a run waits for another of its function to end before a process is started for it: about what that takes."""

MANY = 3
"""Runs of an owner's from which on further ones are a backlog. One message has two at a time: the next function begins
before the one before has quite ended."""

LATELY_S = 60.0
"""How long after a run of an owner's backlogs of others give way to it. Whoever is alone shares with nobody here, and
should not wait for what else the machine does."""

NICENESS = 15
"""Of processes for a backlog: a thirtieth of the CPU of others that want it at the same time."""

BACKLOG = ContextVar("BACKLOG", default=False)
"""Whether what is run now is for those who have runs already."""


class Owners:
    """Who has runs in progress.

    Args:
        now: Seconds of a clock that does not go back.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._runs: Counter[tuple[str, str]] = Counter()
        self._seen: dict[str, float] = {}

    @contextmanager
    def run(self, function: str, owners: set[str], *, urgent: bool = True) -> Iterator[None]:
        """Tell by :data:`BACKLOG` whether a run is of a backlog, which gives way to others, if there are any.

        Args:
            function: What is run.
            owners: Those it is for. It is of a backlog if each of them has another run of the function, or
                :data:`MANY` of any, and somebody else had a run lately. A run for nobody is of none.
            urgent: Whether somebody waits for it. If not, it is treated as a backlog's, and does not make others so.
        """
        counted = [(each, name) for each in owners for name in ("", function)] if urgent else []
        with self._lock:
            others = bool(owners) and self._has_others(owners)
            busy = all(self._runs[each, function] or self._runs[each, ""] >= MANY for each in owners)
            backlog = others and (busy or not urgent)
            self._runs.update(counted)
        outer = BACKLOG.set(backlog)
        try:
            yield
        finally:
            BACKLOG.reset(outer)
            with self._lock:
                self._runs.subtract(counted)
                self._runs = +self._runs

    def _has_others(self, owners: set[str]) -> bool:
        """Whether others had a run lately; notes that these have one."""
        now = self._now()
        for each in owners:
            self._seen.pop(each, None)
            self._seen[each] = now
        while now - next(iter(self._seen.values())) > LATELY_S:
            del self._seen[next(iter(self._seen))]
        return len(self._seen) > len(owners)


OWNERS = Owners()
"""Of all functions of this emulator."""


class Turns:
    """Which worker runs next, for each function.

    Args:
        workers: The workers by key: their function and version.
        lock: Guards them.
        patience_s: How long a run waits before a process is started for it.
    """

    def __init__(self, workers: dict[str, list[Any]], lock: threading.Lock, patience_s: float = PATIENCE_S) -> None:
        self._workers = workers
        self._lock = lock
        self._patience_s = patience_s
        self._turns: dict[tuple[str, bool], threading.Condition] = {}
        self._starting: dict[tuple[str, bool], Any] = {}

    def take(self, function: str, make: Callable[[], Any], *, backlog: bool = False) -> tuple[Any, str]:
        """A worker for a run.

        Args:
            function: Key of the function and version.
            backlog: Whether the run is for those who have runs already. These have workers of their own.
            make: Makes one. It is started in its first run, and :meth:`started` is said then.

        Returns:
            The worker, and ``spawn`` if it is new, else ``reused``.
        """
        key = function, backlog
        until = time.monotonic() + self._patience_s
        with self._lock:
            turn = self._turns.setdefault(key, threading.Condition(self._lock))
            while True:
                workers = self._workers.setdefault(function, [])
                alike = [each for each in workers if each.turn == key]
                for worker in alike:
                    if not worker.in_use:
                        return _taken(worker), "reused"
                left = until - time.monotonic() if alike else 0.0
                if key in self._starting:
                    turn.wait()
                elif left > 0:
                    turn.wait(left)
                else:
                    worker = self._starting[key] = make()
                    worker.turn = key
                    workers.append(worker)
                    return _taken(worker), "spawn"

    def started(self, worker: Any) -> None:
        """The process of a worker is there, or cannot be started."""
        with self._lock:
            self._has_started(worker)

    def give_back(self, worker: Any) -> None:
        """A run has ended."""
        with self._lock:
            worker.in_use = False
            self._has_started(worker)
            self._turns[worker.turn].notify()

    def _has_started(self, worker: Any) -> None:
        key = worker.turn
        if self._starting.get(key) is worker:
            del self._starting[key]
            self._turns[key].notify_all()


def _taken(worker: Any) -> Any:
    worker.in_use, worker.last_used = True, time.time()
    return worker
