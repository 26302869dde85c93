"""Sums and percentiles of attempts, calculated from cells, equal those counted one by one."""

from __future__ import annotations

import itertools
import math
import os
import random
import subprocess
import sys
from datetime import date, datetime
from pathlib import Path

import pytest
from glue_jobs.delivery_report.figures.cells import WHO, attempt_cells, hourly, summed
from glue_jobs.delivery_report.figures.percentiles import bucket_of
from glue_jobs.delivery_report.storage.driver import Driver
from tests.glue.frames import Counted, queried
from tests.glue.lives import HOUR, NOON, Lives


@pytest.fixture(scope="module")
def lives() -> Lives:
    chance = random.Random(11)
    lives = Lives()
    for n in range(400):
        for delivery in lives.post(NOON + n * 20_000, subscribers=("s0", "s1")):
            took = max(1, int(chance.lognormvariate(4, 1)))
            status = chance.choice((200, 200, 200, 202, 503))
            after = lives.attempt(delivery, status, took=took, name=delivery.subscriber_id.upper())
            if status == 503:
                lives.attempt(
                    after,
                    error=chance.choice(("", "timeout")),
                    took=took * 2,
                    schedule=True,
                    name=delivery.subscriber_id.upper(),
                )
    return lives


@pytest.fixture(scope="module")
def cells(lives: Lives) -> Counted:
    return Counted(attempt_cells, lives.records)


def nearest_rank(values: list[int], share: float) -> int:
    return sorted(values)[math.ceil(len(values) * share) - 1]


@pytest.mark.parametrize("hour", [None, "2026-11-18 13:00:00"])
def test_sums_and_percentiles_of_a_subscriber(cells: Counted, lives: Lives, hour: str | None) -> None:
    # Given the attempts of one subscriber, in all or in one hour, counted one by one
    made = [
        each
        for each in lives.records
        if each.kind == "attempt" and each.subscriber_id == "s1" and (hour is None or each.at[11:13] == hour[11:13])
    ]
    durations = [each.duration_ms or 0 for each in made]
    # When counted from cells
    rows = queried((lambda cells: summed(cells, WHO)) if hour is None else hourly, cells)
    (row,) = [row for row in rows if row["subscriber_id"] == "s1" and (hour is None or str(row["hour"]) == hour)]
    # Then the sums are the same
    assert row["subscriber"] == "S1"
    assert row["attempts"] == len(made)
    assert row["delivered"] == sum(each.verdict == "delivered" for each in made)
    assert row["reserved"] == sum(each.verdict == "reserved" for each in made)
    assert row["failed"] == sum(each.verdict == "failed" for each in made)
    assert row["first_attempts"] == sum(each.attempt == 1 for each in made)
    assert row["first_won"] == sum(each.attempt == 1 and each.verdict != "failed" for each in made)
    assert row["parks"] == sum(each.scheduled is True for each in made)
    assert row["bytes_out"] == 100 * len(made)
    assert row["busy_ms"] == sum(durations)
    assert row["longest_ms"] == max(durations)
    # And percentiles are values that were seen, at most 2 % above the exact ones
    for name, share in (("p50_ms", 0.5), ("p95_ms", 0.95), ("p99_ms", 0.99)):
        exact = nearest_rank(durations, share)
        assert row[name] in durations
        assert exact <= row[name] <= exact * 1.02 + 1


def test_one_row_over_everything(cells: Counted, lives: Lives) -> None:
    (row,) = queried(lambda cells: summed(cells, ()), cells)
    assert row["attempts"] == sum(each.kind == "attempt" for each in lives.records)


def test_buckets_rise_and_are_two_percent_wide() -> None:
    by_bucket = f"SELECT {bucket_of('id')} AS bucket, min(id) AS least, max(id) AS most FROM range(5000) AS _(id)"
    with Driver() as driver:
        ordered = driver.rows(f"{by_bucket} GROUP BY ALL ORDER BY bucket")
    assert ordered[0] == {"bucket": -1, "least": 0, "most": 0}
    assert all(row["most"] <= row["least"] * 1.02 for row in ordered[1:])
    assert all(one["most"] < two["least"] for one, two in itertools.pairwise(ordered))


ELSEWHERE = """
import sys
from glue_jobs.delivery_report.storage.driver import Driver
from glue_jobs.delivery_report.storage.schema import struct

with Driver() as driver:
    driver.read("kept", struct("timestamp moment"), [sys.argv[1]])
    print(driver.rows("SELECT date_trunc('hour', moment) AS hour, moment::DATE AS day FROM kept"))
"""


def test_hours_are_those_of_utc_wherever_the_machine_is(tmp_path: Path) -> None:
    # Given a moment that is on another day, and in another half of the hour, in India
    file = f"file://{tmp_path}/moment.parquet"
    with Driver() as driver:
        driver.put("SELECT TIMESTAMP '2026-11-18 23:15:00' AS moment", file)
    # When it is read there
    command = [sys.executable, "-c", ELSEWHERE, file]
    read = subprocess.run(command, env={**os.environ, "TZ": "Asia/Kolkata"}, check=True, capture_output=True, text=True)
    # Then it is of the hour and the day that it has here
    moment = {"hour": datetime(2026, 11, 18, 23), "day": date(2026, 11, 18)}  # noqa: DTZ001 (as the driver returns it)
    assert read.stdout.strip() == f"{[moment]}"


def test_hours_are_those_of_the_end_of_the_attempt() -> None:
    lives = Lives()
    lives.attempt(lives.post(NOON - 1)[0], took=50)
    lives.attempt(lives.post(NOON + HOUR)[0], took=50)
    rows = queried(hourly, Counted(attempt_cells, lives.records))
    assert sorted(str(row["hour"])[11:13] for row in rows) == ["12", "13"]
