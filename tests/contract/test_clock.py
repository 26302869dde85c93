"""What every clock does."""

from __future__ import annotations

import time

import pytest
from tests.fakes import FakeClock

from pushhub.base.ports import Clock
from pushhub.cloud.clock import SystemClock


@pytest.fixture(params=["fake", "system"])
def clock(request: pytest.FixtureRequest) -> Clock:
    return FakeClock(round(time.time() * 1000), jitter=0.5) if request.param == "fake" else SystemClock()


def test_now_is_epoch_milliseconds_and_sleeping_passes_time(clock: Clock) -> None:
    before = clock.now()
    clock.sleep(0.01)
    assert abs(before - time.time() * 1000) < 60_000
    assert 9 <= clock.now() - before < 60_000


def test_jitter_is_a_share(clock: Clock) -> None:
    assert all(0 <= clock.jitter() <= 1 for _ in range(100))
