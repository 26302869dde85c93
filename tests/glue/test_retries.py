"""From records to the basis of the advice on retries: tries, never polls, including deliveries that were given up."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from glue_jobs.delivery_report.deliveries import delivery_rows
from glue_jobs.delivery_report.retries import advised, by_attempt, failed_at_first, settings_seen, try_cells
from pyspark.sql import SparkSession
from tests.glue.frames import records_frame, rows_of
from tests.glue.lives import DAY, MINUTE, NOON, Lives

from pushhub.engine.model.record import RecordKind

SINCE = datetime(2026, 11, 18, tzinfo=UTC)


@pytest.fixture
def lives() -> Lives:
    """Forty delivered at once, thirty at the first retry, twenty given up after two, and one that is polled."""
    lives = Lives()
    for n in range(40):
        lives.attempt(lives.post(NOON + n)[0])
    for n in range(30):
        lives.attempt(lives.attempt(lives.post(NOON + n)[0], 503))
    for n in range(20):
        delivery = lives.post(NOON + n)[0]
        for _ in range(3):
            delivery = lives.attempt(delivery, 503)
    # An asynchronous answer and two polls: one try
    polled = lives.attempt(lives.post(NOON)[0], 202)
    held = lives.records[-1]
    lives.records[-1] = replace(held, verdict="poll", state="polling")
    for _ in range(2):
        polled = lives.attempt(polled, 202)
        lives.records[-1] = replace(lives.records[-1], kind=RecordKind.POLL, verdict="poll", state="polling")
    return lives


def test_deliveries_that_failed_at_first_are_counted_with_what_they_waited(spark: SparkSession, lives: Lives) -> None:
    # Given one of an earlier day besides, of which not all is known
    lives.attempt(lives.attempt(lives.post(NOON - DAY)[0], 503))
    cells = rows_of(failed_at_first(records_frame(spark, lives.records), SINCE))
    found = {(row["won"], row["waited_ms"]): (row["n"], row["given_up"]) for row in cells}
    # Then given-up deliveries are counted beside the successful ones, and no poll is counted
    assert found == {(True, MINUTE): (30, 0), (False, 2 * MINUTE): (20, 20)}


def test_the_setting_is_read_off_the_tries(spark: SparkSession, lives: Lives) -> None:
    (row,) = rows_of(settings_seen(records_frame(spark, lives.records)))
    assert (row["queue"], row["dialect"]) == ("orders", "raw")
    assert (row["tries_max"], row["wait_ms"], row["first_wait_ms"]) == (3, MINUTE, MINUTE)


def test_each_queue_has_its_own_advice(spark: SparkSession, lives: Lives) -> None:
    # Given another queue, whose failures all succeed at the first retry
    other = Lives(queue="invoices")
    for n in range(25):
        other.attempt(other.attempt(other.post(NOON + n)[0], 503))
    records = records_frame(spark, [*lives.records, *other.records])
    rows = {row["queue"]: row for row in rows_of(advised(failed_at_first(records, SINCE), records))}
    assert set(rows) == {"orders", "invoices"}
    # Then the advice saves the second retry of the first queue, which never succeeded, and leaves the other queue alone
    assert (rows["orders"]["retries_now"], rows["orders"]["retries_delay_now"]) == (2, 60)
    assert (rows["orders"]["retries"], rows["orders"]["retries_delay"]) == (1, 60)
    assert (rows["orders"]["tries_saved"], rows["orders"]["given_up"]) == (20, 20)
    assert rows["orders"]["usd_saved"] > 0
    assert not rows["invoices"]["change"]


def test_polls_are_no_tries(spark: SparkSession, lives: Lives) -> None:
    cells = try_cells(delivery_rows(records_frame(spark, lives.records)))
    found = {row["attempt"]: (row["tried"], row["won"]) for row in rows_of(by_attempt(cells))}
    assert found == {1: (91, 40), 2: (50, 30), 3: (20, 0)}


def test_nothing_failed_nothing_is_advised(spark: SparkSession) -> None:
    lives = Lives()
    lives.attempt(lives.post()[0])
    records = records_frame(spark, lives.records)
    assert rows_of(advised(failed_at_first(records, SINCE), records)) == []
