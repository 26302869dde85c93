"""From raw records to the proof: compacted days, one row per delivery, and everything that is wrong by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from .arguments import Arguments, BadInput
from .compaction import DayIntake, compact
from .conservation import delivery_findings, object_findings, order_findings, overdue_findings, with_standing
from .deliveries import DELIVERY, delivery_rows, repeated, suspicious
from .duplicates import duplicated_objects, duplicated_records, without_duplicates
from .progress import Steps
from .schema import CURATED
from .storage import Layout, count_objects, kept, newest_day, read_days, write_days

__all__ = ["Proof", "prove"]

DELIVERY_FILES: Final = 4
"""Files of a day of deliveries, at most."""


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
    with steps("Rebuilding deliveries"):
        rows = kept(delivery_rows(records), f"{layout.work}/deliveries")
        duplicates = _without_duplicates(spark, records, rows, layout)
        if duplicates:
            records = read_days(spark, layout.records, CURATED, arguments.date_from)
            rows = kept(delivery_rows(records), f"{layout.work}/deliveries")
        accepted_on = rows.withColumn("dt", F.to_date("accepted_at"))
        in_report = F.col("dt").between(F.lit(arguments.date_from), F.lit(arguments.date_to))
        # Few tasks write all days between them, which makes few files without shuffling the rows once more.
        write_days(accepted_on.where(in_report).coalesce(DELIVERY_FILES), layout.deliveries)
    with steps("Proving conservation"):
        # A delivery is judged by records up to the end of the last compacted day; later ones may simply not be there yet.
        as_of = min(arguments.now, datetime.combine(last_day + timedelta(days=1), datetime.min.time(), UTC))
        lives = read_days(spark, layout.deliveries, DELIVERY, arguments.date_from, arguments.date_to)
        deliveries = with_standing(lives, as_of, arguments.grace)
        found = _findings(layout, records, deliveries, intakes, duplicates)
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


def _without_duplicates(
    spark: SparkSession, records: DataFrame, rows: DataFrame, layout: Layout
) -> list[dict[str, Any]]:
    """Take records that are there twice out of the compacted days; the objects they were in, none when nothing was changed."""
    twice = repeated(rows)
    if twice.isEmpty():
        return []
    duplicates = kept(duplicated_records(records, twice), f"{layout.work}/duplicates")
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


def _findings(
    layout: Layout,
    records: DataFrame,
    deliveries: DataFrame,
    intakes: Sequence[DayIntake],
    duplicates: Sequence[dict[str, Any]],
) -> DataFrame:
    suspects = kept(suspicious(deliveries), f"{layout.work}/suspects")
    found = (
        object_findings(records.sparkSession, intakes, duplicates)
        .unionByName(overdue_findings(deliveries))
        .unionByName(order_findings(records))
    )
    return found if suspects.isEmpty() else found.unionByName(delivery_findings(records, suspects))
