"""What each delivery record adds to the activity of its hour."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.samples import NOW, POLICY, first, message, tried

from pushhub.base.verdict import Verdict
from pushhub.engine.model.activity import (
    ATTEMPTS_A_WRITE,
    BOUNDS_MS,
    FREE_WRITES,
    HOUR_MS,
    Activity,
    SubscriberActivity,
    activity_of,
    busiest,
    hour_of,
    percentile_ms,
    subscriber_activity_of,
)
from pushhub.engine.model.delivery import Delivery, DeliveryState, acknowledge, close, opening
from pushhub.engine.model.record import DeliveryRecord
from pushhub.engine.model.records import record_of_acceptance, record_of_delivery


def the_record(before: Delivery | None, after: Delivery | None) -> DeliveryRecord:
    record = record_of_delivery(before, after, NOW)
    assert record is not None
    return record


def untimed(record: DeliveryRecord) -> Activity:
    return activity_of(replace(record, duration_ms=None))


def test_a_message_counts_when_it_is_accepted_and_not_when_it_is_owed_to_more() -> None:
    accepted = record_of_acceptance(message())
    assert activity_of(accepted) == Activity(accepted=1)
    assert activity_of(replace(accepted, manual=True)) == Activity()


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Verdict.DELIVERED, Activity(attempts=1, delivered=1)),
        (Verdict.FAILED, Activity(attempts=1, failed=1)),
        (Verdict.RESERVED, Activity(attempts=1)),
        (Verdict.POLL, Activity(attempts=1)),
    ],
)
def test_an_attempt_counts_by_what_came_of_it(verdict: Verdict, expected: Activity) -> None:
    assert untimed(the_record(None, first(message(), verdict))) == expected


def test_a_last_try_that_fails_counts_as_failed_and_given_up() -> None:
    last = first(message(), Verdict.FAILED, policy=replace(POLICY, retries=0))
    assert last.state is DeliveryState.EXHAUSTED
    assert untimed(the_record(None, last)) == Activity(attempts=1, failed=1, given_up=1)
    assert subscriber_activity_of(the_record(None, last)).given_up == 1


def test_what_is_acknowledged_counts_once_also_when_that_comes_before_the_answer() -> None:
    # Given a subscriber that acknowledged before its 202 was recorded
    reserved = first(message(), Verdict.RESERVED)
    acknowledged = acknowledge(reserved, reserved.subscriber_id, 1, NOW)
    # Then the acknowledgement counts, and the attempt that follows it does not
    assert activity_of(the_record(reserved, acknowledged)) == Activity(delivered=1)
    assert untimed(the_record(None, reserved)) == Activity(attempts=1)


def test_what_expires_is_given_up_and_what_is_cancelled_is_not() -> None:
    waiting = first(message(), Verdict.FAILED)
    assert activity_of(the_record(waiting, close(waiting, DeliveryState.EXPIRED, NOW))) == Activity(given_up=1)
    assert activity_of(the_record(waiting, close(waiting, DeliveryState.CANCELLED, NOW))) == Activity()


def test_a_record_belongs_to_the_hour_of_its_event() -> None:
    at = NOW - NOW % HOUR_MS + 5
    delivery = tried(opening(message(), "a1a2a3a4a5a6"), Verdict.DELIVERED, at=at)
    assert hour_of(the_record(None, delivery)) == at - 5


def test_what_happened_in_two_times_adds_up_figure_by_figure() -> None:
    one = Activity(attempts=9, accepted=1, delivered=2, failed=3, given_up=4, unattributed=5, took={0: 1, 4: 2})
    other = Activity(attempts=90, accepted=10, delivered=20, failed=30, given_up=40, unattributed=50, took={4: 1, 7: 1})
    assert one + other == Activity(
        attempts=99, accepted=11, delivered=22, failed=33, given_up=44, unattributed=55, took={0: 1, 4: 3, 7: 1}
    )
    at_one = SubscriberActivity(attempts=1, delivered=2, failed=3, given_up=5, took_ms=4, took={2: 1})
    at_other = SubscriberActivity(attempts=10, delivered=20, failed=30, given_up=50, took_ms=40, took={2: 10})
    assert at_one + at_other == SubscriberActivity(
        attempts=11, delivered=22, failed=33, given_up=55, took_ms=44, took={2: 11}
    )


@pytest.mark.parametrize("scale", [1, 30, 1000])
def test_a_percentile_is_exact_to_a_fifth_and_needs_attempts(scale: int) -> None:
    # Given durations of 10 to 1,000 (by the scale) milliseconds, evenly spread
    attempt = the_record(None, first(message(), Verdict.DELIVERED))
    durations = [10 * scale * number // 30 + 8 for number in range(1, 1001)]
    counted = sum((activity_of(replace(attempt, duration_ms=each)) for each in durations), Activity())
    assert sum(counted.took.values()) == counted.attempts == 1000
    # Then what is told of them is near the truth
    for percent in (1, 50, 95, 99):
        truth = durations[percent * 10 - 1]
        reported = percentile_ms(counted.took, percent)
        assert reported is not None
        assert abs(reported - truth) <= max(truth / 5, 4), percent
    assert percentile_ms({}, 50) is None


def test_an_attempt_that_took_longer_than_any_may_is_counted_in_the_last_class() -> None:
    attempt = replace(the_record(None, first(message(), Verdict.FAILED)), duration_ms=10_000_000)
    assert activity_of(attempt).took == {len(BOUNDS_MS) - 1: 1}


@pytest.mark.parametrize(
    ("verdict", "delivered", "failed"),
    [(Verdict.DELIVERED, 1, 0), (Verdict.FAILED, 0, 1), (Verdict.RESERVED, 0, 0), (Verdict.POLL, 0, 0)],
)
def test_an_attempt_counts_for_its_subscriber_with_its_time(verdict: Verdict, delivered: int, failed: int) -> None:
    attempt = replace(the_record(None, first(message(), verdict)), duration_ms=70)
    assert subscriber_activity_of(attempt) == SubscriberActivity(
        attempts=1, delivered=delivered, failed=failed, took_ms=70, took={16: 1}
    )
    assert subscriber_activity_of(replace(attempt, duration_ms=None)).took_ms == 0
    # And other records count no attempt
    assert subscriber_activity_of(record_of_acceptance(message())) == SubscriberActivity()


def test_the_busiest_are_counted_and_of_the_others_how_many_attempts_they_had() -> None:
    # Given fewer subscribers than are counted in any case, and one more than those
    few = {str(number): SubscriberActivity(attempts=1) for number in range(FREE_WRITES)}
    assert busiest(few) == (few, 0)
    more = {**few, "a": SubscriberActivity(attempts=3), "b": SubscriberActivity(attempts=2)}
    counted, left_out = busiest(more)
    assert [*counted] == ["a", "b", *[str(number) for number in range(FREE_WRITES - 2)]]
    assert (counted["a"], left_out) == (SubscriberActivity(attempts=3), 2)
    # And as many more as their attempts justify
    many = {
        f"{number:02d}": SubscriberActivity(attempts=ATTEMPTS_A_WRITE // 2, took_ms=-number) for number in range(30)
    }
    counted, left_out = busiest(many)
    assert ([*counted], left_out) == ([f"{number:02d}" for number in range(15)], 15 * ATTEMPTS_A_WRITE // 2)
