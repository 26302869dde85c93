"""A project's part of the newest delivery report. The whole report covers all projects and is for operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import NotFound
from pushhub.engine.component import Component

if TYPE_CHECKING:
    from pushhub.engine.ports import ReportStore

TABLES = ("queues", "subscribers", "retry_advice", "given_up", "backlog", "anomalies", "findings", "conservation")
"""The report's tables with one project per row; their contents are described in ``docs/report.md``."""

SHOWN = 2_000
"""Number of rows per table that the report stores as JSON."""

VERDICTS = "verdicts"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedVerdict:
    """Whether every message of a project is accounted for.

    Attributes:
        first: The report's first day, ``2026-11-15``.
        as_of: When deliveries were judged, ISO 8601.
        verdict: The project's row in the table of verdicts; None when the report has none for it.
    """

    first: str
    last: str
    as_of: str
    verdict: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedTable:
    """A project's rows of a table.

    Attributes:
        rows: Its rows, without the project's id.
        complete: Whether these are all; of a long table, the report stores only the first rows.
    """

    rows: list[dict[str, Any]]
    complete: bool


class ProjectReport(Component):
    """Reads one project's part of the newest report."""

    store: ReportStore  # Where reports are stored.

    def verdict(self, project_id: str) -> ReportedVerdict:
        """Whether every message is accounted for.

        Raises:
            NotFound: There is no report yet.
        """
        store = self.store
        newest = store.newest()
        if newest is None:
            raise NotFound("There is no delivery report yet")
        rows = _of(project_id, store.rows(newest.name, VERDICTS))
        first, _, last = newest.name.partition("_")
        return ReportedVerdict(first=first, last=last, as_of=newest.as_of, verdict=rows[0] if rows else None)

    def table(self, project_id: str, table: str) -> ReportedTable:
        """One of :data:`TABLES`.

        Raises:
            NotFound: There is no such table, or no report yet.
        """
        store = self.store
        newest = store.newest() if table in TABLES else None
        if newest is None:
            raise NotFound("The newest delivery report has no such table")
        rows = store.rows(newest.name, table)
        return ReportedTable(rows=_of(project_id, rows), complete=len(rows) < SHOWN)


def _of(project_id: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in row.items() if name != "project"}
        for row in rows
        if row.get("project") == project_id
    ]
