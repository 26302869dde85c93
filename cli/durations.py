"""Time spans as people type them, and times of trouble: when, and what the endpoint does."""

from __future__ import annotations

import re
from typing import Any

import click

from pushhub.base.numerals import digits

_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SPAN = re.compile(r"([0-9]{1,6})([smhd])")
_OTHER = {"status": int, "retry_after": int, "takes": float, "share": float, "down": int, "up": int}


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
        return int(match.group(1)) * _UNITS_MS[match.group(2)]


class OutageWindow(click.ParamType[dict[str, Any]]):
    """A window like ``6h``, ``1h-7h:refuses`` or ``30m:503,retry_after=120,share=0.5``, as the API takes it."""

    name = "window"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        """Read it."""
        if isinstance(value, dict):
            return value
        when, _, what = str(value).partition(":")
        start, dash, end = when.rpartition("-")
        span = Duration()
        window: dict[str, Any] = {"end": span.convert(end, param, ctx) // 1000}
        if dash:
            window["start"] = 0 if start == "0" else span.convert(start, param, ctx) // 1000
        trouble, *others = what.split(",") if what else ["times_out"]
        status = digits(trouble, 9)
        if status is not None:
            window |= {"endpoint": "answers", "status": status}
        else:
            window["endpoint"] = trouble
        for each in others:
            name, _, number = each.partition("=")
            if name not in _OTHER:
                self.fail(f"{name!r} is not one of {', '.join(_OTHER)}", param, ctx)
            try:
                window[name] = _OTHER[name](number)
            except ValueError:
                self.fail(f"{number!r} is not a number for {name}", param, ctx)
        return window


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
