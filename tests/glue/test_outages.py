"""When subscribers were down, and what was given up meanwhile, as a person would say it from the records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from typing import Any

import pytest
from glue_jobs.delivery_report.figures.outages import outage_days, outages
from tests.glue.frames import queried
from tests.glue.lives import DAY, HOUR, MINUTE, NOON, Lives

from pushhub.engine.model.backoff import FixedDelay

POLICY = FixedDelay(retries=2, delay_s=1200)
ANSWER = 100
"""Milliseconds that an answer takes."""
MIDNIGHT = NOON + 12 * HOUR
UNTIL = datetime(2026, 11, 20, 12, tzinfo=UTC)
"""A report of 1 to 20 November, made at noon."""


def delivered_to_the_end(lives: Lives, at: int, answers: Callable[[int], int], expires_in: int = 7 * DAY) -> None:
    """Post a message and try it until it arrives or is given up."""
    delivery = lives.post(at, expires_in=expires_in)[0]
    while delivery.settled_at is None:
        due = delivery.due_at or at
        delivery = lives.attempt(delivery, answers(due), at=due, policy=POLICY)


def each_ten_minutes(queue: str, *down: tuple[int, int], first: int = NOON, last: int = NOON + DAY) -> Lives:
    """A queue with a message each ten minutes, whose subscriber is down at times."""
    lives = Lives(queue=queue)
    for at in range(first, last, 10 * MINUTE):
        delivered_to_the_end(lives, at, lambda due: 503 if any(a <= due < b for a, b in down) else 200)
    return lives


def lived() -> Iterator[Lives]:
    """A queue for each thing that may happen."""
    yield each_ten_minutes("well")
    yield each_ten_minutes("twice", (NOON + HOUR, NOON + 4 * HOUR), (NOON + 8 * HOUR, NOON + 9 * HOUR))
    yield each_ten_minutes("over midnight", (MIDNIGHT - HOUR, MIDNIGHT + HOUR))
    yield each_ten_minutes("for two days", (NOON + HOUR, NOON + DAY + 22 * HOUR), last=NOON + DAY + 23 * HOUR)
    yield each_ten_minutes("down now", (NOON + DAY, NOON + 4 * DAY), last=NOON + 30 * HOUR)
    # One message that fails while others arrive, and one that fails alone.
    poisoned = each_ten_minutes("poison")
    delivered_to_the_end(poisoned, NOON + 1, lambda _: 500)
    yield poisoned
    alone = Lives(queue="alone")
    delivered_to_the_end(alone, NOON, lambda _: 500)
    yield alone
    # Both within the same minute.
    mixed = Lives(queue="mixed")
    for second in range(0, 50, 2):
        delivered_to_the_end(
            mixed, NOON + second * 1000, lambda due: 500 if due % 4000 and due < NOON + MINUTE else 200
        )
    yield mixed
    # Lives too short to be reached by any retries.
    short = Lives(queue="short lives")
    for minute in range(0, 60, 10):
        delivered_to_the_end(short, NOON + minute * MINUTE, lambda _: 503, expires_in=41 * MINUTE)
    delivered_to_the_end(short, NOON + 2 * HOUR, lambda _: 200)
    yield short
    # An answer ends what it says is not wanted; a person's try is no automatic one.
    asked = Lives(queue="by hand")
    for minute in (0, 1, 2):
        delivered_to_the_end(asked, NOON + minute * MINUTE, lambda _: 503)
    asked.resend(next(iter(asked.deliveries.values())), 503, at=NOON + 3 * HOUR)
    delivered_to_the_end(asked, NOON + 4 * HOUR, lambda _: 200)
    yield asked
    unicast = Lives(queue="unicast")
    for minute in (0, 1, 2):
        delivery = unicast.post(NOON + minute * MINUTE, ("s0", "s1"), unicast=True)[0]
        while delivery.settled_at is None:
            delivery = unicast.attempt(delivery, 503, policy=POLICY)
    yield unicast


@pytest.fixture(scope="module")
def told() -> dict[str, dict[str, Any]]:
    """The row of each queue's subscriber."""
    by_day = defaultdict(list)
    for each in (record for lives in lived() for record in lives.records):
        by_day[each.at[:10]].append(each)

    def of_all(*days: str) -> str:
        kept = " UNION ALL ".join(f"SELECT * FROM ({outage_days(each)})" for each in days)
        return outages(f"({kept})", date(2026, 11, 1), UNTIL)

    rows = queried(of_all, *by_day.values())
    return {row["queue"]: row for row in rows if row["subscriber_id"] == "s0"}


def test_a_person_can_check_the_sentence_by_hand(told: dict[str, dict[str, Any]]) -> None:
    # Given a message each ten minutes with retries after 20 and 40, and three hours and one hour without success
    # Then all given up had retries only in the first three hours but for those posted in the last 40 minutes; of the
    # other hour, two that were posted in its first 20 minutes
    row = told["twice"]
    assert row["sentence"] == (
        "Down 2 times in 20 days, longest 3 h; its retries last 40 min; 16 messages were given up meanwhile; "
        "retries of 3 h 1 min would have reached all of them."
    )
    # An outage ends with the answer of the first attempt that succeeds
    assert (row["times_down"], row["longest_ms"], row["down_ms"]) == (2, 3 * HOUR + ANSWER, 4 * HOUR + 2 * ANSWER)
    assert (row["given_up"], row["reachable"], row["needed_ms"]) == (16, 16, 3 * HOUR + ANSWER)


def test_who_was_never_down_and_who_fails_with_one_message_only(told: dict[str, dict[str, Any]]) -> None:
    assert told["well"]["sentence"] == "Not down in 20 days; nothing was given up."
    # A message that fails while others arrive is no outage, nor is one that fails alone
    assert told["poison"]["sentence"] == "Not down in 20 days; its retries last 40 min."
    assert told["alone"]["sentence"] == "Not down in 20 days; its retries last 40 min."
    assert told["mixed"]["times_down"] == 0


def test_an_outage_over_midnights_is_one(told: dict[str, dict[str, Any]]) -> None:
    assert (told["over midnight"]["times_down"], told["over midnight"]["longest_ms"]) == (1, 2 * HOUR + ANSWER)
    row = told["for two days"]
    assert (row["times_down"], row["longest_ms"], row["needed_ms"]) == (1, 45 * HOUR + ANSWER, 45 * HOUR + ANSWER)
    assert "Down once in 20 days, longest 1 d 21 h;" in row["sentence"]


def test_of_an_outage_under_way_nobody_knows_what_would_reach_its_messages(told: dict[str, dict[str, Any]]) -> None:
    row = told["down now"]
    assert row["sentence"] == (
        "Down once in 20 days, longest 1 d, and now since 19 Nov 12:00 UTC; its retries last 40 min; "
        "36 messages were given up meanwhile."
    )
    assert row["reachable"] == 0


def test_what_longer_retries_would_not_reach_is_not_promised(told: dict[str, dict[str, Any]]) -> None:
    # Messages that had expired when the subscriber was back
    assert (told["short lives"]["given_up"], told["short lives"]["reachable"]) == (6, 0)
    # A try that a person asked for gives nothing up
    assert (told["by hand"]["given_up"], told["by hand"]["reachable"]) == (3, 3)
    # A unicast message goes on to another subscriber
    assert told["unicast"]["given_up"] == 0
