"""A tenant of the running stack: publishes, makes tokens, and connects raw WebSocket clients."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

import requests
import websockets
from tests.stack.running import RunningStack
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus

from pushhub.cloud.clock import SystemClock
from pushhub.notifications.model.topic import Topic
from pushhub.notifications.store.dynamodb_backlogs import DynamoDBBacklogStore, DynamoDBConnectionStore

__all__ = ["Frame", "Stored", "Tenant", "frame", "nothing_more", "receive"]

TOPIC = "machines"
SECONDS = 90.0
"""How long something may take on a busy machine."""


@dataclass(frozen=True)
class Frame:
    """A parsed notification."""

    ack_id: str
    description: str
    action: str
    body: str

    @property
    def n(self) -> int:
        number: int = json.loads(self.body)["n"]
        return number

    @property
    def source(self) -> str:
        return self.description.split("/")[3]


def frame(text: str | bytes) -> Frame:
    """Parse a frame as documented."""
    assert isinstance(text, str)
    header, _, body = text.partition("\n\n")
    ack_id, description, action = header.split("\n")
    return Frame(ack_id, description, action, body)


class Tenant:
    """A tenant with its own project."""

    def __init__(self, stack: RunningStack) -> None:
        credentials = stack.make_project()
        self.base_url = stack.base_url
        self.project_id = credentials.project_id
        self.project_token = credentials.token
        self.session = requests.Session()
        self.session.auth = (f"{self.project_id}/tester", self.project_token)

    def call(
        self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None
    ) -> requests.Response:
        url = f"{self.base_url}/notification2{path}"
        return self.session.request(method, url, json=body, headers=headers, timeout=40)

    def subscribe(self, topic: str = TOPIC, **more: Any) -> dict[str, Any]:
        answer = self.call("POST", "/subscriptions", {"context": "tenant", "subscription": topic} | more)
        assert answer.status_code == 201, answer.text
        created: dict[str, Any] = answer.json()
        return created

    def publish(self, *numbers: int, source: str = "111", api: str = "events", **more: Any) -> list[str]:
        ids: list[str] = []
        for start in range(0, len(numbers), 100):
            drafts = [
                {"api": api, "source": source, "data": {"n": each, **more}} for each in numbers[start : start + 100]
            ]
            answer = self.call("POST", "/notifications", drafts)
            assert answer.status_code == 201, answer.text
            ids += answer.json()["ids"]
        return ids

    def token(self, subscriber: str = "app", topic: str = TOPIC, **more: Any) -> str:
        answer = self.call("POST", "/token", {"subscriber": subscriber, "subscription": topic} | more)
        assert answer.status_code == 200, answer.text
        token: str = answer.json()["token"]
        return token

    def unsubscribe(self, token: str) -> requests.Response:
        return requests.post(f"{self.base_url}/notification2/unsubscribe?token={token}", timeout=40)

    def url(self, token: str, consumer: str = "") -> str:
        more = f"&consumer={consumer}" if consumer else ""
        return f"{self.base_url.replace('http', 'ws', 1)}/notification2/consumer/?token={token}{more}"

    async def connect(self, token: str, consumer: str = "", **more: Any) -> ClientConnection:
        """A raw WebSocket client, which tries again while the hub still counts the connection before as there."""
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                return await self.connect_once(token, consumer, **more)
            except InvalidStatus as error:
                if error.response.status_code not in (409, 503) or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(0.5)

    async def connect_once(self, token: str, consumer: str = "", **more: Any) -> ClientConnection:
        """A raw WebSocket client, or the refusal of its handshake.

        A test that computes, or a busy machine, answers no ping in time; the client does not ask for that.
        """
        options = {"open_timeout": SECONDS, "ping_interval": None, **more}
        return await websockets.connect(self.url(token, consumer), **options)

    async def refusal(self, token: str) -> int:
        """The HTTP status that a handshake is refused with."""
        try:
            connection = await self.connect_once(token)
        except InvalidStatus as error:
            return error.response.status_code
        await connection.close()
        return 101


class Stored:
    """What the hub has stored about a tenant's subscribers.

    Args:
        stack: The stack.
        tenant: The tenant.
    """

    def __init__(self, stack: RunningStack, tenant: Tenant) -> None:
        dynamodb, table = stack.aws.dynamodb(), stack.outputs["BacklogsTableName"]
        self._topic = Topic(project=tenant.project_id, name=TOPIC)
        self._backlogs = DynamoDBBacklogStore(dynamodb, table, SystemClock())
        self._connections = DynamoDBConnectionStore(dynamodb, table, SystemClock())

    def connected(self, subscriber: str) -> list[str]:
        """Ids of its connections, according to the hub's tables."""
        backlog = self._backlogs.backlog(self._topic, subscriber)
        return [each.connection_id for each in backlog.consumers] if backlog else []

    def acknowledged(self, connection_id: str) -> int:
        """Number of acknowledgements noted on a connection."""
        return sum(len(each.acknowledged) for each in self._connections.connections([connection_id]).values())


async def receive(
    connection: ClientConnection, count: int, *, acknowledge: bool = False, seconds: float = SECONDS
) -> list[Frame]:
    """The next notifications, acknowledged on arrival if requested."""
    received: list[Frame] = []
    deadline = time.monotonic() + seconds
    while len(received) < count:
        text = await asyncio.wait_for(connection.recv(), max(0.01, deadline - time.monotonic()))
        received.append(frame(text))
        if acknowledge:
            await connection.send(received[-1].ack_id)
    return received


async def nothing_more(connection: ClientConnection, seconds: float = 0.9) -> bool:
    """Whether nothing arrives for a while."""
    try:
        await asyncio.wait_for(connection.recv(), seconds)
    except TimeoutError:
        return True
    return False
