"""Webhooks through the functions as Lambda runs them, each with the rights of its role."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.functions.conftest import Functions, Sink, gateway_event
from tests.functions.test_hub import a_store


class Organization:
    """A client of the functions behind the webhooks API."""

    def __init__(self, functions: Functions) -> None:
        self.functions = functions
        self.token = a_store()

    def call(self, function: str, method: str, path: str, body: object = None, *, key: str = "") -> Any:
        """A request as the gateway hands it over; the answer's body."""
        path, _, query = path.partition("?")
        headers = {"authorization": f"Bearer {self.token}", **({"idempotency_key": key} if key else {})}
        event = gateway_event(method, f"/api/v1{path}", body, query=query, **headers)
        answer = self.functions.invoke(function, event)
        assert answer["statusCode"] < 300, answer
        assert self.functions.refused == []
        return json.loads(answer["body"]) if answer["body"] else None

    def run(self, function: str, event: dict[str, Any]) -> None:
        """Another function's run."""
        self.functions.invoke(function, event)
        assert self.functions.refused == []

    def delivered(self) -> None:
        """Dispatch what was stored, and make first attempts."""
        self.run("dispatch", self.functions.stream_event())
        self.run("push", self.functions.sqs_event("PUSH_QUEUE_URL"))


@pytest.fixture
def organization(functions: Functions) -> Organization:
    return Organization(functions)


def test_everything_of_webhooks_is_allowed_to_the_function_that_does_it(organization: Organization, sink: Sink) -> None:
    call = organization.call
    # Given an application with an endpoint
    call("control", "POST", "/event-type", {"name": "a", "description": "x"}, key="k1")
    call("control", "PATCH", "/event-type/a", {"deprecated": True})
    app = call("control", "POST", "/app", {"name": "Acme", "uid": "acme"}, key="k2")["id"]
    call("control", "PATCH", "/app/acme", {"uid": "acme-2"})
    created = call("control", "POST", f"/app/{app}/endpoint", {"url": sink.url, "uid": "e", "eventTypes": ["a"]})
    path = f"/app/{app}/endpoint/{created['id']}"
    call("control", "PATCH", path, {"description": "x"})
    call("control", "PATCH", f"{path}/headers", {"headers": {"X-Key": "1"}})
    call("control", "POST", f"{path}/secret/rotate", {})
    # When messages are posted, small and large, to it and to an application created with its first message
    body = {"eventType": "a", "payload": {"a": 1}, "eventId": "m"}
    small = call("ingest", "POST", f"/app/{app}/msg", body, key="k3")["id"]
    assert call("ingest", "POST", f"/app/{app}/msg", body, key="k3")["id"] == small
    large = call("ingest", "POST", f"/app/{app}/msg", {"eventType": "a", "payload": {"a": "x" * 20_000}})["id"]
    call("ingest", "POST", "/app/new/msg", {**body, "application": {"name": "x", "uid": "new"}}, key="k4")
    call("control", "POST", f"/app/{app}/msg", {"eventType": "b", "payload": {}})
    organization.delivered()
    # Then they arrive, and everything about them is shown
    assert len(sink.received) == 2
    for each in (
        "/app?limit=1",
        f"{path}/secret",
        f"{path}/stats",
        f"{path}/health",
        "/health/endpoints",
        f"{path}/msg?with_content=true",
        f"/app/{app}/msg",
        f"/app/{app}/msg/{large}",
        f"/app/{app}/msg/m/attempt",
        f"/app/{app}/msg/{small}/endpoint",
        f"/app/{app}/attempt/endpoint/e",
        "/event-type",
    ):
        call("control", "GET", each)
    call("control", "POST", f"/app/{app}/msg/{small}/endpoint/e/resend")
    organization.run("push", organization.functions.sqs_event("RETRY_QUEUE_URL"))
    assert len(sink.received) == 3
    # When an endpoint asks to be disabled, then it is, and the operational endpoint is told
    call("control", "POST", "/operational-webhook/endpoint", {"url": sink.url, "eventTypes": ["endpoint.disabled"]})
    sink.status = 410
    call("control", "POST", f"{path}/send-example", {"eventType": "svix.ping"})
    organization.delivered()
    assert call("control", "GET", path)["disabled"] is True
    sink.status = 200
    organization.delivered()
    assert json.loads(sink.received[-1][1])["data"]["endpointId"] == created["id"]
    for each in (small, large):
        call("control", "DELETE", f"/app/{app}/msg/{each}/content")
    call("control", "DELETE", path)
    call("control", "DELETE", f"/app/{app}")
    # And no function did anything that its role does not allow


@pytest.mark.parametrize("callback", [False, True])
def test_consent_is_asked_by_push_within_its_rights(organization: Organization, sink: Sink, *, callback: bool) -> None:
    call = organization.call
    # Given an endpoint that has to consent
    app = call("control", "POST", "/app", {"name": "Acme"})["id"]
    asked = {"mode": "binary", "consent": True, "callback": callback}
    created = call("control", "POST", f"/app/{app}/endpoint", {"url": sink.url, "cloudEvents": asked})
    assert created["cloudEvents"]["consented"] is False
    # When push has asked it
    organization.delivered()
    assert call("control", "GET", f"/app/{app}/endpoint/{created['id']}")["cloudEvents"]["consented"] is True
    # Then it gets what is posted, and nothing was done that a role does not allow
    call("ingest", "POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})
    organization.delivered()
    assert len(sink.received) == 1
