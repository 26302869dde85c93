"""What a transformation makes of a message is what is signed, sent and recorded; what it cancels is not sent."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.fakes.verifier import verified
from tests.webhooks.world import WebhooksWorld

from pushhub.base.ports import PushRequest
from pushhub.scripting.sandbox import Sandbox

SAME = "function handler(webhook) { return webhook }"
SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"


class Transformed:
    """An endpoint with code, which the real engine runs."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.world = WebhooksWorld()
        self.world.ports.scripts = sandbox  # type: ignore[assignment]
        self.app = self.world.make_app()
        self.endpoint = self.world.make_endpoint(
            self.app, "https://user:pass@a.example/in", secret=SECRET, headers={"X-Own": "mine"}
        )
        self.path = f"/app/{self.app}/endpoint/{self.endpoint}"

    def code(self, code: str, **more: Any) -> None:
        given = {"code": code, "enabled": True, **more}
        assert self.world.call("PATCH", f"{self.path}/transformation", given).status == 204

    def post(self, payload: Any = None, **more: Any) -> str:
        given = {"eventType": "order.paid", "payload": {"n": 1} if payload is None else payload, **more}
        posted = self.world.ask("POST", f"/app/{self.app}/msg", given)
        self.world.run(seconds=1)
        return str(posted["id"])

    def sent(self) -> PushRequest:
        return self.world.sender.requests[-1]

    def attempts(self, message: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.world.ask("GET", f"/app/{self.app}/attempt/msg/{message}")["data"]
        return found

    def status(self, message: str) -> str:
        [there] = self.world.ask("GET", f"/app/{self.app}/msg/{message}/endpoint")["data"]
        return str(there["statusText"])


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    created = Sandbox()
    yield created
    created.close()


@pytest.fixture
def hub(sandbox: Sandbox) -> Transformed:
    return Transformed(sandbox)


def test_what_code_makes_is_signed_and_sent(hub: Transformed) -> None:
    # Given code that changes everything it may
    hub.code(
        """function handler(webhook) {
          webhook.payload = { text: webhook.eventType + " " + webhook.payload.n, key: webhook.env.KEY };
          webhook.url += "?by=code";
          webhook.method = "PUT";
          webhook.headers = { "X-Own": "its", "X-New": "1" };
          return webhook;
        }""",
        variables={"KEY": "value"},
    )
    # When a message is posted
    message = hub.post()
    # Then the endpoint gets that, with its own password, and the signature is of that
    sent = hub.sent()
    assert (sent.method, sent.url) == ("PUT", "https://user:pass@a.example/in?by=code")
    assert sent.body == b'{"text":"order.paid 1","key":"value"}'
    assert (sent.headers["X-Own"], sent.headers["X-New"]) == ("its", "1")
    assert verified(SECRET, sent.headers, sent.body)
    # And what was posted is still what the message is
    assert hub.world.ask("GET", f"/app/{hub.app}/msg/{message}")["payload"] == {"n": 1}
    assert hub.attempts(message)[0]["url"] == "https://********@a.example/in"


@pytest.mark.parametrize("given", [{}, {"enabled": False}, {"code": None}])
def test_without_code_that_is_enabled_the_bytes_are_exact_and_nothing_is_run(given: dict[str, Any]) -> None:
    # Given an endpoint whose code is not there, or not enabled
    hub = Transformed(Sandbox())
    if given:
        hub.code(SAME)
        hub.world.ask("PATCH", f"{hub.path}/transformation", given)
    # When a message is posted that JavaScript would write differently
    text = '{"eventType": "t", "payload": {"a": 1.0, "b": 12345678901234567890}}'
    hub.world.ask("POST", f"/app/{hub.app}/msg", text)
    hub.world.run(seconds=1)
    # Then it gets those bytes, and no engine was started
    assert hub.sent().body == b'{"a": 1.0, "b": 12345678901234567890}'
    assert hub.world.ports.scripts._process is None  # type: ignore[attr-defined]


def test_a_cancelled_message_is_not_sent_and_no_failure(hub: Transformed) -> None:
    hub.code("function handler(webhook) { if (webhook.payload.n === 1) webhook.cancel = true; return webhook }")
    message = hub.post()
    # Then nothing was sent, and its state says so
    assert hub.world.sender.requests == []
    assert hub.status(message) == "canceled"
    assert hub.attempts(message) == []
    [closed] = [each for name, each in hub.world.telemetry.events if name == "delivery_closed"]
    assert (closed["state"], closed["reason"]) == ("cancelled", "cancelled_by_transformation")
    # And it is not tried again by itself
    hub.world.run(seconds=86_400)
    assert hub.world.sender.requests == []
    # But when the code is another, a person can have it sent
    hub.code(SAME)
    hub.world.ask("POST", f"/app/{hub.app}/msg/{message}/endpoint/{hub.endpoint}/resend")
    hub.world.run(seconds=1)
    assert hub.status(message) == "success"


def test_a_message_that_was_sent_stays_so_when_it_is_sent_again_to_code_that_cancels(hub: Transformed) -> None:
    message = hub.post()
    hub.code("function handler(webhook) { return { cancel: true } }")
    hub.world.ask("POST", f"/app/{hub.app}/msg/{message}/endpoint/{hub.endpoint}/resend")
    hub.world.run(seconds=1)
    assert hub.status(message) == "success"
    assert len(hub.world.sender.requests) == 1


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (
            "function handler(webhook) { throw new Error('no ' + webhook.env.KEY) }",
            "transformation: Error: no ********",
        ),
        ("function handler(webhook) { for (;;); }", "transformation: it takes longer than 1 s"),
        ("function handler(webhook) { return { method: 'DELETE' } }", "the method must be one of POST, PUT, PATCH"),
        ("function handler(webhook) { return { url: 'file:///etc' } }", "The url must begin with http:// or https://"),
        ("function handler(webhook) { return { url: 'https://a:b@c.example' } }", "no user information"),
        ("function handler(webhook) { return { url: 'http://169.254.169.254/' } }", "The url cannot be called"),
        ("function handler(webhook) { return { headers: { Host: 'x' } } }", "This header may not be set"),
        (
            "function handler(webhook) { return { headers: { 'webhook-signature': 'x' } } }",
            "This header may not be set",
        ),
        ("function handler(webhook) { return { headers: { 'X-A': 'a\\r\\nB: c' } } }", "control characters"),
        ("function handler(webhook) { return { payload: '\\udc00' } }", "half a surrogate pair"),
    ],
)
def test_code_that_fails_is_a_failed_try_that_is_repeated(hub: Transformed, code: str, reason: str) -> None:
    # Given code that fails, and a secret in its variables
    hub.code(code, variables={"KEY": "s3cret"})
    # When a message is posted
    message = hub.post()
    # Then nothing is sent; the attempt says why, and is tried again
    assert hub.world.sender.requests == []
    [attempt] = hub.attempts(message)
    assert (attempt["statusText"], attempt["responseStatusCode"]) == ("fail", 0)
    assert reason in attempt["response"]
    assert "s3cret" not in json.dumps(attempt)
    assert hub.world.ask("GET", f"/app/{hub.app}/msg/{message}/endpoint")["data"][0]["nextAttempt"]
    # And the next try goes by the code as it is then
    hub.code(SAME)
    hub.world.run(seconds=10)
    assert hub.status(message) == "success"


def test_a_message_gives_the_same_request_at_each_try(hub: Transformed) -> None:
    # Given an endpoint that fails at first, and code that asks for the time and for chance
    hub.world.sender.script("https://user:pass@a.example/in", 500, 200)
    hub.code("function handler(w) { w.payload.at = [Date.now(), Math.random()]; return w }")
    # When a message is tried twice
    hub.post()
    hub.world.run(seconds=10)
    # Then both tries sent the same
    first, second = hub.world.sender.requests
    assert first.body == second.body


def test_another_host_gets_nothing_that_was_given_for_this_one(hub: Transformed) -> None:
    hub.code("function handler(webhook) { webhook.url = 'https://b.example/other'; return webhook }")
    hub.post()
    sent = hub.sent()
    assert sent.url == "https://b.example/other"
    assert "X-Own" not in sent.headers
    assert "pass" not in json.dumps([sent.url, dict(sent.headers)])


def test_oauth_stays_with_its_host(hub: Transformed) -> None:
    grant = {
        "grantType": "clientCredentials",
        "authMethod": "clientSecretBasic",
        "clientId": "c",
        "clientSecret": "s",
        "tokenUrl": "https://id.example/token",
    }
    plain = hub.world.make_endpoint(hub.app, "https://c.example/in")
    hub.path = f"/app/{hub.app}/endpoint/{plain}"
    hub.world.ask("PUT", f"{hub.path}/oauth", grant)
    hub.code("function handler(webhook) { webhook.url = 'https://b.example/other'; return webhook }")
    hub.world.ask("DELETE", f"/app/{hub.app}/endpoint/{hub.endpoint}")
    message = hub.post()
    assert "OAuth" in hub.attempts(message)[0]["response"]
    assert hub.world.sender.requests == []


@pytest.mark.parametrize(("by_portal", "allowed"), [(True, ()), (False, ("inside.example",))])
def test_code_reaches_no_farther_than_whoever_wrote_it(
    hub: Transformed, *, by_portal: bool, allowed: tuple[str, ...]
) -> None:
    # Given a host that is open to the project alone, to which code sends
    project = hub.world.config.project(PROJECT)
    assert project is not None
    hub.world.config.put_project(replace(project, allowed_targets=("inside.example",)))
    token = hub.world.ask("POST", f"/auth/app-portal-access/{hub.app}", {})["token"] if by_portal else hub.world.token
    code = "function handler(webhook) { webhook.url = 'https://inside.example/'; return webhook }"
    given = {"code": code, "enabled": True}
    assert hub.world.call("PATCH", f"{hub.path}/transformation", given, token=token).status == 204
    # When a message is sent, then the guard opens that host only to code of the project
    hub.post()
    assert hub.sent().allowed_targets == allowed


def test_a_source_of_text_is_given_as_text(hub: Transformed) -> None:
    hub.code("function handler(webhook) { return { payload: webhook.payload.toUpperCase() } }")
    hub.post({}, transformationsParams={"rawPayload": "plain text", "headers": {"content-type": "text/plain"}})
    assert hub.sent().body == b"PLAIN TEXT"
    assert hub.sent().headers["Content-Type"] == "text/plain"


def test_code_says_what_it_makes_of_a_payload(hub: Transformed) -> None:
    headers = "{ 'Content-Type': 'text/xml' }"
    hub.code(f"function handler(w) {{ return {{ payload: '<n>' + w.payload.n + '</n>', headers: {headers} }} }}")
    hub.post()
    assert (hub.sent().body, hub.sent().headers["Content-Type"]) == (b"<n>1</n>", "text/xml")


def test_a_cloud_event_holds_what_code_made(hub: Transformed) -> None:
    hub.world.ask("PATCH", hub.path, {"cloudEvents": {"mode": "structured"}})
    hub.code("function handler(w) { w.payload.n = 2; return w }")
    hub.post()
    assert json.loads(hub.sent().body)["data"] == {"n": 2}


def test_nothing_is_sent_while_code_cannot_be_run(world: WebhooksWorld, app: str) -> None:
    # Given code, and a function that answers nobody
    endpoint = world.make_endpoint(app)
    world.ask("PATCH", f"/app/{app}/endpoint/{endpoint}/transformation", {"code": SAME, "enabled": True})
    world.ports.scripts.failing = True
    # When a message is posted, then nothing is sent, and no try is counted
    message = world.ask("POST", f"/app/{app}/msg", {"eventType": "t", "payload": {}})["id"]
    world.run(seconds=1)
    assert world.sender.requests == []
    assert world.ask("GET", f"/app/{app}/attempt/msg/{message}")["data"] == []
    # And it is sent when it can
    world.ports.scripts.failing = False
    world.run(seconds=600)
    assert len(world.sender.requests) == 1
    assert base64.b64encode(world.sender.requests[0].body) == base64.b64encode(b"{}")
