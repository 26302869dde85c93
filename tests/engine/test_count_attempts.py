"""Attempts at failing subscribers are counted from their first failure on; a healthy one costs nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT, SUBSCRIBER, first, message, tried
from tests.fakes.activity import FakeAttemptCounts
from tests.fakes.telemetry import FakeTelemetry

from pushhub.base.errors import Unavailable
from pushhub.base.times import iso_time
from pushhub.base.verdict import Verdict
from pushhub.engine.count_attempts import MOST_AT_ONCE, CountAttempts
from pushhub.engine.model.activity import HOUR_MS
from pushhub.engine.model.attempt_counts import (
    FIRST,
    GOOD,
    REFUSED,
    TIMEOUT,
    AttemptCounts,
    CountedSubscriber,
    counts_of,
)
from pushhub.engine.model.record import DeliveryRecord
from pushhub.engine.model.records import record_of_acceptance, record_of_delivery

HOUR = NOW - NOW % HOUR_MS
MINUTE_MS = 60_000
SHOP = CountedSubscriber(PROJECT, "orders", SUBSCRIBER)


def attempt(minute: int = 0, *, failed: bool = True, **changes: object) -> DeliveryRecord:
    """The record of a first attempt in a minute of the hour."""
    verdict = Verdict.FAILED if failed else Verdict.DELIVERED
    made = record_of_delivery(None, first(message(), verdict), NOW)
    assert made is not None
    fields: dict[str, object] = {"started_at": iso_time(HOUR + minute * MINUTE_MS), "duration_ms": 100}
    return replace(made, **(fields | changes))  # type: ignore[arg-type]


def counting(store: FakeAttemptCounts | None = None) -> tuple[CountAttempts, FakeAttemptCounts, FakeTelemetry]:
    store, telemetry = store or FakeAttemptCounts(), FakeTelemetry()
    return CountAttempts(store=store, telemetry=telemetry), store, telemetry


@pytest.mark.parametrize(
    ("status", "error_class", "outcome"),
    [
        (503, "", "503"),
        (599, "", "500"),
        (418, "", "400"),
        (302, "", "300"),
        (0, "timeout", TIMEOUT),
        (0, "connect", REFUSED),
        (101, "", REFUSED),
        (999, "", REFUSED),
    ],
)
def test_a_failure_counts_as_what_went_wrong(status: int, error_class: str, outcome: str) -> None:
    [counts] = counts_of([attempt(7, status_code=status, error_class=error_class)]).values()
    assert counts == AttemptCounts(minutes={(7, outcome): 1, (7, FIRST): 1}, failed_ms=100, life_ms=604_800_000)


def test_hours_and_minutes_are_those_in_which_attempts_began() -> None:
    # Given attempts of two hours, one of them a retry that succeeded
    again = record_of_delivery(
        first(message(), Verdict.FAILED), tried(first(message(), Verdict.FAILED), Verdict.DELIVERED), NOW
    )
    assert again is not None
    retried = replace(again, started_at=iso_time(HOUR + HOUR_MS), duration_ms=40)
    found = counts_of([attempt(59), retried, record_of_acceptance(message())])
    assert [(hour, counts.minutes) for (_, hour), counts in found.items()] == [
        (HOUR, {(59, "503"): 1, (59, FIRST): 1}),
        (HOUR + HOUR_MS, {(0, GOOD): 1}),
    ]
    assert {subscriber for subscriber, _ in found} == {SHOP}


def test_tries_by_hand_and_what_consumers_fetch_count_for_nothing() -> None:
    assert counts_of([attempt(manual=True), attempt(dialect="notifications")]) == {}


def test_a_subscriber_that_is_well_costs_no_write() -> None:
    counting_attempts, store, _ = counting()
    counting_attempts.count([attempt(failed=False)])
    assert store.attempts(SHOP, HOUR, HOUR) == {}


def test_successes_count_for_an_hour_after_a_failure() -> None:
    # Given a failure, a success within the hour, and another one later
    counting_attempts, store, _ = counting()
    counting_attempts.count([attempt(10)])
    counting_attempts.count([attempt(69, failed=False)])
    counting_attempts.count([attempt(71, failed=False)])
    # Then the end of its trouble is known, and much later attempts are not counted
    minutes = {hour: dict(counts.minutes) for hour, counts in store.attempts(SHOP, HOUR, HOUR + HOUR_MS).items()}
    assert minutes == {HOUR: {(10, "503"): 1, (10, FIRST): 1}, HOUR + HOUR_MS: {(9, GOOD): 1, (9, FIRST): 1}}


def test_those_with_most_failures_come_first_where_there_are_too_many() -> None:
    # Given one more subscriber that failed than is written at once, each but one of them twice
    counting_attempts, store, _ = counting()
    names = [f"s{number}" for number in range(MOST_AT_ONCE + 1)]
    records = [attempt(subscriber_id=each) for each in names]
    counting_attempts.count([*records, *records[:-1]])
    written = [each for each in names if store.attempts(SHOP._replace(subscriber_id=each), HOUR, HOUR)]
    assert written == names[:-1]


def test_a_large_batch_counts_a_tenth_as_many_subscribers_as_it_has_records() -> None:
    # Given as many subscribers that failed as four batches of a thousand would count, in one batch
    counting_attempts, store, _ = counting()
    names = [f"s{number}" for number in range(4 * MOST_AT_ONCE)]
    failed, healthy = [attempt(subscriber_id=each) for each in names], [attempt(failed=False)] * 3_600
    # When it is counted, then so is each of them
    counting_attempts.count([*failed, *healthy])
    assert all(store.attempts(SHOP._replace(subscriber_id=each), HOUR, HOUR) for each in names)


class NeverCounts(FakeAttemptCounts):
    def add_attempts(self, subscriber: CountedSubscriber, hour: int, counts: AttemptCounts) -> None:
        if subscriber.project == PROJECT:
            raise Unavailable("dynamodb:UpdateItem")
        super().add_attempts(subscriber, hour, counts)


def test_what_cannot_be_counted_holds_up_no_other() -> None:
    counting_attempts, store, telemetry = counting(NeverCounts())
    counting_attempts.count([attempt(), attempt(project=OTHER_PROJECT)])
    assert store.attempts(SHOP._replace(project=OTHER_PROJECT), HOUR, HOUR) != {}
    assert [name for name, _ in telemetry.events] == ["attempts_not_counted"]
