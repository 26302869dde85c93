"""How long an order is hidden in its queue, and how waits grow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.engine.model.backoff import (
    MAX_VISIBILITY_MS,
    SCHEDULES,
    Exponential,
    FixedDelay,
    RetrySchedule,
    visibility_seconds,
)
from pushhub.engine.model.queue import PushSettings, Subscriber

RECEIVED_AT = 1_800_000_000_000
TWELVE_HOURS_S = 43_200


@pytest.mark.parametrize(
    ("wait_ms", "seconds"), [(-5, 0), (0, 0), (1, 1), (999, 1), (1000, 1), (1001, 2), (59_001, 60), (60_000, 60)]
)
def test_an_order_never_comes_back_before_its_time(wait_ms: int, seconds: int) -> None:
    # Then parts of a second are rounded up
    assert visibility_seconds(wait_ms, received_at=RECEIVED_AT, now=RECEIVED_AT) == seconds


@given(wait_ms=st.integers(-10, 10**9), held_ms=st.integers(-5_000, 50_000_000))
def test_it_is_never_early_nor_later_than_sqs_allows(wait_ms: int, held_ms: int) -> None:
    # Given a message received ``held_ms`` ago (a clock behind the receiver's makes that negative)
    hidden = visibility_seconds(wait_ms, received_at=RECEIVED_AT, now=RECEIVED_AT + held_ms)
    # Then it is hidden for the wait, less than a second more, or for what is left of the twelve hours from its receive
    left_ms = max(0, MAX_VISIBILITY_MS - max(0, held_ms))
    assert hidden >= 0
    assert hidden + max(0, held_ms) / 1000 <= TWELVE_HOURS_S or hidden == 0
    if wait_ms <= left_ms:
        assert hidden * 1000 >= wait_ms
    assert hidden * 1000 < max(0, min(wait_ms, left_ms)) + 1000


def waits(policy: RetrySchedule, jitter: float = 0.5) -> list[float | None]:
    """Seconds to wait after each failure; None after the last one."""
    found = [policy.wait_ms(tries, jitter) for tries in range(1, (policy.max_tries or 0) + 1)]
    return [None if wait is None else wait / 1000 for wait in found]


@pytest.mark.parametrize(
    ("name", "expected", "hours"),
    [
        ("svix", [5, 300, 1800, 7200, 18_000, 36_000, 36_000, None], 27.6),
        ("standard-webhooks", [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400, None], 75.6),
    ],
)
def test_a_published_schedule_waits_as_published(name: str, expected: list[float | None], hours: float) -> None:
    policy = SCHEDULES[name]
    assert waits(policy) == expected
    assert sum(policy.waits_s) / 3600 == pytest.approx(hours, abs=0.05)


def test_an_empty_schedule_means_one_try() -> None:
    assert waits(RetrySchedule(waits_s=())) == [None]


@given(wait_s=st.floats(0, 10**6), jitter=st.floats(0, 1), least=st.floats(0, 2), more=st.floats(0, 2))
def test_a_wait_stays_within_its_spread(wait_s: float, jitter: float, least: float, more: float) -> None:
    wait_ms = RetrySchedule(waits_s=(wait_s,), spread=(least, least + more)).wait_ms(1, jitter)
    assert wait_ms is not None
    assert wait_s * least * 1000 - 1 <= wait_ms <= wait_s * (least + more) * 1000 + 1


@pytest.mark.parametrize(("least", "greatest"), [(-0.1, 1), (1.1, 1)])
def test_a_spread_that_makes_no_sense_is_refused(least: float, greatest: float) -> None:
    with pytest.raises(ValueError, match="smaller factor"):
        RetrySchedule(waits_s=(1,), spread=(least, greatest))


def test_a_negative_wait_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        RetrySchedule(waits_s=(1, -1))


def test_the_policy_is_the_subscribers_or_the_queues_or_a_number_of_retries() -> None:
    # Given a queue with two subscribers, one with a policy of its own
    own, of_queue = RetrySchedule(waits_s=(1,)), RetrySchedule(waits_s=(2, 3))
    theirs = Subscriber(subscriber_id="a", name="", url="https://a.example", retry=own)
    plain = Subscriber(subscriber_id="b", name="", url="https://b.example")
    push = PushSettings(subscribers=(theirs, plain), retries=4, retries_delay=9, retry=of_queue)
    # Then each has its own, or else the queue's; so have a unicast delivery and one whose subscriber was removed
    assert [push.policy_of(each) for each in ("a", "b", "*", "gone")] == [own, of_queue, of_queue, of_queue]
    # And without one the queue's number of retries is what counts
    assert PushSettings(subscribers=(plain,), retries=4, retries_delay=9).policy_of("b") == FixedDelay(
        retries=4, delay_s=9
    )


def test_exponential_waits_double_up_to_the_cap_and_jitter_only_adds() -> None:
    policy = Exponential(base_s=10, cap_s=100, spread=0.5)
    assert [policy.wait_ms(tries, 0.0) for tries in (1, 2, 3, 4, 5)] == [10_000, 20_000, 40_000, 80_000, 100_000]
    assert [policy.wait_ms(tries, 1.0) for tries in (1, 2, 3, 4, 5)] == [15_000, 30_000, 60_000, 100_000, 100_000]
    # Then it takes as many doublings as the cap is away
    assert Exponential(base_s=1, cap_s=3_600, spread=0).wait_ms(12, 0.0) == 2_048_000
    assert Exponential(base_s=1, cap_s=3_600, spread=0).wait_ms(13, 0.0) == 3_600_000
    # Then unlimited tries never produce a number that is too large
    assert policy.wait_ms(100_000, 1.0) == 100_000


def test_exponential_tries_end_where_they_are_to_end() -> None:
    policy = Exponential(base_s=10, cap_s=100, max_attempts=3)
    assert [policy.wait_ms(tries, 0.0) is None for tries in (1, 2, 3, 4)] == [False, False, True, True]


def test_a_fixed_delay_follows_each_try_but_the_last() -> None:
    policy = FixedDelay(retries=2, delay_s=7)
    assert [policy.wait_ms(tries, 0.5) for tries in (1, 2, 3)] == [7000, 7000, None]
    assert policy.max_tries == 3
