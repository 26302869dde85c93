"""The run: compact, rebuild each delivery's life, prove conservation, report.

Exit: returns when everything adds up; :class:`SystemExit` with 2 when conservation is broken (all reports are written by then), with 1 and one clear line when
the input cannot be worked on.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from .arguments import Arguments, BadInput, parse
from .cells import HOURLY, attempt_cells, hourly
from .compaction import DayIntake, compact
from .conservation import (
    delivery_findings,
    order_findings,
    overdue_findings,
    with_standing,
)
from .deliveries import DELIVERY, delivery_rows, repeated, suspicious
from .duplicates import duplicated_objects, duplicated_records, without_duplicates
from .page import render
from .results import Results, object_findings, write_results
from .retries import try_cells
from .schema import CURATED
from .session import open_session
from .storage import Layout, list_objects, newest_day, read_days, write_days
from .tables import Sources, tables
from .traffic import fate_cells

__all__ = ["BROKEN", "main", "run"]

BROKEN = 2
"""Exit status when conservation is broken."""

_logger = logging.getLogger(__name__)


def main(argv: Sequence[str], *, master: str | None = None) -> None:
    """Run the job with the arguments of a command line.

    Args:
        argv: Without the program's name.
        master: Spark master of a run on this machine; None on Glue.
    """
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    now = datetime.now(UTC)
    try:
        arguments = parse(argv, today=now.date(), now=now)
        results = run(open_session(master), arguments)
    except BadInput as error:
        _logger.error("delivery_report: %s", error)  # noqa: TRY400 (the message says it all)
        raise SystemExit(1) from error
    _logger.info("%s", results.verdict["sentence"])
    if not results.verdict["conserved"]:
        raise SystemExit(BROKEN)


def run(spark: SparkSession, arguments: Arguments) -> Results:
    """Do everything the arguments ask for.

    Args:
        spark: See :func:`.session.open_session`.
        arguments: What to do.

    Raises:
        BadInput: There is nothing to report on.
    """
    layout = Layout(arguments.output, _name(arguments))
    steps = _Steps()
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
        duplicates = _write_deliveries(spark, records, layout, arguments)
    with steps("Counting attempts"):
        within = records.where(F.col("dt") <= F.lit(arguments.date_to))
        cells = attempt_cells(within).persist(StorageLevel.DISK_ONLY)
        hours = hourly(cells).withColumn("dt", F.to_date("hour"))
        write_days(hours.coalesce(1), layout.hours)
    with steps("Proving conservation"):
        now = min(arguments.now, datetime.combine(last_day + timedelta(days=1), datetime.min.time(), UTC))
        lives = read_days(spark, layout.deliveries, DELIVERY, arguments.date_from, arguments.date_to)
        standings = with_standing(lives, now, arguments.grace)
        findings = _findings(spark, records, standings, intakes, duplicates).persist(StorageLevel.DISK_ONLY)
        breaches = findings.where("severity = 'breach'").count()
    with steps("Reporting"):
        chosen = _only(arguments.projects)
        known = read_days(
            spark,
            layout.hours,
            HOURLY,
            arguments.date_from - timedelta(days=arguments.baseline_days),
            arguments.date_to,
        ).drop("dt")
        deliveries = chosen(standings)
        fate = fate_cells(deliveries).persist(StorageLevel.DISK_ONLY)
        tries = try_cells(deliveries.where(~F.col("pull"))).persist(StorageLevel.DISK_ONLY)
        sources = Sources(
            records=chosen(within),
            cells=chosen(cells),
            hours=chosen(known),
            deliveries=deliveries,
            fate_cells=fate,
            try_cells=tries,
            findings=chosen(findings),
            since=arguments.date_from,
            until=arguments.date_to,
            baseline_days=arguments.baseline_days,
        )
        set_aside = list_objects(spark, f"{arguments.input}/quarantine")
        results = write_results(
            spark,
            tables(sources),
            layout,
            arguments,
            intakes=intakes,
            as_of=now,
            breaches=breaches,
            stream_quarantine=0 if set_aside is None else set_aside.count(),
        )
    with steps("Drawing the report"):
        results.write_page(render(results))
    for table in (cells, findings, fate, tries):
        table.unpersist()
    return results


def _write_deliveries(
    spark: SparkSession, records: DataFrame, layout: Layout, arguments: Arguments
) -> list[dict[str, Any]]:
    """Write one row per delivery accepted on the report's days; records that are there twice are taken out of the compacted days first.

    Returns:
        The objects whose records were there twice.
    """
    rows = delivery_rows(records).persist(StorageLevel.DISK_ONLY)
    twice = repeated(rows).persist()
    objects: list[dict[str, Any]] = []
    if not twice.isEmpty():
        duplicates = duplicated_records(records, twice).persist()
        objects = [each.asDict() for each in duplicated_objects(duplicates).collect()]
        for day in sorted({each["dt"] for each in objects}):
            _rewrite_day(spark, layout, day, duplicates.where(F.col("dt") == F.lit(day)))
        duplicates.unpersist()
    twice.unpersist()
    if objects:
        rows.unpersist()
        records.sparkSession.catalog.refreshByPath(layout.records)
        rows = delivery_rows(read_days(spark, layout.records, CURATED, arguments.date_from))
    accepted_on = rows.withColumn("dt", F.to_date("accepted_at"))
    in_report = F.col("dt").between(F.lit(arguments.date_from), F.lit(arguments.date_to))
    write_days(accepted_on.where(in_report).repartition("dt"), layout.deliveries)
    rows.unpersist()
    return objects


def _rewrite_day(spark: SparkSession, layout: Layout, day: date, duplicates: DataFrame) -> None:
    """Replace a compacted day by itself without duplicates, by way of a copy, because a table cannot be read while it is overwritten."""
    path, copy = f"{layout.records}/dt={day}", f"{layout.records}/_without_duplicates"
    without_duplicates(spark.read.schema(CURATED).parquet(path), duplicates).write.mode("overwrite").parquet(copy)
    spark.read.schema(CURATED).parquet(copy).coalesce(1).write.mode("overwrite").parquet(path)


def _findings(
    spark: SparkSession,
    records: DataFrame,
    standings: DataFrame,
    intakes: Sequence[DayIntake],
    duplicates: Sequence[dict[str, Any]],
) -> DataFrame:
    """Everything that is wrong, by name."""
    suspects = suspicious(standings).persist()
    found = (
        object_findings(spark, intakes, duplicates)
        .unionByName(overdue_findings(standings))
        .unionByName(order_findings(records))
    )
    return found if suspects.isEmpty() else found.unionByName(delivery_findings(records, suspects))


def _only(projects: Sequence[str]) -> Any:
    """Keeps the rows of some projects, and those of none (an object's findings)."""

    def chosen(table: DataFrame) -> DataFrame:
        return table.where(F.col("project").isin(*projects) | F.col("project").isNull()) if projects else table

    return chosen


def _name(arguments: Arguments) -> str:
    """The report's folder: its days, and its projects when it is not about all."""
    days = f"{arguments.date_from}_{arguments.date_to}"
    return f"{days}_{'-'.join(arguments.projects)}" if arguments.projects else days


class _Steps:
    """Says what is being done, and how long it took."""

    def __init__(self) -> None:
        self._count = 0

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        self._count += 1
        started = time.monotonic()
        _logger.info("[%d/6] %s ...", self._count, what)
        yield
        _logger.info("[%d/6] %s: %.1f s", self._count, what, time.monotonic() - started)
