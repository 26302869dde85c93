"""What differs from a subscriber's own past: more failures than chance explains, silence, odd volumes, slow answers,
flapping, lasting shifts of latency.

Every subscriber is compared with itself, in windows from five minutes to weeks, by numpy on the driver
(:mod:`.judging`); Spark brings each subscriber's hours together. Only first tries are counted: the retries of one
delivery are not independent evidence. A step of its own, which a run has to be asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType, TimestampType

from .cells import WHO
from .history import history_of
from .judging import MIN_USUAL, common_holidays, excused, judge

ANOMALY: Final = StructType(
    [
        *(StructField(name, StringType()) for name in ("anomaly", *WHO, "subscriber")),
        *(StructField(name, TimestampType()) for name in ("started_at", "ended_at")),
        *(StructField(name, DoubleType()) for name in ("value", "expected", "score")),
        StructField("detail", StringType()),
    ]
)
"""Columns of an anomaly; ``score`` tells by how much more than its usual spread the value is off, for ranking."""

SLOT_S: Final = 300
"""A slot: five minutes."""

SLOT: Final = StructType(
    [
        *(StructField(name, StringType()) for name in (*WHO, "subscriber")),
        StructField("slot", TimestampType()),
        StructField("tried", LongType()),
        StructField("failed", LongType()),
    ]
)
"""Columns of a slot."""

LEAST_ALIKE: Final = {"project": 3, "hub": 5}
"""How many subscribers must keep quiet all day, and three of five, to make it a holiday: of one project, of all."""

MOST: Final = 0.2
"""The share of a project's subscribers that something must happen to at once to be the project's."""

AT_ONCE: Final = timedelta(hours=2)
"""How far apart the same thing may begin for them."""

Day = tuple[str, int]
"""In which way many may have kept a day (:func:`.judging.quiet_days`), and the day since 1970."""

Whole = tuple[tuple[str, ...], Sequence[Sequence[int]], Sequence[Sequence[int]]]
"""A subscriber: the columns that name it, and the rows of :func:`.history.history_of`."""

Told = tuple[tuple[str, ...], list[tuple[Any, ...]], dict[Day, bool]]
"""A subscriber by the same columns, its events, and the days on which it did or did not keep quiet."""


def anomalies(
    slots: DataFrame, hours: DataFrame, since: datetime, until: datetime, holidays: Sequence[date] = ()
) -> DataFrame:
    """All anomalies, with the columns of :data:`ANOMALY`.

    Args:
        slots: See :func:`slots_of`.
        hours: See :func:`.cells.hourly`, with the days of the baseline.
        holidays: Days on which nobody has to come. Those that a project or the hub keeps together are found without.
    """
    second = F.unix_timestamp
    counted = ("attempts", "failed", "first_attempts", "first_won", "p50_ms", "p95_ms")
    hourly = F.array(second("hour"), *(F.coalesce(F.col(each), F.lit(-1)) for each in counted))
    by_hour = (
        hours.groupBy(*WHO)
        .agg(
            F.max("subscriber").alias("subscriber"),
            F.collect_list(hourly).alias("hours"),
            F.sum("attempts").alias("all"),
        )
        # Whoever is heard of so seldom has no past to speak of.
        .where(F.col("all") >= MIN_USUAL)
    )
    by_slot = slots.groupBy(*WHO).agg(F.collect_list(F.array(second("slot"), "tried", "failed")).alias("slots"))
    whole = by_hour.join(by_slot, list(WHO), "left").select(*WHO, "subscriber", "hours", "slots")
    # One subscriber at a time: together they may be larger than the driver's memory.
    subscribers = ((tuple(row[:4]), row[4], row[5] or []) for row in whole.toLocalIterator())
    found = told_of(subscribers, since, until, holidays)
    return hours.sparkSession.createDataFrame([tuple(row.values()) for row in found], ANOMALY, verifySchema=False)


def told_of(subscribers: Iterable[Whole], since: datetime, until: datetime, holidays: Sequence[date] = ()) -> list[Any]:
    """The anomalies of subscribers, without Spark; the rows are dictionaries.

    Args:
        subscribers: All that keep holidays together.
        holidays: See :func:`anomalies`.
    """
    sizes: Counter[str] = Counter()

    def counted() -> Iterator[Whole]:
        for each in subscribers:
            sizes[each[0][0]] += 1
            yield each

    judged = list(_judges(since, until)(counted()))
    kept = _kept(_holidays(_quiet(judged), holidays))
    found = [dict(zip(ANOMALY.fieldNames(), row, strict=True)) for each in judged for row in kept(each)]
    return _said_once(found, sizes)


def _said_once(found: Iterable[dict[str, Any]], sizes: Mapping[str, int]) -> list[dict[str, Any]]:
    """What happens to many subscribers of a project at once, in the same direction, as one finding of the project.

    Args:
        sizes: How many subscribers of each project were judged.
    """
    alike: dict[tuple[str, str, bool], list[dict[str, Any]]] = {}
    for row in found:
        alike.setdefault((row["project"], row["anomaly"], row["value"] < row["expected"]), []).append(row)
    said: list[dict[str, Any]] = []
    for (project, _, _), rows in alike.items():
        many = max(LEAST_ALIKE["project"], MOST * sizes[project])
        left = rows
        while len(crowd := _crowd(left)) >= many:
            said.append(_of_project(crowd, len(crowd), sizes[project]))
            left = [row for row in left if not any(row is each for each in crowd)]
        said += left
    return said


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


def _judges(since: datetime, until: datetime) -> Callable[[Iterable[Whole]], Iterator[Told]]:
    begin, end = int(since.timestamp()), int(until.timestamp())

    def judged(subscribers: Iterable[Whole]) -> Iterator[Told]:
        for who, hours, slots in subscribers:
            said = judge(history_of(hours, slots, begin, end))
            if said.events or said.days:
                events = [
                    (each.anomaly, each.begin, each.end, each.value, each.expected, each.score, each.detail)
                    for each in said.events
                ]
                yield who, events, said.days

    return judged


def _quiet(judged: Iterable[Told]) -> Iterator[tuple[str, Day, int, int]]:
    """By project and day: how many kept quiet of how many that are usually busy then."""
    kept: Counter[tuple[str, Day]] = Counter()
    asked: Counter[tuple[str, Day]] = Counter()
    for who, _, days in judged:
        for day, quiet in days.items():
            asked[who[0], day] += 1
            kept[who[0], day] += quiet
    return ((*each, kept[each], asked[each]) for each in asked)


def _holidays(quiet: Iterable[tuple[str, Day, int, int]], given: Sequence[date]) -> dict[str | None, set[int]]:
    """Days since 1970 by project; those of everybody under None."""
    by_project: dict[str | None, dict[Day, tuple[int, int]]] = {None: {}}
    for project, day, kept, asked in quiet:
        for whose in (project, None):
            days = by_project.setdefault(whose, {})
            before = days.get(day, (0, 0))
            days[day] = before[0] + kept, before[1] + asked
    found = {
        whose: common_holidays(days, LEAST_ALIKE["project" if whose is not None else "hub"])
        for whose, days in by_project.items()
    }
    found[None] |= {(each - date(1970, 1, 1)).days for each in given}
    return found


def _kept(holidays: dict[str | None, set[int]]) -> Callable[[Told], list[tuple[Any, ...]]]:
    """Makes the rows of a subscriber's events, without what its holidays excuse."""

    def rows(told: Told) -> list[tuple[Any, ...]]:
        who, events, _ = told
        free = holidays[None] | holidays.get(who[0], set())
        return [
            (anomaly, *who, _moment(begin), _moment(end), float(value), float(usual), float(score), detail)
            for anomaly, begin, end, value, usual, score, detail in events
            if not (value < usual and anomaly in ("silence", "volume") and excused(begin, end, free))
        ]

    return rows


def _moment(second: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


def slots_of(records: DataFrame) -> DataFrame:
    """First tries of each subscriber in each five minutes in which it had some: how many were ``tried``,
    how many ``failed``.

    The retries of a delivery that fails are left out: they would count one failure many times.
    """
    begin = F.floor(F.unix_timestamp("at") / SLOT_S) * SLOT_S
    return (
        records.where((F.col("kind") == "attempt") & (F.col("attempt") == 1))
        .select(
            *WHO,
            F.coalesce("subscriber", F.lit("")).alias("subscriber"),
            F.timestamp_seconds(begin).alias("slot"),
            (F.col("verdict") == "failed").cast("long").alias("fails"),
        )
        .groupBy(*WHO, "slot")
        .agg(
            F.max("subscriber").alias("subscriber"),
            F.count(F.lit(1)).alias("tried"),
            F.sum("fails").alias("failed"),
        )
        .select(*SLOT.fieldNames())
    )
