"""Messages and places for the tests of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pushhub.base.sink_url import SinkUrl, parse_sink_url
from pushhub.base.verdict import Answer
from pushhub.sinks.model.kind import SinkMessage

ACCOUNT = "111122223333"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/hub"


def place(scheme: str, name: str, **options: str) -> SinkUrl:
    """A subscriber with a role."""
    query = "".join(f"&{each}={value}" for each, value in options.items())
    return parse_sink_url(f"{scheme}://eu-west-1/{ACCOUNT}/{name}?role={ROLE}{query}")


def message(body: bytes | str = b'{"a": 1}', **more: Any) -> SinkMessage:
    """A message of an endpoint."""
    given: dict[str, Any] = {
        "message_id": "msg_1",
        "own_id": "msg_1",
        "about": "invoice.paid",
        "at": 1_800_000_000_123,
        "body": body if isinstance(body, bytes) else body.encode(),
        "headers": {"webhook-id": "msg_1", "webhook-timestamp": "1800000000", "webhook-signature": "v1,x"},
        "group": None,
        "once": "msg_1",
    }
    return SinkMessage(**{**given, **more})


def answered(status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
    """An answer of a service."""
    return Answer(status_code=status, message="", body=body, headers=dict(headers or {}), started_at=0, finished_at=0)
