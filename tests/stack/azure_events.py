"""Publishes events with Azure Event Grid's own client, and says what the hub then has. Run by test_cloud_events.py."""

from __future__ import annotations

import base64
import json
import sys
import time
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import Any

from azure.core.credentials import AzureKeyCredential  # type: ignore[import-not-found]
from azure.core.messaging import CloudEvent  # type: ignore[import-not-found]
from azure.eventgrid import EventGridPublisherClient  # type: ignore[import-not-found]

given = json.load(sys.stdin)


def call(method: str, path: str, body: object = None) -> Any:
    """A request of the owner's."""
    content = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {given['token']}", "Content-Type": "application/json"}
    request = urllib.request.Request(given["hub"] + path, content, headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or b"{}")


now = datetime.now(UTC)
events = [
    CloudEvent(source="/shop", type="order.new", data={"n": 1}, time=now),
    CloudEvent(source="/shop", type="order.paid", data={"n": 2}, time=now + timedelta(milliseconds=5)),
    CloudEvent(source="/shop", type="order.new", data="grüß dich", time=now + timedelta(milliseconds=10)),
]
source = call("POST", "/ingest/api/v1/source", {"name": "azure", "type": "generic-webhook", "config": {}})
queues = f"/3/projects/{given['project']}/queues/{given['queue']}"
for url in (source["ingestUrl"], f"{given['hub']}{queues}/webhook?oauth={given['token']}"):
    with EventGridPublisherClient(url, AzureKeyCredential("any")) as client:
        client.send(events)
        client.send(events)
        client.send(events[0])

deadline = time.monotonic() + 120
listed: list[Any] = []
while len(listed) < len(events) and time.monotonic() < deadline:
    listed = call("GET", f"/api/v1/app/{source['id']}/msg")["data"]
    time.sleep(0.2)
reserved = call("POST", f"{queues}/reservations", {"n": 10})["messages"]
bodies = [json.loads(each["body"]) for each in reserved]


def data(event: dict[str, Any]) -> object:
    """What an event carries."""
    return base64.b64decode(event["data_base64"]).decode() if "data_base64" in event else event["data"]


json.dump(
    {
        "source": sorted(each["eventType"] for each in listed),
        "queue": [[each["type"], data(each)] for each in bodies],
    },
    sys.stdout,
)
