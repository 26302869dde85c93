"""Findings by their cause: first the objects that could not be read, then each kind of finding once per queue,
with how many there are.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

FOLLOW: Final = ("record_missing", "never_accepted", "not_owed", "overdue")
"""Kinds of findings that missing records cause, wherever these were lost."""

_HOUR: Final = r"dt=(\d{4}-\d\d-\d\d)/hour=(\d\d)/"


def by_cause(findings: DataFrame) -> DataFrame:
    """One row per cause: an object each; and of the findings that follow from none, each kind once per queue.

    Columns: ``severity``, ``finding``, whose (``project``, ``queue``), how many (``count``), how many findings follow
    from it (``explained``), the first and last hour of acceptance, one ``delivery_id`` and ``detail`` as an example. A
    finding follows from an object when it is of the kind that missing records make, and was accepted in the object's
    hour or the one before.

    Args:
        findings: See :data:`.findings.FINDING`.
    """
    about_objects = F.col("message_id").isNull() & F.col("delivery_id").isNull()
    objects = findings.where(about_objects).select(
        "severity", "finding", "project", "queue", "detail", _object_hour(F.col("detail")).alias("hour")
    )
    deliveries = findings.where(~about_objects)
    hour = F.expr("interval 1 hour")
    reach = objects.where((F.col("severity") == "breach") & F.col("hour").isNotNull()).select(
        F.col("detail").alias("object"), F.explode(F.array("hour", F.col("hour") - hour)).alias("hour")
    )
    lost = deliveries.where(F.col("finding").isin(*FOLLOW))
    follows = lost.join(F.broadcast(reach), "hour").groupBy("object").agg(F.count(F.lit(1)).alias("explained"))
    zero = F.lit(0).cast("long")
    of_objects = objects.join(F.broadcast(follows), F.col("detail") == F.col("object"), "left").select(
        zero.alias("place"),
        *("severity", "finding", "project", "queue"),
        F.lit(1).cast("long").alias("count"),
        F.coalesce("explained", zero).alias("explained"),
        F.col("hour").alias("first_hour"),
        F.col("hour").alias("last_hour"),
        F.lit(None).cast("string").alias("delivery_id"),
        "detail",
    )
    marked = deliveries.join(
        F.broadcast(reach.select("hour").distinct().withColumn("reached", F.lit(True))), "hour", "left"
    )
    explained = F.col("reached").isNotNull() & F.col("finding").isin(*FOLLOW)
    example = F.min(F.struct("delivery_id", "detail"))
    of_deliveries = (
        marked.where(~explained)
        .groupBy("severity", "finding", "project", "queue")
        .agg(
            F.count(F.lit(1)).alias("count"),
            F.min("hour").alias("first_hour"),
            F.max("hour").alias("last_hour"),
            example.alias("example"),
        )
        .select(
            F.lit(1).cast("long").alias("place"),
            *("severity", "finding", "project", "queue", "count"),
            zero.alias("explained"),
            *("first_hour", "last_hour"),
            "example.delivery_id",
            "example.detail",
        )
    )
    return of_objects.unionByName(of_deliveries)


def _object_hour(detail: Column) -> Column:
    """The hour of the object that a finding names, null when it names none."""
    day, hour = (F.regexp_extract(detail, _HOUR, part) for part in (1, 2))
    return F.when(day != "", F.to_timestamp(F.concat(day, F.lit(" "), hour), "yyyy-MM-dd HH"))
