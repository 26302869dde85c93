"""Attempts counted once, in cells fine enough that every report on attempts is a sum of them.

A cell is one project, queue, subscriber, hour, kind of outcome and latency bucket.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType, TimestampType

from .percentiles import at_levels, bucket_of, regrouped, rolled_up

WHO: Final = ("project", "queue", "subscriber_id")

NAMES: Final = ("subscriber", "dialect")
"""A subscriber's name and protocol; a group keeps one of each."""

OWN: Final = "own"
"""The level of the hub's own messages, see :func:`is_own`."""

OWN_QUEUES: Final = "ironmq/"
"""How the names of their queues begin."""

ROUTED_QUEUE: Final = "hub/incoming"
"""Where a hub message waits until the hub's router has made a copy of it for each service that wants it."""

COPY_QUEUES: Final = "hub/"
"""How the names of the queues of such copies begin."""

LARGEST: Final = "longest_ms"
PERCENTILES: Final = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}

_TEXTS: Final = ("project", "queue", "subscriber_id", "subscriber", "dialect", "kind", "verdict", "error_class")
_SUMS: Final = ("attempts", "first_attempts", "parks", "bytes_out", "bytes_in")

CELL: Final = StructType(
    [
        *(StructField(name, StringType()) for name in _TEXTS),
        StructField("status_code", IntegerType()),
        StructField("hour", TimestampType()),
        StructField("bucket", IntegerType()),
        *(StructField(name, LongType()) for name in (*_SUMS, "duration_ms", "longest_ms")),
    ]
)
"""Columns of a cell; ``duration_ms`` is the sum of its attempts, ``longest_ms`` their maximum."""

HOURLY: Final = StructType(
    [
        *(StructField(name, StringType()) for name in WHO),
        StructField("hour", TimestampType()),
        *(StructField(name, StringType()) for name in ("subscriber", "dialect")),
        *(
            StructField(name, LongType())
            for name in (
                *("attempts", "delivered", "reserved", "failed", "polls", "first_attempts", "first_won", "parks"),
                *("bytes_out", "bytes_in", "busy_ms", "longest_ms", "p50_ms", "p95_ms", "p99_ms"),
            )
        ),
    ]
)
"""Columns of an hour of a subscriber.

Kept by day, so that later runs compare with days long past without reading their records again.
"""


def attempt_cells(records: DataFrame) -> DataFrame:
    """The cells of attempts and polls."""
    made = F.col("kind").isin("attempt", "poll")
    return (
        records.where(made)
        .select(
            *(F.coalesce(name, F.lit("")).alias(name) for name in _TEXTS),
            F.coalesce("status_code", F.lit(0)).alias("status_code"),
            F.date_trunc("hour", "at").alias("hour"),
            bucket_of(F.col("duration_ms")).alias("bucket"),
            (F.col("attempt") == 1).cast("long").alias("first"),
            F.coalesce("scheduled", F.lit(False)).cast("long").alias("in_index"),
            "bytes_out",
            "bytes_in",
            "duration_ms",
        )
        .groupBy(*_TEXTS, "status_code", "hour", "bucket")
        .agg(
            F.count(F.lit(1)).alias("attempts"),
            F.sum("first").alias("first_attempts"),
            F.sum("in_index").alias("parks"),
            F.sum("bytes_out").alias("bytes_out"),
            F.sum("bytes_in").alias("bytes_in"),
            F.sum("duration_ms").alias("duration_ms"),
            F.max("duration_ms").alias("longest_ms"),
        )
        .select(*CELL.fieldNames())
    )


def outcome_sums(cells: DataFrame) -> dict[str, Column]:
    """What is added up over cells, by name; over coarser cells, in which outcomes are columns already, just these."""
    names = [name for name in HOURLY.fieldNames() if name not in (*WHO, "hour", *NAMES, LARGEST, *PERCENTILES)]
    if "verdict" not in cells.columns:
        return {name: F.col(name) for name in names}
    attempts, verdict = F.col("attempts"), F.col("verdict")
    took = verdict.isin("delivered", "reserved", "poll")
    return {
        "attempts": attempts,
        "delivered": F.when(verdict == "delivered", attempts).otherwise(0),
        "reserved": F.when(verdict == "reserved", attempts).otherwise(0),
        "failed": F.when(verdict == "failed", attempts).otherwise(0),
        "polls": F.when(F.col("kind") == "poll", attempts).otherwise(0),
        "first_attempts": F.col("first_attempts"),
        "first_won": F.when(took, F.col("first_attempts")).otherwise(0),
        "parks": F.col("parks"),
        "bytes_out": F.col("bytes_out"),
        "bytes_in": F.col("bytes_in"),
        "busy_ms": F.col("duration_ms"),
    }


def summed(cells: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """Attempts of each group: how many, how they ended, percentiles of their time, bytes.

    ``attempts`` counts polls too; ``first_won`` are first attempts that the subscriber took for good or reserved (202).
    ``busy_ms`` is the time spent in them.

    Args:
        cells: See :func:`attempt_cells`; or coarser ones, in which outcomes are columns.
    """
    return rolled_up(
        cells,
        keys,
        sums=outcome_sums(cells),
        count="attempts",
        largest=LARGEST,
        wanted=PERCENTILES,
        kept=[name for name in NAMES if name in cells.columns],
    )


def is_own() -> Column:
    """Whether something is about a message of the hub's own, for a project: a notification of an alert, spans, or a
    hub message on its way to the hub's router, which is nobody's subscriber.

    The proof and the bill count those; what tells owners of their traffic does not (docs/decisions/interfaces.md).
    """
    return F.coalesce("queue", F.lit("")).startswith(OWN_QUEUES) | is_routed()


def is_routed() -> Column:
    """Whether something is about a hub message as it was posted."""
    return F.coalesce(F.col("queue") == ROUTED_QUEUE, F.lit(False))


def is_copy() -> Column:
    """Whether something is about a hub message as a service gets it; it was posted once, for all of them."""
    return F.coalesce(F.col("queue").startswith(COPY_QUEUES), F.lit(False)) & ~is_routed()


def attempt_levels(cells: DataFrame) -> DataFrame:
    """:func:`summed` of three groupings in one pass, told apart by ``level``: ``overall``, by ``subscriber``,
    by ``hour``; and of the hub's own messages :data:`OWN`, by subscriber.

    Args:
        cells: See :func:`attempt_cells`.
    """
    levels = {"overall": (), "subscriber": (*WHO, *NAMES), "hour": ("hour",)}
    keys = ("level", *WHO, "hour")
    each = at_levels(cells, levels, {OWN: levels["subscriber"]}, is_own())
    coarser = regrouped(each, (*keys, *NAMES), sums=outcome_sums(cells), largest=LARGEST)
    return summed(coarser, keys)


def hourly(cells: DataFrame) -> DataFrame:
    """Attempts per project, queue, subscriber and hour, as :data:`HOURLY` lists the columns."""
    return summed(cells, (*WHO, "hour")).select(*HOURLY.fieldNames())


def failures_by_cause(cells: DataFrame, keys: tuple[str, ...] = ()) -> DataFrame:
    """Why attempts failed: the error class if there was no answer, otherwise the status.

    Args:
        cells: See :func:`attempt_cells`.
        keys: Columns to group by; none for everybody together.
    """
    status = F.concat(F.lit("status "), F.col("status_code"))
    cause = F.when(F.col("error_class") != "", F.col("error_class")).otherwise(status).alias("cause")
    failed = cells.where(F.col("verdict") == "failed")
    return failed.groupBy(*keys, cause).agg(F.sum("attempts").alias("attempts"))


def usual_cause(cells: DataFrame) -> DataFrame:
    """The most frequent cause of each subscriber's failures."""
    causes = failures_by_cause(cells, WHO).groupBy(*WHO).agg(F.max(F.struct("attempts", "cause")).alias("most"))
    return causes.select(*WHO, F.col("most.cause").alias("cause"))


def outcomes(cells: DataFrame) -> DataFrame:
    """How attempts ended per project, queue and subscriber: status codes, and error classes where no answer came."""
    return (
        cells.groupBy(*WHO, "verdict", "status_code", "error_class")
        .agg(
            F.max("subscriber").alias("subscriber"),
            F.sum("attempts").alias("attempts"),
            F.min("hour").alias("first_hour"),
            F.max("hour").alias("last_hour"),
        )
        .select(*WHO, "subscriber", "verdict", "status_code", "error_class", "attempts", "first_hour", "last_hour")
    )
