"""What each project's deliveries cost at list prices, line by line."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .list_prices import PRICES
from .usage import USAGE

FATES = ("messages", "deliveries", "body_bytes", "inline_bytes", "large_bodies", "acknowledged", "expired", "cancelled")
"""Sums of deliveries that it counts with."""


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
