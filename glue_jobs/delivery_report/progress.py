"""Progress on the log: what is being done, and how long it took."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["Steps"]

_logger = logging.getLogger(__name__)

COUNT: Final = 8


class Steps:
    """Announces each step and reports its time.

    Attributes:
        seconds: Time of each step done, by its name.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        """Do one step.

        Args:
            what: Its name, for people.
        """
        number = len(self.seconds) + 1
        started = time.monotonic()
        _logger.info("[%d/%d] %s ...", number, COUNT, what)
        yield
        self.seconds[what] = time.monotonic() - started
        _logger.info("[%d/%d] %s: %.1f s", number, COUNT, what, self.seconds[what])
