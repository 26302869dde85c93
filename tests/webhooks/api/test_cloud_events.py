"""Messages as CloudEvents 1.0, for endpoints that want them, and the consent that endpoints give (HTTP binding and HTTP
webhooks 1.0.2).
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
    """The requests sent for a message that is text."""
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
    # Given an endpoint with a limit of two messages a second that itself allows six a minute
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
    # One that refuses keeps its old URL
    world.sender.script("https://c.example/in", 200)
    assert world.call("PATCH", path, {"url": "https://c.example/in"}).status == 422
    assert world.call("PUT", path, {"url": "https://c.example/in", "cloudEvents": ASKED}).status == 422
    assert world.ask("GET", path)["url"] == "https://b.example/in"


# Consent by a callback

LATER = {"mode": "binary", "consent": True, "callback": True}


def asked_later(world: WebhooksWorld, answer: Reply | int = 405, **fields: Any) -> tuple[str, str, str]:
    """An endpoint that was asked and has not consented yet: ids of its application and of itself, the path of its
    callback.
    """
    world.sender.script(URL, answer, 200)
    app = world.make_app()
    endpoint = world.make_endpoint(app, URL, cloudEvents=LATER, **fields)
    return app, endpoint, callback_of(world)


def callback_of(world: WebhooksWorld) -> str:
    url = str(world.sender.requests[-1].headers["WebHook-Request-Callback"])
    assert url.startswith(f"https://{ORIGIN}/api/v1/consent/")
    return url.removeprefix(f"https://{ORIGIN}/api/v1")


def shown(world: WebhooksWorld, app: str, endpoint: str) -> dict[str, Any]:
    return dict(world.ask("GET", f"/app/{app}/endpoint/{endpoint}")["cloudEvents"])


def got(world: WebhooksWorld) -> int:
    return sum(each.method == "POST" for each in world.sender.requests)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("answer", [200, 405, 404])
def test_an_endpoint_that_consents_later_gets_what_is_posted_from_then_on(
    world: WebhooksWorld, method: str, answer: int
) -> None:
    # Given an endpoint that has a URL to consent at, and gets nothing until it does
    app, endpoint, callback = asked_later(world, answer)
    waiting = shown(world, app, endpoint)
    assert (waiting["consented"], waiting["callbackUntil"]) == (False, iso_time(world.clock.now() + 86_400_000))
    world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})
    world.run(seconds=60)
    assert got(world) == 0
    # When it consents without a token, with a rate
    answered = world.call(method, callback, token="", headers={"WebHook-Allowed-Rate": "6"})
    assert (answered.status, answered.body) == (200, {"consented": True, "allowedRate": 6})
    assert answered.headers["Cache-Control"] == "no-store"
    # Then it gets messages, says who sends them, and is shown as one that consented
    assert sent(world, app).headers["WebHook-Request-Origin"] == ORIGIN
    assert shown(world, app, endpoint) == {**LATER, "allowedRate": 6, "consented": True}
    # And what it missed can be replayed
    began = iso_time(world.clock.now() - 3_600_000)
    world.ask("POST", f"/app/{app}/endpoint/{endpoint}/replay-missing", {"since": began})
    world.run(seconds=60)
    assert got(world) == 2


def test_the_rate_that_it_named_when_it_was_asked_is_kept_to_unless_it_names_another(world: WebhooksWorld) -> None:
    app, endpoint, callback = asked_later(world, Reply(status_code=200, headers={"webhook-allowed-rate": "30"}))
    assert world.ask("GET", callback, token="")["allowedRate"] == 30
    assert shown(world, app, endpoint)["allowedRate"] == 30


def test_consent_counts_once(world: WebhooksWorld) -> None:
    # Given an endpoint that consented by its callback, and has been disabled since
    app, endpoint, callback = asked_later(world)
    first = world.ask("POST", callback, token="")
    world.ask("PATCH", f"/app/{app}/endpoint/{endpoint}", {"disabled": True, "throttleRate": 1})
    # When the callback is made again, then it is answered as before and changes nothing
    assert world.ask("POST", callback, token="", headers={"WebHook-Allowed-Rate": "1"}) == first
    stored = world.ask("GET", f"/app/{app}/endpoint/{endpoint}")
    assert (stored["disabled"], stored["cloudEvents"]["allowedRate"]) == (True, None)


def test_a_question_ends_after_a_day_and_when_another_is_asked(world: WebhooksWorld) -> None:
    app, endpoint, first = asked_later(world)
    path = f"/app/{app}/endpoint/{endpoint}"
    # When it is asked again, only the new URL counts
    world.sender.script(URL, 405, 200)
    world.ask("PATCH", path, {"url": URL})
    second = callback_of(world)
    assert second != first
    assert world.call("POST", first, token="").status == 404
    # And only for a day
    world.clock.advance(seconds=86_400)
    assert world.call("POST", second, token="").status == 404
    assert world.ask("GET", path)["cloudEvents"]["consented"] is False


def test_one_that_consents_at_once_needs_no_callback(world: WebhooksWorld) -> None:
    app, endpoint, callback = asked_later(world, agreeing(rate="60"))
    assert shown(world, app, endpoint) == {**LATER, "allowedRate": 60, "consented": True}
    assert world.call("POST", callback, token="").status == 404
    sent(world, app)
    assert got(world) == 1
    # Until it moves to another URL
    world.sender.script("https://b.example/in", 405, 200)
    world.ask("PATCH", f"/app/{app}/endpoint/{endpoint}", {"url": "https://b.example/in"})
    world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})
    world.run(seconds=5)
    assert got(world) == 1


@pytest.mark.parametrize(
    "answer", [agreeing("other.example"), agreeing("", rate="many"), Reply(error_class="timeout", message="No answer")]
)
def test_who_refuses_or_does_not_answer_is_not_left_to_consent_later(world: WebhooksWorld, answer: Reply) -> None:
    world.sender.script(URL, answer)
    app = world.make_app()
    refused = world.call("POST", f"/app/{app}/endpoint", {"url": URL, "cloudEvents": LATER})
    assert (refused.status, refused.body["detail"][0]["loc"]) == (422, ["body", "url"])


def test_nobody_else_can_consent(world: WebhooksWorld) -> None:
    app, endpoint, callback = asked_later(world)
    other, _ = world.make_app(), world.make_endpoint(app, "https://b.example/in")
    parts = callback.split("/")
    wrong = [
        callback + "x",
        callback[:-1] or "x",
        "/".join([*parts[:2], "0" * 24, *parts[3:]]),
        "/".join([*parts[:3], other, *parts[4:]]),
        "/".join([*parts[:2], "A#B", *parts[3:]]),
        "/".join([*parts[:4], "ep_x", *parts[5:]]),
        "/".join([*parts[:5], "\u00fc\ud800".encode(errors="replace").decode()]),
    ]
    assert [world.call("POST", each, token="").status for each in wrong] == [404] * len(wrong)
    assert world.call("POST", callback, token="", headers={"WebHook-Allowed-Rate": "-1"}).status == 400
    # Nor does a program that only looks at the link give consent
    assert world.call("HEAD", callback, token="").status == 200
    assert shown(world, app, endpoint)["consented"] is False
    # And no answer to its owner holds the secret
    secret = callback.rpartition("/")[2]
    assert secret not in world.text("GET", f"/app/{app}/endpoint")


@pytest.mark.parametrize("given", [{"consent": False, "callback": True}, {"consent": True, "callback": "yes"}])
def test_who_is_not_asked_cannot_consent_later(world: WebhooksWorld, given: dict[str, object]) -> None:
    app = world.make_app()
    body = {"url": URL, "cloudEvents": {"mode": "binary", **given}}
    assert world.call("POST", f"/app/{app}/endpoint", body).body["detail"][0]["loc"][2] == "callback"


def test_only_an_http_endpoint_is_asked(world: WebhooksWorld) -> None:
    app = world.make_app()
    given = {"url": "ironmq:///next", "cloudEvents": ASKED}
    assert world.call("POST", f"/app/{app}/endpoint", given).status == 422
    assert world.call("POST", f"/app/{app}/endpoint", {**given, "cloudEvents": BINARY}).status == 201
