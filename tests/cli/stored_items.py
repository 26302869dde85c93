"""What stores write into items of each kind, without the keys: for tests that make items of their own."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from tests.contract.earlier import FOLDER

from pushhub.ironmq.model.project_alert import Format, Measure, ProjectAlert
from pushhub.ironmq.store.dynamodb_alerts import _encode

_KIND = {"kind": {"S": "message"}}
_QUEUE = {"queue": {"S": "q"}}
_HEAD = {"uid": {"S": "u"}, **{name: {"N": "1"} for name in ("sequence", "size", "ceiling", "reserved_at", "version")}}

DECODERS = {
    ("ConfigTable", "QUEUE#.*"): "pushhub.engine.store._queue_items:decode_queue",
    ("MessagesTable", "M"): "pushhub.engine.store._message_items:decode_fields",
    ("MessagesTable", "D#.*"): "pushhub.engine.store._delivery_items:decode_delivery",
    ("ScheduleTable", "HEALTH"): "pushhub.engine.store.dynamodb_subscribers:_decode_health",
    ("HubTable", "MAPPING#.*"): "pushhub.hub.store._items:decode_mapping",
    ("HubTable", "ENTRY"): "pushhub.hub.store._items:decode_entry",
    ("WebhooksTable", "APP#.*"): "pushhub.webhooks.store._items:decode_application",
}


@cache
def _stored() -> dict[str, dict[str, Any]]:
    """The first item that each decoder has read in the files of the contract tests."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(FOLDER.glob("*.json")):
        for each in json.loads(file.read_text()):
            found.setdefault(each["decoder"], each["arguments"][0])
    return found


def content(table: str, pk: str, sk: str) -> dict[str, Any]:
    """The attributes of an item with such keys, as its store writes them."""
    if table == "ScheduleTable" and (pk.startswith("CIRCUITS#") or pk[0].isdigit()):
        return _QUEUE
    if table == "ConfigTable" and pk == "ALERTS":
        return _alert()
    if table == "BacklogsTable" and sk == "HEAD":
        return _HEAD
    decoder = next((name for (where, key), name in DECODERS.items() if where == table and re.fullmatch(key, sk)), None)
    if decoder is None:
        return {}
    attributes = {name: _typed(each) for name, each in _stored()[decoder].items() if name not in ("pk", "sk")}
    return attributes | (_KIND if (table, sk) == ("MessagesTable", "M") else {})


def _typed(value: dict[str, Any]) -> dict[str, Any]:
    [(kind, each)] = value.items()
    if kind == "B":
        return {kind: bytes.fromhex(each["bytes"])}
    if kind == "L":
        return {kind: [_typed(one) for one in each]}
    return {kind: {name: _typed(one) for name, one in each.items()}} if kind == "M" else value


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
