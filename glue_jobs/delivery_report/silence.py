"""Hours without any record among busy ones, and records that stop. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

BUSY: Final = 60
"""How many records an hour must have for an empty one not to be chance."""

BESIDE: Final = 2
"""Hours on each side of a silence that have to be busy."""

_HOUR: Final = timedelta(hours=1)


def silences(counts: Mapping[datetime, int], until: datetime) -> Iterator[tuple[datetime, datetime]]:
    """The suspicious silences: their first hour, and the hour after their last.

    A silence counts when the hours before it were busy, and those after it if there are any yet; but not when on some
    other day the same hours were silent too, which is how a hub that rests at night looks.

    Args:
        counts: Records by hour of their event; hours without any are missing or 0.
        until: Records of events before this time should be there.
    """
    heard = {hour for hour, count in counts.items() if count}
    if not heard:
        return
    hour, end = min(heard), until.replace(minute=0, second=0, microsecond=0)
    first = hour
    while hour < end:
        if hour in heard:
            hour += _HOUR
            continue
        start = hour
        while hour < end and hour not in heard:
            hour += _HOUR
        before = [start - _HOUR * n for n in range(1, BESIDE + 1)]
        after = [hour + _HOUR * n for n in range(BESIDE)] if hour < end else []
        if all(counts.get(each, 0) >= BUSY for each in before + after) and not _usual(heard, start, hour, first, end):
            yield start, hour


def _usual(heard: set[datetime], start: datetime, stop: datetime, first: datetime, end: datetime) -> bool:
    """Whether the same hours of another day were silent, too."""
    hours = [start + _HOUR * n for n in range(int((stop - start) / _HOUR))]
    if len(hours) >= 24:
        return False
    for days in range(-31, 32):
        shifted = [each + timedelta(days=days) for each in hours]
        if days and shifted[0] >= first and shifted[-1] < end and not heard.intersection(shifted):
            return True
    return False
