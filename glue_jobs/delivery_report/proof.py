"""From raw records to the proof: compacted days, one row per delivery, and everything that is wrong by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from .arguments import Arguments, BadInput
from .compaction import DayIntake, compact
from .conservation import (
    delivery_findings,
    is_overdue,
    object_findings,
    order_findings,
    overdue_findings,
    with_standing,
)
from .deliveries import DELIVERY, delivery_rows, is_repeated, is_suspicious, repeated, suspicious
from .duplicates import duplicated_objects, duplicated_records, without_duplicates
from .progress import Steps
from .schema import CURATED
from .storage import Layout, count_objects, kept, newest_day, read_days, write_days

__all__ = ["Proof", "prove"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What is known after the first half of a run.

    Attributes:
        records: Compacted records from the first day of the report on.
        deliveries: :func:`.conservation.with_standing` of the deliveries accepted on the report's days.
        findings: Everything that is wrong.
        intakes: What became of each day's raw objects.
        as_of: When deliveries were judged.
        set_aside: Stream records that the records function could not turn into delivery records.
    """

    records: DataFrame
    deliveries: DataFrame
    findings: DataFrame
    intakes: Sequence[DayIntake]
    as_of: datetime
    set_aside: int


def prove(spark: SparkSession, arguments: Arguments, layout: Layout, steps: Steps) -> Proof:
    """Compact the report's days, rebuild the deliveries accepted on them, and hold them against what was owed.

    Args:
        spark: Session.
        arguments: What to do.
        layout: Where to write.
        steps: Told of progress.

    Raises:
        BadInput: There are no records on these days, neither raw nor compacted.
    """
    with steps("Compacting raw records"):
        intakes = compact(spark, arguments.input, layout, arguments.days)
    records = read_days(spark, layout.records, CURATED, arguments.date_from)
    last_day = newest_day(records)
    if last_day is None:
        raise BadInput(
            f"no records under {arguments.input} from {arguments.date_from} to {arguments.date_to}: "
            f"looked for {arguments.input}/dt={arguments.date_from} and the days after it"
        )
    # A delivery is judged by records up to the end of the last compacted day; later ones may simply not be there yet.
    as_of = min(arguments.now, datetime.combine(last_day + timedelta(days=1), datetime.min.time(), UTC))
    with steps("Rebuilding deliveries"):
        counted = _rebuild(records, arguments, as_of, layout)
        lives = read_days(spark, layout.deliveries, DELIVERY, arguments.date_from, arguments.date_to)
        duplicates: list[dict[str, Any]] = []
        if counted["repeated"] or counted["repeated_elsewhere"]:
            rows = delivery_rows(records) if counted["repeated_elsewhere"] else lives
            duplicates = _without_duplicates(spark, records, rows, layout)
        if duplicates:
            records = read_days(spark, layout.records, CURATED, arguments.date_from)
            counted = _rebuild(records, arguments, as_of, layout)
            lives = read_days(spark, layout.deliveries, DELIVERY, arguments.date_from, arguments.date_to)
    with steps("Proving conservation"):
        deliveries = with_standing(lives, as_of, arguments.grace)
        found = object_findings(spark, intakes, duplicates).unionByName(order_findings(records))
        if counted["overdue"]:
            found = found.unionByName(overdue_findings(deliveries))
        if counted["suspicious"]:
            suspects = kept(suspicious(deliveries), f"{layout.work}/suspects")
            found = found.unionByName(delivery_findings(records, suspects))
        findings = kept(found.coalesce(1), f"{layout.work}/findings")
        set_aside = count_objects(spark, f"{arguments.input}/quarantine")
    return Proof(
        records=records,
        deliveries=deliveries,
        findings=findings,
        intakes=intakes,
        as_of=as_of,
        set_aside=set_aside,
    )


def _rebuild(records: DataFrame, arguments: Arguments, as_of: datetime, layout: Layout) -> dict[str, int]:
    """Write the deliveries accepted on the report's days; what was seen on the way.

    Returns:
        How many deliveries are ``suspicious``, ``overdue``, ``repeated``, and ``repeated_elsewhere``: accepted on other days.
    """
    rows = with_standing(delivery_rows(records), as_of, arguments.grace).withColumn("dt", F.to_date("accepted_at"))
    in_report = F.col("dt").between(F.lit(arguments.date_from), F.lit(arguments.date_to))
    conditions = {
        "suspicious": in_report & is_suspicious(),
        "overdue": in_report & is_overdue(),
        "repeated": in_report & is_repeated(),
        "repeated_elsewhere": ~in_report & is_repeated(),
    }
    seen = Observation("deliveries")
    watched = rows.observe(seen, *(F.count(F.when(when, 1)).alias(name) for name, when in conditions.items()))
    write_days(watched.where(in_report).select(*DELIVERY.fieldNames(), "dt"), layout.deliveries)
    return dict(seen.get)


def _without_duplicates(
    spark: SparkSession, records: DataFrame, rows: DataFrame, layout: Layout
) -> list[dict[str, Any]]:
    """Take records that are there twice out of the compacted days; the objects they were in, none when nothing was changed."""
    duplicates = kept(duplicated_records(records, repeated(rows)), f"{layout.work}/duplicates")
    objects = [each.asDict() for each in duplicated_objects(duplicates).collect()]
    for day in sorted({each["dt"] for each in objects}):
        _rewrite_day(spark, layout, day, duplicates.where(F.col("dt") == F.lit(day)))
    return objects


def _rewrite_day(spark: SparkSession, layout: Layout, day: date, duplicates: DataFrame) -> None:
    """Replace a compacted day by itself without duplicates, by way of a copy, because a table cannot be read while it is overwritten."""
    path, copy = f"{layout.records}/dt={day}", f"{layout.work}/without_duplicates/dt={day}"
    stored = spark.read.schema(CURATED).parquet(path)
    files = max(1, len(stored.inputFiles()))
    without_duplicates(stored, duplicates).coalesce(files).write.mode("overwrite").parquet(copy)
    spark.read.schema(CURATED).parquet(copy).coalesce(files).write.mode("overwrite").parquet(path)
