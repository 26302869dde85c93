"""Schemas that are enforced, payload filters, and endpoints that are queues and topics of this hub."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.webhooks.world import WebhooksWorld

from pushhub.base.steps import MOST_STEPS
from pushhub.webhooks.messages import recipients
from pushhub.webhooks.messages.messages import LIST_STEPS
from pushhub.webhooks.model.payload_filter import Operator
from pushhub.webhooks.model.redaction import TOO_COSTLY

SCHEMA = {"1": {"type": "object"}, "2": {"type": "object", "required": ["email"]}}


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


def test_each_project_has_its_own_event_type_of_a_name(world: WebhooksWorld) -> None:
    # Given two projects, each with an event type of one name and a schema of its own
    for token, member in ((world.token, "a"), (world.other_token, "b")):
        body = {"name": "same", "description": "x", "schemas": {"1": {"required": [member]}}}
        world.ask("POST", "/event-type", {**body, "schemaEnforcement": "reject"}, token=token)
        world.ask("POST", "/app", {"name": "Acme", "uid": "acme"}, token=token)
    # When both post, then each payload is checked by its own project's
    for token, taken, refused in ((world.token, "a", "b"), (world.other_token, "b", "a")):
        for member, status in ((taken, 202), (refused, 422)):
            body = {"eventType": "same", "payload": {member: 1}}
            assert world.call("POST", "/app/acme/msg", body, token=token).status == status


def test_a_schema_that_cannot_be_enforced_is_refused_when_it_is_to_be(world: WebhooksWorld) -> None:
    body = {"name": "a", "description": "x", "schemas": {"1": {"properties": {"a": {"pattern": "x(?=y)"}}}}}
    assert world.call("POST", "/event-type", {**body, "schemaEnforcement": "reject"}).status == 422
    assert world.call("POST", "/event-type", {**body, "schemaEnforcement": "sometimes"}).status == 422
    assert world.call("POST", "/event-type", body).status == 201
    assert world.call("PATCH", "/event-type/a", {"schemaEnforcement": "warn"}).status == 422


def test_an_endpoint_gets_what_its_payload_filters_let_through(world: WebhooksWorld, app: str) -> None:
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


def test_the_page_that_an_import_points_at_has_every_operator() -> None:
    page = (Path(__file__).parents[3] / "docs" / "webhooks.md").read_text()
    section = page.partition("\n## Payload filters\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"`([a-z]+)`", section)) >= {each.value for each in Operator}
    example = json.loads(section.partition("```json\n")[2].partition("```")[0])
    world = WebhooksWorld()
    endpoint = world.make_endpoint(world.make_app(), **example)
    assert endpoint


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


def test_an_endpoint_may_be_a_queue_of_this_hub(world: WebhooksWorld, app: str) -> None:
    # Given a pull queue, and an endpoint that delivers to it
    endpoint = world.make_endpoint(app, "ironmq:///orders")
    # When a message is posted
    posted = post(world, app, {"n": 1}).body
    world.run(seconds=1)
    # Then it waits in the queue, and its attempt shows like any other
    assert world.pulled("orders") == [b'{"n": 1}']
    assert world.sender.requests == []
    [attempt] = world.ask("GET", f"/app/{app}/attempt/msg/{posted['id']}")["data"]
    assert (attempt["endpointId"], attempt["responseStatusCode"], attempt["statusText"]) == (endpoint, 200, "success")


def test_an_endpoint_may_be_a_topic_of_this_hub(world: WebhooksWorld, app: str) -> None:
    world.make_endpoint(app, "notification2://orders")
    posted = post(world, app, {"source": {"id": "1"}}).body
    world.run(seconds=1)
    [attempt] = world.ask("GET", f"/app/{app}/attempt/msg/{posted['id']}")["data"]
    assert attempt["statusText"] == "success"


def test_what_a_topic_cannot_carry_is_refused_and_a_full_one_says_so(world: WebhooksWorld, app: str) -> None:
    for more in ({"headers": {"x-key": "1"}}, {"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}):
        refused = world.call("POST", f"/app/{app}/endpoint", {"url": "notification2://orders", **more})
        assert (refused.status, refused.body["detail"][0]["loc"]) == (422, ["body", *more])
    # Nor can an endpoint with headers become one, or one get headers
    http = world.make_endpoint(app, "https://a.example/in", headers={"x-key": "1"})
    moved = world.call("PATCH", f"/app/{app}/endpoint/{http}", {"url": "notification2://orders"})
    assert (moved.status, moved.body["detail"][0]["loc"]) == (422, ["body", "headers"])
    topic = world.make_endpoint(app, "notification2://orders")
    for method in ("PUT", "PATCH"):
        answer = world.call(method, f"/app/{app}/endpoint/{topic}/headers", {"headers": {"x-key": "1"}})
        assert answer.status == 422
    # And an attempt says why it failed
    posted = post(world, app, {"text": "x" * 140_000}).body
    world.run(seconds=1)
    attempts = world.ask("GET", f"/app/{app}/attempt/endpoint/{topic}")["data"]
    assert [each["msgId"] for each in attempts] == [posted["id"]]
    assert "is larger than 131072 bytes" in attempts[0]["response"]


@pytest.mark.parametrize("url", ["webhooks://x", "hub://x", "ironmq://", "mailto://x", "ironmq:///a/b/c", "x://"])
def test_a_url_of_no_kind_of_subscriber_is_refused(world: WebhooksWorld, url: str) -> None:
    answer = world.call("POST", f"/app/{world.make_app()}/endpoint", {"url": url})
    assert (answer.status, answer.body["detail"][0]["loc"]) == (422, ["body", "url"])


def test_a_schema_that_takes_too_many_steps_is_a_refusal(world: WebhooksWorld) -> None:
    # Given an enforced schema with very many allowed values, and one that is followed from each of its parts
    many = {"properties": {name: {"enum": list(range(26_000))} for name in "ab"}}
    often = [{"$ref": "#/definitions/a"}] * 1_000
    loop = {"definitions": {"a": {"minimum": 5}}, "items": {"anyOf": [*often, True]}}
    schema = {**many, "definitions": loop["definitions"], "additionalProperties": {"items": loop["items"]}}
    body = {"name": "a", "description": "x", "schemas": {"1": schema}, "schemaEnforcement": "reject"}
    world.ask("POST", "/event-type", body)
    app = world.make_app()
    # Then what takes few steps is accepted or refused for what it is, and what takes too many is refused
    assert post(world, app, {"a": 7, "b": 25_999}).status == 202
    assert "allowed values" in post(world, app, {"a": 7, "b": -1}).body["detail"][0]["msg"]
    answer = post(world, app, {"c": [1] * 1_000})
    assert answer.status == 422
    assert "too complex" in answer.body["detail"][0]["msg"]
    # And a schema that is too large to be looked through is not taken at all
    body["schemas"] = {"1": {"allOf": [{}] * MOST_STEPS}}
    answer = world.call("PUT", "/event-type/a", body)
    assert answer.status == 422
    assert "too large" in answer.body["detail"][0]["msg"]


def test_a_list_stays_usable_when_its_payloads_are_too_costly_to_redact(world: WebhooksWorld) -> None:
    # Given an application with a rule, and messages that together take more steps than a list has
    fields = {"name": "a", "redaction": {"payload": ["**.a.**.b", "**.b.**.secret"]}}
    app = world.ask("POST", "/app", fields)["id"]
    large = {"b": {"secret": "hidden"}, **{f"m{number}": number for number in range(MOST_STEPS // 3)}}
    count = LIST_STEPS // (MOST_STEPS // 3) + 1
    created = [post(world, app, large).body["id"] for _ in range(count)]
    # When they are listed
    page = world.ask("GET", f"/app/{app}/msg", limit=50)["data"]
    # Then all are there: the first redacted, the last withheld, and no secret in any of them
    assert [each["id"] for each in page] == created[::-1]
    assert page[0]["payload"]["m1"] == 1
    assert page[-1]["payload"] == TOO_COSTLY
    assert "hidden" not in json.dumps(page)
    # And by itself each is shown
    shown = world.ask("GET", f"/app/{app}/msg/{created[0]}")["payload"]
    assert (shown["b"], shown["m1"]) == ({"secret": "[redacted]"}, 1)


def test_filters_of_many_endpoints_that_take_too_many_steps_are_a_refusal(
    world: WebhooksWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given endpoints whose filters take more steps together than a post may
    monkeypatch.setattr(recipients, "FILTER_STEPS", 8)
    app = world.make_app()
    filters = [{"path": "order.items.0.sku", "operator": "ne", "value": "x"}]
    for number in range(3):
        url = f"https://{number}.example/x"
        world.ask("POST", f"/app/{app}/endpoint", {"url": url, "payloadFilters": filters})
    # Then a post is refused with the reason, and stored nowhere
    body = {"eventType": "a", "eventId": "own-id", "payload": {"order": {}}}
    answer = world.call("POST", f"/app/{app}/msg", body)
    assert answer.status == 422
    assert "too many steps" in answer.body["detail"][0]["msg"]
    assert world.ask("GET", f"/app/{app}/msg")["data"] == []
    # And it can be posted once they take fewer
    monkeypatch.undo()
    assert world.call("POST", f"/app/{app}/msg", body).status == 202
