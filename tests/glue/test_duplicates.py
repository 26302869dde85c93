"""Records that are in two objects are found, listed with their objects, and counted once."""

from __future__ import annotations

from dataclasses import replace

from glue_jobs.delivery_report.proof.deliveries import delivery_rows, is_repeated
from glue_jobs.delivery_report.records.duplicates import counted_once, shared_records
from pyspark.sql import SparkSession
from tests.glue.frames import queried, records_frame, rows_of
from tests.glue.lives import NOON, Lives


def test_an_object_that_lies_there_twice(spark: SparkSession) -> None:
    # Given the records of two messages in one object, and those of one of them also in another
    lives, again = Lives(), Lives(queue="other")
    lives.attempt(lives.attempt(lives.post()[0], 503))
    again.attempt(again.post()[0])
    first = records_frame(spark, [*lives.records, *again.records], source="hour=12/a")
    frame = first.unionByName(records_frame(spark, again.records, source="hour=12/b"))
    # Then both objects are named with the number of records they share
    assert queried(shared_records, frame) == [{"sources": ["hour=12/a", "hour=12/b"], "records": 2}]
    # And each record remains once
    left = queried(counted_once, frame)
    assert sorted(row["record_id"] for row in left) == sorted(
        each.record_id for each in [*lives.records, *again.records]
    )
    assert {row["source"] for row in left} == {"hour=12/a"}


def test_contradictions_are_left_for_all_to_see() -> None:
    lives = Lives()
    (delivery,) = lives.post()
    lives.attempt(delivery, 503)
    lives.records.append(replace(lives.records[1], duration_ms=7))
    assert queried(shared_records, lives.records) == []
    assert len(queried(counted_once, lives.records)) == 3


def test_a_life_that_began_before_the_records_is_not_taken_for_a_repetition(spark: SparkSession) -> None:
    lives = Lives()
    (delivery,) = lives.post()
    lives.attempt(lives.attempt(lives.attempt(delivery, 503), 503), at=NOON + 200_000)
    frame = records_frame(spark, lives.records[2:])
    assert rows_of(delivery_rows(frame).where(is_repeated())) == []
