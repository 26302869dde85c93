"""When schedulers tick."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.base.errors import Invalid
from pushhub.hub.model.schedule import period_ms, tick_after

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("count", "interval", "period"),
    [
        (1, "hours", HOUR),
        (1, "hour", HOUR),
        (5, "minutes", 300_000),
        (2, "Days", 172_800_000),
        (1, "week", 604_800_000),
    ],
)
def test_periods(count: int, interval: str, period: int) -> None:
    assert period_ms(count, interval) == period


@pytest.mark.parametrize(
    ("count", "interval"), [(0, "hours"), (-1, "hours"), (1, "fortnights"), (1, ""), (400, "days"), (1, "seconds")]
)
def test_periods_out_of_bounds_are_refused(count: int, interval: str) -> None:
    with pytest.raises(Invalid):
        period_ms(count, interval)


@given(next_at=st.integers(0, 10**13), period=st.integers(60_000, 10**11), late=st.integers(-(10**6), 10**12))
def test_the_next_tick_keeps_the_rhythm_and_lies_in_the_future(next_at: int, period: int, late: int) -> None:
    now = next_at + late
    following = tick_after(next_at, period, now)
    assert following > now
    assert following > next_at
    assert (following - next_at) % period == 0
    assert following - period <= max(now, next_at)
