"""When one environment may begin an attempt at a limited subscriber: to the millisecond, on a fake clock."""

from __future__ import annotations

import pytest
from tests.fakes import FakeClock
from tests.fakes.subscribers import FakeSubscribers

from pushhub.engine import limiter as module
from pushhub.engine.limiter import BUSY_MS, PATIENCE_MS, Limiter
from pushhub.engine.model.backoff import MAX_DELAY_MS
from pushhub.engine.model.circuit import SubscriberKey
from pushhub.engine.model.seats import EPOCH_MS, Limits

KEY = SubscriberKey(project="p", queue="q", queue_uid="u", subscriber_id="s0")
OTHER = SubscriberKey(project="p", queue="q", queue_uid="u", subscriber_id="s1")
EPOCH = 179_500_000 * EPOCH_MS
"""When an epoch begins."""


def a_limiter(store: FakeSubscribers | None = None, *, at: int = EPOCH) -> tuple[Limiter, FakeClock]:
    clock = FakeClock(at)
    return Limiter(seats=store or FakeSubscribers(), clock=clock), clock


def begun(limiter: Limiter, limits: Limits, times: int, key: SubscriberKey = KEY) -> list[int]:
    return [limiter.begin(key, limits, longest_ms=5_000) for _ in range(times)]


def test_a_short_wait_is_spent_on_the_thread() -> None:
    # Given four requests a second
    limiter, clock = a_limiter()
    assert begun(limiter, Limits(rate_per_s=4), 4) == [0, 0, 0, 0]
    assert clock.slept == [0.25, 0.25, 0.25]
    # When nothing was sent for a while, then that is not made up for later
    clock.advance(seconds=3)
    assert begun(limiter, Limits(rate_per_s=4), 2) == [0, 0]
    assert clock.slept[3:] == [0.25]


def test_a_wait_of_a_second_is_spent_on_the_thread_and_a_longer_one_in_the_queue() -> None:
    limiter, clock = a_limiter()
    assert begun(limiter, Limits(rate_per_s=1), 2) == [0, 0]
    assert clock.slept == [PATIENCE_MS / 1000]
    limiter, clock = a_limiter()
    assert begun(limiter, Limits(rate_per_s=0.999), 2) == [0, 1001]
    assert clock.slept == []


def test_those_that_wait_in_the_queue_do_not_come_back_together() -> None:
    # Given a request in two seconds
    limiter, clock = a_limiter()
    limits = Limits(rate_per_s=0.5)
    assert begun(limiter, limits, 4) == [0, 2_000, 4_000, 6_000]
    # When the second comes back, then it begins, and the next one to wait comes after those already waiting
    clock.advance(seconds=2)
    assert begun(limiter, limits, 2) == [0, 6_000]


def test_no_wait_is_longer_than_a_queue_holds_back() -> None:
    limiter, _ = a_limiter()
    assert begun(limiter, Limits(rate_per_s=0.001), 3) == [0, MAX_DELAY_MS, MAX_DELAY_MS]


def test_as_many_are_under_way_as_may_be_and_another_when_one_has_ended() -> None:
    limiter, _ = a_limiter()
    limits = Limits(concurrency=2)
    assert begun(limiter, limits, 4) == [0, 0, BUSY_MS, BUSY_MS]
    limiter.end(KEY)
    assert begun(limiter, limits, 2) == [0, BUSY_MS]
    # And ending one that never began frees no further place
    for _ in range(5):
        limiter.end(KEY)
        limiter.end(OTHER)
    assert begun(limiter, limits, 3) == [0, 0, BUSY_MS]
    # And another subscriber has places of its own
    assert begun(limiter, limits, 3, OTHER) == [0, 0, BUSY_MS]


def test_who_has_no_part_of_a_small_limit_looks_again_in_another_epoch() -> None:
    # Given two environments for one place
    store = FakeSubscribers()
    first, clock = a_limiter(store)
    second = Limiter(seats=store, clock=clock)
    limits = Limits(concurrency=1)
    assert begun(first, limits, 1) == [0]
    # Then the second may not begin before the next epoch, and then has no place
    clock.advance(ms=2_500)
    assert begun(second, limits, 1) == [EPOCH_MS - 2_500]
    for _ in range(3):
        clock.advance(ms=EPOCH_MS)
        begun(first, limits, 1)
        waits = begun(second, limits, 1)
    assert waits == [EPOCH_MS]


def test_two_environments_halve_a_rate_from_the_next_epoch_on() -> None:
    store = FakeSubscribers()
    first, clock = a_limiter(store)
    second = Limiter(seats=store, clock=clock)
    limits = Limits(rate_per_s=2)
    begun(first, limits, 1)
    assert begun(second, limits, 1) == [EPOCH_MS]
    clock.advance(ms=EPOCH_MS)
    assert begun(first, limits, 2) == [0, 0]
    assert begun(second, limits, 1) == [0]
    # Then each waits twice as long between two requests
    assert clock.slept == [1.0]


@pytest.mark.parametrize(("longest_ms", "epochs"), [(1, 1), (EPOCH_MS, 1), (EPOCH_MS + 1, 2), (15_000, 2)])
def test_a_seat_outlasts_the_attempts_that_may_be_under_way(longest_ms: int, epochs: int) -> None:
    store = FakeSubscribers()
    limiter, clock = a_limiter(store)
    limiter.begin(KEY, Limits(concurrency=1), longest_ms=longest_ms)
    limiter.begin(OTHER, Limits(rate_per_s=1), longest_ms=longest_ms)
    now = clock.now() // EPOCH_MS
    seats, of_rate = store.seats(KEY), store.seats(OTHER)
    assert seats is not None
    assert of_rate is not None
    assert [each.last for each in seats.holders.values()] == [now + 1 + epochs]
    assert [each.last for each in of_rate.holders.values()] == [now + 1]


def test_a_seat_is_taken_once_in_an_epoch() -> None:
    store = FakeSubscribers()
    limiter, clock = a_limiter(store)
    for wait_ms in (0, 1, EPOCH_MS - 2):
        clock.advance(ms=wait_ms)
        begun(limiter, Limits(concurrency=9), 1)
    seats = store.seats(KEY)
    assert seats is not None
    assert seats.version == 1
    clock.advance(ms=1)
    begun(limiter, Limits(concurrency=9), 2)
    seats = store.seats(KEY)
    assert seats is not None
    assert seats.version == 2


def test_only_so_many_are_remembered_and_those_under_way_are(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given an attempt in progress at the first, and others that come and go
    monkeypatch.setattr(module, "KNOWN", 3)
    limiter, _ = a_limiter()
    limits = Limits(concurrency=1)
    assert begun(limiter, limits, 1) == [0]
    for number in range(10):
        key = SubscriberKey(project="p", queue="q", queue_uid="u", subscriber_id=f"t{number}")
        assert begun(limiter, limits, 1, key) == [0]
        limiter.end(key)
    # Then it is known that the first has its one request
    assert begun(limiter, limits, 1) == [BUSY_MS]
    assert len(limiter._known) == 3
