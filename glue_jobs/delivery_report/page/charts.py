"""The charts of the page, as SVG: sharp at any size, readable without scripts, with texts that can be searched.

Lengths are in units of the chart's own box, which fills its place on the page. Colours are the page's (``page.css``),
which has others for dark screens.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from typing import Any, Final

from .wording import as_duration

Rows = Sequence[Mapping[str, Any]]

WIDE, HALF = 750, 364
"""Widths of a chart across the page and of one beside another."""

HEIGHT: Final = 200

TOP, RIGHT, BOTTOM, LEFT = 24, 18, 20, 48
"""Room around what is drawn: for the legend, for half of the last label, for the labels of time and of the scale."""

HOURS_SHOWN: Final = 48
"""Up to so many hours are labelled by hour, more by day."""

TICKS: Final = 8
"""Labels that an axis of time has at most; a scale has half as many."""

OUTCOMES: Final = {
    "delivered at first try": "good",
    "delivered later": "later",
    "still waiting": "waiting",
    "given up": "bad",
}
"""Layers of the deliveries of an hour, from below, by the names of their colours."""

ROUND_TIMES: Final = (1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 21_600_000, 86_400_000, 604_800_000)
"""Durations that a scale names, in milliseconds."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where a chart is drawn within its box.

    Attributes:
        width: Of the box.
    """

    width: int

    def x(self, share: float) -> float:
        """From the left end (0) to the right one (1)."""
        return LEFT + share * (self.width - RIGHT - LEFT)

    def y(self, share: float) -> float:
        """From the lower end (0) to the upper one (1)."""
        return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)

    def svg(self, title: str, *parts: str) -> str:
        """The whole chart."""
        label = escape(title)
        box = f'viewBox="0 0 {self.width} {HEIGHT}"'
        return f'<svg role="img" aria-label="{label}" {box}><title>{label}</title>{"".join(parts)}</svg>'


def fates_by_hour(rows: Rows) -> str:
    """Deliveries by hour of acceptance, stacked by outcome."""
    frame = _Frame(WIDE)
    layers = [
        [row["first_won"] for row in rows],
        [max(0, row["delivered"] + row["acknowledged"] - row["first_won"]) for row in rows],
        [row["open"] for row in rows],
        [row["exhausted"] + row["expired"] + row["cancelled"] for row in rows],
    ]
    most = max(1, *map(sum, zip(*layers, strict=True)))
    below = [0] * len(rows)
    drawn = []
    for layer, colour in zip(layers, OUTCOMES.values(), strict=True):
        above = [low + height for low, height in zip(below, layer, strict=True)]
        bars = [
            (frame.x(n / len(rows)), frame.x((n + 1) / len(rows)), frame.y(low / most), frame.y(high / most))
            for n, (low, high) in enumerate(zip(below, above, strict=True))
            if high > low
        ]
        drawn.append(_boxes(bars, colour))
        below = above
    scale = [(value / most, _short_number(value)) for value in _round_numbers(most)]
    names = _legend(frame, OUTCOMES)
    return frame.svg("Deliveries by hour of acceptance", _scale(frame, scale), *drawn, names, _times(frame, rows))


def percentiles_by_hour(rows: Rows, names: Sequence[str], title: str) -> str:
    """p50, p95 and p99 of a duration by hour, on a logarithmic scale.

    Args:
        rows: ``hour`` and the percentiles in milliseconds.
        names: Their columns, rising.
    """
    frame = _Frame(HALF)
    known = [max(1, row[name]) for row in rows for name in names if row[name] is not None]
    least, most = min(known, default=1), max(known, default=1) * 1.2
    span = math.log(most / least) or 1.0

    def place(milliseconds: float) -> float:
        return math.log(max(1, milliseconds) / least) / span

    colours = dict(zip(("p50", "p95", "p99"), ("pale", "mid", "deep"), strict=True))
    lines = []
    for name, colour in zip(names, colours.values(), strict=True):
        points = [
            None if row[name] is None else (frame.x((n + 0.5) / len(rows)), frame.y(place(row[name])))
            for n, row in enumerate(rows)
        ]
        lines.append(_line(points, colour))
    inside = [each for each in ROUND_TIMES if least <= each <= most] or [least]
    every = -(-len(inside) // (TICKS // 2))
    scale = [(place(each), as_duration(round(each))) for each in inside[::every]]
    return frame.svg(title, _scale(frame, scale), *lines, _legend(frame, colours), _times(frame, rows))


def _times(frame: _Frame, rows: Rows) -> str:
    """The labels of hours: midnights if there are many, so that each day is there once."""
    begin: datetime = rows[0]["hour"]
    columns = len(rows)
    by_day = columns > HOURS_SHOWN
    start, every = ((24 - begin.hour) % 24, 24) if by_day else (0, 1)
    step = every * max(1, -(-((columns - start) // every) // TICKS))
    labels = []
    for n in range(start, columns, step):
        moment = begin + timedelta(hours=n)
        text = f"{moment:%d %b}" if by_day else f"{moment:%H:%M}"
        labels.append(_text(frame.x(n / columns), HEIGHT - 5, text, "middle"))
    return "".join(labels)


def _scale(frame: _Frame, values: Iterable[tuple[float, str]]) -> str:
    """Lines across the chart, each with its value."""
    left, right = frame.x(0), frame.x(1)
    return "".join(
        f'<path d="M{left:.0f},{frame.y(share):.1f}H{right:.0f}" style="stroke:var(--c-grid)"/>'
        f"{_text(left - 6, frame.y(share) + 3, text, 'end')}"
        for share, text in values
    )


def _legend(frame: _Frame, colours: Mapping[str, str]) -> str:
    """What the colours mean, in a row above the chart."""
    parts, at = [], frame.x(0)
    for name, colour in colours.items():
        parts += [_boxes([(at, at + 10, 14, 4)], colour), _text(at + 14, 13, name)]
        at += 26 + 5.4 * len(name)
    return "".join(parts)


def _boxes(boxes: Iterable[tuple[float, float, float, float]], colour: str) -> str:
    """Rectangles of one colour: left, right, lower and upper end of each."""
    drawn = "".join(f"M{left:.1f},{low:.1f}H{right:.1f}V{high:.1f}H{left:.1f}z" for left, right, low, high in boxes)
    return f'<path d="{drawn}" style="fill:var(--c-{colour})"/>'


def _line(points: Iterable[tuple[float, float] | None], colour: str) -> str:
    """A line that breaks where there is no point; a point that stands alone is a dot."""
    drawn, before = "", None
    for point in points:
        if point is not None:
            step = f"M{point[0]:.1f},{point[1]:.1f}h0" if before is None else f"L{point[0]:.1f},{point[1]:.1f}"
            drawn += step
        before = point
    style = f"fill:none;stroke:var(--c-{colour});stroke-width:1.5;stroke-linecap:round"
    return f'<path d="{drawn}" style="{style}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _round_numbers(most: float) -> list[float]:
    """Round numbers from 0 up to this one: few enough to be read."""
    size = 10 ** math.floor(math.log10(most))
    step = next(each for each in (size / 5, size / 2, size, size * 2) if most / each <= TICKS // 2 + 1)
    step = max(1.0, step)
    return [step * n for n in range(int(most / step) + 1)]


def _short_number(value: float) -> str:
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.0f}"
