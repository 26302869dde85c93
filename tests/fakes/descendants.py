"""Descendants counted in memory."""

from __future__ import annotations

import threading


class FakeDescendants:
    """Keeps what was spent in a dictionary.

    Args:
        most: Descendants that one accepted message may have.
    """

    def __init__(self, most: int = 10_000) -> None:
        self.most = most
        self._lock = threading.Lock()
        self._spent: dict[tuple[str, str], dict[str, int]] = {}

    def spend(self, project_id: str, root_id: str, *, cause: str, count: int) -> bool:
        with self._lock:
            spent = self._spent.setdefault((project_id, root_id), {})
            if cause not in spent and sum(spent.values()) + count > self.most:
                return False
            spent.setdefault(cause, count)
            return True
