"""Every table of a report, by name: queries on the driver over what Spark has counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ..proof.conservation import STANDINGS
from ..storage.driver import Driver
from .balance import balance, verdicts
from .causes import KNOWN, by_cause
from .cells import IS_OWN, KEYS, WHO, failures_by_cause, summed, usual_cause
from .traffic import FATES, backlog, by_attempt, counted_once, fates, given_up, without_gaps

RANKED: Final = 20
"""Subscribers in a ranking."""

RANKED_ATTEMPTS: Final = 20
"""Attempts a subscriber needs to be ranked; fewer say little about it."""

HOURS: Final = 24 * 400
"""Hours that can be drawn."""

PROJECTS: Final = 20_000
"""Projects whose own verdicts can be read by the hub."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the report: its rows, and the order they are kept in.

    Attributes:
        totals: What each row adds to totals that are asked for besides, by name.
        shown: Rows that go into its JSON file and are at hand for the page; a longer one is written as Parquet, too.
    """

    query: str
    order: str = ""
    totals: Mapping[str, str] = field(default_factory=dict)
    shown: int = 2_000


def tables(driver: Driver, *, since: datetime, until: datetime) -> dict[str, Table]:
    """The tables by name, each in its order of interest. Columns: ``docs/report.md``.

    Nothing but the proof has messages of the hub's own (:data:`.cells.IS_OWN`).

    Args:
        driver: Holds ``attempt_cells`` (:func:`.cells.attempt_cells`), ``fate_cells`` (:func:`.traffic.fate_cells`),
            ``try_cells`` (:func:`.traffic.try_cells`), ``outages`` (:func:`.outages.outages`), ``anomalies`` and
            ``findings``, of the report's projects.
        until: End of what it tells of: of its last day, or when it was made.
    """
    theirs = "attempts"
    driver.keep("fates", counted_once("fate_cells"))
    driver.keep(theirs, f"SELECT * FROM attempt_cells WHERE NOT {IS_OWN}")
    driver.keep("subscribers", summed(theirs, WHO))
    driver.keep("balance", balance("fate_cells"))
    usual = "(SELECT * FROM fate_cells WHERE NOT " + IS_OWN + ")"
    called = f"SELECT {KEYS}, subscriber FROM subscribers"
    solid = f"(SELECT * FROM subscribers WHERE attempts >= {RANKED_ATTEMPTS})"
    worst = f"failed / nullif(attempts, 0) DESC, failed DESC, {KEYS}"
    attempts_overall = (
        "SELECT attempts AS attempts_made, failed AS attempts_failed, polls, parks, p50_ms, p95_ms, p99_ms, longest_ms "
        f"FROM ({summed(theirs, ())})"
    )

    def course(rows: str, key: str, counts: Mapping[str, str]) -> str:
        return without_gaps(f"({rows})", key, counts, since, until)

    return {
        "overall": Table(f"SELECT * FROM ({fates('fates', ())}) CROSS JOIN ({attempts_overall})"),
        # A project of which only attempts are known has a bill all the same.
        "projects": Table(fates("fates", ("project",)), "messages DESC, project"),
        "queues": Table(fates("fates", ("project", "queue")), "messages DESC, project, queue"),
        "deliveries_by_day": Table(course(fates("fates", ("day",)), "day", FATES), "day"),
        "deliveries_by_hour": Table(course(fates("fates", ("hour",)), "hour", FATES), "hour", shown=HOURS),
        "subscribers": Table("SELECT * FROM subscribers", f"attempts DESC, {KEYS}"),
        "sickest": Table(f"SELECT * FROM {solid} WHERE failed > 0 ORDER BY {worst} LIMIT {RANKED}", worst),
        "slowest": Table(
            f"SELECT * FROM {solid} ORDER BY p95_ms DESC, attempts DESC, {KEYS} LIMIT {RANKED}",
            f"p95_ms DESC, attempts DESC, {KEYS}",
        ),
        "attempts_needed": Table(by_attempt("try_cells"), "attempt"),
        "given_up": Table(
            f"SELECT * FROM ({given_up(usual)}) LEFT JOIN ({called}) USING ({KEYS}) "
            f"LEFT JOIN ({usual_cause(theirs)}) USING ({KEYS})",
            f"given_up DESC, {KEYS}",
        ),
        "backlog": Table(
            f"SELECT * FROM ({backlog(usual)}) LEFT JOIN ({called}) USING ({KEYS})", f"waiting DESC, {KEYS}"
        ),
        "outages": Table("SELECT * FROM outages", f"reachable DESC, given_up DESC, longest_ms DESC NULLS LAST, {KEYS}"),
        "failures_by_cause": Table(failures_by_cause(theirs), "attempts DESC, cause"),
        "anomalies": Table("SELECT * FROM anomalies", f"score DESC, anomaly, {KEYS}, started_at"),
        "conservation": Table(
            "SELECT * FROM balance",
            "project, hour",
            {
                **{name: name for name in ("messages", "owed", *STANDINGS, "unexpected")},
                "unbalanced_hours": "(NOT balanced)::BIGINT",
            },
        ),
        "verdicts": Table(verdicts("balance", "findings"), "project", shown=PROJECTS),
        "causes": Table(
            by_cause("findings"),
            "severity, place, explained DESC, count DESC, finding, project NULLS FIRST, queue NULLS FIRST, detail",
        ),
        "findings": Table(
            "SELECT * FROM findings",
            "message_id IS NOT NULL, severity, finding, project NULLS FIRST, message_id, delivery_id, detail",
            {"breaches": "(severity = 'breach')::BIGINT", **KNOWN},
        ),
    }
