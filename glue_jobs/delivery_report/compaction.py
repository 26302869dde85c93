"""Raw records to Parquet, day by day: the raw objects of a day are read once, and the day is replaced whole."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from pyspark.sql import Column, GroupedData, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from .intake import IncompleteObject, incomplete_objects, rejected_lines, rejection, usable
from .schema import CORRUPT, CURATED, RAW
from .storage import Layout, list_objects, read_days, small_table

__all__ = ["DayIntake", "compact"]

_logger = logging.getLogger(__name__)

FILE_BYTES = 256 * 1024 * 1024
"""Size aimed at for a Parquet file (128 MB to 1 GB)."""

PARQUET_PER_GZIP = 1.3
"""Bytes of Parquet that a byte of gzip JSON lines becomes; measured in ``docs/bench-records.md``."""

REJECTED = StructType([StructField(name, StringType()) for name in ("source", "reason", "line")])


@dataclass(frozen=True, slots=True, kw_only=True)
class DayIntake:
    """What became of one day's raw objects.

    Attributes:
        day: The day.
        objects: Raw objects found.
        bytes: Their size.
        lines: Lines read.
        used: Records kept.
        rejected: Lines that could not be used.
        incomplete: Objects of which not every record could be used.
    """

    day: date
    objects: int
    bytes: int
    lines: int
    used: int
    rejected: int
    incomplete: tuple[IncompleteObject, ...] = ()


def compact(spark: SparkSession, records: str, layout: Layout, days: Sequence[date]) -> list[DayIntake]:
    """Compact every day that has raw objects; a day without is left as it was (its raw objects may have been removed by age).

    Days are worked on side by side, each as few tasks as it will have files, so nothing is shuffled.

    Args:
        spark: Session.
        records: Folder that holds ``dt=...``.
        layout: Where to write.
        days: Which days.

    Returns:
        The days that had raw objects, in order.
    """

    def one(day: date) -> tuple[DayIntake, frozenset[str]] | None:
        return _compact_day(spark, f"{records}/dt={day}", layout, day)

    with ThreadPoolExecutor(max_workers=max(1, spark.sparkContext.defaultParallelism)) as side_by_side:
        done = [each for each in side_by_side.map(one, days) if each is not None]
    if not done:
        return []
    compacted = {intake.day for intake, _ in done}
    kept = read_days(spark, layout.records, CURATED, min(compacted), max(compacted))
    used = _counted(kept.groupBy("dt", "source"))
    rejected = {
        intake.day: _reasons(spark, f"{layout.rejected}/dt={intake.day}") for intake, _ in done if intake.rejected
    }
    return [
        replace(
            intake,
            incomplete=incomplete_objects(sources, used.get(intake.day, {}), rejected.get(intake.day, {})),
        )
        for intake, sources in done
    ]


def _compact_day(spark: SparkSession, path: str, layout: Layout, day: date) -> tuple[DayIntake, frozenset[str]] | None:
    """One day: what became of it, and the names of its objects."""
    objects = list_objects(spark, path)
    if not objects.names:
        return None
    counts = Observation(f"intake {day}")
    file = F.col("_metadata.file_path")
    lines = (
        spark.read.schema(RAW)
        .option("columnNameOfCorruptRecord", CORRUPT)
        .option("recursiveFileLookup", "true")
        .json(path)
        .withColumns({"source": _source(file), "rejection": rejection(_filed_under(file))})
        .observe(counts, F.count(F.lit(1)).alias("lines"), F.count("rejection").alias("rejected"))
    )
    files = max(1, round(objects.bytes * PARQUET_PER_GZIP / FILE_BYTES))
    usable(lines).coalesce(files).write.mode("overwrite").parquet(f"{layout.records}/dt={day}")
    seen = counts.get
    _keep_rejected(spark, path, f"{layout.rejected}/dt={day}", day, any_now=seen["rejected"] > 0)
    used = seen["lines"] - seen["rejected"]
    _logger.info("      %s: %d records of %d objects, %d rejected", day, used, len(objects.names), seen["rejected"])
    intake = DayIntake(
        day=day,
        objects=len(objects.names),
        bytes=objects.bytes,
        lines=seen["lines"],
        used=used,
        rejected=seen["rejected"],
    )
    return intake, objects.names


def _filed_under(path: Column) -> Column:
    """The day an object is filed under."""
    return F.to_date(F.substring_index(F.substring_index(path, "/dt=", -1), "/", 1))


def _source(path: Column) -> Column:
    """An object's key below its day: ``hour=05/messages-...json.gz``."""
    return F.substring_index(path, "/", -2)


def _keep_rejected(spark: SparkSession, path: str, kept: str, day: date, *, any_now: bool) -> None:
    """Keep the lines that could not be used with their reasons, and take away what only an earlier run rejected.

    Reads the day again, which only a day with such lines costs.
    """
    if any_now:
        texts = spark.read.option("recursiveFileLookup", "true").text(path)
        found = texts.withColumn("source", _source(F.col("_metadata.file_path")))
        rejected_lines(found, day).coalesce(1).write.mode("overwrite").json(kept)
    elif list_objects(spark, kept).bytes:
        small_table(spark, [], REJECTED).write.mode("overwrite").json(kept)


def _reasons(spark: SparkSession, kept: str) -> dict[str, dict[str, int]]:
    """Rejected lines by object and reason."""
    return _counted(spark.read.schema(REJECTED).json(kept).groupBy("source", "reason"))


def _counted(grouped: GroupedData) -> dict[Any, dict[str, int]]:
    """Rows of two-part groups, by the first part and the second."""
    counts: dict[Any, dict[str, int]] = {}
    for first, second, count in grouped.count().collect():
        counts.setdefault(first, {})[second] = count
    return counts
