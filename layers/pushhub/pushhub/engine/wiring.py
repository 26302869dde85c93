"""Builds each use case once per execution environment, with only the clients it needs.

Everything is made at its first use and kept; imports of adapters are inside, so that a function pays only for its own.
"""

# ruff: noqa: PLC0415 (imports inside functions are the point of this module)

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from pushhub.cloud.clock import SystemClock
from pushhub.cloud.observability import telemetry
from pushhub.cloud.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import ThreadPoolExecutor

    from pushhub.egress.sender import GuardedSender
    from pushhub.engine.dispatch import Dispatch
    from pushhub.engine.model.record import DeliveryRecord
    from pushhub.engine.ports import BodyStore, ConfigStore, MessageStore, RecordStore, WorkQueue
    from pushhub.engine.push import Push
    from pushhub.engine.records import Records
    from pushhub.engine.target import Targets
    from pushhub.engine.wake import Wake
    from pushhub.ironmq.api.api import IronApi
    from pushhub.ironmq.error_queue import Exhausted
    from pushhub.ironmq.ports import LineStore
    from pushhub.ironmq.post import Ingest

__all__ = [
    "check_url",
    "client",
    "clock",
    "config_store",
    "dispatch",
    "exhausted",
    "ingest",
    "iron_api",
    "line_store",
    "message_store",
    "poll",
    "poll_queue",
    "push",
    "push_queue",
    "record_store",
    "records",
    "retry_queue",
    "sender",
    "set_aside",
    "settings",
    "wake",
]

WORKERS = 100
"""Threads for attempts side by side (ten SQS messages of ten orders each); also the size of the connection pools. Threads are made
as they are needed."""


@cache
def settings() -> Settings:
    """The settings of the function that runs here."""
    return Settings.from_environment()


@cache
def clock() -> SystemClock:
    """Real time."""
    return SystemClock()


@cache
def _session() -> Any:
    import boto3

    return boto3.session.Session()


@cache
def client(service: str, *, endpoint_url: str | None = None) -> Any:
    """One low-level client per service (and endpoint, where there are several); each call is bounded well below the functions' timeouts."""
    from botocore.config import Config

    return _session().client(
        service,
        endpoint_url=endpoint_url,
        config=Config(
            retries={"mode": "standard", "total_max_attempts": 4},
            connect_timeout=2,
            read_timeout=10,
            max_pool_connections=WORKERS,
            tcp_keepalive=True,
            # A quarter of the CPU of a call; the contract tests run the same calls with validation on.
            parameter_validation=False,
        ),
    )


@cache
def config_store() -> ConfigStore:
    """Projects, tokens and queues."""
    from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore

    return DynamoDBConfigStore(client("dynamodb"), settings().text("CONFIG_TABLE"), clock())


@cache
def message_store() -> MessageStore:
    """Messages of push queues and their deliveries."""
    from pushhub.engine.store.dynamodb_messages import DynamoDBMessageStore

    return DynamoDBMessageStore(client("dynamodb"), settings().text("MESSAGES_TABLE"), clock())


@cache
def line_store() -> LineStore:
    """Waiting lines of pull queues."""
    from pushhub.ironmq.store.dynamodb_pull import DynamoDBLineStore

    return DynamoDBLineStore(client("dynamodb"), settings().text("LINES_TABLE"), clock())


@cache
def body_store() -> BodyStore:
    """Claim-checked bodies."""
    from pushhub.engine.store.s3_bodies import S3BodyStore

    return S3BodyStore(client("s3"), settings().text("BODIES_BUCKET"))


@cache
def _work_queue(setting: str) -> WorkQueue:
    from pushhub.engine.store.sqs_work import SqsWorkQueue

    return SqsWorkQueue(client("sqs"), settings().text(setting), clock())


def push_queue() -> WorkQueue:
    """First attempts."""
    return _work_queue("PUSH_QUEUE_URL")


def retry_queue() -> WorkQueue:
    """Later attempts."""
    return _work_queue("RETRY_QUEUE_URL")


def poll_queue() -> WorkQueue:
    """Polls (hub protocol)."""
    return _work_queue("POLL_QUEUE_URL")


def set_aside(text: str) -> None:
    """Keep a stream record that nothing can be made of, whole, in the queue of dispatch failures."""
    from pushhub.engine.store.sqs_aside import send_aside

    send_aside(client("sqs"), settings().text("DISPATCH_FAILURES_URL"), text)


@cache
def sender() -> GuardedSender:
    """Makes guarded requests."""
    from pushhub.egress.sender import GuardedSender

    return GuardedSender(now=clock().now, allowed_targets=settings().listed("ALLOWED_TARGETS"), threads=WORKERS)


@cache
def _executor() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(max_workers=WORKERS, thread_name_prefix="attempt")


@cache
def ingest() -> Ingest:
    """Accepts messages."""
    from pushhub.ironmq.post import Ingest

    return Ingest(
        config=config_store(), messages=message_store(), lines=line_store(), bodies=body_store(), clock=clock()
    )


def check_url(url: str, allowed: Sequence[str]) -> str | None:
    """Why the hub may not reach a URL, given a project's allowed targets; None when it may.

    ``REFUSED_TARGET_HINT`` may hold what the operator wants to be said with it: who can allow it, and how.
    """
    from pushhub.egress.guard import refusal

    reason = refusal(url, (*settings().listed("ALLOWED_TARGETS"), *allowed))
    hint = settings().optional("REFUSED_TARGET_HINT")
    return f"{reason}{hint}" if reason and reason.endswith("not allowed") else reason


@cache
def iron_api() -> IronApi:
    """The IronMQ v3 queue API."""
    from pushhub.ironmq.api.api import IronApi

    return IronApi(
        config=config_store(),
        messages=message_store(),
        lines=line_store(),
        bodies=body_store(),
        clock=clock(),
        check_url=check_url,
        base_url=settings().base_url(),
    )


@cache
def targets() -> Targets:
    """How each kind of subscriber is pushed to."""
    from pushhub.engine.model.queue import Dialect
    from pushhub.engine.target import HttpTarget, IronMqQueueTarget, IronWorkerQueueTarget, Target, Targets
    from pushhub.hub.wiring import hub_target
    from pushhub.notifications.wiring import topic_target

    base_url = settings().base_url()
    http = HttpTarget(sender=sender(), config=config_store(), base_url=base_url)
    raw: Mapping[str, Target] = {
        "http": http,
        "https": http,
        "ironmq": IronMqQueueTarget(
            ingest=ingest(), config=config_store(), sender=sender(), base_url=base_url, clock=clock()
        ),
        "ironworker": IronWorkerQueueTarget(sender=sender(), config=config_store()),
        "notification2": topic_target(),
    }
    return Targets(raw=raw, by_dialect={Dialect.HUB: hub_target()})


@cache
def push() -> Push:
    """Attempts batches of deliveries."""
    return _push_from(retry_queue())


@cache
def poll() -> Push:
    """Attempts batches of polls."""
    return _push_from(poll_queue())


def _push_from(waiting: WorkQueue) -> Push:
    """The push use case of a function whose queue of waiting deliveries is the given one."""
    from pushhub.engine.deliver import Deliver
    from pushhub.engine.push import Push
    from pushhub.hub.wiring import hub_queues, hub_watch

    deliver = Deliver(
        config=hub_queues(),
        messages=message_store(),
        bodies=body_store(),
        targets=targets(),
        retry_queue=waiting,
        clock=clock(),
        telemetry=telemetry,
        in_flight_limit=settings().number("IN_FLIGHT_LIMIT", least=1, most=120_000),
        watcher=hub_watch(),
    )
    return Push(
        messages=message_store(),
        deliver=deliver,
        retry_queue=retry_queue(),
        errors_queue=_work_queue("ERRORS_QUEUE_URL"),
        poll_queue=poll_queue(),
        clock=clock(),
        telemetry=telemetry,
        executor=_executor(),
    )


@cache
def dispatch() -> Dispatch:
    """Queues what was stored."""
    from pushhub.engine.dispatch import Dispatch

    return Dispatch(
        config=config_store(),
        messages=message_store(),
        push_queue=push_queue(),
        clock=clock(),
        telemetry=telemetry,
    )


@cache
def wake() -> Wake:
    """Wakes parked deliveries."""
    from pushhub.engine.wake import Wake

    return Wake(
        messages=message_store(),
        retry_queue=retry_queue(),
        poll_queue=poll_queue(),
        clock=clock(),
        telemetry=telemetry,
        executor=_executor(),
    )


@cache
def exhausted() -> Exhausted:
    """Posts to error queues."""
    from pushhub.ironmq.error_queue import Exhausted

    return Exhausted(
        config=config_store(),
        messages=message_store(),
        bodies=body_store(),
        ingest=ingest(),
        telemetry=telemetry,
    )


@cache
def record_store() -> RecordStore:
    """Where delivery records are kept."""
    from pushhub.engine.store.s3_records import S3RecordStore

    return S3RecordStore(client("s3"), settings().text("RECORDS_BUCKET"))


@cache
def records() -> Records:
    """Writes delivery records."""
    from pushhub.engine.records import Records
    from pushhub.engine.store.dynamodb_changes import record_of_change
    from pushhub.ironmq.store.changes import record_of_pull_change

    def read(stream_record: Mapping[str, Any]) -> DeliveryRecord | None:
        images = stream_record["dynamodb"]
        kind = (images.get("NewImage") or images["OldImage"])["kind"]["S"]
        return record_of_pull_change(stream_record) if kind == "line" else record_of_change(stream_record)

    return Records(read=read, store=record_store(), telemetry=telemetry)
