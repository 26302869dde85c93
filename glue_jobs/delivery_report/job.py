"""The run: compact, rebuild each delivery's life, prove conservation, report.

Exit: returns when everything adds up; :class:`SystemExit` with 2 when conservation is broken (all reports are written
by then), with 1 and one clear line when the input cannot be worked on.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from .anomalies import ANOMALY, anomalies, slots_of
from .arguments import Arguments, BadInput, parse
from .cells import CELL, HOURLY, IS_OWN, attempt_cells, hourly
from .compaction import read_records
from .days import forget_days, listed_days, named_files, put_days, read_replaced, renew_days
from .driver import Driver, text
from .findings import FINDING
from .made import made_of
from .outages import DAY, first_day, outage_days, outages
from .page import render
from .progress import COUNT, Steps
from .proof import Proof, prove
from .results import Results, write_results
from .retries import TRIED, try_cells
from .running import alone
from .session import open_session
from .storage import Layout, written
from .tables import tables
from .traffic import ACKNOWLEDGED, FATE, acknowledged_cells, fate_cells

__all__ = ["BROKEN", "main", "run"]

BROKEN = 2
"""Exit status when conservation is broken."""

_logger = logging.getLogger(__name__)


def main(argv: Sequence[str], *, master: str | None = None, settings: Mapping[str, str] | None = None) -> None:
    """Run the job with the arguments of a command line.

    Args:
        argv: Without the program's name.
        master: Spark master of a run on this machine; None on Glue.
        settings: See :func:`.session.open_session`.
    """
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
        spark: See :func:`.session.open_session`.
        steps: Told of progress; the log when left out.

    Raises:
        BadInput: There is nothing to report on.
    """
    layout = Layout(arguments.output, _name(arguments))
    steps = steps or Steps(COUNT + arguments.anomalies)
    proof = prove(spark, arguments, layout, steps)
    days = {day: made_of(files=named_files(layout.records, day)) for day in (*proof.missed, *arguments.days)}
    records = read_records(spark, layout, min(days), arguments.date_to)

    def cells_of(some: list[date]) -> DataFrame:
        made = attempt_cells(records.where(F.col("dt").isin(*some)))
        return made.withColumn("dt", F.to_date("hour")).repartition("dt")

    def outages_of(some: list[date]) -> DataFrame:
        return outage_days(records.where(F.col("dt").isin(*some))).repartition("dt")

    with Driver() as driver:
        with steps("Counting attempts"):
            cells = f"{layout.work}/attempt_cells"
            renew_days(cells_of, cells, days, erased=proof.erased)
            forget_days(cells, min(days) - timedelta(days=1), files=True)
            driver.read("all_attempts", CELL, [file for day in days for file in named_files(cells, day)])
            hours = f"SELECT *, hour::DATE AS dt FROM ({hourly('all_attempts')})"
            put_days(driver, hours, layout.hours, days, erased=proof.erased)
            renew_days(outages_of, layout.outages, days, erased=proof.erased)
        unusual: list[str] = []
        if arguments.anomalies:
            with steps("Looking for anomalies"):
                unusual = written(_anomalies(spark, layout, arguments), f"{layout.work}/anomalies")
        with steps("Reporting"):
            _hold(driver, proof, layout, arguments, unusual)
            made = tables(driver, since=_midnight(arguments.date_from), until=arguments.until)
            results = write_results(driver, made, layout, arguments, proof)
    if arguments.keep_days:
        for table in (layout.records, layout.hours, layout.outages, layout.deliveries, layout.findings):
            forget_days(table, arguments.now.date() - timedelta(days=arguments.keep_days))
    with steps("Drawing the report"):
        results.publish(render)
    return results


def _hold(driver: Driver, proof: Proof, layout: Layout, arguments: Arguments, unusual: Sequence[str]) -> None:
    """Count deliveries, and give the driver what the tables are made of, of the report's projects.

    Args:
        driver: Holds ``all_attempts``.
        unusual: Files of the anomalies.
    """
    chosen = _chosen(arguments.projects)
    usual = f"{chosen} AND NOT {IS_OWN}"
    since = f"hour >= TIMESTAMP '{arguments.date_from}'"
    driver.keep("attempt_cells", f"SELECT * FROM all_attempts WHERE {chosen} AND {since}")
    # What waits in a table may have changed with the table.
    said = proof.as_of, arguments.grace, proof.settled
    digest = "" if proof.looked_up else made_of(*said, files=proof.deliveries.inputFiles())
    pushed = proof.deliveries.where(~F.col("pull") & ~F.col("notification"))
    for name, schema, cells, which in (
        ("fate_cells", FATE, fate_cells(proof.deliveries), chosen),
        ("try_cells", TRIED, try_cells(pushed), usual),
        ("acknowledged", ACKNOWLEDGED, acknowledged_cells(proof.deliveries), usual),
    ):
        driver.read(name, schema, written(cells, f"{layout.work}/{name}", digest), which)
    driver.read("anomalies", ANOMALY, unusual, chosen)
    driver.read("findings", FINDING, named_files(layout.findings, arguments.date_to), chosen)
    earliest = first_day(arguments.date_to)
    known = [day for day in listed_days(layout.outages) if earliest <= day <= arguments.date_to]
    driver.read("outage_days", DAY, [file for day in known for file in named_files(layout.outages, day)], usual)
    driver.keep("outages", outages("outage_days", min([arguments.date_from, *known]), arguments.until))


def _anomalies(spark: SparkSession, layout: Layout, arguments: Arguments) -> DataFrame:
    """What differs from each subscriber's own past, on the report's days."""
    usual = F.expr(f"{_chosen(arguments.projects)} AND NOT {IS_OWN}")
    before = arguments.date_from - timedelta(days=arguments.baseline_days)
    hours = read_replaced(spark, layout.hours, HOURLY, before, arguments.date_to).where(usual)
    slots = slots_of(read_records(spark, layout, arguments.date_from, arguments.date_to).where(usual))
    return anomalies(slots, hours.drop("dt"), _midnight(arguments.date_from), arguments.until, arguments.holidays)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _chosen(projects: Sequence[str]) -> str:
    """Whether a row is of some projects, or of none, as an object's findings are; for Spark and for the driver."""
    return f"(project IN ({', '.join(map(text, projects))}) OR project IS NULL)" if projects else "true"


def _name(arguments: Arguments) -> str:
    """The report's folder: its days, and its projects when it is not about all."""
    days = f"{arguments.date_from}_{arguments.date_to}"
    return f"{days}_{'-'.join(arguments.projects)}" if arguments.projects else days
