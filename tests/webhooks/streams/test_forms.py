"""What a sink's code makes of a batch is what is written; what it leaves out is not."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import pytest
from tests.fakes import Reply
from tests.webhooks.streams.test_sinks import DATA_STREAM, KEYS, SERVICE, SHARDS, TAKEN, Bucket

from pushhub.scripting.sandbox import Sandbox

EVENTS = "https://events.eu-west-1.amazonaws.com/"
URL = "https://a.example/in"
QUEUE = {"queueUrl": "https://sqs.eu-west-1.amazonaws.com/111122223333/orders", **KEYS}
TOPIC = {"topicArn": "arn:aws:sns:eu-west-1:111122223333:orders", **KEYS}
BUS = {"eventBusName": "arn:aws:events:eu-west-1:111122223333:event-bus/orders", **KEYS}


class Formed(Bucket):
    """A stream whose sinks have code, which the real engine runs."""

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__()
        self.ports.scripts = sandbox  # type: ignore[assignment]
        # As a cold start does: everything is built anew, on the same stores.
        for each in ("hub", "api"):
            self.__dict__.pop(each, None)

    def path(self, sink: str) -> str:
        return f"/stream/{self.stream}/sink/{sink}/transformation"

    def coded(self, code: str, kind: str = "amazonS3", config: Any = None, **fields: Any) -> str:
        """A new sink with code; its id."""
        sink = self.add(kind, config, **fields)
        assert self.ask("PATCH", self.path(sink), {"code": f"function handler(input) {{ {code} }}"}) == {}
        return sink

    def put(self) -> dict[str, bytes]:
        """What was put into the bucket: names and contents."""
        return {each.url: each.body for each in self.sender.requests if each.url.startswith(SERVICE)}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    runs = Sandbox()
    yield runs
    runs.close()


@pytest.fixture
def world(sandbox: Sandbox) -> Formed:
    return Formed(sandbox)


def test_an_object_holds_what_code_returns_under_a_name_of_its_own(world: Formed) -> None:
    # Given two sinks with Svix's example, which differ in nothing but their ids
    code = 'return { config: { format: "jsonl", key: "orders/all" }, data: input.events }'
    first, second = (world.coded(code, batchSize=2) for _ in range(2))
    # When events are posted
    world.publish(1, 2)
    world.run(seconds=20)
    # Then each object holds lines as Svix writes them, and neither takes the other's place
    line = b'{"eventType":"order.paid","payload":{"number":%d}}\n'
    assert list(world.put().values()) == [line % 1 + line % 2] * 2
    names = [each.removeprefix(f"{SERVICE}/orders/orders/all-") for each in world.put()]
    assert sorted(each.partition("-")[0] for each in names) == sorted(
        each.replace("sink_", "ep_") for each in (first, second)
    )
    assert all(each.endswith(".jsonl") for each in names)


@pytest.mark.parametrize(
    ("code", "content", "ending"),
    [
        ('return { config: { format: "json" }, data: input.events.map((e) => e.payload.number) }', b"[1,2]", ".json"),
        ('return { config: { format: "raw" }, data: "a,b\\n" }', b"a,b\n", ""),
        ("return { data: input.events.filter((e) => e.payload.number > 1) }", None, ".jsonl"),
    ],
)
def test_code_chooses_the_format_of_an_object(world: Formed, code: str, content: bytes | None, ending: str) -> None:
    world.coded(code, batchSize=2)
    world.publish(1, 2)
    world.run(seconds=20)
    [(name, body)] = world.put().items()
    assert body == (content or b'{"eventType":"order.paid","payload":{"number":2}}\n')
    _, point, extension = name.rpartition("/")[2].partition(".")
    assert point + extension == ending


def test_records_are_what_code_returns(world: Formed) -> None:
    world.sender.script(SHARDS, TAKEN)
    world.coded(
        "return { messages: input.events.map((e) => ({ payload: `n=${e.payload.number}` })) }", "kinesis", DATA_STREAM
    )
    world.publish(1, 2)
    world.run(seconds=20)
    [sent] = world.sender.requests_to(SHARDS)
    assert [base64.b64decode(each["Data"]) for each in json.loads(sent.body)["Records"]] == [b"n=1", b"n=2"]


def test_a_request_is_what_code_returns(world: Formed) -> None:
    # Given code that changes everything it may
    code = """const headers = { "X-Count": input.events.length };
              return { config: { method: "PATCH", url: input.url + "?x=1", headers },
                       data: { total: input.events.reduce((sum, e) => sum + e.payload.number, 0) } }"""
    world.coded(code, "http", {"url": URL, "headers": {"X-Own": "mine"}})
    world.publish(1, 2)
    world.run(seconds=20)
    [sent] = world.sender.requests
    assert (sent.method, sent.url, sent.body) == ("PATCH", f"{URL}?x=1", b'{"total":3}')
    headers = {name.lower(): text for name, text in sent.headers.items()}
    assert (headers["x-count"], headers["x-own"]) == ("2", "mine")
    assert headers["webhook-signature"].startswith("v1,")


def test_a_list_is_posted_within_an_object_as_svix_documents_it(world: Formed) -> None:
    world.coded("return { data: input.events }", "http", {"url": URL})
    world.publish(1)
    world.run(seconds=20)
    [sent] = world.sender.requests
    assert json.loads(sent.body) == {"data": [{"eventType": "order.paid", "payload": {"number": 1}}]}


@pytest.mark.parametrize(
    ("kind", "config", "code"),
    [
        ("sqs", QUEUE, "return { messages: input.events.map((e) => ({ payload: e })) }"),
        ("sns", TOPIC, "return { messages: input.events.map((e) => ({ payload: e })) }"),
        ("eventBridge", BUS, "return { payloads: input.events.map((e) => JSON.stringify(e)) }"),
    ],
)
def test_svixs_own_code_makes_the_bodies_that_svix_documents(world: Formed, kind: str, config: Any, code: str) -> None:
    # Given the code that Svix gives each such sink, and no envelope of the hub's around what it returns
    world.sender.script(EVENTS, Reply(status_code=200, body=b'{"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}'))
    world.coded(code, kind, config)
    world.publish(1)
    world.run(seconds=20)
    [sent] = world.sender.requests
    expected = '{"eventType":"order.paid","payload":{"number":1}}'
    if kind == "sns":
        assert parse_qs(sent.body.decode())["Message"] == [expected]
    elif kind == "sqs":
        assert json.loads(sent.body)["MessageBody"] == expected
    else:
        assert json.loads(sent.body)["Entries"][0]["Detail"] == expected


@pytest.mark.parametrize(
    ("kind", "config", "code"),
    [
        ("amazonS3", None, "return { cancel: true }"),
        ("amazonS3", None, "return { data: [] }"),
        ("kinesis", DATA_STREAM, "return { messages: [] }"),
        ("http", {"url": URL}, "return { cancel: true }"),
        ("sqs", QUEUE, "return { cancel: true }"),
    ],
)
def test_what_code_leaves_out_is_not_written_and_no_failure(world: Formed, kind: str, config: Any, code: str) -> None:
    sink = world.coded(code, kind, config)
    world.publish(1, 2)
    world.run(seconds=20)
    assert world.sender.requests == []
    # The sink has passed the events, and goes on with what follows
    shown = world.sink(sink)
    assert shown["status"] == "enabled"
    world.ask("PATCH", world.path(sink), {"code": None})
    world.sender.script(SHARDS, TAKEN)
    world.publish(3)
    world.run(seconds=20)
    assert len(world.sender.requests) == 1


@pytest.mark.parametrize(("kind", "config"), [("amazonS3", None), ("http", {"url": URL}), ("sqs", QUEUE)])
def test_code_that_fails_stops_its_sink_and_nobody_elses(world: Formed, kind: str, config: Any) -> None:
    # Given a sink whose code throws, with a secret in what it says, and another one without code
    sink = world.coded("throw new Error(`no ${input.env.KEY}`)", kind, config)
    world.ask("PATCH", world.path(sink), {"variables": {"KEY": "secret-word"}})
    world.add("http", {"url": "https://b.example/in"})
    world.publish(1)
    world.run(seconds=8)
    # Then it says why and when it is tried again, nothing was sent, and the other has the event
    shown = world.sink(sink)
    assert (shown["status"], shown["failureReason"]) == ("retrying", "transformation: Error: no ********")
    assert [each.url for each in world.sender.requests] == ["https://b.example/in"]
    # When the code is mended, it is tried at once, with the same event
    good = {"amazonS3": "data: input.events", "http": "data: input.events", "sqs": "messages: [{ payload: 'x' }]"}
    world.ask("PATCH", world.path(sink), {"code": f"function handler(input) {{ return {{ {good[kind]} }} }}"})
    world.run(seconds=10)
    assert len(world.sender.requests) == 2
    assert world.sink(sink)["status"] == "enabled"


@pytest.mark.parametrize(
    ("kind", "config", "code", "reason"),
    [
        ("amazonS3", None, "return { config: { key: '../x' }, data: [1] }", "The key may have"),
        ("amazonS3", None, "return { config: { format: 'xml' }, data: [1] }", "config.format must be one of"),
        ("amazonS3", None, "return { data: 'text' }", "data must be a list"),
        ("amazonS3", None, "return { config: { format: 'raw' }, data: [1] }", "raw data must be a text"),
        ("amazonS3", None, "return {}", "it must return an object with data"),
        ("amazonS3", None, "return { config: 1, data: [] }", "config must be an object"),
        ("amazonS3", None, "return { data: [undefined] }", "data has something that JSON cannot say"),
        (
            "kinesis",
            DATA_STREAM,
            "return { messages: Array(501).fill({ payload: 'x' }) }",
            "A data stream takes at most",
        ),
        ("http", {"url": URL}, "return { config: { method: 'DELETE' }, data: 1 }", "the method must be one of"),
        ("http", {"url": URL}, "return { config: { url: 'ftp://b.example/' }, data: 1 }", "The url must begin with"),
    ],
)
def test_what_cannot_be_written_is_a_failed_batch(
    world: Formed, kind: str, config: Any, code: str, reason: str
) -> None:
    sink = world.coded(code, kind, config)
    world.publish(1)
    world.run(seconds=10)
    shown = world.sink(sink)
    assert shown["status"] == "retrying"
    assert shown["failureReason"].startswith(f"transformation: {reason}")
    assert world.sender.requests == []


def test_a_batch_for_code_is_no_larger_than_one_call_of_its_function_takes(world: Formed) -> None:
    # Given a sink with code, which counts what it is given
    world.coded('return { config: { format: "raw" }, data: String(input.events.length) }', batchSize=100)
    events = [{"eventType": "order.paid", "payload": "x" * 200_000} for _ in range(5)]
    world.ask("POST", f"/stream/{world.stream}/events", {"events": events})
    world.run(seconds=30)
    assert list(world.put().values()) == [b"2", b"2", b"1"]


def test_nothing_is_written_while_code_cannot_be_run() -> None:
    # Given a function that does not answer
    world = Bucket()
    sink = world.add()
    world.ask("PATCH", f"/stream/{world.stream}/sink/{sink}/transformation", {"code": "function handler(i) { }"})
    world.ports.scripts.failing = True
    world.publish(1)
    world.run(seconds=30)
    # Then nothing happened to the sink, and it goes on when the function does
    assert world.sink(sink)["status"] == "enabled"
    assert world.objects() == {}
    world.ports.scripts.failing = False
    world.run(seconds=300)
    assert len(world.objects()) == 1


def test_code_is_set_shown_and_tried_as_svixs_client_does_it(world: Formed) -> None:
    # Given a sink, and code sent alone, which is how Svix's client sends it
    sink = world.coded("return { data: input.events }")
    shown = world.ask("GET", world.path(sink))
    assert (shown["enabled"], shown["language"]) == (True, "javascript")
    # Then null removes it
    world.ask("PATCH", world.path(sink), {"code": None})
    assert (world.ask("GET", world.path(sink))["code"], world.ask("GET", world.path(sink))["enabled"]) == (None, False)
    # And code can be tried on an event
    code = 'function handler(input) { return { config: { format: "json" }, data: input.events } }'
    tried = world.ask(
        "POST", f"{world.path(sink)}/simulate", {"code": code, "eventType": "order.paid", "payload": {"number": 1}}
    )
    assert tried["payload"] == '[{"eventType":"order.paid","payload":{"number":1}}]'
    # A poller has none
    poller = world.add("poller", {})
    assert world.call("PATCH", world.path(poller), {"code": code}).status == 422


def test_an_owners_token_needs_the_capability() -> None:
    world = Bucket()
    sink = world.add()
    token = world.ask("POST", f"/auth/stream-portal-access/{world.stream}", {})["token"]
    path = f"/stream/{world.stream}/sink/{sink}/transformation"
    assert world.call("PATCH", path, {"code": "function handler(i) { }"}, token=token).status == 200
    assert world.call("GET", path, token=token).status == 200
