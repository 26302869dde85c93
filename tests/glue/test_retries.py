"""From records to the basis of the advice on retries: tries, never polls, including deliveries that were given up."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from glue_jobs.delivery_report.deliveries import delivery_rows
from glue_jobs.delivery_report.retries import advised, by_attempt, failed_at_first, settings_seen, try_cells
from pyspark.sql import SparkSession
from tests.glue.frames import records_frame, rows_of
from tests.glue.lives import DAY, HOUR, MINUTE, NOON, Lives

from pushhub.engine.model.record import RecordKind

SINCE = datetime(2026, 11, 18, tzinfo=UTC)
SINCE_MS = NOON - 12 * HOUR
UNTIL = datetime(2026, 11, 19, tzinfo=UTC)


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
    # And one that a person has tried again
    lives.resend(lives.attempt(lives.post(NOON)[0], 503), 200, at=NOON + 9_000)
    rows = rows_of(failed_at_first(records_frame(spark, lives.records), SINCE, UNTIL))
    found = Counter((row["won"], len(row["started"]), row["given_up"], row["odd"]) for row in rows)
    # Then given-up deliveries are there beside the successful ones, and no poll is
    assert found.pop((True, 2, 0, False)) == 30
    assert found.pop((False, 3, 1, False)) == 20
    assert [odd for _, _, _, odd in found] == [True]
    (first, *_) = (row for row in rows if row["won"] and not row["odd"])
    assert first["started"][1] - first["finished"][0] == MINUTE == first["wait"][0]
    assert first["expires"] == UNTIL.timestamp() * 1000


def test_the_setting_is_read_off_the_tries(spark: SparkSession, lives: Lives) -> None:
    (row,) = rows_of(settings_seen(records_frame(spark, lives.records)))
    assert (row["queue"], row["dialect"]) == ("orders", "raw")
    assert (row["tries_max"], row["wait_ms"], row["first_wait_ms"]) == (3, MINUTE, MINUTE)


def test_each_queue_has_its_own_advice(spark: SparkSession) -> None:
    # Given a queue with a message a minute, each 20th of them poison, and one that is down for half an hour
    poisoned, down = Lives(), Lives(queue="invoices")
    for n in range(600):
        at = SINCE_MS + n * MINUTE
        bad = poisoned.post(at)[0]
        while bad.settled_at is None:
            bad = poisoned.attempt(bad, 200 if n % 20 else 503)
        late = down.post(at)[0]
        while late.settled_at is None:
            late = down.attempt(late, 503 if 180 <= ((late.due_at or at) - SINCE_MS) / MINUTE < 210 else 200)
    records = records_frame(spark, [*poisoned.records, *down.records])
    rows = {row["queue"]: row for row in rows_of(advised(failed_at_first(records, SINCE, UNTIL), records))}
    assert set(rows) == {"orders", "invoices"}
    # Then the advice saves the retries of the first queue, which never succeeded
    assert (rows["orders"]["retries_now"], rows["orders"]["retries_delay_now"]) == (2, 60)
    assert (rows["orders"]["retries"], rows["orders"]["tries_saved"], rows["orders"]["given_up"]) == (0, 60, 30)
    assert rows["orders"]["usd_saved"] > 0
    # And all that the second one lost would be delivered by tries that last longer
    assert rows["invoices"]["given_up"] == 28
    assert rows["invoices"]["deliveries_saved"] == pytest.approx(28, abs=2)
    assert rows["invoices"]["tries_saved"] < 0


def test_polls_are_no_tries(spark: SparkSession, lives: Lives) -> None:
    cells = try_cells(delivery_rows(records_frame(spark, lives.records)))
    found = {row["attempt"]: (row["tried"], row["won"]) for row in rows_of(by_attempt(cells))}
    assert found == {1: (91, 40), 2: (50, 30), 3: (20, 0)}


def test_nothing_failed_nothing_is_advised(spark: SparkSession) -> None:
    lives = Lives()
    lives.attempt(lives.post()[0])
    records = records_frame(spark, lives.records)
    assert rows_of(advised(failed_at_first(records, SINCE, UNTIL), records)) == []
