# ruff: noqa: ARG002, N802 (one method per operation, named by it, all of one shape)
"""Counts what AWS would bill for the calls that our code makes, by the published rules of each service.

DynamoDB: a write is the item's size (names and values) in KB, rounded up, once more for each index it enters; a read is
the size in units of 4 KB, at least one, half when eventually consistent; transactions cost twice. SQS: 64 KB of payload
per request.

And what is kept of messages and for how long, by the template's defaults: rows in the tables, their history, records in
S3, access logs.
"""

from __future__ import annotations

import base64
import json
import math
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import botocore.client
from simulation.dynamodb import read_insertion
from simulation.items import item_bytes

INDEX_KEYS = ("unsettled_queue", "idle_shard")
"""Key attributes of the sparse indexes: an item that has one is written to that index too."""

BY_CALL = {
    # A run that waits for an endpoint receives by itself.
    "ReceiveMessage": "sqs_standard_request",
    "DeleteMessageBatch": "sqs_standard_request",
    "ChangeMessageVisibilityBatch": "sqs_standard_request",
    "GetQueueAttributes": "sqs_standard_request",
    "ListObjectsV2": "s3_put",  # the price of a listing
    "GetObject": "s3_get",
    # Read every five minutes, or once an hour for each project: nothing per message.
    **dict.fromkeys(("GetSecretValue", "GenerateDataKey", "Decrypt"), ""),
}
"""What a call is billed as, whatever is in it."""


class Meter:
    """Billable units so far.

    Attributes:
        units: By name of the price.
        calls: API calls by operation.
        bytes_put: Into S3, until somebody sets it back.
        aside: API calls made by other threads than the run's own.
        cpu_seconds: Spent inside the SDK and whatever answers it in this process.
    """

    def __init__(self) -> None:
        self.units: defaultdict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()
        self.cpu_seconds = 0.0
        self.bytes_put = 0
        self.aside = 0
        self._runs = False
        self._own = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count what is called inside; other calls are the bench's own, in AWS's place."""
        self._runs, self._own = True, threading.get_ident()
        try:
            yield
        finally:
            self._runs = False

    def clear(self) -> None:
        """Start counting anew."""
        self.units.clear()
        self.calls.clear()
        self.aside = 0
        self.cpu_seconds = 0.0

    def add(self, operation: str, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        """Count one call."""
        if not self._runs:
            return
        self.calls[operation] += 1
        self.aside += threading.get_ident() != self._own
        if operation in BY_CALL:
            if unit := BY_CALL[operation]:
                self.units[unit] += 1
            return
        count = getattr(self, f"_{operation.replace('Scan', 'Query')}", None)
        if count is None:
            raise LookupError(f"no price rule for {operation}")
        count(parameters, answer)

    def _PutItem(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        self._write(parameters["Item"])

    def _UpdateItem(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        # The keys of the indexes stay as they are, so only the table is written to.
        self.units["dynamodb_write_unit"] += max(1, math.ceil(item_bytes(answer.get("Attributes", {})) / 1024))

    def _DeleteItem(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        self._write(answer.get("Attributes", {}))

    def _BatchWriteItem(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        for requests in parameters["RequestItems"].values():
            for request in requests:
                self._write(request["PutRequest"]["Item"])

    def _BatchExecuteStatement(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        for statement in parameters["Statements"]:
            self._write(read_insertion(statement["Statement"], statement["Parameters"])[1])

    def _GetItem(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        self._read([answer.get("Item", {})], consistent=parameters.get("ConsistentRead", False))

    def _BatchGetItem(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        for table, request in parameters["RequestItems"].items():
            found = answer["Responses"].get(table, [])
            missing: list[dict[str, Any]] = [{}] * (len(request["Keys"]) - len(found))
            self._read([*found, *missing], consistent=request.get("ConsistentRead", False))

    def _Query(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        size = sum(map(item_bytes, answer["Items"]))
        units = max(1, math.ceil(size / 4096))
        self.units["dynamodb_read_unit"] += units * (1 if parameters.get("ConsistentRead", False) else 0.5)

    def _TransactWriteItems(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        for write in parameters["TransactItems"]:
            [(_, action)] = write.items()
            self._write(action.get("Item", {}))
            self._write(action.get("Item", {}))

    def _SendMessageBatch(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        payload = sum(len(entry["MessageBody"].encode()) for entry in parameters["Entries"])
        kind = "sqs_fifo_request" if parameters["QueueUrl"].endswith(".fifo") else "sqs_standard_request"
        self.units[kind] += math.ceil(payload / 65_536)

    def _PutObject(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        self.units["s3_put"] += 1
        # The SDK makes a file of the bytes that it is given.
        self.bytes_put += parameters["Body"].getbuffer().nbytes

    def _PutEvents(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        self.units["scheduler_invocation"] += len(parameters["Entries"])  # a dollar a million, as that

    def _write(self, item: dict[str, Any]) -> None:
        writes = 1 + sum(key in item for key in INDEX_KEYS)
        self.units["dynamodb_write_unit"] += writes * max(1, math.ceil(item_bytes(item) / 1024))

    def _read(self, items: list[dict[str, Any]], *, consistent: bool) -> None:
        for item in items:
            self.units["dynamodb_read_unit"] += max(1, math.ceil(item_bytes(item) / 4096)) * (1 if consistent else 0.5)


@contextmanager
def metered() -> Iterator[Meter]:
    """Meter the SDK inside, whenever the meter runs."""
    meter = Meter()
    client: Any = botocore.client.BaseClient
    real = client._make_api_call

    def counted(self: Any, operation: str, parameters: dict[str, Any]) -> Any:
        start = time.thread_time()
        answer = real(self, operation, parameters)
        meter.cpu_seconds += time.thread_time() - start
        meter.add(operation, parameters, answer)
        return answer

    client._make_api_call = counted
    try:
        yield meter
    finally:
        client._make_api_call = real


RECORDS_BATCH = 4_000
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
    most = min(RECORDS_BATCH, int(EVENT_BYTES / size))
    times = most // len(items) or 1
    repeated = records_event(items * times, table, now)["Records"]
    return [{"Records": repeated[start : start + most]} for start in range(0, len(repeated), most)], times


def _as_in_a_stream(item: dict[str, Any]) -> dict[str, Any]:
    """Binary values are base64 text there."""
    return {
        name: {"B": base64.b64encode(value["B"]).decode()} if "B" in value else value for name, value in item.items()
    }
