"""What stores write into items of each kind, without the keys: for tests that make items of their own."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.contract.filled import FIXED, Filler, defaults

from pushhub.cloud.table import Item
from pushhub.engine.model.circuit import Health
from pushhub.engine.model.deflated import stored_as
from pushhub.engine.model.delivery import Delivery
from pushhub.engine.model.message import Message
from pushhub.engine.model.queue import Queue
from pushhub.engine.store._delivery_items import encode_delivery
from pushhub.engine.store._message_items import encode_fields
from pushhub.engine.store._queue_items import encode_queue
from pushhub.engine.store.dynamodb_catalogue import encode_seen
from pushhub.engine.store.dynamodb_subscribers import _encode_health
from pushhub.hub.model.log import LoggedMessage
from pushhub.hub.model.mapping import ServiceMapping
from pushhub.hub.store._items import encode_entry, encode_mapping
from pushhub.ironmq.model.project_alert import Format, Measure, ProjectAlert
from pushhub.ironmq.store.dynamodb_alerts import _encode
from pushhub.webhooks.model.application import Application
from pushhub.webhooks.model.attempt import LoggedAttempt
from pushhub.webhooks.store._items import encode_application
from pushhub.webhooks.store.dynamodb_logs import attempts_item

_BESIDE = {
    ("MessagesTable", "M"): {"kind": {"S": "message"}},
    ("WebhooksTable", "APP#.*"): {"version": {"N": "1"}, "endpoints": {"N": "0"}},
}
"""What a store writes beside what its encoder makes."""
_QUEUE = {"queue": {"S": "q"}}
_HEAD = {"uid": {"S": "u"}, **{name: {"N": "1"} for name in ("sequence", "size", "ceiling", "reserved_at", "version")}}

_BODY = {(Message, "body"): stored_as(b"nine letters" * 750)}
"""One that can be opened, and is as long as its message says."""

ENCODERS: dict[tuple[str, str], tuple[type, Callable[[Any], Item]]] = {
    ("ConfigTable", "QUEUE#.*"): (Queue, encode_queue),
    ("MessagesTable", "M"): (Message, encode_fields),
    ("MessagesTable", "D#.*"): (Delivery, encode_delivery),
    ("ScheduleTable", "uid#s0"): (Health, _encode_health),
    ("HubTable", "MAPPING#.*"): (ServiceMapping, encode_mapping),
    ("HubTable", "ENTRY"): (LoggedMessage, encode_entry),
    ("WebhooksTable", "APP#.*"): (Application, encode_application),
    ("WebhooksTable", "T#.*"): (LoggedAttempt, lambda attempt: attempts_item([attempt])),
}


def content(table: str, pk: str, sk: str) -> dict[str, Any]:
    """The attributes of an item with such keys, as its store writes them, and only those that each one has."""
    if table == "ScheduleTable" and (pk.startswith("CIRCUITS#") or pk[0].isdigit()):
        return _QUEUE
    if table == "ConfigTable" and pk == "ALERTS":
        return _alert()
    if table == "ScheduleTable" and pk.startswith("LISTED#"):
        return encode_seen([])
    if table == "ScheduleTable" and pk.startswith("VALUES#"):
        return {"v": {"B": b""}}
    if table == "BacklogsTable" and sk == "HEAD":
        return _HEAD
    for (where, key), (kind, encode) in ENCODERS.items():
        if where == table and re.fullmatch(key, sk):
            value: Any = Filler(0, FIXED | _BODY).record(kind)
            value = replace(value, **{each.name: each.value for each in defaults(kind)})
            attributes = {name: each for name, each in encode(value).items() if name not in ("pk", "sk")}
            return attributes | _BESIDE.get((where, key), {})
    return {}


def _alert() -> dict[str, Any]:
    alert = ProjectAlert(
        project="5" * 24,
        alert_id="0" * 12,
        created_at=1,
        name="a",
        measure=Measure.GIVEN_UP,
        threshold=1,
        minutes=60,
        url="https://a.example",
        format=Format.JSON,
    )
    return {name: each for name, each in _encode(alert).items() if name not in ("pk", "sk")}
