"""Lists of a project's own things: an item in them that nobody can read is named and left out, and hides no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from tests.cloud import aws_services as aws
from tests.contract.filled import filled
from tests.contract.notification_samples import TOPIC, a_backlog, a_connection, a_subscription
from tests.contract.samples import NOW, PROJECT, first, message, queue
from tests.fakes import FakeClock
from tests.fakes.credentials import credentials
from tests.fakes.telemetry import FakeTelemetry
from tests.notifications.store import aws_notifications

from pushhub.base.verdict import Verdict
from pushhub.cloud import observability
from pushhub.cloud.table import Item, Table, text
from pushhub.engine.model.catalogue import DAY_MS, Accepted, chunks_of
from pushhub.engine.model.circuit import Health, SubscriberKey
from pushhub.engine.model.flow import FlowKey
from pushhub.engine.model.search import IndexEntry
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.store.dynamodb_catalogue import DynamoDBCatalogue
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore
from pushhub.engine.store.dynamodb_messages import DynamoDBMessageStore
from pushhub.engine.store.dynamodb_schedule import DynamoDBSchedule
from pushhub.engine.store.dynamodb_search import DynamoDBSearchIndex
from pushhub.engine.store.dynamodb_subscribers import DynamoDBSubscribers
from pushhub.hub.model.integration import Integration
from pushhub.hub.model.log import LoggedMessage
from pushhub.hub.model.mapping import ServiceMapping
from pushhub.hub.model.notice import Notice
from pushhub.hub.model.parameters import Parameter
from pushhub.hub.model.schedule import Scheduler
from pushhub.hub.store.dynamodb_log import DynamoDBHubLog
from pushhub.hub.store.dynamodb_settings import DynamoDBHubSettings
from pushhub.ironmq.store.dynamodb_pull import DynamoDBPullStore
from pushhub.notifications.store.dynamodb_backlogs import DynamoDBBacklogStore, DynamoDBConnectionStore
from pushhub.notifications.store.dynamodb_subscriptions import DynamoDBSubscriptionStore
from pushhub.webhooks.model.application import Application
from pushhub.webhooks.model.attempt import LoggedAttempt
from pushhub.webhooks.model.connector import Connector, ConnectorFields
from pushhub.webhooks.model.endpoint import Endpoint, EndpointFields
from pushhub.webhooks.model.event_type import EventType
from pushhub.webhooks.model.ids import IdPrefix, new_id
from pushhub.webhooks.model.integration import AppIntegration
from pushhub.webhooks.model.message import ListedMessage
from pushhub.webhooks.model.page import KeyRange
from pushhub.webhooks.model.portal import PortalAccess
from pushhub.webhooks.model.task import Task, TaskStatus
from pushhub.webhooks.store.dynamodb_connectors import DynamoDBConnectors
from pushhub.webhooks.store.dynamodb_integrations import DynamoDBAppIntegrations
from pushhub.webhooks.store.dynamodb_logs import DynamoDBWebhooksLogs
from pushhub.webhooks.store.dynamodb_portal import DynamoDBPortalTokens
from pushhub.webhooks.store.dynamodb_settings import DynamoDBWebhooksSettings
from pushhub.webhooks.store.dynamodb_tasks import DynamoDBTasks

INDEXED = frozenset(
    {"pk", "sk", "list_key", "list_place", "unsettled_queue", "unsettled_key", "idle_shard", "check_at", "kind"}
)
"""Attributes that the items of a list are found by."""

CLOCK = FakeClock()
APP, ENDPOINT = new_id(IdPrefix.APPLICATION, NOW), new_id(IdPrefix.ENDPOINT, NOW)
KEY = SubscriberKey(project=PROJECT, queue="q", queue_uid="u", subscriber_id="s")
FLOW = FlowKey(PROJECT, "u")
DAY = NOW // DAY_MS

Read = Callable[[], Sequence[object]]


@pytest.fixture
def telemetry(monkeypatch: pytest.MonkeyPatch) -> FakeTelemetry:
    fake = FakeTelemetry()
    monkeypatch.setattr(observability, "telemetry", fake)
    return fake


def hub_settings(client: Any) -> Iterator[Read]:
    settings = DynamoDBHubSettings(client, aws.HUB_TABLE, CLOCK, credentials())
    settings.put_mapping(PROJECT, filled(ServiceMapping, mapping_id="5" * 24, version=0, credentials=b""))
    settings.put_integration(PROJECT, filled(Integration, integration_id="6" * 24, version=0, credentials=b""))
    settings.put_scheduler(filled(Scheduler, project=PROJECT, scheduler_id="7" * 24, version=0))
    settings.set_parameter(filled(Parameter, project=PROJECT))
    yield lambda: settings.mappings(PROJECT)
    yield lambda: settings.integrations(PROJECT)
    yield lambda: settings.schedulers(PROJECT)
    yield lambda: settings.parameters(PROJECT)


def hub_log(client: Any) -> Iterator[Read]:
    log = DynamoDBHubLog(client, aws.HUB_TABLE, CLOCK)
    entry = filled(LoggedMessage, project=PROJECT, message_id="5" * 18)
    log.put(entry)
    log.count_notification(filled(Notice, project=PROJECT, message_id="5" * 18))
    yield lambda: log.listed(PROJECT, [entry.listing], before=None, after=None, limit=10)
    yield lambda: [*log.notifications(PROJECT)]
    yield lambda: log.notifications_of(PROJECT, "5" * 18)


def webhooks_settings(client: Any) -> Iterator[Read]:
    settings = DynamoDBWebhooksSettings(client, aws.WEBHOOKS_TABLE, CLOCK, credentials())
    app = filled(Application, project=PROJECT, app_id=APP, version=0, endpoints=0, source=None)
    settings.put_application(app, None)
    fields = filled(EndpointFields, disabled=True)
    nothing = dict.fromkeys(("sealed", "scheme_secrets", "oauth", "identity", "credentials", "transformation"), b"")
    place = {"project": PROJECT, "app_id": APP, "endpoint_id": ENDPOINT}
    settings.put_endpoint(filled(Endpoint, **place, **nothing, version=0, fields=fields, deleted=False), None)
    settings.put_event_type(filled(EventType, project=PROJECT, version=0))
    yield lambda: [*settings.applications(PROJECT, KeyRange())]
    yield lambda: [*settings.endpoints(PROJECT, APP, KeyRange())]
    yield lambda: [*settings.event_types(PROJECT, KeyRange())]


def webhooks_others(client: Any) -> Iterator[Read]:
    connectors = DynamoDBConnectors(client, aws.WEBHOOKS_TABLE, CLOCK)
    connector_id = new_id(IdPrefix.CONNECTOR, NOW)
    fields = filled(ConnectorFields, uid=None)
    connectors.put_connector(filled(Connector, project=PROJECT, connector_id=connector_id, version=0, fields=fields))
    integrations = DynamoDBAppIntegrations(client, aws.WEBHOOKS_TABLE, CLOCK)
    integration_id = new_id(IdPrefix.INTEGRATION, NOW)
    integrations.put_integration(filled(AppIntegration, project=PROJECT, app_id=APP, integration_id=integration_id))
    tokens = DynamoDBPortalTokens(client, aws.WEBHOOKS_TABLE, CLOCK)
    tokens.put_access(filled(PortalAccess, project=PROJECT, app_id=APP))
    tasks = DynamoDBTasks(client, aws.WEBHOOKS_TABLE, CLOCK)
    task = filled(Task, project=PROJECT, task_id=new_id(IdPrefix.TASK, NOW), version=0, status=TaskStatus.RUNNING)
    tasks.put_task(task)
    yield lambda: [*connectors.connectors(PROJECT, KeyRange())]
    yield lambda: [*integrations.integrations(PROJECT, APP, KeyRange())]
    yield lambda: [*tokens.accesses(PROJECT, APP)]
    yield lambda: [*tasks.tasks(PROJECT, KeyRange())]


def webhooks_logs(client: Any) -> Iterator[Read]:
    logs = DynamoDBWebhooksLogs(client, aws.WEBHOOKS_TABLE, CLOCK)
    logs.list_message(filled(ListedMessage, project=PROJECT, app_id=APP, engine_id="5" * 18, expunged=False))
    logs.log_attempts([filled(LoggedAttempt, project=PROJECT, app_id=APP, endpoint_id=ENDPOINT, started_at=NOW)])
    yield lambda: [*logs.messages(PROJECT, APP, KeyRange())]
    yield lambda: [*logs.attempts(PROJECT, ENDPOINT, KeyRange())]


def subscribers(client: Any) -> Iterator[Read]:
    store, of = DynamoDBSubscribers(client, aws.SCHEDULE_TABLE, CLOCK), message(queue_uid="u")
    order = WorkOrder(key=of.delivery_key("s"), queue="q")
    store.add_to_backlog(FLOW, [order], NOW)
    store.add(KEY, order, NOW)
    store.save(filled(Health, key=KEY, version=1))
    yield lambda: store.backlog(FLOW, 10)
    yield lambda: store.waiting(KEY, 8)
    yield lambda: [*store.healths_of(PROJECT)]


def deliveries(client: Any) -> Iterator[Read]:
    schedule = DynamoDBSchedule(client, aws.SCHEDULE_TABLE, CLOCK)
    store = DynamoDBMessageStore(client, aws.MESSAGES_TABLE, CLOCK, lambda: schedule)
    of = message()
    store.accept([of])
    store.save(first(of, Verdict.FAILED))
    yield lambda: store.unsettled(PROJECT, of.queue_uid, limit=10)[0]
    yield lambda: [*store.outstanding(0, 1)]


def found(client: Any) -> Iterator[Read]:
    catalogue = DynamoDBCatalogue(client, aws.SCHEDULE_TABLE, CLOCK)
    accepted = [
        Accepted(
            project=PROJECT,
            queue="q",
            queue_uid="u",
            message_id=f"{10**18 + each}",
            accepted_at=NOW,
            body=b'{"id": "order-1"}',
        )
        for each in range(3)
    ]
    catalogue.add([*chunks_of(accepted, "a-1")])
    index = DynamoDBSearchIndex(client, aws.SCHEDULE_TABLE, CLOCK)
    index.add([filled(IndexEntry, project=PROJECT, value="v")])
    yield lambda: catalogue.days(PROJECT)
    yield lambda: [*catalogue.listed(PROJECT, DAY)]
    yield lambda: [*catalogue.with_value(PROJECT, catalogue.days(PROJECT)[0], "order-1")]
    yield lambda: index.find(PROJECT, "v", 10)[0]


def tokens(client: Any) -> Iterator[Read]:
    config = DynamoDBConfigStore(client, aws.CONFIG_TABLE, CLOCK)
    config.put_token(PROJECT, "a" * 64, "mine", NOW)
    for name in ("a", "b"):
        config.create_queue(queue(name))
    yield lambda: config.tokens(PROJECT)
    yield lambda: config.whole_queues(PROJECT, prefix="", after="", limit=2)
    yield lambda: config.whole_queues(PROJECT, prefix="", after="a", limit=1)


def pulled(client: Any) -> Iterator[Read]:
    store = DynamoDBPullStore(client, aws.PULL_TABLE, CLOCK)
    store.put([message(queue_uid="line") for _ in range(3)])
    yield lambda: store.peek(PROJECT, "line", count=10, now=NOW)


def notifications(client: Any) -> Iterator[Read]:
    backlogs = DynamoDBBacklogStore(client, aws_notifications.BACKLOGS_TABLE, CLOCK)
    backlogs.save(a_backlog())
    rules = DynamoDBSubscriptionStore(client, aws_notifications.BACKLOGS_TABLE, CLOCK)
    rules.create(a_subscription())
    connections = DynamoDBConnectionStore(client, aws_notifications.BACKLOGS_TABLE, CLOCK)
    connections.open(a_connection(), check_at=1)
    yield lambda: backlogs.backlogs(TOPIC)
    yield lambda: rules.subscriptions(TOPIC.project)
    yield lambda: [*connections.everyone()]


LISTS: dict[str, tuple[str, Callable[[Any], Iterator[Read]]]] = {
    each.__name__: (table, each)
    for table, each in (
        (aws.HUB_TABLE, hub_settings),
        (aws.HUB_TABLE, hub_log),
        (aws.WEBHOOKS_TABLE, webhooks_settings),
        (aws.WEBHOOKS_TABLE, webhooks_others),
        (aws.WEBHOOKS_TABLE, webhooks_logs),
        (aws.SCHEDULE_TABLE, subscribers),
        (aws.MESSAGES_TABLE, deliveries),
        (aws.SCHEDULE_TABLE, found),
        (aws.CONFIG_TABLE, tokens),
        (aws.PULL_TABLE, pulled),
        (aws_notifications.BACKLOGS_TABLE, notifications),
    )
}


@pytest.fixture
def client(request: pytest.FixtureRequest) -> Iterator[Any]:
    module = aws_notifications if request.node.callspec.params["name"] == "notifications" else aws
    with module.dynamodb() as tables:
        yield tables


@pytest.mark.parametrize("name", LISTS)
def test_each_list_is_read_past_items_that_nobody_can_read(name: str, client: Any, telemetry: FakeTelemetry) -> None:
    # Given lists with something in each
    table, fill = LISTS[name]
    reads = [*fill(client)]
    before = [read() for read in reads]
    assert all(before)
    # When beside each item there is another one that has nothing but what it is found by
    raw = Table(client, table, CLOCK)
    for item in [*raw.scan()]:
        raw.put(twin(item))
    # Then each list is as it was
    for number, (read, was) in enumerate(zip(reads, before, strict=True)):
        telemetry.counts.clear()
        assert [*read()] == [*was], number
        # And what it left out is named
        assert telemetry.counts["ItemsUnreadable"] >= 1, number


def twin(item: Item) -> Item:
    """An item beside another one in its lists, which cannot be read."""
    found = {name: value for name, value in item.items() if name in INDEXED}
    for name in ("sk", "list_place", "unsettled_key"):
        if name in found:
            found[name] = text(found[name]["S"] + "~")
    # A parameter without a value is one that was deleted.
    return found | ({"sealed": {"B": b"x"}} if "sealed" in item else {})
