"""Schedulers of a store: each emits a message of one type at regular intervals, to trigger services that poll
others.
"""

from __future__ import annotations

from dataclasses import dataclass

from pushhub.base.errors import Invalid

_UNITS_MS = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "week": 604_800_000}

MIN_PERIOD_MS = 60_000
"""The hub looks at schedulers once a minute."""

MAX_PERIOD_MS = 366 * 86_400_000
"""A year."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """Emits one message of type ``key`` every ``count`` ``interval``.

    Attributes:
        scheduler_id: Object id.
        count: Number of intervals between ticks.
        interval: ``minutes``, ``hours``, ``days`` or ``weeks``, with or without the s.
        next_at: Epoch milliseconds of the next tick.
        integration_id: The integration whose endpoint asked for it, or None when its owner made it.
    """

    project: str
    scheduler_id: str
    key: str
    count: int
    interval: str
    created_at: int
    next_at: int
    integration_id: str | None = None
    version: int = 0

    @property
    def period_ms(self) -> int:
        """Milliseconds between ticks."""
        return period_ms(self.count, self.interval)


def period_ms(count: int, interval: str) -> int:
    """Milliseconds of ``count`` intervals.

    Raises:
        Invalid: Unknown interval, or a period below a minute or over a year.
    """
    unit = _UNITS_MS.get(interval.strip().lower().removesuffix("s"))
    if unit is None:
        raise Invalid("interval must be minutes, hours, days or weeks")
    period = count * unit
    if not MIN_PERIOD_MS <= period <= MAX_PERIOD_MS:
        raise Invalid("count must make a period between a minute and a year")
    return period


def tick_after(next_at: int, period: int, now: int) -> int:
    """The time of the next tick after the current one. Missed ticks are skipped; the phase is kept.

    Args:
        next_at: Epoch milliseconds of the current tick.
        period: Milliseconds between ticks.
    """
    missed = max(0, now - next_at) // period
    return next_at + (missed + 1) * period
