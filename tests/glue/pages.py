"""Made-up results of a run: what the page shows for given rows, without Spark."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from html import unescape
from typing import Any

from glue_jobs.delivery_report.figures.causes import KNOWN
from glue_jobs.delivery_report.page.rendering import render
from glue_jobs.delivery_report.page.results import Results
from glue_jobs.delivery_report.proof.conservation import STANDINGS
from glue_jobs.delivery_report.run.arguments import Arguments

TABLES = [
    "overall",
    "projects",
    "queues",
    "deliveries_by_day",
    "deliveries_by_hour",
    "subscribers",
    "sickest",
    "slowest",
    "failures_by_cause",
    "attempts_needed",
    "anomalies",
    "outages",
    "conservation",
    "findings",
    "causes",
    "given_up",
    "backlog",
]

COUNTS = [
    "messages",
    "deliveries",
    "delivered",
    "acknowledged",
    "exhausted",
    "expired",
    "cancelled",
    "open",
    "first_won",
    "tried",
    "attempts",
    "retries",
    "attempts_made",
    "attempts_failed",
]

SET_ASIDE = {"stream_records_quarantined": 0}
TIMES = ("delivery_p50_ms", "delivery_p95_ms", "delivery_p99_ms", "p50_ms", "p95_ms", "p99_ms")


def fate(**row: Any) -> dict[str, Any]:
    """A row of sums over deliveries; missing fields are zero."""
    return {**dict.fromkeys(COUNTS, 0), **dict.fromkeys(TIMES), **row}


def results(now: str = "2026-11-21T01:30:00", *, looked: bool = True, **rows: Sequence[dict[str, Any]]) -> Results:
    """A report of 14 to 21 November 2026 with these tables; the others are empty.

    Args:
        looked: Whether it was asked for anomalies.
    """
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    sums = dict.fromkeys(("messages", "owed", *STANDINGS, "unexpected", "unbalanced_hours", *KNOWN), 0)
    return Results(
        arguments=Arguments(
            input="file:///in",
            output="file:///out",
            date_from=date(2026, 11, 14),
            date_to=date(2026, 11, 21),
            now=moment,
            anomalies=looked,
        ),
        verdict={"conserved": True, "as_of": moment, "sentence": "Conserved: nothing", **sums, **SET_ASIDE},
        rows={**{name: [] for name in TABLES}, **rows},
        totals={**dict.fromkeys(TABLES, 0), **{name: len(each) for name, each in rows.items()}},
        intakes=(),
        path="file:///out/reports/x",
    )


def text_of(made: Results, part: str | None = None) -> str:
    """The visible text of the page, or of one part of it."""
    html = render(made)
    if part is not None:
        (html,) = re.findall(rf'<h2 id="{part}">.*?(?=<h2|<footer)', html, re.DOTALL)
    spaced = re.sub(r"<style>.*?</style>|<svg.*?</svg>", " ", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", spaced)))


def busy() -> Results:
    """A report with a row in the most important tables, with names of maximum length."""
    whose = {"project": "5f3e" * 6, "queue": "orders-of-" + "a-very-long-name-" * 8, "subscriber_id": "s1"}
    subscriber = {**whose, "subscriber": "https://warehouse.example/" + "in" * 60}
    measured = {"attempts": 100, "failed": 50, "first_won": 40, "first_attempts": 90}
    times = {"p50_ms": 5, "p95_ms": 50, "p99_ms": 500}
    hour = datetime(2026, 11, 20, 10, tzinfo=UTC)
    anomaly = {"anomaly": "failures", "started_at": hour, "ended_at": hour, "detail": "60 of 100 failed", "score": 9.0}
    hours = [hour.replace(tzinfo=None) + timedelta(hours=n) for n in range(100)]
    delivered = {"delivered": 90, "first_won": 70, "open": 4, "expired": 6}
    took = {"delivery_p50_ms": 40, "delivery_p95_ms": 900, "delivery_p99_ms": 700_000}
    return results(
        overall=[fate(messages=1)],
        deliveries_by_hour=[fate(hour=each, **delivered, **took) for each in hours],
        failures_by_cause=[{"cause": "status 503", "attempts": 50}],
        projects=[fate(project=whose["project"], messages=1)],
        queues=[fate(project=whose["project"], queue=whose["queue"], messages=1)],
        sickest=[{**subscriber, **measured, **times}],
        slowest=[{**subscriber, **measured, **times}],
        anomalies=[{**subscriber, **anomaly}],
    )


if __name__ == "__main__":
    sys.stdout.write(render(busy()))
