"""Notifications in the report: what topics owe their subscribers, in what order it was sent, and what it cost."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from glue_jobs.delivery_report.figures.balance import balance
from glue_jobs.delivery_report.figures.cells import WHO, attempt_cells, summed
from glue_jobs.delivery_report.figures.traffic import fate_cells, fates
from glue_jobs.delivery_report.proof.conservation import delivery_findings, order_findings, with_standing
from glue_jobs.delivery_report.proof.deliveries import delivery_rows, is_repeated, suspicious
from glue_jobs.delivery_report.records.duplicates import shared_records
from pyspark.sql import DataFrame, SparkSession
from tests.glue.frames import Counted, queried, records_frame, rows_of
from tests.notifications.world import PROJECT, NotificationWorld, recorded

from pushhub.notifications.model.topic import Topic

GRACE = timedelta(hours=1)
TOPIC = Topic(project=PROJECT, name="orders")


@pytest.fixture
def world() -> NotificationWorld:
    world = NotificationWorld()
    world.rule()
    return world


def judged(world: NotificationWorld, records: DataFrame, hours: int = 0) -> DataFrame:
    now = datetime.fromtimestamp(world.clock.now() / 1000, UTC) + timedelta(hours=hours)
    return with_standing(delivery_rows(records), now, GRACE)


def live(world: NotificationWorld) -> None:
    """Two subscribers: one acknowledges two of five and loses its connection, one that is removed had three.

    Then two more come.
    """
    world.connect("a", world.token("one"))
    world.connect("b", world.token("two"))
    world.publish(1, 2, 3)
    world.send_all()
    world.consumers.remove(TOPIC, "two")
    world.publish(4, 5)
    world.send_all()
    world.acknowledge("a", 1, 4)
    world.disconnect("a")
    world.publish(6)


def test_what_is_owed_stands_as_it_does_in_the_hub(spark: SparkSession, world: NotificationWorld) -> None:
    # Given
    live(world)
    records = records_frame(spark, recorded(world))
    # When
    (row,) = queried(balance, Counted(fate_cells, judged(world, records)))
    # Then: three for each of two, two and one more for the one that stays
    assert (row["messages"], row["owed"]) == (6, 9)
    counted = {name: row[name] for name in ("acknowledged", "cancelled", "reserved", "pending", "expired", "missing")}
    assert counted == {"acknowledged": 2, "cancelled": 3, "reserved": 3, "pending": 1, "expired": 0, "missing": 0}
    assert row["balanced"]
    assert rows_of(suspicious(delivery_rows(records))) == []


def test_what_waits_for_its_consumer_is_not_overdue_until_long_after_its_time(
    spark: SparkSession, world: NotificationWorld
) -> None:
    live(world)
    records = records_frame(spark, recorded(world))

    def standings(hours: int) -> dict[str, int]:
        rows = rows_of(judged(world, records, hours).groupBy("standing").count())
        return {row["standing"]: row["count"] for row in rows if row["standing"] not in ("acknowledged", "cancelled")}

    assert standings(35) == {"reserved": 3, "pending": 1}
    # Expired, though nobody has passed it and the table has not removed it yet
    assert standings(40) == {"expired": 4}
    # Removed long ago, without a record
    assert standings(36 + 4 * 24 + 2) == {"missing": 4}


def test_a_lost_acceptance_and_an_end_that_nobody_owed_are_named(spark: SparkSession, world: NotificationWorld) -> None:
    live(world)
    records = recorded(world)
    first = next(each for each in records if each.kind == "accepted")
    end = next(each for each in records if each.kind == "acknowledged" and each.message_id != first.message_id)
    stranger = replace(end, record_id="odd", delivery_id=f"{end.message_id}.stranger", subscriber_id="stranger")
    frame = records_frame(spark, [*(each for each in records if each is not first), stranger])
    found = {
        (row["finding"], row["message_id"])
        for row in rows_of(delivery_findings(frame, suspicious(delivery_rows(frame))))
    }
    assert found == {("never_accepted", first.message_id), ("not_owed", end.message_id)}


def test_the_order_on_each_connection_is_proved_and_what_breaks_it_is_named(
    spark: SparkSession, world: NotificationWorld
) -> None:
    # Given a consumer that got its rest again on its second connection
    live(world)
    world.clock.advance(seconds=1)
    world.connect("c", world.token("one"))
    world.send_all()
    world.clock.advance(seconds=1)
    world.publish(7)
    world.send_all()
    records = recorded(world)
    # Then resending an earlier one is in order
    assert rows_of(order_findings(records_frame(spark, records))) == []
    # And one that came on the same connection after a later one is not
    late = next(each for each in records if each.order_key == "c" and each.attempt is None)
    wrong = [replace(each, finished_at="2026-11-18T23:00:00.000Z") if each is late else each for each in records]
    (row,) = rows_of(order_findings(records_frame(spark, wrong)))
    assert (row["finding"], row["message_id"]) == ("out_of_order", late.message_id)


def test_a_sending_whose_record_lies_in_two_objects_is_found(spark: SparkSession, world: NotificationWorld) -> None:
    live(world)
    records = recorded(world)
    once = records_frame(spark, records)
    assert rows_of(delivery_rows(once).where(is_repeated())) == []
    attempt = next(each for each in records if each.kind == "attempt")
    twice = once.unionByName(records_frame(spark, [attempt], source="b"))
    assert [row["message_id"] for row in rows_of(delivery_rows(twice).where(is_repeated()))] == [attempt.message_id]
    assert queried(shared_records, twice) == [{"sources": ["a", "b"], "records": 1}]


def test_a_notification_acknowledged_after_one_sending_was_taken_at_the_first_try(
    spark: SparkSession, world: NotificationWorld
) -> None:
    # Given two that are acknowledged at once, and one that needed a second connection
    world.connect("a", world.token("one"))
    world.publish(1, 2, 3)
    world.send_all()
    world.acknowledge("a", 1, 2)
    world.disconnect("a")
    world.clock.advance(seconds=1)
    world.connect("c", world.token("one"))
    world.send_all()
    world.acknowledge("c", 3)
    world.disconnect("c")
    # Then two of the three that were sent were acknowledged at the first try
    cells = Counted(fate_cells, judged(world, records_frame(spark, recorded(world))))
    (row,) = queried(lambda cells: fates(cells, ()), cells)
    assert {name: row[name] for name in ("acknowledged", "first_won", "tried", "retries")} == {
        "acknowledged": 3,
        "first_won": 2,
        "tried": 3,
        "retries": 1,
    }


def test_sendings_are_attempts(spark: SparkSession, world: NotificationWorld) -> None:
    live(world)
    records = records_frame(spark, recorded(world))
    cells = Counted(attempt_cells, records)
    rows = {row["subscriber"]: row for row in queried(lambda cells: summed(cells, WHO), cells)}
    assert {name: (row["attempts"], row["reserved"], row["first_won"]) for name, row in rows.items()} == {
        "one": (5, 5, 5),
        "two": (3, 3, 3),
    }
    became = Counted(fate_cells, judged(world, records))
    (row,) = queried(lambda cells: fates(cells, ("project",)), became)
    assert (row["acknowledged"], row["open"]) == (2, 4)
