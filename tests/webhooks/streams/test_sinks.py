"""Sinks: each reads its stream from its own position on, in batches and in order, and stops where it cannot write."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.fakes import Crash, Fault, FaultPlan, Reply
from tests.webhooks.streams.test_streams import event, make_stream
from tests.webhooks.world import WebhooksWorld

from pushhub.base.ids import id_before
from pushhub.base.times import iso_time
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.message import Message
from pushhub.webhooks.model.ids import message_id
from pushhub.webhooks.streams import reading

KEYS = {"accessKeyId": "AKIAIOSFODNN7EXAMPLE", "secretAccessKey": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
BUCKET = {"bucket": "orders", "region": "eu-west-1", **KEYS}
SERVICE = "https://s3.eu-west-1.amazonaws.com"
SHARDS = "https://kinesis.eu-west-1.amazonaws.com/"
DATA_STREAM = {"streamName": "orders", "region": "eu-west-1", **KEYS}
DENIED = Reply(status_code=400, body=b'{"__type": "AccessDeniedException", "message": "no"}')
TAKEN = Reply(status_code=200, body=b'{"FailedRecordCount": 0, "Records": []}')


class Bucket(WebhooksWorld):
    """A stream with a sink that writes to a bucket."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.stream = make_stream(self)

    def add(self, kind: str = "amazonS3", config: Any = None, **fields: Any) -> str:
        """A new sink; its id."""
        wanted = {"type": kind, "config": BUCKET if config is None else config, **fields}
        return str(self.ask("POST", f"/stream/{self.stream}/sink", wanted)["id"])

    def sink(self, sink: str) -> Any:
        return self.ask("GET", f"/stream/{self.stream}/sink/{sink}")

    def publish(self, *numbers: int, kind: str = "order.paid") -> None:
        self.ask("POST", f"/stream/{self.stream}/events", {"events": [event(each, kind) for each in numbers]})

    def records(self) -> list[list[int]]:
        """What the requests to Kinesis hold."""
        sent = [json.loads(each.body)["Records"] for each in self.sender.requests_to(SHARDS)]
        return [[json.loads(base64.b64decode(each["Data"]))["payload"]["number"] for each in one] for one in sent]

    def objects(self, host: str = SERVICE) -> dict[str, list[int]]:
        """What the bucket holds: later writes take the place of earlier ones."""
        sent = [each for each in self.sender.requests if each.url.startswith(host) and each.method == "PUT"]
        return {each.url: [json.loads(line)["payload"]["number"] for line in each.body.splitlines()] for each in sent}


@pytest.fixture
def world() -> Bucket:
    return Bucket()


def test_events_are_written_in_order_and_in_batches_of_the_sinks_size(world: Bucket) -> None:
    # Given a stream with a sink that takes four at a time
    sink = world.add(batchSize=4)
    # When ten events are posted
    world.publish(*range(10))
    world.run(seconds=30)
    # Then they are in three objects, in order, under names that follow from their first and last ids
    assert list(world.objects().values()) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    ids = [each["id"] for each in reversed(world.ask("GET", f"/stream/{world.stream}/events")["data"])]
    folder = sink.replace("sink_", "ep_")
    for url, (first, last) in zip(world.objects(), ((0, 3), (4, 7), (8, 9)), strict=True):
        assert url.startswith(f"{SERVICE}/orders/{folder}/2026/11/18/")
        assert url.endswith(f"/{ids[first]}-{ids[last]}.jsonl")
    # And each line says what its event is
    line = json.loads(world.sender.requests[0].body.splitlines()[0])
    assert (line["id"], line["eventType"], line["payload"]) == (ids[0], "order.paid", {"number": 0})
    # And the sink is at the last one, and no request is made beyond these
    assert world.sink(sink)["currentIterator"] == ids[-1]
    assert len(world.sender.requests) == 3


def test_an_event_that_was_stored_late_is_in_a_batch_once(world: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a sink, and an event that took so long to be stored that it has a second place
    sink = world.add(maxWaitSecs=20)
    accept = world.messages.accept

    def slow(messages: Sequence[Message]) -> None:
        accept(messages)
        world.clock.sleep(1.5)

    monkeypatch.setattr(world.messages, "accept", slow)
    world.publish(1)
    monkeypatch.undo()
    world.publish(2)
    # When both places are read in one batch
    world.run(seconds=40)
    # Then the event is in it once, and the sink goes on behind its second place
    assert list(world.objects().values()) == [[1, 2]]
    world.publish(3)
    world.run(seconds=40)
    assert list(world.objects().values()) == [[1, 2], [3]]
    assert world.sink(sink)["status"] == "enabled"


def test_a_batch_waits_for_others_no_longer_than_it_may(world: Bucket) -> None:
    world.add(batchSize=3, maxWaitSecs=60)
    world.publish(0, 1)
    world.run(seconds=40)
    assert world.objects() == {}
    world.publish(2, 3)
    world.run(seconds=15)
    assert list(world.objects().values()) == [[0, 1, 2]]
    world.run(seconds=60)
    assert list(world.objects().values()) == [[0, 1, 2], [3]]


@pytest.mark.parametrize(
    ("method", "route", "wanted"),
    [
        ("PATCH", "", {"type": "http", "batchSize": 7}),
        ("PATCH", "/headers", {"headers": {"Authorization": "Bearer the right one"}}),
        ("POST", "/secret/rotate", {}),
    ],
)
def test_any_change_has_a_batch_that_failed_tried_at_once(
    world: Bucket, method: str, route: str, wanted: dict[str, Any]
) -> None:
    # Given a sink whose receiver refuses for so long that it waits for minutes
    url = "https://a.example/in"
    path = f"/stream/{world.stream}/sink/{world.add('http', {'url': url})}"
    world.sender.script(url, Reply(status_code=401))
    world.publish(1)
    world.run(seconds=400)
    assert world.ask("GET", path)["status"] == "retrying"
    # When it is changed
    world.sender.requests.clear()
    world.sender.script(url, Reply(status_code=200))
    world.ask(method, path + route, wanted)
    world.run(seconds=10)
    # Then the batch arrives
    assert len(world.sender.requests_to(url)) == 1
    assert world.ask("GET", path)["status"] == "enabled"


@pytest.mark.parametrize(("status", "arrived"), [(200, 1), (500, 2)])
def test_a_batch_that_is_to_be_tried_at_once_while_it_is_written_ends_as_any_other(
    world: Bucket, status: int, arrived: int
) -> None:
    # Given a batch that has failed, and is tried again
    url = "https://a.example/in"
    path = f"/stream/{world.stream}/sink/{world.add('http', {'url': url})}"
    world.sender.script(url, Reply(status_code=500))
    world.publish(1)
    world.run(seconds=8)
    assert world.ask("GET", path)["status"] == "retrying"
    # When a person has it tried at once just as it is sent
    meanwhile = Reply(status_code=status, meanwhile=lambda _: world.ask("POST", f"{path}/force-retry"))
    world.sender.script(url, meanwhile, Reply(status_code=200))
    world.sender.requests.clear()
    world.run(seconds=20)
    # Then it is not sent again if it has arrived, and soon if it has not
    assert len(world.sender.requests_to(url)) == arrived
    assert world.ask("GET", path)["status"] == "enabled"


def test_a_batch_that_fails_stops_its_sink_and_nobody_elses(world: Bucket) -> None:
    # Given two sinks, one of which is denied
    broken, well = world.add("kinesis", DATA_STREAM), world.add()
    world.sender.script(SHARDS, DENIED)
    world.publish(1)
    world.run(seconds=8)
    # Then it says why and when it is tried again, and the other has got everything
    shown = world.sink(broken)
    assert (shown["status"], shown["failureReason"]) == ("retrying", "AccessDeniedException: no")
    assert shown["nextRetryAt"] > shown["createdAt"]
    assert (world.sink(well)["status"], list(world.objects().values())) == ("enabled", [[1]])
    # And events posted since go to the other alone; the batch that failed is tried again as it was, less and less often
    world.publish(2)
    world.run(seconds=300)
    assert list(world.objects().values()) == [[1], [2]]
    assert 4 <= len(world.records()) <= 8
    assert set(map(tuple, world.records())) == {(1,)}
    # When it is opened, and a person has it tried again
    world.sender.requests.clear()
    world.sender.script(SHARDS, TAKEN)
    world.ask("POST", f"/stream/{world.stream}/sink/{broken}/force-retry")
    world.run(seconds=10)
    # Then that batch comes first, and what was posted since comes behind it
    assert world.records() == [[1], [2]]
    assert world.sink(broken)["status"] == "enabled"


def test_a_batch_of_which_a_part_was_refused_is_sent_again(world: Bucket) -> None:
    half = b'{"FailedRecordCount": 1, "Records": [{}, {"ErrorCode": "ProvisionedThroughputExceededException"}]}'
    world.sender.script(SHARDS, Reply(status_code=200, body=half), Reply(status_code=200, body=b"x"), TAKEN)
    world.add("kinesis", DATA_STREAM)
    world.publish(1, 2)
    world.run(seconds=60)
    assert world.records() == [[1, 2]] * 3


def test_a_batch_can_be_left_out(world: Bucket) -> None:
    sink = world.add("kinesis", DATA_STREAM, batchSize=1)
    world.sender.script(SHARDS, DENIED)
    world.publish(1, 2)
    world.run(seconds=10)
    world.sender.script(SHARDS, TAKEN)
    world.sender.requests.clear()
    world.ask("POST", f"/stream/{world.stream}/sink/{sink}/skip")
    world.run(seconds=60)
    assert world.records() == [[2]]
    assert world.call("POST", f"/stream/{world.stream}/sink/{sink}/skip").status == 422


def test_a_disabled_sink_goes_on_where_it_was_when_it_is_enabled(world: Bucket) -> None:
    sink = world.add()
    path = f"/stream/{world.stream}/sink/{sink}"
    world.ask("PATCH", path, {"type": "amazonS3", "status": "disabled"})
    world.publish(1, 2)
    world.run(seconds=60)
    assert world.objects() == {}
    assert world.sink(sink)["status"] == "disabled"
    world.ask("PATCH", path, {"type": "amazonS3", "status": "enabled"})
    world.run(seconds=60)
    assert list(world.objects().values()) == [[1, 2]]
    # And what had it read on has ended
    assert {each.state for each in world.messages.all_deliveries()} == {DeliveryState.DELIVERED}


def test_a_sink_moves_on_past_more_than_it_looks_at_in_one_batch(
    world: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a sink that takes one type of events, and more of another than it looks at for one batch
    monkeypatch.setattr(reading, "MOST_LOOKED", 2)
    for kind in ("order.paid", "order.sent"):
        world.ask("POST", "/stream/event-type", {"name": kind})
    world.add(eventTypes=["order.sent"])
    world.publish(*range(5))
    # When one comes that it takes
    world.publish(5, kind="order.sent")
    world.run(seconds=30)
    # Then that is written
    assert list(world.objects().values()) == [[5]]


def test_a_sink_gets_what_its_filters_let_through_and_nothing_from_before_it_was_made(world: Bucket) -> None:
    world.ask("POST", "/stream/event-type", {"name": "order.sent"})
    world.publish(0, kind="order.sent")
    world.run(seconds=10)
    world.add(eventTypes=["order.sent"])
    world.publish(1)
    world.publish(2, kind="order.sent")
    world.run(seconds=30)
    assert list(world.objects().values()) == [[2]]


def _written(plan: FaultPlan) -> Bucket:
    """Four events for a sink, read with whatever the plan strikes then."""
    world = Bucket()
    world.add(batchSize=2)
    world.publish(*range(4))
    world.plan = plan
    world.__dict__.pop("hub", None)
    for _ in range(3):
        try:
            world.run(seconds=900)
        except Crash:
            world.__dict__.pop("hub", None)
    return world


def test_whichever_call_fails_every_event_is_written_in_order_under_the_same_name() -> None:
    # Given what the hub calls while a sink reads four events in two batches
    learned = FaultPlan()
    usual = _written(learned)
    assert list(usual.objects().values()) == [[0, 1], [2, 3]]
    assert "readers.put_reader" in learned.calls
    # When one of these calls fails, times out, or is followed by a crash
    for number in range(1, len(learned.calls) + 1):
        for fault in Fault:
            world = _written(FaultPlan(fault, at=number))
            # Then there are the same objects: one that was written twice has taken its own place
            assert list(world.objects().values()) == [[0, 1], [2, 3]], (fault, learned.calls[number - 1])


def test_records_go_to_one_shard_of_kinesis_in_their_order(world: Bucket) -> None:
    world.sender.script(SHARDS, TAKEN)
    assert world.sink(world.add("kinesis", DATA_STREAM, batchSize=1000))["batchSize"] == 500
    world.publish(1, 2, 3)
    world.run(seconds=20)
    [sent] = world.sender.requests_to(SHARDS)
    said = json.loads(sent.body)
    assert said["StreamName"] == "orders"
    assert len({each["PartitionKey"] for each in said["Records"]}) == 1
    assert world.records() == [[1, 2, 3]]


def test_a_fifo_queue_keeps_a_sinks_order(world: Bucket) -> None:
    # Given a sink that is a FIFO queue, and events
    queue = "https://sqs.eu-west-1.amazonaws.com/111122223333/orders.fifo"
    sink = world.add("sqs", {"queueUrl": queue, **KEYS})
    world.publish(1, 2)
    world.run(seconds=20)
    # Then both are of one group, and each is a message of its own
    sent = [json.loads(each.body) for each in world.sender.requests]
    assert [json.loads(each["MessageBody"])["payload"]["number"] for each in sent] == [1, 2]
    assert {each["MessageGroupId"] for each in sent} == {sink.replace("sink_", "ep_")}
    assert len({each["MessageDeduplicationId"] for each in sent}) == 2


def test_two_sinks_may_lead_to_one_fifo_queue(world: Bucket) -> None:
    # Given two sinks of a stream that are one FIFO queue, and an event
    queue = "https://sqs.eu-west-1.amazonaws.com/111122223333/orders.fifo"
    sinks = [world.add("sqs", {"queueUrl": queue, **KEYS}) for _ in range(2)]
    world.publish(1)
    world.run(seconds=20)
    # Then the queue does not take the second sink's message for the first one's
    sent = [json.loads(each.body) for each in world.sender.requests]
    assert len({each["MessageDeduplicationId"] for each in sent}) == len(sent) == len(sinks)
    # And whoever reads it knows which event both are of
    assert len({each["MessageAttributes"]["webhook-id"]["StringValue"] for each in sent}) == 1


def test_a_poller_is_read_in_order_and_its_place_is_kept(world: Bucket) -> None:
    sink = world.add("poller", {})
    world.publish(*range(5))
    path = f"/stream/{world.stream}/sink/{sink}/events"
    assert world.ask("GET", path)["data"] == []
    world.run(seconds=10)
    first = world.ask("GET", path, limit=2)
    assert [json.loads(each["payload"])["number"] for each in first["data"]] == [0, 1]
    assert (first["done"], first["data"][0]["eventType"]) == (False, "order.paid")
    rest = world.ask("GET", path, iterator=first["iterator"])
    assert [json.loads(each["payload"])["number"] for each in rest["data"]] == [2, 3, 4]
    # Without an iterator it goes on behind what has arrived
    assert len(world.ask("GET", path)["data"]) == 3
    assert world.ask("GET", path, iterator=rest["iterator"]) == {
        "data": [],
        "iterator": rest["iterator"],
        "done": True,
    }
    assert world.sink(sink)["currentIterator"] == rest["iterator"]
    assert world.sender.requests == []
    # And only pollers are read
    assert world.call("GET", f"/stream/{world.stream}/sink/{world.add()}/events").status == 422


def test_a_poller_whose_clock_is_ahead_misses_nothing(world: Bucket) -> None:
    # Given a poller that asks for what comes after a moment that is still to come, as its clock is ahead
    sink = world.add("poller", {})
    path = f"/stream/{world.stream}/sink/{sink}/events"
    first = world.ask("GET", path, after=iso_time(world.clock.now() + 3_600_000))
    # When it goes on from there
    world.clock.advance(seconds=1)
    world.publish(1)
    world.clock.advance(seconds=5)
    # Then it gets what was posted meanwhile
    read = world.ask("GET", path, iterator=first["iterator"])
    assert [json.loads(each["payload"])["number"] for each in read["data"]] == [1]


def test_no_iterator_leads_to_what_is_still_to_come(world: Bucket) -> None:
    # Given an iterator that somebody made, of a time to come
    sink = world.add("poller", {})
    path = f"/stream/{world.stream}/sink/{sink}/events"
    for seconds in (3_600, 400_000_000):
        forged = message_id(id_before(world.clock.now() + seconds * 1_000))
        # When it is shown, then it is refused, and the sink's place stays
        assert world.call("GET", path, iterator=forged).status == 422
        world.publish(seconds)
    world.clock.advance(seconds=5)
    read = world.ask("GET", path)["data"]
    assert [json.loads(each["payload"])["number"] for each in read] == [3_600, 400_000_000]


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({"type": "clickhouse", "config": {}}, 501),
        ({"type": "http", "config": {"url": "ftp://a.example"}}, 422),
        ({"type": "http", "config": {}}, 422),
        ({"type": "nothing", "config": {}}, 422),
        ({"type": "amazonS3", "config": {**BUCKET, "bucket": "a/../b"}}, 422),
        ({"type": "amazonS3", "config": {**BUCKET, "region": "nowhere"}}, 422),
        ({"type": "amazonS3", "config": {**BUCKET, "prefix": "../x"}}, 422),
        ({"type": "amazonS3", "config": {**BUCKET, "endpointUrl": "https://169.254.169.254"}}, 422),
        ({"type": "amazonS3", "config": {"bucket": "orders", "region": "eu-west-1"}}, 422),
        ({"type": "amazonS3", "config": BUCKET, "batchSize": 0}, 422),
        ({"type": "amazonS3", "config": BUCKET, "batchSize": 1001}, 422),
        ({"type": "amazonS3", "config": BUCKET, "maxWaitSecs": 301}, 422),
    ],
)
def test_what_cannot_be_a_sink_is_refused(world: Bucket, wanted: Any, status: int) -> None:
    assert world.call("POST", f"/stream/{world.stream}/sink", wanted).status == status
    assert world.ask("GET", f"/stream/{world.stream}/sink")["data"] == []


def test_a_secret_is_never_shown_again_and_stays_where_it_is_not_changed(world: Bucket) -> None:
    sink = world.add(uid="archive")
    shown = world.sink("archive")
    assert shown["config"] == {"bucket": "orders", "region": "eu-west-1", "accessKeyId": KEYS["accessKeyId"]}
    assert (shown["batchSize"], shown["maxWaitSecs"], shown["id"]) == (100, 0, sink)
    changed = world.ask("PATCH", f"/stream/{world.stream}/sink/archive", {"type": "amazonS3", "batchSize": 7})
    assert (changed["batchSize"], changed["uid"]) == (7, "archive")
    world.publish(1)
    world.run(seconds=20)
    assert list(world.objects().values()) == [[1]]
    assert world.ask("GET", f"/stream/{world.stream}/sink")["data"][0]["id"] == sink
    world.call("DELETE", f"/stream/{world.stream}/sink/archive")
    assert world.call("GET", f"/stream/{world.stream}/sink/{sink}").status == 404


def test_a_sinks_role_may_do_nothing_but_put_objects_into_its_bucket(world: Bucket) -> None:
    role = "arn:aws:iam::111122223333:role/hub"
    world.ports.roles.trusting[role] = world.hub.engine.external_ids.of(PROJECT, f"webhooks/{world.stream}")
    world.add(config={"bucket": "orders", "region": "eu-west-1", "roleArn": role})
    world.publish(1)
    world.run(seconds=20)
    assert list(world.objects().values()) == [[1]]
    [wanted] = world.ports.roles.asked
    [first, _] = json.loads(wanted.policy)["Statement"]
    assert first == {"Effect": "Allow", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::orders/*"}


def test_a_url_gets_the_events_of_a_batch_in_one_signed_request() -> None:
    world, url = Bucket(), "https://a.example/in"
    secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
    sink = world.add("http", {"url": url, "headers": {"X-Team": "orders"}, "key": secret}, batchSize=2)
    world.sender.script(url, 500, 200)
    world.publish(1, 2, 3)
    world.run(seconds=60)
    # Given a batch that failed once: then it came again as it was, and the next one behind it
    sent = world.sender.requests_to(url)
    numbers = [[json.loads(each["payload"])["number"] for each in json.loads(one.body)["events"]] for one in sent]
    assert numbers == [[1, 2], [1, 2], [3]]
    assert sent[0].headers["X-Team"] == "orders"
    for one in sent:
        headers = {name.lower(): value for name, value in one.headers.items()}
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + one.body
        right = hmac.new(base64.b64decode(secret.removeprefix("whsec_")), signed, hashlib.sha256).digest()
        assert headers["webhook-signature"] == f"v1,{base64.b64encode(right).decode()}"
    assert sent[0].headers["webhook-id"] == sent[1].headers["webhook-id"]
    # And its secret and headers are its owner's
    path = f"/stream/{world.stream}/sink/{sink}"
    assert world.ask("GET", f"{path}/secret") == {"key": secret}
    assert world.ask("POST", f"{path}/secret/rotate", {})["key"] != secret
    assert world.ask("PATCH", f"{path}/headers", {"headers": {"X-More": "1"}})["headers"] == {
        "X-Team": "orders",
        "X-More": "1",
    }
    assert world.sink(sink)["config"] == {"url": url, "headers": world.ask("GET", f"{path}/headers")}
    bucket = world.add()
    assert world.call("GET", f"/stream/{world.stream}/sink/{bucket}/secret").status == 422


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_the_headers_and_the_key_of_a_config_are_taken_when_a_sink_is_changed(method: str) -> None:
    # Given a sink with a URL
    world, url = Bucket(), "https://a.example/in"
    world.sender.script(url, 200)
    path = f"/stream/{world.stream}/sink/{world.add('http', {'url': url, 'headers': {'X-Old': '1', 'X-Team': 'a'}})}"
    # When other headers and another key are given
    secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
    config = {"url": url, "headers": {"X-Team": "b"}, "key": secret}
    changed = world.ask(method, path, {"type": "http", "config": config})
    # Then these count, and stay when a change does not name them
    assert changed["config"]["headers"]["headers"] == {"X-Team": "b"}
    world.ask(method, path, {"type": "http", "config": {"url": url}})
    assert world.ask("GET", f"{path}/secret") == {"key": secret}
    world.publish(1)
    world.run(seconds=20)
    [sent] = world.sender.requests_to(url)
    assert (sent.headers["X-Team"], "X-Old" in sent.headers) == ("b", False)
    # And what could not be sent is refused
    refused: list[Any] = [{"Host": "a"}, {"X-A": "b\r\nc: d"}, {"X-A\r\n": "b"}, {"X-A": 7}, []]
    for headers in refused:
        bad = {"type": "http", "config": {"url": url, "headers": headers}}
        assert world.call(method, path, bad).status == 422
    assert world.sink(path.rpartition("/")[2])["config"]["headers"]["headers"] == {"X-Team": "b"}


@pytest.mark.parametrize("after", [1, 2])
def test_of_two_changes_of_a_sink_at_once_each_keeps_what_the_other_says(
    world: Bucket, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    # Given a sink with a URL
    sink = world.add("http", {"url": "https://former.example/in"})
    path, store = f"/stream/{world.stream}/sink/{sink}", world.ports.endpoints
    put, calls = store.put_endpoint, iter(range(1, 100))

    def meanwhile(*given: Any) -> Any:
        if next(calls) == after:
            moved = {"type": "http", "config": {"url": "https://now.example/in"}, "maxWaitSecs": 3}
            world.ask("PATCH", path, moved)
        return put(*given)

    # When it is moved while a change is made that says nothing of that
    monkeypatch.setattr(store, "put_endpoint", meanwhile)
    world.ask("PATCH", path, {"type": "http", "metadata": {"team": "orders"}, "batchSize": 7})
    # Then it is where it was moved to, and the rest is as either said
    there = world.sink(sink)
    assert there["config"]["url"] == "https://now.example/in"
    assert (there["metadata"], there["batchSize"], there["maxWaitSecs"]) == ({"team": "orders"}, 7, 3)


@pytest.mark.parametrize("character", ["\x1f", '"', "\n"])
def test_a_batch_takes_no_more_bytes_than_a_data_stream_whatever_is_in_it(world: Bucket, character: str) -> None:
    # Given payloads of the largest size, of characters that take more bytes as JSON
    world.sender.script(SHARDS, TAKEN)
    world.add("kinesis", DATA_STREAM)
    payload = character * (262_144 // len(character.encode()))
    for _ in range(16):
        events = [{"eventType": "order.paid", "payload": payload}]
        world.ask("POST", f"/stream/{world.stream}/events", {"events": events})
    world.run(seconds=30)
    # Then all are written, and no request has records of more than 10 MB, which is what Kinesis takes
    sent = [json.loads(each.body)["Records"] for each in world.sender.requests_to(SHARDS)]
    assert sum(map(len, sent)) == 16
    assert all(sum(len(base64.b64decode(each["Data"])) for each in records) <= 10_000_000 for records in sent)


def test_what_takes_one_message_at_a_time_gets_them_one_after_the_other() -> None:
    world, place = Bucket(), "https://sqs.eu-west-1.amazonaws.com/"
    world.sender.script(place, Reply(status_code=200, body=b"{}"))
    queue = {"queueUrl": "https://sqs.eu-west-1.amazonaws.com/111122223333/orders", **KEYS}
    assert world.sink(world.add("sqs", queue))["batchSize"] == 1
    world.publish(1, 2, 3)
    world.run(seconds=20)
    bodies = [json.loads(json.loads(each.body)["MessageBody"]) for each in world.sender.requests_to(place)]
    assert [each["payload"]["number"] for each in bodies] == [1, 2, 3]
    assert bodies[0]["eventType"] == "order.paid"
