"""Describes the routes of projects' alerts for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from pushhub.ironmq.model.project_alert import Format, Measure
from pushhub.ironmq.wire.names import MAX_QUEUE_NAME_BYTES
from pushhub.ironmq.wire.project_alerts import (
    DEFAULT_MINUTES,
    MAX_ALERT_NAME,
    MAX_ALERT_URL,
    MAX_MINUTES,
    MAX_SUBSCRIBER,
    MAX_THRESHOLD,
    MIN_MINUTES,
)
from pushhub.web.description import Described, Schema, answer, array, nullable, ref, request, text, whole

ALERT_ID = "0f3c96bb77d5"

_FIELDS: dict[str, Schema] = {
    "name": text("For people.", minLength=1, maxLength=MAX_ALERT_NAME),
    "measure": text(
        "`failure_rate`: percent of attempts that failed, of five at least. `given_up`: deliveries given up."
        " `oldest_waiting`: seconds since the oldest message that waits in a queue was accepted.",
        enum=[*Measure],
    ),
    "threshold": whole("From which value it fires.", 1, max(MAX_THRESHOLD.values())),
    "minutes": whole(
        "The window of the measures that count; not used by `oldest_waiting`.",
        MIN_MINUTES,
        MAX_MINUTES,
        default=DEFAULT_MINUTES,
    ),
    "queue": text("The queue it watches; empty for the whole project.", maxLength=MAX_QUEUE_NAME_BYTES),
    "subscriber": text(
        "The subscriber it watches: by name with a queue; an endpoint or a mapping by its id. Empty for all.",
        maxLength=MAX_SUBSCRIBER,
    ),
    "url": text("Where notifications are POSTed, `https://` or `http://`.", minLength=1, maxLength=MAX_ALERT_URL),
    "format": text("`slack` for an incoming webhook of Slack.", enum=[*Format]),
}
_WANTED = request({"alert": request(_FIELDS, needs=("name", "measure", "threshold", "url"))}, needs=("alert",))
_SHOWN = answer(
    {
        "id": text("The alert's id."),
        **_FIELDS,
        "state": text("Whether it fires.", enum=["quiet", "firing"]),
        "since": nullable(text("Since when it fires.", format="date-time")),
        "value": nullable(whole("The value when it was last noted; null before the first look.", 0)),
    }
)
_SETTINGS: dict[str, Any] = {
    "name": "Deliveries fail",
    "measure": "failure_rate",
    "threshold": 50,
    "minutes": 15,
    "queue": "",
    "subscriber": "",
    "url": "https://ops.example/alerts",
    "format": "json",
}
_EXAMPLE = {"id": ALERT_ID, **_SETTINGS, "state": "firing", "since": "2026-11-18T11:06:40.000Z", "value": 83}
_DONE = ref("IronmqDone")

ALERTS: dict[str, Described] = {
    "ironmq.list_project_alerts": Described(
        means="In the order in which they were made.",
        answer=answer({"alerts": array(_SHOWN)}),
        answered={"alerts": [_EXAMPLE]},
    ),
    "ironmq.create_project_alert": Described(
        means="It is looked at each minute. When its value reaches the threshold, a JSON object (`state`, `alert`,"
        " `value`, `at`, `text`, `project`, `link`) or a Slack message is POSTed to its URL, and once more when the"
        " value has been below for ten minutes.",
        request=_WANTED,
        sent={"alert": _SETTINGS},
        answer=answer({"alert": _SHOWN}),
        answered={"alert": _EXAMPLE},
        refusals={404: "No such queue, or it has no such subscriber"},
    ),
    "ironmq.change_project_alert": Described(
        means="Replaces all settings; what is left out gets its default.",
        request=_WANTED,
        sent={"alert": _SETTINGS},
        answer=answer({"alert": _SHOWN}),
        answered={"alert": _EXAMPLE},
        refusals={404: "No such alert, queue or subscriber"},
    ),
    "ironmq.delete_project_alert": Described(
        answer=_DONE, answered={"msg": "Deleted"}, refusals={404: "No such alert"}
    ),
    "ironmq.test_project_alert": Described(
        means="Its `state` is `test`.", answer=_DONE, answered={"msg": "Sent"}, refusals={404: "No such alert"}
    ),
}
"""By the route's name."""
