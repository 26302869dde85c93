"""Messages as CloudEvents 1.0, for endpoints that want them, and the consent that endpoints are asked for (HTTP binding
and HTTP webhooks 1.0.2).
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.fakes import Reply
from tests.fakes.verifier import verified
from tests.webhooks.world import WebhooksWorld

from pushhub.base.ports import PushRequest
from pushhub.base.times import iso_time

URL = "https://a.example/in"
BINARY, STRUCTURED = {"mode": "binary"}, {"mode": "structured"}
ORIGIN = "hub.example"


@pytest.fixture
def world() -> WebhooksWorld:
    return WebhooksWorld()


def agreeing(origin: str = ORIGIN, rate: str | None = "*", status: int = 200) -> Reply:
    rates = {} if rate is None else {"webhook-allowed-rate": rate}
    return Reply(status_code=status, headers={"webhook-allowed-origin": origin, **rates})


def sent(world: WebhooksWorld, app: str, **fields: Any) -> PushRequest:
    posted = {"eventType": "invoice.paid", "payload": {"a": 1}, **fields}
    body = posted.pop("text", None) or json.dumps(posted)
    world.ask("POST", f"/app/{app}/msg", body)
    world.run(seconds=1)
    return world.sender.requests[-1]


def raw(world: WebhooksWorld, app: str, text: str, content_type: str) -> PushRequest:
    """What is sent of a message that is text."""
    return sent(
        world, app, payload={}, transformationsParams={"rawPayload": text, "headers": {"content-type": content_type}}
    )


def test_a_binary_event_is_the_payload_with_attributes_in_headers(world: WebhooksWorld) -> None:
    app = world.make_app()
    endpoint = world.make_endpoint(app, cloudEvents=BINARY)
    text = '{"eventType":"invoice.paid","payload":{"b": 1.0, "a":"\\u00fc"}}'
    request = sent(world, app, text=text)
    assert request.body == b'{"b": 1.0, "a":"\\u00fc"}'
    events = {name: value for name, value in request.headers.items() if name.startswith("ce-")}
    assert events.pop("ce-time").endswith("Z")
    assert events == {
        "ce-specversion": "1.0",
        "ce-id": request.headers["webhook-id"],
        "ce-source": f"https://{ORIGIN}/api/v1/app/{app}",
        "ce-type": "invoice.paid",
    }
    assert request.headers["Content-Type"] == "application/json"
    key = world.ask("GET", f"/app/{app}/endpoint/{endpoint}/secret")["key"]
    assert verified(key, request.headers, request.body)


def test_a_structured_event_holds_the_very_text_of_the_payload_and_is_signed_as_it_is_sent(
    world: WebhooksWorld,
) -> None:
    app = world.make_app()
    endpoint = world.make_endpoint(app, cloudEvents=STRUCTURED)
    request = sent(world, app, text='{"eventType":"invoice.paid","payload":{"b": 1.0, "a":"\\u00fc", "c": 2}}')
    assert request.headers["Content-Type"] == "application/cloudevents+json; charset=utf-8"
    assert request.body.endswith(b',"data":{"b": 1.0, "a":"\\u00fc", "c": 2}}')
    event = json.loads(request.body)
    assert event.pop("time").endswith("Z")
    assert event == {
        "specversion": "1.0",
        "id": request.headers["webhook-id"],
        "source": f"https://{ORIGIN}/api/v1/app/{app}",
        "type": "invoice.paid",
        "datacontenttype": "application/json",
        "data": {"b": 1.0, "a": "ü", "c": 2},
    }
    assert not [name for name in request.headers if name.startswith("ce-")]
    key = world.ask("GET", f"/app/{app}/endpoint/{endpoint}/secret")["key"]
    assert verified(key, request.headers, request.body)


def test_a_retry_is_the_same_event(world: WebhooksWorld) -> None:
    app = world.make_app()
    world.make_endpoint(app, cloudEvents=STRUCTURED)
    world.sender.script(URL, 500, 200)
    sent(world, app)
    world.run(seconds=10)
    first, second = world.sender.requests
    assert first.body == second.body


@pytest.mark.parametrize(
    ("text", "content_type", "member", "value"),
    [
        ("<a>ü</a>", "text/xml", "data", "<a>ü</a>"),
        ('{"a": 1}', "application/json; charset=utf-8", "data", {"a": 1}),
        ("[1]", "application/vnd.acme+json", "data", [1]),
        ("no json", "application/json", "data_base64", base64.b64encode(b"no json").decode()),
        ("NaN", "application/json", "data_base64", base64.b64encode(b"NaN").decode()),
        ("[" * 5000, "application/json", "data_base64", base64.b64encode(b"[" * 5000).decode()),
    ],
)
def test_what_is_no_json_stands_in_a_structured_event_as_text(
    world: WebhooksWorld, text: str, content_type: str, member: str, value: Any
) -> None:
    app = world.make_app()
    world.make_endpoint(app, cloudEvents=STRUCTURED)
    event = json.loads(raw(world, app, text, content_type).body)
    assert event["datacontenttype"] == content_type
    assert event[member] == value
    assert len({"data", "data_base64"} & set(event)) == 1


def test_an_endpoints_own_headers_add_attributes_and_replace_none(world: WebhooksWorld) -> None:
    app = world.make_app()
    world.make_endpoint(app, cloudEvents=BINARY, headers={"ce-tenant": "acme", "CE-Type": "forged"})
    request = sent(world, app)
    assert request.headers["ce-tenant"] == "acme"
    assert [value for name, value in request.headers.items() if name.lower() == "ce-type"] == ["invoice.paid"]


def test_it_is_shown_changed_and_taken_away(world: WebhooksWorld) -> None:
    app = world.make_app()
    endpoint = world.make_endpoint(app, cloudEvents=BINARY)
    path = f"/app/{app}/endpoint/{endpoint}"
    assert world.ask("GET", path)["cloudEvents"] == {"mode": "binary", "consent": False}
    assert world.ask("PATCH", path, {"description": "x"})["cloudEvents"]["mode"] == "binary"
    assert world.ask("PATCH", path, {"cloudEvents": STRUCTURED})["cloudEvents"]["mode"] == "structured"
    assert "cloudEvents" not in world.ask("PATCH", path, {"cloudEvents": None})
    assert "ce-id" not in sent(world, app).headers


@pytest.mark.parametrize(
    "given",
    ["binary", 1, [], {}, {"mode": None}, {"mode": "batched"}, {"mode": ["binary"]}, {"mode": "binary", "consent": 1}],
)
def test_anything_else_is_refused(world: WebhooksWorld, given: object) -> None:
    app = world.make_app()
    answer = world.call("POST", f"/app/{app}/endpoint", {"url": URL, "cloudEvents": given})
    assert answer.status == 422
    assert answer.body["detail"][0]["loc"][:2] == ["body", "cloudEvents"]


# Consent

ASKED = {"mode": "binary", "consent": True}


@pytest.mark.parametrize("origin", ["*", ORIGIN, ORIGIN.upper()])
@pytest.mark.parametrize("status", [200, 204, 405])
def test_an_endpoint_that_consents_is_told_who_sends(world: WebhooksWorld, origin: str, status: int) -> None:
    # Given an endpoint that allows deliveries, whatever its status
    world.sender.script(URL, agreeing(origin, status=status), 200)
    app = world.make_app()
    made = world.ask("POST", f"/app/{app}/endpoint", {"url": URL, "cloudEvents": ASKED})
    [asked] = world.sender.requests
    assert (asked.method, asked.url, asked.body) == ("OPTIONS", URL, b"")
    assert asked.headers == {"WebHook-Request-Origin": ORIGIN}
    assert made["cloudEvents"] == {"mode": "binary", "consent": True, "allowedRate": None}
    # Then every delivery names the sender
    assert sent(world, app).headers["WebHook-Request-Origin"] == ORIGIN


@pytest.mark.parametrize(
    "answer",
    [
        200,
        405,
        *(agreeing(origin) for origin in ("", "other.example", "hub.example.other", "**", "*, *")),
        *(agreeing(rate=rate) for rate in ("", "0", "-1", "1.5", "many", "٣", "9" * 101)),
        Reply(error_class="timeout", message="No answer within 10 s"),
    ],
)
def test_an_endpoint_that_does_not_consent_is_not_made(world: WebhooksWorld, answer: Reply | int) -> None:
    world.sender.script(URL, answer)
    app = world.make_app()
    refused = world.call("POST", f"/app/{app}/endpoint", {"url": URL, "cloudEvents": ASKED})
    assert refused.status == 422
    assert refused.body["detail"][0]["loc"] == ["body", "url"]
    assert world.ask("GET", f"/app/{app}/endpoint")["data"] == []


def test_its_rate_is_kept_to(world: WebhooksWorld) -> None:
    # Given an endpoint that is to get up to two messages a second, and allows six a minute
    world.sender.script(URL, agreeing(rate="6"), 200)
    app = world.make_app()
    made = world.ask("POST", f"/app/{app}/endpoint", {"url": URL, "cloudEvents": ASKED, "throttleRate": 2})
    assert world.sender.requests[0].headers["WebHook-Request-Rate"] == "120"
    assert made["cloudEvents"]["allowedRate"] == 6
    # When five messages are posted, then it gets one every ten seconds
    begun = world.clock.now()
    for _ in range(5):
        world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})
    world.run(seconds=120)
    assert len(world.sender.requests) == 6
    attempts = world.ask("GET", f"/app/{app}/attempt/endpoint/{made['id']}")["data"]
    assert len(attempts) == 5
    last = max(each["timestamp"] for each in attempts)
    assert last >= iso_time(begun + 40_000)


def test_a_change_of_the_url_asks_again_and_other_changes_do_not(world: WebhooksWorld) -> None:
    world.sender.script(URL, agreeing(rate="60"))
    world.sender.script("https://b.example/in", agreeing(rate="120"), 200)
    app = world.make_app()
    made = world.ask("POST", f"/app/{app}/endpoint", {"url": URL, "cloudEvents": ASKED})
    path = f"/app/{app}/endpoint/{made['id']}"
    assert world.ask("PATCH", path, {"description": "x"})["cloudEvents"]["allowedRate"] == 60
    assert len(world.sender.requests) == 1
    assert world.ask("PATCH", path, {"url": "https://b.example/in"})["cloudEvents"]["allowedRate"] == 120
    assert world.sender.requests[-1].url == "https://b.example/in"
    # One that refuses stays where it was
    world.sender.script("https://c.example/in", 200)
    assert world.call("PATCH", path, {"url": "https://c.example/in"}).status == 422
    assert world.call("PUT", path, {"url": "https://c.example/in", "cloudEvents": ASKED}).status == 422
    assert world.ask("GET", path)["url"] == "https://b.example/in"


def test_only_an_http_endpoint_is_asked(world: WebhooksWorld) -> None:
    app = world.make_app()
    given = {"url": "ironmq:///next", "cloudEvents": ASKED}
    assert world.call("POST", f"/app/{app}/endpoint", given).status == 422
    assert world.call("POST", f"/app/{app}/endpoint", {**given, "cloudEvents": BINARY}).status == 201
