"""How many attempts may be in progress at once, by subscriber and by project: few for slow or unknown subscribers, many
for prompt ones.

An attempt waiting for its answer holds a thread for as long as the subscriber takes, possibly three minutes. So a
subscriber starts with one attempt at a time, gets one more with each prompt answer (like TCP's slow start), and drops
back to one when an answer is slow. In the slow lane, one that does answer, within its own time limit, earns more even
so, and falls back to one when it does not. One that is met for the first time, in a turn that nobody had before, is
tried with several at once, so that what answers slowly need not learn from one answer after the other. An execution
environment keeps this in memory; at worst it starts learning again.

A project with fifty hanging endpoints must affect the others like a single slow neighbour, so all of its slow
subscribers share a few attempts; one with fifty prompt endpoints must not hold all threads while another waits. An
unknown subscriber of a project with slow ones is still tried, but not among orders in a hurry: see
:meth:`Windows.holds_up`.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field

FIRST = 1
"""Concurrent attempts at an unknown or slow subscriber."""

MOST = 100
"""Concurrent attempts at a prompt subscriber: as many as there are threads."""

SHARE_OF_A_PROJECT = MOST // 2
"""Concurrent attempts of a project while another one has orders in the same run: half of the threads."""

SLOW_OF_A_PROJECT = 10
"""Concurrent attempts at all slow subscribers of a project together: a tenth of the threads. One of them that answers
in time may earn all of these.
"""

SLOW_ALONE = SHARE_OF_A_PROJECT
"""The same while no other project has orders in the same run: for those that have earned more than one, which answer in
time and so free their threads.
"""

MET_WITH = SLOW_OF_A_PROJECT
"""Concurrent attempts at a subscriber that is met for the first time, until it has shown what it takes or has failed to
answer in time (decision 0150).
"""

SLOW_MS = 5_000
"""An answer that takes this long is slow; so is a subscriber that has kept a request waiting for this long."""

HOLD_MS = 500
"""How long orders wait in a run for an attempt at their subscriber to end before they make room for others."""

ASIDE_S = 15
"""How soon another run is called for a slow subscriber whose project has no place left in this one."""

REMEMBERED_MS = 600_000
"""How long a subscriber counts as slow after its last slow answer."""

KNOWN = 5_000
"""Maximum number of subscribers kept in memory; the one asked longest ago is forgotten first."""

Key = tuple[str, str, str]
"""Project, queue generation and subscriber."""


@dataclass
class _Window:
    allowed: int = FIRST
    places: int = FIRST
    tried: int = 0
    slow_until: int = 0
    begun: list[int] = field(default_factory=list)
    told_at: int | None = None

    def slow(self, now: int) -> bool:
        """Whether it was slow recently, or is slow now."""
        return now < self.slow_until or self.waits(now, SLOW_MS)

    def waits(self, now: int, than_ms: int) -> bool:
        """Whether an attempt has been in progress for longer than ``than_ms``."""
        return bool(self.begun) and now - self.begun[0] > than_ms

    @property
    def untold(self) -> bool:
        """Whether it is tried with several attempts, and has answered none of them late and in time."""
        return self.tried > FIRST and self.places == FIRST


class Windows:
    """Counts attempts; for one thread at a time. Times are epoch milliseconds."""

    def __init__(self) -> None:
        self._windows: OrderedDict[Key, _Window] = OrderedDict()
        self._under_way: defaultdict[str, set[Key]] = defaultdict(set)
        self._held: Counter[str] = Counter()
        self._begun: deque[int] = deque()
        self._ended: Counter[int] = Counter()
        self._crowded: dict[str, int] = {}

    def start_over(self) -> None:
        """Forget all attempts: those that an aborted run began are no longer in progress."""
        for window in self._windows.values():
            window.begun.clear()
            window.tried = 0
        self._under_way.clear()
        self._held.clear()
        self._begun.clear()
        self._ended.clear()

    def held(self, project: str) -> int:
        """Number of a project's attempts in progress."""
        return self._held[project]

    def slow(self, key: Key, now: int) -> bool:
        """Whether a subscriber was slow recently, or is slow now."""
        window = self._windows.get(key)
        return window is not None and window.slow(now)

    def admits(self, key: Key, now: int, *, in_turn: bool = False, alone: bool = False, roomy: bool = False) -> bool:
        """Whether another attempt may begin.

        Args:
            in_turn: Whether no other run makes attempts at it: only then a slow one has the places it has earned.
            alone: Whether its project is the only one here: only then slow ones that answer have more than
                :data:`SLOW_OF_A_PROJECT`.
            roomy: Whether so many threads are free that some may be used to try one that is met for the first time.
        """
        window = self._windows.get(key)
        if window is None:
            return True
        spread = in_turn and now >= self._crowded.get(key[0], 0)
        tried = window.tried if spread and roomy else FIRST
        if window.slow(now):
            most = max(window.places, FIRST if window.untold else tried) if spread else FIRST
            together = SLOW_ALONE if alone and most > FIRST else SLOW_OF_A_PROJECT
            return len(window.begun) < min(most, together) and self._slow_of(key[0], now) < together
        if len(window.begun) < window.allowed:
            return True
        return len(window.begun) < tried and self._slow_or_tried_of(key[0], now) < SLOW_OF_A_PROJECT

    def crowded(self, key: Key, now: int) -> bool:
        """Whether a slow subscriber has no attempt in progress and may begin none, because others of its project have
        all places. For some time these begin no more than one each.
        """
        window = self._windows.get(key)
        if window is None or window.begun or not window.slow(now) or self._slow_of(key[0], now) < SLOW_OF_A_PROJECT:
            return False
        self._crowded[key[0]] = now + 2 * ASIDE_S * 1000
        return True

    def places(self, key: Key, now: int) -> int:
        """Concurrent attempts that a subscriber has earned, as a slow one if it is slow; 0 if it was met for the first
        time, and has neither answered nor failed to.
        """
        window = self._windows.get(key)
        if window is None:
            return FIRST
        if window.untold and window.allowed == FIRST:
            return 0
        return window.places if window.slow(now) else window.allowed

    def grant(self, key: Key, places: int, now: int) -> None:
        """Another environment knows that a subscriber has earned so many concurrent attempts."""
        window = self._windows.setdefault(key, _Window())
        window.places = min(SLOW_OF_A_PROJECT, max(window.places, places))
        if not window.slow(now):
            window.allowed = min(MOST, max(window.allowed, places))

    def meet(self, key: Key, now: int) -> None:
        """Nobody has had a subscriber's turn before: it may be tried with :data:`MET_WITH` attempts at once, unless it
        has failed to answer in time here.
        """
        window = self._windows.setdefault(key, _Window())
        window.tried = 0 if window.slow(now) and window.places == FIRST else MET_WITH

    def met(self, key: Key) -> None:
        """The first turn at a subscriber is over."""
        window = self._windows.get(key)
        if window is not None:
            window.tried = 0

    def holds_up(self, key: Key, now: int, *, in_turn: bool = False) -> bool:
        """Whether an order for a subscriber would hold up others: the subscriber is slow, or is keeping its orders
        waiting now (unless they wait for their turn, which takes no thread), or its project has many that do.
        """
        window = self._windows.get(key)
        if window is not None:
            waits = not in_turn and not self.admits(key, now) and window.waits(now, HOLD_MS)
            if window.slow(now) or waits:
                return True
        unproven = window is None or window.allowed == FIRST
        return unproven and self._unanswered_of(key[0], now) >= SLOW_OF_A_PROJECT

    def newly_slow(self, now: int) -> list[Key]:
        """Subscribers with a single attempt that has been in progress for long. Each is reported once per half of the
        time for which it counts as slow.
        """
        found: list[Key] = []
        if self._longest(now) <= SLOW_MS:
            return found
        for key in (key for keys in self._under_way.values() for key in keys):
            window = self._windows[key]
            told = window.told_at is not None and now - window.told_at < REMEMBERED_MS // 2
            if window.allowed == FIRST and window.waits(now, SLOW_MS) and not told:
                window.told_at = now
                found.append(key)
        return found

    def begin(self, key: Key, now: int) -> None:
        """Record that an attempt begins."""
        self._windows.setdefault(key, _Window()).begun.append(now)
        self._begun.append(now)
        self._under_way[key[0]].add(key)
        self._held[key[0]] += 1
        self._windows.move_to_end(key)
        if len(self._windows) > KNOWN:
            idle = next((each for each, window in self._windows.items() if not window.begun), None)
            if idle is not None:
                del self._windows[idle]

    def end(self, key: Key, begun: int, now: int, *, answered: bool | None = True) -> None:
        """Record the end of an attempt.

        Args:
            begun: When it began.
            now: When it ended.
            answered: Whether the subscriber answered, and did not refuse; None if no request was made, which says
                nothing about it.
        """
        window = self._windows.setdefault(key, _Window())
        if begun in window.begun:
            window.begun.remove(begun)
            self._ended[begun] += 1
            self._held[key[0]] -= 1
        if not window.begun:
            self._under_way[key[0]].discard(key)
        if now - begun > SLOW_MS:
            window.allowed, window.slow_until = FIRST, now + REMEMBERED_MS
            window.places = min(SLOW_ALONE, window.places + 1) if answered else FIRST
            window.tried = window.tried if answered else 0
        elif answered is not None:
            window.allowed, window.slow_until = min(MOST, window.allowed + 1), 0

    def _longest(self, now: int) -> int:
        """How long the attempt has been in progress that began first; so most looks at all of them can be spared."""
        while self._begun and self._ended[self._begun[0]]:
            self._ended[self._begun.popleft()] -= 1
        if not self._begun:
            self._ended.clear()
            return 0
        return now - self._begun[0]

    def _unanswered_of(self, project: str, now: int) -> int:
        """Number of a project's subscribers that have not earned more than one attempt, and are slow to answer it."""
        if self._longest(now) <= HOLD_MS:
            return 0
        windows = (self._windows[key] for key in self._under_way.get(project, ()))
        return sum(window.allowed == FIRST and window.waits(now, HOLD_MS) for window in windows)

    def _slow_of(self, project: str, now: int) -> int:
        """Number of attempts in progress at slow subscribers of a project. One that is met for the first time takes no
        more from the others than its first.
        """
        windows = (self._windows[key] for key in self._under_way.get(project, ()))
        return sum(FIRST if window.untold else len(window.begun) for window in windows if window.slow(now))

    def _slow_or_tried_of(self, project: str, now: int) -> int:
        """Number of attempts in progress at subscribers of a project that are slow, or met for the first time."""
        windows = (self._windows[key] for key in self._under_way.get(project, ()))
        return sum(len(window.begun) for window in windows if window.tried or window.slow(now))
