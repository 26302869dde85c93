"""A whole notification system in memory: publishers, topics, the pump and its queue, and clients at their sockets."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from functools import cached_property

from tests.fakes import FakeClock, FakeConfigStore, FaultPlan, faulty
from tests.fakes.notification_stores import (
    FakeBacklogStore,
    FakeConnectionStore,
    FakeSubscriptionStore,
    FakeTopicStore,
)
from tests.fakes.sockets import FakeSockets
from tests.fakes.telemetry import FakeTelemetry
from tests.fakes.wake_queue import FakeWakeQueue

from pushhub.base.errors import Unavailable
from pushhub.engine.model.queue import Project
from pushhub.engine.model.record import DeliveryRecord
from pushhub.notifications.consumers import Consumers, Departures
from pushhub.notifications.idle import IdleConnections
from pushhub.notifications.ids import NotificationIds
from pushhub.notifications.log import Retention, TopicLog
from pushhub.notifications.model.backlog import WINDOW
from pushhub.notifications.model.records import BacklogChange, CommitChange
from pushhub.notifications.model.subscription import Context, Subscription
from pushhub.notifications.model.topic import Topic
from pushhub.notifications.publish import NotificationPublish
from pushhub.notifications.records import NotificationRecords
from pushhub.notifications.sender import Pump
from pushhub.notifications.subscribers import NotificationSubscribers
from pushhub.notifications.subscriptions import NotificationSubscriptions
from pushhub.notifications.waker import Waker
from pushhub.notifications.wire.frames import AckIds
from pushhub.notifications.wire.publish import Draft
from pushhub.notifications.wire.requests import TokenRequest
from pushhub.notifications.wire.tokens import Tokens

__all__ = ["PROJECT", "Frame", "NotificationWorld", "recorded"]

PROJECT = "5e0000000000000000000001"
SECRET = b"s" * 32


@dataclass(frozen=True)
class Frame:
    """A notification as a client reads it."""

    ack_id: str
    description: str
    action: str
    body: str

    @classmethod
    def parse(cls, text: str) -> Frame:
        header, _, body = text.partition("\n\n")
        ack_id, description, action = header.split("\n")
        return cls(ack_id, description, action, body)

    @cached_property
    def number(self) -> int:
        return int(json.loads(self.body)["n"])


class NotificationWorld:
    """Everything joined, turned by hand."""

    def __init__(
        self, plan: FaultPlan | None = None, *, window: int = WINDOW, retention: Retention | None = None
    ) -> None:
        plan = plan or FaultPlan()
        self.clock = FakeClock()
        self.config = FakeConfigStore()
        self.config.put_project(Project(project_id=PROJECT, created_at=self.clock.now()))
        self.rules = FakeSubscriptionStore()
        self.topics = FakeTopicStore()
        self.backlogs = FakeBacklogStore()
        self.connections = FakeConnectionStore()
        self.sockets = FakeSockets(self.clock)
        self.queue = FakeWakeQueue(self.clock)
        self.telemetry = FakeTelemetry()
        self._plan = plan
        self._window = window
        self.retention = retention or Retention()
        self._numbers = itertools.count(1)
        self._parsed: dict[str, list[Frame]] = {}
        self.start()

    def start(self) -> None:
        """(Re)start every process: what was only in memory is gone, the stores stay."""
        topics = faulty(self.topics, "topics", self._plan)
        backlogs = faulty(self.backlogs, "backlogs", self._plan)
        connections = faulty(self.connections, "connections", self._plan)
        sockets = faulty(self.sockets, "sockets", self._plan)
        queue = faulty(self.queue, "queue", self._plan)
        tokens, ack_ids = Tokens(lambda: [SECRET]), AckIds(lambda: [SECRET])
        waker = Waker(backlogs=backlogs, queue=queue, clock=self.clock)
        departures = Departures(backlogs=backlogs, connections=connections, waker=waker)
        self.log = TopicLog(topics=topics, backlogs=backlogs, waker=waker, clock=self.clock, retention=self.retention)
        ids = NotificationIds(config=self.config, clock=self.clock)
        self.publishing = NotificationPublish(subscriptions=self.rules, log=self.log, ids=ids)
        self.subscriptions = NotificationSubscriptions(subscriptions=self.rules, ids=ids, clock=self.clock)
        self.consumers = Consumers(
            tokens=tokens,
            ack_ids=ack_ids,
            config=self.config,
            topics=topics,
            backlogs=backlogs,
            connections=connections,
            sockets=sockets,
            departures=departures,
            waker=Waker(backlogs=backlogs, queue=queue, clock=self.clock),
            clock=self.clock,
            retention=self.retention,
        )
        self.pump = Pump(
            topics=topics,
            backlogs=backlogs,
            connections=connections,
            sockets=sockets,
            departures=departures,
            waker=Waker(backlogs=backlogs, queue=queue, clock=self.clock),
            ack_ids=ack_ids,
            clock=self.clock,
            telemetry=self.telemetry,
            window=self._window,
        )
        self.idle = IdleConnections(
            backlogs=backlogs,
            connections=connections,
            sockets=sockets,
            departures=departures,
            waker=waker,
            clock=self.clock,
            telemetry=self.telemetry,
        )
        self.subscribers = NotificationSubscribers(
            tokens=tokens,
            backlogs=backlogs,
            sockets=sockets,
            departures=departures,
            consumers=self.consumers,
            clock=self.clock,
        )

    def rule(self, topic: str = "orders", source: str = "", **more: object) -> Subscription:
        """A subscription: to one source, or else to the whole project."""
        rule = Subscription(
            subscription_id=str(next(self._numbers)),
            project=PROJECT,
            context=Context.MANAGED_OBJECT if source else Context.TENANT,
            source=source,
            name=topic,
            created_at=self.clock.now(),
            **more,  # type: ignore[arg-type]
        )
        self.rules.create(rule)
        return rule

    def token(
        self,
        subscriber: str = "app",
        topic: str = "orders",
        *,
        shared: bool = False,
        volatile: bool = False,
        minutes: int = 60,
    ) -> str:
        return self.subscribers.token(
            TokenRequest(
                topic=Topic(project=PROJECT, name=topic, non_persistent=volatile),
                subscriber=subscriber,
                shared=shared,
                minutes=minutes,
            )
        )

    def publish(self, *numbers: int, source: str = "111", api: str = "events") -> list[str]:
        """Publish ``{"n": number}`` for each number in one request."""
        drafts = [Draft(api=api, source=source, action="CREATE", data={"n": each}) for each in numbers]
        return self.publishing.publish(PROJECT, drafts)

    def connect(self, connection_id: str, token: str | None = None, name: str = "") -> None:
        """A client connects, and its handshake is finished."""
        self.consumers.connect(token or self.token(), name, connection_id)
        self.sockets.opened(connection_id)

    def disconnect(self, connection_id: str) -> None:
        """A client's connection ends, and the hub is told."""
        self.sockets.cut(connection_id)
        self.consumers.disconnect(connection_id)

    def pump_all(self, remaining_ms: int = 60_000) -> None:
        """Run the pump until the queue is empty."""
        while (at := self.queue.next_at()) is not None:
            self.clock.set(max(self.clock.now(), at))
            self.pump_once(remaining_ms)

    def pump_once(self, remaining_ms: int = 60_000) -> None:
        """One wake-up, as the pump's function handles it."""
        received = self.queue.receive()
        if received is None:
            return
        try:
            seconds = self.pump.look(received.wake, lambda: remaining_ms)
        except Unavailable:
            seconds = 1
        if seconds is None:
            self.queue.delete(received.receipt_handle)
        else:
            self.queue.defer({received.receipt_handle: seconds})

    def frames(self, connection_id: str) -> list[Frame]:
        """What a client has received."""
        parsed = self._parsed.setdefault(connection_id, [])
        parsed += map(Frame.parse, self.sockets.frames(connection_id)[len(parsed) :])
        return [*parsed]

    def numbers(self, connection_id: str) -> list[int]:
        """The numbers of what a client has received."""
        return [each.number for each in self.frames(connection_id)]

    def acknowledge(self, connection_id: str, *numbers: int) -> None:
        """A client acknowledges what it received under these numbers."""
        by_number = {each.number: each.ack_id for each in self.frames(connection_id)}
        for each in numbers:
            self.consumers.receive(connection_id, by_number[each])


def recorded(world: NotificationWorld) -> list[DeliveryRecord]:
    """What the records function makes of everything that happened, topics first."""
    made = NotificationRecords(topics=world.topics, backlogs=world.backlogs)
    changes: list[BacklogChange | CommitChange] = [*world.topics.changes, *world.backlogs.changes]
    return [record for change in changes for record in made.of(change)]
