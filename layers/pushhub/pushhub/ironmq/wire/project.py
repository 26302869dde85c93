"""Information for a project about itself, whatever protocol its messages used.

IronMQ has no equivalent; names and style follow its other answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.errors import Invalid
from pushhub.base.times import iso_time
from pushhub.engine.model.activity import Activity, SubscriberActivity, percentile_ms
from pushhub.web.health import health_view
from pushhub.web.json import number_in_query

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pushhub.engine.records.activity import AtSubscriber
    from pushhub.engine.records.report import ReportedOutages, ReportedTable, ReportedVerdict
    from pushhub.ironmq.model.overview import Overview, QueueSeen

DEFAULT_HOURS = 24
MAX_HOURS = 168

PERCENTS = (50, 95, 99)
"""Which percentiles of the duration of attempts are shown."""


def parse_hours(query: Mapping[str, str]) -> int:
    """Number of hours requested."""
    hours = number_in_query(query, "hours", default=DEFAULT_HOURS)
    if not 1 <= hours <= MAX_HOURS:
        raise Invalid(f"hours must be a number from 1 to {MAX_HOURS}")
    return hours


def render_activity(hours: Sequence[tuple[int, Activity]]) -> dict[str, object]:
    """Activity by hour, with how long attempts took in each and in all of them."""
    return {
        "hours": [
            {
                "hour": iso_time(hour),
                "accepted": activity.accepted,
                "attempts": activity.attempts,
                "delivered": activity.delivered,
                "failed": activity.failed,
                "given_up": activity.given_up,
                **_percentiles(activity.took),
            }
            for hour, activity in hours
        ],
        **_percentiles(sum((activity for _, activity in hours), Activity()).took),
    }


def render_subscriber_activity(activity: AtSubscriber) -> dict[str, object]:
    """Activity at a subscriber by hour, with how long its attempts took in each and in all of them."""
    return {
        "hours": [
            {
                "hour": iso_time(hour),
                "attempts": activity.attempts,
                "delivered": activity.delivered,
                "failed": activity.failed,
                "given_up": activity.given_up,
                "average_ms": activity.took_ms // activity.attempts if activity.attempts else None,
                **_percentiles(activity.took),
            }
            for hour, activity in activity.hours
        ],
        **_percentiles(sum((activity for _, activity in activity.hours), SubscriberActivity()).took),
        "complete": activity.complete,
    }


def _percentiles(took: Mapping[int, int]) -> dict[str, object]:
    return {f"p{percent}_ms": percentile_ms(took, percent) for percent in PERCENTS}


def render_verdict(reported: ReportedVerdict) -> dict[str, object]:
    """Whether every message of a project is accounted for."""
    return {"from": reported.first, "to": reported.last, "as_of": reported.as_of, "verdict": reported.verdict}


def parse_subscriber(query: Mapping[str, str]) -> tuple[str, str]:
    """The queue and the subscriber that are asked about."""
    queue, subscriber = query.get("queue", ""), query.get("subscriber", "")
    if not queue or not subscriber:
        raise Invalid("queue and subscriber must be given")
    return queue, subscriber


def render_outages(reported: ReportedOutages) -> dict[str, object]:
    """When a subscriber was down, in sentences and in numbers."""
    return {"as_of": reported.as_of, "said": reported.said, "outages": reported.rows}


def render_table(table: ReportedTable) -> dict[str, object]:
    """A table of the report."""
    return {"rows": table.rows, "complete": table.complete}


def render_seen(seen: QueueSeen) -> dict[str, object]:
    """A queue in a list, with what waits in it and how its subscribers are doing."""
    push = seen.queue.push
    return {
        "name": seen.queue.name,
        "type": seen.queue.type.value,
        "subscribers": len(push.subscribers) if push else 0,
        "waiting": seen.waiting,
        "complete": seen.complete,
        "health": health_view(seen.health) if seen.health else None,
    }


def render_overview(seen: Overview) -> dict[str, object]:
    """What waits in queues, and where the next look continues."""
    return {
        "counted": seen.counted,
        "queues": [
            {
                "name": each.queue.name,
                "type": each.queue.type.value,
                "size": each.size,
                "oldest": seen.oldest.get(each.queue.name),
                "retries": each.queue.push.retries if each.queue.push else None,
                "retries_delay": each.queue.push.retries_delay if each.queue.push else None,
            }
            for each in seen.waiting
        ],
        "error_queues": sorted(seen.error_queues),
        "after": seen.after,
    }
