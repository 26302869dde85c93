"""Schemas that are enforced, payload filters, and endpoints that are queues and topics of this hub."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.webhooks.world import WebhooksWorld

SCHEMA = {"1": {"type": "object"}, "2": {"type": "object", "required": ["email"]}}


@pytest.fixture
def world() -> WebhooksWorld:
    return WebhooksWorld()


def post(world: WebhooksWorld, app: str, payload: dict[str, Any], event_type: str = "a") -> Any:
    return world.call("POST", f"/app/{app}/msg", {"eventType": event_type, "payload": payload})


@pytest.mark.parametrize(("enforcement", "status"), [("off", 202), ("warn", 202), ("reject", 422)])
def test_a_payload_that_is_not_as_its_schema_says_is_treated_as_its_event_type_asks(
    world: WebhooksWorld, enforcement: str, status: int
) -> None:
    # Given an event type with a schema in two versions
    body = {"name": "a", "description": "x", "schemas": SCHEMA, "schemaEnforcement": enforcement}
    world.ask("POST", "/event-type", body)
    app = world.make_app()
    # Then payloads that match the newest are accepted, and others are treated as configured
    assert post(world, app, {"email": "x"}).status == 202
    answer = post(world, app, {})
    assert answer.status == status
    if status == 422:
        assert answer.body["detail"][0]["loc"] == ["body", "payload"]
        assert "lacks email" in answer.body["detail"][0]["msg"]
    assert world.telemetry.counts.get("PayloadsUnexpected", 0) == (enforcement == "warn")
    assert post(world, app, {}, "b").status == 202


def test_a_schema_that_cannot_be_enforced_is_refused_when_it_is_to_be(world: WebhooksWorld) -> None:
    body = {"name": "a", "description": "x", "schemas": {"1": {"properties": {"a": {"pattern": "x"}}}}}
    assert world.call("POST", "/event-type", {**body, "schemaEnforcement": "reject"}).status == 422
    assert world.call("POST", "/event-type", {**body, "schemaEnforcement": "sometimes"}).status == 422
    assert world.call("POST", "/event-type", body).status == 201
    assert world.call("PATCH", "/event-type/a", {"schemaEnforcement": "warn"}).status == 422


def test_an_endpoint_gets_what_its_payload_filters_let_through(world: WebhooksWorld) -> None:
    app = world.make_app()
    filters = [
        {"path": "status", "operator": "eq", "value": "paid"},
        {"path": "total", "operator": "gt", "value": 10},
    ]
    endpoint = world.make_endpoint(app, payloadFilters=filters)
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}")["payloadFilters"] == filters
    for payload in ({"status": "paid", "total": 20}, {"status": "paid", "total": 5}, {"total": 20}):
        post(world, app, payload)
    world.run(seconds=1)
    assert [json.loads(each.body)["total"] for each in world.sender.requests] == [20]
    # When the filters are cleared, then it gets everything
    world.ask("PATCH", f"/app/{app}/endpoint/{endpoint}", {"payloadFilters": None})
    post(world, app, {})
    world.run(seconds=1)
    assert len(world.sender.requests) == 2


@pytest.mark.parametrize(
    "filters",
    [
        {},
        [1],
        [{"path": "", "operator": "eq", "value": 1}],
        [{"path": "a", "operator": "like", "value": 1}],
        [{"path": "a", "operator": "exists", "value": 1}],
        [{"path": "a", "operator": "prefix", "value": 1}],
        [{"path": "a", "operator": "gt", "value": "1"}],
        [{"path": "a", "operator": "in", "value": "a"}],
        [{"path": "a", "operator": "eq", "value": {}}],
        [{"path": "a", "operator": "eq", "value": 1}] * 11,
    ],
)
def test_what_is_no_filter_is_refused(world: WebhooksWorld, filters: Any) -> None:
    body = {"url": "https://a.example/", "payloadFilters": filters}
    assert world.call("POST", f"/app/{world.make_app()}/endpoint", body).status == 422


def test_an_endpoint_may_be_a_queue_of_this_hub(world: WebhooksWorld) -> None:
    # Given a pull queue, and an endpoint that delivers to it
    app = world.make_app()
    endpoint = world.make_endpoint(app, "ironmq:///orders")
    # When a message is posted
    posted = post(world, app, {"n": 1}).body
    world.run(seconds=1)
    # Then it waits in the queue, and its attempt shows like any other
    assert world.pulled("orders") == [b'{"n": 1}']
    assert world.sender.requests == []
    [attempt] = world.ask("GET", f"/app/{app}/attempt/msg/{posted['id']}")["data"]
    assert (attempt["endpointId"], attempt["responseStatusCode"], attempt["statusText"]) == (endpoint, 200, "success")


def test_an_endpoint_may_be_a_topic_of_this_hub(world: WebhooksWorld) -> None:
    app = world.make_app()
    world.make_endpoint(app, "notification2://orders")
    posted = post(world, app, {"source": {"id": "1"}}).body
    world.run(seconds=1)
    [attempt] = world.ask("GET", f"/app/{app}/attempt/msg/{posted['id']}")["data"]
    assert attempt["statusText"] == "success"


@pytest.mark.parametrize("url", ["webhooks://x", "hub://x", "ironmq://", "mailto://x", "ironmq:///a/b/c", "x://"])
def test_a_url_of_no_kind_of_subscriber_is_refused(world: WebhooksWorld, url: str) -> None:
    answer = world.call("POST", f"/app/{world.make_app()}/endpoint", {"url": url})
    assert (answer.status, answer.body["detail"][0]["loc"]) == (422, ["body", "url"])
