"""What :class:`pushhub.webhooks.applications.portal.PortalTokens` and
:class:`pushhub.webhooks.resending.tasks.TaskStore` promise, of the fakes and of DynamoDB.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.cloud import aws_services as aws
from tests.contract.both import both
from tests.contract.filled import filled
from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT
from tests.fakes import FakeClock
from tests.fakes.webhook_tasks import (
    FakeAppIntegrations,
    FakeAutoconfigs,
    FakeConnectors,
    FakeOperationalCounts,
    FakePortalFrames,
    FakePortalTokens,
    FakeTasks,
)
from tests.fakes.webhooks import FakeConsumers, FakeReaders

from pushhub.base.errors import Conflict
from pushhub.engine.model.reach import Reach
from pushhub.webhooks.applications.connectors import ConnectorStore
from pushhub.webhooks.applications.integrations import AppIntegrationStore
from pushhub.webhooks.applications.portal import PortalFrames, PortalTokens
from pushhub.webhooks.endpoints.autoconfigs import AutoconfigStore
from pushhub.webhooks.messages.consumers import ConsumerStore
from pushhub.webhooks.model.autoconfig import Autoconfig
from pushhub.webhooks.model.connector import Connector, ConnectorFields
from pushhub.webhooks.model.consumer import PollingConsumer
from pushhub.webhooks.model.endpoint import Endpoint, EndpointFields
from pushhub.webhooks.model.ids import IdPrefix, new_id
from pushhub.webhooks.model.integration import AppIntegration, AppIntegrationFields
from pushhub.webhooks.model.page import KeyRange
from pushhub.webhooks.model.portal import Capability, PortalAccess
from pushhub.webhooks.model.portal_frame import PortalFrame
from pushhub.webhooks.model.reading import Reader
from pushhub.webhooks.model.task import Task, TaskStatus
from pushhub.webhooks.operational.operational import OperationalCounts
from pushhub.webhooks.ports import UidTaken
from pushhub.webhooks.resending.tasks import TaskStore
from pushhub.webhooks.store.dynamodb_autoconfigs import DynamoDBAutoconfigs
from pushhub.webhooks.store.dynamodb_connectors import DynamoDBConnectors
from pushhub.webhooks.store.dynamodb_consumers import DynamoDBConsumers
from pushhub.webhooks.store.dynamodb_integrations import DynamoDBAppIntegrations
from pushhub.webhooks.store.dynamodb_portal import DynamoDBPortalTokens
from pushhub.webhooks.store.dynamodb_portal_frames import DynamoDBPortalFrames
from pushhub.webhooks.store.dynamodb_readers import DynamoDBReaders
from pushhub.webhooks.store.dynamodb_tasks import DynamoDBOperationalCounts, DynamoDBTasks
from pushhub.webhooks.streams.reading import Readers

APP = new_id(IdPrefix.APPLICATION, NOW)
A_SINK = Endpoint(
    project=PROJECT,
    app_id=APP,
    endpoint_id="",
    fields=EndpointFields(url="s3://eu-west-1/000000000000/orders"),
    reach=Reach.PROJECT,
    created_at=NOW,
    updated_at=NOW,
)


@pytest.fixture(params=["fake", "dynamodb"])
def stores(request: pytest.FixtureRequest) -> Iterator[tuple[PortalTokens, TaskStore, OperationalCounts]]:
    if request.param == "fake":
        yield FakePortalTokens(), FakeTasks(), FakeOperationalCounts()
        return
    with aws.dynamodb() as client:
        arguments = client, aws.WEBHOOKS_TABLE, FakeClock()
        yield DynamoDBPortalTokens(*arguments), DynamoDBTasks(*arguments), DynamoDBOperationalCounts(*arguments)


@pytest.fixture
def tokens(stores: tuple[PortalTokens, TaskStore, OperationalCounts]) -> PortalTokens:
    return stores[0]


@pytest.fixture
def tasks(stores: tuple[PortalTokens, TaskStore, OperationalCounts]) -> TaskStore:
    return stores[1]


def access(digest: str = "d1", **changes: object) -> PortalAccess:
    return filled(PortalAccess, **{"project": PROJECT, "app_id": APP, "digest": digest, **changes})


def task(at: int = NOW, **changes: object) -> Task:
    begun = {"task_id": new_id(IdPrefix.TASK, at), "status": TaskStatus.RUNNING, "version": 0}
    return filled(Task, **{"project": PROJECT, "app_id": APP, **begun, **changes})


def test_a_token_is_kept_whole_listed_and_removed(tokens: PortalTokens) -> None:
    kept = [access(), access("d2", session=None, flags=frozenset(), capabilities=frozenset({Capability.VIEW_BASE}))]
    for each in (*kept, access(project=OTHER_PROJECT), access(app_id=new_id(IdPrefix.APPLICATION, NOW))):
        tokens.put_access(each)
    assert tokens.access(PROJECT, APP, "d1") == kept[0]
    assert sorted(tokens.accesses(PROJECT, APP), key=lambda each: each.digest) == kept
    tokens.remove_accesses([kept[0], access("never")])
    assert tokens.access(PROJECT, APP, "d1") is None
    assert list(tokens.accesses(PROJECT, APP)) == [kept[1]]


def test_a_token_that_was_taken_back_does_not_come_back_by_being_shortened(tokens: PortalTokens) -> None:
    tokens.put_access(access())
    tokens.change_access(access(expires_at=NOW + 1))
    tokens.change_access(access())
    assert tokens.access(PROJECT, APP, "d1") == access(expires_at=NOW + 1)
    tokens.remove_accesses([access()])
    tokens.change_access(access())
    assert tokens.access(PROJECT, APP, "d1") is None


integration_store = both(FakeAppIntegrations, DynamoDBAppIntegrations, aws.WEBHOOKS_TABLE)


def integration(at: int = NOW, **changes: object) -> AppIntegration:
    fields = AppIntegrationFields(name="Order desk", flags=("beta", "b"))
    created = AppIntegration(
        project=PROJECT,
        app_id=APP,
        integration_id=new_id(IdPrefix.INTEGRATION, at),
        fields=fields,
        created_at=at,
        updated_at=at + 1,
    )
    return replace(created, **changes)  # type: ignore[arg-type]


def test_an_integration_is_kept_whole_listed_changed_and_deleted(integration_store: AppIntegrationStore) -> None:
    store, kept = integration_store, [integration(NOW + 1_000 * each) for each in range(3)]
    for each in (*kept, integration(project=OTHER_PROJECT), integration(app_id=new_id(IdPrefix.APPLICATION, NOW))):
        store.put_integration(each)
    assert store.integration(PROJECT, APP, kept[0].integration_id) == kept[0]
    assert list(store.integrations(PROJECT, APP, KeyRange())) == kept
    assert list(store.integrations(PROJECT, APP, KeyRange(above=kept[0].integration_id, up=False))) == kept[:0:-1]
    assert list(store.integrations(PROJECT, APP, KeyRange(above="x", below="a"))) == []
    other = replace(kept[1], fields=AppIntegrationFields(name="Two"), updated_at=NOW + 9)
    assert store.change_integration(other)
    assert store.integration(PROJECT, APP, other.integration_id) == other
    # One that is gone stays gone
    store.delete_integration(other)
    assert not store.change_integration(other)
    assert store.integration(PROJECT, APP, other.integration_id) is None


connector_store = both(FakeConnectors, DynamoDBConnectors, aws.WEBHOOKS_TABLE)


def connector(at: int = NOW, uid: str | None = None, project: str = PROJECT) -> Connector:
    own = {"connector_id": new_id(IdPrefix.CONNECTOR, at), "fields": filled(ConnectorFields, uid=uid), "version": 0}
    return filled(Connector, project=project, **own)


def test_a_connector_is_kept_whole_listed_changed_and_deleted(connector_store: ConnectorStore) -> None:
    store = connector_store
    first, second = (store.put_connector(connector(NOW + 1_000 * each)) for each in range(2))
    store.put_connector(connector(project=OTHER_PROJECT))
    assert (first.version, store.connector(PROJECT, first.connector_id)) == (1, first)
    assert list(store.connectors(PROJECT, KeyRange())) == [first, second]
    assert list(store.connectors(PROJECT, KeyRange(above=first.connector_id, up=False))) == [second]
    assert list(store.connectors(PROJECT, KeyRange(above="x", below="a"))) == []
    changed = store.put_connector(replace(first, fields=replace(first.fields, name="Two"), updated_at=NOW + 9))
    assert store.connector(PROJECT, first.connector_id) == changed
    # What has changed meanwhile is not overwritten, and one that is gone stays gone
    with pytest.raises(Conflict):
        store.put_connector(first)
    store.delete_connector(changed)
    store.delete_connector(changed)
    with pytest.raises(Conflict):
        store.put_connector(changed)
    assert store.connector(PROJECT, first.connector_id) is None


def test_a_connectors_uid_is_its_own_until_it_is_deleted(connector_store: ConnectorStore) -> None:
    store = connector_store
    first = store.put_connector(connector(uid="chat"))
    assert store.connector(PROJECT, "chat") == first
    with pytest.raises(UidTaken):
        store.put_connector(connector(NOW + 1_000, uid="chat"))
    store.put_connector(connector(uid="chat", project=OTHER_PROJECT))
    changed = store.put_connector(replace(first, updated_at=NOW + 9))
    assert store.connector(PROJECT, "chat") == changed
    store.delete_connector(changed)
    assert store.connector(PROJECT, "chat") is None
    second = store.put_connector(connector(NOW + 1_000, uid="chat"))
    # Whoever deletes the first again takes nothing from the second
    store.delete_connector(changed)
    assert store.connector(PROJECT, "chat") == second


autoconfig_store = both(FakeAutoconfigs, DynamoDBAutoconfigs, aws.WEBHOOKS_TABLE)


def test_an_autoconfiguration_is_kept_whole_and_deleted(autoconfig_store: AutoconfigStore) -> None:
    store, named = autoconfig_store, new_id(IdPrefix.AUTOCONFIG, NOW)
    first = Autoconfig(project=PROJECT, app_id=APP, autoconfig_id=named, created_at=NOW)
    bound = replace(first, endpoint_id="ep_x")
    for each in (first, replace(first, project=OTHER_PROJECT)):
        store.put_autoconfig(each)
    assert store.change_autoconfig(first, bound)
    assert store.autoconfig(PROJECT, APP, named) == bound
    # Not one that somebody else has changed, or deleted
    assert not store.change_autoconfig(first, replace(bound, begun_id="ep_"))
    assert store.autoconfig(PROJECT, APP, named) == bound
    store.delete_autoconfig(first)
    store.delete_autoconfig(first)
    # What is deleted does not come back
    assert not store.change_autoconfig(bound, bound)
    assert store.autoconfig(PROJECT, APP, named) is None
    assert store.autoconfig(OTHER_PROJECT, APP, named) is not None


consumer_store = both(FakeConsumers, DynamoDBConsumers, aws.WEBHOOKS_TABLE)


def test_a_consumer_is_changed_by_one_at_a_time(consumer_store: ConsumerStore) -> None:
    store, endpoint = consumer_store, replace(A_SINK, endpoint_id=new_id(IdPrefix.ENDPOINT, NOW))
    assert store.consumer(endpoint, "c") is None
    first = store.put_consumer(endpoint, "c", PollingConsumer(position="1"))
    leased = store.put_consumer(endpoint, "c", first.leased(("2", "3"), NOW))
    assert store.consumer(endpoint, "c") == leased
    with pytest.raises(Conflict):
        store.put_consumer(endpoint, "c", first.moved("9"))
    with pytest.raises(Conflict):
        # (who asks in the same millisecond would be given the same)
        store.put_consumer(endpoint, "c", first.leased(("2", "3"), NOW))
    assert store.consumer(endpoint, "c") == leased
    assert store.consumer(endpoint, "d") is None
    assert store.consumer(replace(endpoint, project=OTHER_PROJECT), "c") is None


reader_store = both(FakeReaders, DynamoDBReaders, aws.WEBHOOKS_TABLE)


def test_where_a_sink_is_is_changed_by_one_at_a_time(reader_store: Readers) -> None:
    store, sink = reader_store, replace(A_SINK, endpoint_id=new_id(IdPrefix.ENDPOINT, NOW))
    assert store.reader(sink) is None
    first = store.put_reader(sink, Reader(position="1"))
    begun = store.put_reader(sink, first.begun("2", NOW))
    assert store.reader(sink) == begun
    assert (begun.planned, begun.version) == ("2", 2)
    with pytest.raises(Conflict):
        store.put_reader(sink, first.failed("no", NOW))
    with pytest.raises(Conflict):
        # (who begins in the same millisecond would write the same batch)
        store.put_reader(sink, first.begun("2", NOW))
    assert store.reader(sink) == begun
    assert store.reader(replace(sink, project=OTHER_PROJECT)) is None


def test_a_task_is_kept_whole_and_changed_by_one_at_a_time(tasks: TaskStore) -> None:
    begun = tasks.put_task(task())
    assert begun.version == 1
    assert tasks.task(PROJECT, begun.task_id) == begun
    assert tasks.task(OTHER_PROJECT, begun.task_id) is None
    changed = tasks.put_task(replace(begun, sent=9))
    with pytest.raises(Conflict):
        tasks.put_task(replace(begun, sent=10))
    with pytest.raises(Conflict):
        tasks.put_task(replace(begun, version=0))
    assert tasks.task(PROJECT, begun.task_id) == changed


def test_tasks_are_listed_in_a_span_both_ways(tasks: TaskStore) -> None:
    created = [tasks.put_task(task(NOW + 4 * number)) for number in range(5)]
    tasks.put_task(task(project=OTHER_PROJECT))
    assert list(tasks.tasks(PROJECT, KeyRange())) == created
    assert list(tasks.tasks(PROJECT, KeyRange(up=False))) == created[::-1]
    between = KeyRange(above=created[0].task_id, below=created[3].task_id)
    assert list(tasks.tasks(PROJECT, between)) == created[1:3]
    assert list(tasks.tasks(PROJECT, KeyRange(above=created[3].task_id, below=created[0].task_id))) == []


def test_those_that_run_are_found_by_project_until_they_end(tasks: TaskStore) -> None:
    first, third = tasks.put_task(task()), tasks.put_task(task(NOW + 8))
    second = tasks.put_task(task(NOW + 4, project=OTHER_PROJECT))
    assert sorted(tasks.projects_with_tasks()) == sorted((PROJECT, OTHER_PROJECT))
    assert list(tasks.running_tasks(PROJECT)) == [first, third]
    assert list(tasks.running_tasks(OTHER_PROJECT)) == [second]
    for each in (first, third):
        tasks.put_task(each.ended(TaskStatus.FINISHED, NOW))
    assert list(tasks.running_tasks(PROJECT)) == []
    assert list(tasks.projects_with_tasks()) == [OTHER_PROJECT]


def test_one_at_a_time_has_a_projects_turn_until_it_gives_it_back_or_it_is_over(tasks: TaskStore) -> None:
    assert not tasks.has_turn(PROJECT, now=NOW)
    assert tasks.take_turn(PROJECT, now=NOW, until=NOW + 100)
    assert tasks.has_turn(PROJECT, now=NOW + 99)
    assert not tasks.has_turn(PROJECT, now=NOW + 100)
    assert not tasks.has_turn(OTHER_PROJECT, now=NOW)
    assert not tasks.take_turn(PROJECT, now=NOW + 99, until=NOW + 200)
    assert tasks.take_turn(OTHER_PROJECT, now=NOW, until=NOW + 100)
    # When it is over, then another one has it, and keeps it
    assert tasks.take_turn(PROJECT, now=NOW + 100, until=NOW + 300)
    tasks.give_turn_back(PROJECT, NOW + 100)
    assert not tasks.take_turn(PROJECT, now=NOW + 101, until=NOW + 400)
    tasks.give_turn_back(PROJECT, NOW + 300)
    assert tasks.take_turn(PROJECT, now=NOW + 102, until=NOW + 400)
    tasks.give_turn_back(PROJECT, 0)
    tasks.give_turn_back(OTHER_PROJECT, NOW + 100)
    tasks.give_turn_back(OTHER_PROJECT, NOW + 100)


def test_what_is_told_is_counted_by_project_kind_and_minute(
    stores: tuple[PortalTokens, TaskStore, OperationalCounts],
) -> None:
    counts = stores[2]
    assert [counts.count(PROJECT, "a", 1) for _ in range(3)] == [1, 2, 3]
    assert [counts.count(*each) for each in ((PROJECT, "a", 2), (PROJECT, "b", 1), (OTHER_PROJECT, "a", 1))] == [1] * 3


frames = both(FakePortalFrames, DynamoDBPortalFrames, aws.WEBHOOKS_TABLE)


def test_a_frame_is_kept_replaced_and_removed(frames: PortalFrames) -> None:
    project, app = PortalFrame(project=PROJECT), PortalFrame(project=PROJECT, app_id="app_1")
    frames.put_frame(replace(project, origins=("https://a.example",)))
    assert frames.frame(app) == app
    frames.put_frame(replace(app, origins=("https://b.example", "https://c.example")))
    assert frames.frame(app).origins == ("https://b.example", "https://c.example")
    assert frames.frame(project).origins == ("https://a.example",)
    frames.put_frame(app)
    frames.put_frame(app)
    assert frames.frame(app) == app
    assert frames.frame(project).origins == ("https://a.example",)
