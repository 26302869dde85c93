"""The format of times."""

from __future__ import annotations

import pytest

from pushhub.base.times import end_in_words, iso_time


def test_times_keep_their_milliseconds() -> None:
    assert iso_time(0) == "1970-01-01T00:00:00.000Z"
    assert iso_time(1_795_000_000_007) == "2026-11-18T11:06:40.007Z"


@pytest.mark.parametrize(
    ("days", "words"), [(0, "has ended"), (1, "ends in 1 day"), (2, "ends in 2 days"), (30, "ends in 30 days")]
)
def test_an_end_is_said_in_whole_days(days: int, words: str) -> None:
    assert end_in_words(days) == words
