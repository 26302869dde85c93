"""How well the report finds anomalies: precision and recall on a labelled set of subscribers.

Subscribers of many kinds (steady, by day, office hours with quiet weekends, a batch each hour or each night, bursts,
hardly any traffic, chronically failing, a maintenance window each night) live for five weeks. Something happens to half
of them in the last week: an outage of 5, 10 or 60 minutes, a share of failures, 62 hours of rising or of constant
failures, flapping, silence, stopping for good. *Recall*: the share of events that an anomaly overlaps (with a tolerance
of an hour at either end). *Precision*: the share of reported anomalies that overlap an event.

    .venv-glue/bin/python -m bench.records_anomalies --seeds 1 2 3
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from glue_jobs.delivery_report.anomalies import anomalies
from glue_jobs.delivery_report.cells import HOURLY
from glue_jobs.delivery_report.rhythm import SLOT
from glue_jobs.delivery_report.session import open_session
from glue_jobs.local_spark import use_bundled_java
from numpy.typing import NDArray
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

Floats = NDArray[np.float64]

UNTIL = datetime(2026, 11, 21, tzinfo=UTC)
"""End of the last week: midnight at the start of a Saturday."""

DAYS, REPORTED = 35, 7
SLOTS = DAYS * 288
FIRST_REPORTED = (DAYS - REPORTED) * 288
BEGIN = UNTIL - timedelta(days=DAYS)
SINCE = UNTIL - timedelta(days=REPORTED)

WELL, OUT = 0.002, 0.97
"""Share of failures: normally, and in an outage."""

HAPPENINGS: Mapping[str, tuple[float, ...]] = {
    "outage of 5 minutes": (240, 600, 1200),
    "outage of 10 minutes": (90, 240, 600),
    "outage of 60 minutes": (15, 60, 240),
    "a third failing for an hour": (60, 240),
    "rise from 0.2 % to 20 % in 62 hours": (20, 100, 400),
    "20 % for 62 hours": (20, 100, 400),
    "flapping each 15 minutes": (60, 240),
    "silent for 3 hours": (30, 120),
    "stopped": (15, 60, 240),
}
"""The kinds of events, and the deliveries per hour at which each is tried."""

RHYTHMS = ("steady", "by day", "office hours", "quiet weekends")

QUIET: Mapping[str, tuple[float, ...]] = {
    **dict.fromkeys(RHYTHMS, (4, 30, 120, 600)),
    "batch each hour": (20, 200),
    "batch each night": (20, 200),
    "bursts": (10, 60, 300),
    "next to nothing": (0.05, 0.3, 1, 2),
    "chronically failing": (2, 30, 200),
    "maintenance each night": (60, 300),
    "new": (60, 300),
    "growing": (60, 300),
}
"""Subscribers without an event, and their deliveries per hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriber:
    """One of the set.

    Attributes:
        name: Its kind and its event.
        kind: Its event, or its kind if it has none.
        event: First and last slot of the event; None if it has none.
        tried: First tries by slot of five minutes.
        failed: Those that failed.
    """

    name: str
    kind: str
    event: tuple[int, int] | None
    tried: NDArray[np.int64]
    failed: NDArray[np.int64]


@dataclass(slots=True)
class Score:
    """How well one kind of event was found.

    Attributes:
        happened: Number of events.
        found: Events that an anomaly overlaps.
        told: Number of anomalies.
        right: Anomalies that overlap an event.
        wrong: Anomalies without an event, described.
    """

    happened: int = 0
    found: int = 0
    told: int = 0
    right: int = 0
    wrong: list[str] = field(default_factory=list)


def labelled(seed: int, every: int = 1) -> Iterator[Subscriber]:
    """The set.

    Args:
        seed: The same seed makes the same set.
        every: Take only every n-th subscriber.
    """
    for number, subscriber in enumerate(_everybody(np.random.default_rng(seed))):
        if number % every == seed % every:
            yield subscriber


def _everybody(randomness: np.random.Generator) -> Iterator[Subscriber]:
    for kind, volumes in HAPPENINGS.items():
        for volume in volumes:
            for rhythm in RHYTHMS:
                yield _with_event(randomness, kind, rhythm, volume)
    for kind, volumes in QUIET.items():
        for volume in volumes:
            for copy in range(3):
                due, odds = _usual(randomness, kind, volume)
                yield _lived(randomness, f"{kind}, {volume:g} an hour, {copy}", kind, None, due, odds)


def measure(spark: SparkSession, seed: int, folder: Path, every: int = 1) -> dict[str, Score]:
    """Let the report judge a set.

    Args:
        spark: Session.
        seed: See :func:`labelled`.
        folder: For the set's files.
        every: See :func:`labelled`.

    Returns:
        The scores by kind.
    """
    subscribers = list(labelled(seed, every))
    _write(folder / "slots.json", (row for each in subscribers for row in _slot_rows(each)))
    _write(folder / "hours.json", (row for each in subscribers for row in _hour_rows(each)))
    slots, hours = (
        _read(spark, folder / f"{name}.json", schema) for name, schema in (("slots", SLOT), ("hours", HOURLY))
    )
    told = [each.asDict() for each in anomalies(slots, hours, SINCE, UNTIL).collect()]
    return score(subscribers, told)


def score(subscribers: Sequence[Subscriber], told: Sequence[Mapping[str, Any]]) -> dict[str, Score]:
    """Compare the reported anomalies with the events.

    Args:
        subscribers: The set.
        told: Anomalies.
    """
    scores: dict[str, Score] = {}
    by_name = {each.name: each for each in subscribers}
    found: set[str] = set()
    for row in told:
        subscriber = by_name[row["subscriber_id"]]
        mine = scores.setdefault(subscriber.kind, Score())
        mine.told += 1
        if subscriber.event is not None and _overlaps(row, subscriber.event):
            mine.right += 1
            found.add(subscriber.name)
        else:
            mine.wrong.append(f"{subscriber.name}: {row['anomaly']} {row['started_at']:%a %H:%M}, {row['detail']}")
    for subscriber in subscribers:
        mine = scores.setdefault(subscriber.kind, Score())
        mine.happened += subscriber.event is not None
        mine.found += subscriber.name in found
    return scores


def precision(scores: Mapping[str, Score]) -> float:
    """Share of reported anomalies that overlap an event."""
    return sum(each.right for each in scores.values()) / max(1, sum(each.told for each in scores.values()))


def recall(scores: Mapping[str, Score]) -> float:
    """Share of events that were reported."""
    return sum(each.found for each in scores.values()) / max(1, sum(each.happened for each in scores.values()))


def _usual(randomness: np.random.Generator, rhythm: str, volume: float) -> tuple[Floats, Floats]:
    """Expected deliveries and share of failures, by slot."""
    slot = np.arange(SLOTS)
    of_day, day = slot % 288 / 12.0, slot // 288
    weekend = np.isin((BEGIN.weekday() + day) % 7, (5, 6))
    due, odds = np.full(SLOTS, volume / 12), np.full(SLOTS, WELL)
    if rhythm == "by day":
        due *= 1 + 0.75 * np.sin((of_day - 9) / 24 * 2 * np.pi)
    elif rhythm == "office hours":
        due *= np.where((of_day >= 8) & (of_day < 18) & ~weekend, 1, 0)
    elif rhythm == "quiet weekends":
        due *= np.where(weekend, 0.03, 1 + 0.5 * np.sin((of_day - 9) / 24 * 2 * np.pi))
    elif rhythm == "batch each hour":
        due = np.where(slot % 12 == 0, volume, 0.0)
    elif rhythm == "batch each night":
        due = np.where(slot % 288 == 25, volume * 24, 0.0)
    elif rhythm == "bursts":
        due *= np.repeat(randomness.gamma(0.5, 2.0, SLOTS // 6), 6)
    elif rhythm == "chronically failing":
        odds = np.full(SLOTS, randomness.choice((0.03, 0.1, 0.3)))
    elif rhythm == "maintenance each night":
        odds = np.where((slot % 288 >= 36) & (slot % 288 < 40), 0.9, WELL)
    elif rhythm == "new":
        due[: SLOTS - 4 * 288 - 100] = 0
    elif rhythm == "growing":
        due *= 1.03**day / 1.03**DAYS
    return due, odds


def _with_event(randomness: np.random.Generator, kind: str, rhythm: str, volume: float) -> Subscriber:
    due, odds = _usual(randomness, rhythm, volume)
    lasts = {
        "outage of 5 minutes": 1.0,
        "outage of 10 minutes": 2.0,
        "flapping each 15 minutes": 36.0,
        "silent for 3 hours": 36.0,
        "rise from 0.2 % to 20 % in 62 hours": 744.0,
        "20 % for 62 hours": 744.0,
    }.get(kind, 12.0)
    latest = SLOTS - (144 if kind == "stopped" else int(lasts) + 2)
    busy = np.flatnonzero(due[FIRST_REPORTED:latest] >= 0.8 * volume / 12) + FIRST_REPORTED
    if kind in ("silent for 3 hours", "stopped"):
        # It begins and continues while much traffic is expected.
        busy = np.array([each for each in busy if due[each : each + 36].sum() >= 2 * volume])
    # Events do not begin at a slot's start: an outage of five minutes spans two slots.
    start = float(randomness.choice(busy)) + randomness.random()
    end = float(SLOTS) if kind == "stopped" else start + lasts
    slot = np.arange(SLOTS)
    part = np.clip(np.minimum(slot + 1, end) - np.maximum(slot, start), 0, 1)
    if kind.startswith("outage"):
        odds = odds + (OUT - odds) * part
    elif kind.startswith("a third"):
        odds = odds + (0.33 - odds) * part
    elif kind.startswith("rise"):
        odds = odds + 0.198 * (slot - start) / lasts * part
    elif kind.startswith("20 %"):
        odds = odds + 0.198 * part
    elif kind.startswith("flapping"):
        odds = odds + (OUT - odds) * part * ((slot - int(start)) % 6 < 3)
    else:
        due = due * (1 - part)
    name = f"{kind}, {rhythm}, {volume:g} an hour"
    return _lived(randomness, name, kind, (int(start), int(np.ceil(end))), due, odds)


def _lived(
    randomness: np.random.Generator, name: str, kind: str, event: tuple[int, int] | None, due: Floats, odds: Floats
) -> Subscriber:
    tried = randomness.poisson(due)
    return Subscriber(
        name=name, kind=kind, event=event, tried=tried, failed=randomness.binomial(tried, np.clip(odds, 0, 1))
    )


def _overlaps(row: Mapping[str, Any], event: tuple[int, int]) -> bool:
    begin, end = (BEGIN + timedelta(minutes=5 * slot) for slot in event)
    started, ended = (row[name].replace(tzinfo=UTC) for name in ("started_at", "ended_at"))
    return bool(started < end + timedelta(hours=1) and ended > begin - timedelta(hours=1))


def _who(subscriber: Subscriber) -> dict[str, Any]:
    return {"project": "p", "queue": "q", "subscriber_id": subscriber.name, "subscriber": subscriber.name}


def _moment(slot: int) -> str:
    return f"{BEGIN + timedelta(minutes=5 * slot):%Y-%m-%dT%H:%M:%SZ}"


def _slot_rows(subscriber: Subscriber) -> Iterator[dict[str, Any]]:
    for slot in np.flatnonzero(subscriber.tried[FIRST_REPORTED:]) + FIRST_REPORTED:
        counts = {"tried": int(subscriber.tried[slot]), "failed": int(subscriber.failed[slot])}
        yield {**_who(subscriber), "slot": _moment(int(slot)), **counts}


def _hour_rows(subscriber: Subscriber) -> Iterator[dict[str, Any]]:
    tried, failed = (each.reshape(-1, 12).sum(axis=1) for each in (subscriber.tried, subscriber.failed))
    # Percentiles of few attempts scatter more than those of many.
    noise = np.random.default_rng(len(subscriber.name)).normal(size=(2, len(tried)))
    for hour in np.flatnonzero(tried):
        count = int(tried[hour])
        p50, p95 = (int(ms * np.exp(noise[n, hour] * 2 / np.sqrt(count))) for n, ms in enumerate((80, 300)))
        yield {
            **_who(subscriber),
            "hour": _moment(int(hour) * 12),
            "attempts": count,
            "first_attempts": count,
            "first_won": count - int(failed[hour]),
            "failed": int(failed[hour]),
            "p50_ms": p50,
            "p95_ms": p95,
        }


def _write(file: Path, rows: Iterator[dict[str, Any]]) -> None:
    with file.open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in rows)


def _read(spark: SparkSession, file: Path, schema: StructType) -> Any:
    return spark.read.schema(schema).json(f"file://{file}")


def main(argv: Sequence[str]) -> None:
    """Measure and print.

    Args:
        argv: Without the program's name.
    """
    parser = argparse.ArgumentParser(
        prog="records_anomalies", description="Precision and recall of the report's anomalies."
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    seeds = parser.parse_args(argv).seeds
    use_bundled_java()
    spark = open_session("local[2]")
    total: dict[str, Score] = {}
    wrong: Counter[str] = Counter()
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            for kind, each in measure(spark, seed, Path(folder)).items():
                mine = total.setdefault(kind, Score())
                mine.happened += each.happened
                mine.found += each.found
                mine.told += each.told
                mine.right += each.right
                wrong.update(each.wrong)
    print("| kind | happened | found | told | right |\n|---|---|---|---|---|")
    for kind, each in total.items():
        print(f"| {kind} | {each.happened or ''} | {each.found or ''} | {each.told} | {each.right} |")
    print(f"\nSeeds {', '.join(map(str, seeds))}: precision {precision(total):.3f}, recall {recall(total):.3f}")
    for text in wrong:
        print(f"  told without reason: {text}")


if __name__ == "__main__":
    main(sys.argv[1:])
