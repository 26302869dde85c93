"""Times of trouble as people type them: when, and what the endpoint does."""

from __future__ import annotations

from typing import Any

import click

from .durations import Duration

_OTHER = {"status": int, "retry_after": int, "takes": float, "share": float, "down": int, "up": int}


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
        if trouble.isdigit():
            window |= {"endpoint": "answers", "status": int(trouble)}
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
