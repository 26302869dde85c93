"""Numbers over time as a picture: a line of blocks for a terminal, an SVG for a file."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pushhub.engine.model.forecast import Series

from .durations import worded

BLOCKS = "▁▂▃▄▅▆▇█"
COLUMNS = 100
WIDE, HIGH, LEFT, BELOW = 800, 260, 60, 30


def sparkline(numbers: Sequence[float], most: float | None = None) -> str:
    """One block for each number, or for the greatest of several if there are too many; a dot for zero.

    Args:
        numbers: None of them negative.
        most: The value of a full block; by default the greatest number.
    """
    step = -(-len(numbers) // COLUMNS) or 1
    shown = [max(numbers[at : at + step]) for at in range(0, len(numbers), step)]
    top = most if most is not None else max(shown, default=0)
    return "".join(BLOCKS[min(7, int(each * 8 / top))] if each and top else "·" for each in shown)


def as_svg(series: Series, title: str) -> str:
    """Attempts over time, failed ones in red."""
    top = max([1, *series.attempts])
    across, up = (WIDE - LEFT) / max(1, len(series.attempts)), HIGH - BELOW - 20

    def bars(numbers: Sequence[int], colour: str) -> str:
        paths = "".join(
            f"M{LEFT + at * across:.1f} {HIGH - BELOW}v{-number * up / top:.1f}h{across:.2f}V{HIGH - BELOW}z"
            for at, number in enumerate(numbers)
            if number
        )
        return f'<path d="{paths}" fill="{colour}"/>'

    ends = worded(series.every_ms * len(series.attempts))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" role="img" font-family="sans-serif" '
        f'font-size="12">'
        f"<title>{escape(title)}</title>"
        f'<rect width="{WIDE}" height="{HIGH}" fill="#fff"/>'
        f"{bars(series.attempts, '#3b5bdb')}{bars(series.failed, '#c92a2a')}"
        f'<path d="M{LEFT} 20V{HIGH - BELOW}H{WIDE}" fill="none" stroke="#495057"/>'
        f'<text x="{LEFT - 6}" y="30" text-anchor="end">{top}</text>'
        f'<text x="{LEFT - 6}" y="{HIGH - BELOW}" text-anchor="end">0</text>'
        f'<text x="{LEFT}" y="{HIGH - 10}">0</text><text x="{WIDE}" y="{HIGH - 10}" text-anchor="end">{ends}</text>'
        f'<text x="{LEFT}" y="14">{escape(title)}, each {worded(series.every_ms)}; red: failed</text></svg>\n'
    )
