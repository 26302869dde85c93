"""Whether another try helps: success by try, and how long subscribers take to recover."""

from __future__ import annotations

from typing import Final

from ..storage.driver import columns, total
from ..storage.schema import struct
from .cells import WHO
from .percentiles import bucket_of, rolled_up

RECOVERY: Final = {"p25_ms": 0.25, "p50_ms": 0.5, "p75_ms": 0.75, "p90_ms": 0.9, "p95_ms": 0.95, "p99_ms": 0.99}

TRIED: Final = struct("string " + " ".join(WHO), "bigint attempts won_attempt", "int bucket", "bigint n longest_ms")
"""Columns of a cell of tried deliveries."""


def try_cells(deliveries: str) -> str:
    """Pushed deliveries that were tried, counted by subscriber, attempts made, the attempt that won, and the time they
    took to recover.

    That time is from the first answer to success, for those that did not win at once. Success is only seen when it is
    tried, so these times are those of the schedule in use, rounded up to its next try.

    Args:
        deliveries: A table of deliveries (:data:`.deliveries.DELIVERY`).
    """
    return f"""
        WITH tried AS (
            -- A poll has the number of an attempt, but asks for what was taken before.
            SELECT {columns(WHO)}attempts - polls AS attempts, won_attempt, first_answer_at, settled_at
            FROM {deliveries} WHERE NOT pull AND NOT notification
        ), counted AS (
            SELECT {columns(WHO)}attempts, first_answer_at, settled_at,
                   CASE WHEN won_attempt IS NOT NULL THEN least(won_attempt, attempts) END AS won_attempt
            FROM tried WHERE attempts > 0
        ), timed AS (
            SELECT *, CASE WHEN won_attempt > 1
                           THEN date_diff('millisecond', first_answer_at, settled_at) END AS took
            FROM counted
        )
        SELECT {columns(WHO)}attempts, won_attempt, {bucket_of("took")} AS bucket,
               count(*) AS n, max(took) AS longest_ms
        FROM timed GROUP BY ALL"""


def by_attempt(cells: str) -> str:
    """Per attempt number: deliveries that made it (``tried``), that it won (``won``), its ``share``,
    and the ``won_so_far`` share of all.

    Args:
        cells: See :func:`try_cells`.
    """
    return f"""
        SELECT *, won / tried AS share,
               sum(won) OVER (ORDER BY attempt) / first(tried) OVER (ORDER BY attempt) AS won_so_far
        FROM (
            SELECT attempt, {total("n", "tried")},
                   {total("CASE WHEN won_attempt = attempt THEN n ELSE 0 END", "won")}
            FROM (SELECT *, unnest(generate_series(1, attempts)) AS attempt FROM {cells}) GROUP BY attempt
        )"""


def recovery_times(cells: str) -> str:
    """How long deliveries that failed at first took to be taken for good: count and percentiles.

    Args:
        cells: See :func:`try_cells`.
    """
    recovered = f"(SELECT * FROM {cells} WHERE bucket IS NOT NULL)"
    return rolled_up(recovered, (), sums={"recovered": "n"}, count="n", largest="longest_ms", wanted=RECOVERY)
