"""What a run found, as small rows for people and programs: the verdict, the tables, and where they were written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..figures.tables import Table
from ..proof.conservation import STANDINGS
from ..proof.night import Proof
from ..records.compaction import DayIntake
from ..run.arguments import Arguments
from ..storage.driver import Driver, total
from ..storage.files import remove, remove_file, write_text
from ..storage.layout import Layout, write_json

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """A finished report.

    Attributes:
        verdict: The conservation row: ``conserved``, ``sentence`` and the sums behind it.
        rows: The first rows of each table by name.
        totals: Number of rows of each table by name.
        intakes: What became of each day's raw objects.
        path: Folder of the report, which lies in that of all reports.
    """

    arguments: Arguments
    verdict: dict[str, Any]
    rows: Mapping[str, Sequence[dict[str, Any]]]
    totals: Mapping[str, int]
    intakes: Sequence[DayIntake]
    path: str

    @property
    def page(self) -> str:
        """Where the page for people lies."""
        return f"{self.path}/report.html"

    def publish(self, render: Callable[[Results], str]) -> None:
        """Write the page for people, and what names the newest report. Whatever becomes of the page, the verdict stands
        and can be found.
        """
        page = None
        remove_file(self.page)
        try:
            write_text(self.page, render(self), "text/html")
            page = self.page
            _logger.info("Report: %s", page)
        except Exception as error:  # noqa: BLE001 (whatever it is, the verdict does not depend on the page)
            # Not the error's text: it may quote a tenant's.
            _logger.warning("No page (%s); the tables are in %s", type(error).__name__, self.path)
        reports = self.path.rpartition("/")[0]
        write_json(f"{reports}/latest.json", {"report": self.path, "page": page, "verdict": self.verdict})


def write_results(
    driver: Driver, queries: Mapping[str, Table], layout: Layout, arguments: Arguments, proof: Proof
) -> Results:
    """Write every table, and the summary with the verdict."""
    written = write_tables(driver, queries, layout.report)
    verdict = _verdict({**written["conservation"].sums, **written["findings"].sums}, proof)
    results = Results(
        arguments=arguments,
        verdict=verdict,
        rows={name: each.rows for name, each in written.items()},
        totals={name: each.total for name, each in written.items()},
        intakes=proof.intakes,
        path=layout.report,
    )
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
class Written:
    """A table that is written: its first rows, how many there are in all, and the sums it was asked for."""

    rows: list[dict[str, Any]]
    total: int
    sums: Mapping[str, int]


def write_tables(driver: Driver, queries: Mapping[str, Table], root: str) -> dict[str, Written]:
    """Write the first rows of each table as JSON, and those that have more as Parquet, complete."""
    return {name: _write_table(driver, table, f"{root}/{name}") for name, table in queries.items()}


def _write_table(driver: Driver, table: Table, path: str) -> Written:
    driver.keep("written", table.query)
    sums = ", ".join(["count(*) AS rows", *(total(value, name) for name, value in table.totals.items())])
    (counted,) = driver.rows(f"SELECT {sums} FROM written")
    ordered = f"SELECT * FROM written{f' ORDER BY {table.order}' if table.order else ''}"
    rows = driver.rows(f"{ordered} LIMIT {table.shown}")
    remove(path)
    if counted["rows"] > table.shown:
        driver.put("SELECT * FROM written", f"{path}/all.parquet")
    driver.forget("written")
    write_json(f"{path}.json", rows)
    return Written(rows, counted.pop("rows"), {name: value or 0 for name, value in counted.items()})


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
