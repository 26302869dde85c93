"""What a run found, as small rows for people and programs: the verdict, the tables, and where they were written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any, Final

from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType, TimestampType

from .arguments import Arguments
from .compaction import DayIntake
from .conservation import STANDINGS
from .files import write_text
from .proof import Proof
from .storage import Layout, small_table, write_json
from .tables import Table

_logger = logging.getLogger(__name__)

_SUMS: Final = ("messages", "owed", *STANDINGS, "unexpected")

VERDICT: Final = StructType(
    [
        StructField("conserved", BooleanType()),
        StructField("sentence", StringType()),
        StructField("as_of", TimestampType()),
        *(
            StructField(name, LongType())
            for name in (
                *("breaches", *_SUMS, "unbalanced_hours", "lines_rejected"),
                *("stream_records_quarantined", "days_with_records", "records"),
            )
        ),
    ]
)
"""Columns of the one row that says whether everything is accounted for."""

SIDE_BY_SIDE: Final = 4
"""Tables made at the same time: each is a handful of short Spark jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """A finished report.

    Attributes:
        as_of: When deliveries were judged.
        verdict: The conservation row: ``conserved``, ``sentence`` and the sums behind it.
        rows: The first rows of each table by name.
        totals: Number of rows of each table by name.
        intakes: What became of each day's raw objects.
        path: Folder of the report.
        reports: Folder of all reports.
    """

    arguments: Arguments
    as_of: datetime
    verdict: dict[str, Any]
    rows: Mapping[str, Sequence[dict[str, Any]]]
    totals: Mapping[str, int]
    intakes: Sequence[DayIntake]
    path: str
    reports: str

    @property
    def page(self) -> str:
        """Where the page for people lies."""
        return f"{self.path}/report.html"

    def publish(self, render: Callable[[Results], str]) -> None:
        """Write the page for people, and what names the newest report.

        Whatever becomes of the page, the verdict stands and can be found.
        """
        try:
            html = render(self)
        except Exception as error:  # noqa: BLE001 (whatever it is, the verdict does not depend on the page)
            html = self._bare_page(error)
        page: str | None = self.page
        try:
            write_text(self.page, html, "text/html")
            _logger.info("Report: %s", self.page)
        except Exception as error:  # noqa: BLE001 (the verdict and the tables are written by now)
            page = None
            _logger.warning("The page could not be written (%s); the tables are in %s", type(error).__name__, self.path)
        found = {"report": self.path, "page": page, "verdict": self.verdict}
        write_json(f"{self.reports}/latest.json", found)

    def _bare_page(self, error: Exception) -> str:
        # Not the error's text: it may quote a tenant's.
        _logger.warning("The page could not be made (%s)", type(error).__name__)
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Deliveries</title></head><body>'
            f"<p>{escape(self.verdict['sentence'])}</p>"
            f"<p>The rest of this page could not be made ({type(error).__name__}). The tables lie beside "
            f"it.</p></body></html>\n"
        )


def write_results(
    spark: SparkSession,
    made: Mapping[str, Table],
    layout: Layout,
    arguments: Arguments,
    proof: Proof,
) -> Results:
    """Write every table, the verdict and the summary.

    Args:
        proof: What is wrong, and what was read.
    """
    with ThreadPoolExecutor(max_workers=SIDE_BY_SIDE) as side_by_side:
        jobs = {name: side_by_side.submit(_write_table, table, layout.report, name) for name, table in made.items()}
        written = {name: job.result() for name, job in jobs.items()}
    verdict = _verdict({**written["conservation"].sums, **written["findings"].sums}, proof)
    results = Results(
        arguments=arguments,
        as_of=proof.as_of,
        verdict=verdict,
        rows={name: each.rows for name, each in written.items()},
        totals={name: each.total for name, each in written.items()},
        intakes=proof.intakes,
        path=layout.report,
        reports=layout.reports,
    )
    small_table(spark, [verdict], VERDICT).write.mode("overwrite").parquet(f"{layout.report}/verdict")
    summary = {
        "date_from": arguments.date_from,
        "date_to": arguments.date_to,
        "projects": list(arguments.projects),
        "verdict": verdict,
        "overall": results.rows["overall"][0] if results.rows["overall"] else {},
        "tables": dict(results.totals),
    }
    write_json(f"{layout.report}/summary.json", summary)
    return results


@dataclass(frozen=True, slots=True)
class _Written:
    """A table that is written: its first rows, how many there are in all, and the sums it was asked for."""

    rows: list[dict[str, Any]]
    total: int
    sums: Mapping[str, int]


def _write_table(table: Table, root: str, name: str) -> _Written:
    """Write a table as Parquet and its first rows as JSON.

    A small one is one file in order. A large one is written as it comes and only its first rows are put in order, so
    that no task has to sort all of it.
    """
    path = f"{root}/{name}"
    counted = Observation(name)
    whole = table.rows if table.large else table.rows.coalesce(1)
    ordered = whole.sortWithinPartitions(*table.order) if table.order and not table.large else whole
    wanted = {"rows": F.count(F.lit(1)), **table.totals}
    watched = ordered.observe(counted, *(value.alias(each) for each, value in wanted.items()))
    watched.write.mode("overwrite").parquet(path)
    stored = table.rows.sparkSession.read.schema(table.rows.schema).parquet(path)
    first = stored.orderBy(*table.order) if table.order and table.large else stored
    rows = [each.asDict() for each in first.limit(table.shown).collect()]
    write_json(f"{root}/{name}.json", rows)
    sums = {each: value or 0 for each, value in counted.get.items()}
    return _Written(rows, sums.pop("rows"), sums)


def _verdict(counted: Mapping[str, int], proof: Proof) -> dict[str, Any]:
    """The one row that says whether everything is accounted for."""
    breaches = counted["breaches"]
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
        "as_of": proof.as_of,
        **counted,
        "lines_rejected": sum(each.rejected for each in proof.intakes),
        "stream_records_quarantined": proof.set_aside,
        "days_with_records": len(proof.intakes),
        "records": sum(each.used for each in proof.intakes),
    }
