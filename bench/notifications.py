"""Notifications per second to one and to fifty consumers, time from publishing to receiving, and what acknowledging
costs.

    make up && .venv/bin/python -m bench.notifications [--save docs/figures/notifications.md]

Runs against the running local stack, from outside: HTTP to publish, WebSockets to consume, all through its front door.
Everything runs on the same machine, and the emulator has only one process, so the rates say more about the machine and
the emulator than about the hub. For comparison there is a bare echo on the same path: a WebSocket API with a function
that returns each frame, on the same emulator, behind a front door of its own.

Two habits of the emulator are visible. After a run that logged nothing, it waits 50 ms for a log line before it returns
the answer. So a publisher, whose function logs nothing, gets its 201 after its consumers have the notification, and
consecutive posts of one publisher are at least 50 ms apart. One echo logs a line and another does not, to show both.
(For the function that answers frames, the wait is shortened to 5 ms.) And the emulator runs the function that answers
frames one at a time, so it hands on acknowledgements that have gathered meanwhile in one event. On AWS, each has a run
of its own, in parallel. The emulator also gets slower as its tables grow: start from an empty stack.

Between the post and the frame there are two runs of functions and about ten calls to the table, the queue and API
Gateway, each of which takes two to three milliseconds here. Frames to one connection are sent one after the other,
because their order is promised: one call to API Gateway for each.

Cost: {cost}
"""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import boto3
import websockets
from websockets.asyncio.client import ClientConnection

from bench import notifications_cost
from bench.harness import ROOT, Page, percentiles
from bench.local_hub import described
from bench.sink import wait_until_open

ECHO = """
import sys


def handler(event, context):
    {log}
    return {{"statusCode": 200, "body": event.get("body") or ""}}
"""
ECHO_LOG = 'print("echo", file=sys.stderr)'
ECHO_API = "feed00ec"
TEXT = "x" * 200
FRAME = f"{'A' * 15}=\n/{TEXT}"
"""What is echoed: the front door hands on nothing that does not begin as a notification."""
ABOUT = (__doc__ or "").replace("{cost}", (notifications_cost.__doc__ or "").strip())


class Tenant:
    """The default project of the stack."""

    def __init__(self, local: dict[str, Any], session: aiohttp.ClientSession) -> None:
        self.local = local
        self.session = session
        self.topic = f"bench{time.time_ns()}"

    async def post(self, path: str, body: object) -> Any:
        """One request."""
        async with self.session.post(f"{self.local['base_url']}/notification2/{path}", json=body) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json(content_type=None)

    async def subscribe(self) -> None:
        """Create the topic's subscription."""
        await self.post("subscriptions", {"context": "tenant", "subscription": self.topic})

    async def publish(self, *numbers: int) -> None:
        """Publish these numbers in one request."""
        data = [{"api": "events", "source": "1", "data": {"n": each, "text": TEXT}} for each in numbers]
        await self.post("notifications", data)

    @asynccontextmanager
    async def consumer(self, subscriber: str) -> AsyncIterator[ClientConnection]:
        """A connected consumer; its subscriber is removed at the end."""
        token = (await self.post("token", {"subscriber": subscriber, "subscription": self.topic}))["token"]
        base = self.local["base_url"].replace("http", "ws", 1)
        url = f"{base}/notification2/consumer/?token={token}"
        async with websockets.connect(url, max_queue=None, open_timeout=60, ping_timeout=None) as connection:
            yield connection
        await self.post(f"unsubscribe?token={token}", {})


async def take(connection: ClientConnection, count: int, *, acknowledge: bool = True) -> list[str]:
    """Receive this many notifications; returns their ack ids."""
    ids: list[str] = []
    for _ in range(count):
        text = await asyncio.wait_for(connection.recv(), 120)
        assert isinstance(text, str)
        ids.append(text.partition("\n")[0])
        if acknowledge:
            await connection.send(ids[-1])
    return ids


async def latency(tenant: Tenant, count: int) -> tuple[list[float], list[float]]:
    """Time from before the post to the frame, one notification at a time; and the time of the post alone."""
    received: list[float] = []
    posted: list[float] = []
    async with tenant.consumer("latency") as connection:
        for number in range(count + 5):
            start = time.perf_counter()
            post = asyncio.create_task(tenant.publish(number))
            await take(connection, 1)
            received.append(time.perf_counter() - start)
            await post
            posted.append(time.perf_counter() - start)
            # The acknowledgement is worked off before the next one is published.
            await asyncio.sleep(0.05)
    return received[5:], posted[5:]


async def rate(tenant: Tenant, consumers: int, posts: int, per_post: int, publishers: int) -> float:
    """Deliveries per second: from the first post to the last frame at the last consumer, acknowledging all along."""
    names = [f"rate{number}" for number in range(consumers)]
    async with asyncio.TaskGroup() as setting_up:
        ready = [setting_up.create_task(_enter(tenant, name)) for name in names]
    opened = [each.result() for each in ready]
    numbers = iter(range(posts))
    start = time.perf_counter()

    async def publish() -> None:
        for number in numbers:
            await tenant.publish(*range(number * per_post, (number + 1) * per_post))

    async with asyncio.TaskGroup() as group:
        for _ in range(publishers):
            group.create_task(publish())
        for _, connection in opened:
            group.create_task(take(connection, posts * per_post))
    seconds = time.perf_counter() - start
    for manager, _ in opened:
        await manager.__aexit__(None, None, None)
    return consumers * posts * per_post / seconds


async def _enter(tenant: Tenant, name: str) -> tuple[Any, ClientConnection]:
    manager = tenant.consumer(name)
    return manager, await manager.__aenter__()


async def acknowledging(tenant: Tenant, count: int, *, together: bool) -> float:
    """Milliseconds per acknowledgement until it is noted in the table: all sent at once, or each after the previous one
    was noted.
    """
    dynamodb = boto3.client("dynamodb")
    name = tenant.local["outputs"]["BacklogsTableName"]
    async with tenant.consumer("acks") as connection:
        for start in range(0, count, 100):
            await tenant.publish(*range(start, min(count, start + 100)))
        ids = await take(connection, count, acknowledge=False)
        start_s = time.perf_counter()
        for left, each in reversed(list(enumerate(reversed(ids)))):
            await connection.send(each)
            while (not together or left == 0) and _unnoted(dynamodb, name, tenant) > left:
                await asyncio.sleep(0.002)
        return 1000 * (time.perf_counter() - start_s) / count


def _unnoted(dynamodb: Any, name: str, tenant: Tenant) -> int:
    """Number of notifications that are neither absorbed nor noted."""
    from pushhub.cloud.clock import SystemClock  # noqa: PLC0415
    from pushhub.notifications.model.topic import Topic  # noqa: PLC0415
    from pushhub.notifications.store.dynamodb_backlogs import DynamoDBBacklogStore, DynamoDBConnectionStore  # noqa: PLC0415

    topic = Topic(project=tenant.local["project_id"], name=tenant.topic)
    backlog = DynamoDBBacklogStore(dynamodb, name, SystemClock()).backlog(topic, "acks")
    assert backlog is not None
    (consumer,) = backlog.consumers
    noted = DynamoDBConnectionStore(dynamodb, name, SystemClock()).connections([consumer.connection_id])
    acknowledged = noted[consumer.connection_id].acknowledged
    return sum(each.position not in acknowledged for each in consumer.unacknowledged)


async def echo(local: dict[str, Any], count: int, *, logs: bool) -> list[float]:
    """Round trips of a frame on the same path with only an echo at its end."""
    url, door = _echo_path(local, "bench-logging-echo" if logs else "bench-silent-echo", ECHO_LOG if logs else "pass")
    try:
        samples: list[float] = []
        async with websockets.connect(url, open_timeout=60) as connection:
            for _ in range(count + 5):
                start = time.perf_counter()
                await connection.send(FRAME)
                await connection.recv()
                samples.append(time.perf_counter() - start)
        return samples[5:]
    finally:
        door.terminate()
        door.wait(10)


def _echo_path(local: dict[str, Any], name: str, log: str) -> tuple[str, subprocess.Popen[bytes]]:
    """A WebSocket API that echoes, behind a front door."""
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("handler.py", ECHO.format(log=log))
    functions, apis = boto3.client("lambda"), boto3.client("apigatewayv2")
    for api in apis.get_apis()["Items"]:
        if api["ApiId"] == ECHO_API:
            apis.delete_api(ApiId=ECHO_API)
    names = [each["FunctionName"] for each in functions.list_functions()["Functions"]]
    if name not in names:
        functions.create_function(
            FunctionName=name,
            Runtime="python3.11",
            Handler="handler.handler",
            Role="arn:aws:iam::000000000000:role/bench",
            Code={"ZipFile": code.getvalue()},
        )
    arn = functions.get_function_configuration(FunctionName=name)["FunctionArn"]
    apis.create_api(
        Name="bench-echo",
        ProtocolType="WEBSOCKET",
        RouteSelectionExpression="$request.body.action",
        Tags={"ms-custom-id": ECHO_API},
    )
    integration = apis.create_integration(ApiId=ECHO_API, IntegrationType="AWS_PROXY", IntegrationUri=arn)
    apis.create_route(ApiId=ECHO_API, RouteKey="$default", Target=f"integrations/{integration['IntegrationId']}")
    apis.create_stage(ApiId=ECHO_API, StageName="live", AutoDeploy=True)
    emulator = local["aws_endpoint_url"]
    port = int(local["base_url"].rpartition(":")[2]) + 50
    upstream = f"{emulator.replace('http', 'ws', 1)}/_aws/execute-api/{ECHO_API}/live"
    door = subprocess.Popen(
        [sys.executable, "-m", "local.front_door.http_door", str(port), emulator, upstream], cwd=ROOT
    )
    wait_until_open(port)
    return f"ws://127.0.0.1:{port}/notification2/consumer/", door


async def measure(local: dict[str, Any]) -> list[list[str]]:
    """The rows of speeds."""
    credentials = aiohttp.encode_basic_auth(f"{local['project_id']}/bench", local["token"])
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=120)
    headers = {"Authorization": credentials}
    busy = os.getloadavg()[0]
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, headers=headers) as session:
        tenant = Tenant(local, session)
        await tenant.subscribe()
        bare = await echo(local, 200, logs=True)
        silent = await echo(local, 50, logs=False)
        received, posted = await latency(tenant, 100)
        ack_ms = await acknowledging(tenant, 500, together=True)
        one_ack_ms = await acknowledging(tenant, 20, together=False)
        # As many processes of each function as are needed are started first.
        await rate(tenant, 1, 40, 1, 4)
        await rate(tenant, 50, 2, 1, 1)
        singles = await rate(tenant, 1, 200, 1, 4)
        batches = await rate(tenant, 1, 10, 100, 2)
        fifty = await rate(tenant, 50, 10, 1, 1)
        fifty_batches = await rate(tenant, 50, 1, 50, 1)
    return [
        ["bare echo, round trip", both(bare)],
        ["the same by a function that logs nothing", both(silent)],
        ["publish to receive, one at a time", both(received)],
        ["publish to its own answer (201)", both(posted)],
        ["one consumer, 4 publishers, 1 a post", f"{singles:.0f} notifications/s"],
        ["one consumer, 2 publishers, 100 a post", f"{batches:.0f} notifications/s"],
        ["50 consumers, 1 publisher, 1 a post", f"{fifty:.0f} deliveries/s"],
        ["50 consumers, 50 in one post", f"{fifty_batches:.0f} deliveries/s"],
        ["an acknowledgement until noted, 500 sent at once", f"{ack_ms:.1f} ms each"],
        ["an acknowledgement until noted, one at a time", f"{one_ack_ms:.0f} ms each"],
        ["processes that wanted to run, before it began", f"{busy:.1f} on {os.cpu_count()} cores"],
    ]


def both(times: list[float]) -> str:
    """A cell of two percentiles."""
    return "p50 {} ms, p95 {} ms".format(*percentiles(times))


def main() -> None:
    """Measure, count, print, save."""
    page = Page("Notifications: speed and cost", ABOUT)
    local = described()
    os.environ["AWS_ENDPOINT_URL"] = local["aws_endpoint_url"]
    os.environ["AWS_DEFAULT_REGION"] = local["region"]
    os.environ["AWS_ACCESS_KEY_ID"] = os.environ["AWS_SECRET_ACCESS_KEY"] = "test"
    page.table(["what", "on this machine"], asyncio.run(measure(local)))
    del os.environ["AWS_ENDPOINT_URL"]
    page.tell(*notifications_cost.cost_tables())
    page.save()


if __name__ == "__main__":
    main()
