"""Hours unlike the same hours before, flapping subscribers and latency shifts are found; ordinary noise and thin data are not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

from glue_jobs.delivery_report.anomalies import flapping, latency_shifts, unusual_hours, with_silent_hours
from glue_jobs.delivery_report.cells import HOURLY
from pyspark.sql import DataFrame, SparkSession
from tests.glue.frames import rows_frame, rows_of

TODAY = date(2026, 11, 20)
MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)


def hours(spark: SparkSession, days: int, each: Callable[[int, int], dict[str, Any] | None]) -> DataFrame:
    """Hours of one subscriber on the days up to today: ``each(days ago, hour)`` tells how an hour differs from 100 attempts without failures; None: no attempts."""
    rows = []
    for ago in range(days, -1, -1):
        for hour in range(24):
            changes = each(ago, hour)
            if changes is not None:
                moment = MIDNIGHT - timedelta(days=ago) + timedelta(hours=hour)
                usual = {"attempts": 100, "failed": 0, "p50_ms": 50, "p95_ms": 200}
                who = {"project": "p", "queue": "q", "subscriber_id": "s", "subscriber": "erp"}
                rows.append({**who, "hour": moment, **usual, **changes})
    return rows_frame(spark, rows, HOURLY)


def unusual(frame: DataFrame) -> list[tuple[str, int]]:
    found = rows_of(unusual_hours(with_silent_hours(frame), TODAY, 14))
    return sorted((row["anomaly"], row["hour"].hour) for row in found)


def test_ordinary_days_are_not_unusual(spark: SparkSession) -> None:
    assert unusual(hours(spark, 7, lambda ago, hour: {"attempts": 100 + (ago * 7 + hour * 13) % 17})) == []


def test_a_burst_a_failure_and_a_slow_hour_are_told_apart(spark: SparkSession) -> None:
    strange: dict[int, dict[str, Any]] = {3: {"attempts": 900}, 9: {"failed": 60}, 15: {"p95_ms": 2_000}}
    frame = hours(spark, 7, lambda ago, hour: strange.get(hour, {}) if ago == 0 else {})
    assert unusual(frame) == [("failures", 9), ("latency", 15), ("volume", 3)]
    (failed,) = [row for row in rows_of(unusual_hours(frame, TODAY, 14)) if row["anomaly"] == "failures"]
    assert failed["detail"] == "60 % of attempts failed, usually 0 % at this hour (7 days)"
    assert (failed["value"], failed["expected"]) == (0.6, 0.0)


def test_an_hour_of_silence_is_seen(spark: SparkSession) -> None:
    frame = hours(spark, 7, lambda ago, hour: None if (ago, hour) == (0, 10) else {})
    assert unusual(frame) == [("volume", 10)]


def test_the_same_hour_counts_not_the_one_before(spark: SparkSession) -> None:
    # Every night is quiet; so is this one
    assert unusual(hours(spark, 7, lambda ago, hour: {"attempts": 10 if hour < 6 else 500})) == []


def test_one_bad_day_before_does_not_hide_another(spark: SparkSession) -> None:
    frame = hours(spark, 7, lambda ago, hour: {"failed": 80} if hour == 9 and ago in (0, 4) else {})
    assert unusual(frame) == [("failures", 9)]


def test_too_little_data_is_not_judged(spark: SparkSession) -> None:
    # three days before are too few, and so are ten attempts
    assert unusual(hours(spark, 3, lambda ago, hour: {"failed": 90} if ago == 0 else {})) == []
    assert unusual(hours(spark, 7, lambda ago, hour: {"attempts": 10, "failed": 9 if ago == 0 else 0})) == []


def test_flapping(spark: SparkSession) -> None:
    flips = hours(spark, 0, lambda _, hour: {"failed": 90 if hour // 3 % 2 else 1})
    (row,) = rows_of(flapping(flips))
    assert row["detail"] == "changed 7 times between well and sick; sick in 12 of 24 hours"
    assert rows_of(flapping(hours(spark, 0, lambda _, hour: {"failed": 90 if hour > 12 else 0}))) == []


def test_a_lasting_shift_of_latency(spark: SparkSession) -> None:
    (row,) = rows_of(
        latency_shifts(hours(spark, 1, lambda ago, hour: {"p50_ms": 150 if (ago, hour) >= (0, 9) and ago == 0 else 50}))
    )
    assert (row["hour"].hour, row["expected"], row["value"]) == (9, 50.0, 150.0)
    # One slow hour is no shift, and neither is a small one
    assert (
        rows_of(latency_shifts(hours(spark, 1, lambda ago, hour: {"p50_ms": 900 if (ago, hour) == (0, 9) else 50})))
        == []
    )
    assert rows_of(latency_shifts(hours(spark, 1, lambda ago, _: {"p50_ms": 3 if ago else 9}))) == []
