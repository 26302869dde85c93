"""Real time."""

from __future__ import annotations

import random
import time


class SystemClock:
    """The machine's clock and random numbers."""

    def now(self) -> int:
        """Epoch milliseconds."""
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def jitter(self) -> float:
        """A random number in 0..1."""
        return random.random()  # noqa: S311 (spreads retries, no secret)
