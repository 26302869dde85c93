"""How deliveries ended, how long that took, whether another try helped, how long they waited, and what it cost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from glue_jobs.delivery_report.cells import WHO, attempt_cells, summed
from glue_jobs.delivery_report.conservation import with_standing
from glue_jobs.delivery_report.cost import bill, used
from glue_jobs.delivery_report.deliveries import delivery_rows
from glue_jobs.delivery_report.retries import by_attempt, recovery_times, try_cells
from glue_jobs.delivery_report.traffic import acknowledgement_waits, fate_cells, fates, poll_waits
from glue_jobs.delivery_report.usage import USAGE
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.glue.frames import records_frame, rows_of
from tests.glue.lives import DAY, HOUR, MINUTE, NOON, Lives


def some_lives() -> Lives:
    """Ten deliveries to each of two subscribers: s0 accepts all at once; s1 accepts five at once, three at the second
    try, one at the third, one never.
    """
    lives = Lives()
    for n in range(10):
        healthy, flaky = lives.post(NOON + n * MINUTE, subscribers=("s0", "s1"), size=1000)
        lives.attempt(healthy, took=100 + n)
        failures = 0 if n < 5 else 1 if n < 8 else 2 if n < 9 else 3
        for _ in range(min(failures, 3)):
            flaky = lives.attempt(flaky, 503, took=200)
        if failures < 3:
            lives.attempt(flaky, took=200)
    return lives


def deliveries(spark: SparkSession, lives: Lives) -> DataFrame:
    judged = datetime.fromtimestamp(NOON / 1000 + 2 * HOUR / 1000, UTC)
    return with_standing(delivery_rows(records_frame(spark, lives.records)), judged, timedelta(hours=1))


def test_fates_by_subscriber(spark: SparkSession) -> None:
    rows = {row["subscriber_id"]: row for row in rows_of(fates(fate_cells(deliveries(spark, some_lives())), WHO))}
    flaky = rows["s1"]
    assert (flaky["deliveries"], flaky["delivered"], flaky["exhausted"], flaky["open"]) == (10, 9, 1, 0)
    assert (flaky["tried"], flaky["first_won"], flaky["attempts"], flaky["retries"]) == (10, 5, 5 + 6 + 3 + 3, 7)
    assert rows["s0"]["delivery_p50_ms"] == 104
    assert rows["s0"]["delivery_p99_ms"] == rows["s0"]["delivery_longest_ms"] == 109
    # the fifth and the eighth of nine, in order of time
    assert (flaky["delivery_p50_ms"], flaky["delivery_p95_ms"]) == (200, 2 * 60_000 + 600)
    assert sum(row["messages"] for row in rows.values()) == 10
    assert sum(row["body_bytes"] for row in rows.values()) == 10_000


def test_fates_of_nothing_delivered_have_no_times(spark: SparkSession) -> None:
    lives = Lives()
    lives.post()
    (row,) = rows_of(fates(fate_cells(deliveries(spark, lives)), ()))
    assert (row["messages"], row["open"], row["delivery_p50_ms"]) == (1, 1, None)


def test_success_by_attempt_number(spark: SparkSession) -> None:
    rows = sorted(rows_of(by_attempt(try_cells(deliveries(spark, some_lives())))), key=lambda row: row["attempt"])
    assert [(row["attempt"], row["tried"], row["won"]) for row in rows] == [(1, 20, 15), (2, 5, 3), (3, 2, 1)]
    assert [round(row["share"], 3) for row in rows] == [0.75, 0.6, 0.5]
    assert [row["won_so_far"] for row in rows] == [0.75, 0.9, 0.95]


def test_recovery_and_the_schedule_it_suggests(spark: SparkSession) -> None:
    rows = rows_of(recovery_times(try_cells(deliveries(spark, some_lives()))))
    # Three took 60.2 s from the first answer, one 120.4 s
    assert [(row["recovered"], row["p50_ms"], row["p99_ms"]) for row in rows] == [(4, 60_200, 120_400)]


def test_waits_for_acknowledgements(spark: SparkSession) -> None:
    lives = Lives()
    for seconds in (1, 2, 30):
        held = lives.attempt(lives.post()[0], 202, took=100)
        lives.acknowledge(held, NOON + 100 + seconds * 1000)
    (early,) = lives.post()
    lives.answer_late(lives.acknowledge(early, NOON + 10, 1), early, at=NOON + 90)
    (row,) = rows_of(acknowledgement_waits(deliveries(spark, lives), WHO))
    assert (row["waits"], row["p50_ms"], row["longest_ms"]) == (4, 1_000, 30_000)


def test_waits_before_polls(spark: SparkSession) -> None:
    lives = Lives()
    lives.attempt(lives.post()[0], took=100)
    frame = records_frame(spark, lives.records)
    assert rows_of(poll_waits(frame, WHO)) == []
    polls = frame.withColumn("kind", F.when(F.col("kind") == "attempt", "poll").otherwise(F.col("kind")))
    assert [row["waits"] for row in rows_of(poll_waits(polls, WHO))] == [1]


def test_the_bill_names_units_and_prices(spark: SparkSession) -> None:
    lives = some_lives()
    attempts = summed(attempt_cells(records_frame(spark, lives.records)), ("project",))
    became = fates(fate_cells(deliveries(spark, lives)), ("project",))
    rows = {row["item"]: row for row in rows_of(bill(used(attempts, became, attempts.where("false"))))}
    assert set(rows) == {each.item for each in USAGE}
    # Ten posts, their bodies within one unit of 512 KB; a write per message and KB of body, and one per attempt
    assert rows["HTTP API requests"]["units"] == 11
    assert rows["DynamoDB writes"]["units"] == pytest.approx(10 + 10_000 / 1024 + 27)
    assert rows["DynamoDB writes"]["usd"] == pytest.approx(rows["DynamoDB writes"]["units"] * 0.625e-6)
    assert all(row["usd"] >= 0 for row in rows.values())


def test_a_project_that_only_retries_old_messages_still_costs(spark: SparkSession) -> None:
    lives = Lives()
    (delivery,) = lives.post(NOON - DAY)
    lives.attempt(delivery, at=NOON)
    attempts = summed(attempt_cells(records_frame(spark, lives.records)), ("project",))
    nothing = fates(fate_cells(deliveries(spark, Lives(records=lives.records)).where("false")), ("project",))
    assert sum(row["usd"] for row in rows_of(bill(used(attempts, nothing, attempts.where("false"))))) > 0
