"""What differs from a subscriber's own past: more failures than chance explains, silence, odd volumes, slow answers,
flapping, lasting shifts of latency.

Every subscriber is compared with itself, in windows from five minutes to weeks, by numpy on the driver
(:mod:`.judging`); the driver's tables bring its hours together. Only first tries are counted: the retries of one
delivery are not independent evidence. A step of its own, which a run has to be asked for.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import Any, Final

from ..figures.cells import WHO
from ..storage.driver import Driver, columns
from ..storage.schema import struct
from .history import SLOT_S, history_of
from .judging import MIN_USUAL, Event, Judgement, common_holidays, excused, judge

ANOMALY: Final = struct(
    "string anomaly",
    "string " + " ".join(WHO),
    "string subscriber",
    "timestamp started_at ended_at",
    "double value expected score",
    "string detail",
)
"""Columns of an anomaly; ``score`` tells by how much more than its usual spread the value is off, for ranking."""

SLOT: Final = struct("string " + " ".join(WHO), "string subscriber", "timestamp slot", "bigint tried failed")
"""Columns of a slot: first tries of five minutes."""

LEAST_ALIKE: Final = {"project": 3, "hub": 5}
"""How many subscribers must keep quiet all day, and three of five, to make it a holiday: of one project, of all."""

MOST: Final = 0.2
"""The share of a project's subscribers that something must happen to at once to be the project's."""

AT_ONCE: Final = timedelta(hours=2)
"""How far apart the same thing may begin for them."""

Whole = tuple[tuple[str, ...], Sequence[Sequence[int]], Sequence[Sequence[int]]]
"""A subscriber: the columns that name it, and the rows of :func:`.history.history_of`."""


def slots_of(records: str) -> str:
    """First tries of each subscriber in each five minutes in which it had some, as :data:`SLOT` lists the columns.

    The retries of a delivery that fails are left out: they would count one failure many times.

    Args:
        records: A table of records.
    """
    slot = f'make_timestamp(epoch("at")::BIGINT // {SLOT_S} * {SLOT_S} * 1000000)'
    return f"""
        SELECT {columns(WHO)}max(coalesce(subscriber, '')) AS subscriber, {slot} AS slot, count(*) AS tried,
               count(*) FILTER (verdict = 'failed') AS failed
        FROM {records} WHERE kind = 'attempt' AND attempt = 1 GROUP BY {columns(WHO)}slot"""


def anomalies(
    driver: Driver, since: datetime, until: datetime, holidays: Sequence[date] = (), *, slots: str, hours: str
) -> list[dict[str, Any]]:
    """All anomalies; the rows have the columns of :data:`ANOMALY`.

    Args:
        holidays: Days on which nobody has to come. Those that a project or the hub keeps together are found without.
        slots: A table of :func:`slots_of`.
        hours: A table of :func:`.cells.hourly`, with the days of the baseline.
    """
    who = ", ".join(WHO)
    counted = ("attempts", "failed", "first_attempts", "first_won", "p50_ms", "p95_ms")
    hourly = ", ".join(f"coalesce({each}, -1)" for each in counted)
    # Whoever is heard of so seldom has no past to speak of.
    heard = f"SELECT {who} FROM {hours} GROUP BY ALL HAVING sum(attempts) >= {MIN_USUAL}"
    rows = driver.each(f"""
        SELECT * FROM (
            SELECT {who}, subscriber, [epoch(hour)::BIGINT, {hourly}] AS hour, NULL AS slot FROM {hours}
            UNION ALL SELECT {who}, NULL, NULL, [epoch(slot)::BIGINT, tried, failed] FROM {slots}
        ) SEMI JOIN ({heard}) USING ({who}) ORDER BY {who}""")

    def subscribers() -> Iterator[Whole]:
        # One at a time: together they may be larger than the driver's memory.
        for whose, of_one in groupby(rows, key=lambda row: row[: len(WHO)]):
            names, of_hours, of_slots = zip(*(row[len(WHO) :] for row in of_one), strict=True)
            yield (*whose, max(filter(None, names), default="")), [*filter(None, of_hours)], [*filter(None, of_slots)]

    return anomalies_of(subscribers(), since, until, holidays)


def anomalies_of(
    subscribers: Iterable[Whole], since: datetime, until: datetime, holidays: Sequence[date] = ()
) -> list[Any]:
    """The anomalies of subscribers, without Spark; the rows are dictionaries.

    Args:
        subscribers: All that keep holidays together.
        holidays: See :func:`anomalies`.
    """
    begin, end = int(since.timestamp()), int(until.timestamp())
    sizes: Counter[str] = Counter()
    judged: list[tuple[tuple[str, ...], Judgement]] = []
    for who, hours, slots in subscribers:
        sizes[who[0]] += 1
        judgement = judge(history_of(hours, slots, begin, end))
        if judgement.events or judgement.days:
            judged.append((who, judgement))
    free = _holidays(judged, holidays)
    found = [
        _row(who, event)
        for who, judgement in judged
        for event in judgement.events
        if not excused(event, free[None] | free[who[0]])
    ]
    return _by_project(found, sizes)


def _by_project(found: Iterable[dict[str, Any]], sizes: Mapping[str, int]) -> list[dict[str, Any]]:
    """What happens to many subscribers of a project at once, in the same direction, as one finding of the project.

    Args:
        sizes: How many subscribers of each project were judged.
    """
    alike: dict[tuple[str, str, bool], list[dict[str, Any]]] = {}
    for row in found:
        alike.setdefault((row["project"], row["anomaly"], row["value"] < row["expected"]), []).append(row)
    merged: list[dict[str, Any]] = []
    for (project, _, _), rows in alike.items():
        many = max(LEAST_ALIKE["project"], MOST * sizes[project])
        left = rows
        while len(crowd := _crowd(left)) >= many:
            merged.append(_of_project(crowd, len(crowd), sizes[project]))
            left = [row for row in left if not any(row is each for each in crowd)]
        merged += left
    return merged


def _crowd(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The most events that began together and have some moment in common, one of each subscriber."""

    def with_this(one: dict[str, Any]) -> list[dict[str, Any]]:
        together: dict[tuple[str, str], dict[str, Any]] = {}
        for row in rows:
            near = abs(row["started_at"] - one["started_at"]) <= AT_ONCE
            if near and row["started_at"] < one["ended_at"] and one["started_at"] < row["ended_at"]:
                together.setdefault((row["queue"], row["subscriber_id"]), row)
        return list(together.values())

    return max(map(with_this, rows), key=len, default=[])


def _of_project(rows: Sequence[dict[str, Any]], many: int, of: int) -> dict[str, Any]:
    clearest = max(rows, key=lambda row: float(row["score"]))
    return {
        **clearest,
        "queue": None,
        "subscriber_id": None,
        "subscriber": f"{many} of {of} subscribers",
        "started_at": min(row["started_at"] for row in rows),
        "ended_at": max(row["ended_at"] for row in rows),
        "detail": f"{many} of the project's {of} subscribers at once; of one of them: {clearest['detail']}",
    }


def _holidays(judged: Iterable[tuple[tuple[str, ...], Judgement]], given: Sequence[date]) -> dict[str | None, set[int]]:
    """Days since 1970 by project; those of everybody under None."""
    kept: dict[str | None, Counter[tuple[str, int]]] = defaultdict(Counter)
    asked: dict[str | None, Counter[tuple[str, int]]] = defaultdict(Counter)
    for who, judgement in judged:
        for whose in (who[0], None):
            asked[whose].update(judgement.days.keys())
            kept[whose].update(day for day, quiet in judgement.days.items() if quiet)
    found = {
        whose: common_holidays(kept[whose], asked[whose], LEAST_ALIKE["hub" if whose is None else "project"])
        for whose in asked
    }
    everybodys = found.get(None, set()) | {(each - date(1970, 1, 1)).days for each in given}
    return {**found, None: everybodys}


def _row(who: tuple[str, ...], event: Event) -> dict[str, Any]:
    numbers = float(event.value), float(event.expected), float(event.score)
    values = (event.anomaly, *who, _moment(event.begin), _moment(event.end), *numbers, event.detail)
    return dict(zip(ANOMALY.fieldNames(), values, strict=True))


def _moment(second: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
