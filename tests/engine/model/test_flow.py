"""When attempts may begin under a rate and a number of concurrent ones: never more, and nothing wasted."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.engine.model.flow import BURST_MS, PART_PER_S, TOGETHER_MS, FlowKey, Limits, Pace, Terms

NOW = 1_795_000_000_000


@pytest.mark.parametrize("limits", [{"rate_per_s": 0}, {"rate_per_s": -1.5}, {"concurrency": 0}])
def test_a_limit_is_positive(limits: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="positive"):
        Limits(**limits)  # type: ignore[arg-type]


@given(
    rate=st.floats(0.1, 500),
    looks=st.lists(st.integers(0, 3_000), min_size=1, max_size=200),
    unused=st.sets(st.integers(0, 199)),
)
def test_in_any_span_no_more_begin_than_the_rate_allows_and_half_a_second_more(
    rate: float, looks: list[int], unused: set[int]
) -> None:
    # Given a run that looks now and then and begins whatever it may, some of which is no attempt after all
    pace, now, begun = Pace(Limits(rate_per_s=rate), 0), NOW, list[int]()
    for number, wait_ms in enumerate(looks):
        now += wait_ms
        for _ in range(1_000):
            if pace.wait_ms(now):
                break
            pace.begin(now)
            pace.end(attempted=number not in unused)
            if number in unused:
                break
            begun.append(now)
    # Then no span has more than the rate allows
    for first, at in enumerate(begun):
        for span_ms in (0, 1_000, 30_000):
            count = bisect_left(begun, at + span_ms + 1) - first
            # (a float of epoch milliseconds is rounded to a 4096th of one: of 2 ms, to a part in 16,000)
            assert count <= rate * (span_ms + BURST_MS) / 1000 * (1 + 1e-4) + 1


@given(rate=st.floats(0.1, 50), reads=st.lists(st.integers(0, 8_000), min_size=1, max_size=60))
def test_requests_of_attempts_that_waited_for_reads_come_together_by_no_more_than_a_seconds_burst(
    rate: float, reads: list[int]
) -> None:
    # Given attempts each of which reads for a while before it is ready to make its request
    pace, now, asked = Pace(Limits(rate_per_s=rate), 0), NOW, list[int]()
    waiting, reading = [*enumerate(reads)], list[tuple[int, int]]()
    again = 0
    while waiting or reading:
        while waiting and not pace.wait_ms(now):
            number, takes_ms = waiting.pop(0)
            pace.begin(now)
            heapq.heappush(reading, (now + takes_ms, number))
        times = [each for each, _ in reading[:1]]
        now = min([*times, *([now + pace.wait_ms(now)] if waiting else [])])
        while reading and reading[0][0] <= now:
            _, number = heapq.heappop(reading)
            may = pace.asks(now)
            pace.end(attempted=may)
            if may:
                asked.append(now)
            else:
                # Then whoever may not begins again, and does so in vain no more often than others wait with it
                again += 1
                waiting.append((number, 0))
        assert again <= len(reads) ** 2
    # Then all are made, and in no span more than the rate allows and a second's burst
    assert len(asked) == len(reads)
    for first, at in enumerate(asked):
        for span_ms in (0, 1_000, 30_000):
            count = bisect_left(asked, at + span_ms + 1) - first
            assert count <= rate * (span_ms + TOGETHER_MS) / 1000 + 1 + 1e-6


def test_who_was_promised_a_request_far_ahead_may_ask_after_a_raised_rate() -> None:
    pace = Pace(Limits(rate_per_s=0.1), NOW)
    for _ in range(2):
        pace.begin(NOW)
    assert [pace.asks(NOW), pace.asks(NOW)] == [True, False]
    pace.change(Limits(rate_per_s=10), NOW)
    assert not pace.asks(NOW)
    assert pace.asks(NOW + 100)
    pace.change(Limits(concurrency=3), NOW)
    assert all(pace.asks(NOW) for _ in range(9))


@given(rate=st.floats(0.5, 500), seconds=st.integers(5, 60))
def test_nothing_is_wasted_by_who_looks_often_enough(rate: float, seconds: int) -> None:
    pace, now, begun = Pace(Limits(rate_per_s=rate), NOW), NOW, 0
    while now < NOW + seconds * 1_000:
        while not pace.wait_ms(now):
            pace.begin(now)
            pace.end(attempted=True)
            begun += 1
        now += 173
    assert begun >= rate * (seconds - 0.2) - 1


@given(limit=st.integers(1, 100), steps=st.lists(st.booleans(), max_size=300))
def test_as_many_are_under_way_as_may_be(limit: int, steps: list[bool]) -> None:
    pace, under_way = Pace(Limits(concurrency=limit), 0), 0
    for begins in steps:
        if begins and not pace.full:
            pace.begin(NOW)
            under_way += 1
        elif not begins and under_way:
            pace.end(attempted=True)
            under_way -= 1
        assert pace.full == (under_way == limit)
        assert pace.wait_ms(NOW) == 0


def test_a_raised_rate_holds_from_now_on_and_a_lowered_one_too() -> None:
    pace = Pace(Limits(rate_per_s=0.01), NOW)
    pace.begin(NOW)
    assert pace.wait_ms(NOW) == 100_000
    pace.change(Limits(rate_per_s=20), NOW + 1)
    assert pace.wait_ms(NOW + 1) == 50
    pace.change(Limits(rate_per_s=0.5), NOW + 51)
    assert pace.wait_ms(NOW + 51) == 0
    pace.begin(NOW + 51)
    assert pace.wait_ms(NOW + 51) == 2_000


def test_a_lease_outlasts_attempts_only_where_they_are_counted() -> None:
    assert Terms(limits=Limits(rate_per_s=1), longest_ms=9_000).outlasts_ms == 0
    assert Terms(limits=Limits(rate_per_s=1, concurrency=2), longest_ms=9_000).outlasts_ms == 9_000


@given(st.floats(0.01, 5_000))
def test_a_rate_is_the_sum_of_its_parts_none_of_which_is_more_than_a_run_can_begin(rate: float) -> None:
    limits = Limits(rate_per_s=rate)
    part = limits.of_a_part.rate_per_s or 0
    assert part <= PART_PER_S
    assert math.isclose(part * limits.parts, rate)
    assert limits.parts == 1 or part >= PART_PER_S / 2
    # But what one run has to count is not divided
    assert Limits(rate_per_s=rate, concurrency=2).parts == Limits(concurrency=2).parts == Limits().parts == 1


def test_a_part_has_a_key_of_its_own_and_the_first_that_of_the_subscriber() -> None:
    keys = [FlowKey.of_subscriber("p", "u", "s", part) for part in range(12)]
    assert keys[0] == FlowKey.of_subscriber("p", "u", "s") == FlowKey("p", "u#s")
    assert len({*keys}) == len(keys)
    assert [each.part for each in keys] == [*range(12)]


def test_a_pace_is_late_before_any_of_its_rate_is_lost() -> None:
    pace = Pace(Limits(rate_per_s=10), NOW)
    assert not pace.is_late(NOW + BURST_MS // 2)
    assert pace.is_late(NOW + BURST_MS // 2 + 1)
    pace.begin(NOW + BURST_MS)
    assert pace.mark == NOW + 100
    assert not Pace(Limits(), 0).is_late(NOW)
