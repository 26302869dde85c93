"""What differs from a subscriber's own past: more failures than chance explains, odd volumes, slow answers, lasting
shifts of latency.

Every subscriber is compared with itself, in windows from five minutes to weeks, by numpy on the driver
(:mod:`.judging`); the driver's tables bring its hours together. Only first tries are counted: the retries of one
delivery are not independent evidence. A step of its own, which a run has to be asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Final

from ..figures.cells import KEYS, WHO
from ..storage.driver import Driver
from ..storage.schema import struct
from .history import SLOT_S, history_of
from .judging import MIN_USUAL, Event, judge

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

ALIKE, MOST = 3, 0.2
"""How many subscribers, and what share of a project's, something must happen to at once to be the project's."""

AT_ONCE: Final = timedelta(hours=2)
"""How far apart the same thing may begin for them."""

MOSTLY = 0.75
"""How much of what happens to one must lie within what happens to its project to be the same."""

Whole = tuple[tuple[str, ...], Sequence[Sequence[int]], Sequence[Sequence[int]]]
"""A subscriber: the columns that name it, and the rows of :func:`.history.history_of`."""


def slots_of(records: str) -> str:
    """First tries of each subscriber in each five minutes in which it had some, as :data:`SLOT` lists the columns.

    The retries of a delivery that fails are left out: they would count one failure many times.
    """
    slot = f'make_timestamp(epoch("at")::BIGINT // {SLOT_S} * {SLOT_S} * 1000000)'
    return f"""
        SELECT {KEYS}, max(coalesce(subscriber, '')) AS subscriber, {slot} AS slot, count(*) AS tried,
               count(*) FILTER (verdict = 'failed') AS failed
        FROM {records} WHERE kind = 'attempt' AND attempt = 1 GROUP BY {KEYS}, slot"""


def anomalies(driver: Driver, since: datetime, until: datetime, *, slots: str, hours: str) -> list[dict[str, Any]]:
    """All anomalies; the rows have the columns of :data:`ANOMALY`.

    Args:
        slots: A table of :func:`slots_of`.
        hours: A table of :func:`.cells.hourly`, with the days of the baseline.
    """
    counted = ("attempts", "failed", "first_attempts", "first_won", "p50_ms")
    hourly = ", ".join(f"coalesce({each}, -1)" for each in counted)
    # Whoever is heard of so seldom has no past to speak of.
    heard = f"SELECT {KEYS} FROM {hours} GROUP BY ALL HAVING sum(attempts) >= {MIN_USUAL}"
    rows = driver.each(f"""
        SELECT * FROM (
            SELECT {KEYS}, subscriber, [epoch(hour)::BIGINT, {hourly}] AS hour, NULL AS slot FROM {hours}
            UNION ALL SELECT {KEYS}, NULL, NULL, [epoch(slot)::BIGINT, tried, failed] FROM {slots}
        ) SEMI JOIN ({heard}) USING ({KEYS}) ORDER BY {KEYS}""")

    def subscribers() -> Iterator[Whole]:
        # One at a time: together they may be larger than the driver's memory.
        for whose, of_one in groupby(rows, key=lambda row: row[: len(WHO)]):
            names, of_hours, of_slots = zip(*(row[len(WHO) :] for row in of_one), strict=True)
            yield (*whose, max(filter(None, names), default="")), [*filter(None, of_hours)], [*filter(None, of_slots)]

    return anomalies_of(subscribers(), since, until)


def anomalies_of(subscribers: Iterable[Whole], since: datetime, until: datetime) -> list[Any]:
    """The anomalies of subscribers, as dictionaries."""
    begin, end = int(since.timestamp()), int(until.timestamp())
    sizes: Counter[str] = Counter()
    found: list[dict[str, Any]] = []
    for who, hours, slots in subscribers:
        sizes[who[0]] += 1
        found += [_row(who, event) for event in judge(history_of(hours, slots, begin, end))]
    return _by_project(found, sizes)


def _by_project(found: Iterable[dict[str, Any]], sizes: Mapping[str, int]) -> list[dict[str, Any]]:
    """What happens to many of a project's judged subscribers at once, in the same direction, as one finding of the
    project.
    """
    alike: dict[tuple[str, str, bool], list[dict[str, Any]]] = {}
    for row in found:
        alike.setdefault((row["project"], row["anomaly"], row["value"] < row["expected"]), []).append(row)
    merged: list[dict[str, Any]] = []
    for (project, _, _), rows in alike.items():
        many = max(ALIKE, MOST * sizes[project])
        left = rows
        while len(crowd := _crowd(left)) >= many:
            whole = _of_project(crowd, sizes[project])
            merged.append(whole)
            # What began at another time and mostly lies within it is no news either, as a holiday in another zone.
            left = [row for row in left if not _mostly_within(row, whole)]
        merged += left
    return merged


def _mostly_within(row: Mapping[str, Any], whole: Mapping[str, Any]) -> bool:
    since, until = whole["started_at"] - AT_ONCE, whole["ended_at"] + AT_ONCE
    within = min(row["ended_at"], until) - max(row["started_at"], since)
    return bool(within >= MOSTLY * (row["ended_at"] - row["started_at"]))


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


def _of_project(rows: Sequence[dict[str, Any]], of: int) -> dict[str, Any]:
    many = len(rows)
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


def _row(who: tuple[str, ...], event: Event) -> dict[str, Any]:
    begin, end = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=each) for each in (event.begin, event.end))
    numbers = float(event.value), float(event.expected), float(event.score)
    values = (event.anomaly, *who, begin, end, *numbers, event.detail)
    return dict(zip(ANOMALY.fieldNames(), values, strict=True))
