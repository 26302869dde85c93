"""Which process a function's run gets.

On AWS a run that finds no environment free has one started, for which there are cores. Here a start takes one from all
others, and most runs are over sooner. So one process of a function starts at a time, and not before a run has waited a
moment for one; and whoever waits takes what is free first, started for them or not.

Nothing here knows MiniStack; :mod:`local.emulator_workers` has its workers take these turns.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

PATIENCE_S = 0.02
"""How long a run waits for another of its function to end before a process is started for it: about what that takes."""


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
        self._turns: dict[str, threading.Condition] = {}
        self._starting: dict[str, Any] = {}

    def take(self, key: str, make: Callable[[], Any]) -> tuple[Any, str]:
        """A worker for a run.

        Args:
            key: Of the function and version.
            make: Makes one. It is started in its first run, and :meth:`started` is said then.

        Returns:
            The worker, and ``spawn`` if it is new, else ``reused``.
        """
        until = time.monotonic() + self._patience_s
        with self._lock:
            turn = self._turns.setdefault(key, threading.Condition(self._lock))
            while True:
                workers = self._workers.setdefault(key, [])
                for worker in workers:
                    if not worker.in_use:
                        return _taken(worker, key), "reused"
                left = until - time.monotonic() if workers else 0.0
                if key in self._starting:
                    turn.wait()
                elif left > 0:
                    turn.wait(left)
                else:
                    worker = self._starting[key] = make()
                    workers.append(worker)
                    return _taken(worker, key), "spawn"

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


def _taken(worker: Any, key: str) -> Any:
    worker.in_use, worker.last_used, worker.turn = True, time.time(), key
    return worker
