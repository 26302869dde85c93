"""How many attempts may be under way at a time, by subscriber and by project: few at those that are slow or not known yet, many at those that answer.

An attempt that waits for its answer holds a thread for as long as the subscriber takes, three minutes perhaps. So a subscriber starts with one
attempt at a time, gets one more with each prompt answer (as TCP's slow start does), and falls back to one as soon as an answer takes long. What an
execution environment has learned it keeps in memory: at worst a subscriber is learned anew.

A project whose endpoints hang, fifty of them perhaps, is one neighbour to the others and not fifty: its slow subscribers share a few attempts. One
that nobody knows yet is asked all the same.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field

FIRST = 1
"""Attempts at a time at a subscriber nobody knows anything of, and at a slow one."""

MOST = 100
"""Attempts at a time at a prompt one: as many as there are threads."""

SLOW_OF_A_PROJECT = 10
"""Attempts at a time at all the slow subscribers of a project together: a tenth of the threads."""

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

    def slow(self, now: int) -> bool:
        """Whether it took long lately, or takes long now."""
        return now < self.slow_until or any(now - begun > SLOW_MS for begun in self.begun)


class Windows:
    """Counts attempts; used by one thread at a time. Times are epoch milliseconds."""

    def __init__(self) -> None:
        self._windows: OrderedDict[Key, _Window] = OrderedDict()
        self._under_way: defaultdict[str, set[Key]] = defaultdict(set)

    def start_over(self) -> None:
        """No attempt is under way: what a run that broke off had begun is forgotten."""
        for window in self._windows.values():
            window.begun.clear()
        self._under_way.clear()

    def slow(self, key: Key, now: int) -> bool:
        """Whether a subscriber took long lately, or is taking long now."""
        window = self._windows.get(key)
        return window is not None and window.slow(now)

    def admits(self, key: Key, now: int) -> bool:
        """Whether another attempt may begin."""
        window = self._windows.get(key)
        if window is None:
            return True
        if window.slow(now):
            return len(window.begun) < FIRST and self._slow_of(key[0], now) < SLOW_OF_A_PROJECT
        return len(window.begun) < window.allowed

    def begin(self, key: Key, now: int) -> None:
        """An attempt begins."""
        self._windows.setdefault(key, _Window()).begun.append(now)
        self._under_way[key[0]].add(key)
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
        if not window.begun:
            self._under_way[key[0]].discard(key)
        if now - begun > SLOW_MS:
            window.allowed, window.slow_until = FIRST, now + REMEMBERED_MS
        else:
            window.allowed, window.slow_until = min(MOST, window.allowed + 1), 0

    def _slow_of(self, project: str, now: int) -> int:
        """Attempts under way at slow subscribers of a project."""
        windows = (self._windows[key] for key in self._under_way.get(project, ()))
        return sum(len(window.begun) for window in windows if window.slow(now))
