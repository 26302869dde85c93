"""How many attempts may be under way at a time, by subscriber and by project:
few at those that are slow or not known yet, many at those that answer.

An attempt that waits for its answer holds a thread for as long as the subscriber takes, three minutes perhaps. So a
subscriber starts with one attempt at a time, gets one more with each prompt answer (as TCP's slow start does), and
falls back to one as soon as an answer takes long. An execution environment keeps in memory what it has learned: at
worst it learns a subscriber anew.

A project whose endpoints hang, fifty of them perhaps, is one neighbour to the others and not fifty: its slow
subscribers share a few attempts. One that nobody knows yet is still asked, but not among those that are in a hurry:
see :meth:`Windows.holds_up`.
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

HOLD_MS = 500
"""How long orders wait in a run for an attempt at their subscriber to end; then they make room."""

ASIDE_S = 15
"""How soon an order for a slow subscriber is looked at again, at first."""

ASIDE_DOUBLINGS = 3
"""How often that is doubled: each time the subscriber has been slow for twice as long."""

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
    slow_since: int | None = None
    told_at: int | None = None

    def slow(self, now: int) -> bool:
        """Whether it took long lately, or takes long now."""
        return now < self.slow_until or self.waits(now, SLOW_MS)

    def waits(self, now: int, than_ms: int) -> bool:
        """Whether an attempt has been under way for longer than that."""
        return any(now - begun > than_ms for begun in self.begun)


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

    def holds_up(self, key: Key, now: int) -> bool:
        """Whether an order for a subscriber would hold up those of others: it is slow,
        or keeps its orders waiting now, or its project has many that do.
        """
        window = self._windows.get(key)
        if window is not None and (window.slow(now) or (not self.admits(key, now) and window.waits(now, HOLD_MS))):
            return True
        unproven = window is None or window.allowed == FIRST
        return unproven and self._unanswered_of(key[0], now) >= SLOW_OF_A_PROJECT

    def aside_s(self, key: Key, now: int) -> int:
        """Seconds after which to look again at an order that may not begin:
        the longer the subscriber is slow already, the more.
        """
        window = self._windows.get(key)
        since = now if window is None or window.slow_since is None else window.slow_since
        doublings = ((now - since) // (ASIDE_S * 1000)).bit_length()
        return ASIDE_S << min(doublings, ASIDE_DOUBLINGS)

    def newly_slow(self, now: int) -> list[Key]:
        """Subscribers whose one attempt has long been under way, each told once in half the time that it counts as
        slow.
        """
        found: list[Key] = []
        for key in (key for keys in self._under_way.values() for key in keys):
            window = self._windows[key]
            told = window.told_at is not None and now - window.told_at < REMEMBERED_MS // 2
            if window.allowed == FIRST and window.waits(now, SLOW_MS) and not told:
                window.told_at = now
                found.append(key)
        return found

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
            window.slow_since = begun if window.slow_since is None else window.slow_since
        else:
            window.allowed, window.slow_until, window.slow_since = min(MOST, window.allowed + 1), 0, None

    def _unanswered_of(self, project: str, now: int) -> int:
        """Subscribers of a project that have not earned more than their first attempt, and are slow to answer it."""
        windows = (self._windows[key] for key in self._under_way.get(project, ()))
        return sum(window.allowed == FIRST and window.waits(now, HOLD_MS) for window in windows)

    def _slow_of(self, project: str, now: int) -> int:
        """Attempts under way at slow subscribers of a project."""
        windows = (self._windows[key] for key in self._under_way.get(project, ()))
        return sum(len(window.begun) for window in windows if window.slow(now))
