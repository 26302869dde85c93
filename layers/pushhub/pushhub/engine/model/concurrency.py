"""How many attempts may be in progress at once, by subscriber and by project: few for slow or unknown subscribers, many
for prompt ones.

An attempt waiting for its answer holds a thread for as long as the subscriber takes, possibly three minutes. So a
subscriber starts with one attempt at a time, gets one more with each prompt answer (like TCP's slow start), and drops
back to one when an answer is slow. In the slow lane, one that does answer, within its own time limit, earns more even
so, and falls back to one when it does not. One that is met for the first time, under a lease that nobody had before, is
tried with several at once, so that what answers slowly need not learn from one answer after the other. An execution
environment keeps this in memory; at worst it starts learning again.

A project with fifty hanging endpoints must affect the others like a single slow neighbour, so all of its slow
subscribers share a few attempts; one with fifty prompt endpoints must not hold all threads while another waits. An
unknown subscriber of a project with slow ones is still tried, but not among orders in a hurry: see
:meth:`ConcurrencyLimits.holds_up`.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pushhub.engine.model.keys import Addressee

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
answer in time (docs/flow-control.md).
"""

SLOW_MS = 5_000
"""An answer that takes this long is slow; so is a subscriber that has kept a request waiting for this long."""

HOLD_MS = 500
"""How long orders wait in a run for an attempt at their subscriber to end before they make room for others, unless
another one has ended meanwhile that took at most :data:`BRISK_MS`.
"""

BRISK_MS = 2_000
"""How long an attempt may take that shows that its subscriber keeps nobody waiting: in an environment that has just
started, those at a prompt one take a second or more, beside each other.
"""

ASIDE_S = 15
"""How soon another run is called for a slow subscriber whose project has no place left in this one."""

REMEMBERED_MS = 600_000
"""How long a subscriber counts as slow after its last slow answer."""

KNOWN = 5_000
"""Maximum number of subscribers kept in memory; the one asked longest ago is forgotten first."""


@dataclass
class _Limit:
    allowed: int = FIRST
    places: int = FIRST
    tried: int = 0
    slow_until: int = 0
    begun: list[int] = field(default_factory=list)
    brisk_at: int | None = None
    reported_at: int | None = None

    def slow(self, now: int) -> bool:
        """Whether it was slow recently, or is slow now."""
        return now < self.slow_until or self.waits(now, SLOW_MS)

    def waits(self, now: int, than_ms: int) -> bool:
        """Whether an attempt has been in progress for longer than ``than_ms``."""
        return bool(self.begun) and now - self.begun[0] > than_ms

    def keeps_waiting(self, now: int) -> bool:
        """Whether its orders wait for an attempt that has been in progress for long. One of many may be late where a
        new environment is slow itself; a subscriber that answers others at once keeps nobody waiting.
        """
        brisk = self.brisk_at is not None and now - self.brisk_at <= HOLD_MS
        return self.waits(now, HOLD_MS) and not brisk

    @property
    def untold(self) -> bool:
        """Whether it is tried with several attempts, and has answered none of them late and in time."""
        return self.tried > FIRST and self.places == FIRST


class ConcurrencyLimits:
    """Counts attempts; for one thread at a time. Times are epoch milliseconds."""

    def __init__(self) -> None:
        self._limits: OrderedDict[Addressee, _Limit] = OrderedDict()
        self._under_way: defaultdict[str, set[Addressee]] = defaultdict(set)
        self._held: Counter[str] = Counter()
        self._begun: deque[int] = deque()
        self._ended: Counter[int] = Counter()
        self._crowded: dict[str, int] = {}

    def start_over(self) -> None:
        """Forget all attempts: those that an aborted run began are no longer in progress."""
        for limit in self._limits.values():
            limit.begun.clear()
            limit.tried = 0
        self._under_way.clear()
        self._held.clear()
        self._begun.clear()
        self._ended.clear()

    def held(self, project: str) -> int:
        """Number of a project's attempts in progress."""
        return self._held[project]

    def slow(self, key: Addressee, now: int) -> bool:
        """Whether a subscriber was slow recently, or is slow now."""
        limit = self._limits.get(key)
        return limit is not None and limit.slow(now)

    def admits(
        self, key: Addressee, now: int, *, leased: bool = False, alone: bool = False, spare_threads: bool = False
    ) -> bool:
        """Whether another attempt may begin.

        Args:
            leased: Whether no other run makes attempts at it: only then a slow one has the places it has earned.
            alone: Whether its project is the only one here: only then slow ones that answer have more than
                :data:`SLOW_OF_A_PROJECT`.
            spare_threads: Whether so many are free that some may be used to try one that is met for the first time.
        """
        limit = self._limits.get(key)
        if limit is None:
            return True
        spread = leased and now >= self._crowded.get(key[0], 0)
        tried = limit.tried if spread and spare_threads else FIRST
        if limit.slow(now):
            most = max(limit.places, FIRST if limit.untold else tried) if spread else FIRST
            together = SLOW_ALONE if alone and most > FIRST else SLOW_OF_A_PROJECT
            return len(limit.begun) < min(most, together) and self._slow_of(key[0], now) < together
        if len(limit.begun) < limit.allowed:
            return True
        return len(limit.begun) < tried and self._slow_or_tried_of(key[0], now) < SLOW_OF_A_PROJECT

    def crowded(self, key: Addressee, now: int) -> bool:
        """Whether a slow subscriber has no attempt in progress and may begin none, because others of its project have
        all places. For some time these begin no more than one each.
        """
        limit = self._limits.get(key)
        if limit is None or limit.begun or not limit.slow(now) or self._slow_of(key[0], now) < SLOW_OF_A_PROJECT:
            return False
        self._crowded[key[0]] = now + 2 * ASIDE_S * 1000
        return True

    def places(self, key: Addressee, now: int) -> int:
        """Concurrent attempts that a subscriber has earned, as a slow one if it is slow; 0 if it was met for the first
        time, and has neither answered nor failed to.
        """
        limit = self._limits.get(key)
        if limit is None:
            return FIRST
        if limit.untold and limit.allowed == FIRST:
            return 0
        return limit.places if limit.slow(now) else limit.allowed

    def grant(self, key: Addressee, places: int, now: int) -> None:
        """Another environment knows that a subscriber has earned so many concurrent attempts."""
        limit = self._limits.setdefault(key, _Limit())
        limit.places = min(SLOW_OF_A_PROJECT, max(limit.places, places))
        if not limit.slow(now):
            limit.allowed = min(MOST, max(limit.allowed, places))

    def meet(self, key: Addressee, now: int) -> None:
        """Nobody has had a subscriber's lease before: it may be tried with :data:`MET_WITH` attempts at once, unless it
        has failed to answer in time here.
        """
        limit = self._limits.setdefault(key, _Limit())
        limit.tried = 0 if limit.slow(now) and limit.places == FIRST else MET_WITH

    def met(self, key: Addressee) -> None:
        """The first lease at a subscriber is over."""
        limit = self._limits.get(key)
        if limit is not None:
            limit.tried = 0

    def holds_up(self, key: Addressee, now: int, *, leased: bool = False) -> bool:
        """Whether an order for a subscriber would hold up others: the subscriber is slow, or is keeping its orders
        waiting now (unless they wait for a lease, which takes no thread), or its project has many that do.
        """
        limit = self._limits.get(key)
        if limit is not None:
            waits = not leased and not self.admits(key, now) and limit.keeps_waiting(now)
            if limit.slow(now) or waits:
                return True
        unproven = limit is None or limit.allowed == FIRST
        return unproven and self._unanswered_of(key[0], now) >= SLOW_OF_A_PROJECT

    def newly_slow(self, now: int) -> list[Addressee]:
        """Subscribers with a single attempt that has been in progress for long. Each is reported once per half of the
        time for which it counts as slow.
        """
        found: list[Addressee] = []
        if self._longest(now) <= SLOW_MS:
            return found
        for key in (key for keys in self._under_way.values() for key in keys):
            limit = self._limits[key]
            recently_reported = limit.reported_at is not None and now - limit.reported_at < REMEMBERED_MS // 2
            if limit.allowed == FIRST and limit.waits(now, SLOW_MS) and not recently_reported:
                limit.reported_at = now
                found.append(key)
        return found

    def begin(self, key: Addressee, now: int) -> None:
        """Record that an attempt begins."""
        self._limits.setdefault(key, _Limit()).begun.append(now)
        self._begun.append(now)
        self._under_way[key[0]].add(key)
        self._held[key[0]] += 1
        self._limits.move_to_end(key)
        if len(self._limits) > KNOWN:
            idle = next((each for each, limit in self._limits.items() if not limit.begun), None)
            if idle is not None:
                del self._limits[idle]

    def end(self, key: Addressee, begun: int, now: int, *, answered: bool | None = True) -> None:
        """Record the end of an attempt.

        Args:
            begun: When it began.
            now: When it ended.
            answered: Whether the subscriber answered, and did not refuse; None if no request was made, which says
                nothing about it.
        """
        limit = self._limits.setdefault(key, _Limit())
        if begun in limit.begun:
            limit.begun.remove(begun)
            self._ended[begun] += 1
            self._held[key[0]] -= 1
        if not limit.begun:
            self._under_way[key[0]].discard(key)
        if now - begun > SLOW_MS:
            limit.allowed, limit.slow_until = FIRST, now + REMEMBERED_MS
            limit.places = min(SLOW_ALONE, limit.places + 1) if answered else FIRST
            limit.tried = limit.tried if answered else 0
        elif answered is not None:
            limit.allowed, limit.slow_until = min(MOST, limit.allowed + 1), 0
            if now - begun <= BRISK_MS:
                limit.brisk_at = now

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
        limits = (self._limits[key] for key in self._under_way.get(project, ()))
        return sum(limit.allowed == FIRST and limit.waits(now, HOLD_MS) for limit in limits)

    def _slow_of(self, project: str, now: int) -> int:
        """Number of attempts in progress at slow subscribers of a project. One that is met for the first time takes no
        more from the others than its first.
        """
        limits = (self._limits[key] for key in self._under_way.get(project, ()))
        return sum(FIRST if limit.untold else len(limit.begun) for limit in limits if limit.slow(now))

    def _slow_or_tried_of(self, project: str, now: int) -> int:
        """Number of attempts in progress at subscribers of a project that are slow, or met for the first time."""
        limits = (self._limits[key] for key in self._under_way.get(project, ()))
        return sum(len(limit.begun) for limit in limits if limit.tried or limit.slow(now))
