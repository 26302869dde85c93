"""Searches of the past on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Invalid
from pushhub.base.times import iso_time
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.past import DAY_MS, MAX_WANTED, MOST_DAYS, PastEvent, PastPage, PastQuery
from pushhub.web.json import moment, text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_PAST_CURSOR = 1_024


def parse_past(project: str, fields: Mapping[str, Any], now: int) -> PastQuery:
    """Read a search.

    Args:
        project: The project that asks.
        now: Epoch milliseconds; the end if none is given.

    Raises:
        Invalid: Nothing is looked for, or a field cannot be.
    """
    until = moment(fields, "until")
    until = now if until is None else until
    since = moment(fields, "since")
    since = until - DAY_MS if since is None else since
    if not 0 <= since < until <= now + DAY_MS:
        raise Invalid("since must be before until, and until not in the future")
    if until - since > MOST_DAYS * DAY_MS:
        raise Invalid(f"since may be at most {MOST_DAYS} days before until")
    query = PastQuery(
        project=project,
        since=since,
        until=until,
        message_id=_wanted(fields, "message_id"),
        queue=_wanted(fields, "queue"),
        subscriber=_wanted(fields, "subscriber"),
        state=_wanted(fields, "state"),
    )
    if query.state and query.state not in list(DeliveryState):
        raise Invalid(f"state must be one of: {', '.join(DeliveryState)}")
    if not (query.message_id or query.queue or query.subscriber or query.state):
        raise Invalid("message_id, queue, subscriber or state is required")
    return query


def _wanted(fields: Mapping[str, Any], name: str) -> str:
    value = (text(fields, name) or "").strip()
    if len(value.encode()) > MAX_WANTED or not (value.isprintable() or not value):
        raise Invalid(f"{name} must be printable text of at most {MAX_WANTED} bytes")
    return value


def parse_past_cursor(query: Mapping[str, str]) -> str | None:
    """Where a look continues; None for the beginning."""
    after = query.get("after", "")
    if len(after) > MAX_PAST_CURSOR:
        raise Invalid("after must be the cursor of an answer")
    return after or None


def render_started(search_id: str, query: PastQuery) -> dict[str, object]:
    """A search that was started."""
    first, last = query.days
    return {
        "id": search_id,
        "since": iso_time(query.since),
        "until": iso_time(query.until),
        "first_day": first,
        "last_day": last,
    }


def render_past(page: PastPage, shown: Callable[[str, str], tuple[str, str | None, str]]) -> dict[str, object]:
    """What a search has found; ``shown`` names a message as its protocol does."""
    return {
        "state": page.state.value,
        "reason": page.reason or None,
        "scanned_bytes": page.scanned_bytes,
        "hours_left": page.hours_left,
        "found": [_rendered(each, shown) for each in page.events],
        "after": page.after,
    }


def _rendered(event: PastEvent, shown: Callable[[str, str], tuple[str, str | None, str]]) -> dict[str, object]:
    kind, of, message_id = shown(event.queue, event.message_id)
    return {
        "at": event.at,
        "event": event.kind,
        "kind": kind,
        "queue": event.queue if kind == "queue" else None,
        "application": of if kind == "application" else None,
        "message_id": message_id,
        "subscriber": event.subscriber or event.subscriber_id,
        "state": event.state,
        "reason": event.reason,
        "attempt": event.attempt,
        "status_code": event.status_code,
        "error": event.error_class or None,
        "duration_ms": event.duration_ms,
    }
