"""Whether another try helps: success by try."""

from __future__ import annotations

from typing import Final

from ..storage.driver import columns, total
from ..storage.schema import struct
from .cells import WHO

TRIED: Final = struct("string " + " ".join(WHO), "bigint attempts won_attempt n")
"""Columns of a cell of tried deliveries."""


def try_cells(deliveries: str) -> str:
    """Pushed deliveries that were tried, counted by subscriber, attempts made, and the attempt that won."""
    return f"""
        WITH tried AS (
            -- A poll has the number of an attempt, but asks for what was taken before.
            SELECT {columns(WHO)}attempts - polls AS attempts, won_attempt
            FROM {deliveries} WHERE NOT pull AND NOT notification
        )
        SELECT {columns(WHO)}attempts,
               CASE WHEN won_attempt IS NOT NULL THEN least(won_attempt, attempts) END AS won_attempt, count(*) AS n
        FROM tried WHERE attempts > 0 GROUP BY ALL"""


def by_attempt(cells: str) -> str:
    """Per attempt number: deliveries that made it (``tried``), that it won (``won``), its ``share``, and the
    ``won_so_far`` share of all.
    """
    return f"""
        SELECT *, won / tried AS share,
               sum(won) OVER (ORDER BY attempt) / first(tried) OVER (ORDER BY attempt) AS won_so_far
        FROM (
            SELECT attempt, {total("n", "tried")},
                   {total("CASE WHEN won_attempt = attempt THEN n ELSE 0 END", "won")}
            FROM (SELECT *, unnest(generate_series(1, attempts)) AS attempt FROM {cells}) GROUP BY attempt
        )"""
