"""No stored value loses a field: each is made from its types alone, written, read, and compared.

A setting whose line is missing in an encoder or a decoder would be accepted, shown, and gone with the next read.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest
from tests.contract.filled import FIXED, Filler, alternatives, hints, is_record, reachable
from tests.fakes.credentials import credentials

import pushhub
from pushhub.cloud.table import Item, number, text
from pushhub.engine.model.catalogue import Seen
from pushhub.engine.model.circuit import Health
from pushhub.engine.model.delivery import Delivery
from pushhub.engine.model.flow import Terms
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.message import Message
from pushhub.engine.model.project import Project
from pushhub.engine.model.queue import Queue
from pushhub.engine.model.schedule import Position
from pushhub.engine.model.search import IndexEntry
from pushhub.engine.model.span_export import SpanExport
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.store import (
    _delivery_items,
    _message_items,
    _project_items,
    _queue_items,
    dynamodb_catalogue,
    dynamodb_schedule,
    dynamodb_search,
    dynamodb_subscribers,
)
from pushhub.hub.model.integration import Integration
from pushhub.hub.model.log import HubState, Location, LoggedMessage, OpenRequest, RecordedAnswer
from pushhub.hub.model.mapping import ServiceMapping
from pushhub.hub.model.notice import Notice
from pushhub.hub.model.parameters import Parameter
from pushhub.hub.model.schedule import Scheduler
from pushhub.hub.store import _items as hub_items
from pushhub.hub.store import dynamodb_schedulers
from pushhub.ironmq.model.alert_level import AlertLevels
from pushhub.ironmq.model.project_alert import ProjectAlert
from pushhub.ironmq.ports import PullMessage
from pushhub.ironmq.store import _pull_items, dynamodb_alert_levels, dynamodb_alerts
from pushhub.notifications.model.backlog import Backlog
from pushhub.notifications.model.request import PublishRequest
from pushhub.notifications.model.subscription import Subscription
from pushhub.notifications.model.topic import Commit
from pushhub.notifications.ports import Connection, WakeUp
from pushhub.notifications.store import _items as notification_items
from pushhub.notifications.store import sqs_wakes
from pushhub.webhooks.model.application import Application
from pushhub.webhooks.model.autoconfig import Autoconfig
from pushhub.webhooks.model.connector import Connector
from pushhub.webhooks.model.consumer import PollingConsumer
from pushhub.webhooks.model.endpoint import Endpoint
from pushhub.webhooks.model.event_type import EventType
from pushhub.webhooks.model.integration import AppIntegration
from pushhub.webhooks.model.portal import PortalAccess
from pushhub.webhooks.model.reading import Reader
from pushhub.webhooks.model.task import Task
from pushhub.webhooks.store import _items as webhooks_items
from pushhub.webhooks.store import (
    dynamodb_autoconfigs,
    dynamodb_connectors,
    dynamodb_consumers,
    dynamodb_integrations,
    dynamodb_portal,
    dynamodb_readers,
    dynamodb_tasks,
)

SEEDS = range(40)
"""Enough for each alternative of a union, and each member of an enumeration, to occur."""


def _webhooks(pk: str, sk: str, item: Item) -> Item:
    return webhooks_items.key(pk, sk) | item


def _delivery(value: Delivery) -> Delivery:
    return _delivery_items.decode_delivery(_delivery_items.encode_delivery(value))


def _message(value: Message) -> Message:
    names = {"project": value.project, "queue_uid": value.queue_uid, "message_id": value.message_id}
    return _message_items.decode_fields(_message_items.encode_fields(value), **names)


def _pull_message(value: PullMessage) -> PullMessage:
    """A reservation is written by updates of single attributes, which the pull store's own contract covers."""
    item = _pull_items.encode_pull_item(value.message, place="0#1", reserved_count=value.reserved_count + value.unseen)
    item |= {
        "unseen": number(value.unseen),
        "reservation_id": text(value.reservation_id or ""),
        "reserved_until": number(value.reserved_until),
    }
    return _pull_items.decode_pull_message(item)


def _application(value: Application) -> Application:
    item = webhooks_items.encode_application(value)
    item |= {"version": number(value.version), "endpoints": number(value.endpoints)}
    return webhooks_items.decode_application(_webhooks(f"P#{value.project}", f"APP#{value.app_id}", item))


def _endpoint(value: Endpoint) -> Endpoint:
    pk = webhooks_items.app_pk(value.project, value.app_id)
    item = webhooks_items.encode_endpoint(value)
    return webhooks_items.decode_endpoint(_webhooks(pk, f"EP#{value.endpoint_id}", item))


def _event_type(value: EventType) -> EventType:
    item = webhooks_items.encode_event_type(value)
    return webhooks_items.decode_event_type(_webhooks(f"P#{value.project}", f"TYPE#{value.name}", item))


def _entry(value: LoggedMessage) -> LoggedMessage:
    item = hub_items.encode_entry(value) | {"children": {"L": [text(each) for each in value.children]}}
    return hub_items.decode_entry(hub_items.log_key(value.project, value.message_id, "M") | item)


def _notice(value: Notice) -> Notice:
    key = hub_items.log_key(value.project, value.message_id, "N")
    return hub_items.decode_notification(key | hub_items.encode_notification(value))


def _connection(value: Connection) -> Connection:
    """Acknowledgements and marks are written by updates of single attributes."""
    item = notification_items.encode_connection(value)
    item["acknowledged"] = {"NS": [str(each) for each in value.acknowledged]}
    item |= {name: {"BOOL": True} for name in ("stalled", "leaving") if getattr(value, name)}
    return notification_items.decode_connection(item)


def _parameter(value: Parameter) -> Parameter:
    sealing = credentials()
    return hub_items.decode_parameter(hub_items.encode_parameter(value, sealing), value.project, sealing)


def _health(value: Health) -> Health:
    return dynamodb_subscribers._decode_health(dynamodb_subscribers._encode_health(value), value.key)


ROUND_TRIPS: dict[type, Callable[[Any], Any]] = {
    Queue: lambda value: _queue_items.decode_queue(_queue_items.encode_queue(value), value.project, value.name),
    Project: lambda value: _project_items.decode_project(_project_items.encode_project(value), value.project_id),
    SpanExport: lambda value: _project_items.decode_span_export(
        _project_items.encode_span_export(value), value.project
    ),
    Message: _message,
    Delivery: _delivery,
    PullMessage: _pull_message,
    Health: _health,
    AlertLevels: lambda value: dynamodb_alert_levels.decode(dynamodb_alert_levels.encode(value)),
    ProjectAlert: lambda value: dynamodb_alerts._decode(dynamodb_alerts._encode(value)),
    Terms: lambda value: dynamodb_subscribers._decode_terms(dynamodb_subscribers._encode_terms(value)),
    IndexEntry: lambda value: dynamodb_search._decode(dynamodb_search._encode(value), value.project, value.value),
    Seen: lambda value: dynamodb_catalogue.decode_seen(dynamodb_catalogue.encode_seen([value]))[0],
    Position: lambda value: dynamodb_schedule._decode_position(dynamodb_schedule._encode_position(value)),
    WorkOrder: lambda value: WorkOrder.decode(value.encode()),
    ServiceMapping: lambda value: hub_items.decode_mapping(hub_items.encode_mapping(value)),
    Integration: lambda value: hub_items.decode_integration(hub_items.encode_integration(value)),
    Parameter: _parameter,
    LoggedMessage: _entry,
    OpenRequest: lambda value: hub_items.decode_open_request(hub_items.encode_open_request(value)),
    RecordedAnswer: lambda value: hub_items.decode_answer(hub_items.encode_answer(value)),
    Notice: _notice,
    Scheduler: lambda value: dynamodb_schedulers.decode_scheduler(dynamodb_schedulers.encode_scheduler(value)),
    Commit: lambda value: notification_items.decode_commit(notification_items.encode_commit(value)),
    Backlog: lambda value: notification_items.decode_backlog(notification_items.encode_backlog(value)),
    Connection: _connection,
    WakeUp: lambda value: sqs_wakes.decode_wake(sqs_wakes.encode_wake(value)),
    PublishRequest: lambda value: notification_items.decode_request(notification_items.encode_request(value, 1)),
    Subscription: lambda value: notification_items.decode_subscription(notification_items.encode_subscription(value)),
    Application: _application,
    Endpoint: _endpoint,
    EventType: _event_type,
    Autoconfig: lambda value: dynamodb_autoconfigs._decoded(dynamodb_autoconfigs._encoded(value)),
    Connector: lambda value: dynamodb_connectors._decoded(dynamodb_connectors._encoded(value)),
    AppIntegration: lambda value: dynamodb_integrations._decoded(dynamodb_integrations._encoded(value)),
    PollingConsumer: lambda value: dynamodb_consumers.decode_consumer(dynamodb_consumers.encode_consumer(value)),
    Reader: lambda value: dynamodb_readers.decode_reader(dynamodb_readers.encode_reader(value)),
    PortalAccess: lambda value: dynamodb_portal._decoded(dynamodb_portal._encoded(value)),
    Task: lambda value: dynamodb_tasks._decoded(dynamodb_tasks._encoded(value)),
}


def as_stored(value: Any) -> Any:
    """A value as its rules allow it to be stored."""
    match value:
        case WorkOrder(message=Message() as message):
            key = DeliveryKey(message.project, message.queue_uid, message.message_id, value.key.subscriber_id)
            # An order is for one delivery: it carries that subscriber's part of the message, and one body.
            carried = replace(
                message,
                queue=value.queue,
                subscriber_ids=(key.subscriber_id,),
                unicast=False,
                body=None,
                cause=None,
                eager=None,
                ordering=message.ordering and replace(message.ordering, previous={key.subscriber_id: "1"}),
            )
            return replace(value, key=key, message=carried)
        case LoggedMessage(location=Location.ACCEPTED, state=HubState.COMPLETED | HubState.NEVER_PROCESSED):
            # Whatever has ended is in the archive, and no list of waiting messages has a place for it.
            return replace(value, location=Location.ARCHIVED)
        case PublishRequest():
            taken = {replace(topic, project=value.project): up_to for topic, up_to in value.taken.items()}
            return replace(value, taken=taken)
        case Endpoint(deleted=True):
            return replace(value, sealed=b"")
    return value


@pytest.mark.parametrize("cls", ROUND_TRIPS, ids=lambda each: cast(str, each.__name__))
def test_every_field_survives_being_stored(cls: type) -> None:
    for seed in SEEDS:
        # Given a value with no field at its default
        value = as_stored(Filler(seed, FIXED).record(cls))

        # When it is written and read
        read = ROUND_TRIPS[cls](value)

        # Then nothing is missing
        assert read == value, f"seed {seed}"


def encoders() -> Iterator[tuple[str, type]]:
    """All encoders of the stores, with the type they encode."""
    for module_info in pkgutil.walk_packages(pushhub.__path__, "pushhub."):
        if ".store." not in module_info.name:
            continue
        module = importlib.import_module(module_info.name)
        for name, function in vars(module).items():
            if inspect.isfunction(function) and function.__module__ == module.__name__ and re.match("_?encode", name):
                for kind in hints(function).values():
                    for each in alternatives(kind):
                        if is_record(each):
                            yield f"{module.__name__}.{name}", each


def test_every_encoder_of_the_stores_is_tried() -> None:
    # Given the types that round trips reach
    tried = set().union(*(reachable(cls) for cls in ROUND_TRIPS))

    # Then none is encoded elsewhere
    assert [(name, cls) for name, cls in encoders() if cls not in tried] == []
