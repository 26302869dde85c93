"""Streams of a running hub: Svix's unmodified client makes sinks and posts, boto3 reads objects and records."""

from __future__ import annotations

import json
import subprocess

import pytest
from tests.stack.project import unique
from tests.stack.test_destinations import REGION, ROLE, Cloud, Hub, cloud, hub, until
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
