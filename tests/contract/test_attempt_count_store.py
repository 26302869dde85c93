"""What every store of counted attempts does."""

from __future__ import annotations

from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT, SUBSCRIBER

from pushhub.engine.model.activity import HOUR_MS
from pushhub.engine.model.attempt_counts import GOOD, OUTCOMES, TIMEOUT, AttemptCounts, CountedSubscriber
from pushhub.engine.ports import AttemptCountStore

HOUR = NOW - NOW % HOUR_MS
SHOP = CountedSubscriber(PROJECT, "orders # é", SUBSCRIBER)


def test_what_is_added_to_an_hour_adds_up(attempt_count_store: AttemptCountStore) -> None:
    one = AttemptCounts(minutes={(0, TIMEOUT): 2, (59, GOOD): 1}, failed_ms=60_000, good_ms=7, life_ms=1_000)
    other = AttemptCounts(minutes={(0, TIMEOUT): 1}, failed_ms=30_000, life_ms=1_000)
    attempt_count_store.add_attempts(SHOP, HOUR, one)
    attempt_count_store.add_attempts(SHOP, HOUR, other)
    assert attempt_count_store.attempts(SHOP, HOUR, HOUR) == {HOUR: one + other}


def test_an_hour_takes_whatever_can_be_counted_in_it(attempt_count_store: AttemptCountStore) -> None:
    full = AttemptCounts(minutes={(minute, each): 1 for minute in range(60) for each in OUTCOMES}, life_ms=1)
    attempt_count_store.add_attempts(SHOP, HOUR, full)
    assert attempt_count_store.attempts(SHOP, HOUR, HOUR) == {HOUR: full}


def test_the_hours_asked_for_are_told_and_nothing_of_others(attempt_count_store: AttemptCountStore) -> None:
    # Given counts of five hours, and counts of another project, another queue and another subscriber
    for number in range(5):
        minutes = {(number, GOOD): 1}
        attempt_count_store.add_attempts(SHOP, HOUR + number * HOUR_MS, AttemptCounts(minutes=minutes, life_ms=1))
    others = (
        SHOP._replace(project=OTHER_PROJECT),
        SHOP._replace(queue="orders"),
        SHOP._replace(subscriber_id=f"{SUBSCRIBER}#orders # é"),
    )
    for other in others:
        attempt_count_store.add_attempts(other, HOUR, AttemptCounts(minutes={(0, TIMEOUT): 99}, life_ms=1))
    # Then those of the requested hours are returned
    told = attempt_count_store.attempts(SHOP, HOUR + HOUR_MS, HOUR + 3 * HOUR_MS)
    assert {hour: [*counts.minutes] for hour, counts in told.items()} == {
        HOUR + number * HOUR_MS: [(number, GOOD)] for number in (1, 2, 3)
    }
    assert attempt_count_store.attempts(SHOP, HOUR, HOUR)[HOUR].failed == 0
