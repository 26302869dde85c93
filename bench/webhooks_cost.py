"""Webhooks for ``bench.cost``: applications with an endpoint each, and posts to them in turn,
as Svix's clients make them.
"""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["WAYS", "Application", "applications", "posts"]

WAYS = (
    ("One message at a time to one endpoint, without an idempotency key", 1, False),
    ("The same with an idempotency key, which Svix's clients send", 1, True),
    ("One message at a time to a hundred endpoints in turn, without a key", 100, False),
)
"""Heading, endpoints, whether posts have a key."""

Application = str
Call = Callable[[str, dict[str, Any]], Any]
"""Invokes a function with an event."""


def applications(call: Call, token: str, count: int, url: str) -> list[Application]:
    """New applications, each with an endpoint.

    Args:
        call: Invokes a function.
        token: The project's.
        count: How many.
        url: Of all endpoints.
    """
    made: list[Application] = []
    for number in range(count):
        app = _answered(call("control", _event(token, "/app", {"name": f"Customer {number}"})))
        _answered(call("control", _event(token, f"/app/{app}/endpoint", {"url": url})))
        made.append(app)
    return made


def posts(
    token: str, apps: list[Application], payload: dict[str, Any], count: int, *, keys: bool
) -> Iterator[dict[str, Any]]:
    """The gateway's events for messages to applications in turn."""
    body = {"eventType": "order.paid", "payload": payload}
    for app in itertools.islice(itertools.cycle(apps), count):
        event = _event(token, f"/app/{app}/msg", body)
        if keys:
            event["headers"]["idempotency-key"] = f"auto_{uuid.uuid4()}"
        yield event


def _event(token: str, path: str, body: object) -> dict[str, Any]:
    return {
        "version": "2.0",
        "rawPath": f"/api/v1{path}",
        "rawQueryString": "",
        "headers": {"authorization": f"Bearer {token}", "content-type": "application/json", "host": "hub.example"},
        "requestContext": {"stage": "$default", "http": {"method": "POST", "sourceIp": "203.0.113.9"}},
        "body": json.dumps(body),
        "isBase64Encoded": False,
    }


def _answered(answer: dict[str, Any]) -> str:
    if answer["statusCode"] != 201:
        raise RuntimeError(answer["body"])
    return str(json.loads(answer["body"])["id"])
