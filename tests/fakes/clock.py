"""A clock that tests control."""

from __future__ import annotations

import threading

START_MS = 1_795_000_000_000
"""The default start of a fake clock, epoch milliseconds (November 2026)."""


class FakeClock:
    """Stands still until it is set, advanced, or somebody sleeps. Safe to share between threads.

    Args:
        now: Epoch milliseconds to start at.
        jitter: What :meth:`jitter` returns (0..1); can be changed at any time as ``jitter_value``.
    """

    def __init__(self, now: int = START_MS, jitter: float = 0.0) -> None:
        self._now = now
        self._lock = threading.Lock()
        self.jitter_value = jitter
        self.slept: list[float] = []

    def now(self) -> int:
        """Epoch milliseconds."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Advance by that much at once, and record it in ``slept``."""
        with self._lock:
            self.slept.append(seconds)
            self._now += round(seconds * 1000)

    def jitter(self) -> float:
        """The number that was set."""
        return self.jitter_value

    def advance(self, *, seconds: float = 0, ms: int = 0) -> int:
        """Move the clock forward; returns the new time, epoch milliseconds."""
        with self._lock:
            self._now += round(seconds * 1000) + ms
            return self._now

    def set(self, now: int) -> None:
        """Set the clock to a time (epoch milliseconds), forwards or backwards."""
        with self._lock:
            self._now = now
