"""The push function's throughput and CPU per delivery, against a bare ``requests.Session`` thread pool to the same
sink.

    make up && .venv/bin/python -m bench.push [--seconds 8] [--rounds 3] [--save docs/figures/push.md]

The push function's handler runs in this process, invocation after invocation, each with one SQS event, against the
running local stack's tables (the emulator and the sink are processes of their own on the same machine, so they take
part of its cores from both sides). The bare loop posts the same bodies with as many threads as a batch has deliveries,
waits for nothing, stores nothing and retries nothing. The *storing* loop is the same, but makes one conditional write
per post through boto3, as nobody can do with less who is to know afterwards what was delivered: what it loses against
the bare loop is the emulator's and the SDK's part, what the push function loses against it is ours. Rounds alternate;
medians are compared. One more run puts one endpoint that takes 8 s into each batch and compares what its neighbours
get.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3
import requests

from bench.harness import Context, Page, cells, handler_of
from bench.local_hub import Tenant, described, endpoint

BODY = json.dumps({"order": {"number": "R154085346", "items": [{"sku": "SPREE-T-SHIRT", "quantity": 2}] * 40}}).encode()


@dataclass(frozen=True)
class Pace:
    """What one run made."""

    deliveries: int
    seconds: float
    cpu_seconds: float

    @property
    def per_second(self) -> float:
        """Deliveries per second."""
        return self.deliveries / self.seconds

    @property
    def cpu_ms(self) -> float:
        """CPU milliseconds of this process per delivery."""
        return 1000 * self.cpu_seconds / self.deliveries


def deployed_push(local: dict[str, Any]) -> Any:
    """The push function's handler, with the environment it has in the running stack."""
    os.environ["AWS_ENDPOINT_URL"] = local["aws_endpoint_url"]
    os.environ["AWS_DEFAULT_REGION"] = local["region"]
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "test")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "test")
    lambdas, name = boto3.client("lambda"), local["outputs"]["PushFunctionName"]
    os.environ.update(lambdas.get_function_configuration(FunctionName=name)["Environment"]["Variables"])
    os.environ["POWERTOOLS_SERVICE_NAME"] = "push"
    return handler_of("push")


def make_queue(local: dict[str, Any], name: str, urls: list[str]) -> Any:
    """A multicast queue with a subscriber per URL, as the stack stores it."""
    from pushhub.runtime.hub import start  # noqa: PLC0415 (after the environment is set)

    subscribers = [{"name": f"s{number}", "url": url} for number, url in enumerate(urls)]
    hub = Tenant(local["base_url"], local["project_id"], local["token"])
    hub.push_queue(name, urls[0], subscribers=subscribers, retries=0, retries_delay=3)
    stored = start("push").engine.ports.config.queue(local["project_id"], name, fresh=True)
    assert stored is not None
    return stored


def events(queue: Any, batch: int, *, slow: bool = False) -> Iterator[dict[str, Any]]:
    """SQS events of first attempts; the messages themselves are not stored, a first attempt does not read them.

    With ``slow`` the first order of each batch is for the second subscriber.
    """
    from pushhub.base.ids import MessageIds  # noqa: PLC0415
    from pushhub.engine.model.message import Message  # noqa: PLC0415
    from pushhub.engine.model.work import WorkOrder  # noqa: PLC0415

    ids = MessageIds(8191)
    sqs_ids = itertools.count()
    while True:
        now = time.time_ns() // 1_000_000
        records = []
        for position in range(batch):
            subscriber = queue.push.subscribers[1 if slow and position == 0 else 0].subscriber_id
            message = Message(
                project=queue.project,
                queue=queue.name,
                queue_uid=queue.uid,
                message_id=ids.next(now),
                body=BODY,
                body_size=len(BODY),
                accepted_at=now,
                due_at=now,
                expires_at=now + 3_600_000,
                subscriber_ids=(subscriber,),
            )
            records.append(
                {
                    "messageId": str(next(sqs_ids)),
                    "receiptHandle": "none",
                    "body": WorkOrder.carrying(message, subscriber).encode(),
                    "attributes": {"ApproximateReceiveCount": "1"},
                    "eventSourceARN": "arn:aws:sqs:us-east-1:1:" + os.environ["PUSH_QUEUE_URL"].rpartition("/")[2],
                }
            )
        yield {"Records": records}


def run_push(handler: Any, source: Iterator[dict[str, Any]], seconds: float) -> Pace:
    """Invocation after invocation for that long."""
    pushed, start, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - start < seconds:
        event = next(source)
        answer = handler(event, Context())
        assert answer == {"batchItemFailures": []}, answer
        pushed += len(event["Records"])
    return Pace(pushed, time.perf_counter() - start, time.process_time() - cpu)


def run_bare(url: str, threads: int, seconds: float, after: Callable[[], object] = lambda: None) -> Pace:
    """The baseline: as many threads, one session, nothing else but what is to be done after each post."""
    session = requests.Session()
    session.trust_env = False
    adapter = requests.adapters.HTTPAdapter(pool_connections=threads, pool_maxsize=threads)
    session.mount("http://", adapter)
    start, cpu = time.perf_counter(), time.process_time()

    def loop() -> int:
        pushed = 0
        while time.perf_counter() - start < seconds:
            assert session.post(url, data=BODY, timeout=10).status_code == 200
            after()
            pushed += 1
        return pushed

    with ThreadPoolExecutor(threads) as pool:
        pushed = sum(future.result() for future in [pool.submit(loop) for _ in range(threads)])
    return Pace(pushed, time.perf_counter() - start, time.process_time() - cpu)


def outcome_writer(queue: Any) -> Callable[[], object]:
    """Writes an outcome like those that the push function stored, each for a delivery of its own,
    with nothing but boto3.
    """
    from pushhub.base.ids import MessageIds  # noqa: PLC0415
    from pushhub.cloud.clients import Clients  # noqa: PLC0415

    client, messages_table = Clients().of("dynamodb"), os.environ["MESSAGES_TABLE"]
    mine = {":start": {"S": f"{queue.project}#{queue.uid}#"}}
    pages = client.get_paginator("scan").paginate(
        TableName=messages_table, FilterExpression="begins_with(pk, :start)", ExpressionAttributeValues=mine
    )
    stored = next(item for page in pages for item in page["Items"])
    ids = itertools.count(int(MessageIds(8190).next(time.time_ns() // 1_000_000)))

    def write() -> object:
        key = {"S": f"{queue.project}#{queue.uid}#{next(ids)}"}
        item = {**stored, "pk": key}
        return client.put_item(TableName=messages_table, Item=item, ConditionExpression="attribute_not_exists(pk)")

    return write


def neighbours(handler: Any, queue: Any, batch: int) -> tuple[float, float]:
    """Milliseconds until a batch's quick deliveries are with their subscriber,
    without and with a slow one among them.
    """
    from pushhub.runtime.hub import start  # noqa: PLC0415

    messages: Any = start("push").engine.ports.messages
    times: list[float] = []
    for slow in (False, True):
        finished: list[float] = []
        real = messages.save

        def timed(delivery: Any, save: Any = real, into: list[float] = finished) -> None:
            save(delivery)
            into.append(time.perf_counter())

        samples: list[float] = []
        messages.save = timed
        for event in itertools.islice(events(queue, batch, slow=slow), 3):
            finished.clear()
            began = time.perf_counter()
            handler(event, Context())
            quick = sorted(finished)[: batch - 1]
            samples.append((quick[-1] - began) * 1000)
        messages.save = real
        times.append(statistics.median(samples))
    return times[0], times[1]


def main() -> None:
    """Measure, print, save."""
    page = Page("Push function against a bare loop", __doc__, seconds=8.0, rounds=3, delay_ms=50)
    options, local = page.options, described()
    about = f"Endpoint answers after {options.delay_ms} ms; body {len(BODY)} bytes."
    page.tell(f"{about} CPU is of this process, per delivery.")
    with endpoint(options.delay_ms) as target:
        url = f"{target.url}/in"
        handler = deployed_push(local)
        queue = make_queue(local, "bench-push", [url, f"{target.url}/hang"])
        log = os.open(os.devnull, os.O_WRONLY)
        rows: list[list[str]] = []
        for batch in (10, 25, 50):
            source = events(queue, batch)
            paces: dict[str, list[Pace]] = {"bare": [], "storing": [], "push": []}
            with quiet_stdout(log):
                run_push(handler, source, 1)
                write = outcome_writer(queue)
                run_bare(url, batch, 1, write)
                for _ in range(options.rounds):
                    paces["bare"].append(run_bare(url, batch, options.seconds))
                    paces["storing"].append(run_bare(url, batch, options.seconds, write))
                    paces["push"].append(run_push(handler, source, options.seconds))
            rates = [statistics.median(each.per_second for each in measured) for measured in paces.values()]
            cpu = [statistics.median(each.cpu_ms for each in measured) for measured in paces.values()]
            ratios = [rates[2] / each for each in rates[:2]]
            rows.append([str(batch), *cells(".0f", *rates), *cells(".2f", *ratios, *cpu)])
            print(f"batch of {batch}: {ratios[0]:.2f} of the bare loop", flush=True)
        with quiet_stdout(log):
            without, with_slow = neighbours(handler, queue, 10)
    rates_of = ["bare, /s", "storing, /s", "push function, /s", "to bare (aim: 0.7)", "to storing"]
    page.table(["batch", *rates_of, "CPU ms, bare", "storing", "push"], rows)
    page.tell("A slow endpoint and its neighbours in the same batch:")
    slow = [["all quick", f"{without:.0f}"], ["one endpoint takes 8 s", f"{with_slow:.0f}"]]
    page.table(["batch of 10", "nine quick deliveries done after, ms"], slow)
    page.save()


@contextmanager
def quiet_stdout(target: int) -> Iterator[None]:
    """Send what the function logs to nowhere: it is written (as in Lambda), but not shown."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(target, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


if __name__ == "__main__":
    main()
