"""What is specific to connections in DynamoDB: what it takes to see that there are none."""

from __future__ import annotations

from typing import cast

from mypy_boto3_dynamodb import DynamoDBClient
from tests.cloud.aws_services import Intercepted
from tests.fakes import FakeClock
from tests.notifications.store.aws_notifications import BACKLOGS_TABLE
from tests.simulation import simulated_services

from pushhub.notifications.store.dynamodb_backlogs import DynamoDBConnectionStore


def test_that_nobody_is_connected_is_one_read() -> None:
    with simulated_services.dynamodb() as client:
        asked = Intercepted(client)
        connections = DynamoDBConnectionStore(cast(DynamoDBClient, asked), BACKLOGS_TABLE, FakeClock())
        assert list(connections.everyone()) == []
        assert [operation for operation, _ in asked.calls] == ["scan"]
