"""A producer's trace comes to its receivers, over retries, from queue to queue, and through CloudEvents."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.engine.world import BASE_URL, PROJECT
from tests.fakes import Reply
from tests.hub.world import URL, HubWorld
from tests.ironmq.api.hub import Hub
from tests.webhooks.world import WebhooksWorld

from pushhub.base.ports import PushRequest
from pushhub.engine.model.project import Project
from pushhub.engine.model.trace import Trace, Traces
from pushhub.hub.model.message import HubMessage

ID = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{ID}-00f067aa0ba902b7-01"
STATE = "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"
GIVEN = {"traceparent": PARENT, "tracestate": STATE}
ENDPOINT = "https://a.example/in"


def set_traces(world: Any, traces: Traces) -> None:
    project = world.config.project(PROJECT)
    world.config.put_project(replace(project, traces=traces))
    world.clock.advance(ms=31_000)


def assert_of_one_trace(requests: list[PushRequest]) -> None:
    """One trace, its state, and a parent of its own for each attempt, which is not the producer's."""
    traces = [Trace.of({name.lower(): value for name, value in each.headers.items()}) for each in requests]
    assert {(each.trace_id, each.flags, each.state) for each in traces if each} == {(ID, "01", STATE)}
    parents = [each.parent_id for each in traces if each]
    assert len(set(parents)) == len(requests)
    assert "00f067aa0ba902b7" not in parents


def names(request: PushRequest) -> set[str]:
    return {each.lower() for each in request.headers if "trace" in each.lower()}


@pytest.fixture
def hub() -> Hub:
    return Hub()


@pytest.fixture
def webhooks() -> WebhooksWorld:
    return WebhooksWorld()


def post(hub: Hub, name: str, body: bytes, path: str = "messages", **headers: str) -> None:
    url = f"/3/projects/{PROJECT}/queues/{name}/{path}"
    answer = hub.send("POST", url, body, headers, token=hub.token)
    assert answer.status in (200, 201), answer


MESSAGES = json.dumps({"messages": [{"body": "x"}]}).encode()


def test_subscribers_of_queues_get_the_trace_at_each_attempt(hub: Hub) -> None:
    hub.make_push("q", ENDPOINT, retries=2, retries_delay=3)
    hub.world.sender.script(ENDPOINT, 500, 500, 200)
    post(hub, "q", MESSAGES, **GIVEN)
    hub.world.run(seconds=20)
    assert len(hub.world.sender.requests) == 3
    assert_of_one_trace(hub.world.sender.requests)


@pytest.mark.parametrize("traces", [Traces.OFF, Traces.OWN, Traces.ALL])
def test_a_message_without_a_trace_gets_none(hub: Hub, traces: Traces) -> None:
    set_traces(hub.world, traces)
    hub.make_push("q", ENDPOINT)
    post(hub, "q", MESSAGES, tracestate=STATE)
    hub.world.run(seconds=5)
    [request] = hub.world.sender.requests
    assert not names(request)


def test_a_project_may_keep_its_traces_to_itself(hub: Hub) -> None:
    set_traces(hub.world, Traces.OFF)
    hub.make_push("q", ENDPOINT)
    post(hub, "q", MESSAGES, **GIVEN)
    hub.world.run(seconds=5)
    [request] = hub.world.sender.requests
    assert not names(request)


def test_what_a_producer_or_an_owner_sets_is_sent_as_it_is(hub: Hub) -> None:
    hub.make_push("q", ENDPOINT)
    body = {"messages": [{"body": "x", "push_headers": {"Traceparent": "their own"}}]}
    post(hub, "q", json.dumps(body).encode(), **GIVEN)
    hub.world.run(seconds=5)
    [request] = hub.world.sender.requests
    assert [value for name, value in request.headers.items() if name.lower() == "traceparent"] == ["their own"]


def test_a_trace_goes_on_from_queue_to_queue_with_each_push_as_a_span_of_it(hub: Hub) -> None:
    # Given a queue that feeds another one here, and another hub's
    host = BASE_URL.partition("//")[2]
    hub.make_push("first", "ironmq:///second", f"ironmq://{PROJECT}:{hub.token}@other.example/q")
    hub.make_push("second", ENDPOINT)
    assert host != "other.example"
    post(hub, "first", MESSAGES, **GIVEN)
    hub.world.run(seconds=5)
    # Then the push from each names another parent
    assert len(hub.world.sender.requests) == 2
    assert_of_one_trace(hub.world.sender.requests)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"x", GIVEN),
        (b"x", {"ce-traceparent": PARENT, "ce-tracestate": STATE}),
        (
            json.dumps({"specversion": "1.0", **GIVEN}).encode(),
            {"Content-Type": "application/cloudevents+json; charset=utf-8"},
        ),
        # The request's own header is the later one
        (b"x", {**GIVEN, "ce-traceparent": PARENT.replace("4bf9", "0000")}),
    ],
)
def test_a_queues_webhook_reads_the_trace_of_the_request_or_of_the_event_in_it(
    hub: Hub, body: bytes, headers: dict[str, str]
) -> None:
    hub.make_push("q", ENDPOINT)
    post(hub, "q", body, "webhook", **headers)
    hub.world.run(seconds=5)
    [request] = hub.world.sender.requests
    assert_of_one_trace([request])
    assert request.body == body


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"traceparent": 7}', b"[" * 100_000, b'{"traceparent": "\\ud800"}']
)
def test_an_event_that_is_none_is_a_message_like_any(hub: Hub, body: bytes) -> None:
    hub.make_push("q", ENDPOINT)
    post(hub, "q", body, "webhook", **{"Content-Type": "application/cloudevents+json"})
    hub.world.run(seconds=5)
    [request] = hub.world.sender.requests
    assert not names(request)


def test_services_of_stores_get_the_trace_and_so_do_those_of_what_they_answer() -> None:
    # Given a service that fails once and then answers with a message for another one
    world, failed = HubWorld(), [500]
    world.config.put_project(Project(project_id=PROJECT, created_at=0))
    other = "https://b.example/in"
    asked = {"messages": [{"message": "order:child", "payload": {}}]}
    world.map("order:new", says=lambda _: Reply(status_code=failed.pop()) if failed else asked)
    world.map("order:child", url=other)
    world.intake.push(PROJECT, HubMessage(type="order:new", payload={}), trace=Trace.of(GIVEN))
    world.run(seconds=600)
    assert [each.url for each in world.sender.requests] == [URL, URL, other]
    assert_of_one_trace(world.sender.requests)


def posted(world: WebhooksWorld, app: str) -> PushRequest:
    world.ask("POST", f"/app/{app}/msg", {"eventType": "a.b", "payload": {}}, headers=GIVEN)
    world.run(seconds=1)
    return world.sender.requests[-1]


def test_endpoints_of_applications_get_none_unless_the_project_wants_that(webhooks: WebhooksWorld) -> None:
    app = webhooks.make_app()
    webhooks.make_endpoint(app, ENDPOINT)
    assert not names(posted(webhooks, app))
    set_traces(webhooks, Traces.ALL)
    assert_of_one_trace([posted(webhooks, app)])


def test_an_events_attributes_keep_the_trace_as_it_came(webhooks: WebhooksWorld) -> None:
    set_traces(webhooks, Traces.ALL)
    app = webhooks.make_app()
    created = webhooks.make_endpoint(app, ENDPOINT, cloudEvents={"mode": "binary"})
    request = posted(webhooks, app)
    assert_of_one_trace([request])
    assert (request.headers["ce-traceparent"], request.headers["ce-tracestate"]) == (PARENT, STATE)
    webhooks.ask("PATCH", f"/app/{app}/endpoint/{created}", {"cloudEvents": {"mode": "structured"}})
    event = json.loads(posted(webhooks, app).body)
    assert (event["traceparent"], event["tracestate"]) == (PARENT, STATE)


def test_an_endpoint_that_is_a_queue_gets_no_trace_that_an_endpoint_would_not(webhooks: WebhooksWorld) -> None:
    queue = webhooks.make_queue("q", [])
    assert queue is not None
    app = webhooks.make_app()
    webhooks.make_endpoint(app, "ironmq:///pulled")
    webhooks.ask("POST", f"/app/{app}/msg", {"eventType": "a.b", "payload": {}}, headers=GIVEN)
    webhooks.run(seconds=1)
    there = webhooks.config.queue(PROJECT, "pulled")
    assert there is not None
    [pulled] = webhooks.pull.peek(PROJECT, there.pull_uid, count=10, now=webhooks.clock.now())
    assert pulled.message.trace is None
