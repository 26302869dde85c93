"""Distributions as counts in logarithmic buckets: small, mergeable,
and sums and percentiles of any grouping come from them in one go.

A bucket is 2 % wide and remembers its largest value, so a percentile is a value that was really seen, at most 2 % above
the exact one and exact where values lie further apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

__all__ = ["GROWTH", "at_levels", "bucket_of", "regrouped", "rolled_up"]

GROWTH: Final = 1.02
"""Each bucket's upper bound is this many times its lower one."""


def bucket_of(milliseconds: Column) -> Column:
    """The bucket of a duration in milliseconds; 0 and below share bucket -1. Null stays null."""
    return F.when(milliseconds < 1, F.lit(-1)).otherwise(F.floor(F.log(milliseconds) / math.log(GROWTH)).cast("int"))


def at_levels(
    cells: DataFrame, levels: Mapping[str, Sequence[str]], apart: Mapping[str, Sequence[str]], condition: Column
) -> DataFrame:
    """Each cell once for each of several groupings, so that one pass makes them all: ``level`` names the grouping,
    its other keys are null.

    Args:
        cells: See :func:`rolled_up`.
        levels: Keys of each grouping by its name.
        apart: Those of cells that are in none of them.
        condition: Which these are.
    """
    keys = list(dict.fromkeys(key for used in (*levels.values(), *apart.values()) for key in used))
    types = {each.name: each.dataType for each in cells.schema}

    def key_of(key: str, used: Sequence[str]) -> Column:
        return (F.col(key) if key in used else F.lit(None).cast(types[key])).alias(key)

    def each(groupings: Mapping[str, Sequence[str]]) -> Column:
        named = groupings.items()
        return F.array(
            *(F.struct(F.lit(name).alias("level"), *(key_of(key, used) for key in keys)) for name, used in named)
        )

    others = [name for name in cells.columns if name not in keys]
    at = F.explode(F.when(condition, each(apart)).otherwise(each(levels)))
    return cells.select(*others, at.alias("_at")).select(*others, "_at.*")


def regrouped(cells: DataFrame, keys: Sequence[str], *, sums: Mapping[str, Column], largest: str) -> DataFrame:
    """Cells of coarser groups: fewer, and as good for every roll-up within those groups.

    Args:
        cells: See :func:`rolled_up`.
        keys: The coarser groups.
        sums: Columns to make by adding up, by name.
        largest: Column of the largest value of a cell.
    """
    return cells.groupBy(*keys, "bucket").agg(
        F.max(largest).alias(largest), *(F.sum(value).alias(name) for name, value in sums.items())
    )


def rolled_up(
    cells: DataFrame,
    keys: Sequence[str],
    *,
    sums: Mapping[str, Column],
    count: str,
    largest: str,
    wanted: Mapping[str, float],
    kept: Sequence[str] = (),
) -> DataFrame:
    """One row per group: its sums, its nearest-rank percentiles, its largest value.

    All rows of a group are brought together, so groups much coarser than the cells are better made of :func:`regrouped`
    cells.

    Args:
        cells: Counts per ``bucket`` (null where there is nothing to measure); a group may have several of one bucket.
        keys: What to group by; empty for one row over everything.
        sums: Columns to make by adding up, by name.
        count: Column of how many measured values a cell holds.
        largest: Column of the largest of them; also a column of the result.
        wanted: Percentiles to make, share (0..1) by name.
        kept: Columns of which the largest value is kept as it is (names).
    """
    group = Window.partitionBy(*keys) if keys else Window.partitionBy(F.lit(0))
    # Within a bucket the cell with the smaller maximum comes first: all values up to a cell are then no larger than its
    # own.
    rising = group.orderBy(F.asc_nulls_first("bucket"), F.asc(largest))
    so_far = rising.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    whole = rising.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    measured = cells.withColumn("_n", F.when(F.col("bucket").isNotNull(), F.col(count)).otherwise(0))
    ranked = measured.withColumns({"_upto": F.sum("_n").over(so_far), "_total": F.sum("_n").over(whole)})
    reached = {
        name: (F.col("_n") > 0) & (F.col("_upto") >= F.ceil(F.col("_total") * share)) for name, share in wanted.items()
    }
    return ranked.groupBy(*keys).agg(
        *(F.max(name).alias(name) for name in kept),
        *(F.sum(value).alias(name) for name, value in sums.items()),
        F.max(largest).alias(largest),
        *(F.min(F.when(far, F.col(largest))).alias(name) for name, far in reached.items()),
    )
