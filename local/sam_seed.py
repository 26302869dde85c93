"""Work for each function that waits on the running stack, and events that name it.

The stack's own functions bring a project's messages as far as each event begins; then the work waits
(:mod:`local.hold`), until somebody runs the function with the event, or the stack is released and goes on by itself. So
every event is about something that lives: nothing is made up, and the delivery report accounts for all of it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import aiohttp
import requests

from local import hold, projects
from local.aws import Aws
from local.demonstration import order_flow
from local.demonstration.hub import Hub
from local.demonstration.notification_flow import Tenant
from local.errors import LocalError
from local.place import REGION, REPOSITORY, Place
from local.stack import Description
from pushhub.cloud.clock import SystemClock
from pushhub.hub.model.object_ids import from_object_id
from pushhub.hub.store.dynamodb_schedulers import DynamoDBSchedulers
from pushhub.ironmq.store._pull_items import MESSAGE
from pushhub.notifications.model.topic import Topic
from pushhub.notifications.ports import Connection
from pushhub.notifications.store.dynamodb_backlogs import DynamoDBBacklogStore, DynamoDBConnectionStore

EXAMPLES = REPOSITORY / "events"
EXAMPLE_PROJECT = "5b6c2f1d9e8a4c7b3d2e1f0a"
EXAMPLE_APPLICATION = "app_3MRPxozw7TPC3MSkZFTrdbEFpc6"
TOPIC = "machines"
RECORDED = ("Messages", "Pull", "Backlogs")
"""Tables whose changes are recorded."""
SECONDS = 90.0
"""How long the seeding may take."""
PING_S = 60.0
"""How often the consumer pings; the front door closes connections that idle for five minutes."""
_HELD_S = 43_000
"""How long work that an event names stays hidden from the stack."""


@dataclass(kw_only=True)
class Seeded:
    """What was seeded.

    Attributes:
        project: Whose it is.
        message_ids: What it is called here, and its message id.
        events: Each event by the name of its example.
    """

    project: projects.Credentials
    message_ids: dict[str, str] = field(default_factory=dict)
    events: dict[str, Any] = field(default_factory=dict)


class _Stream:
    """Changes of one project in a table, as an event source mapping passes them to a function."""

    def __init__(self, aws: Aws, table: str, project_id: str) -> None:
        self._client = aws.dynamodb_streams()
        self._arn = str(aws.dynamodb().describe_table(TableName=table)["Table"]["LatestStreamArn"])
        self._project_id = project_id
        self._known: set[str] = set()

    def forget(self) -> None:
        """Leave out from now on what is there now."""
        self._known = {each["dynamodb"]["SequenceNumber"] for each in self.records()}

    def records(self) -> Iterator[dict[str, Any]]:
        """All of them, oldest first."""
        for shard in self._client.describe_stream(StreamArn=self._arn)["StreamDescription"]["Shards"]:
            iterator: str | None = self._client.get_shard_iterator(
                StreamArn=self._arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            ).get("ShardIterator")
            while iterator:
                page = self._client.get_records(ShardIterator=iterator)
                for record in page["Records"]:
                    known = record["dynamodb"]["SequenceNumber"] in self._known
                    if not known and record["dynamodb"]["Keys"]["pk"]["S"].startswith(self._project_id):
                        yield _plain(record) | {"eventSourceARN": self._arn}
                iterator = page.get("NextShardIterator") if page["Records"] else None


def _plain(value: Any) -> Any:
    """A value of the SDK as it appears in an event."""
    match value:
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            return int(value.timestamp())
        case _:
            return value


class _Worker:
    """Does what the disabled event source mappings would do.

    Args:
        aws: Clients of the stack.
        description: The stack.
        project_id: The project whose work it does; that of others stays where it is.
    """

    def __init__(self, aws: Aws, description: Description, project_id: str) -> None:
        self._aws = aws
        self._outputs = description.outputs
        self._project_id = project_id
        self._messages = _Stream(aws, self._outputs["MessagesTableName"], project_id)
        self._dispatched: set[str] = set()
        self._taken: dict[str, list[dict[str, Any]]] = {}
        self._receipts: list[tuple[str, str]] = []

    def message_record(self, message_id: str) -> dict[str, Any]:
        """The stream's record of a message that was posted."""
        return next(each for each in self._new_messages() if _message_id(each) == message_id)

    def dispatch(self, leave: set[str]) -> None:
        """Queue what was posted, except for some messages."""
        for record in self._new_messages():
            message_id = _message_id(record)
            if message_id not in leave | self._dispatched:
                # One by one, so that no two share a message of the queue.
                self._invoke("Dispatch", [record])
                self._dispatched.add(message_id)

    def push(self, leave: set[str]) -> None:
        """Route, and make the first attempts that wait, except for some messages."""
        for queue in ("Route", "Push"):
            due = [each for each in self.waiting(queue) if not _names(each, leave)]
            if due:
                self._invoke("Push", due)
                self.give_up(queue, due)

    def hand_to_slow_lane(self, message_ids: set[str]) -> None:
        """Treat waiting first attempts as push treats those of slow subscribers."""
        due = [each for each in self.waiting("Push") if _names(each, message_ids)]
        for record in due:
            self._aws.sqs().send_message(QueueUrl=self._outputs["SlowQueueUrl"], MessageBody=record["body"])
        self.give_up("Push", due)

    def waiting(self, queue: str) -> list[dict[str, Any]]:
        """What waits in a queue, as records of an event. It stays there, hidden from others."""
        client, url = self._aws.sqs(), self._outputs[f"{queue}QueueUrl"]
        taken = self._taken.setdefault(queue, [])
        while True:
            answer = client.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=_HELD_S, MessageSystemAttributeNames=["All"]
            )
            received = answer.get("Messages", [])
            if not received:
                return taken
            for message in received:
                self._receipts.append((url, message["ReceiptHandle"]))
                if self._project_id in message["Body"]:
                    taken.append(_sqs_record(message, url))

    def give_up(self, queue: str, records: Sequence[dict[str, Any]]) -> None:
        """Delete from a queue what has been processed."""
        client, url = self._aws.sqs(), self._outputs[f"{queue}QueueUrl"]
        for record in records:
            client.delete_message(QueueUrl=url, ReceiptHandle=record["receiptHandle"])
            self._taken[queue].remove(record)

    def show_again(self) -> None:
        """Make the waiting work visible to the stack."""
        client = self._aws.sqs()
        for url, receipt in self._receipts:
            # Work that has been done in the meantime is gone.
            with contextlib.suppress(client.exceptions.ClientError):
                client.change_message_visibility(QueueUrl=url, ReceiptHandle=receipt, VisibilityTimeout=0)

    def _new_messages(self) -> list[dict[str, Any]]:
        return [
            record
            for record in self._messages.records()
            if record["eventName"] == "INSERT" and record["dynamodb"]["NewImage"]["kind"]["S"] == "message"
        ]

    def _invoke(self, function: str, records: Sequence[dict[str, Any]]) -> None:
        answer = self._aws.functions().invoke(
            FunctionName=self._outputs[f"{function}FunctionName"], Payload=json.dumps({"Records": list(records)})
        )
        said = json.loads(answer["Payload"].read())
        if answer.get("FunctionError") or said.get("batchItemFailures"):
            raise LocalError(f"the {function} function could not do what was seeded for it: {said}")


def _message_id(record: dict[str, Any]) -> str:
    return str(record["dynamodb"]["Keys"]["pk"]["S"]).rpartition("#")[2]


def _names(record: dict[str, Any], message_ids: set[str]) -> bool:
    return any(f'"{each}"' in record["body"] for each in message_ids)


def _sqs_record(message: Any, url: str) -> dict[str, Any]:
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message.get("Attributes", {}),
        "messageAttributes": {},
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:{REGION}:000000000000:{url.rpartition('/')[2]}",
        "awsRegion": REGION,
    }


@contextlib.asynccontextmanager
async def seeded(
    place: Place, description: Description, address: str, say: Callable[[str], None]
) -> AsyncIterator[Seeded]:
    """Prepare work, and keep the stack from doing it (or anything else) until the end.

    Args:
        place: The stack's files.
        description: The stack.
        address: This machine as the functions that will be run see it: endpoints and a consumer are there.
        say: Told of what endpoints and consumer receive.

    Raises:
        LocalError: The stack did not bring the messages as far as needed.
    """
    aws = Aws(description.aws_endpoint_url)
    name = f"sam-local-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    made = projects.make(aws, description.outputs["ConfigTableName"], name, place.projects, allowed_targets=(address,))
    own = replace(description, project_id=made.project_id, token=made.token)
    result = Seeded(project=made)
    worker = _Worker(aws, own, made.project_id)
    scheduler = ""
    session = aiohttp.ClientSession(
        headers={"Authorization": aiohttp.encode_basic_auth(f"{made.project_id}/sam", made.token)},
        timeout=aiohttp.ClientTimeout(total=40),
    )
    try:
        async with (
            order_flow.Endpoints(say=say).serve(address) as endpoints,
            order_flow.Store(own) as store,
            Hub(own.base_url, own.project_id, own.token) as hub,
            session,
        ):
            tenant = Tenant(stack=own, session=session, name="dashboard")
            await tenant.post("/subscriptions", {"context": "tenant", "subscription": TOPIC})
            token = str((await tenant.post("/token", {"subscriber": "dashboard", "subscription": TOPIC}))["token"])
            async with tenant.connect(token) as consumer:
                await tenant.publish_to(TOPIC, 1)
                ack_id = (await consumer.receive_str(timeout=SECONDS)).partition("\n")[0]
                await asyncio.to_thread(hold.hold, aws, own.outputs)
                # The stack has recorded what came before, or has begun to.
                recorded = {table: _Stream(aws, own.outputs[f"{table}TableName"], own.project_id) for table in RECORDED}
                for stream in recorded.values():
                    await asyncio.to_thread(stream.forget)
                _events_of_consumers(result, aws, own, ack_id)
                await _event_of_connect(result, tenant)
                await _post(result, hub, address)
                scheduler = await _schedule(aws, own, store)
                await store.register("warehouse", f"{endpoints.url}/warehouse")
                await store.call("POST", "/messages", {"message": "order:new", "payload": {"order": order_flow.ORDER}})
                unwanted = await store.call("POST", "/messages", {"message": "sam:routed", "payload": {}})
                result.message_ids["route"] = from_object_id(unwanted["message_id"]) or ""
                await tenant.publish_to(TOPIC, 2)
                await asyncio.to_thread(_bring_on, result, worker)
                _events_of_records(result, recorded)
                _events_of_requests(result, own)
                listening = asyncio.create_task(listen(consumer, say))
                try:
                    yield result
                finally:
                    listening.cancel()
                    await asyncio.gather(listening, return_exceptions=True)
                    if scheduler:
                        await store.call("DELETE", f"/schedulers/{scheduler}")
    finally:
        await asyncio.to_thread(worker.show_again)
        await asyncio.to_thread(hold.release, aws)


async def listen(
    consumer: aiohttp.ClientWebSocketResponse, say: Callable[[str], None], *, ping_s: float = PING_S
) -> None:
    """Tell what the consumer receives. It pings, because a connection that idles is closed, and its events with it."""
    pings = asyncio.create_task(_ping(consumer, ping_s))
    try:
        async for message in consumer:
            if message.type is aiohttp.WSMsgType.TEXT:
                say(f"the consumer received {message.data.rpartition(chr(10))[2]}")
    finally:
        pings.cancel()
        await asyncio.gather(pings, return_exceptions=True)


async def _ping(consumer: aiohttp.ClientWebSocketResponse, every_s: float) -> None:
    while not consumer.closed:
        await asyncio.sleep(every_s)
        await consumer.ping()


async def _post(result: Seeded, hub: Hub, address: str) -> None:
    """Queues and messages."""
    # Nothing listens on the discard port.
    closed = {"name": "closed", "url": f"http://{address}:9/"}
    push = {"retries_delay": 3, "error_queue": "failed"}
    both = [{"name": "copies", "url": "ironmq:///copies"}, closed]
    await hub.put_queue("shop", {"type": "multicast", "push": push | {"subscribers": both, "retries": 1}})
    await hub.put_queue("once", {"type": "multicast", "push": push | {"subscribers": [closed], "retries": 0}})
    for name, queue in (
        ("dispatch", "shop"),
        ("push", "shop"),
        ("slow", "shop"),
        ("retry", "shop"),
        ("errors", "once"),
    ):
        (result.message_ids[name],) = await hub.post(queue, [f"seeded for {name}"])
    await hub.post("inbox", [f"seeded to be reserved, {number}" for number in (1, 2, 3)])


async def _schedule(aws: Aws, own: Description, store: order_flow.Store) -> str:
    """A scheduler of the hub protocol whose time has come."""
    made = await store.call(
        "POST", "/schedulers", {"scheduler": {"key": "sam:tick", "count": 1, "interval": "minutes"}}
    )
    settings = DynamoDBSchedulers(aws.dynamodb(), own.outputs["HubTableName"], SystemClock())
    scheduler = settings.scheduler(own.project_id, made["id"])
    if scheduler is None:
        raise LocalError("the scheduler that was seeded is not there")
    settings.put_scheduler(replace(scheduler, next_at=scheduler.created_at))
    return str(made["id"])


def _bring_on(result: Seeded, worker: _Worker) -> None:
    """Let the stack's functions work until something waits for each event."""
    ids = result.message_ids
    events = result.events
    events["dispatch-stream-messages"] = {"Records": [worker.message_record(ids["dispatch"])]}
    deadline = time.monotonic() + SECONDS
    while True:
        worker.dispatch({ids["dispatch"]})
        worker.hand_to_slow_lane({ids["slow"]})
        worker.push({ids["push"], ids["route"], ids["slow"]})
        found = {
            "push-sqs-first-attempts": [each for each in worker.waiting("Push") if _names(each, {ids["push"]})],
            "poll-sqs-slow": [each for each in worker.waiting("Slow") if _names(each, {ids["slow"]})],
            "push-sqs-routing": [each for each in worker.waiting("Route") if _names(each, {ids["route"]})],
            "push-sqs-retries": [each for each in worker.waiting("Retry") if _names(each, {ids["retry"]})],
            "errors-sqs-exhausted": [each for each in worker.waiting("Errors") if _names(each, {ids["errors"]})],
            "poll-sqs-polls": worker.waiting("Poll"),
            "notify-sqs-wakes": worker.waiting("Notify"),
        }
        lacking = [name for name, records in found.items() if not records]
        if not lacking:
            break
        if time.monotonic() > deadline:
            raise LocalError(f"nothing came to wait for {', '.join(lacking)} within {SECONDS:.0f} s")
        time.sleep(0.3)
    events |= {name: {"Records": records} for name, records in found.items()}


def _events_of_records(result: Seeded, streams: dict[str, _Stream]) -> None:
    """Changes that the stack has not recorded."""
    for table, stream in streams.items():
        records = list(stream.records())
        if table == "Pull":
            # The mapping's filter leaves places in the queue out.
            records = [each for each in records if each["dynamodb"]["Keys"]["sk"]["S"] == MESSAGE]
        result.events[f"records-stream-{table.lower()}"] = {"Records": records[-20:]}


def _events_of_consumers(result: Seeded, aws: Aws, own: Description, ack_id: str) -> None:
    """A frame of the consumer that is connected, and a connection that has died unnoticed."""
    dynamodb, table = aws.dynamodb(), own.outputs["BacklogsTableName"]
    topic = Topic(project=own.project_id, name=TOPIC)
    backlog = DynamoDBBacklogStore(dynamodb, table, SystemClock()).backlog(topic, "dashboard")
    if backlog is None or not backlog.consumers:
        raise LocalError("the consumer that was seeded is not connected")
    result.events["consumers-websocket-frame"] = _example("consumers-websocket-frame") | {"body": ack_id}
    result.events["consumers-websocket-frame"]["requestContext"]["connectionId"] = backlog.consumers[0].connection_id
    dead = Connection(
        connection_id="c2FtLWxvY2FsLWlkbGU=",
        topic=topic,
        subscriber="gone",
        subscriber_uid="0" * 12,
        shared=False,
        opened_at=backlog.consumers[0].joined_at,
    )
    DynamoDBConnectionStore(dynamodb, table, SystemClock()).open(dead, check_at=dead.opened_at)
    result.events["notify-schedule"] = _example("notify-schedule")
    result.events["wake-schedule"] = _example("wake-schedule")
    result.events["sweep-schedule"] = _example("sweep-schedule")


async def _event_of_connect(result: Seeded, tenant: Tenant) -> None:
    """A handshake of a second subscriber, and its end."""
    token = str((await tenant.post("/token", {"subscriber": "second", "subscription": TOPIC}))["token"])
    connect = _example("consumers-websocket-connect")
    connect["queryStringParameters"]["token"] = token
    connect["multiValueQueryStringParameters"]["token"] = [token]
    result.events["consumers-websocket-connect"] = connect
    result.events["consumers-websocket-disconnect"] = _example("consumers-websocket-disconnect")


def _application(own: Description) -> str:
    """Create or find a webhooks application; return its id."""
    answer = requests.post(
        f"{own.base_url}/api/v1/app?get_if_exists=true",
        json={"name": "Shop", "uid": "shop"},
        headers={"Authorization": f"Bearer {own.token}"},
        timeout=SECONDS,
    )
    answer.raise_for_status()
    return str(answer.json()["id"])


def _events_of_requests(result: Seeded, own: Description) -> None:
    """Requests with this project, its token, and the queues that were made."""
    for name, old, new in (
        ("control-http-create-queue", "", ""),
        ("control-http-list-queues", "prefix=or", "prefix=s"),
        (
            "control-http-push-statuses",
            "/orders/messages/1911857267695685120",
            f"/shop/messages/{result.message_ids['retry']}",
        ),
        ("control-http-reserve-messages", "/orders-errors/", "/inbox/"),
        ("past-http-start-search", "", ""),
        ("past-http-show-search", "", ""),
        ("ingest-http-post-messages", "/orders/", "/shop/"),
        ("ingest-url-post-messages", "", ""),
        ("ingest-http-webhook", "", ""),
        ("ingest-http-push-hub-message", "", ""),
        ("ingest-http-publish-notification", "", ""),
        ("ingest-http-post-webhook-message", EXAMPLE_APPLICATION, _application(own)),
    ):
        text = json.dumps(_example(name)).replace(EXAMPLE_PROJECT, own.project_id)
        event = json.loads(text.replace(old, new) if old else text)
        headers = event["headers"]
        if "x-augury-token" in headers:
            headers["x-augury-token"] = own.token
        else:
            headers["authorization"] = f"{headers['authorization'].split()[0]} {own.token}"
        if name == "control-http-list-queues":
            event["queryStringParameters"]["prefix"] = "s"
        if name == "ingest-http-post-messages":
            event["pathParameters"]["queue"] = "shop"
        if name == "control-http-create-queue":
            body = json.loads(event["body"])
            for subscriber in body["queue"]["push"]["subscribers"]:
                subscriber["url"] = f"ironmq:///{subscriber['name']}"
                subscriber.pop("headers", None)
            event["body"] = json.dumps(body)
            headers["content-length"] = str(len(event["body"].encode()))
        result.events[name] = event
    for name in ("console-http-page", "console-http-file"):
        result.events[name] = _example(name)


def _example(name: str) -> Any:
    return json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
