"""What each project's deliveries cost at list prices, line by line."""

from __future__ import annotations

from typing import Final

from ..storage.driver import text
from .list_prices import PRICES
from .usage import USAGE

FATES: Final = (
    *("messages", "deliveries", "body_bytes", "inline_bytes", "large_bodies"),
    *("acknowledged", "expired", "cancelled"),
)
"""Sums of deliveries that it counts with."""

ATTEMPTS: Final = ("attempts", "first_attempts", "parks", "bytes_out", "busy_ms")
"""Sums of attempts that it counts with."""


def bill(attempts: str, fates: str) -> str:
    """The lines of each project's bill: ``project``, ``item``, ``units``, ``unit_usd``, ``usd``.

    Args:
        attempts: Sums of attempts by project and ``dialect`` (:func:`.cells.summed`).
        fates: Sums of deliveries by project (:func:`.traffic.fates`).
    """
    tried = ", ".join(f"sum({name})::DOUBLE AS {name}" for name in ATTEMPTS)
    became = ", ".join(f"sum({name})::DOUBLE AS {name}" for name in FATES)
    zero = ", ".join(f"coalesce({name}, 0.0)::DOUBLE AS {name}" for name in (*ATTEMPTS, *FATES, "notified"))
    lines = ", ".join(
        f"{{'item': {text(each.item)}, 'units': ({each.units})::DOUBLE, 'unit_usd': {PRICES[each.price]!r}::DOUBLE}}"
        for each in USAGE
    )
    return f"""
        SELECT *, units * unit_usd AS usd FROM (
            SELECT project, unnest([{lines}], recursive := true) FROM (
                SELECT *, attempts - first_attempts AS retries,
                       attempts + acknowledged + expired + cancelled AS changes
                FROM (
                    SELECT * REPLACE ({zero}) FROM (SELECT project, {became} FROM {fates} GROUP BY project)
                    FULL JOIN (
                        SELECT project, {tried},
                               sum(attempts) FILTER (dialect = 'notifications')::DOUBLE AS notified
                        FROM {attempts} GROUP BY project
                    ) USING (project)
                )
            )
        )"""


def by_item(lines: str) -> str:
    """What each item costs all projects. Always added up in one order, on which fractions depend.

    Args:
        lines: See :func:`bill`.
    """
    return f"""
        SELECT item, sum(units ORDER BY project) AS units, sum(usd ORDER BY project) AS usd
        FROM {lines} GROUP BY item"""


def by_project(lines: str) -> str:
    """What each project costs; see :func:`by_item`."""
    return f"SELECT project, sum(usd ORDER BY item) AS usd FROM {lines} GROUP BY project"
