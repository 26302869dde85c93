"""The run: compact, rebuild each delivery's life, prove conservation, report.

Exit: returns when everything adds up; :class:`SystemExit` with 2 when conservation is broken (all reports are written
by then), with 1 and one clear line when the input cannot be worked on.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession

from .anomalies.detection import ANOMALY, anomalies, slots_of
from .erasures import take_out_erased
from .figures.cells import CELL, HOURLY, IS_OWN, attempt_cells, hourly
from .figures.outages import DAY, first_day, outage_days, outages
from .figures.tables import tables
from .figures.traffic import FATE, TRIED, fate_cells, try_cells
from .page.rendering import render
from .page.results import Results, write_results
from .proof.deliveries import KEPT_DELIVERY
from .proof.findings import FINDING
from .proof.night import prove
from .run.arguments import Arguments, BadInput, midnight, parse
from .run.progress import COUNT, Steps
from .run.running import alone
from .run.session import open_session
from .storage.days import count_days, forget_days, listed_days, named_files, remove_former
from .storage.driver import Driver, text
from .storage.layout import Layout
from .storage.schema import CURATED

BROKEN = 2
"""Exit status when conservation is broken."""

BASELINE = timedelta(days=28)
"""So long before the report says what is usual."""

_logger = logging.getLogger(__name__)


def main(argv: Sequence[str], *, master: str | None = None, settings: Mapping[str, str] | None = None) -> None:
    """Run the job with the arguments of a command line, on this machine if a ``master`` is given, else on Glue."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    now = datetime.now(UTC)
    try:
        arguments = parse(argv, today=now.date(), now=now)
        with alone(arguments.output):
            results = run(open_session(master, settings=settings), arguments)
    except BadInput as error:
        _logger.error("delivery_report: %s", error)  # noqa: TRY400 (the message says it all)
        raise SystemExit(1) from error
    _logger.info("%s", results.verdict["sentence"])
    if not results.verdict["conserved"]:
        raise SystemExit(BROKEN)


def run(spark: SparkSession, arguments: Arguments, steps: Steps | None = None) -> Results:
    """Do everything the arguments ask for.

    Args:
        steps: Told of progress; the log when left out.

    Raises:
        BadInput: There is nothing to report on.
    """
    layout = Layout(arguments.output, _name(arguments))
    steps = steps or Steps(COUNT + arguments.anomalies)
    take_out_erased(spark, arguments.input, layout)
    proof = prove(spark, arguments, layout, steps)
    days = [*proof.missed, *arguments.days]
    with Driver() as driver:
        with steps("Counting attempts"):
            _count_attempts(driver, layout, days)
            remove_former(layout.hours, proof.erased)
        if arguments.anomalies:
            with steps("Looking for anomalies"):
                unusual = _anomalies(driver, layout, arguments)
        else:
            unusual = []
        with steps("Reporting"):
            _hold(driver, layout, arguments, unusual)
            queries = tables(driver, since=midnight(arguments.date_from), until=arguments.until)
            results = write_results(driver, queries, layout, arguments, proof)
    if arguments.keep_days:
        for table in (layout.records, layout.hours, layout.outages, layout.deliveries, layout.findings):
            forget_days(table, arguments.now.date() - timedelta(days=arguments.keep_days))
    with steps("Drawing the report"):
        results.publish(render)
    return results


def _count_attempts(driver: Driver, layout: Layout, days: Sequence[date]) -> None:
    """Count the attempts of those days whose records have changed."""
    of_records = {layout.attempts: attempt_cells, layout.outages: outage_days}
    count_days(driver, of_records, CURATED, _files(layout.records, days))
    count_days(driver, {layout.hours: hourly}, CELL, _files(layout.attempts, days))


def _hold(driver: Driver, layout: Layout, arguments: Arguments, unusual: Sequence[Mapping[str, Any]]) -> None:
    """Count deliveries, and give the driver what the tables are made of, of the report's projects."""
    days, chosen = arguments.days, _chosen(arguments.projects)
    usual = f"{chosen} AND NOT {IS_OWN}"
    count_days(
        driver, {layout.fates: fate_cells, layout.tries: try_cells}, KEPT_DELIVERY, _files(layout.deliveries, days)
    )
    for name, schema, root, which in (
        ("attempt_cells", CELL, layout.attempts, chosen),
        ("fate_cells", FATE, layout.fates, chosen),
        ("try_cells", TRIED, layout.tries, usual),
    ):
        driver.read(name, schema, _all_files(root, days), which)
        forget_days(root, days[0] - timedelta(days=1), files=True)
    driver.fill("anomalies", ANOMALY, unusual, chosen)
    driver.read("findings", FINDING, named_files(layout.findings, arguments.date_to), chosen)
    earliest = first_day(arguments.date_to)
    known = [day for day in listed_days(layout.outages) if earliest <= day <= arguments.date_to]
    driver.read("outage_days", DAY, _all_files(layout.outages, known), usual)
    driver.keep("outages", outages("outage_days", min([arguments.date_from, *known]), arguments.until))


def _anomalies(driver: Driver, layout: Layout, arguments: Arguments) -> list[dict[str, Any]]:
    """What differs from each subscriber's own past, on the report's days."""
    usual = f"{_chosen(arguments.projects)} AND NOT {IS_OWN}"
    before = arguments.date_from - BASELINE
    known = [day for day in listed_days(layout.hours) if before <= day <= arguments.date_to]
    driver.read("past_hours", HOURLY, _all_files(layout.hours, known), usual)
    driver.read("records", CURATED, _all_files(layout.records, arguments.days), usual)
    since = midnight(arguments.date_from)
    driver.keep("slots", slots_of("records"))
    return anomalies(driver, since, arguments.until, slots="slots", hours="past_hours")


def _files(root: str, days: Sequence[date]) -> dict[date, list[str]]:
    """The files of days of a table, by day."""
    return {day: named_files(root, day) for day in days}


def _all_files(root: str, days: Sequence[date]) -> list[str]:
    return [file for of_day in _files(root, days).values() for file in of_day]


def _chosen(projects: Sequence[str]) -> str:
    """Whether a row is of some projects, or of none, as an object's findings are."""
    return f"(project IN ({', '.join(map(text, projects))}) OR project IS NULL)" if projects else "true"


def _name(arguments: Arguments) -> str:
    """The report's folder: its days, and its projects when it is not about all."""
    days = f"{arguments.date_from}_{arguments.date_to}"
    return f"{days}_{'-'.join(arguments.projects)}" if arguments.projects else days
