"""AWS in the test's own process: tables, buckets and queues as in the template, and clients that can fail."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, ReadTimeoutError
from moto import mock_aws
from mypy_boto3_dynamodb import DynamoDBClient
from mypy_boto3_s3 import S3Client
from mypy_boto3_sqs import SQSClient
from tests.cloud.quick_moto import quick_moto

BUCKET = "bodies"
CONFIG_TABLE = "config"
HUB_TABLE = "hub"
MESSAGES_TABLE = "messages"
PULL_TABLE = "pull"
SCHEDULE_TABLE = "schedule"
QUEUE_NAME = "push"
WEBHOOKS_TABLE = "webhooks"

_REGION = "us-east-1"


@cache
def _client(service: str) -> Any:
    """One for all tests: it keeps nothing, and making it costs a tenth of a second."""
    return boto3.client(
        cast(Any, service),
        region_name=_REGION,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        config=Config(retries={"max_attempts": 0}),
    )


@contextmanager
def dynamodb() -> Iterator[DynamoDBClient]:
    """The tables, empty."""
    with mock_aws(), quick_moto():
        client: DynamoDBClient = _client("dynamodb")
        _create_table(client, CONFIG_TABLE, {})
        _create_table(client, SCHEDULE_TABLE, {})
        _create_table(
            client,
            MESSAGES_TABLE,
            {"unsettled_queue": "S", "unsettled_key": "S"},
            GlobalSecondaryIndexes=[
                _index("unsettled", "unsettled_queue", "unsettled_key", {"ProjectionType": "KEYS_ONLY"}),
            ],
        )
        _create_table(client, PULL_TABLE, {})
        _create_table(
            client,
            HUB_TABLE,
            {"list_key": "S", "list_place": "S"},
            GlobalSecondaryIndexes=[_index("listed", "list_key", "list_place", {"ProjectionType": "ALL"})],
        )
        _create_table(client, WEBHOOKS_TABLE, {})
        yield cast(DynamoDBClient, OneCallAtATime(client))


@contextmanager
def kms() -> Iterator[tuple[Any, str]]:
    """A client of KMS, and the ARN of a key."""
    with mock_aws():
        client = _client("kms")
        yield client, client.create_key()["KeyMetadata"]["Arn"]


@contextmanager
def s3() -> Iterator[S3Client]:
    """The bodies bucket, empty."""
    with mock_aws():
        client: S3Client = _client("s3")
        client.create_bucket(Bucket=BUCKET)
        yield client


@contextmanager
def sqs() -> Iterator[tuple[SQSClient, str]]:
    """A work queue, empty, and its URL."""
    with mock_aws():
        client: SQSClient = _client("sqs")
        yield client, client.create_queue(QueueName=QUEUE_NAME)["QueueUrl"]


class OneCallAtATime:
    """A client for several threads: calls of the services are atomic, those of their stand-ins are not."""

    def __init__(self, client: object) -> None:
        self._client = client
        self._lock = threading.Lock()

    def __getattr__(self, operation: str) -> Any:
        real = getattr(self._client, operation)

        def call(**parameters: Any) -> Any:
            with self._lock:
                return real(**parameters)

        return call


class Intercepted:
    """A client that lets the test answer some operations.

    Attributes:
        calls: Operations called with their parameters, in order.
    """

    def __init__(self, client: object) -> None:
        self._client = client
        self._answers: dict[str, list[Callable[[Callable[..., Any], dict[str, Any]], Any]]] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def next(self, operation: str, answer: Callable[[Callable[..., Any], dict[str, Any]], Any]) -> None:
        """Answer the next call of an operation with ``answer(real operation, parameters)``."""
        self._answers.setdefault(operation, []).append(answer)

    def count(self, operation: str) -> int:
        """How often an operation was called."""
        return sum(called == operation for called, _ in self.calls)

    def __getattr__(self, operation: str) -> Any:
        real = getattr(self._client, operation)

        def call(**parameters: Any) -> Any:
            self.calls.append((operation, parameters))
            answers = self._answers.get(operation)
            return answers.pop(0)(real, parameters) if answers else real(**parameters)

        return call


def client_error(code: str, **more: Any) -> ClientError:
    """The SDK's error for an error answer."""
    response: Any = {"Error": {"Code": code, "Message": code}, **more}
    return ClientError(response, "Operation")


def passes(real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    """The service answers normally."""
    return real(**parameters)


def fails(real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    """The service answers with an internal error."""
    raise client_error("InternalServerError")


def repeated(real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    """The first request takes effect but its answer is lost, so the SDK sends it again."""
    real(**parameters)
    return real(**parameters)


def times_out(real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    """The request takes effect, but no answer comes."""
    real(**parameters)
    raise ReadTimeoutError(endpoint_url="http://127.0.0.1")


def _create_table(client: DynamoDBClient, name: str, index_keys: dict[str, str], **indexes: Any) -> None:
    attributes: Any = {"pk": "S", "sk": "S", **index_keys}
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": kind} for key, kind in attributes.items()],
        **indexes,
    )


def _index(name: str, pk: str, sk: str, projection: dict[str, Any]) -> dict[str, Any]:
    keys = [{"AttributeName": pk, "KeyType": "HASH"}, {"AttributeName": sk, "KeyType": "RANGE"}]
    return {"IndexName": name, "KeySchema": keys, "Projection": projection}
