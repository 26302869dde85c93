# ruff: noqa: ARG002, N802 (one method per operation, named by it, all of one shape)
"""Counts what AWS would bill for the calls that our code makes, by the published rules of each service.

DynamoDB: a write is the item's size (names and values) in KB, rounded up, once more for each index it enters; a read is
the size in units of 4 KB, at least one, half when eventually consistent; transactions cost twice. SQS: 64 KB of payload
per request.
"""

from __future__ import annotations

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

__all__ = ["Meter", "item_bytes", "metered"]

INDEX_KEYS = ("unsettled_queue", "idle_shard")
"""Key attributes of the sparse indexes: an item that has one is written to that index too."""


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
        count = getattr(self, f"_{operation}", None)
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

    def _ReceiveMessage(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        # A run that waits for an endpoint receives by itself.
        self.units["sqs_standard_request"] += 1

    def _DeleteMessageBatch(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        self.units["sqs_standard_request"] += 1

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

    def _Scan(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        self._Query(parameters, answer)

    def _GetSecretValue(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        """Read every five minutes: nothing per message."""

    def _GenerateDataKey(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        """Once an hour for each project that is changed: nothing per message."""

    def _Decrypt(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        """Once an hour for each project: nothing per message."""

    def _TransactWriteItems(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        for write in parameters["TransactItems"]:
            [(_, action)] = write.items()
            self._write(action.get("Item", {}))
            self._write(action.get("Item", {}))

    def _SendMessageBatch(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        payload = sum(len(entry["MessageBody"].encode()) for entry in parameters["Entries"])
        kind = "sqs_fifo_request" if parameters["QueueUrl"].endswith(".fifo") else "sqs_standard_request"
        self.units[kind] += math.ceil(payload / 65_536)

    def _ChangeMessageVisibilityBatch(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        self.units["sqs_standard_request"] += 1

    def _GetQueueAttributes(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        self.units["sqs_standard_request"] += 1

    def _PutObject(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        self.units["s3_put"] += 1
        # The SDK makes a file of the bytes that it is given.
        self.bytes_put += parameters["Body"].getbuffer().nbytes

    def _ListObjectsV2(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        self.units["s3_put"] += 1  # the price of a listing

    def _PutEvents(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        self.units["scheduler_invocation"] += len(parameters["Entries"])  # a dollar a million, as that

    def _GetObject(self, parameters: dict[str, Any], answer: dict[str, Any]) -> None:
        self.units["s3_get"] += 1

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
