"""Information for a project about itself, whatever protocol its messages used.

IronMQ has no equivalent; names and style follow its other answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.errors import Invalid
from pushhub.base.times import iso_time
from pushhub.web.json import number_in_query

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pushhub.engine.activity import AtSubscriber
    from pushhub.engine.model.activity import Activity
    from pushhub.engine.report import ReportedTable, ReportedVerdict

DEFAULT_HOURS = 24
MAX_HOURS = 168


def parse_hours(query: Mapping[str, str]) -> int:
    """Number of hours requested.

    Raises:
        Invalid: Not a number from 1 to the hours of a week.
    """
    hours = number_in_query(query, "hours", default=DEFAULT_HOURS)
    if not 1 <= hours <= MAX_HOURS:
        raise Invalid(f"hours must be a number from 1 to {MAX_HOURS}")
    return hours


def render_activity(hours: Sequence[tuple[int, Activity]]) -> dict[str, object]:
    """Activity by hour."""
    return {
        "hours": [
            {
                "hour": iso_time(hour),
                "accepted": activity.accepted,
                "delivered": activity.delivered,
                "failed": activity.failed,
                "given_up": activity.given_up,
            }
            for hour, activity in hours
        ]
    }


def render_subscriber_activity(told: AtSubscriber) -> dict[str, object]:
    """Activity at a subscriber by hour, with the average duration of an attempt."""
    return {
        "hours": [
            {
                "hour": iso_time(hour),
                "attempts": activity.attempts,
                "delivered": activity.delivered,
                "failed": activity.failed,
                "average_ms": activity.took_ms // activity.attempts if activity.attempts else None,
            }
            for hour, activity in told.hours
        ],
        "complete": told.complete,
    }


def render_verdict(told: ReportedVerdict) -> dict[str, object]:
    """Whether every message of a project is accounted for."""
    return {"from": told.first, "to": told.last, "as_of": told.as_of, "verdict": told.verdict}


def render_table(table: ReportedTable) -> dict[str, object]:
    """A table of the report."""
    return {"rows": table.rows, "complete": table.complete}
