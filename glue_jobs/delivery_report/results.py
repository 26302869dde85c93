"""What a run found, as small rows for people and programs: the verdict, the tables, and where they were written."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from .arguments import Arguments
from .compaction import DayIntake
from .conservation import FINDING, STANDINGS
from .retries import RECOVERY, suggested_waits
from .storage import Layout, write_json, write_text
from .tables import Table

__all__ = ["Results", "object_findings", "write_results"]

_logger = logging.getLogger(__name__)

JSON_ROWS: Final = 2_000
"""Rows of a table that go into its JSON file; the Parquet file has all."""

SIDE_BY_SIDE: Final = 4
"""Tables made at the same time: each is a handful of short Spark jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """A finished report.

    Attributes:
        arguments: What was asked for.
        as_of: When deliveries were judged.
        verdict: The conservation row: ``conserved``, ``sentence`` and the sums behind it.
        rows: The first rows of each table by name.
        totals: Number of rows of each table by name.
        intakes: What became of each day's raw objects.
        path: Folder of the report.
    """

    arguments: Arguments
    as_of: datetime
    verdict: dict[str, Any]
    rows: Mapping[str, Sequence[dict[str, Any]]]
    totals: Mapping[str, int]
    intakes: Sequence[DayIntake]
    path: str

    @property
    def page(self) -> str:
        """Where the page for people lies."""
        return f"{self.path}/report.html"

    @property
    def suggested_waits(self) -> list[int]:
        """Seconds before each retry, see :func:`.retries.suggested_waits`."""
        return suggested_waits(
            {name: self.rows["recovery"][0].get(name) for name in RECOVERY} if self.rows["recovery"] else {}
        )

    def write_page(self, html: str) -> None:
        """Write the page for people."""
        write_text(self.page, html, "text/html")
        _logger.info("Report: %s", self.page)


def object_findings(
    spark: SparkSession, intakes: Sequence[DayIntake], duplicates: Sequence[Mapping[str, Any]]
) -> DataFrame:
    """Objects of which not every record could be used (breach), and objects that repeat each other's records (notice).

    Args:
        spark: Session.
        intakes: See :func:`.compaction.compact`.
        duplicates: See :func:`.duplicates.duplicated_objects`.
    """
    found: list[tuple[Any, ...]] = []
    for intake in intakes:
        for each in intake.incomplete:
            held = "an unknown number of" if each.expected is None else each.expected
            why = f"; rejected: {each.rejected}" if each.rejected else ""
            detail = f"dt={intake.day}/{each.source}: {each.used} of {held} records could be used{why}"
            found.append(("breach", "unusable_records", None, None, None, None, None, detail))
    for copied in duplicates:
        names = ", ".join(sorted(set(copied["sources"])))
        detail = f"dt={copied['dt']}: {copied['records']} records lie in each of {names}; counted once"
        found.append(("notice", "duplicate_records", None, None, None, None, None, detail))
    return spark.createDataFrame(found, FINDING)


def write_results(
    spark: SparkSession,
    made: Mapping[str, Table],
    layout: Layout,
    arguments: Arguments,
    *,
    intakes: Sequence[DayIntake],
    as_of: datetime,
    breaches: int,
    stream_quarantine: int,
) -> Results:
    """Write every table, the verdict and the summary.

    Args:
        spark: Session.
        made: Tables by name.
        layout: Where to.
        arguments: What was asked for.
        intakes: What became of the raw objects.
        as_of: When deliveries were judged.
        breaches: Findings that break conservation.
        stream_quarantine: Objects that the records function set aside.
    """
    with ThreadPoolExecutor(max_workers=SIDE_BY_SIDE) as side_by_side:
        jobs = {name: side_by_side.submit(_write_table, table, layout.report, name) for name, table in made.items()}
        written = {name: job.result() for name, job in jobs.items()}
    balances = spark.read.parquet(f"{layout.report}/conservation")
    verdict = _verdict(balances, breaches, intakes, as_of, stream_quarantine)
    results = Results(
        arguments=arguments,
        as_of=as_of,
        verdict=verdict,
        rows={name: rows for name, (rows, _) in written.items()},
        totals={name: total for name, (_, total) in written.items()},
        intakes=intakes,
        path=layout.report,
    )
    spark.createDataFrame([verdict]).coalesce(1).write.mode("overwrite").parquet(f"{layout.report}/verdict")
    summary = {
        "date_from": arguments.date_from,
        "date_to": arguments.date_to,
        "projects": list(arguments.projects),
        "verdict": verdict,
        "overall": results.rows["overall"][0] if results.rows["overall"] else {},
        "suggested_waits_s": results.suggested_waits,
        "tables": dict(results.totals),
        "page": results.page,
    }
    write_json(f"{layout.report}/summary.json", summary)
    write_json(f"{layout.reports}/latest.json", {"report": layout.report, "page": results.page, "verdict": verdict})
    return results


def _write_table(table: Table, root: str, name: str) -> tuple[list[dict[str, Any]], int]:
    """Write a table as one Parquet file and its first rows as JSON; those rows, and how many there are in all."""
    path = f"{root}/{name}"
    counted = Observation(name)
    whole = table.rows.repartition(1)
    ordered = whole.sortWithinPartitions(*table.order) if table.order else whole
    ordered.observe(counted, F.count(F.lit(1)).alias("rows")).write.mode("overwrite").parquet(path)
    stored = table.rows.sparkSession.read.schema(table.rows.schema).parquet(path)
    rows = [each.asDict() for each in stored.limit(JSON_ROWS).collect()]
    write_json(f"{root}/{name}.json", rows)
    return rows, counted.get["rows"]


def _verdict(
    balances: DataFrame, breaches: int, intakes: Sequence[DayIntake], as_of: datetime, stream_quarantine: int
) -> dict[str, Any]:
    """The one row that says whether everything is accounted for."""
    names = ("messages", "owed", *STANDINGS, "unexpected")
    sums = balances.agg(
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in names),
        F.coalesce(F.sum((~F.col("balanced")).cast("long")), F.lit(0)).alias("unbalanced_hours"),
    ).head()
    counted: dict[str, Any] = sums.asDict() if sums else {}
    conserved = breaches == 0 and counted["unbalanced_hours"] == 0
    parts = " + ".join(f"{counted[each]:,} {each}" for each in STANDINGS if counted[each])
    sentence = f"{counted['owed']:,} deliveries owed for {counted['messages']:,} messages = {parts or 'nothing'}"
    if conserved:
        sentence = f"Conserved: {sentence}"
    else:
        sentence = f"BROKEN: {sentence}; {counted['unexpected']:,} unexpected; {breaches:,} findings name what is wrong"
    return {
        "conserved": conserved,
        "sentence": sentence,
        "as_of": as_of,
        "breaches": breaches,
        **counted,
        "lines_rejected": sum(each.rejected for each in intakes),
        "stream_records_quarantined": stream_quarantine,
        "days_with_records": len(intakes),
        "records": sum(each.used for each in intakes),
    }
