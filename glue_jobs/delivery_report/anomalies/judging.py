"""What is more than chance in the past of one subscriber. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .evidence import HOURS, SLOTS, Found, Scatter, apart, joined, scatter_of, spreads, summed
from .history import DAY, HOUR_S, SLOT_S, WEEK, Floats, History, Ints, expected, local_hours, present_level

MIN_FAILED, MIN_DAYS, MIN_USUAL, MIN_ATTEMPTS = 5, 3, 50, 20
"""Least for a judgement: failed first tries, days with data, first tries for a usual share, attempts of an hour or the
difference in its deliveries."""

EVIDENCE = 24.0
"""Likelihood ratio (2 ln) from which failures are more than chance and the subscriber's own scatter explain: 4.9
standard deviations, so that a million windows raise one false alarm."""

LEAST_WEEKLY = 25.0
"""Usual deliveries in a week below which a subscriber has no rhythm to speak of."""

UNUSUAL, UNUSUAL_LONGER, UNUSUAL_DAY = 5.5, 4.2, 3.6
"""How many spreads from the usual make the volume or latency of an hour unusual, of more than one, and of a day and
more: there are fewer of longer ones, so chance has fewer tries."""

BEYOND, TAIL = 1.5, 8.0
"""Failures are news when they are this many times as evident as the worst of the third worst day, and so many times as
far beyond it as bad days lie above middling ones."""

FARTHER = 1.15
"""Volume and latency are when they are this many times as far off."""

POINTS = {1: 0.02, 6: 0.007}
"""By how much the share of failures must exceed the usual in windows of so many hours or more: a small share doubles
for an hour now and then."""

FACTOR, LEAST_MS = 2.0, 50
"""A latency is unusual from twice the usual on, and from this many milliseconds more."""

LASTING = 6
"""Hours from which a shorter median is told, too, and a small share of failures is worth telling."""

TIMED_OUT = 0.25
"""Share of failed attempts above which an hour says nothing of the time of answers: attempts that failed took as long
as a time-out or a refusal takes."""

CHRONIC, FAR, ALL = 0.1, 2.5, 0.9
"""The usual share of failures from which on a subscriber fails all the time; how many times that it must fail to be
told of, or what share in any case."""


class Event(NamedTuple):
    """What happened, and when (seconds since 1970).

    Attributes:
        value: What was seen.
        expected: What is usual.
        score: By how much more than its usual spread it is off.
    """

    anomaly: str
    begin: int
    end: int
    value: float
    expected: float
    score: float
    detail: str


def judge(history: History) -> list[Event]:
    """Everything that is more than chance."""
    if not len(history.tried) or not history.attempts.sum():
        return []
    local = local_hours(history.tried, history.begin)
    due = expected(history, local)
    return [*_sick(history, local), *volumes(history, due), *latencies(history, local)]


def _sick(history: History, local: Ints) -> list[Event]:
    """Failures; of one that always fails, whose share jumps from hour to hour, once and only what is far from that."""
    usual, found = _usual_share(history), failures(history, local)
    if usual is None or usual[0] < CHRONIC:
        return found
    clear = [each for each in found if each.value >= min(FAR * each.expected, ALL)]
    return [max(clear, key=lambda each: each.score)] if clear else []


def failures(history: History, local: Ints) -> list[Event]:
    """Times in which more first tries failed than chance explains, given the subscriber's usual share."""
    usual = _usual_share(history)
    if usual is None:
        return []
    share, known, scatter = usual
    by_hour = _usual_by_hour(history, local, max(3 * share, share + 0.03))
    found: list[tuple[int, int, float]] = []
    starts_s = history.since_s
    # By slots of five minutes. What usually fails at this hour of the day may fail in any part of it: a maintenance of
    # ten minutes each night is no news.
    hour = (starts_s + np.arange(len(history.slot_tried)) * SLOT_S) // HOUR_S - history.begin
    inside = (hour >= 0) & (hour < len(history.tried))
    hour_share = np.where(inside, by_hour[np.clip(hour, 0, len(by_hour) - 1)], 0.0)
    hour = hour - (hour.min() if len(hour) else 0)
    budget = hour_share * np.bincount(hour, weights=history.slot_tried)[hour] if len(hour) else hour_share
    before = np.cumsum(history.slot_failed) - history.slot_failed
    first = np.concatenate(([True], hour[1:] != hour[:-1])) if len(hour) else np.zeros(0, bool)
    before = before - np.maximum.accumulate(np.where(first, before, 0.0)) if len(hour) else before
    excused = np.minimum(history.slot_failed, np.maximum(budget - before, 0))
    due = np.maximum(history.slot_tried * share, excused)
    exactly = history.slot_failed, history.slot_tried, due
    fine = _failing(exactly, known, {each: (scatter.shape(each * SLOT_S / HOUR_S), POINTS[1]) for each in SLOTS}, 2.0)
    # By the hour, as far back as is known.
    excused = np.minimum(history.failed, by_hour * history.tried)
    due = np.maximum(history.tried * share, excused)
    by_length = {each: (scatter.shape(each), POINTS[1 if each < LASTING else LASTING]) for each in HOURS}
    coarse = _failing((history.failed, history.tried, due), known, by_length, 1.5)
    asked = {length: max(EVIDENCE, _beyond(ratio, history, length)) for length, ratio in coarse.items()}
    scores = {
        length: (ratio / asked.get(max(1, length * SLOT_S // HOUR_S), EVIDENCE), np.sqrt(ratio))
        for length, ratio in fine.items()
    }
    for each in joined(apart(scores, 0), HOUR_S // SLOT_S):
        found.append((starts_s + each.begin * SLOT_S, starts_s + each.end * SLOT_S, each.score))
    scores = {length: (ratio / asked[length], np.sqrt(ratio)) for length, ratio in coarse.items() if length >= LASTING}
    for each in joined(apart(scores, history.since), 2):
        begin = history.begin + each.begin
        found.append((begin * HOUR_S, (begin + each.end - each.begin) * HOUR_S, each.score))
    events = []
    for first_s, last_s, score in _one(found):
        begin, end, failed, tried = _counted(history, first_s, last_s)
        at = np.clip(np.array([begin // HOUR_S, (end - 1) // HOUR_S]) - history.begin, 0, len(by_hour) - 1)
        odds = max(share, float(by_hour[at[0] : at[1] + 1].max()) if end - begin <= 2 * HOUR_S else share)
        if tried and failed / tried > odds:
            seen = failed / tried
            of_all = f"{failed:.0f} of {tried:.0f} first tries failed ({seen * 100:.0f} %)"
            detail = f"{of_all}, usually {odds * 100:.2g} %"
            events.append(Event("failures", begin, end, seen, odds, score, detail))
    return events


def _failing(
    counts: tuple[Floats, Floats, Floats], known: float, asked: dict[int, tuple[float, float]], factor: float
) -> dict[int, Floats]:
    """The likelihood ratio of the share seen and the usual one, by window; 0 unless it is so many times as large.

    Failures are due as a gamma distribution has them, so that their number is negative binomial: what a subscriber's
    share varies by besides chance is in the ratio, and not a factor of it. It is discounted for how little the usual
    share rests on.

    Args:
        counts: Failed, tried, and those that usually fail, by hour or slot.
        known: On how many the usual share rests.
        asked: By length, the shape of that distribution, and by how much a share must exceed the usual one.
    """
    failed, tried, due = counts
    ratios: dict[int, Floats] = {}
    for length, (shape, points) in asked.items():
        if length > len(failed):
            break
        k, n, usual = (summed(each, length) for each in (failed, tried, due))
        usual = np.clip(usual, 1e-9, np.maximum(n - 1e-9, 1e-9))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(k > 0, k * np.log(k / usual), 0.0) - (k + shape) * np.log((k + shape) / (usual + shape))
            # And hardly any of the others were there to succeed.
            rest = np.where(n > k, (n - k) * np.log((n - k) / (n - usual)), 0.0) + k - usual
            ratio = 2 * (ratio + rest) * known / (known + n)
        more = (k > factor * usual) & (k >= MIN_FAILED) & (k >= usual + points * n)
        ratio = np.where(more, ratio, 0.0)
        # A window begins and ends with failures.
        ratio = np.where((failed[: len(k)] > 0) & (failed[length - 1 :] > 0), ratio, 0.0)
        ratios[length] = ratio
    return ratios


def _one(found: list[tuple[int, int, float]]) -> list[tuple[int, int, float]]:
    """What overlaps, or lies less than an hour apart, as one."""
    merged: list[tuple[int, int, float]] = []
    for begin, end, score in sorted(found):
        if merged and begin <= merged[-1][1] + HOUR_S:
            last = merged.pop()
            merged.append((last[0], max(last[1], end), max(last[2], score)))
        else:
            merged.append((begin, end, score))
    return merged


def _counted(history: History, begin: int, end: int) -> tuple[int, int, float, float]:
    """An event from its first failure to its last, as exactly as is known, with its failed and all its first tries."""
    since = history.since_s
    if begin >= since:
        span = slice((begin - since) // SLOT_S, -(-(end - since) // SLOT_S))
        bad = np.flatnonzero(history.slot_failed[span])
        if len(bad):
            span = slice(span.start + int(bad[0]), span.start + int(bad[-1]) + 1)
            failed, tried = (float(each[span].sum()) for each in (history.slot_failed, history.slot_tried))
            return since + span.start * SLOT_S, since + span.stop * SLOT_S, failed, tried
    span = slice(max(0, begin // HOUR_S - history.begin), -(-end // HOUR_S) - history.begin)
    return begin, end, float(history.failed[span].sum()), float(history.tried[span].sum())


def _usual_share(history: History) -> tuple[float, float, Scatter] | None:
    """The usual share of failed first tries, on how many it rests, and how much it varies by besides chance. None if
    too little is known.

    A third of the days, those with the most failures, are left out, so that an outage of days does not become usual;
    but what has been so on five of the last seven days before the report has.
    """
    day = (history.begin + np.arange(len(history.tried))) // DAY
    day = day - day[0]
    tried, failed = (np.bincount(day, weights=each) for each in (history.tried, history.failed))
    heard = np.flatnonzero(tried)
    if len(heard) < MIN_DAYS:
        return None
    order = heard[np.argsort(failed[heard] / tried[heard], kind="stable")]
    good = order[: -(-len(order) * 2 // 3)]
    known, bad = float(tried[good].sum()), float(failed[good].sum())
    if known < MIN_USUAL:
        return None
    # One failure more than was seen: none so far does not mean never.
    share = (bad + 1) / (known + 2)
    before = heard[heard < (history.begin + history.since) // DAY - history.begin // DAY][-7:]
    if len(before) == 7:
        last = before[np.argsort(failed[before] / tried[before], kind="stable")]
        lasting = float((failed[last[2:5]].sum() + 1) / (tried[last[2:5]].sum() + 2))
        share = max(share, lasting if failed[last[2:5]].sum() >= MIN_FAILED else share)
    # Of the days before the report, if there are enough.
    end = history.since if history.since >= 14 * DAY else len(history.tried)
    return share, known, scatter_of(history.failed[:end], history.tried[:end], day[:end])


def _usual_by_hour(history: History, local: Ints, usually: float) -> Floats:
    """What usually fails at an hour of the day, or of the week, if anything: maintenance each night is no news, not
    even in the night after the clock was changed.
    """
    by_hour = np.zeros(len(history.tried))
    solid = history.tried >= MIN_FAILED
    with np.errstate(invalid="ignore", divide="ignore"):
        alone = np.nan_to_num(history.failed / history.tried)
    alone[~solid] = 0.0
    early, late = (np.concatenate(each) for each in (([0.0], alone[:-1]), (alone[1:], [0.0])))
    share = np.maximum(alone, np.maximum(early, late))
    for cycle, least in ((DAY, MIN_DAYS), (WEEK, MIN_DAYS - 1)):
        place = local % cycle
        usual = np.zeros(cycle)
        for each in np.unique(place[solid & (share > 0)]):
            shares = share[solid & (place == each)]
            # It takes longer or fails more on some days than on others.
            often = len(shares) > least and np.median(shares) > usually
            usual[each] = np.quantile(shares, 0.8) if often else 0.0
        by_hour = np.maximum(by_hour, usual[place])
    return by_hour


def volumes(history: History, due: Floats) -> list[Event]:
    """Times with far more or far fewer first tries than are usual at those hours of the week."""
    known = ~np.isnan(due)
    # A subscriber's first hour began before it did.
    known[0] = False
    usual = np.where(known, np.nan_to_num(due), 0.0)
    if usual.sum() < LEAST_WEEKLY * len(usual) / WEEK:
        return []
    seen = np.where(known, history.tried, 0.0)
    varies = spreads(_off(seen, usual), usual, history.since, 1.0)
    around = np.stack((np.roll(usual, 1), usual, np.roll(usual, -1)))
    events = []
    for up in (True, False):
        scores: dict[int, tuple[Floats, Floats]] = {}
        for length, spread in varies.items():
            # Who comes an hour early or late is no news.
            least = (around.max(axis=0) if up else around.min(axis=0)) if length <= 4 else usual
            count, due_then = summed(seen, length), summed(least, length)
            far = _off(seen, least)(length) / spread * (1 if up else -1)
            often, seldom = (2.0, 0.5) if length < 12 else (1.8, 0.7)
            large = count >= often * due_then if up else count <= seldom * due_then
            large &= np.abs(count - due_then) >= MIN_ATTEMPTS
            scores[length] = _news(np.where(large, far, 0.0), far, history, length)
        odd = seen > 1.25 * usual if up else seen < 0.8 * usual
        for each in joined(apart(scores, max(history.since, 0)), 1):
            # It begins and ends with hours that are odd themselves.
            ends = np.flatnonzero(odd[each.begin : each.end])
            found = each if not len(ends) else each._replace(begin=each.begin + ends[0], end=each.begin + ends[-1] + 1)
            span = slice(found.begin, found.end)
            values = float(seen[span].sum()), float(usual[span].sum())
            events.append(_by_hours(history, found, "volume", values, "{} deliveries in {}, usually {}"))
    return events


def _off(seen: Floats, usual: Floats) -> Callable[[int], Floats]:
    """How far counts are off the usual, in units of what chance alone makes of them, for windows of any length.

    On the scale on which chance makes more and less alike: roots for small counts, logarithms for large ones, of which
    whatever makes hours and days busy is a factor.
    """

    def off(length: int) -> Floats:
        count, due = summed(seen, length), summed(usual, length)
        roots = 2 * (np.sqrt(count + 0.4) - np.sqrt(due + 0.4))
        if length < 12:
            return np.asarray(roots)
        logs = np.sqrt(due) * np.log((count + 0.5) / (due + 0.5))
        return np.where(due >= 50, logs, roots)

    return off


def latencies(history: History, local: Ints) -> list[Event]:
    """Times in which the median answer took far longer than is usual at those hours of the day (on the subscriber's
    clock), or lastingly another time.
    """
    took = history.p50
    solid = (history.attempts >= MIN_ATTEMPTS // 2) & ~np.isnan(took)
    solid &= history.bad <= TIMED_OUT * history.attempts
    if solid.sum() < 2 * LASTING:
        return []
    logs = np.log(np.maximum(np.where(solid, took, 1.0), 1.0))
    usual = np.full(len(logs), float(np.median(logs[solid])))
    for each in range(DAY):
        of_day = solid & (local % DAY == each)
        if of_day.sum() > MIN_DAYS:
            usual[local % DAY == each] = np.median(logs[of_day])
    day = local // DAY - local[0] // DAY
    since = day[history.since] if 0 < history.since < len(day) else 0
    levels = [
        float(np.exp(np.median((logs - usual)[solid & (day == each)])))
        for each in range(since)
        if (solid & (day == each)).any()
    ]
    # Who became slower or quicker for good, before the report, is compared with what it is now.
    settled = np.log(present_level(np.array(levels))) if len(levels) >= 7 else 0.0
    off = np.where(solid, logs - usual - np.where(day >= since, settled, 0.0), 0.0)
    weight = np.where(solid, np.minimum(history.attempts, 1000), 0.0)
    floor = 0.1 * np.sqrt(float(np.median(weight[solid])))
    varies = spreads(
        lambda length: summed(off * weight, length) / np.sqrt(np.maximum(summed(weight, length), 1)),
        weight,
        history.since,
        floor,
    )
    events = []
    for up in (True, False):
        scores: dict[int, tuple[Floats, Floats]] = {}
        for length, spread in varies.items():
            n = summed(weight, length)
            mean = summed(off * weight, length) / np.maximum(n, 1)
            far = mean * np.sqrt(n) / spread * (1 if up else -1)
            normal = summed(np.exp(usual) * weight, length) / np.maximum(n, 1)
            value = np.exp(np.clip(mean, -20, 20)) * normal
            large = (np.abs(mean) >= np.log(FACTOR)) & (np.abs(value - normal) >= LEAST_MS) & (n >= MIN_ATTEMPTS)
            # Both ends belong to it, and most of what lies between.
            ends = (off if up else -off) >= np.log(FACTOR) / 2
            large &= ends[: len(n)] & ends[length - 1 :]
            large &= summed(ends.astype(float), length) >= 0.6 * summed((weight > 0).astype(float), length)
            if not up:
                large &= length >= LASTING
            scores[length] = _news(np.where(large, far, 0.0), far, history, length)
        for found in joined(apart(scores, max(history.since, 0)), 1):
            span = slice(found.begin, found.end)
            total = float(weight[span].sum())
            before = float((np.exp(usual + settled) * weight)[span].sum() / total)
            now = float(np.exp((off * weight)[span].sum() / total)) * before
            text = "median attempt time from {2} ms to {0} ms for {1}"
            events.append(_by_hours(history, found, "latency", (now, before), text))
    return events


def _news(judged: Floats, far: Floats, history: History, length: int) -> tuple[Floats, Floats]:
    """By how many times windows exceed what makes them unusual, and what was as bad on the third worst day before."""
    asked = UNUSUAL_DAY if length >= DAY else UNUSUAL_LONGER if length > 1 else UNUSUAL
    judged = np.where(np.arange(len(judged)) >= history.since - DAY, judged, 0.0)
    return judged / max(asked, FARTHER * float(_worst_days(far, history, length)[2])), judged


def _beyond(ratios: Floats, history: History, length: int) -> float:
    """How evident failures must be to be news for who has had some.

    Where bad days are much worse than others, a still worse one comes now and then without anything being new: what may
    come beyond the third worst day is told from how far the five days from there lie above the eighth worst.
    """
    worst = _worst_days(ratios, history, length)
    third = float(worst[2])
    scatter = float(worst[2:7].mean() - worst[7]) if len(worst) > 7 else 0.0
    return max(BEYOND * third, third + TAIL * scatter)


def _worst_days(far: Floats, history: History, length: int) -> Floats:
    """The worst window of each day before the report, or of all days if these are less than two weeks, the worst day
    first; of three days at least, of which one that was not has none.
    """
    day = (history.begin + np.arange(len(far)) + length - 1) // DAY
    before = np.arange(len(far)) + length <= history.since if history.since >= 14 * DAY else np.ones(len(far), bool)
    worst = np.zeros(max(3, int(day[-1] - day[0]) + 1))
    np.maximum.at(worst, (day - day[0])[before], far[before])
    return np.asarray(np.sort(worst)[::-1])


def _by_hours(history: History, found: Found, anomaly: str, values: tuple[float, float], text: str) -> Event:
    """A window of hours in words; the text's parts are what was seen, for how long, and what is usual."""
    value, normal = values
    hours = int(found.end - found.begin)
    lasted = "an hour" if hours == 1 else f"{hours} hours"
    begin = int(history.begin + found.begin) * HOUR_S
    detail = text.format(f"{value:.0f}", lasted, f"{normal:.0f}")
    return Event(anomaly, begin, begin + hours * HOUR_S, value, normal, found.score, detail)
