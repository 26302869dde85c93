"""Evidence over windows of any length: from five minutes to weeks, each against what chance makes of that length.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .history import DAY, Floats, Ints

HOURS = (1, 2, 3, 4, 6, 9, 12, 18, 24, 36, 48, 72, 96, 120, 168, 240, 336)
"""Lengths of windows of hours: each is at most twice the one before, so that some window holds half of anything that
lasts, and little else."""

SLOTS = (1, 2, 3, 4, 6, 9, 12, 18, 24, 36, 48, 72)
"""Lengths of windows of slots of five minutes."""


TAILS = ((0.8, 1.2816, 336), (0.95, 1.96, 18), (0.98, 2.3263, 6))
"""Shares of the windows, the standard deviations they lie within if only chance made them, and up to which length they
are looked at: bursts show in the tail only, and an event of the past must not."""

YOUNG_TAILS = ((0.7, 1.0364, 336),)
"""The same where the report's own days have to do."""


WORST_DAYS = 2
"""How many days a subscriber's scatter is told without: those with the largest shares, which may be an event's."""

WITHOUT_WORST = 1.5
"""By how much more it scatters than the other days show: the worst belong to its tail."""

USUAL_SCATTER, RESTS_ON = 1.0, 10.0
"""The squared scatter (in units of the usual share) that is assumed of who has hardly failed, and on how much."""

LEAST_SHAPE = 0.25
"""The smallest shape of the distribution: one hour in seven has all the failures."""


@dataclass(frozen=True, kw_only=True)
class Scatter:
    """How much a subscriber's share of failures varies besides chance.

    Attributes:
        hourly: Shape of the gamma distribution that the shares of its hours are drawn from.
        daily: The same of its days: as many times as large as a day has hours if hours are independent, less if bad
            ones come together.
    """

    hourly: float
    daily: float

    def shape(self, hours: float) -> float:
        """The same of windows of so many hours; of a part of an hour, all of which is alike, that of the hour."""
        shape = self.hourly * max(1.0, hours)
        return max(LEAST_SHAPE, shape if hours < DAY / 2 else min(shape, self.daily * max(1.0, hours / DAY)))


class Found(NamedTuple):
    """A window that is more than chance, from its first place to the one after its last.

    Attributes:
        excess: By how many times its evidence exceeds what is asked for.
        score: Its evidence.
    """

    begin: int
    end: int
    excess: float
    score: float


def summed(values: Floats, length: int) -> Floats:
    """The sum of each window, by its first place; shorter by ``length`` - 1."""
    total = np.concatenate(([0.0], np.cumsum(values)))
    sums: Floats = total[length:] - total[:-length]
    return sums


def apart(scores: dict[int, tuple[Floats, Floats]], since: int) -> list[Found]:
    """The strongest windows that do not overlap, in order of time.

    Args:
        scores: By length: by how many times each window exceeds what is asked for, and its evidence.
        since: Windows that end before this place are no news.
    """
    left: list[Found] = []
    for length, (excess, evidence) in scores.items():
        for begin in np.flatnonzero(excess >= 1):
            if begin + length > since:
                left.append(Found(int(begin), int(begin) + length, float(excess[begin]), float(evidence[begin])))
    left.sort(key=lambda each: (-each.excess, each.end - each.begin, each.begin))
    chosen: list[Found] = []
    taken: set[int] = set()
    for each in left:
        places = range(each.begin, each.end)
        if taken.isdisjoint(places):
            taken.update(places)
            chosen.append(each)
    return sorted(chosen, key=lambda each: each.begin)


def joined(found: Sequence[Found], gap: int) -> Iterator[Found]:
    """Windows at most so far apart, or apart by less than a quarter of the longer one, as one."""
    last: Found | None = None
    for each in found:
        if last is None:
            last = each
        elif each.begin - last.end <= max(gap, max(each.end - each.begin, last.end - last.begin) // 4):
            best = max(last, each, key=lambda one: one.excess)
            last = Found(last.begin, max(last.end, each.end), best.excess, best.score)
        else:
            yield last
            last = each
    if last is not None:
        yield last


def scatter_of(failed: Floats, tried: Floats, day: Ints) -> Scatter:
    """By the moments of its hours and of its days (counted from 0), without the worst days."""
    of_day: list[Floats] = [np.bincount(day, weights=each).astype(np.float64) for each in (failed, tried)]
    heard = np.flatnonzero(of_day[1])
    days = heard[np.argsort(of_day[0][heard] / of_day[1][heard], kind="stable")][:-WORST_DAYS]
    kept = np.isin(day, days)
    share = (failed[kept].sum() + 0.5) / (tried[kept].sum() + 1)

    def shape(seen: Floats, due: Floats) -> float:
        more = float(((seen - due) ** 2 - due).sum()) + USUAL_SCATTER * RESTS_ON
        return 1 / max(WITHOUT_WORST * more / (float((due**2).sum()) + RESTS_ON), 1e-6)

    return Scatter(
        hourly=shape(failed[kept], tried[kept] * share), daily=shape(of_day[0][days], of_day[1][days] * share)
    )


def spreads(off: Callable[[int], Floats], scale: Floats, since: int, least: float) -> dict[int, float]:
    """By length, how many times more than chance alone windows usually scatter: counts come in bursts, whole days are
    busy or quiet, and what scatters over hours scatters over days at least as much.

    Args:
        off: Distances from the usual of all windows of a length, in units of what chance alone makes.
        scale: Its variance if only chance made it; 0 where it is not known.
        since: The hours before this one count, if they are two weeks at least; else all.
    """
    enough = since >= 14 * 24
    end = since if enough else len(scale)
    found: dict[int, float] = {}
    last = least
    known = float((scale[:end] > 0).sum())
    for length in HOURS:
        if length > end:
            break
        variance = summed(scale[:end], length)
        far = np.abs(off(length)[: len(variance)])[variance > 0]
        variance = variance[variance > 0]
        if not len(far):
            break
        independent = known / length
        if independent >= 3:
            tails = TAILS if enough else YOUNG_TAILS
            usual = max(
                _weighted(far, variance, share) / normal for share, normal, longest in tails if length <= longest
            )
            last = max(last, usual * (1 + 1.5 / independent))
        found[length] = last
    return found


def _weighted(values: Floats, weights: Floats, share: float) -> float:
    """The value up to which this share of the weight lies: where little is due, little can scatter."""
    order = np.argsort(values)
    upto = np.cumsum(weights[order])
    return float(values[order][min(int(np.searchsorted(upto, share * upto[-1])), len(values) - 1)])
