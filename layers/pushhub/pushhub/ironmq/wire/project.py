"""What a project is told of itself, whatever protocol its messages came by.

IronMQ has nothing like it; it is named and worded as its other answers are.
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
    """How many hours are asked for.

    Raises:
        Invalid: No number from 1 to a week's.
    """
    hours = number_in_query(query, "hours", default=DEFAULT_HOURS)
    if not 1 <= hours <= MAX_HOURS:
        raise Invalid(f"hours must be a number from 1 to {MAX_HOURS}")
    return hours


def render_activity(hours: Sequence[tuple[int, Activity]]) -> dict[str, object]:
    """Hours with what went on in each."""
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
    """Hours with what went on at a subscriber in each, and how long it took on average."""
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
    """Whether everything of a project is accounted for."""
    return {"from": told.first, "to": told.last, "as_of": told.as_of, "verdict": told.verdict}


def render_table(table: ReportedTable) -> dict[str, object]:
    """A table of the report."""
    return {"rows": table.rows, "complete": table.complete}
