"""Alerts of pull queues on the wire, and the message an alert posts (IronMQ "Queue Alerts")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.base import json_text
from pushhub.base.errors import Invalid
from pushhub.base.times import iso_time
from pushhub.engine.model.queue import Alert
from pushhub.ironmq.wire.names import check_queue_name
from pushhub.web.json import Fields, integer, text

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_ALERTS = 5
"""Maximum number of alerts per queue."""

DUPLICATE_ALERT = "At least one new alert duplicates current queue alerts."
MAX_TRIGGER = 2**31 - 1
TYPES = ("fixed", "progressive")
DIRECTIONS = ("asc", "desc")


def parse_alerts(given: Sequence[Any]) -> tuple[Alert, ...]:
    """The requested alerts, with an empty ``alert_id``.

    Empty objects are skipped: clients send one to clear the list.

    Raises:
        Invalid: One is invalid, two are duplicates, or there are too many.
    """
    alerts = tuple(_alert(each) for each in given if each != {})
    if len(alerts) > MAX_ALERTS:
        raise Invalid(f"A queue can have at most {MAX_ALERTS} alerts")
    if len({alert_key(each) for each in alerts}) != len(alerts):
        raise Invalid(DUPLICATE_ALERT)
    return alerts


def alert_key(alert: Alert) -> tuple[str, str, int]:
    """Two alerts of a queue with the same key are duplicates."""
    return alert.type, alert.direction, alert.trigger


def _alert(given: Any) -> Alert:
    if not isinstance(given, dict):
        raise Invalid("Alert must be an object")
    trigger = integer(given, "trigger", least=1, most=MAX_TRIGGER)
    if trigger is None:
        raise Invalid("Alert trigger is required")
    return Alert(
        alert_id="",
        type=_choice(given, "type", TYPES, ""),
        trigger=trigger,
        direction=_choice(given, "direction", DIRECTIONS, DIRECTIONS[0]),
        queue=check_queue_name(text(given, "queue") or "", "Alert queue"),
        snooze=integer(given, "snooze", least=0, most=MAX_TRIGGER) or 0,
    )


def _choice(given: Fields, name: str, choices: Sequence[str], default: str) -> str:
    choice = text(given, name) or default
    if choice not in choices:
        raise Invalid(f"Alert {name} must be one of: " + ", ".join(choices))
    return choice


def render_alert(alert: Alert) -> dict[str, object]:
    """An alert as queue info shows it."""
    return {
        "id": alert.alert_id,
        "type": alert.type,
        "trigger": alert.trigger,
        "direction": alert.direction,
        "queue": alert.queue,
        "snooze": alert.snooze,
    }


def alert_body(alert: Alert, queue_name: str, size: int, now: int) -> bytes:
    """The message that reports a crossed trigger.

    Args:
        queue_name: The queue it watches.
        size: That queue's size.
    """
    fields = {
        "source_queue": queue_name,
        "queue_size": size,
        "alert_id": alert.alert_id,
        "alert_type": alert.type,
        "alert_direction": alert.direction,
        "alert_trigger": alert.trigger,
        "created_at": iso_time(now),
    }
    return json_text.write(fields, spaced=True).encode()
