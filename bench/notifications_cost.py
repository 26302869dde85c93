"""What a million delivered and acknowledged notifications cost, counted as ``bench.cost`` counts messages.

The handlers of control, ingest, notify and consumers run in this process against moto; frames go to sockets in memory.
Added by rule: one HTTP API request per post, one FIFO receive and one delete per batch handed to notify, one WebSocket
message per frame in either direction (32 KB each). Not counted: $0.25 per million minutes that connections are open.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from moto import mock_aws
from tests.cloud import aws_services
from tests.notifications.store import aws_notifications

from bench.cost import QUEUES, Account, Hub, gateway_event, handed_over, set_up
from bench.harness import table
from bench.metering import Meter, metered

__all__ = ["cost_tables"]

DATA = {
    "type": "c8y_Speed",
    "time": "2026-11-21T05:55:14.102Z",
    "c8y_Speed": {"speed": {"value": 24.5, "unit": "km/h"}},
}
CONNECTED_AT = 1_795_000_000_000
FRAME_UNIT = 32_768


class MemorySockets:
    """Frames by connection."""

    def __init__(self) -> None:
        self.frames: dict[str, list[str]] = {}

    def send(self, connection_id: str, text: str) -> bool:
        """See the port."""
        self.frames.setdefault(connection_id, []).append(text)
        return True

    def close(self, connection_id: str) -> None:
        """See the port."""

    def active_at(self, connection_id: str) -> int | None:  # noqa: ARG002 (all are open)
        """See the port."""
        return CONNECTED_AT


class Scenario:
    """One topic with some subscribers, each connected.

    Args:
        hub: The functions.
        sockets: Where frames go.
        urls: The queue.
        project: Tenant.
        token: Its token.
    """

    def __init__(self, hub: Hub, sockets: MemorySockets, url: str, project: str, token: str) -> None:
        self._hub = hub
        self._sockets = sockets
        self._url = url
        self._authorization = "Basic " + base64.b64encode(f"{project}/bench:{token}".encode()).decode()

    def run(self, topic: str, *, subscribers: int, per_post: int, posts: int) -> Account:
        """Publish, deliver, acknowledge; what that used, per notification delivered."""
        unmeasured = Account(messages=1)
        rule = {"context": "mo", "source": {"id": topic}, "subscription": topic}
        assert self._rest(unmeasured, "subscriptions", rule)["statusCode"] == 201
        for number in range(subscribers):
            answer = self._rest(unmeasured, "token", {"subscriber": f"s{number}", "subscription": topic})
            query = {"token": json.loads(answer["body"])["token"]}
            self._socket(unmeasured, "CONNECT", f"{topic}{number}", query=query)
        self._notify(unmeasured)
        self._round(unmeasured, topic, subscribers, per_post)
        account = Account(messages=posts * per_post * subscribers)
        for _ in range(posts):
            self._round(account, topic, subscribers, per_post)
        return account

    def _round(self, account: Account, topic: str, subscribers: int, per_post: int) -> None:
        drafts = [{"api": "events", "source": topic, "data": DATA}] * per_post
        account.add("ingest", http_api_request=1)
        answer = self._rest(account, "notifications", drafts, function="ingest")
        assert answer["statusCode"] == 201, answer
        self._notify(account)
        for number in range(subscribers):
            frames = self._sockets.frames.pop(f"{topic}{number}")
            assert len(frames) == per_post
            for frame in frames:
                account.add("notify", websocket_message=-(-len(frame.encode()) // FRAME_UNIT))
                account.add("consumers", websocket_message=1)
                self._socket(account, "MESSAGE", f"{topic}{number}", body=frame.partition("\n")[0])

    def _rest(self, account: Account, path: str, body: object, *, function: str = "control") -> Any:
        event = gateway_event(f"/notification2/{path}", body, self._authorization)
        return self._hub.invoke(account, function, event)

    def _socket(self, account: Account, kind: str, connection_id: str, **more: Any) -> None:
        context = {"eventType": kind, "connectionId": connection_id}
        event = {"requestContext": context, "queryStringParameters": more.get("query"), "body": more.get("body", "")}
        assert self._hub.invoke(account, "consumers", event)["statusCode"] == 200

    def _notify(self, account: Account) -> None:
        for records in handed_over(self._hub, self._url, 10):
            answer = self._hub.invoke(account, "notify", {"Records": records})
            assert answer == {"batchItemFailures": []}, answer
            account.add("notify", sqs_fifo_request=2)


def cost_tables() -> list[str]:
    """Markdown: a table for each way of publishing."""
    with mock_aws(), aws_services.dynamodb() as dynamodb, metered() as meter:
        return _tables(dynamodb, meter)


def _tables(dynamodb: Any, meter: Meter) -> list[str]:
    with aws_notifications.dynamodb(), aws_notifications.wakes() as (sqs, url):
        key = aws_notifications.client("kms").create_key()["KeyMetadata"]["Arn"]
        queues = dict.fromkeys((*QUEUES, "NOTIFY_QUEUE_URL"), url)
        set_up({**queues, "BACKLOGS_TABLE": aws_notifications.BACKLOGS_TABLE, "VAULT_KEY": key})
        from pushhub.engine.projects.projects import Projects  # noqa: PLC0415
        from pushhub.notifications.wiring import AwsNotificationsPorts  # noqa: PLC0415
        from pushhub.runtime.hub import start  # noqa: PLC0415 (after the environment is set)

        sockets = MemorySockets()
        AwsNotificationsPorts.sockets = property(lambda _: sockets)  # type: ignore[assignment]
        outside = start("consumers").engine.ports
        projects = Projects(config=outside.config, clock=outside.clock)
        project = projects.make("bench").project_id
        scenario = Scenario(Hub(meter, sqs, dynamodb), sockets, url, project, projects.make_token(project))
        scenario.run("warm", subscribers=1, per_post=1, posts=3)
        parts: list[str] = []
        for topic, subscribers, per_post, posts in (("one", 1, 1, 100), ("batch", 1, 100, 5), ("fifty", 50, 1, 5)):
            account = scenario.run(topic, subscribers=subscribers, per_post=per_post, posts=posts)
            parts += _page(account, subscribers, per_post)
        return parts


def _page(account: Account, subscribers: int, per_post: int) -> list[str]:
    total = sum(account.bill().values())
    rows = [*account.rows(), ["all", "", "", f"{total:.2f}"]]
    who = "one subscriber" if subscribers == 1 else f"{subscribers} subscribers"
    heading = (
        f"Published {per_post} at a time to {who}: **${total:.2f}** per million notifications delivered and "
        f"acknowledged"
    )
    return [heading, table(["function", "unit", "per delivery", "$ per million"], rows)]
