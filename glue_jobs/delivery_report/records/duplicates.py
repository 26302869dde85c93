"""Records that are in more than one object: found by their deliveries, named by their objects, and counted once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ..storage.days import named_files, read_files, written_beside
from ..storage.layout import Layout, kept
from ..storage.schema import CURATED
from .compaction import DayIntake, read_records, replace_day
from .manifest import read_manifest

_CONTENT: Final = tuple(name for name in CURATED.fieldNames() if name != "source")


def without_copies(
    spark: SparkSession, layout: Layout, first: date, repeated: DataFrame, intakes: Sequence[DayIntake]
) -> tuple[list[DayIntake], bool]:
    """Take records that are there twice out of the kept days, and note in their manifests which objects shared some.

    Args:
        first: The first day that is judged by. Later days than the report's may be there from earlier runs; they must
            not hold a record twice either.
        repeated: See :func:`.deliveries.repeated`.

    Returns:
        The intakes with what is noted of them, and whether any day changed.
    """
    duplicates = kept(duplicated_records(read_records(spark, layout, first), repeated), f"{layout.work}/duplicates")
    objects: dict[date, list[dict[str, Any]]] = {}
    for each in duplicated_objects(duplicates).collect():
        objects.setdefault(each["dt"], []).append({"sources": list(each["sources"]), "records": each["records"]})
    shared: dict[date, tuple[Any, ...]] = {}
    for day, found in objects.items():
        manifest = read_manifest(f"{layout.records}/dt={day}")
        if manifest is not None:
            files = named_files(layout.records, day)
            stored = read_files(spark, layout.records, CURATED, files)
            once = without_duplicates(stored, duplicates.where(F.col("dt") == F.lit(day))).coalesce(max(1, len(files)))
            new = written_beside(once.withColumn("dt", F.lit(day)), layout.records, [day])[day]
            shared[day] = (*manifest.duplicates, *found)
            replace_day(layout, day, new, replace(manifest, duplicates=shared[day]))
    return [replace(each, duplicates=shared.get(each.day, each.duplicates)) for each in intakes], bool(shared)


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
