"""Messages as CloudEvents 1.0, for endpoints that want them, and the consent that endpoints give (HTTP binding and HTTP
webhooks 1.0.2).
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.fakes import Reply
from tests.fakes.verifier import verified
from tests.webhooks.world import WebhooksWorld

from pushhub.base.ports import PushRequest
from pushhub.base.times import iso_time
from pushhub.engine.model.flow import BURST_MS
from pushhub.webhooks.model.endpoint import Endpoint

URL = "https://a.example/in"
BINARY, STRUCTURED = {"mode": "binary"}, {"mode": "structured"}
ORIGIN = "hub.example"


def agreeing(origin: str = ORIGIN, rate: str | None = "*", status: int = 200) -> Reply:
    rates = {} if rate is None else {"webhook-allowed-rate": rate}
    return Reply(status_code=status, headers={"webhook-allowed-origin": origin, **rates})


def sent(world: WebhooksWorld, app: str, **fields: Any) -> PushRequest:
    posted = {"eventType": "invoice.paid", "payload": {"a": 1}, **fields}
    body = posted.pop("text", None) or json.dumps(posted)
    world.ask("POST", f"/app/{app}/msg", body)
    world.run(seconds=1)
    return world.sender.requests[-1]


def test_a_binary_event_is_the_payload_with_attributes_in_headers(world: WebhooksWorld, app: str) -> None:
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


def test_a_retry_is_the_same_event(world: WebhooksWorld, app: str) -> None:
    world.make_endpoint(app, cloudEvents=STRUCTURED)
    world.sender.script(URL, 500, 200)
    sent(world, app)
    world.run(seconds=10)
    first, second = world.sender.requests
    assert first.body == second.body


def test_an_endpoints_own_headers_add_attributes_and_replace_none(world: WebhooksWorld, app: str) -> None:
    world.make_endpoint(app, cloudEvents=BINARY, headers={"ce-tenant": "acme", "CE-Type": "forged"})
    request = sent(world, app)
    assert request.headers["ce-tenant"] == "acme"
    assert [value for name, value in request.headers.items() if name.lower() == "ce-type"] == ["invoice.paid"]


def test_it_is_shown_changed_and_taken_away(world: WebhooksWorld, app: str) -> None:
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
def test_anything_else_is_refused(world: WebhooksWorld, app: str, given: object) -> None:
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
    created = world.ask("POST", f"/app/{app}/endpoint", {"url": URL, "cloudEvents": ASKED})
    # Whoever made it does not wait for the endpoint
    assert world.sender.requests == []
    assert created["cloudEvents"] == {"mode": "binary", "consent": True, "allowedRate": None, "consented": False}
    world.run(seconds=1)
    [asked] = world.sender.requests
    assert (asked.method, asked.url, asked.body) == ("OPTIONS", URL, b"")
    assert asked.headers == {"WebHook-Request-Origin": ORIGIN}
    consented = {"mode": "binary", "consent": True, "allowedRate": None, "consented": True}
    assert shown(world, app, created["id"]) == consented
    # Then every delivery names the sender
    assert sent(world, app).headers["WebHook-Request-Origin"] == ORIGIN


@pytest.mark.parametrize(
    "answer",
    [
        200,
        405,
        *(agreeing(origin) for origin in ("", "other.example", "hub.example.other", "**", "*, *")),
        *(agreeing(rate=rate) for rate in ("", "0", "-1", "1.5", "many", "٣", "9" * 101)),
    ],
)
def test_an_endpoint_that_does_not_consent_gets_nothing_and_its_owner_reads_why(
    world: WebhooksWorld, answer: Reply | int
) -> None:
    world.sender.script(URL, answer, 200)
    app = world.make_app()
    endpoint = world.make_endpoint(app, URL, cloudEvents=ASKED)
    world.run(seconds=1)
    refused = shown(world, app, endpoint)
    assert refused["consented"] is False
    assert refused["consentProblem"].startswith(
        ("The endpoint does not consent", "The endpoint's WebHook-Allowed-Rate")
    )
    # When a message is posted, and time passes, then it gets nothing and is asked no more
    world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})
    world.run(seconds=7200)
    assert [each.method for each in world.sender.requests] == ["OPTIONS"]


def test_an_endpoint_that_is_out_of_order_is_asked_again(world: WebhooksWorld) -> None:
    out_of_order = Reply(error_class="timeout", message="No complete answer within 10 s")
    world.sender.script(URL, out_of_order, out_of_order, agreeing(rate="60"), 200)
    app = world.make_app()
    endpoint = world.make_endpoint(app, URL, cloudEvents=ASKED)
    world.run(seconds=10)
    problem = "The endpoint could not be asked for its consent: No complete answer within 10 s"
    assert shown(world, app, endpoint)["consentProblem"] == problem
    world.run(seconds=400)
    assert shown(world, app, endpoint) == {**ASKED, "allowedRate": 60, "consented": True}
    sent(world, app)
    assert [each.method for each in world.sender.requests] == ["OPTIONS"] * 3 + ["POST"]


def test_its_rate_is_kept_to(world: WebhooksWorld) -> None:
    # Given an endpoint with a limit of two messages a second that itself allows six a minute
    world.sender.script(URL, agreeing(rate="6"), 200)
    app = world.make_app()
    created = world.ask("POST", f"/app/{app}/endpoint", {"url": URL, "cloudEvents": ASKED, "throttleRate": 2})
    world.run(seconds=1)
    assert world.sender.requests[0].headers["WebHook-Request-Rate"] == "120"
    assert shown(world, app, created["id"])["allowedRate"] == 6
    # When five messages are posted, then it gets one every ten seconds
    begun = world.clock.now()
    for _ in range(5):
        world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})
    world.run(seconds=120)
    assert len(world.sender.requests) == 6
    attempts = world.ask("GET", f"/app/{app}/attempt/endpoint/{created['id']}")["data"]
    assert len(attempts) == 5
    last = max(each["timestamp"] for each in attempts)
    assert last >= iso_time(begun + 40_000 - BURST_MS)


def test_a_change_of_the_url_asks_again_and_other_changes_do_not(world: WebhooksWorld) -> None:
    world.sender.script(URL, agreeing(rate="60"))
    world.sender.script("https://b.example/in", agreeing(rate="120"), 200)
    app = world.make_app()
    created = world.ask("POST", f"/app/{app}/endpoint", {"url": URL, "cloudEvents": ASKED})
    path = f"/app/{app}/endpoint/{created['id']}"
    world.run(seconds=1)
    # Neither another description nor the same URL makes it consent again, or keeps messages from it
    for method, body in (
        ("PATCH", {"description": "x"}),
        ("PATCH", {"url": URL, "cloudEvents": {**ASKED, "mode": "structured"}}),
        ("PUT", {"url": URL, "cloudEvents": ASKED}),
    ):
        kept = world.ask(method, path, body)["cloudEvents"]
        assert (kept["allowedRate"], kept["consented"]) == (60, True)
    world.run(seconds=1)
    assert len(world.sender.requests) == 1
    # Another URL does
    for method, url in (("PATCH", "https://b.example/in"), ("PUT", "https://c.example/in")):
        world.sender.script(url, agreeing(rate="120"), 200)
        moved = world.ask(method, path, {"url": url, "cloudEvents": ASKED})["cloudEvents"]
        assert (moved["allowedRate"], moved["consented"]) == (None, False)
        world.run(seconds=1)
        assert (world.sender.requests[-1].url, world.sender.requests[-1].method) == (url, "OPTIONS")
        assert shown(world, app, created["id"])["allowedRate"] == 120
    # And so does switching it off and on
    world.ask("PATCH", path, {"cloudEvents": None})
    assert world.ask("PATCH", path, {"cloudEvents": ASKED})["cloudEvents"]["consented"] is False


# Consent by a callback

LATER = {"mode": "binary", "consent": True, "callback": True}


def asked_later(world: WebhooksWorld, answer: Reply | int = 405, **fields: Any) -> tuple[str, str, str]:
    """An endpoint that was asked and has not consented yet: ids of its application and of itself, the path of its
    callback.
    """
    world.sender.script(URL, answer, 200)
    app = world.make_app()
    endpoint = world.make_endpoint(app, URL, cloudEvents=LATER, **fields)
    world.run(seconds=1)
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
    assert (waiting["consented"], waiting["callbackUntil"]) == (False, iso_time(world.clock.now() + 86_399_000))
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


def test_a_rate_that_is_lifted_is_lifted_within_two_seconds(world: WebhooksWorld) -> None:
    # Given an endpoint that consented to a message in ten seconds, and messages that wait for it
    app, endpoint, callback = asked_later(world)
    world.ask("POST", callback, token="", headers={"WebHook-Allowed-Rate": "6"})
    for _ in range(5):
        world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})
    world.run(seconds=3)
    assert got(world) == 1
    # When it wants no CloudEvents any more, and so no consent is needed
    world.ask("PATCH", f"/app/{app}/endpoint/{endpoint}", {"cloudEvents": None})
    # Then it gets the others at once
    world.run(seconds=2)
    assert got(world) == 5


def test_the_rate_that_it_named_when_it_was_asked_is_kept_to_unless_it_names_another(world: WebhooksWorld) -> None:
    app, endpoint, callback = asked_later(world, Reply(status_code=200, headers={"webhook-allowed-rate": "30"}))
    assert world.ask("GET", callback, token="")["allowedRate"] == 30
    assert shown(world, app, endpoint)["allowedRate"] == 30


def test_consent_counts_once(world: WebhooksWorld) -> None:
    # Given an endpoint that consented by its callback, and has been disabled since
    app, endpoint, callback = asked_later(world)
    first = world.ask("POST", callback, token="")
    world.ask("PATCH", f"/app/{app}/endpoint/{endpoint}", {"disabled": True, "throttleRate": 1})
    assert first == {"consented": True, "allowedRate": None}
    # When the callback is made again, then it is unknown and changes nothing
    for method in ("POST", "GET", "HEAD"):
        assert world.call(method, callback, token="", headers={"WebHook-Allowed-Rate": "1"}).status == 404
    stored = world.ask("GET", f"/app/{app}/endpoint/{endpoint}")
    assert (stored["disabled"], stored["cloudEvents"]["allowedRate"]) == (True, None)


def test_a_question_ends_after_a_day_and_when_another_is_asked(world: WebhooksWorld) -> None:
    app, endpoint, first = asked_later(world)
    path = f"/app/{app}/endpoint/{endpoint}"
    # When it is asked again, only the new URL counts
    world.sender.script(URL, 405, 200)
    world.ask("PATCH", path, {"url": URL})
    world.run(seconds=1)
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
    world.run(seconds=1)
    world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})
    world.run(seconds=5)
    assert got(world) == 1


@pytest.mark.parametrize("answer", [agreeing("other.example"), agreeing("", rate="many")])
def test_who_refuses_is_not_left_to_consent_later(world: WebhooksWorld, answer: Reply) -> None:
    app, endpoint, callback = asked_later(world, answer)
    assert world.call("POST", callback, token="").status == 404
    assert shown(world, app, endpoint)["consentProblem"]


def test_an_endpoint_that_did_not_answer_may_use_the_callback_that_it_was_sent(world: WebhooksWorld) -> None:
    app, endpoint, callback = asked_later(world, Reply(error_class="timeout", message="No answer"))
    assert world.ask("POST", callback, token="") == {"consented": True, "allowedRate": None}
    assert shown(world, app, endpoint) == {**LATER, "allowedRate": None, "consented": True}
    # And it is not asked again
    world.run(seconds=7200)
    assert [each.method for each in world.sender.requests] == ["OPTIONS"]


def test_of_many_who_use_a_callback_at_once_one_consents(world: WebhooksWorld) -> None:
    # Given a callback that is used again and again between the read and the write of its first use
    app, endpoint, callback = asked_later(world)
    store = world.ports.endpoints
    statuses: list[int] = []
    put = store.put_endpoint

    def raced(after: Endpoint, before: Endpoint | None) -> Endpoint:
        store.put_endpoint = put  # type: ignore[method-assign]
        statuses.extend(world.call("POST", callback, token="").status for _ in range(3))
        return put(after, before)

    store.put_endpoint = raced  # type: ignore[method-assign,assignment]
    statuses.append(world.call("POST", callback, token="", headers={"WebHook-Allowed-Rate": "1"}).status)
    assert sorted(statuses) == [200, 404, 404, 404]
    assert shown(world, app, endpoint)["allowedRate"] is None


# Consent and a portal's owner


@pytest.mark.parametrize("asked", [ASKED, LATER])
@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("PATCH", {"cloudEvents": None}),
        ("PATCH", {"cloudEvents": BINARY}),
        ("PATCH", {"cloudEvents": {"mode": "structured", "consent": False}}),
        ("PATCH", {"url": "https://b.example/in", "cloudEvents": None}),
        ("PUT", {"url": URL}),
        ("PUT", {"url": "https://b.example/in", "cloudEvents": STRUCTURED}),
    ],
)
def test_a_portal_does_not_switch_consent_off(
    world: WebhooksWorld, method: str, body: dict[str, Any], asked: dict[str, Any]
) -> None:
    # Given endpoints that wait for consent, that the tenant and a portal made
    app = world.make_app()
    token = str(world.ask("POST", f"/auth/app-portal-access/{app}", {})["token"])
    for by in (world.token, token):
        created = world.ask("POST", f"/app/{app}/endpoint", {"url": URL, "cloudEvents": asked}, token=by)
        path = f"/app/{app}/endpoint/{created['id']}"
        # When a portal makes any change that does without
        refused = world.call(method, path, body, token=token)
        # Then nothing changes; the tenant may
        assert (refused.status, refused.body["detail"][0]["loc"][1]) == (422, "cloudEvents")
        assert world.ask("GET", path) == created
        assert world.ask(method, path, body).get("cloudEvents", {}).get("consent", False) is False


def test_where_consent_is_demanded_a_portal_sets_no_url_without_it(world: WebhooksWorld, app: str) -> None:
    # Given an application that demands consent, with an endpoint from before, and a portal's token
    token = str(world.ask("POST", f"/auth/app-portal-access/{app}", {})["token"])
    asking = {"mode": "binary", "consent": True}
    old = world.call("POST", f"/app/{app}/endpoint", {"url": "https://old.example/in"}, token=token).body["id"]
    assert world.ask("PATCH", f"/app/{app}", {"portalConsent": True})["portalConsent"]
    # When the portal sets a URL without consent, in any way, Then it is refused
    path, url = f"/app/{app}/endpoint", "https://new.example/in"
    for method, at, body in (
        ("POST", path, {"url": url}),
        ("POST", path, {"url": url, "cloudEvents": {"mode": "binary"}}),
        ("PUT", f"{path}/new", {"url": url, "uid": "new"}),
        ("PUT", f"{path}/{old}", {"url": url}),
        ("PATCH", f"{path}/{old}", {"url": url}),
    ):
        refused = world.call(method, at, body, token=token)
        assert (refused.status, refused.body["detail"][0]["loc"]) == (422, ["body", "cloudEvents", "consent"]), method
    # And with consent it is asked, also if it deletes that one and makes it again
    for _ in range(2):
        created = world.call("POST", path, {"url": url, "uid": "new", "cloudEvents": asking}, token=token)
        assert (created.status, created.body["cloudEvents"]["consented"]) == (201, False)
        off = world.call("PATCH", f"{path}/new", {"cloudEvents": {"mode": "binary"}}, token=token)
        assert off.status == 422
        assert world.call("DELETE", f"{path}/new", token=token).status == 204
        assert world.call("POST", path, {"url": url, "uid": "new"}, token=token).status == 422
    # And everything else about the old one may be changed, and the project may do without
    assert world.call("PATCH", f"{path}/{old}", {"description": "x"}, token=token).status == 200
    assert world.call("PUT", f"{path}/{old}", {"url": "https://old.example/in"}, token=token).status == 200
    world.ask("POST", path, {"url": url})
    # And a portal cannot change the setting, which a replacement forgets
    assert world.call("PATCH", f"/app/{app}", {"portalConsent": False}, token=token).status == 403
    assert "portalConsent" not in world.ask("PUT", f"/app/{app}", {"name": "x"})


def test_many_questions_of_one_portal_delay_neither_requests_nor_other_projects(world: WebhooksWorld, app: str) -> None:
    # Given forty endpoints that one portal registers, which do not answer
    token = str(world.ask("POST", f"/auth/app-portal-access/{app}", {})["token"])
    for number in range(40):
        url = f"https://{number}.example/in"
        world.sender.script(url, Reply(error_class="timeout", message="No answer"))
        asked = {"url": url, "cloudEvents": ASKED}
        assert world.call("POST", f"/app/{app}/endpoint", asked, token=token).status == 201
    # Then no request has waited for any of them
    assert world.sender.requests == []
    # And in the engine they are one subscriber of one project
    world.dispatch_only()
    orders = [each.order for each in world.push_queue.receive(limit=100)]
    assert {(each.key.project, each.key.queue_uid, each.key.subscriber_id) for each in orders} == {
        (PROJECT, "consent", "asked")
    }
    assert len(orders) == 40


def test_a_project_asks_ten_questions_a_second(world: WebhooksWorld, app: str) -> None:
    for number in range(40):
        url = f"https://{number}.example/in"
        world.sender.script(url, agreeing(), 200)
        world.ask("POST", f"/app/{app}/endpoint", {"url": url, "cloudEvents": ASKED})
    began = world.clock.now()
    world.run(seconds=1)
    passed_ms = world.clock.now() - began
    assert 10 <= len(world.sender.requests) <= (passed_ms + BURST_MS) / 100 + 1
    world.run(seconds=30)
    assert len({each.url for each in world.sender.requests}) == 40


def test_a_change_that_meets_consent_switched_on_is_refused_not_left_unasked(world: WebhooksWorld, app: str) -> None:
    # Given a change of the URL while somebody else switches consent on
    endpoint = world.make_endpoint(app, URL)
    path, store = f"/app/{app}/endpoint/{endpoint}", world.ports.endpoints
    put = store.put_endpoint

    def raced(after: Endpoint, before: Endpoint | None) -> Endpoint:
        store.put_endpoint = put  # type: ignore[method-assign]
        world.ask("PATCH", path, {"cloudEvents": ASKED})
        return put(after, before)

    store.put_endpoint = raced  # type: ignore[method-assign,assignment]
    assert world.call("PATCH", path, {"url": "https://b.example/in"}).status == 409
    assert world.ask("GET", path)["cloudEvents"]["consented"] is False


def test_nobody_can_consent_for_an_application_that_is_gone(world: WebhooksWorld) -> None:
    app, _, callback = asked_later(world)
    world.ask("DELETE", f"/app/{app}")
    assert world.call("POST", callback, token="").status == 404


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
def test_who_is_not_asked_cannot_consent_later(world: WebhooksWorld, app: str, given: dict[str, object]) -> None:
    body = {"url": URL, "cloudEvents": {"mode": "binary", **given}}
    assert world.call("POST", f"/app/{app}/endpoint", body).body["detail"][0]["loc"][2] == "callback"


def test_only_an_http_endpoint_is_asked(world: WebhooksWorld, app: str) -> None:
    given = {"url": "ironmq:///next", "cloudEvents": ASKED}
    assert world.call("POST", f"/app/{app}/endpoint", given).status == 422
    assert world.call("POST", f"/app/{app}/endpoint", {**given, "cloudEvents": BINARY}).status == 201
