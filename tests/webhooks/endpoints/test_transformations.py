"""Svix's routes of transformations: set, shown, tried."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.webhooks.world import WebhooksWorld

CODE = "function handler(webhook) { return webhook }"


def path_of(world: WebhooksWorld) -> str:
    app = world.make_app()
    return f"/app/{app}/endpoint/{world.make_endpoint(app)}/transformation"


def test_an_endpoint_has_none_at_first(world: WebhooksWorld) -> None:
    none: dict[str, Any] = {"code": None, "enabled": False, "variables": {}, "language": "javascript"}
    assert world.ask("GET", path_of(world)) == none


def test_a_change_keeps_what_it_leaves_out(world: WebhooksWorld) -> None:
    # Given a transformation
    path = path_of(world)
    assert world.call("PATCH", path, {"code": CODE, "variables": {"A": "s3cret", "B": "x"}}).status == 204
    # When it is enabled, then the rest stays, and no value of a variable is shown
    world.ask("PATCH", path, {"enabled": True})
    shown = world.ask("GET", path)
    assert shown.pop("updatedAt").endswith("Z")
    assert shown == {
        "code": CODE,
        "enabled": True,
        "variables": {"A": "********", "B": "********"},
        "language": "javascript",
    }
    # And what is shown can be sent back: it stands for what is stored
    world.ask("PATCH", path, {"variables": {"A": "********", "C": "new"}})
    world.ask("POST", f"{path}/simulate", {"code": CODE, "eventType": "t", "payload": {}})
    assert json.loads(world.ports.scripts.asked[-1]["input"])["env"] == {"A": "s3cret", "C": "new"}
    # And null takes away
    world.ask("PATCH", path, {"code": None, "enabled": False, "variables": None})
    assert world.ask("GET", path)["code"] is None


def test_what_is_tried_is_not_kept_for_a_repeated_request(world: WebhooksWorld) -> None:
    # Given code that shows a variable, which is tried with an idempotency key
    path = path_of(world)
    trial = {"code": CODE, "eventType": "t", "payload": {"k": "s3cret"}, "variables": {"K": "s3cret"}}
    for _ in range(2):
        tried = world.call("POST", f"{path}/simulate", trial, headers={"Idempotency-Key": "k"})
        assert "s3cret" in tried.body["payload"]
    # Then it is run each time, and its answer is kept nowhere
    assert len(world.ports.scripts.asked) == 2
    assert "s3cret" not in repr(vars(world.ports.idempotency_keys))


def test_secrets_are_sealed(world: WebhooksWorld) -> None:
    path = path_of(world)
    world.ask("PATCH", path, {"code": CODE, "enabled": True, "variables": {"A": "s3cret-value"}})
    _, _, app, _, endpoint, _ = path.split("/")
    stored = world.ports.endpoints.endpoint(PROJECT, app, endpoint)
    assert stored is not None
    assert stored.transforms
    assert b"s3cret-value" not in stored.transformation
    # And nothing is left of them when the endpoint is deleted
    world.ask("DELETE", path.removesuffix("/transformation"))
    deleted = world.ports.endpoints.deleted_endpoint(PROJECT, app, endpoint)
    assert deleted is not None


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"code": "short"}, "code"),
        ({"code": "x" * 51_201}, "code"),
        ({"code": 1}, "code"),
        ({"enabled": "yes"}, "enabled"),
        ({"language": "python"}, "language"),
        ({"language": []}, "language"),
        ({"language": {}}, "language"),
        ({"language": 0}, "language"),
        ({"variables": {"a": 1}}, "variables"),
        ({"variables": {"a": "x" * 20_000}}, "variables"),
        ({"variables": {str(each): "" for each in range(101)}}, "variables"),
    ],
)
def test_what_cannot_be_right_is_refused(world: WebhooksWorld, given: dict[str, Any], field: str) -> None:
    path = path_of(world)
    refused = world.call("PATCH", path, given)
    assert (refused.status, refused.body["detail"][0]["loc"][:2]) == (422, ["body", field])
    assert world.ask("GET", path)["code"] is None


def test_code_can_be_tried(world: WebhooksWorld, app: str) -> None:
    endpoint = world.make_endpoint(app, "https://user:pass@a.example/in")
    trial = {"code": CODE, "eventType": "order.paid", "payload": {"n": 1}, "variables": {"K": "v"}}
    shown = world.ask("POST", f"/app/{app}/endpoint/{endpoint}/transformation/simulate", trial)
    assert shown == {
        "url": "https://a.example/in",
        "method": "POST",
        "payload": '{"n": 1}',
        "cancel": False,
        "headers": {},
    }
    asked = world.ports.scripts.asked[-1]
    assert json.loads(asked["input"]) == {
        "method": "POST",
        "url": "https://a.example/in",
        "payload": {"n": 1},
        "eventType": "order.paid",
        "env": {"K": "v"},
        "transformationsParams": {},
    }
    # And nothing is stored or sent
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}/transformation")["code"] is None
    assert world.sender.requests == []


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"error": "timeout", "message": "it takes longer than 1 s"}, "it takes longer than 1 s"),
        ({}, "The code failed"),
        ({"result": 7}, "The code failed"),
        ({"result": {"method": "CONNECT"}}, "The method must be one of"),
        ({"result": {"url": 7}}, "The url is none"),
        ({"result": {"url": "file:///etc/passwd"}}, "The url must begin with http:// or https://"),
        ({"result": {"url": "https://u:p@b.example/"}}, "no user information"),
        ({"result": {"url": "http://169.254.169.254/"}}, "The url cannot be called"),
        ({"result": {"url": "http://127.1/"}}, "The url cannot be called"),
        ({"result": {"payload": "x"}}, "The payload is none"),
        ({"result": {"payload": {"json": "{"}}}, "The payload is not valid JSON"),
        ({"result": {"payload": {"json": "[" * 101 + "]" * 101}}}, "The payload is nested deeper"),
        ({"result": {"payload": {"text": 7}}}, "The payload is none"),
        ({"result": {"headers": [["a"]]}}, "The headers are none"),
        ({"result": {"headers": [["a", "1"], ["A", "2"]]}}, "A header is given twice"),
    ],
)
def test_what_spoiled_code_answers_is_refused(world: WebhooksWorld, answer: dict[str, Any], text: str) -> None:
    path = path_of(world)
    world.ports.scripts.does = lambda asked: answer
    refused = world.call("POST", f"{path}/simulate", {"code": CODE, "eventType": "t", "payload": {}})
    assert refused.status == 422
    assert refused.body["detail"][0]["loc"] == ["body", "code"]
    assert text in refused.body["detail"][0]["msg"]


def test_what_is_tried_passes_the_rules_of_what_is_sent(world: WebhooksWorld, app: str) -> None:
    # Given an endpoint with a gate, and a queue
    gated, queue = world.make_endpoint(app), world.make_endpoint(app, "ironmq:///inside")
    grant = {"grantType": "clientCredentials", "authMethod": "clientSecretBasic", "clientId": "c", "clientSecret": "s"}
    world.ask("PUT", f"/app/{app}/endpoint/{gated}/oauth", {**grant, "tokenUrl": "https://id.example/token"})
    trial = {"code": CODE, "eventType": "t", "payload": {}}
    # When code is tried that sends to another host, or changes what a queue has not
    for endpoint, result, text in (
        (gated, {"url": "https://other.example/"}, "OAuth"),
        (queue, {"headers": [["X-A", "1"]]}, "Only the payload"),
    ):
        world.ports.scripts.does = lambda asked, result=result: {"result": result}  # type: ignore[misc]
        refused = world.call("POST", f"/app/{app}/endpoint/{endpoint}/transformation/simulate", trial)
        # Then it is refused as it would be when it is sent
        assert refused.status == 422
        assert text in refused.body["detail"][0]["msg"]
    # And what is cancelled is not sent, whatever it asks for
    world.ports.scripts.does = lambda asked: {"result": {"cancel": True, "url": "file:///"}}
    assert world.ask("POST", f"/app/{app}/endpoint/{gated}/transformation/simulate", trial)["cancel"] is True


def test_a_portal_needs_the_capability(world: WebhooksWorld, app: str) -> None:
    endpoint, hidden = world.make_endpoint(app), world.make_endpoint(app, "ironmq:///inside")
    path = f"/app/{app}/endpoint/{endpoint}/transformation"

    def token(*capabilities: str) -> str:
        given = {"capabilities": list(capabilities)}
        return str(world.ask("POST", f"/auth/app-portal-access/{app}", given)["token"])

    may, may_not = (
        token("ViewBase", "ManageTransformations"),
        token("ViewBase", "ManageEndpoint", "ManageEndpointSecret"),
    )
    for method, where, body in (
        ("GET", path, None),
        ("PATCH", path, {"code": CODE}),
        ("POST", f"{path}/simulate", {"code": CODE, "eventType": "t", "payload": {}}),
    ):
        assert world.call(method, where, body, token=may_not).status == 403
        assert world.call(method, where, body, token=may).status in (200, 204)
    # And nobody changes what goes to a place out of reach
    out = f"/app/{app}/endpoint/{hidden}/transformation"
    assert world.call("PATCH", out, {"code": CODE}, token=may).status == 403
    trial = {"code": CODE, "eventType": "t", "payload": {}}
    assert world.call("POST", f"{out}/simulate", trial, token=may).status == 403
