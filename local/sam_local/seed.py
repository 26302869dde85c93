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
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import aiohttp

from local import hold, projects
from local.aws import Aws
from local.demo.clients import Client, Hub, Store, Tenant, serve
from local.demo.shop import KEY, ORDER, Shop
from local.errors import LocalError, Say
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
EXAMPLE_PROJECT, EXAMPLE_TOKEN = "5b6c2f1d9e8a4c7b3d2e1f0a", "Zx3nV0sK9qTb7mLr2YwHc8Jd5PfGa1Ue"
EXAMPLE_SOURCE, EXAMPLE_SOURCE_TOKEN = "src_3MRPxozwlbpv3eYVMIVKFWpsdzC", "kV6mTq0nJYbY2ZC2w1o0lWQ7uJcJ5rQh"
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
        return next(record for each, record in self._new_messages() if each == message_id)

    def dispatch(self, leave: str) -> None:
        """Queue what was posted, except for one message."""
        for message_id, record in self._new_messages():
            if message_id != leave and message_id not in self._dispatched:
                # One by one, so that no two share a message of the queue.
                self._invoke("Dispatch", [record])
                self._dispatched.add(message_id)

    def push(self, leave: Sequence[str]) -> None:
        """Route, and make the first attempts that wait, except for some messages."""
        for queue in ("Route", "Push"):
            due = [each for each in self.waiting(queue) if each not in self.waiting(queue, *leave)]
            if due:
                self._invoke("Push", due)
                self._give_up(queue, due)

    def hand_to_slow_lane(self, message_id: str) -> None:
        """Treat a message's first attempts as push treats those of slow subscribers."""
        due = self.waiting("Push", message_id)
        for record in due:
            self._aws.sqs().send_message(QueueUrl=self._outputs["SlowQueueUrl"], MessageBody=record["body"])
        self._give_up("Push", due)

    def waiting(self, queue: str, *message_ids: str) -> list[dict[str, Any]]:
        """What waits in a queue (about some messages), as records of an event. It stays there, hidden from others."""
        client, url = self._aws.sqs(), self._outputs[f"{queue}QueueUrl"]
        taken = self._taken.setdefault(queue, [])
        while received := client.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=_HELD_S, MessageSystemAttributeNames=["All"]
        ).get("Messages", []):
            for message in received:
                self._receipts.append((url, message["ReceiptHandle"]))
                if self._project_id in message["Body"]:
                    taken.append(_sqs_record(message, url))
        wanted = [f'"{each}"' for each in message_ids] or [""]
        return [record for record in taken if any(each in record["body"] for each in wanted)]

    def _give_up(self, queue: str, records: Sequence[dict[str, Any]]) -> None:
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

    def _new_messages(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for record in self._messages.records():
            if record["eventName"] == "INSERT" and record["dynamodb"]["NewImage"]["kind"]["S"] == "message":
                yield record["dynamodb"]["Keys"]["pk"]["S"].rpartition("#")[2], record

    def _invoke(self, function: str, records: Sequence[dict[str, Any]]) -> None:
        answer = self._aws.functions().invoke(
            FunctionName=self._outputs[f"{function}FunctionName"], Payload=json.dumps({"Records": list(records)})
        )
        said = json.loads(answer["Payload"].read())
        if answer.get("FunctionError") or said.get("batchItemFailures"):
            raise LocalError(f"the {function} function could not do what was seeded for it: {said}")


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
async def seeded(place: Place, description: Description, address: str, say: Say) -> AsyncIterator[Seeded]:
    """Prepare work, and keep the stack from doing it (or anything else) until the end.

    Args:
        address: This machine as the functions that will be run see it: endpoints and a consumer are there.
    """
    aws = Aws(description.aws_endpoint_url)
    name = f"sam-local-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    credentials = projects.make(
        aws, description.outputs["ConfigTableName"], name, place.projects, allowed_targets=(address,)
    )
    own = replace(description, project_id=credentials.project_id, token=credentials.token)
    result = Seeded(project=credentials)
    worker = _Worker(aws, own, credentials.project_id)
    scheduler = ""
    try:
        async with (
            serve(Shop(say).routes(), address) as url,
            Store(own) as store,
            Hub(own) as hub,
            Tenant(own, user="sam", topic=TOPIC, subscriber="dashboard") as tenant,
        ):
            await tenant.subscribe()
            async with tenant.connect(await tenant.token()) as consumer:
                await tenant.publish([1])
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
                await store.register("warehouse", f"{url}/warehouse", KEY)
                await store.call("POST", "/messages", {"message": "order:new", "payload": {"order": ORDER}})
                unwanted = await store.call("POST", "/messages", {"message": "sam:routed", "payload": {}})
                result.message_ids["route"] = from_object_id(unwanted["message_id"]) or ""
                await tenant.publish([2])
                await asyncio.to_thread(_bring_on, result, worker)
                _events_of_records(result, recorded)
                await _events_of_requests(result, own)
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


async def listen(consumer: aiohttp.ClientWebSocketResponse, say: Say, *, ping_s: float = PING_S) -> None:
    """Tell what the consumer receives. It pings, because a connection that idles is closed, and its events with it."""
    while not consumer.closed:
        try:
            message = await consumer.receive(timeout=ping_s)
        except TimeoutError:
            await consumer.ping()
            continue
        if message.type is aiohttp.WSMsgType.TEXT:
            say(f"the consumer received {message.data.rpartition(chr(10))[2]}")


def queue_of(name: str) -> str:
    """The queue of a message that was seeded for something."""
    return "once" if name == "errors" else "shop"


async def _post(result: Seeded, hub: Hub, address: str) -> None:
    """Queues and messages."""
    # Nothing listens on the discard port.
    closed = {"name": "closed", "url": f"http://{address}:9/"}
    push = {"retries_delay": 3, "error_queue": "failed"}
    both = [{"name": "copies", "url": "ironmq:///copies"}, closed]
    await hub.put_queue("shop", {"type": "multicast", "push": push | {"subscribers": both, "retries": 1}})
    await hub.put_queue("once", {"type": "multicast", "push": push | {"subscribers": [closed], "retries": 0}})
    for name in ("dispatch", "push", "slow", "retry", "errors"):
        (result.message_ids[name],) = await hub.post(queue_of(name), [f"seeded for {name}"])
    await hub.post("inbox", [f"seeded to be reserved, {number}" for number in (1, 2, 3)])


async def _schedule(aws: Aws, own: Description, store: Store) -> str:
    """A scheduler of the hub protocol whose time has come."""
    created = await store.call(
        "POST", "/schedulers", {"scheduler": {"key": "sam:tick", "count": 1, "interval": "minutes"}}
    )
    settings = DynamoDBSchedulers(aws.dynamodb(), own.outputs["HubTableName"], SystemClock())
    scheduler = settings.scheduler(own.project_id, created["id"])
    if scheduler is None:
        raise LocalError("the scheduler that was seeded is not there")
    settings.put_scheduler(replace(scheduler, next_at=scheduler.created_at))
    return str(created["id"])


def _bring_on(result: Seeded, worker: _Worker) -> None:
    """Let the stack's functions work until something waits for each event."""
    ids = result.message_ids
    result.events["dispatch-stream-messages"] = {"Records": [worker.message_record(ids["dispatch"])]}
    deadline = time.monotonic() + SECONDS
    while True:
        worker.dispatch(leave=ids["dispatch"])
        worker.hand_to_slow_lane(ids["slow"])
        worker.push(leave=(ids["push"], ids["route"], ids["slow"]))
        found = {
            "push-sqs-first-attempts": worker.waiting("Push", ids["push"]),
            "poll-sqs-slow": worker.waiting("Slow", ids["slow"]),
            "push-sqs-routing": worker.waiting("Route", ids["route"]),
            "push-sqs-retries": worker.waiting("Retry", ids["retry"]),
            "errors-sqs-exhausted": worker.waiting("Errors", ids["errors"]),
            "poll-sqs-polls": worker.waiting("Poll"),
            "notify-sqs-wakes": worker.waiting("Notify"),
        }
        lacking = [name for name, records in found.items() if not records]
        if not lacking:
            break
        if time.monotonic() > deadline:
            raise LocalError(f"nothing came to wait for {', '.join(lacking)} within {SECONDS:.0f} s")
        time.sleep(0.3)
    result.events |= {name: {"Records": records} for name, records in found.items()}


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
    frame = result.events["consumers-websocket-frame"] = _example("consumers-websocket-frame") | {"body": ack_id}
    frame["requestContext"]["connectionId"] = backlog.consumers[0].connection_id
    dead = Connection(
        connection_id="c2FtLWxvY2FsLWlkbGU=",
        topic=topic,
        subscriber="gone",
        subscriber_uid="0" * 12,
        shared=False,
        opened_at=backlog.consumers[0].joined_at,
    )
    DynamoDBConnectionStore(dynamodb, table, SystemClock()).open(dead, check_at=dead.opened_at)


async def _event_of_connect(result: Seeded, tenant: Tenant) -> None:
    """A handshake of a second subscriber."""
    token = await tenant.token("second")
    connect = _example("consumers-websocket-connect")
    connect["queryStringParameters"]["token"] = token
    connect["multiValueQueryStringParameters"]["token"] = [token]
    result.events["consumers-websocket-connect"] = connect


async def _events_of_requests(result: Seeded, own: Description) -> None:
    """All other examples, with this project, its token, and the queues, application and source that were made."""
    async with Client(own.base_url, {"Authorization": f"Bearer {own.token}"}) as webhooks:
        application = await webhooks.call("POST", "/api/v1/app?get_if_exists=true", {"name": "Shop", "uid": "shop"})
        source = await webhooks.call("PUT", "/ingest/api/v1/source/repos", {"name": "Repositories", "type": "github"})
    source_id, token = source["ingestUrl"].rsplit("/", 2)[1:]
    retried = result.message_ids["retry"]
    changes = {
        "control-http-create-queue": {
            "https://warehouse.example/hooks/orders": "ironmq:///warehouse",
            "https://crm.example/in": "ironmq:///crm",
            r", \"headers\": {\"Authorization\": \"Bearer 6f1c\"}": "",
        },
        "control-http-list-queues": {"prefix=or": "prefix=s", '"prefix": "or"': '"prefix": "s"'},
        "control-http-push-statuses": {"/orders/messages/1911857267695685120": f"/shop/messages/{retried}"},
        "control-http-reserve-messages": {"/orders-errors/": "/inbox/"},
        "ingest-http-post-messages": {"/orders/": "/shop/", '"queue": "orders"': '"queue": "shop"'},
        "ingest-http-take-in": {EXAMPLE_SOURCE: source_id, EXAMPLE_SOURCE_TOKEN: token},
        "ingest-http-post-webhook-message": {"app_3MRPxozw7TPC3MSkZFTrdbEFpc6": str(application["id"])},
    }
    for name in sorted({file.stem for file in EXAMPLES.glob("*.json")} - result.events.keys()):
        own_and_changed = {EXAMPLE_PROJECT: own.project_id, EXAMPLE_TOKEN: own.token, **changes.get(name, {})}
        event = _example(name, own_and_changed)
        if name == "control-http-create-queue":
            event["headers"]["content-length"] = str(len(event["body"].encode()))
        result.events[name] = event


def _example(name: str, changes: Mapping[str, str] = {}) -> Any:
    text = (EXAMPLES / f"{name}.json").read_text(encoding="utf-8")
    for old, new in changes.items():
        text = text.replace(old, new)
    return json.loads(text)
