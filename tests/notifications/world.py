"""A whole notification system in memory: publishers, topics, the sender and its queue, and clients with sockets."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from functools import cached_property

from tests.fakes import FaultPlan
from tests.fakes.ports import FakePorts

from pushhub.base.errors import Unavailable
from pushhub.engine.model.project import Project
from pushhub.engine.model.record import DeliveryRecord
from pushhub.notifications.log import Retention
from pushhub.notifications.model.backlog import WINDOW
from pushhub.notifications.model.records import BacklogChange, CommitChange
from pushhub.notifications.model.subscription import Context, Subscription
from pushhub.notifications.model.topic import Topic
from pushhub.notifications.records import NotificationRecords
from pushhub.notifications.wire.publish import Draft
from pushhub.notifications.wire.requests import TokenRequest
from pushhub.notifications.wiring import Notifications

PROJECT = "5e0000000000000000000001"
SECRET = b"s" * 32
PROJECT_TOKEN = "5e" * 32
"""Hash of the project's token that consumers' tokens are made with by default."""


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
    """All parts together, driven step by step."""

    def __init__(
        self, plan: FaultPlan | None = None, *, window: int = WINDOW, retention: Retention | None = None
    ) -> None:
        self.ports = FakePorts()
        self.ports.window = window
        self.ports.retention = retention or Retention()
        self.ports.base_url = "http://hub.example"
        self.clock = self.ports.clock
        self.config = self.ports.config
        self.config.put_project(Project(project_id=PROJECT, created_at=self.clock.now()))
        self.config.put_token(PROJECT, PROJECT_TOKEN, "", self.clock.now())
        self.rules = self.ports.subscriptions
        self.topics = self.ports.topics
        self.backlogs = self.ports.backlogs
        self.connections = self.ports.connections
        self.sockets = self.ports.sockets
        self.queue = self.ports.wakes
        self.telemetry = self.ports.telemetry
        self.retention = self.ports.retention
        self._plan = plan or FaultPlan()
        self._numbers = itertools.count(1)
        self._parsed: dict[str, list[Frame]] = {}
        self.start()

    def start(self) -> None:
        """(Re)start every process: memory is lost, the stores stay."""
        struck = ("topics", "backlogs", "connections", "sockets", "wakes", "requests")
        self.whole = self.ports.build(self._plan, only=struck)
        self.notifications = self.whole.part(Notifications)
        self.log = self.notifications.log
        self.publishing = self.notifications.publishing
        self.subscriptions = self.notifications.subscriptions
        self.consumers = self.notifications.consumers
        self.sender = self.notifications.sender
        self.idle = self.notifications.idle_connections
        self.subscribers = self.notifications.subscribers

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
        issued_by: str = PROJECT_TOKEN,
    ) -> str:
        return self.subscribers.token(
            TokenRequest(
                topic=Topic(project=PROJECT, name=topic, non_persistent=volatile),
                subscriber=subscriber,
                shared=shared,
                minutes=minutes,
            ),
            issued_by=issued_by,
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

    def send_all(self, remaining_ms: int = 60_000) -> None:
        """Run the sender until the queue is empty."""
        while (at := self.queue.next_at()) is not None:
            self.clock.set(max(self.clock.now(), at))
            self.send_once(remaining_ms)

    def send_once(self, remaining_ms: int = 60_000) -> None:
        """One wake-up, as the sender's function handles it."""
        received = self.queue.receive()
        if received is None:
            return
        try:
            seconds = self.sender.look(received.wake, lambda: remaining_ms)
        except Unavailable:
            seconds = 1
        if seconds is None:
            self.queue.delete(received.receipt_handle)
        else:
            self.queue.defer({received.receipt_handle: seconds})

    def frames(self, connection_id: str) -> list[Frame]:
        """The frames that a client has received."""
        parsed = self._parsed.setdefault(connection_id, [])
        parsed += map(Frame.parse, self.sockets.frames(connection_id)[len(parsed) :])
        return [*parsed]

    def numbers(self, connection_id: str) -> list[int]:
        """The numbers that a client has received."""
        return [each.number for each in self.frames(connection_id)]

    def acknowledge(self, connection_id: str, *numbers: int) -> None:
        """A client acknowledges what it received under these numbers."""
        by_number = {each.number: each.ack_id for each in self.frames(connection_id)}
        for each in numbers:
            self.consumers.receive(connection_id, by_number[each])


def recorded(world: NotificationWorld) -> list[DeliveryRecord]:
    """The delivery records of everything that happened, topics first."""
    records = NotificationRecords(topics=world.topics, backlogs=world.backlogs, clock=world.clock)
    changes: list[BacklogChange | CommitChange] = [*world.topics.changes, *world.backlogs.changes]
    return [record for change in changes for record in records.of(change)]
