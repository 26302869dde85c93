"""The functions as Lambda runs them: their handlers, their environment, and AWS in this process."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import ModuleType
from typing import Any

import botocore.client
import pytest
from botocore.exceptions import ClientError
from local.iam.calls import needs, needs_of_answer
from local.iam.policies import Need
from local.iam.roles import Granted, keep
from simulation.roles import PLACE, Role, roles
from tests.cloud import aws_services as aws
from tests.fakes.gateway import http_event
from tests.fakes.loopback import serving
from tests.notifications.store import aws_notifications

from pushhub.cloud.clients import Clients
from pushhub.cloud.clock import SystemClock
from pushhub.cloud.settings import Settings
from pushhub.engine.model import concurrency
from pushhub.engine.wiring import AwsEnginePorts
from pushhub.runtime.hub import Pushhub, build, settings_of, start

ROOT = Path(__file__).parents[2]

RECORDS_BUCKET = "records"

LOGICAL_IDS = {
    aws.CONFIG_TABLE: "ConfigTable",
    aws.MESSAGES_TABLE: "MessagesTable",
    aws.PULL_TABLE: "PullTable",
    aws.SCHEDULE_TABLE: "ScheduleTable",
    aws.HUB_TABLE: "HubTable",
    aws.WEBHOOKS_TABLE: "WebhooksTable",
    aws.BUCKET: "BodiesBucket",
    RECORDS_BUCKET: "RecordsBucket",
    aws_notifications.BACKLOGS_TABLE: "BacklogsTable",
    "wakes.fifo": "NotifyQueue",
    "push_queue": "PushQueue",
    "retry_queue": "RetryQueue",
    "slow_queue": "SlowQueue",
    "poll_queue": "PollQueue",
    "route_queue": "RouteQueue",
    "errors_queue": "ErrorsQueue",
    "dispatch_failures": "DispatchFailures",
    "wake": "WakeFunction",
    "report": "ReportJob",
}
"""Logical ids in the template, by name here."""

SETTINGS_OF_QUEUES = (
    "PUSH_QUEUE_URL",
    "RETRY_QUEUE_URL",
    "SLOW_QUEUE_URL",
    "POLL_QUEUE_URL",
    "ROUTE_QUEUE_URL",
    "ERRORS_QUEUE_URL",
    "DISPATCH_FAILURES_URL",
)


@dataclass
class Context:
    """Lambda's context object."""

    aws_request_id: str = "request-1"
    remaining_ms: int = 200_000

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms


@dataclass
class Sink:
    """An endpoint on loopback that answers with the status that was set, and keeps its requests."""

    url: str
    status: int = 200
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@dataclass(frozen=True)
class Call:
    """One call of an AWS API."""

    service: str
    operation: str
    parameters: dict[str, Any]


@dataclass
class Functions:
    """Handlers by folder name, and what they called.

    Each may call what its role in the template grants, and nothing else.

    Attributes:
        calls: Every AWS call since the last :meth:`forget`.
        queue_urls: By name of the setting that holds the URL.
        roles: The roles, by function.
    """

    dynamodb: Any
    sqs: Any
    queue_urls: dict[str, str]
    calls: list[Call] = field(default_factory=list)
    handlers: dict[str, ModuleType] = field(default_factory=dict)
    roles: dict[str, Role] = field(default_factory=lambda: roles(PastSearch="objects"))
    _acts: Role | None = None

    @contextmanager
    def acting_as(self, name: str) -> Iterator[None]:
        """Calls are made with the role of a function."""
        self._acts = self.roles[name]
        try:
            yield
        finally:
            self._acts = None

    def answered(self, call: Call, make: Callable[[], Any]) -> Any:
        """Make a call, if the role that acts grants it."""
        self.calls.append(call)
        service, operation, given = call.service, call.operation, call.parameters
        self._require(call, needs(service, operation, given, PLACE) if self._acts else [])
        try:
            answer = make()
        except ClientError as error:
            response: dict[str, Any] = {**error.response}
            self._require(call, needs_of_answer(service, operation, given, response, PLACE))
            raise
        self._require(call, needs_of_answer(service, operation, given, answer, PLACE))
        return answer

    def _require(self, call: Call, needed: list[Need]) -> None:
        if self._acts:
            in_the_stack = [Need(each.action, _in_the_stack(each.resource), each.context) for each in needed]
            self._acts.require(call.service, call.operation, in_the_stack)

    @property
    def refused(self) -> list[tuple[str, str, str]]:
        """What a role did not grant: function, action, resource."""
        return [(role.function, each.action, each.resource) for role in self.roles.values() for each in role.refused]

    def invoke(self, name: str, event: dict[str, Any], context: Context | None = None) -> Any:
        """Run a function's handler."""
        with self.acting_as(name):
            if name not in self.handlers:
                self.handlers[name] = started(name)
            return self.handlers[name].handler(event, context or Context())

    def forget(self) -> None:
        """Start a new list of calls."""
        self.calls.clear()

    def stream_event(self, *, kind: str = "message") -> dict[str, Any]:
        """The stream event of the messages table for every item of a kind, as if just inserted."""
        items = self.dynamodb.scan(TableName=aws.MESSAGES_TABLE)["Items"]
        return {
            "Records": [
                {
                    "eventID": str(number),
                    "eventName": "INSERT",
                    "eventSource": "aws:dynamodb",
                    "dynamodb": {"NewImage": item, "SequenceNumber": str(number)},
                }
                for number, item in enumerate(items)
                if item["kind"]["S"] == kind
            ]
        }

    def sqs_event(self, setting: str) -> dict[str, Any]:
        """The event of Lambda's poller for the messages of a queue."""
        url = self.queue_urls[setting]
        answer = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageSystemAttributeNames=["All"])
        return {
            "Records": [
                {
                    "messageId": each["MessageId"],
                    "receiptHandle": each["ReceiptHandle"],
                    "body": each["Body"],
                    "attributes": each["Attributes"],
                    "eventSource": "aws:sqs",
                    "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:{url.rpartition('/')[2]}",
                }
                for each in answer.get("Messages", [])
            ]
        }


def started(name: str) -> ModuleType:
    """A function's handler, imported as a cold start does."""
    path = ROOT / "functions" / name / "handler.py"
    spec = importlib.util.spec_from_file_location(f"handler_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def change(
    image: Mapping[str, Any], number: int = 1, *, table: str = "messages", at: int = 1795240514
) -> dict[str, Any]:
    """The record of a new item in a table's stream, as its readers get it."""
    return {
        "eventID": str(number),
        "eventName": "INSERT",
        "eventSource": "aws:dynamodb",
        "eventSourceARN": f"arn:aws:dynamodb:us-east-1:123456789012:table/{table}/stream/2026-11-21T00:00:00.000",
        "dynamodb": {
            "Keys": {name: image[name] for name in ("pk", "sk")},
            "NewImage": image,
            "SequenceNumber": str(number),
            "ApproximateCreationDateTime": at,
        },
    }


def gateway_event(method: str, path: str, body: Any = None, *, query: str = "", **headers: str) -> dict[str, Any]:
    """A request of somebody as the HTTP API hands it over; the names of headers with ``_`` for ``-``."""
    shown = {name.replace("_", "-"): value for name, value in headers.items()}
    return http_event(method, path, body, query=query, headers=shown, address="203.0.113.9")


def _in_the_stack(arn: str) -> str:
    """The ARN of the template's resource that something stands for here."""
    *head, rest = arn.split(":", 5)
    if "kms" in head:
        return PLACE.key("WebhooksKey")
    parts = re.split("([/:])", rest)
    name = next((each for each in parts if each in LOGICAL_IDS), "")
    # Once: keys of objects may begin with the name of their bucket.
    return ":".join([*head, rest.replace(name, LOGICAL_IDS.get(name, ""), 1)])


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> Iterator[Functions]:
    """All functions, freshly started, on empty tables and queues."""
    for name, value in {
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "CONFIG_TABLE": aws.CONFIG_TABLE,
        "MESSAGES_TABLE": aws.MESSAGES_TABLE,
        "SCHEDULE_TABLE": aws.SCHEDULE_TABLE,
        "PULL_TABLE": aws.PULL_TABLE,
        "PULSED_TABLES": ",".join((aws.MESSAGES_TABLE, aws.PULL_TABLE, aws_notifications.BACKLOGS_TABLE)),
        "QUEUE_DESCENDANTS": "1000",
        "LONG_POLLS": "20",
        "PROJECT_QUOTA": "0",
        "ATTEMPT_EVENTS": "all",
        "HUB_TABLE": aws.HUB_TABLE,
        "BODIES_BUCKET": aws.BUCKET,
        "RECORDS_BUCKET": RECORDS_BUCKET,
        "AUDIT_TRAIL": "false",
        "PAST_SEARCH": "objects",
        "BACKLOGS_TABLE": aws_notifications.BACKLOGS_TABLE,
        "ACCOUNT": "123456789012",
        "PUBLIC_BASE_URL": "https://hub.example",
        "DESCENDANTS_LIMIT": "10000",
        "BACKLOG_HOURS": "36",
        "WEBHOOKS_TABLE": aws.WEBHOOKS_TABLE,
        "IDEMPOTENCY_HOURS": "12",
        "WAKE_FUNCTION": "wake",
        "TRANSFORM_FUNCTION": "transform",
        "BACKLOG_BYTES": "100000",
        "WEBSOCKET_MANAGEMENT_URL": "https://sockets.example/live",
        "ALLOWED_TARGETS": "loopback",
    }.items():
        monkeypatch.setenv(name, value)
    with (
        aws.dynamodb() as dynamodb,
        aws_notifications.dynamodb(),
        aws_notifications.wakes() as (_, wakes_url),
        aws.s3() as s3,
        aws.sqs() as (sqs, _),
    ):
        s3.create_bucket(Bucket=RECORDS_BUCKET)
        monkeypatch.setenv("NOTIFY_QUEUE_URL", wakes_url)
        key = aws_notifications.client("kms").create_key()["KeyMetadata"]["Arn"]
        monkeypatch.setenv("VAULT_KEY", key)
        urls: dict[str, str] = {}
        for setting in SETTINGS_OF_QUEUES:
            name = setting.removesuffix("_URL").lower()
            urls[setting] = sqs.create_queue(QueueName=name)["QueueUrl"]
            monkeypatch.setenv(setting, urls[setting])
        monkeypatch.setenv("SET_ASIDE_QUEUES", urls["DISPATCH_FAILURES_URL"])
        monkeypatch.setenv("CROWDED_QUEUES", f"{urls['RETRY_QUEUE_URL']},{urls['POLL_QUEUE_URL']}")
        monkeypatch.setenv("BRISK_QUEUES", urls["PUSH_QUEUE_URL"])
        created = Functions(dynamodb=dynamodb, sqs=sqs, queue_urls=urls)
        real = botocore.client.BaseClient._make_api_call  # type: ignore[attr-defined]

        def recorded(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
            call = Call(client.meta.service_model.service_name, operation, parameters)
            return created.answered(call, lambda: real(client, operation, parameters))

        monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", recorded)
        start_afresh()
        monkeypatch.setattr(SystemClock, "now", SystemClock.now)
        # On a loaded machine an attempt here may take long enough to count as slow.
        monkeypatch.setattr(concurrency, "HOLD_MS", 3_600_000)
        yield created
        start_afresh()
        for role in created.roles.values():
            keep(Granted.of(role.function, each) for each in role.used)
        assert created.refused == []


def start_afresh() -> None:
    """Discard everything that a warm execution environment keeps."""
    start.cache_clear()
    whole.cache_clear()


@cache
def whole() -> Pushhub:
    """A hub beside the functions, with the settings of most of them."""
    declared = set().union(*(settings_of(each) for each in ("ingest", "push", "poll", "records")))
    aws = AwsEnginePorts(Settings(declared), Clients())
    return build(aws, lambda each: each.aws_ports(aws))


def turn_clock(*, seconds: int) -> None:
    """Move the clocks of all functions ahead by this much from now on."""
    real = SystemClock.now
    SystemClock.now = lambda self: real(self) + seconds * 1000  # type: ignore[method-assign]


@pytest.fixture
def sink() -> Iterator[Sink]:
    """An endpoint on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            endpoint.received.append((dict(self.headers.items()), body))
            self.send_response(endpoint.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_OPTIONS(self) -> None:
            """Consent to whatever asks."""
            self.send_response(204)
            self.send_header("WebHook-Allowed-Origin", "*")
            self.end_headers()

    with serving(Handler) as url:
        endpoint = Sink(url=f"{url}/in")
        yield endpoint


def as_json(value: Any) -> Any:
    """A handler's answer as Lambda returns it; fails when it is not JSON."""
    return json.loads(json.dumps(value))
