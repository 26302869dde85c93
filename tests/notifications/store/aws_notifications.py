"""The table and queue of Notifications 2.0 in the test's own process, as the template makes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

import boto3
from moto import mock_aws
from mypy_boto3_dynamodb import DynamoDBClient
from tests.cloud.aws_services import OneCallAtATime
from tests.cloud.quick_moto import quick_moto

BACKLOGS_TABLE = "backlogs"

_REGION = "us-east-1"


@cache
def client(service: str) -> Any:
    """A client, one for all tests; inside :func:`moto.mock_aws` only."""
    return boto3.client(
        cast(Any, service),
        region_name=_REGION,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )


@contextmanager
def dynamodb() -> Iterator[DynamoDBClient]:
    """The table, empty."""
    with mock_aws(), quick_moto():
        dynamodb: DynamoDBClient = client("dynamodb")
        dynamodb.create_table(
            TableName=BACKLOGS_TABLE,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "S"},
                {"AttributeName": "idle_shard", "AttributeType": "S"},
                {"AttributeName": "check_at", "AttributeType": "N"},
            ],
            GlobalSecondaryIndexes=[
                {
                    "IndexName": "idle",
                    "KeySchema": [
                        {"AttributeName": "idle_shard", "KeyType": "HASH"},
                        {"AttributeName": "check_at", "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }
            ],
        )
        yield cast(DynamoDBClient, OneCallAtATime(dynamodb))


@contextmanager
def wakes() -> Iterator[tuple[Any, str]]:
    """The queue of wake-ups, empty, and its URL."""
    with mock_aws():
        sqs = client("sqs")
        url = sqs.create_queue(
            QueueName="wakes.fifo",
            Attributes={
                "FifoQueue": "true",
                "DeduplicationScope": "messageGroup",
                "FifoThroughputLimit": "perMessageGroupId",
            },
        )["QueueUrl"]
        yield sqs, url
