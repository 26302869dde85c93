"""Says in a terminal that an answer is still waited for, once it takes longer than a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

AFTER_S = 1.0
_CLEAR_LINE = "\r\x1b[K"


class Timer(Protocol):
    """What begins something later, unless it is cancelled before."""

    def start(self) -> None:
        """Begin to count."""

    def cancel(self) -> None:
        """Do nothing, if it has not begun yet."""


@contextmanager
def patience(
    what: str, stream: TextIO | None = None, timer: Callable[[float, Callable[[], None]], Timer] = threading.Timer
) -> Iterator[None]:
    """Show a line while something takes long, and remove it afterwards; nothing in a pipe or a file.

    Args:
        what: What is done, as in "waiting for the hub".
        stream: Standard error, if not given.
        timer: Makes the timer.
    """
    stream = stream or sys.stderr
    if not stream.isatty():
        yield
        return
    shown = threading.Event()

    def show() -> None:
        shown.set()
        stream.write(f"{what} ...")
        stream.flush()

    waits = timer(AFTER_S, show)
    if isinstance(waits, threading.Timer):
        waits.daemon = True
    waits.start()
    try:
        yield
    finally:
        waits.cancel()
        if shown.is_set():
            stream.write(_CLEAR_LINE)
            stream.flush()
