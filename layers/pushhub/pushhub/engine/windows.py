"""How many attempts may be under way at a time, by subscriber: few at one that is slow or not known yet, many at one that answers.

An attempt that waits for its answer holds a thread for as long as the subscriber takes, three minutes perhaps. So a subscriber starts with one
attempt at a time, gets one more with each prompt answer (as TCP's slow start does), and falls back to one as soon as an answer takes long. What an
execution environment has learned it keeps in memory: at worst a subscriber is learned anew.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

FIRST = 1
"""Attempts at a time at a subscriber nobody knows anything of, and at a slow one."""

MOST = 100
"""Attempts at a time at a prompt one: as many as there are threads."""

SLOW_MS = 5_000
"""From this long on, an answer is slow, and a subscriber that has not answered yet is too."""

REMEMBERED_MS = 600_000
"""How long a subscriber counts as slow after its last slow answer."""

KNOWN = 5_000
"""Subscribers remembered; the one that was asked longest ago is forgotten first."""

Key = tuple[str, str, str]
"""Project, queue generation and subscriber."""


@dataclass
class _Window:
    allowed: int = FIRST
    slow_until: int = 0
    begun: list[int] = field(default_factory=list)


class Windows:
    """Counts attempts; used by one thread at a time. Times are epoch milliseconds."""

    def __init__(self) -> None:
        self._windows: OrderedDict[Key, _Window] = OrderedDict()

    def start_over(self) -> None:
        """No attempt is under way: what a run that broke off had begun is forgotten."""
        for window in self._windows.values():
            window.begun.clear()

    def slow(self, key: Key, now: int) -> bool:
        """Whether a subscriber took long lately, or is taking long now."""
        window = self._windows.get(key)
        return window is not None and (now < window.slow_until or any(now - begun > SLOW_MS for begun in window.begun))

    def admits(self, key: Key, now: int) -> bool:
        """Whether another attempt may begin."""
        window = self._windows.get(key)
        if window is None:
            return True
        return len(window.begun) < (FIRST if self.slow(key, now) else window.allowed)

    def begin(self, key: Key, now: int) -> None:
        """An attempt begins."""
        self._windows.setdefault(key, _Window()).begun.append(now)
        self._windows.move_to_end(key)
        if len(self._windows) > KNOWN:
            idle = next((each for each, window in self._windows.items() if not window.begun), None)
            if idle is not None:
                del self._windows[idle]

    def end(self, key: Key, begun: int, now: int) -> None:
        """An attempt that began then is over."""
        window = self._windows.setdefault(key, _Window())
        if begun in window.begun:
            window.begun.remove(begun)
        if now - begun > SLOW_MS:
            window.allowed, window.slow_until = FIRST, now + REMEMBERED_MS
        else:
            window.allowed, window.slow_until = min(MOST, window.allowed + 1), 0
