"""Streams of a running hub: Svix's unmodified client makes sinks and posts, boto3 reads objects and records."""

from __future__ import annotations

import base64
import json
import subprocess
from typing import Any

import pytest
from tests.stack.project import unique
from tests.stack.test_destinations import ACCOUNT, REGION, ROLE, Cloud, Hub, cloud, hub, until
from tests.stack.webhooks import clients

__all__ = ["cloud", "hub"]

pytestmark = pytest.mark.stack

CLIENT = """
import json, sys
from svix import Svix, SvixOptions, models
base, token, uid, config = sys.argv[1:]
streaming = Svix(token, SvixOptions(server_url=base, timeout=60)).streaming
stream = streaming.stream.create(models.StreamIn(name="Orders", uid=uid))
assert streaming.stream.get(uid).id == stream.id
assert uid in [each.uid for each in streaming.stream.list().data]
assert streaming.stream.patch(uid, models.StreamPatch(metadata={"a": "b"})).metadata == {"a": "b"}
assert streaming.stream.upsert(uid, models.StreamIn(name="Orders", uid=uid)).metadata == {}
kind = f"{uid}.paid"
streaming.event_type.create(models.StreamEventTypeIn(name=kind))
assert streaming.event_type.patch(kind, models.StreamEventTypePatch(description="Paid")).description == "Paid"
assert streaming.event_type.get(kind).deprecated is False
flagged = models.StreamEventTypeIn(name=kind, feature_flags=["x"])
assert streaming.event_type.upsert(kind, flagged).feature_flags == ["x"]
assert kind in [each.name for each in streaming.event_type.list().data]

wanted = models.StreamSinkIn(type="amazonS3", uid="archive", batch_size=4, config=json.loads(config))
sink = streaming.sink.create(uid, wanted)
assert (sink.config.bucket, sink.batch_size, sink.status) == (json.loads(config)["bucket"], 4, "enabled")
poller = streaming.sink.create(uid, models.StreamSinkIn(type="poller", config={}))
calls = models.StreamSinkIn(type="http", status="disabled", config={"url": "https://example.com/in"})
http = streaming.sink.create(uid, calls)
assert len(streaming.sink.list(uid).data) == 3
assert streaming.sink.get_secret(uid, http.id).key.startswith("whsec_")
assert streaming.sink.rotate_secret(uid, http.id, models.EndpointSecretRotateIn()).key.startswith("whsec_")
changed = streaming.sink_headers_patch(uid, http.id, models.HttpSinkHeadersPatchIn(headers={"X-Team": "orders"}))
assert changed.headers == streaming.sink_headers_get(uid, http.id).headers == {"X-Team": "orders"}
patch = models.StreamSinkPatch(type="amazonS3", max_wait_secs=1, config={})
assert streaming.sink.patch(uid, "archive", patch).config.bucket == sink.config.bucket
assert streaming.sink.upsert(uid, "archive", wanted).id == sink.id
assert streaming.sink.transformation.get(uid, sink.id).enabled is False
code = "function handler(i) { return { config: { key: 'odd' }, data: i.events.filter((e) => e.payload.n % 2) } }"
streaming.sink.create(uid, models.StreamSinkIn(type="amazonS3", uid="odd", config=json.loads(config)))
streaming.sink.transformation.patch(uid, "odd", models.SinkTransformIn(code=code))
assert streaming.sink.transformation.get(uid, "odd").code == code
assert streaming.sink.transformation.get(uid, "odd").enabled
streaming.sink.delete(uid, http.id)

for start in range(0, 10, 5):
    events = [models.EventIn(event_type=kind, payload=json.dumps({"n": each})) for each in range(start, start + 5)]
    streaming.events.create(uid, models.CreateStreamEventsIn(events=events))
found, iterator = [], None
while len(found) < 10:
    from svix.api import StreamingEventsGetOptions
    read = streaming.events.get(uid, poller.id, StreamingEventsGetOptions(limit=3, iterator=iterator))
    found += [json.loads(each.payload)["n"] for each in read.data]
    iterator = read.iterator

authentication = Svix(token, SvixOptions(server_url=base)).authentication
opened = authentication.stream_portal_access(uid, models.StreamPortalAccessIn())
own = authentication.get_stream_poller_token(uid, poller.id)
asked = models.RotatePollerTokenIn(expiry=3600, old_token_expiry=0)
other = authentication.rotate_stream_poller_token(uid, poller.id, asked)
assert other.token != own.token
Svix(other.token, SvixOptions(server_url=base)).streaming.events.get(uid, poller.id)
Svix(opened.token, SvixOptions(server_url=base)).authentication.stream_logout()
authentication.stream_expire_all(uid, models.StreamTokenExpireIn())
streaming.event_type.delete(kind)
print(json.dumps([sink.id, found]))
"""


def lines(content: bytes) -> list[int]:
    return [json.loads(each)["payload"]["n"] for each in content.splitlines()]


def test_svixs_client_makes_a_stream_and_boto3_reads_the_objects(hub: Hub, cloud: Cloud) -> None:
    # Given a bucket, and the unmodified client, which makes a stream and its sinks, posts ten events, and polls them
    s3, bucket, uid = cloud.client("s3"), unique("orders"), unique("stream")
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
    config = {"bucket": bucket, "region": REGION, "roleArn": ROLE, "endpointUrl": cloud.url}
    ran = subprocess.run(
        [str(clients.python(2)), "-c", CLIENT, hub.base_url, hub.project.token, uid, json.dumps(config)],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    _, polled = json.loads(ran.stdout)
    assert polled == list(range(10))

    def keys() -> list[str]:
        return [each["Key"] for each in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]

    # Then the bucket has them in objects of at most four, in order
    def written() -> list[list[int]] | None:
        names = [each for each in keys() if not each.startswith("odd-")]
        found = [lines(s3.get_object(Bucket=bucket, Key=each)["Body"].read()) for each in sorted(names)]
        return found if sum(map(len, found)) >= 10 else None

    found = until(written)
    assert [each for one in found for each in one] == list(range(10))
    assert max(map(len, found)) <= 4

    # And what the code of the other sink made of them
    def chosen() -> list[int] | None:
        names = sorted(each for each in keys() if each.startswith("odd-"))
        found = [n for each in names for n in lines(s3.get_object(Bucket=bucket, Key=each)["Body"].read())]
        return found if len(found) >= 5 else None

    assert until(chosen) == [1, 3, 5, 7, 9]


def test_a_data_stream_gets_the_events_in_their_order(hub: Hub, cloud: Cloud) -> None:
    kinesis, name = cloud.client("kinesis"), unique("orders")
    kinesis.create_stream(StreamName=name, ShardCount=1)
    stream = hub.ask("POST", "/stream", {"name": "Orders"}).json()["id"]
    config = {"streamName": name, "region": REGION, "roleArn": ROLE, "endpointUrl": cloud.url}
    created = hub.ask("POST", f"/stream/{stream}/sink", {"type": "kinesis", "config": config})
    assert created.status_code == 201, created.text
    events = [{"eventType": "order.paid", "payload": json.dumps({"n": each})} for each in range(20)]
    assert hub.ask("POST", f"/stream/{stream}/events", {"events": events}).status_code == 202
    [shard] = kinesis.describe_stream(StreamName=name)["StreamDescription"]["Shards"]

    def read() -> list[Any] | None:
        start = {"StreamName": name, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        found = kinesis.get_records(ShardIterator=kinesis.get_shard_iterator(**start)["ShardIterator"])["Records"]
        return list(found) if len(found) >= 20 else None

    records = [
        each["Data"] if isinstance(each["Data"], bytes) else base64.b64decode(each["Data"]) for each in until(read)
    ]
    assert [json.loads(each)["payload"]["n"] for each in records] == list(range(20))


def fed(cloud: Cloud, kind: str) -> tuple[str, dict[str, str]]:
    """A queue, and the config of a sink that is the queue, or a topic or bus that feeds it; FIFO, but for the bus."""
    name, config = unique("orders"), {"region": REGION, "roleArn": ROLE, "endpointUrl": cloud.url}
    queue = cloud.queue(name) if kind == "eventBridge" else cloud.queue(f"{name}.fifo", FifoQueue="true")
    shown = cloud.client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
    arn = shown["Attributes"]["QueueArn"]
    if kind == "sqs":
        return queue, {**config, "queueUrl": f"{cloud.url}/{ACCOUNT}/{name}.fifo"}
    if kind == "sns":
        sns, fifo = cloud.client("sns"), {"FifoTopic": "true"}
        topic = sns.create_topic(Name=f"{name}.fifo", Attributes=fifo)["TopicArn"]
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes={"RawMessageDelivery": "true"})
        return queue, {**config, "topicArn": topic}
    events = cloud.client("events")
    bus = events.create_event_bus(Name=name)["EventBusArn"]
    pattern = json.dumps({"detail-type": ["application/json"]})
    events.put_rule(Name=name, EventBusName=name, EventPattern=pattern)
    events.put_targets(Rule=name, EventBusName=name, Targets=[{"Id": "1", "Arn": arn}])
    return queue, {**config, "eventBusName": bus}


def number_of(message: dict[str, Any]) -> int:
    """The number of an event that came by a queue, from a bus or not."""
    answer = json.loads(message["Body"])
    number: int = answer.get("detail", answer)["payload"]["n"]
    return number


@pytest.mark.parametrize("kind", ["sqs", "sns", "eventBridge"])
def test_queues_topics_and_buses_get_event_after_event_in_their_order(hub: Hub, cloud: Cloud, kind: str) -> None:
    # Given a stream with a sink without code, and one with Svix's own
    stream = hub.ask("POST", "/stream", {"name": "Orders"}).json()["id"]
    queues = {}
    for uid in ("plain", "coded"):
        queues[uid], config = fed(cloud, kind)
        created = hub.ask("POST", f"/stream/{stream}/sink", {"type": kind, "uid": uid, "config": config})
        assert created.status_code == 201, created.text
        assert (created.json()["batchSize"], created.json()["type"]) == (1, kind)
    returned = "payloads: [JSON.stringify(e)]" if kind == "eventBridge" else "messages: [{ payload: e }]"
    code = f"function handler(i) {{ const [e] = i.events; e.coded = true; return {{ {returned} }} }}"
    path = f"/stream/{stream}/sink/coded/transformation"
    assert hub.ask("PATCH", path, {"code": code}).status_code == 200
    # When events are posted
    posted = [{"eventType": "order.paid", "payload": json.dumps({"n": each})} for each in range(5)]
    assert hub.ask("POST", f"/stream/{stream}/events", {"events": posted}).status_code == 202
    # Then each sink has sent all of them in Svix's form, one after the other
    for uid, queue in queues.items():
        bodies = [json.loads(each["Body"]) for each in cloud.messages(queue, 5, number_of)]
        own = [each["detail"] for each in bodies] if kind == "eventBridge" else bodies
        assert {(each["eventType"], each.get("coded", False)) for each in own} == {("order.paid", uid == "coded")}
        numbers = [each["payload"]["n"] for each in own]
        # A bus promises no order, and delivers as it likes.
        assert (sorted(numbers) if kind == "eventBridge" else numbers) == list(range(5))
