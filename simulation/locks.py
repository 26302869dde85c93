"""What tasks of one environment wait for one another with, in virtual time: a real lock would stop all of them."""

from __future__ import annotations

from collections.abc import Callable

from simulation.scheduler import SECOND, Scheduler

LOOKS = 5_000
"""How often a task that waits looks, microseconds."""


class VirtualLock:
    """A lock.

    Args:
        scheduler: Its clock.
        pause: Lets a task of an environment wait, microseconds; it raises when that environment is gone.
    """

    def __init__(self, scheduler: Scheduler, pause: Callable[[int], None]) -> None:
        self._scheduler = scheduler
        self._pause = pause
        self._held = False

    def acquire(self, *, timeout: float = -1) -> bool:
        """Take it, or give up after so many seconds; whether it was taken."""
        taken = waited(self._scheduler, self._pause, lambda: not self._held, None if timeout < 0 else timeout)
        self._held = self._held or taken
        return taken

    def release(self) -> None:
        """Let others have it."""
        self._held = False

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def waited(scheduler: Scheduler, pause: Callable[[int], None], done: Callable[[], bool], seconds: float | None) -> bool:
    """Wait until something is so, or for so many seconds; whether it is so."""
    until = None if seconds is None else scheduler.now + round(seconds * SECOND)
    while not done():
        if until is not None and scheduler.now >= until:
            return False
        pause(LOOKS)
    return True
