"""Deviations from a subscriber's own past are reported, once and in words.

Chance, sparse data, quiet weekends and nightly events are not.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from bench.records_anomalies import HAPPENINGS, Score, measure, precision, recall
from glue_jobs.delivery_report.anomalies import (
    failures,
    flapping,
    latency_shifts,
    odd_volumes,
    silences,
    slow_hours,
)
from glue_jobs.delivery_report.cells import HOURLY
from glue_jobs.delivery_report.rhythm import SLOT, slots_of, usual_by_hour
from pyspark.sql import DataFrame, SparkSession
from tests.glue.frames import records_frame, rows_frame, rows_of
from tests.glue.lives import MINUTE, NOON, Lives

UNTIL = datetime(2026, 11, 21, tzinfo=UTC)
TODAY = datetime(2026, 11, 20, tzinfo=UTC)
"""A Friday."""

WHO = {"project": "p", "queue": "q", "subscriber_id": "s", "subscriber": "erp"}


@pytest.fixture(scope="module")
def scores(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Score]:
    """A fifth of the labelled set, judged; the whole set takes a minute: ``python -m bench.records_anomalies``."""
    return measure(spark, 11, tmp_path_factory.mktemp("labelled"), every=5)


def test_what_happened_is_told_and_little_else(scores: dict[str, Score]) -> None:
    assert recall(scores) >= 0.9
    assert precision(scores) >= 0.95, [text for each in scores.values() for text in each.wrong]


@pytest.mark.parametrize("kind", HAPPENINGS)
def test_every_kind_of_event_is_told(scores: dict[str, Score], kind: str) -> None:
    assert scores[kind].happened >= 1
    assert scores[kind].found >= 0.8 * scores[kind].happened


@pytest.mark.parametrize(
    "kind", ["quiet weekends", "office hours", "next to nothing", "chronically failing", "maintenance each night"]
)
def test_where_nothing_happens_nothing_is_told(scores: dict[str, Score], kind: str) -> None:
    assert scores[kind].wrong == []


def hours(spark: SparkSession, days: int, each: Callable[[int, int], dict[str, Any] | None]) -> DataFrame:
    """Hours of one subscriber on the days up to today: ``each(days ago,
    hour)`` tells how an hour differs from 100 attempts without failures; None: no attempts.
    """
    rows = []
    for ago in range(days, -1, -1):
        for hour in range(24):
            changes = each(ago, hour)
            if changes is not None:
                moment = TODAY - timedelta(days=ago) + timedelta(hours=hour)
                usual = {
                    "attempts": 100,
                    "first_attempts": 100,
                    "first_won": 100,
                    "failed": 0,
                    "p50_ms": 50,
                    "p95_ms": 200,
                }
                rows.append({**WHO, "hour": moment, **usual, **changes})
    return rows_frame(spark, rows, HOURLY)


def slots(spark: SparkSession, each: Callable[[int], tuple[int, int] | None], begin: datetime = TODAY) -> DataFrame:
    """Slots of one subscriber from a time on to the end of today: ``each(minute)`` tells how many were tried and
    failed; None: none.
    """
    rows = []
    for minute in range(0, int((UNTIL - begin).total_seconds() // 60), 5):
        counted = each(minute)
        if counted is not None:
            tried, failed = counted
            rows.append({**WHO, "slot": begin + timedelta(minutes=minute), "tried": tried, "failed": failed})
    return rows_frame(spark, rows, SLOT)


def test_an_outage_is_one_event_with_its_times_and_numbers(spark: SparkSession) -> None:
    # Given ten minutes without a success, and one failure some hours later
    bad = {605: (8, 8), 610: (9, 9), 900: (8, 1)}
    (row,) = rows_of(failures(slots(spark, lambda minute: bad.get(minute, (8, 0))), hours(spark, 7, lambda *_: {})))
    assert (row["started_at"].hour, row["started_at"].minute) == (10, 5)
    assert (row["ended_at"].hour, row["ended_at"].minute) == (10, 15)
    assert row["detail"].startswith("17 of 17 first tries failed (100 %), usually 0.0")
    assert (row["subscriber"], row["value"]) == ("erp", 1.0)


def test_what_failed_on_days_before_does_not_hide_an_outage(spark: SparkSession) -> None:
    out = hours(spark, 7, lambda ago, hour: {"first_won": 20} if hour == 10 and ago in (0, 4) else {})
    frame = slots(spark, lambda minute: (8, 7) if 600 <= minute < 660 else (8, 0))
    assert len(rows_of(failures(frame, out))) == 1


def test_retries_of_one_delivery_are_no_evidence(spark: SparkSession) -> None:
    # Given a delivery whose tries all fail, and others that succeed
    lives = Lives()
    delivery = lives.post()[0]
    for _ in range(3):
        delivery = lives.attempt(delivery, 503)
    for n in range(4):
        lives.attempt(lives.post(NOON + n * MINUTE)[0])
    # Then it counts once, in the five minutes of its first try
    (row,) = rows_of(slots_of(records_frame(spark, lives.records)))
    assert (row["slot"].minute, row["tried"], row["failed"], row["subscriber"]) == (0, 5, 1, "erp")


def test_a_week_is_known_hour_by_hour_and_an_odd_one_does_not_count(spark: SparkSession) -> None:
    # Given five Fridays of 100 an hour, one of them silent and one with a burst, and no weekends
    odd: dict[int, dict[str, Any] | None] = {7: None, 14: {"first_attempts": 9_000}}
    frame = hours(spark, 34, lambda ago, hour: None if ago % 7 in (5, 6) else odd.get(ago, {}))
    (row,) = rows_of(usual_by_hour(frame, UNTIL))
    friday, saturday = 24, 48
    assert row["usual"][friday : friday + 24] == [100.0] * 24
    assert row["usual"][saturday : saturday + 48] == [0.0] * 48
    assert row["weekly"] == 5 * 24 * 100.0


def test_the_only_subscriber_stopping_is_told_to_the_end_of_the_report(spark: SparkSession) -> None:
    # Given one that was last seen at noon, and a quiet weekend before
    week = TODAY - timedelta(days=6)

    def kept(moment: datetime) -> bool:
        return moment.weekday() < 5 and moment < TODAY + timedelta(hours=12)

    past = hours(spark, 27, lambda ago, hour: {} if kept(TODAY - timedelta(days=ago) + timedelta(hours=hour)) else None)
    heard = slots(spark, lambda minute: (8, 0) if kept(week + timedelta(minutes=minute)) else None, week)
    # Then the silence is reported as lasting, and the weekend is not reported
    (row,) = rows_of(silences(heard, past, week, UNTIL))
    assert (row["started_at"].day, row["started_at"].hour, row["ended_at"].day) == (20, 12, 21)
    assert row["detail"] == "nothing since then, where some 1200 deliveries would be usual"


def test_a_burst_and_a_slow_hour_are_told_and_the_usual_ones_are_not(spark: SparkSession) -> None:
    week = TODAY - timedelta(days=6)
    strange: dict[tuple[int, int], dict[str, Any]] = {
        (0, 3): {"first_attempts": 900},
        (0, 15): {"p95_ms": 2_000},
        # each night at two a backup makes everything slow, and a batch comes
        **{(ago, 2): {"first_attempts": 5_000, "p95_ms": 9_000} for ago in range(28)},
    }
    frame = hours(spark, 27, lambda ago, hour: strange.get((ago, hour), {}))
    (volume,) = rows_of(odd_volumes(frame, week, UNTIL))
    assert (volume["started_at"].hour, volume["detail"]) == (3, "900 deliveries in the worst hour, usually 100")
    (slow,) = rows_of(slow_hours(frame, week, UNTIL))
    assert (slow["started_at"].hour, slow["detail"]) == (15, "p95 2000 ms in the worst hour, usually 200 ms")


def test_too_little_data_is_not_judged(spark: SparkSession) -> None:
    # Given a subscriber that is new since yesterday, and one that has hardly been tried
    frame = slots(spark, lambda minute: (8, 8))
    assert rows_of(failures(frame, hours(spark, 1, lambda *_: {}))) == []
    seldom = {"first_attempts": 1, "first_won": 1}
    assert rows_of(failures(frame, hours(spark, 7, lambda _, hour: seldom if hour == 0 else None))) == []
    burst = hours(spark, 1, lambda ago, hour: {"first_attempts": 9_000} if (ago, hour) == (0, 9) else {})
    assert rows_of(odd_volumes(burst, TODAY, UNTIL)) == []


def test_flapping(spark: SparkSession) -> None:
    # By five minutes where there is enough to count
    (row,) = rows_of(flapping(slots(spark, lambda minute: (12, 12 if 600 <= minute < 720 and minute // 20 % 2 else 0))))
    assert (
        row["detail"] == "changed 6 times within a day between well and sick; sick in 12 of 288 times of five minutes"
    )
    # By the hour where there is not
    (row,) = rows_of(flapping(slots(spark, lambda minute: (2, 2 if minute // 180 % 2 else 0))))
    assert row["detail"] == "changed 7 times within a day between well and sick; sick in 12 of 24 hours"
    # An outage is none, and neither is failing half of the time
    assert rows_of(flapping(slots(spark, lambda minute: (12, 12 if minute > 720 else 0)))) == []
    assert rows_of(flapping(slots(spark, lambda minute: (12, 4 + minute // 5 % 5)))) == []


def test_a_lasting_shift_of_latency(spark: SparkSession) -> None:
    yesterday = TODAY - timedelta(days=1)

    def shifts(each: Callable[[int, int], dict[str, Any]], days: int = 1) -> list[dict[str, Any]]:
        return rows_of(latency_shifts(hours(spark, days, each), yesterday))

    (row,) = shifts(lambda ago, hour: {"p50_ms": 150 if (ago, hour) >= (0, 9) and ago == 0 else 50})
    assert (row["started_at"].hour, row["expected"], row["value"]) == (9, 50.0, 150.0)
    # One slow hour is not a shift, nor is a small change, nor a slow noon each day
    assert shifts(lambda ago, hour: {"p50_ms": 900 if (ago, hour) == (0, 9) else 50}) == []
    assert shifts(lambda ago, _: {"p50_ms": 3 if ago else 9}) == []
    assert shifts(lambda _, hour: {"p50_ms": 300 if 8 <= hour < 20 else 50}, days=6) == []
