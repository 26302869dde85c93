"""What is specific to schedulers in DynamoDB: what a look for due ones reads."""

from __future__ import annotations

from typing import cast

from mypy_boto3_dynamodb import DynamoDBClient
from tests.cloud import aws_services as aws
from tests.cloud.aws_services import Intercepted
from tests.fakes import FakeClock
from tests.simulation import simulated_services

from pushhub.hub.model.schedule import Scheduler
from pushhub.hub.store._keys import SHARDS
from pushhub.hub.store.dynamodb_schedulers import LITTLE, REMEMBERED_MS, DynamoDBSchedulers

NOW = 1_700_000_000_000


def scheduler(number: int, next_at: int = NOW) -> Scheduler:
    return Scheduler(
        project="p",
        scheduler_id=f"{number:024d}",
        key="k",
        count=1,
        interval="hours",
        created_at=NOW,
        next_at=next_at,
    )


def test_while_few_are_listed_a_look_is_one_read() -> None:
    with simulated_services.dynamodb() as client:
        asked = Intercepted(client)
        schedulers = DynamoDBSchedulers(cast(DynamoDBClient, asked), aws.HUB_TABLE, FakeClock())
        # Given a hub without schedulers, as most are, and then one with few
        assert schedulers.due_schedulers(NOW, 10) == []
        schedulers.put_scheduler(scheduler(1))
        schedulers.put_scheduler(scheduler(2, NOW + 1))
        assert [each.scheduler_id for each in schedulers.due_schedulers(NOW, 10)] == [f"{1:024d}"]
        # Then each look was one read
        assert (asked.count("scan"), asked.count("query")) == (2, 0)
        # When there are many, then each part of their list is asked, and for half an hour nothing else
        for number in range(3, LITTLE + 3):
            schedulers.put_scheduler(scheduler(number))
        for _ in range(2):
            assert len(schedulers.due_schedulers(NOW, 100)) == LITTLE + 1
        assert (asked.count("scan"), asked.count("query")) == (3, 2 * SHARDS)
        schedulers.due_schedulers(NOW + REMEMBERED_MS, 100)
        assert asked.count("scan") == 4
