"""Puts Notifications 2.0 together: its contributions to the engine, its API, and the use cases of its own functions."""

# ruff: noqa: PLC0415 (a function imports only what it uses)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from pushhub.cloud.settings import EnvironmentSetting, number, text, url
from pushhub.engine.model.reach import Scope
from pushhub.engine.protocol import Protocol as WireProtocol
from pushhub.engine.protocol import ReadAccepted, ReadChange
from pushhub.engine.target import TargetOffer
from pushhub.engine.wiring import CONFIG_TABLE, VAULT_KEY

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock
    from pushhub.engine.model.record import DeliveryRecord
    from pushhub.engine.wiring import AwsEnginePorts, Engine
    from pushhub.notifications.api.call import NotificationsCall
    from pushhub.notifications.api.use_cases import NotificationsUseCases, Publishing
    from pushhub.notifications.batch import SenderBatch
    from pushhub.notifications.connections import Connections
    from pushhub.notifications.consumer_tokens import ConsumerTokens
    from pushhub.notifications.consumers import Consumers
    from pushhub.notifications.idle import IdleConnections
    from pushhub.notifications.log import Retention, TopicLog
    from pushhub.notifications.ports import (
        BacklogStore,
        ConnectionStore,
        RequestStore,
        SigningKeys,
        Sockets,
        SubscriptionStore,
        TopicStore,
        WakeQueue,
    )
    from pushhub.notifications.publish import NotificationPublish
    from pushhub.notifications.search import TopicFinder
    from pushhub.notifications.sender import NotificationSender
    from pushhub.notifications.subscribers import NotificationSubscribers
    from pushhub.notifications.subscriptions import NotificationSubscriptions
    from pushhub.notifications.target import TopicTarget
    from pushhub.notifications.waiting import NotificationsWaiting
    from pushhub.notifications.waker import Waker
    from pushhub.web.api import Api, Route
    from pushhub.web.description import ApiDescription

_SIDE_BY_SIDE = 10
"""Threads of the sender: the largest batch of a FIFO queue."""


BACKLOGS_TABLE = text("BACKLOGS_TABLE")
NOTIFY_QUEUE_URL = text("NOTIFY_QUEUE_URL")
WEBSOCKET_MANAGEMENT_URL = url("WEBSOCKET_MANAGEMENT_URL")
BACKLOG_HOURS = number("BACKLOG_HOURS", least=1, most=336)
BACKLOG_BYTES = number("BACKLOG_BYTES", least=1_000, most=1 << 40)
_APPENDING: tuple[EnvironmentSetting[Any], ...] = (BACKLOGS_TABLE, NOTIFY_QUEUE_URL, BACKLOG_HOURS, BACKLOG_BYTES)


class AwsNotificationsPorts:
    """What notifications need besides the engine's ports, on AWS."""

    def __init__(self, aws: AwsEnginePorts) -> None:
        self._aws = aws

    @property
    def window(self) -> int:
        """Notifications that a consumer may hold without acknowledging them."""
        from pushhub.notifications.model.backlog import WINDOW

        return WINDOW

    @property
    def backlogs_table(self) -> str:
        """Name of the table of topics and backlogs, for the records of its changes."""
        return self._aws.settings[BACKLOGS_TABLE]

    @property
    def _table(self) -> tuple[DynamoDBClient, str, Clock]:
        return self._aws.table(BACKLOGS_TABLE)

    @cached_property
    def topics(self) -> TopicStore:
        from pushhub.notifications.store.dynamodb_topics import DynamoDBTopicStore

        return DynamoDBTopicStore(*self._table)

    @cached_property
    def backlogs(self) -> BacklogStore:
        from pushhub.notifications.store.dynamodb_backlogs import DynamoDBBacklogStore

        return DynamoDBBacklogStore(*self._table)

    @cached_property
    def connections(self) -> ConnectionStore:
        from pushhub.notifications.store.dynamodb_backlogs import DynamoDBConnectionStore

        return DynamoDBConnectionStore(*self._table)

    @cached_property
    def subscriptions(self) -> SubscriptionStore:
        from pushhub.notifications.store.dynamodb_subscriptions import DynamoDBSubscriptionStore

        return DynamoDBSubscriptionStore(*self._table)

    @cached_property
    def requests(self) -> RequestStore:
        from pushhub.notifications.store.dynamodb_requests import DynamoDBRequestStore

        return DynamoDBRequestStore(*self._table)

    @cached_property
    def sockets(self) -> Sockets:
        from pushhub.notifications.store.websocket_management import ApiGatewaySockets

        url = self._aws.settings[WEBSOCKET_MANAGEMENT_URL]
        client = self._aws.clients.of("apigatewaymanagementapi", endpoint_url=url)
        return ApiGatewaySockets(client, self._aws.clock)

    @cached_property
    def wakes(self) -> WakeQueue:
        from pushhub.notifications.store.sqs_wakes import SqsWakeQueue

        return SqsWakeQueue(self._aws.clients.of("sqs"), self._aws.settings[NOTIFY_QUEUE_URL], self._aws.clock)

    @cached_property
    def keys(self) -> SigningKeys:
        """Keys of tokens and acknowledgements, sealed in the configuration table."""
        from pushhub.cloud.table import Table
        from pushhub.notifications.store.secret_keys import SealedSigningKeys, SigningSecretItem

        aws = self._aws
        return SealedSigningKeys(SigningSecretItem(Table(*aws.table(CONFIG_TABLE)), aws.vault, aws.clock), aws.clock)

    @cached_property
    def retention(self) -> Retention:
        from pushhub.notifications.log import Retention

        return Retention(
            age_ms=self._aws.settings[BACKLOG_HOURS] * 3_600_000,
            size=self._aws.settings[BACKLOG_BYTES],
        )


class Notifications:
    """The use cases of notifications, each created on first use."""

    aws_ports = AwsNotificationsPorts
    settings: ClassVar[dict[str, tuple[EnvironmentSetting[Any], ...]]] = {
        "ingest": _APPENDING,
        "control": (*_APPENDING, WEBSOCKET_MANAGEMENT_URL),
        "push": _APPENDING,
        "poll": _APPENDING,
        "consumers": (*_APPENDING, VAULT_KEY, WEBSOCKET_MANAGEMENT_URL),
        "notify": (BACKLOGS_TABLE, NOTIFY_QUEUE_URL, VAULT_KEY, WEBSOCKET_MANAGEMENT_URL),
        "records": (BACKLOGS_TABLE,),
    }

    @staticmethod
    def routes() -> Sequence[Route[Any, Any]]:
        from pushhub.notifications.api.api import ROUTES

        return ROUTES

    @staticmethod
    def description() -> ApiDescription:
        from pushhub.notifications.api.description import DESCRIPTION

        return DESCRIPTION

    def __init__(self, ports: AwsNotificationsPorts, engine: Engine) -> None:
        self.ports = ports
        self._engine = engine
        self._outside = engine.ports

    @cached_property
    def protocol(self) -> WireProtocol:
        return WireProtocol(
            name="notifications",
            targets=(TargetOffer(("notification2",), self._topic_target, Scope.PROJECT, headers=False),),
            change_readers=self._change_readers,
            accepted_readers=self._accepted_readers,
            finder=self._finder,
            apis={"/notification2/": lambda: self.api},
            producer_apis={"/notification2/": lambda: self.publishing_api},
        )

    @cached_property
    def waker(self) -> Waker:
        from pushhub.notifications.waker import Waker

        return Waker(backlogs=self.ports.backlogs, queue=self.ports.wakes, clock=self._outside.clock)

    @cached_property
    def _connections(self) -> Connections:
        from pushhub.notifications.connections import Connections

        ports = self.ports
        return Connections(backlogs=ports.backlogs, kept=ports.connections, sockets=ports.sockets, waker=self.waker)

    @cached_property
    def log(self) -> TopicLog:
        from pushhub.notifications.log import TopicLog

        ports = self.ports
        return TopicLog(
            topics=ports.topics,
            backlogs=ports.backlogs,
            waker=self.waker,
            clock=self._outside.clock,
            retention=ports.retention,
        )

    @cached_property
    def _consumer_tokens(self) -> ConsumerTokens:
        from pushhub.notifications.consumer_tokens import ConsumerTokens
        from pushhub.notifications.wire.tokens import Tokens

        tokens = Tokens(self.ports.keys.secrets, self.ports.keys.signing)
        return ConsumerTokens(tokens=tokens, projects=self._outside.config, clock=self._outside.clock)

    @cached_property
    def consumers(self) -> Consumers:
        from pushhub.notifications.consumers import Consumers
        from pushhub.notifications.wire.frames import AckIds

        ports = self.ports
        return Consumers(
            tokens=self._consumer_tokens,
            ack_ids=AckIds(ports.keys.secrets),
            topics=ports.topics,
            backlogs=ports.backlogs,
            connections=self._connections,
            waker=self.waker,
            clock=self._outside.clock,
            retention=ports.retention,
        )

    @cached_property
    def sender(self) -> NotificationSender:
        from pushhub.notifications.sender import NotificationSender
        from pushhub.notifications.wire.frames import AckIds

        ports, outside = self.ports, self._outside
        return NotificationSender(
            topics=ports.topics,
            backlogs=ports.backlogs,
            connections=self._connections,
            waker=self.waker,
            ack_ids=AckIds(ports.keys.secrets),
            clock=outside.clock,
            telemetry=outside.telemetry,
            window=ports.window,
        )

    @cached_property
    def sender_batch(self) -> SenderBatch:
        from concurrent.futures import ThreadPoolExecutor

        from pushhub.notifications.batch import SenderBatch

        executor = ThreadPoolExecutor(max_workers=_SIDE_BY_SIDE, thread_name_prefix="look")
        return SenderBatch(
            sender=self.sender, queue=self.ports.wakes, executor=executor, telemetry=self._outside.telemetry
        )

    @cached_property
    def idle_connections(self) -> IdleConnections:
        from pushhub.notifications.idle import IdleConnections

        ports, outside = self.ports, self._outside
        return IdleConnections(
            backlogs=ports.backlogs,
            connections=self._connections,
            waker=self.waker,
            projects=outside.config,
            clock=outside.clock,
            telemetry=outside.telemetry,
            executor=outside.executor,
        )

    @cached_property
    def subscribers(self) -> NotificationSubscribers:
        from pushhub.notifications.subscribers import NotificationSubscribers

        ports = self.ports
        return NotificationSubscribers(
            tokens=self._consumer_tokens,
            backlogs=ports.backlogs,
            connections=self._connections,
            consumers=self.consumers,
            clock=self._outside.clock,
        )

    @cached_property
    def subscriptions(self) -> NotificationSubscriptions:
        from pushhub.notifications.subscriptions import NotificationSubscriptions

        return NotificationSubscriptions(
            subscriptions=self.ports.subscriptions, next_id=self._engine.accept.next_id, clock=self._outside.clock
        )

    @cached_property
    def waiting(self) -> NotificationsWaiting:
        from pushhub.notifications.waiting import NotificationsWaiting

        ports = self.ports
        return NotificationsWaiting(
            topics=ports.topics, backlogs=ports.backlogs, connections=ports.connections, log=self.log
        )

    @cached_property
    def publishing(self) -> NotificationPublish:
        from pushhub.notifications.publish import NotificationPublish

        return NotificationPublish(
            subscriptions=self.ports.subscriptions,
            requests=self.ports.requests,
            log=self.log,
            next_id=self._engine.accept.next_id,
            quotas=self._engine.quotas,
            clock=self._outside.clock,
        )

    @cached_property
    def publishing_api(self) -> Api[Publishing, NotificationsCall]:
        """The part of the REST API that publishers call."""
        from pushhub.notifications.api.dialect import NotificationsDialect
        from pushhub.notifications.api.publishing import ROUTES
        from pushhub.notifications.api.use_cases import Publishing
        from pushhub.web.api import Api

        dialect = NotificationsDialect(self._outside.config)
        return Api(routes=ROUTES, use_cases=Publishing(publishing=self.publishing), dialect=dialect)

    @cached_property
    def api(self) -> Api[NotificationsUseCases, NotificationsCall]:
        from pushhub.notifications.api.api import ROUTES
        from pushhub.notifications.api.dialect import NotificationsDialect
        from pushhub.notifications.api.use_cases import NotificationsUseCases
        from pushhub.web.api import Api
        from pushhub.web.misspelt import Misspelt

        use_cases = NotificationsUseCases(
            subscriptions=self.subscriptions,
            publishing=self.publishing,
            subscribers=self.subscribers,
            consumers=self.consumers,
            waiting=self.waiting,
            base_url=self._outside.base_url,
        )
        dialect = NotificationsDialect(self._outside.config)
        return Api(routes=ROUTES, use_cases=use_cases, dialect=dialect, warnings=Misspelt(self.description))

    def _topic_target(self) -> TopicTarget:
        from pushhub.notifications.target import TopicTarget

        return TopicTarget(log=lambda: self.log, next_id=self._engine.accept.next_id, clock=self._outside.clock)

    def _accepted_readers(self) -> Mapping[str, ReadAccepted]:
        from pushhub.notifications.store.changes import accepted_in_topic

        return {self.ports.backlogs_table: accepted_in_topic}

    def _finder(self) -> TopicFinder:
        from pushhub.notifications.search import TopicFinder

        return TopicFinder(topics=self.ports.topics, clock=self._outside.clock)

    def _change_readers(self) -> Mapping[str, ReadChange]:
        from pushhub.notifications.records import NotificationRecords
        from pushhub.notifications.store.changes import notification_change

        records = NotificationRecords(topics=self.ports.topics, backlogs=self.ports.backlogs, clock=self._outside.clock)

        def read(stream_record: Mapping[str, Any]) -> Sequence[DeliveryRecord]:
            change = notification_change(stream_record)
            return records.of(change) if change else ()

        return {self.ports.backlogs_table: read}
