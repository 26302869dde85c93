"""What is kept of a million messages and for how long, by the template's defaults: rows in the tables, their history,
records in S3, access logs.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from bench.metering import item_bytes

__all__ = ["access_log_bytes", "batches", "records_event", "stored_gb_months"]

BATCH = 4_000
"""Changes that the records function is handed at a time: what a busy hub's minute brings to a shard."""

EVENT_BYTES = 6 * 1024 * 1024
"""What Lambda hands over at once, at most; a batch of larger changes has fewer of them."""

ITEM_OVERHEAD = 100
"""Bytes that DynamoDB adds to each item's size for storage (DynamoDB guide, "item sizes and formats")."""

MONTH_S = 30.4 * 86_400

LOG_LINE_BYTES = 26

_VALUES = {
    "$context.requestId": "ZbX4kjJTIAMEV9w=",
    "$context.requestTime": "22/Nov/2026:05:00:00 +0000",
    "$context.identity.sourceIp": "203.0.113.9",
    "$context.httpMethod": "POST",
    "$context.path": "/3/projects/5b6c2f1d9e8a4c7b3d2e1f0a/queues/orders/messages",
    "$context.routeKey": "POST /3/projects/{project}/queues/{queue}/messages",
    "$context.status": "201",
    "$context.responseLength": "52",
    "$context.responseLatency": "14",
    "$context.integrationLatency": "12",
    "$context.integrationErrorMessage": "-",
}


def access_log_bytes(source: dict[str, Any]) -> int:
    """Of the line that the gateway writes for a post, as the template formats it."""
    line = str(source["Resources"]["HttpApiStage"]["Properties"]["AccessLogSettings"]["Format"])
    for name in sorted(_VALUES, key=len, reverse=True):
        line = line.replace(name, _VALUES[name])
    assert "$context" not in line, "the format names something that has no example here"
    return len(line.encode()) + LOG_LINE_BYTES


def stored_gb_months(items: list[dict[str, Any]], now: float) -> float:
    """Items for as long as they are stored: until their time to live is over."""
    return sum((item_bytes(each) + ITEM_OVERHEAD) / 1e9 * (float(each["ttl"]["N"]) - now) / MONTH_S for each in items)


def records_event(items: list[dict[str, Any]], table: str, now: float) -> dict[str, Any]:
    """The stream's batch about items that were just written."""
    return {
        "Records": [
            {
                "eventID": str(number),
                "eventName": "INSERT",
                "dynamodb": {
                    "ApproximateCreationDateTime": int(now),
                    "Keys": {"pk": each["pk"], "sk": each["sk"]},
                    "NewImage": _as_in_a_stream(each),
                    "SequenceNumber": f"{number:021d}",
                },
                "eventSourceARN": f"arn:aws:dynamodb:us-east-1:1:table/{table}/stream/now",
            }
            for number, each in enumerate(items, int(now * 1000))
        ]
    }


def batches(items: list[dict[str, Any]], table: str, now: float) -> tuple[list[dict[str, Any]], int]:
    """Full batches about items, and how often each item is in them: there are fewer items than a batch holds.

    The end of their time to live is not handed over, by the mapping's filter.
    """
    whole = records_event(items, table, now)["Records"]
    size = sum(len(json.dumps(each, separators=(",", ":"))) + 1 for each in whole) / len(whole)
    most = min(BATCH, int(EVENT_BYTES / size))
    times = most // len(items) or 1
    repeated = records_event(items * times, table, now)["Records"]
    return [{"Records": repeated[start : start + most]} for start in range(0, len(repeated), most)], times


def _as_in_a_stream(item: dict[str, Any]) -> dict[str, Any]:
    """Binary values are base64 text there."""
    return {
        name: {"B": base64.b64encode(value["B"]).decode()} if "B" in value else value for name, value in item.items()
    }
