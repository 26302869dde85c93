"""The past of one subscriber, hour by hour, and what is usual for it: by hour of its own week, at its present level,
and through changes of its clock. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HOUR_S, SLOT_S = 3_600, 300
DAY, WEEK = 24, 168
"""In hours."""

WEEKEND = (2, 3)
"""Saturday and Sunday, counted from the weekday of 1 January 1970."""

CLOCK_DAYS = (1, 2, 3)
"""Clocks change on a Sunday almost everywhere, else on a Friday or a Saturday."""

CLOCK_EVIDENCE = 15.0
"""Log likelihood by which shifted hours must explain the traffic better than hours that are not, and than none."""

RECENT_DAYS = 7
"""Days whose median is the present level, when it differs from that of all days."""


@dataclass(frozen=True, kw_only=True)
class History:
    """What is known of a subscriber; arrays by hour from ``begin`` on, by slot of five minutes from ``since`` on.

    Attributes:
        begin: The first hour, counted from 1970.
        since: The report's first hour, as an index; negative when the subscriber is younger.
        until: Seconds since 1970 of the end of what is known.
        tried: First tries.
        bad: Failed ones of all attempts.
        p50: Median of an attempt's time in milliseconds; nan where there was none.
    """

    begin: int
    since: int
    until: int
    tried: Floats
    failed: Floats
    attempts: Floats
    bad: Floats
    p50: Floats
    slot_tried: Floats
    slot_failed: Floats

    @property
    def since_s(self) -> int:
        """Seconds since 1970 of the report's begin."""
        return (self.begin + self.since) * HOUR_S


def history_of(hours: Sequence[Sequence[int]], slots: Sequence[Sequence[int]], since_s: int, until_s: int) -> History:
    """From rows that are in no order, up to a second since 1970.

    Args:
        hours: Second since 1970, attempts, failed ones, first tries, successful ones, p50 (-1: unknown). Hours without
            are left out; the one that is not over is ignored.
        slots: Second since 1970, first tries, failed ones.
        since_s: Begin of the report.
    """
    rows = np.array(hours, dtype=np.float64).reshape(-1, 6)
    rows[rows < 0] = np.nan
    number = (rows[:, 0] // HOUR_S).astype(np.int64)
    over = number < until_s // HOUR_S
    rows, number = rows[over], number[over]
    begin = int(number.min()) if len(number) else until_s // HOUR_S
    size = until_s // HOUR_S - begin

    def by_hour(values: Floats, empty: float = 0.0) -> Floats:
        filled = np.full(size, empty)
        filled[number - begin] = np.nan_to_num(values) if empty == 0 else values
        return filled

    first = np.nan_to_num(rows[:, 3])
    counted = np.array(slots, dtype=np.int64).reshape(-1, 3)
    places = max(0, -(-(until_s - since_s) // SLOT_S))
    at = (counted[:, 0] - since_s) // SLOT_S
    counted, at = counted[(at >= 0) & (at < places)], at[(at >= 0) & (at < places)]
    slot_tried, slot_failed = np.zeros(places), np.zeros(places)
    slot_tried[at], slot_failed[at] = counted[:, 1], counted[:, 2]
    return History(
        begin=begin,
        since=since_s // HOUR_S - begin,
        until=until_s,
        tried=by_hour(first),
        failed=by_hour(np.maximum(first - np.nan_to_num(rows[:, 4]), 0)),
        attempts=by_hour(rows[:, 1]),
        bad=by_hour(rows[:, 2]),
        p50=by_hour(rows[:, 5], np.nan),
        slot_tried=slot_tried,
        slot_failed=slot_failed,
    )


def local_hours(counts: Floats, begin: int) -> Ints:
    """The number of each hour on the subscriber's clock, up to a constant: where its week begins to run an hour early
    or late for good, its clock was changed.
    """
    local = begin + np.arange(len(counts), dtype=np.int64)
    best, moved = 0.0, local
    for change in range(DAY - begin % DAY, len(counts) - DAY, DAY):
        if (begin + change) // DAY % 7 not in CLOCK_DAYS or max(change, len(counts) - change) < 6 * DAY:
            continue
        # What lies on the longer side of the change tells how the week looks, the other one whether it fits.
        early = change < len(counts) - change
        known, tested = (slice(change, None), slice(0, change)) if early else (slice(0, change), slice(change, None))
        week = _filled(counts[known], local[known])
        seen = counts[tested]
        scale = float(seen.mean()) / max(float(counts[known].mean()), 1e-9)

        def explains(due: Floats, seen: Floats = seen, scale: float = scale) -> float:
            # Hours scatter by about a third besides chance; outages and bursts count for little.
            far = np.log((seen + 0.5) / (due * scale + 0.5)) ** 2 / (1 / (due * scale + 0.5) + 0.1)
            return float(-0.5 * np.minimum(far, 25.0).sum())

        as_is = explains(week[local[tested] % WEEK])
        evenly = explains(np.full(len(seen), float(counts[known].mean())))
        for by in (-1, 1):
            shifted = explains(week[(local[tested] + by) % WEEK])
            gain = shifted - as_is
            if gain > max(best, CLOCK_EVIDENCE) and shifted - evenly > CLOCK_EVIDENCE:
                best, moved = gain, local.copy()
                # Hours before the change are told on the clock of those after it.
                moved[:change] += by if early else -by
    return moved


def _filled(counts: Floats, local: Ints) -> Floats:
    """Mean by hour of the week; of the hour of the day where the week is not known."""
    place = local % WEEK
    seen = np.bincount(place, minlength=WEEK)
    total = np.bincount(place, weights=counts, minlength=WEEK)
    of_day, all_day = (each.reshape(7, DAY).sum(axis=0) for each in (total, seen))
    daily = np.tile(of_day / np.maximum(all_day, 1), 7)
    filled: Floats = np.where(seen > 0, total / np.maximum(seen, 1), daily)
    return filled


def usual_week(counts: Floats, local: Ints) -> Floats:
    """Usual first tries by hour of the week: the mean without the largest and the smallest, so that one odd week counts
    for nothing; nan where fewer than three are known.

    With less than three weeks, working days are compared with working days and weekends with weekends.
    """
    place = local % WEEK
    if len(counts) >= 21 * DAY:
        return _trimmed(counts, place, WEEK)
    weekend = np.isin(np.arange(WEEK) // DAY, WEEKEND)
    alike = np.where(weekend, DAY, 0) + np.arange(WEEK) % DAY
    return _trimmed(counts, alike[place], 2 * DAY)[alike]


def _trimmed(counts: Floats, group: Ints, groups: int) -> Floats:
    seen = np.bincount(group, minlength=groups)
    total = np.bincount(group, weights=counts, minlength=groups)
    most, least = np.full(groups, -np.inf), np.full(groups, np.inf)
    np.maximum.at(most, group, counts)
    np.minimum.at(least, group, counts)
    with np.errstate(invalid="ignore"):
        mean = (total - most - least) / np.maximum(seen - 2, 1)
    return np.where(seen >= 3, mean, np.nan)


def expected(history: History, local: Ints) -> Floats:
    """Usual first tries by hour, at the subscriber's level of those days; nan where the hour of the week is not known.

    A day's level is the median of the week before it, so that who grew, shrank or moved is compared with what it has
    become. The report's own days do not count, unless there is nothing before them.
    """
    counts = history.tried
    week = usual_week(counts, local)
    due = _either_clock(week, local, counts)
    day = local // DAY - local[0] // DAY
    days = int(day[-1]) + 1
    known = np.nan_to_num(due)
    heard = np.where(np.isnan(due), 0.0, counts)
    of_day = np.bincount(day, weights=known, minlength=days)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.bincount(day, weights=heard, minlength=days) / of_day
    solid = of_day >= np.maximum(5.0, 0.1 * np.median(of_day[of_day > 0]) if (of_day > 0).any() else 5.0)
    since = int(day[history.since]) if 0 < history.since < len(day) else 0
    levels = np.ones(days)
    before = solid[:since].nonzero()[0]
    if len(before) < RECENT_DAYS:
        return due
    for each in range(since):
        past = before[(before < each)][-RECENT_DAYS:] if each > before[RECENT_DAYS - 1] else before[:RECENT_DAYS]
        levels[each] = np.median(ratio[past])
    levels[since:] = present_level(ratio[before])
    return np.asarray(due * levels[day])


def _either_clock(week: Floats, local: Ints, counts: Floats) -> Floats:
    """What is due by hour. On the day on which the clock changes, which has 23 or 25 hours, nobody knows at which hour
    it did, so each is compared with the clock that it fits.
    """
    due: Floats = week[local % WEEK]
    for change in np.flatnonzero(np.diff(local) != 1) + 1:
        day = slice(int(change), int(change) + DAY)
        before = week[(local[change - 1] + 1 + np.arange(len(local[day]))) % WEEK]
        fits = np.abs(counts[day] - before) < np.abs(counts[day] - due[day])
        due[day] = np.where(fits, before, due[day])
    return due


def present_level(ratios: Floats) -> float:
    """The median of the last days (each compared with what is usual) if it differs from that of all days by more than
    chance, else that of all.
    """
    recent, whole = ratios[-RECENT_DAYS:], float(np.median(ratios))
    level = float(np.median(recent))
    error = 1.25 * 1.4826 * float(np.median(np.abs(recent - level))) / np.sqrt(len(recent))
    return level if abs(level - whole) > max(0.12 * whole, 3 * error) else whole
