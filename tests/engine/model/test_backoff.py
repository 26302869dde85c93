"""How long an order is hidden in its queue, and how waits grow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.engine.model.backoff import MAX_VISIBILITY_MS, visibility_seconds

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
