"""The simulator's services in place of those that the stores' tests run on: for threads, one call at a time, as the
models are made for the simulator's tasks, of which only one runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any

from simulation.dynamodb import DynamoDB
from simulation.sqs import Chances, Queue, QueueSettings, Sqs
from simulation.storage import S3
from simulation.template import stack
from tests.cloud import aws_services as aws
from tests.notifications.store import aws_notifications


def named(table: str) -> str:
    """The contract tests' name for a table of the template: ``PullTable`` is their ``PULL_TABLE``."""
    constant = f"{table.removesuffix('Table').upper()}_TABLE"
    return str(getattr(aws, constant, None) or getattr(aws_notifications, constant, table))


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@contextmanager
def dynamodb() -> Iterator[Any]:
    """The tables as in the template, empty."""
    tables = [replace(each, name=named(each.name)) for each in stack().tables]
    # There is no SDK in front that would retry, and what stores promise does not depend on their speed.
    yield aws.OneCallAtATime(DynamoDB(tables, now_ms=now_ms, refuses=False))


@contextmanager
def s3() -> Iterator[Any]:
    """A bucket, empty."""
    yield aws.OneCallAtATime(S3())


@contextmanager
def sqs() -> Iterator[tuple[Any, str]]:
    """A work queue, empty, and its URL."""
    queue = Queue(
        QueueSettings(aws.QUEUE_NAME), now_ms=now_ms, random=Random(1), chances=Chances(), most_in_flight=120_000
    )
    yield aws.OneCallAtATime(Sqs({queue.name: queue}, Chances())), f"https://sqs.example/{queue.name}"
