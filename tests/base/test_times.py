"""The format of times."""

from __future__ import annotations

from pushhub.base.times import iso_time


def test_times_keep_their_milliseconds() -> None:
    assert iso_time(0) == "1970-01-01T00:00:00.000Z"
    assert iso_time(1_795_000_000_007) == "2026-11-18T11:06:40.007Z"
