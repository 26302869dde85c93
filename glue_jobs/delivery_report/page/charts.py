"""The page's chart, as SVG: sharp at any size, readable without scripts, with texts that can be searched.

Lengths are in units of the chart's own box, which fills its place on the page. Colours are the page's (``page.css``),
which has others for dark screens.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from html import escape
from typing import Any, Final

Rows = Sequence[Mapping[str, Any]]

WIDTH, HEIGHT = 750, 200

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


def fates_by_hour(rows: Rows) -> str:
    """Deliveries by hour of acceptance, stacked by outcome."""
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
            (_x(n / len(rows)), _x((n + 1) / len(rows)), _y(low / most), _y(high / most))
            for n, (low, high) in enumerate(zip(below, above, strict=True))
            if high > low
        ]
        drawn.append(_boxes(bars, colour))
        below = above
    title = "Deliveries by hour of acceptance"
    parts = "".join([_scale(most), *drawn, _legend(), _times(rows)])
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f'<svg role="img" aria-label="{title}" {box}><title>{title}</title>{parts}</svg>'


def _x(share: float) -> float:
    """From the left end (0) to the right one (1)."""
    return LEFT + share * (WIDTH - RIGHT - LEFT)


def _y(share: float) -> float:
    """From the lower end (0) to the upper one (1)."""
    return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)


def _times(rows: Rows) -> str:
    """The labels of hours: midnights if there are many, so that each day is there once."""
    begin: datetime = rows[0]["hour"]
    by_day = len(rows) > HOURS_SHOWN
    start, every = ((24 - begin.hour) % 24, 24) if by_day else (0, 1)
    step = every * max(1, -(-((len(rows) - start) // every) // TICKS))
    labels = []
    for n in range(start, len(rows), step):
        moment = begin + timedelta(hours=n)
        text = f"{moment:%d %b}" if by_day else f"{moment:%H:%M}"
        labels.append(_text(_x(n / len(rows)), HEIGHT - 5, text, "middle"))
    return "".join(labels)


def _scale(most: int) -> str:
    """Lines across the chart, at round numbers up to this one: few enough to be read."""
    size = 10 ** math.floor(math.log10(most))
    step = max(1.0, next(each for each in (size / 5, size / 2, size, size * 2) if most / each <= TICKS // 2 + 1))
    lines = []
    for n in range(int(most / step) + 1):
        at = _y(step * n / most)
        lines.append(f'<path d="M{LEFT},{at:.1f}H{WIDTH - RIGHT}" style="stroke:var(--c-grid)"/>')
        lines.append(_text(LEFT - 6, at + 3, _short_number(step * n), "end"))
    return "".join(lines)


def _legend() -> str:
    """What the colours mean, in a row above the chart."""
    parts, at = [], float(LEFT)
    for name, colour in OUTCOMES.items():
        parts += [_boxes([(at, at + 10, 14, 4)], colour), _text(at + 14, 13, name)]
        at += 26 + 5.4 * len(name)
    return "".join(parts)


def _boxes(boxes: Iterable[tuple[float, float, float, float]], colour: str) -> str:
    """Rectangles of one colour: left, right, lower and upper end of each."""
    drawn = "".join(f"M{left:.1f},{low:.1f}H{right:.1f}V{high:.1f}H{left:.1f}z" for left, right, low, high in boxes)
    return f'<path d="{drawn}" style="fill:var(--c-{colour})"/>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _short_number(value: float) -> str:
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.0f}"
