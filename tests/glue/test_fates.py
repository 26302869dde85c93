"""How deliveries ended, how long that took, and whether another try helped."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from glue_jobs.delivery_report.figures.balance import balance
from glue_jobs.delivery_report.figures.cells import IS_OWN, ROUTED_QUEUE, WHO, attempt_cells
from glue_jobs.delivery_report.figures.traffic import (
    by_attempt,
    counted_once,
    fate_cells,
    fates,
    try_cells,
)
from glue_jobs.delivery_report.proof.conservation import with_standing
from glue_jobs.delivery_report.proof.deliveries import delivery_rows
from pyspark.sql import DataFrame, SparkSession
from tests.glue.frames import Counted, queried, records_frame
from tests.glue.lives import HOUR, MINUTE, NOON, Lives

from pushhub.hub.model.internal_queues import INCOMING_QUEUE


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
    rows = {
        row["subscriber_id"]: row
        for row in queried(lambda cells: fates(cells, WHO), Counted(fate_cells, deliveries(spark, some_lives())))
    }
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
    (row,) = queried(lambda cells: fates(cells, ()), Counted(fate_cells, deliveries(spark, lives)))
    assert (row["messages"], row["open"], row["delivery_p50_ms"]) == (1, 1, None)


def test_success_by_attempt_number(spark: SparkSession) -> None:
    cells = Counted(try_cells, deliveries(spark, some_lives()))
    rows = sorted(queried(by_attempt, cells), key=lambda row: row["attempt"])
    assert [(row["attempt"], row["tried"], row["won"]) for row in rows] == [(1, 20, 15), (2, 5, 3), (3, 2, 1)]
    assert [round(row["share"], 3) for row in rows] == [0.75, 0.6, 0.5]
    assert [row["won_so_far"] for row in rows] == [0.75, 0.9, 0.95]


def test_a_hub_message_counts_once_as_posted_and_its_router_is_no_subscriber(spark: SparkSession) -> None:
    # Given hub messages of which one was copied for two services, one is wanted by none, and one is not routed yet
    assert ROUTED_QUEUE == INCOMING_QUEUE
    incoming, first, second = (Lives(queue=f"hub/{name}") for name in ("incoming", "s1", "s2"))
    for _ in range(2):
        incoming.attempt(incoming.post(NOON, ("router",))[0])
    incoming.post(NOON + 2 * HOUR - MINUTE, ("router",))
    first.posted, second.posted = 40, 50
    first.attempt(first.post(NOON + 1, ("s1",))[0])
    second.attempt(second.post(NOON + 1, ("s2",))[0], 503)
    records = [record for lives in (incoming, first, second) for record in lives.records]
    whole = Lives(records=records)
    # When all is counted, Then three were posted, and two deliveries are owed, of which one has arrived
    cells = Counted(fate_cells, deliveries(spark, whole))

    def counted(keys: tuple[str, ...]) -> list[dict[str, Any]]:
        return queried(lambda fates_: fates(f"({counted_once(fates_)})", keys), cells)

    for keys in ((), ("project",)):
        (row,) = counted(keys)
        assert (row["messages"], row["deliveries"], row["delivered"]) == (3, 2, 1)
    queues = {row["queue"]: row["messages"] for row in counted(("queue",))}
    assert queues == {"hub/incoming": 3, "hub/s1": 0, "hub/s2": 0}
    # And the balance owes what the copies are owed, and what has no copies yet
    hours = queried(balance, cells)
    sums = {name: sum(row[name] for row in hours) for name in ("messages", "owed", "delivered", "pending", "missing")}
    assert sums == {"messages": 3, "owed": 3, "delivered": 1, "pending": 1, "missing": 1}
    # And the router's attempts are nobody's
    attempts = Counted(attempt_cells, records)
    assert {row["subscriber_id"] for row in queried(lambda each: f"FROM {each} WHERE NOT {IS_OWN}", attempts)} == {
        "s1",
        "s2",
    }
