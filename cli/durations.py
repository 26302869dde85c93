"""Time spans as people type them."""

from __future__ import annotations

import re
from typing import Any

import click

_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SPAN = re.compile(r"([0-9]{1,6})([smhd])")
_MOST_MS = 36_500 * _UNITS_MS["d"]
"""A hundred years; calendars end beyond some thousands."""


class Duration(click.ParamType[int]):
    """A span like ``90d``, ``12h``, ``30m`` or ``45s``, in milliseconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it."""
        if isinstance(value, int):
            return value
        match = _SPAN.fullmatch(str(value))
        if match is None:
            self.fail(f"{value!r} is not a time span: use 90d, 12h, 30m or 45s", param, ctx)
        span = int(match.group(1)) * _UNITS_MS[match.group(2)]
        if span > _MOST_MS:
            self.fail(f"{value!r} is too long: it may be {_MOST_MS // _UNITS_MS['d']}d", param, ctx)
        return span


def worded(milliseconds: int) -> str:
    """A span for people, in its two largest units: ``5 h 20 min``; less than a minute with a decimal."""
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.3g} s"
    left, parts = milliseconds // 1000, []
    for unit, seconds in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, rest = divmod(left, seconds)
        if count:
            parts.append(f"{count} {unit}")
            left = rest
        if len(parts) == 2 or (parts and not count):
            break
    return " ".join(parts)
