"""Several threads whose calls take turns in virtual time: a seed gives the same interleaving on any machine, however
loaded.
"""

from __future__ import annotations

import heapq
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tests.fakes.clock import START_MS

QUERY_MS = (3.0, 12.0)
"""How long a query takes, at least and at most."""

WRITE_MS = (1.0, 6.0)
"""How long any other call takes, at least and at most."""


class Turns:
    """A clock and a scheduler for threads, of which one runs at a time: the one whose call or sleep ends first.

    A call takes effect when its time is over, so what its caller read before may be stale by then.

    Args:
        seed: Of all random numbers.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._now_ms = float(START_MS)
        self._waiting: list[tuple[float, int, threading.Event]] = []
        self._numbers = 0
        self._yielded = threading.Event()
        self._errors: list[BaseException] = []
        self.calls: Counter[str] = Counter()
        """Calls made so far, by operation."""

    def now(self) -> int:
        """Epoch milliseconds."""
        return int(self._now_ms)

    def sleep(self, seconds: float) -> None:
        """Let the other threads run until then."""
        self._wait(seconds * 1000)

    def jitter(self) -> float:
        """A random number in 0..1."""
        return self._random.random()

    def client(self, real: object) -> Any:
        """A client each of whose calls takes a random time."""
        return _Slow(self, real)

    def took(self, operation: str) -> None:
        """Wait as long as a call of this operation takes."""
        self.calls[operation] += 1
        self._wait(self._random.uniform(*(QUERY_MS if operation == "query" else WRITE_MS)))

    def run(self, workers: Sequence[Callable[[], None]]) -> None:
        """Run all of them to their end. Raises the exception of the first one that failed."""
        threads = [threading.Thread(target=self._work, args=(each,), daemon=True) for each in workers]
        for thread in threads:
            self._yielded.clear()
            thread.start()
            self._yielded.wait()
        while self._waiting:
            self._now_ms, _, turn = heapq.heappop(self._waiting)
            self._yielded.clear()
            turn.set()
            self._yielded.wait()
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _work(self, worker: Callable[[], None]) -> None:
        try:
            # They do not all start at once.
            self._wait(self._random.uniform(0.0, 5.0))
            worker()
        except BaseException as error:  # noqa: BLE001 (raised where all of them end)
            self._errors.append(error)
        finally:
            self._yielded.set()

    def _wait(self, ms: float) -> None:
        turn = threading.Event()
        self._numbers += 1
        heapq.heappush(self._waiting, (self._now_ms + ms, self._numbers, turn))
        self._yielded.set()
        turn.wait()


class _Slow:
    def __init__(self, turns: Turns, real: object) -> None:
        self._turns = turns
        self._real = real

    def __getattr__(self, operation: str) -> Any:
        real = getattr(self._real, operation)

        def call(**parameters: Any) -> Any:
            self._turns.took(operation)
            return real(**parameters)

        return call
