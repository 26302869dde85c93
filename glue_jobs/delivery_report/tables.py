"""Every table of a report, by name: built once from records, deliveries and hours,
written as Parquet and small JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from .causes import by_cause
from .cells import NAMES, OWN, WHO, failures_by_cause, outcomes, usual_cause
from .conservation import STANDINGS, balance, verdicts
from .cost import FATES, bill, used
from .retries import by_attempt, recovery_times
from .traffic import acknowledgement_waits, backlog, given_up, poll_waits, without_gaps

RANKED: Final = 20
"""Subscribers in a ranking."""

RANKED_ATTEMPTS: Final = 20
"""Attempts a subscriber needs to be ranked; fewer say little about it."""

HOURS: Final = 24 * 400
"""Hours that can be drawn."""

PROJECTS: Final = 20_000
"""Projects whose own verdicts can be read by the hub."""

CHARTED: Final = 10
"""Subscribers drawn hour by hour, over a week at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What the tables are made of; all of them hold the report's days and projects only, and no messages of the hub's
    own (:func:`.cells.is_own`), unless said otherwise.

    Attributes:
        cells: :func:`.cells.attempt_cells` of them.
        attempt_levels: :func:`.cells.attempt_levels` of these.
        hours: :func:`.cells.hourly`, with the days of the baseline.
        deliveries: :func:`.conservation.with_standing` of the deliveries accepted on the report's days.
        all_fates: :func:`.traffic.fate_cells` of them, and of the hub's own messages.
        fates: Those without these.
        fate_levels: :func:`.traffic.fate_levels` of these.
        bill: :func:`.cost.bill` of both.
        sickest: :func:`sickest` of these attempts.
        try_cells: :func:`.retries.try_cells` of the deliveries that are pushed.
        outages: :func:`.outages.outages` of the last thirty days.
        anomalies: :func:`.anomalies.anomalies`; none if nobody has asked for them.
        since: Begin of the report's first day.
        until: End of what it tells of: of its last day, or when it was made.
    """

    records: DataFrame
    cells: DataFrame
    attempt_levels: DataFrame
    hours: DataFrame
    deliveries: DataFrame
    all_fates: DataFrame
    fates: DataFrame
    fate_levels: DataFrame
    bill: DataFrame
    sickest: DataFrame
    try_cells: DataFrame
    outages: DataFrame
    anomalies: DataFrame
    findings: DataFrame
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the report.

    Attributes:
        order: The order its rows are kept in.
        totals: What each row adds to totals that are asked for besides, by name.
        shown: Rows that go into its JSON file and are at hand for the page; a longer one is written as Parquet, too.
    """

    rows: DataFrame
    order: tuple[str | Column, ...]
    totals: Mapping[str, Column] = field(default_factory=dict)
    shown: int = 2_000


def at_level(levels: DataFrame, name: str, *keys: str) -> DataFrame:
    """The rows of one grouping, with its keys only.

    Args:
        levels: See :func:`.cells.attempt_levels` and :func:`.traffic.fate_levels`.
    """
    others = {"level", "project", "queue", "subscriber_id", "hour", "day"} - set(keys)
    return levels.where(F.col("level") == name).drop(*others)


def billed(attempt_levels: DataFrame, fate_levels: DataFrame) -> DataFrame:
    """The bill of each project, see :mod:`.cost`. The hub's own messages for it are in it."""
    subscribers = attempt_levels.where(F.col("level").isin("subscriber", OWN))
    sums = [F.sum(name).alias(name) for name in ("attempts", "first_attempts", "parks", "bytes_out", "busy_ms")]
    fates_of = fate_levels.where(F.col("level").isin("project", OWN)).groupBy("project")
    notified = subscribers.where(F.col("dialect") == "notifications")
    return bill(
        used(
            subscribers.groupBy("project").agg(*sums),
            fates_of.agg(*(F.sum(name).alias(name) for name in FATES)),
            notified.groupBy("project").agg(*sums),
        )
    )


def failing() -> Column:
    """The failed share of attempts."""
    return F.try_divide("failed", "attempts")


def worst_first() -> tuple[str | Column, ...]:
    """The order of the sickest subscribers; no two are equal."""
    return failing().desc(), F.desc("failed"), *WHO


def sickest(attempt_levels: DataFrame) -> DataFrame:
    """The :data:`RANKED` subscribers with the largest failed share.

    Args:
        attempt_levels: See :func:`.cells.attempt_levels`.
    """
    solid = at_level(attempt_levels, "subscriber", *WHO).where(F.col("attempts") >= RANKED_ATTEMPTS)
    return solid.where(F.col("failed") > 0).orderBy(*worst_first()).limit(RANKED)


def tables(of: Sources) -> dict[str, Table]:
    """The tables by name, each in its order of interest. Columns: ``docs/report.md``."""
    now = of.hours.where(F.col("hour") >= F.lit(of.since))
    usd = of.bill.groupBy("project").agg(F.sum("usd").alias("usd"))
    made = at_level(of.attempt_levels, "overall").select(
        F.col("attempts").alias("attempts_made"),
        F.col("failed").alias("attempts_failed"),
        *("polls", "parks", "p50_ms", "p95_ms", "p99_ms", "longest_ms"),
    )
    subscribers = at_level(of.attempt_levels, "subscriber", *WHO)
    solid = subscribers.where(F.col("attempts") >= RANKED_ATTEMPTS)
    last_week = F.col("hour") >= F.lit(of.until - timedelta(days=7))
    sickest_hours = now.where(last_week & (F.col("attempts") > 0)).join(
        F.broadcast(of.sickest.orderBy(*worst_first()).limit(CHARTED).select(*WHO)), list(WHO), "left_semi"
    )
    slowest_first = (F.desc("p95_ms"), F.desc("attempts"), *WHO)
    # A project of which only attempts are known has a bill all the same.
    projects = at_level(of.fate_levels, "project", "project").join(usd, "project", "full")
    counted = [field.name for field in projects.schema if not field.name.endswith("_ms")]
    projects = projects.na.fill(0, counted)
    course = {"since": of.since, "until": of.until}
    called = subscribers.select(*WHO, "subscriber")
    return {
        "overall": Table(at_level(of.fate_levels, "overall").crossJoin(made), ()),
        "projects": Table(projects, (F.desc("messages"), "project")),
        "queues": Table(
            at_level(of.fate_levels, "queue", "project", "queue"), (F.desc("messages"), "project", "queue")
        ),
        "deliveries_by_day": Table(without_gaps(at_level(of.fate_levels, "day", "day"), "day", **course), ("day",)),
        "deliveries_by_hour": Table(
            without_gaps(at_level(of.fate_levels, "hour", "hour"), "hour", **course), ("hour",), shown=HOURS
        ),
        "attempts_by_hour": Table(
            without_gaps(at_level(of.attempt_levels, "hour", "hour").drop(*NAMES), "hour", **course),
            ("hour",),
            shown=HOURS,
        ),
        "subscribers": Table(subscribers, (F.desc("attempts"), *WHO)),
        "sickest": Table(of.sickest, worst_first()),
        "sickest_hours": Table(
            sickest_hours.select(*WHO, "subscriber", "hour", failing().alias("share")), (*WHO, "hour")
        ),
        "slowest": Table(
            solid.orderBy(*slowest_first).limit(RANKED),
            slowest_first,
        ),
        "outcomes": Table(outcomes(of.cells), (F.desc("attempts"), *WHO, "verdict", "status_code", "error_class")),
        "attempts_needed": Table(by_attempt(of.try_cells), ("attempt",)),
        "recovery": Table(recovery_times(of.try_cells), ()),
        "given_up": Table(
            given_up(of.fates).join(called, list(WHO), "left").join(usual_cause(of.cells), list(WHO), "left"),
            (F.desc("given_up"), *WHO),
        ),
        "backlog": Table(
            backlog(of.fates).join(called, list(WHO), "left"),
            (F.desc("waiting"), *WHO),
        ),
        "outages": Table(of.outages, (F.desc("reachable"), F.desc("given_up"), F.desc("longest_ms"), *WHO)),
        "acknowledgement_waits": Table(
            acknowledgement_waits(of.deliveries, WHO).join(called, list(WHO), "left"), (F.desc("waits"), *WHO)
        ),
        "poll_waits": Table(poll_waits(of.records, WHO).join(called, list(WHO), "left"), (F.desc("waits"), *WHO)),
        "cost": Table(of.bill, ("project", F.desc("usd"), "item")),
        "cost_by_item": Table(
            of.bill.groupBy("item").agg(F.sum("units").alias("units"), F.sum("usd").alias("usd")),
            (F.desc("usd"), "item"),
        ),
        "costliest_projects": Table(usd.orderBy(F.desc("usd"), "project").limit(RANKED), (F.desc("usd"), "project")),
        "failures_by_cause": Table(failures_by_cause(of.cells), (F.desc("attempts"), "cause")),
        "anomalies": Table(
            of.anomalies,
            (F.desc("score"), "anomaly", *WHO, "started_at"),
        ),
        "conservation": Table(
            balance(of.all_fates),
            ("project", "hour"),
            {
                **{name: F.col(name) for name in ("messages", "owed", *STANDINGS, "unexpected")},
                "unbalanced_hours": (~F.col("balanced")).cast("long"),
            },
        ),
        "verdicts": Table(verdicts(balance(of.all_fates), of.findings), ("project",), shown=PROJECTS),
        "causes": Table(
            by_cause(of.findings),
            ("severity", "place", F.desc("explained"), F.desc("count"), "finding", "project", "queue", "detail"),
        ),
        "findings": Table(
            of.findings,
            (F.col("message_id").isNotNull(), "severity", "finding", "project", "message_id", "delivery_id", "detail"),
            {"breaches": (F.col("severity") == "breach").cast("long")},
        ),
    }
