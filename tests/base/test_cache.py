"""The cache evicts by age and by size."""

from __future__ import annotations

from tests.fakes import FakeClock

from pushhub.base.cache import ExpiringCache


def cache(clock: FakeClock, capacity: int = 2) -> ExpiringCache[str]:
    return ExpiringCache[str](clock, ttl_ms=1_000, capacity=capacity)


def test_a_value_lives_for_its_time() -> None:
    # Given a value
    clock = FakeClock()
    cached = cache(clock)
    cached.put("a", "1")
    # Then it stays until it expires, however often it was used
    clock.advance(ms=999)
    assert cached.get("a") == "1"
    clock.advance(ms=1)
    assert cached.get("a") is None


def test_putting_again_starts_the_time_anew() -> None:
    clock = FakeClock()
    cached = cache(clock)
    cached.put("a", "1")
    clock.advance(ms=999)
    cached.put("a", "2")
    clock.advance(ms=999)
    assert cached.get("a") == "2"


def test_when_full_the_value_used_longest_ago_goes() -> None:
    cached = cache(FakeClock())
    cached.put("a", "1")
    cached.put("b", "2")
    assert cached.get("a") == "1"
    cached.put("c", "3")
    assert [cached.get(key) for key in "abc"] == ["1", None, "3"]


def test_a_dropped_value_is_gone() -> None:
    cached = cache(FakeClock())
    cached.put("a", "1")
    cached.drop("a")
    cached.drop("unknown")
    assert cached.get("a") is None
