"""The run: compact, rebuild each delivery's life, prove conservation, report.

Exit: returns when everything adds up; :class:`SystemExit` with 2 when conservation is broken (all reports are written
by then), with 1 and one clear line when the input cannot be worked on.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from .anomalies import ANOMALY, anomalies
from .arguments import Arguments, BadInput, parse
from .cells import HOURLY, attempt_cells, attempt_levels, hourly, is_own
from .days import forget_days, listed_days, read_replaced, replace_days
from .kept_records import read_records
from .outages import DAY, first_day, outage_days, outages
from .page import render
from .progress import COUNT, Steps
from .proof import prove
from .results import Results, write_results
from .retries import try_cells
from .rhythm import slots_of
from .running import alone
from .session import open_session
from .storage import Layout, kept, kept_small, small_table
from .tables import Sources, billed, sickest, tables
from .traffic import fate_cells, fate_levels

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
    with steps("Counting attempts"):
        within = proof.records.where(F.col("dt") <= F.lit(arguments.date_to))
        cells = kept(attempt_cells(within), f"{layout.work}/attempt_cells")
        _keep_hours(cells, arguments.days, layout, proof.erased)
        _keep_outages(within, arguments.days, layout, proof.erased)
        if proof.missed:
            missed = read_records(spark, layout, proof.missed[0], proof.missed[-1])
            _keep_hours(attempt_cells(missed), proof.missed, layout, proof.erased)
            _keep_outages(missed, proof.missed, layout, proof.erased)
    chosen = _only(arguments.projects)
    since = arguments.date_from - timedelta(days=arguments.baseline_days if arguments.anomalies else 0)
    hours = chosen(read_replaced(spark, layout.hours, HOURLY, since, arguments.date_to).drop("dt")).where(~is_own())
    unusual = small_table(spark, [], ANOMALY)
    if arguments.anomalies:
        with steps("Looking for anomalies"):
            unusual = _anomalies(chosen(within).where(~is_own()), hours, arguments)
    with steps("Reporting"):
        since_midnight = datetime.combine(arguments.date_from, time(), UTC)
        everything = chosen(proof.deliveries)
        deliveries = everything.where(~is_own())
        attempts = chosen(cells)
        became = kept(fate_cells(everything), f"{layout.work}/fate_cells")
        records = chosen(within).where(~is_own())
        pushed = ~F.col("pull") & ~F.col("notification")
        attempts_at = kept_small(attempt_levels(attempts), f"{layout.work}/attempt_levels")
        fates_at = kept_small(fate_levels(became), f"{layout.work}/fate_levels")
        sources = Sources(
            records=records,
            cells=attempts.where(~is_own()),
            attempt_levels=attempts_at,
            hours=hours,
            deliveries=deliveries,
            all_fates=became,
            fates=became.where(~is_own()),
            fate_levels=fates_at,
            bill=kept_small(billed(attempts_at, fates_at), f"{layout.work}/bill"),
            sickest=sickest(attempts_at),
            try_cells=kept_small(try_cells(deliveries.where(pushed)), f"{layout.work}/try_cells"),
            anomalies=unusual,
            outages=chosen(_outages(spark, layout, arguments)).where(~is_own()),
            findings=chosen(proof.findings),
            since=since_midnight,
            until=arguments.until,
        )
        results = write_results(tables(sources), layout, arguments, proof)
    if arguments.keep_days:
        for table in (layout.records, layout.hours, layout.outages, layout.deliveries, layout.findings):
            forget_days(table, arguments.now.date() - timedelta(days=arguments.keep_days))
    with steps("Drawing the report"):
        results.publish(render)
    return results


def _keep_hours(cells: DataFrame, days: Sequence[date], layout: Layout, erased: Collection[date]) -> None:
    """Replace the days of the table of attempts by hour."""
    hours = hourly(cells).withColumn("dt", F.to_date("hour"))
    replace_days(hours.where(F.col("dt").isin(*days)).repartition("dt"), layout.hours, days, erased=erased)


def _anomalies(records: DataFrame, hours: DataFrame, arguments: Arguments) -> DataFrame:
    """What differs from each subscriber's own past, on the report's days."""
    begin = datetime.combine(arguments.date_from, time(), UTC)
    return anomalies(slots_of(records), hours, begin, arguments.until, arguments.holidays)


def _keep_outages(records: DataFrame, days: Sequence[date], layout: Layout, erased: Collection[date]) -> None:
    """Replace the days of what is known of outages."""
    found = outage_days(records.where(F.col("dt").isin(*days)))
    replace_days(found.repartition("dt"), layout.outages, days, erased=erased)


def _outages(spark: SparkSession, layout: Layout, arguments: Arguments) -> DataFrame:
    """The outages of the last thirty days, or of as many as are known."""
    earliest = first_day(arguments.date_to)
    known = [day for day in listed_days(layout.outages) if day >= earliest]
    days = read_replaced(spark, layout.outages, DAY, earliest, arguments.date_to)
    return outages(days, min([arguments.date_from, *known]), arguments.until)


def _only(projects: Sequence[str]) -> Any:
    """Keeps the rows of some projects, and those of none (an object's findings)."""

    def chosen(table: DataFrame) -> DataFrame:
        return table.where(F.col("project").isin(*projects) | F.col("project").isNull()) if projects else table

    return chosen


def _name(arguments: Arguments) -> str:
    """The report's folder: its days, and its projects when it is not about all."""
    days = f"{arguments.date_from}_{arguments.date_to}"
    return f"{days}_{'-'.join(arguments.projects)}" if arguments.projects else days
