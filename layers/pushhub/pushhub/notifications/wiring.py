"""Builds the use cases of Notifications 2.0, as :mod:`pushhub.engine.wiring` does those of the engine."""

# ruff: noqa: PLC0415 (imports inside functions are the point of this module)

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from pushhub.cloud.observability import telemetry
from pushhub.engine import wiring
from pushhub.notifications.log import Retention
from pushhub.notifications.wire.frames import AckIds
from pushhub.notifications.wire.tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pushhub.engine.model.record import DeliveryRecord
    from pushhub.engine.records import Records
    from pushhub.notifications.api.api import NotificationsApi
    from pushhub.notifications.batch import PumpBatch
    from pushhub.notifications.consumers import Consumers, Departures
    from pushhub.notifications.idle import IdleConnections
    from pushhub.notifications.ids import NotificationIds
    from pushhub.notifications.log import TopicLog
    from pushhub.notifications.ports import (
        BacklogStore,
        ConnectionStore,
        SigningKeys,
        Sockets,
        SubscriptionStore,
        TopicStore,
        WakeQueue,
    )
    from pushhub.notifications.subscribers import NotificationSubscribers
    from pushhub.notifications.target import TopicTarget
    from pushhub.notifications.waker import Waker

__all__ = [
    "consumers",
    "idle_connections",
    "notifications_api",
    "pump_batch",
    "records",
    "topic_target",
]

_SIDE_BY_SIDE = 10
"""Threads of the pump: the largest batch of a FIFO queue."""


def _table() -> tuple[Any, str]:
    return wiring.client("dynamodb"), wiring.settings().text("BACKLOGS_TABLE")


@cache
def _topics() -> TopicStore:
    from pushhub.notifications.store.dynamodb_topics import DynamoDBTopicStore

    return DynamoDBTopicStore(*_table(), wiring.clock())


@cache
def _backlogs() -> BacklogStore:
    from pushhub.notifications.store.dynamodb_backlogs import DynamoDBBacklogStore

    return DynamoDBBacklogStore(*_table(), wiring.clock())


@cache
def _connections() -> ConnectionStore:
    from pushhub.notifications.store.dynamodb_backlogs import DynamoDBConnectionStore

    return DynamoDBConnectionStore(*_table(), wiring.clock())


@cache
def _subscription_store() -> SubscriptionStore:
    from pushhub.notifications.store.dynamodb_subscriptions import DynamoDBSubscriptionStore

    return DynamoDBSubscriptionStore(*_table(), wiring.clock())


@cache
def _sockets() -> Sockets:
    from pushhub.notifications.store.websocket_management import ApiGatewaySockets

    url = wiring.settings().text("WEBSOCKET_MANAGEMENT_URL")
    return ApiGatewaySockets(wiring.client("apigatewaymanagementapi", endpoint_url=url), wiring.clock())


@cache
def _wakes() -> WakeQueue:
    from pushhub.notifications.store.sqs_wakes import SqsWakeQueue

    return SqsWakeQueue(wiring.client("sqs"), wiring.settings().text("NOTIFY_QUEUE_URL"), wiring.clock())


@cache
def _keys() -> SigningKeys:
    from pushhub.notifications.store.secret_keys import SecretsManagerKeys

    secret = wiring.settings().text("SIGNING_SECRET")
    return SecretsManagerKeys(wiring.client("secretsmanager"), secret, wiring.clock())


@cache
def _retention() -> Retention:
    return Retention(
        age_ms=wiring.settings().number("BACKLOG_HOURS", least=1, most=336) * 3_600_000,
        size=wiring.settings().number("BACKLOG_BYTES", least=1_000, most=1 << 40),
    )


@cache
def _waker() -> Waker:
    from pushhub.notifications.waker import Waker

    return Waker(backlogs=_backlogs(), queue=_wakes(), clock=wiring.clock())


@cache
def _departures() -> Departures:
    from pushhub.notifications.consumers import Departures

    return Departures(backlogs=_backlogs(), connections=_connections(), waker=_waker())


@cache
def _log() -> TopicLog:
    from pushhub.notifications.log import TopicLog

    return TopicLog(
        topics=_topics(), backlogs=_backlogs(), waker=_waker(), clock=wiring.clock(), retention=_retention()
    )


@cache
def _ids() -> NotificationIds:
    from pushhub.notifications.ids import NotificationIds

    return NotificationIds(config=wiring.config_store(), clock=wiring.clock())


@cache
def consumers() -> Consumers:
    """The life of connections."""
    from pushhub.notifications.consumers import Consumers

    return Consumers(
        tokens=Tokens(_keys().secrets),
        ack_ids=AckIds(_keys().secrets),
        config=wiring.config_store(),
        topics=_topics(),
        backlogs=_backlogs(),
        connections=_connections(),
        sockets=_sockets(),
        departures=_departures(),
        waker=_waker(),
        clock=wiring.clock(),
        retention=_retention(),
    )


@cache
def pump_batch() -> PumpBatch:
    """Sends notifications."""
    from concurrent.futures import ThreadPoolExecutor

    from pushhub.notifications.batch import PumpBatch
    from pushhub.notifications.sender import Pump

    pump = Pump(
        topics=_topics(),
        backlogs=_backlogs(),
        connections=_connections(),
        sockets=_sockets(),
        departures=_departures(),
        waker=_waker(),
        ack_ids=AckIds(_keys().secrets),
        clock=wiring.clock(),
        telemetry=telemetry,
    )
    executor = ThreadPoolExecutor(max_workers=_SIDE_BY_SIDE, thread_name_prefix="look")
    return PumpBatch(pump=pump, queue=_wakes(), executor=executor, telemetry=telemetry)


@cache
def idle_connections() -> IdleConnections:
    """Closes what idles."""
    from pushhub.notifications.idle import IdleConnections

    return IdleConnections(
        backlogs=_backlogs(),
        connections=_connections(),
        sockets=_sockets(),
        departures=_departures(),
        waker=_waker(),
        clock=wiring.clock(),
        telemetry=telemetry,
    )


@cache
def records() -> Records:
    """Writes delivery records of notifications."""
    from pushhub.engine.records import Records
    from pushhub.notifications.records import NotificationRecords
    from pushhub.notifications.store.changes import notification_change

    made = NotificationRecords(topics=_topics(), backlogs=_backlogs())

    def read(stream_record: Mapping[str, Any]) -> Sequence[DeliveryRecord]:
        change = notification_change(stream_record)
        return made.of(change) if change else ()

    return Records(read=read, store=wiring.record_store(), telemetry=telemetry)


@cache
def topic_target() -> TopicTarget:
    """Feeds topics from queues."""
    from pushhub.notifications.target import TopicTarget

    return TopicTarget(log=_log, ids=_ids(), clock=wiring.clock())


@cache
def _subscribers() -> NotificationSubscribers:
    from pushhub.notifications.subscribers import NotificationSubscribers

    return NotificationSubscribers(
        tokens=Tokens(_keys().secrets),
        backlogs=_backlogs(),
        sockets=_sockets(),
        departures=_departures(),
        consumers=consumers(),
        clock=wiring.clock(),
    )


@cache
def notifications_api() -> NotificationsApi:
    """The REST API."""
    from pushhub.notifications.api.api import NotificationsApi
    from pushhub.notifications.publish import NotificationPublish
    from pushhub.notifications.subscriptions import NotificationSubscriptions

    return NotificationsApi(
        config=wiring.config_store(),
        subscriptions=NotificationSubscriptions(subscriptions=_subscription_store(), ids=_ids(), clock=wiring.clock()),
        publishing=NotificationPublish(subscriptions=_subscription_store(), log=_log(), ids=_ids()),
        subscribers=_subscribers(),
        consumers=consumers(),
        base_url=wiring.settings().base_url(),
    )
