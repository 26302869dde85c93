"""From raw records to the proof: compacted days, one row per delivery, and everything that is wrong by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from .arguments import Arguments, BadInput
from .compaction import DayIntake, compact, note_duplicates
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
from .files import listed
from .manifest import read_manifest
from .progress import Steps
from .schema import CURATED
from .storage import Layout, kept, newest_day, read_days, write_days

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
    if last_day is None and not intakes:
        raise BadInput(
            f"no records under {arguments.input} from {arguments.date_from} to {arguments.date_to}: "
            f"looked for {arguments.input}/dt={arguments.date_from} and the days after it"
        )
    # Judged up to the end of what was asked for, whether records came until then or not; later records that are there already may say more.
    until = max(arguments.date_to, last_day or arguments.date_to)
    as_of = min(arguments.now, datetime.combine(until + timedelta(days=1), datetime.min.time(), UTC))
    with steps("Rebuilding deliveries"):
        counted = _rebuild(records, arguments, as_of, layout)
        lives = read_days(spark, layout.deliveries, DELIVERY, arguments.date_from, arguments.date_to)
        if counted["repeated"] or counted["repeated_elsewhere"]:
            rows = delivery_rows(records) if counted["repeated_elsewhere"] else lives
            changed = _without_duplicates(spark, records, rows, layout, intakes)
        else:
            changed = intakes
        if changed != intakes:
            intakes = changed
            records = read_days(spark, layout.records, CURATED, arguments.date_from)
            counted = _rebuild(records, arguments, as_of, layout)
            lives = read_days(spark, layout.deliveries, DELIVERY, arguments.date_from, arguments.date_to)
    with steps("Proving conservation"):
        deliveries = with_standing(lives, as_of, arguments.grace)
        found = object_findings(spark, intakes).unionByName(order_findings(records))
        if counted["overdue"]:
            found = found.unionByName(overdue_findings(deliveries))
        if counted["suspicious"]:
            suspects = kept(suspicious(deliveries), f"{layout.work}/suspects")
            found = found.unionByName(delivery_findings(records, suspects))
        findings = kept(found.coalesce(1), f"{layout.work}/findings")
        set_aside = len(listed(f"{arguments.input}/quarantine"))
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
    write_days(watched.where(in_report).select(*DELIVERY.fieldNames(), "dt"), layout.deliveries, arguments.days)
    return dict(seen.get)


def _without_duplicates(
    spark: SparkSession, records: DataFrame, rows: DataFrame, layout: Layout, intakes: Sequence[DayIntake]
) -> list[DayIntake]:
    """Take records that are there twice out of the compacted days; the intakes with the objects they were in."""
    duplicates = kept(duplicated_records(records, repeated(rows)), f"{layout.work}/duplicates")
    objects: dict[date, list[dict[str, Any]]] = {}
    for each in duplicated_objects(duplicates).collect():
        objects.setdefault(each["dt"], []).append({"sources": list(each["sources"]), "records": each["records"]})
    found = []
    for intake in intakes:
        manifest = read_manifest(f"{layout.records}/dt={intake.day}") if intake.day in objects else None
        if manifest is not None:
            rows_left = _rewrite_day(spark, layout, intake.day, duplicates.where(F.col("dt") == F.lit(intake.day)))
            found.append(note_duplicates(layout, intake, manifest, objects[intake.day], rows_left))
        else:
            found.append(intake)
    return found


def _rewrite_day(spark: SparkSession, layout: Layout, day: date, duplicates: DataFrame) -> int:
    """Replace a compacted day by itself without duplicates, by way of a copy, because a table cannot be read while it is overwritten; its rows."""
    path, copy = f"{layout.records}/dt={day}", f"{layout.work}/without_duplicates/dt={day}"
    stored = spark.read.schema(CURATED).parquet(path)
    files = max(1, len(stored.inputFiles()))
    without_duplicates(stored, duplicates).coalesce(files).write.mode("overwrite").parquet(copy)
    once = spark.read.schema(CURATED).parquet(copy)
    once.coalesce(files).write.mode("overwrite").parquet(path)
    return once.count()
