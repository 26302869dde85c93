"""Each port twice: the fake that other tests use, and the real adapter on AWS in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, cast

import pytest
from cli.archive.archived import check
from cli.archive.holdings import NOBODY, moving, owner
from tests.cloud import aws_services as aws
from tests.contract.both import both
from tests.contract.mortal import Mortal
from tests.contract.samples import OTHER_PROJECT, PROJECT
from tests.fakes import FakeBodyStore, FakeClock, FakeConfigStore, FakeMessageStore, FakePullStore, FakeSchedule
from tests.fakes.activity import FakeActivity
from tests.fakes.alerts import FakeAlertLevels, FakeAlerts
from tests.fakes.catalogue import FakeCatalogue
from tests.fakes.credentials import credentials
from tests.fakes.past import FakePastSearches
from tests.fakes.search import FakeSearchIndex
from tests.fakes.subscribers import FakeSubscribers
from tests.notifications.store import aws_notifications
from tests.notifications.world import PROJECT as TENANT

from pushhub.engine.ports import BodyStore
from pushhub.engine.store import dynamodb_schedule
from pushhub.engine.store.dynamodb_activity import DynamoDBActivity
from pushhub.engine.store.dynamodb_catalogue import DynamoDBCatalogue
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore
from pushhub.engine.store.dynamodb_messages import DynamoDBMessageStore
from pushhub.engine.store.dynamodb_past import DynamoDBPastSearches
from pushhub.engine.store.dynamodb_schedule import DynamoDBSchedule
from pushhub.engine.store.dynamodb_search import DynamoDBSearchIndex
from pushhub.engine.store.dynamodb_subscribers import DynamoDBSubscribers
from pushhub.engine.store.s3_bodies import S3BodyStore
from pushhub.engine.stores import ConfigStore, MessageStore
from pushhub.engine.waiting.ports import Schedule
from pushhub.ironmq.ports import PullStore
from pushhub.ironmq.store.dynamodb_alert_levels import DynamoDBAlertLevels
from pushhub.ironmq.store.dynamodb_alerts import DynamoDBAlerts
from pushhub.ironmq.store.dynamodb_pull import DynamoDBPullStore

OWNERS = {PROJECT, OTHER_PROJECT, TENANT, NOBODY}
TABLES_HERE = {
    aws.CONFIG_TABLE: "ConfigTable",
    aws.MESSAGES_TABLE: "MessagesTable",
    aws.SCHEDULE_TABLE: "ScheduleTable",
    aws.PULL_TABLE: "PullTable",
    aws.HUB_TABLE: "HubTable",
    aws.WEBHOOKS_TABLE: "WebhooksTable",
    aws_notifications.BACKLOGS_TABLE: "BacklogsTable",
}
"""What the tables of the template are called here."""


@pytest.fixture(autouse=True)
def _services(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``SERVICES=simulation`` the adapters run on the simulator's models:
    see ``tests/simulation/test_models.py``.
    """
    if os.environ.get("SERVICES") == "simulation":
        from tests.simulation import simulated_services  # noqa: PLC0415 (who does not ask for them need not have them)

        for service in ("dynamodb", "s3", "sqs"):
            monkeypatch.setattr(aws, service, getattr(simulated_services, service))
        monkeypatch.setattr(aws_notifications, "dynamodb", simulated_services.dynamodb)


@pytest.fixture(autouse=True)
def _known_kinds(_services: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a store writes is of a kind that an erasure knows, and its owner's."""
    if os.environ.get("SERVICES") == "simulation":
        return  # the same stores write the same items
    for module in (aws, aws_notifications):
        monkeypatch.setattr(module, "dynamodb", _checked(module.dynamodb))


def _checked(real: Callable[[], AbstractContextManager[Any]]) -> Callable[[], AbstractContextManager[Any]]:
    @contextmanager
    def checked() -> Iterator[Any]:
        with real() as client:
            yield client
            for name in client.list_tables()["TableNames"]:
                for item in client.scan(TableName=name)["Items"]:
                    whose = owner(TABLES_HERE[name], item)
                    assert whose in OWNERS, item
                    if whose and moving(TABLES_HERE[name], item, whose):
                        # An export that has it is imported.
                        check(TABLES_HERE[name], item, whose)

    return checked


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["fake", "dynamodb"])
def config_store(request: pytest.FixtureRequest, clock: FakeClock) -> Iterator[ConfigStore]:
    if request.param == "fake":
        yield FakeConfigStore(clock)
        return
    with aws.dynamodb() as client:
        yield DynamoDBConfigStore(client, aws.CONFIG_TABLE, clock, credentials().sealed)


@pytest.fixture(params=["fake", "dynamodb", "dynamodb-listed"])
def message_store(
    request: pytest.FixtureRequest, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MessageStore]:
    """The last one stores the messages of every queue as those of listed queues."""
    if request.param == "fake":
        yield FakeMessageStore(FakeSchedule(clock))
        return
    if request.param == "dynamodb-listed":
        monkeypatch.setattr("pushhub.engine.store._keys.LISTED", "")
    with aws.dynamodb() as client:
        schedule = DynamoDBSchedule(client, aws.SCHEDULE_TABLE, clock)
        yield DynamoDBMessageStore(client, aws.MESSAGES_TABLE, clock, lambda: schedule)


@pytest.fixture(params=["fake", "dynamodb"])
def schedule(request: pytest.FixtureRequest, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Schedule]:
    if request.param == "fake":
        yield FakeSchedule(clock)
        return
    # Every minute of every shard is a call, and there are enough minutes.
    monkeypatch.setattr(dynamodb_schedule, "SHARDS", 3)
    with aws.dynamodb() as client:
        yield DynamoDBSchedule(client, aws.SCHEDULE_TABLE, clock)


subscriber_store = both(FakeSubscribers, DynamoDBSubscribers, aws.SCHEDULE_TABLE)
activity_store = both(FakeActivity, DynamoDBActivity, aws.SCHEDULE_TABLE)
alert_store = both(FakeAlerts, DynamoDBAlerts, aws.CONFIG_TABLE)
alert_level_store = both(FakeAlertLevels, DynamoDBAlertLevels, aws.PULL_TABLE)
catalogue = both(FakeCatalogue, DynamoDBCatalogue, aws.SCHEDULE_TABLE)
search_index = both(FakeSearchIndex, DynamoDBSearchIndex, aws.SCHEDULE_TABLE)
past_search_store = both(FakePastSearches, DynamoDBPastSearches, aws.SCHEDULE_TABLE)
pull_store = both(FakePullStore, DynamoDBPullStore, aws.PULL_TABLE)


@dataclass
class PullEnvironments:
    """Environments that share a table of pull queues.

    Attributes:
        start: Starts one; after that number of calls to the table it is killed, in the middle of the last one. None
            lets it live.
    """

    start: Callable[[int | None], PullStore]


@pytest.fixture(params=["fake", "dynamodb"])
def pull_environments(request: pytest.FixtureRequest, clock: FakeClock) -> Iterator[PullEnvironments]:
    if request.param == "fake":
        store = FakePullStore()
        yield PullEnvironments(lambda calls: cast(PullStore, Mortal(store, calls)))
        return
    with aws.dynamodb() as client:
        yield PullEnvironments(
            lambda calls: DynamoDBPullStore(cast(Any, Mortal(client, calls)), aws.PULL_TABLE, clock, threads=1)
        )


@pytest.fixture(params=["fake", "s3"])
def body_store(request: pytest.FixtureRequest) -> Iterator[BodyStore]:
    if request.param == "fake":
        yield FakeBodyStore()
        return
    with aws.s3() as client:
        yield S3BodyStore(client, aws.BUCKET)
