"""Records that are in more than one object: found by their deliveries, named by their objects, and counted once."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ..storage.schema import CURATED

_CONTENT: Final = tuple(name for name in CURATED.fieldNames() if name != "source")


def duplicated_records(records: DataFrame, repeated: DataFrame) -> DataFrame:
    """Identical records that are there more than once: ``dt``, ``record_id``, ``content``,
    ``copies`` and their ``sources``.

    Two records of one id with other content are not duplicates but a contradiction, which :mod:`.conservation` names.

    Args:
        records: All records of the period, with their day (``dt``).
        repeated: See :func:`.deliveries.repeated`.
    """
    messages = repeated.select("project", "queue_uid", "message_id").distinct()
    theirs = records.join(messages, ["project", "queue_uid", "message_id"], "left_semi")
    return (
        theirs.groupBy("dt", "record_id", _content().alias("content"))
        .agg(F.count(F.lit(1)).alias("copies"), F.array_sort(F.collect_list("source")).alias("sources"))
        .where(F.col("copies") > 1)
    )


def duplicated_objects(duplicates: DataFrame) -> DataFrame:
    """Which objects share how many records: ``dt``, ``sources``, ``records``."""
    return duplicates.groupBy("dt", "sources").agg(F.count(F.lit(1)).alias("records")).orderBy("dt", "sources")


def without_duplicates(day: DataFrame, duplicates: DataFrame) -> DataFrame:
    """One day's records with each duplicate once, as from the first of its objects.

    Args:
        day: All records of the day.
        duplicates: See :func:`duplicated_records`, those of the day.
    """
    first = duplicates.select("record_id", "content", F.col("sources")[0].alias("keep"))
    keyed = day.withColumn("content", _content()).join(first, ["record_id", "content"], "left")
    once = keyed.where(F.col("keep").isNotNull()).dropDuplicates(["record_id", "content"])
    return (
        keyed.where(F.col("keep").isNull())
        .unionByName(once.withColumn("source", F.col("keep")))
        .select(*CURATED.fieldNames())
    )


def _content() -> Column:
    return F.xxhash64(*(F.col(name) for name in _CONTENT))
