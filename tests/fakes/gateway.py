"""API Gateway's HTTP API before a function: the events it hands over, and what it makes of answers."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any


def http_event(
    method: str,
    path: str,
    body: Any = None,
    *,
    query: str = "",
    headers: Mapping[str, str] | None = None,
    address: str = "",
) -> dict[str, Any]:
    """A request as it is handed over.

    Args:
        method: HTTP method.
        path: Whole path, decoded.
        body: Bytes, which are handed over in base64, text, None for none, or what is sent as JSON.
        query: As it stands behind the question mark.
        headers: By their names.
        address: Whoever asks; empty for nobody.
    """
    text = body if body is None or isinstance(body, str | bytes) else json.dumps(body)
    by = {"sourceIp": address} if address else {}
    return {
        "rawPath": path,
        "rawQueryString": query,
        "headers": dict(headers or {}),
        "requestContext": {
            "stage": "$default",
            "http": {"method": method, **by},
        },
        "body": base64.b64encode(text).decode() if isinstance(text, bytes) else text,
        "isBase64Encoded": isinstance(text, bytes),
    }


def content_of(answer: Mapping[str, Any]) -> bytes:
    """The bytes that a client gets of an answer."""
    body = str(answer["body"])
    return base64.b64decode(body) if answer["isBase64Encoded"] else body.encode()
