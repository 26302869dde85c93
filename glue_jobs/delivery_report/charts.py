"""The charts of the HTML report, drawn by matplotlib as SVG: sharp at any size, readable without scripts,
text that can be searched.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.dates import DateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter

from .wording import shortened

Rows = Sequence[Mapping[str, Any]]

GOOD: Final = "#2f7d5b"
LATER: Final = "#8fc3a5"
WAITING: Final = "#e3b04b"
BAD: Final = "#c2453b"
INK: Final = "#26323b"
MUTED: Final = "#75838d"
BLUES: Final = ("#9dbfdc", "#3f7cac", "#173f5f")

_STYLE: Final[Any] = {
    # Labels are names that tenants chose: a "$" in one of them is no formula.
    "text.parse_math": False,
    "text.usetex": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "delivery-report",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": "#c9d1d6",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#e8ecee",
    "axes.axisbelow": True,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "legend.frameon": False,
    "legend.fontsize": 9,
}

_EDGE, _GRID = "#c9d1d6", "#e8ecee"

_NAMED: Final = {
    **{
        GOOD: "good",
        LATER: "later",
        WAITING: "waiting",
        BAD: "bad",
        INK: "ink",
        MUTED: "muted",
        _EDGE: "edge",
        _GRID: "grid",
    },
    **dict(zip(BLUES, ("pale", "mid", "deep"), strict=True)),
}
"""The page's names of the colours: it has others for dark screens."""

_ROUND_TIMES: Final = (1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 21_600_000, 86_400_000, 604_800_000)
"""Milliseconds."""

LABEL: Final = 36
"""Characters of a name beside a chart."""

TICKS: Final = 6
"""Durations that an axis names."""

HOURS_SHOWN: Final = 48
"""Up to so many hours are labelled by hour, more by day."""

WIDE: Final = (10.4, 2.7)
HALF: Final = (5.05, 2.9)


def fates_by_hour(rows: Rows) -> str:
    """Deliveries by hour of acceptance, stacked by outcome."""
    with mpl.rc_context(_STYLE):
        figure, axes = _canvas(WIDE if len(rows) > 1 else (WIDE[0], 1.2))
        hours = [_moment(row["hour"]) for row in rows]
        days = [_day_number(each) for each in hours]
        won = [row["delivered"] + row["acknowledged"] for row in rows]
        first = [row["first_won"] for row in rows]
        later = [max(0, all_won - at_once) for all_won, at_once in zip(won, first, strict=True)]
        given_up = [row["exhausted"] + row["expired"] + row["cancelled"] for row in rows]
        layers = [first, later, [row["open"] for row in rows], given_up]
        labels = ["delivered at first try", "delivered later", "still waiting", "given up"]
        if len(hours) > 1:
            axes.stackplot(days, layers, labels=labels, colors=[GOOD, LATER, WAITING, BAD], linewidth=0)
            _time_axis(axes, hours)
            axes.yaxis.set_major_formatter(FuncFormatter(_short_number))
            axes.set_ylim(bottom=0)
        else:
            _stacked_bar(axes, hours, layers, labels)
        _legend_above(axes)
        return _svg(figure, "Deliveries by hour of acceptance")


def percentiles_by_hour(rows: Rows, names: Sequence[str], title: str) -> str:
    """p50, p95 and p99 of a duration by hour, on a logarithmic scale.

    Args:
        rows: ``hour`` and the percentiles in milliseconds.
        names: Their columns, rising.
    """
    with mpl.rc_context(_STYLE):
        figure, axes = _canvas(HALF)
        for name, colour, label in zip(names, BLUES, ("p50", "p95", "p99"), strict=True):
            # A line breaks where there is nothing to measure, and what stands alone is a dot.
            seen = [float("nan") if row[name] is None else max(1, row[name]) for row in rows]
            around = [None, *(row[name] for row in rows), None]
            alone = [n for n in range(len(rows)) if around[n] is None and around[n + 2] is None]
            hours = [_day_number(row["hour"]) for row in rows]
            axes.plot(
                hours, seen, color=colour, linewidth=1.4, label=label, marker="o", markersize=2.5, markevery=alone
            )
        axes.set_yscale("log")
        _duration_ticks(axes.yaxis, [max(1, row[name]) for row in rows for name in names if row[name] is not None])
        _time_axis(axes, [_moment(row["hour"]) for row in rows])
        _legend_above(axes)
        return _svg(figure, title)


def attempts_needed(rows: Rows) -> str:
    """Share of success at each attempt, as bars, and the share of all deliveries won so far, as a line; how many made
    an attempt stands below its number, where the line cannot run through it.
    """
    with mpl.rc_context(_STYLE):
        figure, axes = _canvas(HALF)
        shown = rows[:12]
        numbers = [row["attempt"] for row in shown]
        axes.bar(numbers, [row["share"] for row in shown], color=LATER, width=0.62, label="succeed at this attempt")
        axes.plot(
            numbers,
            [row["won_so_far"] for row in shown],
            color=GOOD,
            marker="o",
            markersize=3.5,
            linewidth=1.4,
            label="of all deliveries won so far",
        )
        axes.set_ylim(0, 1.12)
        tried = (_short_number(row["tried"], 0) for row in shown)
        axes.set_xticks(numbers, [f"{number}\n{made}" for number, made in zip(numbers, tried, strict=True)], fontsize=8)
        axes.set_xlabel("attempt, and deliveries that made it")
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        _legend_above(axes)
        return _svg(figure, "Success by attempt number")


def failing_hours(rows: Rows, labels: Mapping[Any, str]) -> str:
    """A row per subscriber and a column per hour, the darker the larger the failed share.

    Hours without attempts stay white.

    Args:
        rows: ``who``, ``hour``, ``share`` (0..1).
        labels: What each ``who`` is called, from top to bottom; two may be called the same.
    """
    with mpl.rc_context({**_STYLE, "axes.grid": False}):
        figure, axes = _canvas((WIDE[0], 0.9 + 0.27 * max(1, len(labels))))
        hours = sorted({_moment(row["hour"]) for row in rows})
        first = hours[0]
        columns = int((hours[-1] - first).total_seconds() // 3600) + 1
        places = {who: place for place, who in enumerate(labels)}
        grid: list[list[float]] = [[float("nan")] * columns for _ in labels]
        for row in rows:
            column = int((_moment(row["hour"]) - first).total_seconds() // 3600)
            grid[places[row["who"]]][column] = row["share"]
        colours = mpl.colors.LinearSegmentedColormap.from_list("failing", ["#edf4f0", "#f2c56b", BAD, "#7d1f1a"])
        image = axes.imshow(grid, aspect="auto", cmap=colours, vmin=0, vmax=1, interpolation="nearest")
        axes.set_yticks(range(len(labels)), [_label(each) for each in labels.values()], fontsize=9, color=INK)
        ticks = _columns_with_labels(first, columns)
        axes.set_xticks(ticks, [_hour_label(first.timestamp() + tick * 3600, columns) for tick in ticks])
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        bar = figure.colorbar(image, ax=axes, pad=0.01, fraction=0.02, format=PercentFormatter(1.0, decimals=0))
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=0, labelsize=8)
        return _svg(figure, "Failed share by subscriber and hour")


def ranges(rows: Rows) -> str:
    """A line from p50 to p99 with a dot at p95 for each subscriber.

    Args:
        rows: ``label``, ``p50_ms``, ``p95_ms``, ``p99_ms``; drawn from top to bottom.
    """
    with mpl.rc_context({**_STYLE, "axes.grid.axis": "x"}):
        figure, axes = _canvas((HALF[0], 0.8 + 0.25 * max(1, len(rows))))
        places = range(len(rows))
        axes.hlines(
            places,
            [_least(row["p50_ms"]) for row in rows],
            [_least(row["p99_ms"]) for row in rows],
            color=BLUES[0],
            linewidth=4,
        )
        axes.plot(
            [_least(row["p50_ms"]) for row in rows],
            places,
            "|",
            color=BLUES[1],
            markersize=9,
            markeredgewidth=2,
            label="p50",
        )
        axes.plot([_least(row["p95_ms"]) for row in rows], places, "o", color=BLUES[2], markersize=5, label="p95")
        axes.set_yticks(places, [_label(row["label"]) for row in rows], fontsize=9, color=INK)
        axes.invert_yaxis()
        axes.set_xscale("log")
        _duration_ticks(axes.xaxis, [_least(row[name]) for row in rows for name in ("p50_ms", "p99_ms")])
        axes.tick_params(axis="y", length=0)
        _legend_above(axes)
        return _svg(figure, "Slowest subscribers: p50 to p99")


def shares(rows: Rows, *, value: str, colour: str, title: str, money: bool = False) -> str:
    """Horizontal bars with their numbers.

    Args:
        value: Column of the value.
        money: Numbers are dollars.
    """
    with mpl.rc_context({**_STYLE, "axes.grid": False}):
        figure, axes = _canvas((HALF[0], 0.55 + 0.25 * max(1, len(rows))))
        places = range(len(rows))
        values = [float(row[value]) for row in rows]
        bars = axes.barh(places, values, color=colour, height=0.66)
        texts = [
            f"${each:,.2f}" if money and each >= 1 else f"${each:.4f}" if money else f"{each:,.0f}" for each in values
        ]
        axes.bar_label(bars, texts, fontsize=8.5, color=MUTED, padding=4)
        axes.set_yticks(places, [_label(row["label"]) for row in rows], fontsize=9, color=INK)
        axes.invert_yaxis()
        axes.set_xlim(0, max([*values, 1e-9]) * 1.18)
        axes.xaxis.set_visible(False)
        axes.spines[["bottom", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        return _svg(figure, title)


def _canvas(size: tuple[float, float]) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasSVG(figure)
    return figure, figure.add_subplot()


def _stacked_bar(
    axes: Axes, hours: Sequence[datetime], layers: Sequence[Sequence[float]], labels: Sequence[str]
) -> None:
    """A report of one hour has nothing to draw an area between."""
    below = 0.0
    for (height,), label, colour in zip(layers, labels, (GOOD, LATER, WAITING, BAD), strict=True):
        axes.barh([0], [height], left=[below], label=label, color=colour, height=0.4)
        below += height
    axes.set_yticks([0], [f"{hours[0]:%d %b %H:00}"])
    axes.set_ylim(-0.6, 0.6)
    axes.grid(visible=False)


def _time_axis(axes: Axes, hours: Sequence[datetime]) -> None:
    """Days as "14 Nov"; hours as "14:00" when it is a day or two."""
    if len(hours) < 2:
        return
    span_days = (hours[-1] - hours[0]).total_seconds() / 86_400
    step = 3 / 24 if span_days <= 1 else 6 / 24 if span_days <= 2 else max(1, round(span_days / 8))
    first = _day_number(hours[0].replace(hour=0))
    ticks = [first + step * n for n in range(int(span_days / step) + 2)]
    low, high = _day_number(hours[0]), _day_number(hours[-1])
    axes.set_xticks([each for each in ticks if low <= each <= high])
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M" if span_days <= 2 else "%d %b"))  # type: ignore[no-untyped-call]
    # All of the time, also where there is nothing to measure: else days without values are printed over each other.
    axes.set_xlim(low, high)


def _duration_ticks(axis: Axis, values: Sequence[float]) -> None:
    """Ticks at round durations, on a logarithmic scale."""
    low, high = min(values, default=1), max(values, default=1)
    inside = [each for each in _ROUND_TIMES if low / 2 <= each <= high * 2]
    # As many as stand beside each other on half a page.
    every = -(-len(inside) // TICKS)
    axis.set_major_locator(FixedLocator(inside[::every] if inside else [low]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(_short_time))


def _legend_above(axes: Axes) -> None:
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1.0), ncols=4, borderaxespad=0, handlelength=1.2, columnspacing=1.4
    )


def _label(text: str) -> str:
    """A name of any length and content on one line beside a chart."""
    return shortened(text, LABEL)


def _least(milliseconds: int | None) -> int:
    """A logarithmic scale has no zero."""
    return max(1, milliseconds or 1)


def _day_number(value: datetime) -> float:
    """A time as matplotlib counts it, in days."""
    return float(date2num(_moment(value)))  # type: ignore[no-untyped-call]


def _moment(value: datetime) -> datetime:
    return value.replace(tzinfo=None)


def _columns_with_labels(first: datetime, columns: int) -> list[int]:
    """At most nine columns that are labelled: midnights if their labels are days, so that each is there once."""
    days = columns > HOURS_SHOWN
    begin, every = ((24 - first.hour) % 24, 24) if days else (0, 1)
    step = every * max(1, -(-((columns - begin) // every) // 8))
    return [*range(begin, columns, step)]


def _hour_label(epoch_s: float, columns: int) -> str:
    moment = datetime.fromtimestamp(epoch_s)  # noqa: DTZ006 (made from a naive UTC time by timestamp(), so the zone cancels out)
    return f"{moment:%d %b}" if columns > HOURS_SHOWN else f"{moment:%H:%M}"


def _short_number(value: float, _: object) -> str:
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.0f}"


def _short_time(milliseconds: float, _: object) -> str:
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")):
        if milliseconds >= size:
            return f"{milliseconds / size:.3g} {unit}"
    return f"{milliseconds:.3g} ms"


def _svg(figure: Figure, title: str) -> str:
    """The figure as an SVG element that fits its place on the page."""
    written = io.StringIO()
    with warnings.catch_warnings():
        # Text stays text, so the browser has the glyphs that matplotlib's font, used for measuring only, has not.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Title": title})
    text = written.getvalue()
    svg = text[text.index("<svg") :]
    for colour, name in _NAMED.items():
        svg = svg.replace(f": {colour}", f": var(--c-{name}, {colour})")
    return re.sub(
        r'<svg [^>]*?viewBox="([^"]+)"[^>]*>', rf'<svg role="img" aria-label="{title}" viewBox="\1">', svg, count=1
    )
