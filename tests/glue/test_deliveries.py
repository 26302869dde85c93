"""One row per delivery describes its life, whatever order and mix of records it is rebuilt from."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from glue_jobs.delivery_report.proof.deliveries import delivery_rows, is_repeated, suspicious
from pyspark.sql import SparkSession
from tests.glue.frames import records_frame, rows_of
from tests.glue.lives import DAY, HOUR, MINUTE, NOON, Lives


def the_rows(spark: SparkSession, lives: Lives) -> dict[str, dict[str, object]]:
    shuffled = random.Random(7).sample(lives.records, len(lives.records))
    return {row["delivery_id"]: row for row in rows_of(delivery_rows(records_frame(spark, shuffled)))}


def test_every_kind_of_life(spark: SparkSession) -> None:
    # Given one life of each kind
    lives = Lives()
    (at_once,) = lives.post()
    lives.attempt(at_once)
    (second,) = lives.post()
    lives.attempt(lives.attempt(second, 503))
    (lost,) = lives.post()
    lives.attempt(lives.attempt(lives.attempt(lost, 500), 0, error="timeout"), 404)
    (acked,) = lives.post()
    lives.acknowledge(lives.attempt(acked, 202), NOON + 20_000)
    (early,) = lives.post()
    lives.answer_late(lives.acknowledge(early, NOON + 10, 1), early, at=NOON + 90)
    (cancelled,) = lives.post()
    lives.answer_late(lives.close(cancelled, "cancelled", NOON + 10), cancelled, at=NOON + 90, status=503)
    (waiting,) = lives.post()
    lives.attempt(waiting, 503, schedule=True)
    (held,) = lives.post()
    lives.attempt(held, 202)
    (old,) = lives.post(expires_in=HOUR)
    lives.close(lives.attempt(old, 503), "expired", NOON + HOUR)
    (delayed,) = lives.post(delay=2 * HOUR)
    lives.schedule(delayed, NOON + 5)
    (untried,) = lives.post()
    nobody = lives.posted + 1
    lives.post(subscribers=())
    # When rows are made from their records in any order
    rows = the_rows(spark, lives)

    # Then each describes its life
    def told(delivery_id: str, *names: str) -> tuple[object, ...]:
        return tuple(rows[delivery_id][name] for name in names)

    fate = ("state", "attempts", "won_attempt", "first_won")
    assert told(at_once.delivery_id, *fate) == ("delivered", 1, 1, True)
    assert told(second.delivery_id, *fate) == ("delivered", 2, 2, False)
    assert told(lost.delivery_id, *fate) == ("exhausted", 3, None, False)
    assert told(acked.delivery_id, *fate) == ("acknowledged", 1, 1, True)
    assert told(early.delivery_id, *fate) == ("acknowledged", 1, 1, True)
    assert told(cancelled.delivery_id, *fate, "settlements") == ("cancelled", 1, None, False, 1)
    assert told(waiting.delivery_id, "state", "scheduled", "settled_at") == ("retrying", True, None)
    assert told(held.delivery_id, "state", "scheduled") == ("reserved", False)
    assert told(old.delivery_id, "state", "due_at") == ("expired", None)
    assert told(delayed.delivery_id, "state", "scheduled", "attempts") == ("pending", True, 0)
    assert told(untried.delivery_id, "state", "scheduled", "attempts") == ("pending", False, 0)
    # And a message owed to nobody is still a message
    assert told(f"{10**18 + nobody}.-", "owed", "leads_message") == (0, 1)
    # And nothing is suspicious
    frame = delivery_rows(records_frame(spark, lives.records))
    assert rows_of(suspicious(frame)) == []
    assert rows_of(frame.where(is_repeated())) == []


def test_times_are_kept(spark: SparkSession) -> None:
    lives = Lives()
    (delivery,) = lives.post()
    lives.acknowledge(lives.attempt(lives.attempt(delivery, 503, took=250), 202, took=300), NOON + 2 * MINUTE)
    (row,) = the_rows(spark, lives).values()
    assert str(row["first_answer_at"]) == "2026-11-18 12:00:00.250000"
    assert str(row["held_at"]) == "2026-11-18 12:01:00.550000"
    assert str(row["acknowledged_at"]) == str(row["settled_at"]) == "2026-11-18 12:02:00"


def test_unicast_is_one_delivery_whoever_took_it(spark: SparkSession) -> None:
    lives = Lives()
    (delivery,) = lives.post(subscribers=("s0", "s1", "s2"), unicast=True)
    lives.attempt(lives.attempt(delivery, 503), 200)
    (row,) = the_rows(spark, lives).values()
    assert (row["subscriber_id"], row["state"], row["attempts"], row["owed"]) == ("*", "delivered", 2, 1)


def test_multicast_counts_its_message_once(spark: SparkSession) -> None:
    lives = Lives()
    lives.post(subscribers=("s0", "s1", "s2"))
    rows = the_rows(spark, lives).values()
    assert sorted((row["subscriber_id"], row["leads_message"], row["owed"]) for row in rows) == [
        ("s0", 1, 1),
        ("s1", 0, 1),
        ("s2", 0, 1),
    ]


def test_pull_queues(spark: SparkSession) -> None:
    # Given messages consumed, given back, timed out and touched, and a dead letter that was reserved before
    lives = Lives()
    consumed, released = lives.put(), lives.put()
    lives.remove(lives.reserve(lives.reserve(consumed, NOON + 5), NOON + 2 * MINUTE), NOON + 2 * MINUTE + 9)
    lives.release(lives.reserve(released, NOON + 5), NOON + 9)
    dead = lives.reserve(lives.put(reserved=4), NOON + 7)
    # When
    frame = delivery_rows(records_frame(spark, lives.records))
    rows = {row["message_id"]: row for row in rows_of(frame)}
    # Then
    assert rows[consumed.message.message_id]["state"] == "delivered"
    assert rows[released.message.message_id]["state"] == "pending"
    assert rows[dead.message.message_id]["state"] == "reserved"
    assert all(row["pull"] for row in rows.values())
    assert rows_of(suspicious(frame)) == []


@pytest.mark.parametrize("seed", [1, 2])
def test_random_lives_end_as_the_hub_says(spark: SparkSession, seed: int) -> None:
    # Given three hundred random lives that follow the hub's rules
    chance = random.Random(seed)
    lives = Lives()
    for _ in range(300):
        for opened in lives.post(subscribers=("s0", "s1")[: chance.randint(1, 2)], unicast=chance.random() < 0.3):
            delivery = opened
            while not delivery.settled and chance.random() < 0.85:
                way = chance.random()
                if way < 0.1:
                    delivery = lives.close(
                        delivery, chance.choice(("expired", "cancelled")), (delivery.due_at or 0) + 1
                    )
                elif way < 0.2 and delivery.attempts and delivery.due_at:
                    delivery = lives.acknowledge(delivery, delivery.due_at - 1)
                else:
                    delivery = lives.attempt(
                        delivery, chance.choice((200, 202, 500, 503)), schedule=chance.random() < 0.3
                    )
    # When
    frame = delivery_rows(records_frame(spark, lives.records))
    rows = {row["delivery_id"]: row for row in rows_of(frame)}
    # Then every delivery has the state that the hub has, and none is suspicious
    assert {key: row["state"] for key, row in rows.items()} == {
        key: each.state.value for key, each in lives.deliveries.items()
    }
    assert {key: row["scheduled"] for key, row in rows.items()} == {
        key: each.scheduled for key, each in lives.deliveries.items()
    }
    assert {key: row["attempts"] for key, row in rows.items()} == {
        key: each.attempts for key, each in lives.deliveries.items()
    }
    assert rows_of(suspicious(frame)) == []


@pytest.mark.parametrize("lost", range(4))
def test_any_record_but_the_last_that_is_lost_makes_its_delivery_suspicious(spark: SparkSession, lost: int) -> None:
    lives = Lives()
    (delivery,) = lives.post()
    delivery = lives.attempt(lives.attempt(lives.attempt(delivery, 503), 503), 202)
    lives.acknowledge(delivery, (delivery.due_at or 0) - 1)
    kept = [each for n, each in enumerate(lives.records) if n != lost]
    (row,) = rows_of(suspicious(delivery_rows(records_frame(spark, kept))))
    assert row["delivery_id"] == delivery.delivery_id


@pytest.mark.parametrize("again", range(5))
def test_any_record_that_is_there_twice_is_seen(spark: SparkSession, again: int) -> None:
    lives = Lives()
    (delivery,) = lives.post()
    lives.attempt(lives.attempt(lives.attempt(delivery, 503), 503), 200)
    line = lives.put()
    lives.release(lives.reserve(line, NOON + 5), NOON + 9)
    twice = [*lives.records, lives.records[again]]
    assert len(rows_of(delivery_rows(records_frame(spark, twice)).where(is_repeated()))) == 1


def test_a_life_too_long_for_bits_is_examined_one_by_one(spark: SparkSession) -> None:
    lives = Lives()
    (delivery,) = lives.post(expires_in=90 * DAY)
    for _ in range(70):
        delivery = replace(lives.attempt(delivery, 503), tries=0)
    (row,) = rows_of(suspicious(delivery_rows(records_frame(spark, lives.records))))
    assert row["attempts"] == 70
