"""What a million messages cost: every AWS call counted, every billable unit priced from one table.

    .venv/bin/python -m bench.cost [--rounds 3] [--save docs/figures/cost.md]

The functions' own handlers run in this process against moto, and every SDK call they make is metered
(bench/metering.py). What AWS does around them is added by rule: one HTTP API request per post (none at the producers'
URL, a function URL, which is billed as the run); one SQS receive and one delete per batch handed to a function; Lambda
requests and GB-seconds. A duration is: the CPU time of our own code here,
stretched by the share of a core that the function's memory buys (1,769 MB are one); 1 ms of CPU for each SDK call
(measured apart from moto's work); 5 ms of waiting for each AWS call in a row; in push the endpoint's 50 ms, and for
webhooks the 30 ms in which attempts that end together are gathered. Log bytes are those really written, plus 26 per
line. Caches are warm, as they are in steady traffic, and each run lasts as long as on AWS, so an environment reads its
queue five times a second (a queue that gets fewer posts there costs a read each, $0.125); batches are full, as they are
under load. Bodies have 385 bytes, and are too small to be compressed; larger ones are those of
bench/webhook_bodies.py, compressed by a hub whose dictionary does not know their sender, if nothing else is said
(docs/figures/bodies.md). Of several runs (rounds) each function's shortest counts: a busy machine makes CPU time
dearer. Prices: bench/list_prices.py.

*Kept* is what the template's defaults keep, until it is deleted: the gateway's access log (ingested; its storage is
compressed and small), the log events (*attempts*: those of the attempts), messages and deliveries in the table until
their time to live is over, the table's history (point-in-time recovery), and the delivery records in S3 (400 days) with
the runs that write them. Not counted: alarms, free tiers, data out to subscribers, and what DynamoDB's streams bill
beyond Lambda's reads (nothing).
"""

from __future__ import annotations

import base64
import contextlib
import io
import itertools
import json
import os
import random
import time
import uuid
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local.deploy import template
from simulation.template import stack
from tests.cloud import aws_services as aws

from bench.body_dictionary import dictionary, without
from bench.harness import ROOT, Context, Page, handler_of, table
from bench.list_prices import PRICES
from bench.metering import LOG_LINE_BYTES, MONTH_S, Meter, access_log_bytes, batches, metered, stored_gb_months
from bench.sink import sink
from bench.webhook_bodies import about
from pushhub.cloud.clock import SystemClock
from pushhub.engine.model import deflated
from pushhub.engine.waiting.wake import LOOKS

CALL_MS = 5
SDK_CPU_MS = 1.0
ENDPOINT_MS = 50
GATHER_MS = 30
BATCH = 10
KEPT = frozenset({"records", "tables", "gateway", "attempts"})
"""Parts of an account that are not the way of a message."""
ATTEMPT = '"message":"attempt"'
"""In the event of an attempt."""
MESSAGES = 400
NAMED = "named"
"""The queue whose messages are found by a field."""
QUEUES = (
    *("PUSH_QUEUE_URL", "RETRY_QUEUE_URL", "SLOW_QUEUE_URL", "ERRORS_QUEUE_URL", "DISPATCH_FAILURES_URL"),
    *("POLL_QUEUE_URL", "ROUTE_QUEUE_URL"),
)
MANY, MANY_SUBSCRIBERS = "many", 3
"""The queue with more than one subscriber."""
EAGER = "eager"
"""The queue whose first orders ingest sends."""
BODY = json.dumps({"order": {"number": "R154085346", "email": "käufer@example.org", "total": 12.5, "n": "x" * 300}})


KNOWN, UNKNOWN, RANDOM = "known", "unknown", "random"
SIZES = (2_048, 6_144)
"""Bytes of bodies, besides those of :data:`BODY`."""
OF_SIZES = (
    (2_048, UNKNOWN, "2 KB, of senders that the dictionary does not know", 3.30),
    (2_048, KNOWN, "2 KB, of senders that it knows", 3.30),
    (2_048, RANDOM, "2 KB that nothing makes smaller", 4.50),
    (6_144, UNKNOWN, "6 KB, of senders that the dictionary does not know", 4.20),
    (6_144, KNOWN, "6 KB, of senders that it knows", 4.20),
    (6_144, RANDOM, "6 KB that nothing makes smaller", 7.60),
)
"""Bytes of a body, whose it is, what that is called, and the aim in dollars with all that is kept."""


@dataclass
class Account:
    """Units per function, and how many messages they were for."""

    messages: int
    units: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, function: str, **units: float) -> None:
        """Add units to a function's part."""
        part = self.units.setdefault(function, Counter())
        for name, count in units.items():
            part[name] += count  # type: ignore[assignment]

    def bill(self) -> dict[tuple[str, str], float]:
        """Dollars of a million messages by function and unit."""
        return {
            (function, name): count / self.messages * 1e6 * PRICES[name]
            for function, units in self.units.items()
            for name, count in units.items()
        }

    def rows(self) -> list[list[str]]:
        """For a table: function, unit, how many for a message, dollars of a million."""
        return [
            [function, name, f"{self.units[function][name] / self.messages:.4g}", f"{dollars:.3f}"]
            for (function, name), dollars in self.bill().items()
        ]

    def dollars(self, function: str) -> float:
        """What a million messages cost in one function."""
        return sum(each for (name, _), each in self.bill().items() if name == function)


class Hub:
    """The functions, their memory, and a sink.

    Attributes:
        metrics: Names of the metrics that the functions wrote, with their dimensions.
        behind_ms: How far the functions' clock is behind, as runs take longer on this machine than on AWS.
    """

    def __init__(self, meter: Meter, sqs: Any, dynamodb: Any, s3: Any = None) -> None:
        self.meter = meter
        self.sqs = sqs
        self.s3 = s3
        self.dynamodb = dynamodb
        self.metrics: set[tuple[str, ...]] = set()
        self.behind_ms = 0.0
        source = self.source = template.load(ROOT / "template.yaml")
        default = source["Globals"]["Function"].get("MemorySize", 128)
        self.memory_mb: dict[str, int] = {}
        for resource in source["Resources"].values():
            if resource["Type"] == "AWS::Serverless::Function":
                size = resource["Properties"].get("MemorySize", default)
                if isinstance(size, dict):
                    size = source["Parameters"][size["Ref"]]["Default"]
                self.memory_mb[Path(resource["Properties"]["CodeUri"]).name] = int(size)
        self._handlers: dict[str, Any] = {}

    def invoke(self, account: Account, name: str, event: dict[str, Any], *, waits_ms: float = 0) -> Any:
        """Run a handler and put what it used into the account."""
        if name not in self._handlers:
            self._handlers[name] = handler_of(name)
        self.meter.clear()
        with logged() as log, self.meter.running():
            begun, start = time.perf_counter(), time.process_time()
            answer = self._handlers[name](event, Context())
            cpu_ms = (time.process_time() - start) * 1000
        calls = sum(self.meter.calls.values())
        cpu_ms += calls * SDK_CPU_MS - self.meter.cpu_seconds * 1000
        # The attempts of a batch are made, and their outcomes written, side by side.
        outcomes = self.meter.calls["PutItem"] + self.meter.calls["BatchExecuteStatement"]
        in_a_row: float = calls if name != "push" else calls - outcomes + 1
        if name in {"wake", "sweep"}:
            # It looks at several shards at a time, or reads several objects.
            in_a_row = calls - self.meter.aside * (1 - 1 / LOOKS)
        core = min(1.0, self.memory_mb[name] / 1769)
        took_ms = max(0.0, cpu_ms) / core + in_a_row * CALL_MS + waits_ms
        # What is kept for a time is kept for as many runs as on AWS.
        over_ms = took_ms - (time.perf_counter() - begun) * 1000
        if over_ms > 0:
            time.sleep(over_ms / 1000)
        else:
            self.behind_ms -= over_ms
        # The events of attempts, which an operator may do without, and all other lines
        lines = log.getvalue().splitlines()
        attempts = [each for each in lines if ATTEMPT in each]
        self.metrics |= {each for line in lines if '"_aws"' in line for each in metrics_in(line)}
        account.add(
            name,
            lambda_request=1,
            lambda_gb_second_arm64=took_ms / 1000 * self.memory_mb[name] / 1024,
            logs_gb=_ingested_gb([each for each in lines if ATTEMPT not in each]),
            **self.meter.units,
        )
        if attempts:
            account.add("attempts", logs_gb=_ingested_gb(attempts))
        return answer


def metrics_in(line: str) -> Iterator[tuple[str, ...]]:
    """What a line of embedded metrics says: each combination of a name and values of dimensions is billed."""
    written = json.loads(line)
    for directive in written["_aws"]["CloudWatchMetrics"]:
        for dimensions in directive["Dimensions"]:
            for metric in directive["Metrics"]:
                yield metric["Name"], *(str(written[each]) for each in dimensions)


def _ingested_gb(lines: Sequence[str]) -> float:
    return sum(len(line.encode()) + LOG_LINE_BYTES for line in lines) / 1e9


@contextlib.contextmanager
def logged() -> Iterator[io.StringIO]:
    """Catch what a function writes to its log."""
    with contextlib.redirect_stdout(io.StringIO()) as log:
        yield log


@contextlib.contextmanager
def clock_of(hub: Hub) -> Iterator[Hub]:
    """Give the functions a clock on which runs take as long as on AWS."""
    real = SystemClock.now
    SystemClock.now = lambda self: real(self) - round(hub.behind_ms)  # type: ignore[method-assign]
    try:
        yield hub
    finally:
        SystemClock.now = real  # type: ignore[method-assign]


DOMAINS = {"gateway": "a1b2c3d4e5.execute-api.us-east-1.amazonaws.com", "url": "q7xk2mz4v5.lambda-url.us-east-1.on.aws"}
"""Where producers post: behind the gateway, and to ingest's function URL."""


def gateway_event(path: str, body: object, authorization: str, *, domain: str = DOMAINS["gateway"]) -> dict[str, Any]:
    """The event of a POST."""
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"authorization": authorization, "content-type": "application/json", "host": domain},
        "requestContext": {
            "domainName": domain,
            "stage": "$default",
            "http": {"method": "POST", "path": path, "sourceIp": "203.0.113.9"},
        },
        "body": json.dumps(body),
        "isBase64Encoded": False,
    }


def run(
    hub: Hub,
    posted: Iterable[dict[str, Any]],
    urls: dict[str, str],
    *,
    push_ms: float = ENDPOINT_MS,
    dispatched: int = 100,
    pushed: int = BATCH,
    eager: bool = False,
    subscribers: int = 1,
) -> Account:
    """Take messages all the way and count.

    Args:
        hub: The functions.
        posted: The gateway's events for the posts of all messages.
        urls: Of the queues.
        push_ms: What a batch of attempts waits for.
        dispatched: Messages in a batch of the stream.
        pushed: Messages of the queue in a batch of push; each may hold several orders.
        eager: Whether the queue is eager: ingest's orders are pushed before the stream is read, and the stream's come
            when their time has come.
        subscribers: Of the queue.
    """
    account = Account(messages=MESSAGES)
    for number, event in enumerate(posted):
        if eager and number % pushed == 0:
            # Push runs beside ingest: its time does not make old what ingest has read.
            begun, behind_ms = time.perf_counter(), hub.behind_ms
            push(hub, account, urls, push_ms=push_ms, pushed=pushed)
            hub.behind_ms = behind_ms + (time.perf_counter() - begun) * 1000
        answer = hub.invoke(account, "ingest", event)
        assert answer["statusCode"] in (201, 202), answer
        if event["requestContext"].get("domainName") != DOMAINS["url"]:
            account.add("ingest", http_api_request=1)
    if eager:
        push(hub, account, urls, push_ms=push_ms, pushed=pushed)
    items = [each for each in scan(hub.dynamodb) if each["kind"]["S"] == "message"]
    assert len(items) == MESSAGES
    for start in range(0, MESSAGES, dispatched):
        records = [{"dynamodb": {"NewImage": item}} for item in items[start : start + dispatched]]
        hub.invoke(account, "dispatch", {"Records": records})
    if eager:
        assert not push(hub, account, urls, push_ms=0, pushed=pushed)
        time.sleep(max(int(each["eager"]["N"]) for each in items))
        push_ms = 0
    push(hub, account, urls, push_ms=push_ms, pushed=pushed)
    keep(hub, account)
    stored = scan(hub.dynamodb)
    delivered = sum(item["kind"]["S"] == "delivery" and item["state"]["S"] == "delivered" for item in stored)
    assert delivered == MESSAGES * subscribers, f"{delivered} of {MESSAGES} delivered: the machine is too busy"
    for item in stored:
        hub.dynamodb.delete_item(TableName=aws.MESSAGES_TABLE, Key={"pk": item["pk"], "sk": item["sk"]})
    return account


def push(hub: Hub, account: Account, urls: dict[str, str], *, push_ms: float, pushed: int) -> int:
    """Work off what is in the push queue; returns how many batches that were."""
    count = 0
    for records in handed_over(hub, urls["PUSH_QUEUE_URL"], pushed):
        kept = hub.invoke(account, "push", {"Records": records}, waits_ms=push_ms)
        assert kept == {"batchItemFailures": []}
        payload = sum(len(each["body"].encode()) for each in records)
        account.add("push", sqs_standard_request=-(-payload // 65_536) + 1)
        count += 1
    return count


def handed_over(hub: Hub, url: str, most: int) -> Iterator[list[dict[str, Any]]]:
    """Batches of a queue's messages, as a function is given them."""
    arn = "arn:aws:sqs:us-east-1:1:" + url.rpartition("/")[2]
    while batch := hub.sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=most, MessageSystemAttributeNames=["All"]
    ).get("Messages"):
        yield [
            {
                "messageId": each["MessageId"],
                "receiptHandle": each["ReceiptHandle"],
                "body": each["Body"],
                "attributes": each["Attributes"],
                "eventSourceARN": arn,
            }
            for each in batch
        ]
        # As AWS does, so that nothing comes again while the rest is worked on.
        done = [{"Id": each["MessageId"], "ReceiptHandle": each["ReceiptHandle"]} for each in batch]
        hub.sqs.delete_message_batch(QueueUrl=url, Entries=done)


def least(accounts: Sequence[Account]) -> Account:
    """Of several runs of the same, what each function used in the one that took it the least time."""
    functions = accounts[0].units
    return Account(
        messages=accounts[0].messages,
        units={
            name: min((each.units[name] for each in accounts), key=lambda units: units["lambda_gb_second_arm64"])
            for name in functions
        },
    )


def keep(hub: Hub, account: Account) -> None:
    """Count what is kept of the messages that lie in the table now."""
    items, now = scan(hub.dynamodb), time.time()
    days = float(hub.source["Parameters"]["RecordsRetentionDays"]["Default"])
    full, times = batches(items, aws.MESSAGES_TABLE, now)
    recorded = Account(messages=account.messages)
    for batch in full:
        hub.meter.bytes_put = 0
        hub.invoke(recorded, "records", batch)
        recorded.add("records", s3_gb_month=hub.meter.bytes_put / 1e9 * days * 86_400 / MONTH_S)
    account.add("records", **{unit: count / times for unit, count in recorded.units["records"].items()})
    stored = stored_gb_months(items, now)
    account.add("tables", dynamodb_gb_month=stored, dynamodb_history_gb_month=stored)
    posts = account.units["ingest"]["http_api_request"]
    if not posts:
        return
    log_class = hub.source["Resources"]["HttpApiLogs"]["Properties"]["LogGroupClass"]
    ingested = posts * access_log_bytes(hub.source) / 1e9
    account.add("gateway", **{{"STANDARD": "logs_gb", "INFREQUENT_ACCESS": "logs_infrequent_gb"}[log_class]: ingested})


def scan(dynamodb: Any) -> list[dict[str, Any]]:
    """Every item of the messages table."""
    pages = dynamodb.get_paginator(operation_name="scan").paginate(TableName=aws.MESSAGES_TABLE)
    return [item for page in pages for item in page["Items"]]


def set_up(urls: dict[str, str]) -> None:
    """The environment of every function: as the template has it by default, with the names of the services here."""
    for each in stack().functions:
        os.environ.update(each.environ)
    set_aside = os.environ["SET_ASIDE_QUEUES"].count(",") + 1
    os.environ.update(
        {
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "CONFIG_TABLE": aws.CONFIG_TABLE,
            "MESSAGES_TABLE": aws.MESSAGES_TABLE,
            "SCHEDULE_TABLE": aws.SCHEDULE_TABLE,
            "WEBHOOKS_TABLE": aws.WEBHOOKS_TABLE,
            "PULL_TABLE": aws.PULL_TABLE,
            "HUB_TABLE": aws.HUB_TABLE,
            "BACKLOGS_TABLE": "backlogs",
            "RECORDS_BUCKET": "records",
            "BODIES_BUCKET": aws.BUCKET,
            "WEBSOCKET_MANAGEMENT_URL": "https://sockets.example/live",
            "ALLOWED_TARGETS": "loopback",
            "POWERTOOLS_SERVICE_NAME": "bench",
            "PULSED_TABLES": f"{aws.MESSAGES_TABLE},{aws.PULL_TABLE},backlogs",
            "SET_ASIDE_QUEUES": ",".join([urls["DISPATCH_FAILURES_URL"]] * set_aside),
            "BRISK_QUEUES": ",".join([urls["PUSH_QUEUE_URL"]] * 4),
            "CROWDED_QUEUES": ",".join(urls[each] for each in ("RETRY_QUEUE_URL", "SLOW_QUEUE_URL", "POLL_QUEUE_URL")),
            **urls,
        }
    )


@dataclass
class Shown:
    """An account for people, dollars for a million messages.

    Attributes:
        text: The table.
        calls: Calls and compute of accepting and delivering.
        whole: With the logs, and with all that is kept.
    """

    text: str
    calls: float
    whole: float

    @property
    def heading(self) -> str:
        """The sums."""
        return (
            f"**${self.calls:.2f}** for calls and compute, **${self.whole:.2f}** with logs, records and everything "
            "that is kept"
        )


def shown(account: Account) -> Shown:
    """Rows of function, unit, count per message and dollars, and the sums."""
    rows, bill = account.rows(), account.bill()
    whole = sum(bill.values())
    calls = sum(each for (function, name), each in bill.items() if name != "logs_gb" and function not in KEPT)
    rows.append(["all", "calls and compute", "", f"{calls:.2f}"])
    rows.append(["all", "with what is kept", "", f"{whole:.2f}"])
    return Shown(table(["function", "unit", "per message", "$ per million"], rows), calls, whole)


@dataclass(frozen=True)
class Bench:
    """Everything that a run needs.

    Attributes:
        hub: The functions.
        urls: Of the queues.
        project: A project with a push queue ``orders`` of one subscriber.
        token: Its token.
        port: Where the endpoint listens.
    """

    hub: Hub
    urls: dict[str, str]
    project: str
    token: str
    port: int


@contextlib.contextmanager
def bench() -> Iterator[Bench]:
    """Services, an endpoint, and a queue."""
    with (
        aws.dynamodb() as dynamodb,
        aws.s3() as s3,
        aws.sqs() as (sqs, _),
        aws.kms() as (_, key),
        sink(0) as port,
        metered() as meter,
        clock_of(Hub(meter, sqs, dynamodb, s3)) as hub,
    ):
        s3.create_bucket(Bucket="records")
        urls = {name: sqs.create_queue(QueueName=name.lower())["QueueUrl"] for name in QUEUES}
        set_up({**urls, "VAULT_KEY": key})
        from pushhub.engine.model import concurrency  # noqa: PLC0415 (after the environment is set)
        from pushhub.engine.model.queue import PushSettings, Queue, QueueType, Subscriber  # noqa: PLC0415
        from pushhub.engine.projects.projects import Projects  # noqa: PLC0415
        from pushhub.runtime.hub import start  # noqa: PLC0415

        # On a busy machine an attempt takes long enough to be one that holds up others, and would be put off.
        concurrency.HOLD_MS = 3_600_000
        outside = start("push").engine.ports
        projects = Projects(config=outside.config, clock=outside.clock)
        project = projects.make("bench").project_id
        token = projects.make_token(project)
        subscribers = tuple(
            Subscriber(subscriber_id=f"5ab5c12be50{number}", name=f"shop{number}", url=f"http://127.0.0.1:{port}/in")
            for number in range(MANY_SUBSCRIBERS)
        )
        for name, uid, eager, fields, count in (
            ("orders", "a", False, (), 1),
            (NAMED, "b", False, ("order.number",), 1),
            (EAGER, "c", True, (), 1),
            (MANY, "d", False, (), MANY_SUBSCRIBERS),
        ):
            queue = Queue(
                project=project,
                name=name,
                uid=f"{uid}1b2c3d4e5f6",
                pull_uid=f"{uid}1b2c3d4e5f7",
                type=QueueType.MULTICAST,
                push=PushSettings(subscribers=subscribers[:count], eager=eager),
                search_fields=fields,
                secret="0" * 32,
                created_at=0,
            )
            outside.config.create_queue(queue)
        setup = Bench(hub, urls, project, token, port)
        run(setup.hub, queued(setup, 1), urls)  # warms caches
        yield setup


def queued(
    setup: Bench, per_post: int, domain: str = DOMAINS["gateway"], queue: str = "orders"
) -> Iterable[dict[str, Any]]:
    """The posts of all messages to a queue, so many in each."""
    return [posted(setup, [BODY] * per_post, domain, queue)] * (MESSAGES // per_post)


def posted(
    setup: Bench, bodies: Sequence[str], domain: str = DOMAINS["gateway"], queue: str = "orders"
) -> dict[str, Any]:
    """One post."""
    path = f"/3/projects/{setup.project}/queues/{queue}/messages"
    return gateway_event(path, {"messages": [{"body": each} for each in bodies]}, f"OAuth {setup.token}", domain=domain)


def of_size(setup: Bench, size: int, whose: str = UNKNOWN, queue: str = "orders") -> Iterator[dict[str, Any]]:
    """The posts of all messages with bodies of about a size, one in each: those of bench/webhook_bodies.py.

    Args:
        whose: Whether the hub's dictionary has the senders' names (``known``), was made without the sender of each body
            (``unknown``), or has to do with text that nothing makes smaller (``random``).
    """
    drawn = random.Random(size)
    for each in about(size, MESSAGES):
        words = without(each.sender) if whose == UNKNOWN else dictionary()
        # As a hub whose dictionary this is, and always was
        deflated.CURRENT = words
        deflated.DICTIONARIES[zlib.adler32(words)] = words
        exact = base64.b64encode(drawn.randbytes(size * 3 // 4)).decode() if whose == RANDOM else each.content.decode()
        yield posted(setup, [exact], queue=queue)


def applications(setup: Bench, count: int) -> list[str]:
    """New applications, each with an endpoint."""

    def asked(path: str, body: object) -> str:
        event = gateway_event(f"/api/v1{path}", body, f"Bearer {setup.token}")
        answer = setup.hub.invoke(Account(messages=1), "control", event)
        assert answer["statusCode"] == 201, answer
        return str(json.loads(answer["body"])["id"])

    apps = [asked("/app", {"name": f"Customer {number}"}) for number in range(count)]
    for app in apps:
        asked(f"/app/{app}/endpoint", {"url": f"http://127.0.0.1:{setup.port}/in"})
    return apps


def webhooks(setup: Bench, apps: list[str], *, keys: bool) -> Iterator[dict[str, Any]]:
    """The posts of all messages to applications in turn, as Svix's clients make them."""
    body = {"eventType": "order.paid", "payload": json.loads(BODY)}
    for app in itertools.islice(itertools.cycle(apps), MESSAGES):
        event = gateway_event(f"/api/v1/app/{app}/msg", body, f"Bearer {setup.token}")
        if keys:
            event["headers"]["idempotency-key"] = f"auto_{uuid.uuid4()}"
        yield event


WAYS = (
    ("One message at a time to one endpoint, without an idempotency key", 1, False),
    ("The same with an idempotency key, which Svix's clients send", 1, True),
    ("One message at a time to a hundred endpoints in turn, without a key", 100, False),
)
"""Heading, endpoints, whether posts have a key."""

WAYS_TO_POST = (
    (1, "gateway", "orders", "Posted 1 at a time", 3.00),
    (1, "url", "orders", "Posted 1 at a time to the producers' URL (`ProducersUrl=true`)", 3.00),
    (100, "gateway", "orders", "Posted 100 at a time", 1.50),
    (1, "gateway", NAMED, "Posted 1 at a time to a queue with one named field (`search_fields`)", 3.70),
    (1, "gateway", EAGER, "Posted 1 at a time to an eager queue (`push.eager`)", 3.60),
)
"""Messages of a post, where it is made, the queue, what that is called, and the aim in dollars."""


def counted(page: Page, setup: Bench) -> None:
    """Count, and tell."""
    hub, urls, rounds = setup.hub, setup.urls, page.options.rounds
    plain = 0.0
    run(hub, queued(setup, 1, queue=NAMED), urls)
    for per_post, door, queue, way, aim in WAYS_TO_POST:
        posts = (queued(setup, per_post, DOMAINS[door], queue) for _ in range(rounds))
        reported = shown(least([run(hub, each, urls, eager=queue == EAGER) for each in posts]))
        plain = plain or reported.calls
        page.tell(f"{way}, a million messages: {reported.heading} (aim: under ${aim:.2f})", reported.text)
    page.tell("## Larger bodies, posted 1 at a time")
    for size, whose, way, aim in OF_SIZES:
        reported = shown(least([run(hub, of_size(setup, size, whose), urls) for _ in range(rounds)]))
        page.tell(f"{way}, a million messages: {reported.heading} (aim: at most ${aim:.2f} with all)", reported.text)
    page.tell("## Webhooks")
    for way, endpoints, keys in WAYS:
        apps, push_ms = applications(setup, endpoints), ENDPOINT_MS + GATHER_MS
        messages = (webhooks(setup, apps, keys=keys) for _ in range(1 + rounds))
        accounts = [run(hub, each, urls, push_ms=push_ms) for each in messages]
        # The first one warms caches.
        reported = shown(least(accounts[1:]))
        share = f"(calls {reported.calls / plain - 1:+.0%} of an IronMQ message; aim: +10%)"
        page.tell(f"{way}, a million messages: {reported.heading} {share}", reported.text)


def main() -> None:
    """Count, print, save."""
    page = Page("Cost of a million messages with one subscriber", __doc__, rounds=3)
    with bench() as setup:
        counted(page, setup)
    page.save()


if __name__ == "__main__":
    main()
