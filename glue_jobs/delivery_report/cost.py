"""What each project's deliveries cost at list prices, line by line."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from .list_prices import PRICES
from .storage import small_table
from .usage import USAGE

FATES = ("messages", "deliveries", "body_bytes", "inline_bytes", "large_bodies", "acknowledged", "expired", "cancelled")
"""Sums of deliveries that it counts with."""

_USED = (
    *FATES,
    *("attempts", "first_attempts", "parks", "bytes_out", "busy_ms", "notified", "retries", "changes"),
)
"""What the price table counts with."""

TRY_MS = 100
"""Time of a try where only its price is asked for."""


def used(attempts: DataFrame, fates: DataFrame, notified: DataFrame) -> DataFrame:
    """One row per project: what it did, as the price table needs it.

    Args:
        attempts: Sums of attempts by project (:func:`.cells.summed`).
        fates: Sums of deliveries by project (:func:`.traffic.fates`).
        notified: Sums of those attempts by project that sent notifications to consumers.
    """
    both = (
        fates.select("project", *FATES)
        .join(
            attempts.select("project", "attempts", "first_attempts", "parks", "bytes_out", "busy_ms"), "project", "full"
        )
        .join(notified.select("project", F.col("attempts").alias("notified")), "project", "left")
    )
    zero = both.na.fill(0)
    return zero.withColumns(
        {
            "retries": F.col("attempts") - F.col("first_attempts"),
            "changes": F.col("attempts") + F.col("acknowledged") + F.col("expired") + F.col("cancelled"),
        }
    )


def bill(usage: DataFrame) -> DataFrame:
    """The lines of each project's bill: ``project``, ``item``, ``units``, ``unit_usd``, ``usd``.

    Args:
        usage: See :func:`used`.
    """
    lines = [
        F.struct(
            F.lit(each.item).alias("item"),
            F.expr(each.units).cast("double").alias("units"),
            F.lit(PRICES[each.price]).alias("unit_usd"),
        )
        for each in USAGE
    ]
    return (
        usage.select("project", F.explode(F.array(*lines)).alias("line"))
        .select("project", "line.*")
        .withColumn("usd", F.col("units") * F.col("unit_usd"))
    )


def usd_per_try(spark: SparkSession) -> float:
    """What one more try of a small message costs."""
    one = {**dict.fromkeys(_USED, 0), "attempts": 1, "retries": 1, "changes": 1, "busy_ms": TRY_MS}
    columns = StructType([StructField("project", StringType()), *(StructField(name, LongType()) for name in _USED)])
    row = bill(small_table(spark, [{"project": "", **one}], columns)).agg(F.sum("usd").alias("usd")).first()
    return float(row["usd"]) if row is not None else 0.0
