"""What waking costs: CPU and calls of one run of wake for one shard of the schedule, and writes of a scheduled cycle.

    .venv/bin/python -m bench.wake [--deliveries 20000] [--save docs/figures/wake.md]

The use case runs on the real adapters and the real SDK. Calls are answered inside the SDK before anything is sent, so
only the CPU time of our own code and of the SDK is measured. In one measurement all deliveries are for one subscriber
(an outage: ten orders share an SQS message), in the other each delivery is for a different subscriber. The time that
AWS takes to answer is not included: a run reads a page of a thousand, then sends ten slices of it in parallel, so at 20
ms a call it waits about 0.3 s per page. A function of 1,024 MB has 0.58 of a processor; each of the 32 shards has a run
of its own.
"""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import boto3
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from tests.fakes.telemetry import FakeTelemetry

from bench.harness import Page, cells
from pushhub.base.verdict import Answer, Verdict
from pushhub.cloud.clock import SystemClock
from pushhub.engine.acceptance.order_queues import OrderQueues
from pushhub.engine.model.backoff import FixedDelay
from pushhub.engine.model.delivery import Delivery, after_attempt, opening, schedule
from pushhub.engine.model.message import Message
from pushhub.engine.store.dynamodb_messages import DynamoDBMessageStore
from pushhub.engine.store.dynamodb_schedule import SHARDS, DynamoDBSchedule
from pushhub.engine.store.sqs_work import SqsWorkQueue
from pushhub.engine.waiting.wake import PAGE, Wake

PROCESSOR = 0.58
"""Share of a processor that 1,024 MB buy."""

WAITING_S = 0.3
"""Seconds waited for AWS per page."""


class Raw:
    """The body of an answer, as the SDK reads it."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    def stream(self, **_: Any) -> Any:
        """All of it."""
        yield self._text


class Services:
    """Answers DynamoDB and SQS from memory.

    Attributes:
        calls: By operation.
        pages: Bodies of pages that are still to be read.
    """

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.pages: list[bytes] = []

    def client(self, service: str) -> Any:
        """A client whose calls are answered in memory."""
        boto = boto3.client(
            cast(Any, service),
            region_name="us-east-1",
            aws_access_key_id="bench",
            aws_secret_access_key="bench",
            config=Config(parameter_validation=False, max_pool_connections=100),
        )
        boto.meta.events.register("before-send", self._answer)
        return boto

    def _answer(self, request: Any, **_: Any) -> AWSResponse:
        target = request.headers["X-Amz-Target"]
        operation = (target.decode() if isinstance(target, bytes) else target).rpartition(".")[2]
        self.calls[operation] += 1
        body = b"{}"
        if operation == "Query":
            body = self.pages.pop() if self.pages else b'{"Items":[],"Count":0,"ScannedCount":0}'
        elif operation == "Scan":
            # The schedule holds much, so its shards are read one by one.
            body = b'{"Items":[],"Count":0,"ScannedCount":100,"LastEvaluatedKey":{"pk":{"S":"1"},"sk":{"S":"1"}}}'
        elif operation == "BatchGetItem":
            body = b'{"Responses":{},"UnprocessedKeys":{}}'
        elif operation == "SendMessageBatch":
            body = b'{"Successful":[],"Failed":[]}'
        return AWSResponse(
            request.url, 200, cast(Any, {"Content-Type": "application/x-amz-json-1.0"}), cast(Any, Raw(body))
        )


class NoRuns:
    """Starts no further runs: the measured run does everything itself."""

    def start(self, shard: int) -> None:
        """Not asked for."""
        raise LookupError(shard)


def pages(deliveries: int, subscribers: int) -> list[bytes]:
    """Pages of entries in the format of DynamoDB's answers."""
    numbers = itertools.count()
    created = []
    for _ in range(deliveries // PAGE):
        items = []
        for number in itertools.islice(numbers, PAGE):
            key = f"5f0000000000000000000001#0123456789ab#{1900000000000000000 + number}#{number % subscribers:012x}"
            items.append(
                {
                    "pk": {"S": "29921941#07"},
                    "sk": {"S": f"{1795316506659 + number:015d}#{key}#3"},
                    "queue": {"S": "customer-orders-eu-west"},
                    "ttl": {"N": "1795921306"},
                }
            )
        created.append(json.dumps({"Items": items, "Count": PAGE, "ScannedCount": PAGE}).encode())
    return created


def measured(deliveries: int, subscribers: int) -> tuple[float, Counter[str]]:
    """CPU seconds and calls of a run that wakes this many deliveries."""
    services, clock = Services(), SystemClock()
    services.pages = pages(deliveries, subscribers)
    sqs = services.client("sqs")
    retry, poll, route = (SqsWorkQueue(sqs, f"https://sqs.example/1/{name}", clock) for name in ("r", "p", "h"))
    with ThreadPoolExecutor(max_workers=100) as pool:
        wake = Wake(
            schedule=DynamoDBSchedule(services.client("dynamodb"), "schedule", clock),
            runs=NoRuns(),
            queues=OrderQueues(usual=retry, poll=poll, route=route, internal=lambda _: False, long=lambda _: False),
            clock=clock,
            telemetry=FakeTelemetry(),
            executor=pool,
        )
        began = time.process_time()
        woken = wake.run(lambda: 10**9, shard=7)
        spent = time.process_time() - began
    if woken != deliveries // PAGE * PAGE:
        raise SystemExit(f"{woken} were woken")
    return spent, services.calls


def cycle_writes() -> int:
    """Write units of one scheduled cycle after the first: a woken delivery fails again and waits for an hour."""
    services, clock = Services(), SystemClock()
    schedule_ = DynamoDBSchedule(services.client("dynamodb"), "schedule", clock)
    store = DynamoDBMessageStore(services.client("dynamodb"), "messages", clock, lambda: schedule_)
    now = clock.now()
    message = Message(
        project="5f0000000000000000000001",
        queue="customer-orders-eu-west",
        queue_uid="0123456789ab",
        message_id="1900000000000000000",
        body=b"{}",
        body_size=2,
        accepted_at=now,
        due_at=now,
        expires_at=now + 604_800_000,
        subscriber_ids=("0123456789ab",),
    )
    failed = after(after(opening(message, "0123456789ab"), now), now)
    store.save(failed)
    return services.calls["PutItem"]


def after(delivery: Delivery, now: int) -> Delivery:
    """The delivery after a failed attempt, scheduled."""
    answer = Answer(status_code=503, message="", started_at=now, finished_at=now)
    settled = after_attempt(
        delivery, answer, Verdict.FAILED, policy=FixedDelay(retries=9, delay_s=3600), reserve_ms=0, jitter=0.0
    )
    return schedule(settled)


def main() -> None:
    """Measure, print, save."""
    page = Page("What waking costs", __doc__, deliveries=20_000)
    deliveries = page.options.deliveries
    measured(PAGE, 1)  # the SDK's models are read
    rows = []
    for name, subscribers in (("one subscriber", 1), ("each its own", deliveries)):
        cpu, calls = measured(deliveries, subscribers)
        each_ms = 1000 * cpu / deliveries
        a_minute = 45 / (PAGE * each_ms / 1000 / PROCESSOR + WAITING_S) * PAGE
        orders, writes = deliveries / calls["SendMessageBatch"], calls["PutItem"] / deliveries * 1000
        figures = [f"{each_ms:.3f}", f"{orders:.0f}", f"{writes:.1f}", *cells(",.0f", a_minute, a_minute * SHARDS)]
        rows.append([name, *figures])
    head = ["deliveries for", "CPU ms each", "per call to SQS", "writes per 1,000", "a run in 45 s", f"{SHARDS} shards"]
    page.table(head, rows)
    units = cycle_writes()
    page.tell(
        f"Writes of a scheduled cycle: {units} (the entry, then the delivery; the keys of its index stay as they are)."
    )
    page.save()


if __name__ == "__main__":
    main()
