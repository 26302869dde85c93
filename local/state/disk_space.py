"""Whether the disk has room for what the hub would accept now.

On AWS storage has no end. Here the state must fit on the disk a second time before it can be saved, so what would add
to it is refused while that is not sure: an accepted message is kept.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from local.state import snapshots

FLOOR_BYTES = 64_000_000
"""Free space that is always left for logs, and for what grows while a snapshot is written."""
LOOK_AGAIN_S = 1.0
"""How long an answer about the disk is valid."""
STATUS = 507
"""Insufficient Storage. IronMQ's clients would ask again and again after a 503."""
MESSAGE = "Insufficient storage: the disk of this machine is nearly full"
"""What a refusal for want of room says."""
_READS = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})
_FREES = ("/reservations", "/release", "/touch", "/unsubscribe")
"""Path endings of requests that remove messages, or nearly so, although they are POSTs."""


class Room:
    """Checks the disk at intervals.

    Args:
        free: Free bytes of the disk that a folder is on.
        now: Seconds of a clock that does not go back.
    """

    def __init__(
        self,
        state: Path,
        *,
        free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._state = state
        self._free = free
        self._now = now
        self._looked_at = float("-inf")
        self._left = True

    def left(self) -> bool:
        """Whether there is room for more."""
        now = self._now()
        if now - self._looked_at >= LOOK_AGAIN_S:
            self._looked_at = now
            self._left = self._look()
        return self._left

    def _look(self) -> bool:
        snapshot = snapshots.latest(self._state / "emulator")
        needed = FLOOR_BYTES + 2 * (snapshot.size if snapshot else 0)
        try:
            return self._free(self._state) >= needed
        except OSError:
            return False


def adds(method: str, path: str) -> bool:
    """Whether a request may add to what is stored."""
    return method not in _READS and not path.rstrip("/").endswith(_FREES)
