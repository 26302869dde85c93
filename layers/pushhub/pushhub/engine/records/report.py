"""A project's part of the newest delivery report. The whole report covers all projects and is for operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import NotFound
from pushhub.engine.component import Component

if TYPE_CHECKING:
    from pushhub.engine.records.ports import ReportStore

TABLES = ("queues", "subscribers", "outages", "given_up", "backlog", "anomalies", "findings", "conservation")
"""The report's tables with one project per row; their contents are described in ``docs/report.md``."""

SHOWN = 2_000
"""Number of rows per table that the report stores as JSON."""

VERDICTS = "verdicts"
OUTAGES = "outages"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedOutages:
    """When a subscriber was down, as the records have it.

    Attributes:
        as_of: When the report was made, ISO 8601.
        rows: The report's rows of it: several if it was removed and registered again under the same name.
        complete: Whether the report tells of all subscribers; of very many, it stores only those that lost most.
    """

    as_of: str
    rows: list[dict[str, Any]]
    complete: bool

    @property
    def said(self) -> list[str]:
        """The same in words, a sentence for each row; without any, why there is none."""
        if self.rows:
            return [str(row.get("sentence", "")) for row in self.rows]
        if self.complete:
            return ["Nothing is known: the records of the last 30 days have no attempt to it."]
        return ["Nothing is known: the report has too many subscribers, and stores only those that lost most."]


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

    def outages(self, project_id: str, queue: str, subscriber: str) -> ReportedOutages:
        """When a subscriber was down in the last 30 days, and what was given up meanwhile.

        Args:
            queue: Name of the queue; for a webhook endpoint, ``webhooks/`` and the application's id.
            subscriber: Its id or its name.

        Raises:
            NotFound: There is no report yet.
        """
        store = self.store
        newest = store.newest()
        if newest is None:
            raise NotFound("There is no delivery report yet")
        rows = store.rows(newest.name, OUTAGES)
        return ReportedOutages(
            as_of=newest.as_of,
            rows=[
                row
                for row in _of(project_id, rows)
                if row.get("queue") == queue and subscriber in (row.get("subscriber_id"), row.get("subscriber"))
            ],
            complete=len(rows) < SHOWN,
        )


def _of(project_id: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in row.items() if name != "project"}
        for row in rows
        if row.get("project") == project_id
    ]
