"""Progress on the log: what is being done, and how long it took."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_logger = logging.getLogger(__name__)

COUNT: Final = 10
"""Steps of a run that is asked for nothing besides."""


class Steps:
    """Announces each step and reports its time.

    Attributes:
        seconds: Time of each step done, by its name.
    """

    def __init__(self, count: int = COUNT) -> None:
        self.count = count
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        """Do one step."""
        number = len(self.seconds) + 1
        started = time.monotonic()
        _logger.info("[%d/%d] %s ...", number, self.count, what)
        yield
        self.seconds[what] = time.monotonic() - started
        _logger.info("[%d/%d] %s: %.1f s", number, self.count, what, self.seconds[what])
