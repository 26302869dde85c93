"""Distributions as counts in logarithmic buckets: small, mergeable,
and sums and percentiles of any grouping come from them in one go.

A bucket is 2 % wide and remembers its largest value, so a percentile is a value that was really seen, at most 2 % above
the exact one and exact where values lie further apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from ..storage.driver import columns, total

GROWTH: Final = 1.02
"""Each bucket's upper bound is this many times its lower one."""


def bucket_of(milliseconds: str) -> str:
    """The bucket of a duration in milliseconds; 0 and below share bucket -1. Null stays null."""
    inside = f"floor(ln(greatest({milliseconds}, 1)) / {math.log(GROWTH)!r})::INTEGER"
    return f"CASE WHEN {milliseconds} IS NULL THEN NULL WHEN {milliseconds} < 1 THEN -1 ELSE {inside} END"


def rolled_up(
    cells: str,
    keys: Sequence[str],
    *,
    sums: Mapping[str, str],
    count: str,
    largest: str,
    wanted: Mapping[str, float],
    kept: Sequence[str] = (),
) -> str:
    """A query of one row per group, or of one over everything: its sums, its nearest-rank percentiles, its largest
    value.

    Args:
        cells: A table of counts per ``bucket`` (null where there is nothing to measure); a group may have several of
            one bucket.
        count: Column of how many measured values a cell holds.
        largest: Column of the largest of them; also a column of the result.
        wanted: Percentiles to make, share (0..1) by name.
        kept: Columns of which the largest value is kept as it is.
    """
    group = f"PARTITION BY {', '.join(keys)}" if keys else ""
    reached = ", ".join(
        f"min({largest}) FILTER (_n > 0 AND _upto >= ceil(_total * {share}::DOUBLE)) AS {name}"
        for name, share in wanted.items()
    )
    names = [*(f"max({each}) AS {each}" for each in kept), *(total(value, name) for name, value in sums.items())]
    # Within a bucket the cell with the smaller maximum comes first: all values up to a cell are then no larger than its
    # own.
    return f"""
        WITH _measured AS (
            SELECT *, CASE WHEN bucket IS NULL THEN 0 ELSE {count} END AS _n FROM {cells}
        ), _ranked AS (
            SELECT *, sum(_n) OVER ({group} ORDER BY bucket NULLS FIRST, {largest}
                                    ROWS UNBOUNDED PRECEDING) AS _upto,
                   sum(_n) OVER ({group}) AS _total
            FROM _measured
        )
        SELECT {columns(keys)}{", ".join(names)}, max({largest}) AS {largest}, {reached}
        FROM _ranked GROUP BY ALL"""
