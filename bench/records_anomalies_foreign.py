"""A third labelled set for the report's anomalies, made from the words of docs/report.md alone, before its maker had
read judging.py or anomalies.py.

    .venv-glue/bin/python -m bench.records_anomalies_foreign --seeds 71 72 73

Each seed is a week after four others: a hundred subscribers to whom one of twelve things happens in it, and sixty to
whom nothing does, in four projects, each on the clock of a zone. The counts of an hour are over-dispersed (a Poisson
count whose mean is drawn from a gamma distribution), days are busy or quiet, shares of failures are drawn anew each
hour. In the week of each seed a clock changes: in autumn in Europe, in autumn in America, in spring in Europe. In one
project a day of the week is a holiday with half the traffic; in another a burst doubles or triples everybody's traffic
for some hours. These two happen to projects: a finding of the project is right, one of a subscriber is wrong.

What happens is at least what the page says is reported, by a margin: a share of failures three times the usual one, an
hour of silence where sixty deliveries would be usual, 2.5 times as much or a third, answers 2.5 times as slow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from glue_jobs.delivery_report.anomalies.detection import anomalies_of
from numpy.typing import NDArray

from bench.harness import Page
from bench.records_anomalies import DAYS, REPORTED, SLOTS, Score, Subscriber, of_seeds, offsets, tell, whole

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ENDS = (
    datetime(2026, 10, 31, tzinfo=UTC),
    datetime(2026, 11, 7, tzinfo=UTC),
    datetime(2027, 4, 3, tzinfo=UTC),
)
"""Ends of the reported week, by turns of the seeds."""

ZONES = ("Europe/Berlin", "America/New_York", "Europe/London", "Asia/Tokyo")
"""Of the projects."""

INCIDENTS, HEALTHY = 100, 60

HOUR, DAY = 12, 288
"""In slots of five minutes."""

BEGIN = SLOTS - REPORTED * DAY
"""The first slot of the reported week."""

HOLIDAY_OF, BURST_OF = 0, 1
"""Places of the projects with the holiday and with the burst."""


@dataclass(slots=True)
class Life:
    """One subscriber, by slot.

    Attributes:
        due: Usual deliveries.
        failing: Usual share of failures.
        took: Usual time of an answer, milliseconds.
        uneven: Shape of the gamma distribution that each hour's traffic is drawn with: the smaller, the more uneven.
        troubled: The same of the share of failures.
        spread: Standard deviation of the logarithm of the times of answers.
    """

    due: Floats
    failing: Floats
    took: Floats
    uneven: float
    troubled: float
    spread: float


@dataclass(slots=True)
class World:
    """A set.

    Attributes:
        subscribers: All of it.
        shared: What happened to whole projects: begin and end, by project.
    """

    subscribers: list[Subscriber] = field(default_factory=list)
    shared: dict[str, tuple[int, int]] = field(default_factory=dict)


HEALTHY_KINDS = ("steady", "office", "nightly batch", "failing all the time", "growing", "sparse", "weekend quiet")


def lives(chance: np.random.Generator, until: datetime, zone: str, kind: str) -> Life:
    """A subscriber to whom nothing happens."""
    begin = until - timedelta(days=DAYS)
    local = np.arange(SLOTS) + offsets(begin, zone)
    of_day = (local % DAY) / DAY
    weekday = ((begin.weekday() * DAY + local) // DAY) % 7
    wave = 1 + 0.6 * np.sin(2 * np.pi * (of_day - 0.3))
    shape = {
        "office": np.where((of_day > 1 / 3) & (of_day < 0.75), 2.2, 0.15) * np.where(weekday >= 5, 0.2, 1.0),
        "nightly batch": np.where((of_day >= 2 / 24) & (of_day < 4 / 24), 9.0, 0.3),
        "weekend quiet": wave * np.where(weekday >= 5, 0.4, 1.0),
    }.get(kind, wave)
    an_hour = float(np.exp(chance.uniform(np.log(30), np.log(900)))) if kind != "sparse" else chance.uniform(2, 8)
    days = np.exp(chance.normal(0, 0.08, DAYS))[np.arange(SLOTS) // DAY]
    due = an_hour / HOUR * shape * days
    if kind == "growing":
        due = due * np.linspace(1, chance.uniform(1.3, 1.8), SLOTS)
    usual = chance.uniform(0.1, 0.3) if kind == "failing all the time" else float(np.exp(chance.uniform(-6.5, -4)))
    took = float(np.exp(chance.uniform(np.log(40), np.log(600))))
    return Life(
        due=due,
        failing=np.full(SLOTS, usual),
        took=np.full(SLOTS, took) * (1 + 0.15 * np.sin(2 * np.pi * of_day)),
        uneven=chance.uniform(6, 20),
        troubled=chance.uniform(2, 8),
        spread=chance.uniform(0.3, 0.8),
    )


def _span(chance: np.random.Generator, life: Life, low: float, high: float, least: float) -> slice:
    """A time in the reported week, of so many hours, in which so many deliveries are usual at least."""
    for _ in range(400):
        length = round(chance.uniform(low, high) * HOUR)
        begin = int(chance.integers(BEGIN, SLOTS - length + 1))
        if life.due[begin : begin + length].sum() >= least:
            return slice(begin, begin + length)
    busiest = BEGIN + int(np.argmax(np.convolve(life.due[BEGIN:], np.ones(round(high * HOUR)), "valid")))
    return slice(busiest, busiest + round(high * HOUR))


def _fails(chance: np.random.Generator, life: Life, when: slice, low: float, high: float) -> None:
    life.failing[when] = np.maximum(life.failing[when] * 3, chance.uniform(low, high))


def strike(chance: np.random.Generator, life: Life, what: str) -> slice:
    """Let something happen: when it does."""
    if what == "outage of minutes":
        when = _span(chance, life, 0.17, 0.5, 12)
        _fails(chance, life, when, 0.95, 1.0)
    elif what == "outage of hours":
        when = _span(chance, life, 1, 8, 40)
        _fails(chance, life, when, 0.95, 1.0)
    elif what == "a part fails":
        when = _span(chance, life, 1, 6, 60)
        _fails(chance, life, when, 0.25, 0.6)
    elif what == "more errors for days":
        when = _span(chance, life, 36, 96, 1_000)
        _fails(chance, life, when, 0.06, 0.15)
    elif what == "errors rise slowly":
        when = _span(chance, life, 24, 72, 800)
        length = when.stop - when.start
        life.failing[when] = np.maximum(life.failing[when], np.linspace(0, chance.uniform(0.3, 0.6), length))
    elif what == "flapping":
        when = _span(chance, life, 6, 16, 200)
        part = max(4, (when.stop - when.start) // int(chance.integers(5, 12)))
        sick = (np.arange(when.stop - when.start) // part) % 2 == 0
        life.failing[when] = np.where(sick, 0.95, life.failing[when])
    elif what == "silence":
        when = _span(chance, life, 2, 10, 60)
        life.due[when] = 0
    elif what == "stopped":
        begin = int(chance.integers(BEGIN, SLOTS - DAY))
        when = slice(begin, SLOTS)
        life.due[when] = 0
    elif what == "much less":
        when = _span(chance, life, 8, 60, 300)
        life.due[when] *= chance.uniform(0.15, 0.35)
    elif what == "much more":
        when = _span(chance, life, 3, 36, 200)
        life.due[when] *= chance.uniform(2.5, 5)
    elif what == "slow for hours":
        when = _span(chance, life, 3, 12, 150)
        life.took[when] = life.took[when] * chance.uniform(2.5, 6) + 100
    else:
        when = _span(chance, life, 24, 72, 500)
        life.took[when] = life.took[when] * chance.uniform(2.5, 4) + 100
    return when


KINDS = (
    *("outage of minutes", "outage of hours", "a part fails", "more errors for days", "errors rise slowly", "flapping"),
    *("silence", "stopped", "much less", "much more", "slow for hours", "slow for days"),
)


def seen(chance: np.random.Generator, life: Life) -> tuple[Ints, Ints, Ints, Ints]:
    """What the records would show: first tries and failures by slot, median and 95th percentile by hour."""
    hours = SLOTS // HOUR
    uneven = np.repeat(chance.gamma(life.uneven, 1 / life.uneven, hours), HOUR)
    troubled = np.repeat(chance.gamma(life.troubled, 1 / life.troubled, hours), HOUR)
    tried = chance.poisson(life.due * uneven)
    share = np.where(life.failing > 0.5, life.failing, np.minimum(life.failing * troubled, 0.9))
    failed = chance.binomial(tried, share)
    p50, p95 = np.zeros(hours, dtype=np.int64), np.zeros(hours, dtype=np.int64)
    for hour in range(hours):
        slots = slice(hour * HOUR, (hour + 1) * HOUR)
        times = np.repeat(life.took[slots], tried[slots]) * np.exp(chance.normal(0, life.spread, tried[slots].sum()))
        bad = int(failed[slots].sum())
        # A failure is a refusal, which is quick, or a time-out.
        times[:bad] = np.where(chance.random(bad) < 0.7, 15.0, 30_000.0)
        if len(times):
            ranked = np.sort(times)
            p50[hour], p95[hour] = (round(ranked[int(np.ceil(len(ranked) * part)) - 1]) for part in (0.5, 0.95))
    return tried, failed, p50, p95


def world(seed: int) -> World:
    """One set of a hundred incidents and sixty healthy subscribers."""
    chance = np.random.default_rng(seed)
    until, made = ENDS[seed % len(ENDS)], World()
    holiday = BEGIN + DAY * int(chance.integers(2, 6)) - int(offsets(until - timedelta(days=DAYS), ZONES[0])[BEGIN])
    made.shared[ZONES[HOLIDAY_OF]] = (holiday, holiday + DAY)
    burst = int(chance.integers(BEGIN, SLOTS - 6 * HOUR))
    made.shared[ZONES[BURST_OF]] = (burst, burst + int(chance.integers(2, 7)) * HOUR)
    more = chance.uniform(2.2, 3.2)
    for number in range(INCIDENTS + HEALTHY):
        zone = ZONES[number % len(ZONES)]
        what = KINDS[number % len(KINDS)] if number < INCIDENTS else ""
        usual = ("steady", "office", "weekend quiet")[int(chance.integers(3))]
        kind = what or HEALTHY_KINDS[number % len(HEALTHY_KINDS)]
        life = lives(chance, until, zone, usual if what else kind)
        if zone in made.shared:
            during = slice(*made.shared[zone])
            life.due[during] *= 0.5 if zone == ZONES[HOLIDAY_OF] else more
        when = strike(chance, life, what) if what else None
        tried, failed, p50, p95 = seen(chance, life)
        made.subscribers.append(
            Subscriber(
                name=f"{number}-{kind}",
                kind=what or "nothing",
                project=zone,
                until=until,
                event=(when.start, when.stop) if when else None,
                tried=tried,
                failed=failed,
                p50=p50,
                p95=p95,
            )
        )
    return made


def judged(made: World) -> dict[str, Score]:
    """Judge a set by the functions that the job calls."""
    until = made.subscribers[0].until
    return score(made, anomalies_of(map(whole, made.subscribers), until - timedelta(days=REPORTED), until))


def score(made: World, told: Sequence[Mapping[str, Any]]) -> dict[str, Score]:
    """Compare what is told with what happened, to subscribers and to projects."""
    by_name = {each.name: each for each in made.subscribers}
    scores = {kind: Score() for kind in (*KINDS, "to a whole project", "nothing")}
    found: set[str] = set()
    for row in told:
        subscriber = by_name.get(row["subscriber_id"])
        kind = subscriber.kind if subscriber else "to a whole project"
        event = subscriber.event if subscriber else made.shared.get(row["project"])
        scores[kind].told += 1
        if event and _overlaps(row, event, until=made.subscribers[0].until):
            scores[kind].right += 1
            found.add(subscriber.name if subscriber else row["project"])
        else:
            when = f"{row['started_at']:%a %d %H:%M} to {row['ended_at']:%a %d %H:%M}"
            whose = subscriber.name if subscriber else row["project"]
            scores[kind].wrong.append(f"{whose}: {row['anomaly']} {when}, {row['detail']}")
    for subscriber in made.subscribers:
        if subscriber.event:
            _count(scores[subscriber.kind], subscriber.name, found)
    _count(scores["to a whole project"], ZONES[BURST_OF], found)
    return scores


def _count(mine: Score, name: str, found: set[str]) -> None:
    mine.happened += 1
    if name in found:
        mine.found += 1
    else:
        mine.missed.append(name)


def _overlaps(row: Mapping[str, Any], event: tuple[int, int], *, until: datetime) -> bool:
    begin, end = (until - timedelta(days=DAYS) + timedelta(minutes=5 * slot) for slot in event)
    started, ended = (row[name].replace(tzinfo=UTC) for name in ("started_at", "ended_at"))
    return bool(started < end + timedelta(hours=1) and ended > begin - timedelta(hours=1))


def main() -> None:
    """Measure, print, save."""
    page = Page("The report's anomalies, foreign", __doc__, seeds=[71, 72, 73], notes=False)
    total = of_seeds(page.options.seeds, lambda seed: judged(world(seed)))
    tell(page, total, ["what happened", "incidents", "reported", "anomalies told", "of an incident"])
    page.save()


if __name__ == "__main__":
    main()
