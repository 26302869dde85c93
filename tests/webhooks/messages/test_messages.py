"""Messages from the producer to the endpoint, and what the API then shows of them, on fakes (checks 19 to 41 of the
protocol's description).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from tests.contract.filled import filled
from tests.fakes import Reply
from tests.fakes.clock import START_MS
from tests.webhooks.world import WebhooksWorld

from pushhub.base.errors import Unavailable
from pushhub.base.ports import PushRequest
from pushhub.base.signing import parse_key
from pushhub.base.times import iso_time
from pushhub.engine.model.message import MAX_HOPS
from pushhub.webhooks.messages.attempts import COUNTED_MS
from pushhub.webhooks.model.attempt import LoggedAttempt
from pushhub.webhooks.wiring import Webhooks

URL = "https://a.example/in"
HOUR = 3600


def post(world: WebhooksWorld, app: str, event_type: str = "user.created", **fields: Any) -> dict[str, Any]:
    body = {"eventType": event_type, "payload": {"a": "ü"}, **fields}
    answer = world.call("POST", f"/app/{app}/msg", body)
    assert answer.status == 202, answer
    posted: dict[str, Any] = answer.body
    return posted


def verified(request: PushRequest, secret: str) -> bool:
    """Whether one of the signatures is made with a secret; of both families of headers, which must agree."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    for name in ("id", "timestamp", "signature"):
        assert headers[f"svix-{name}"] == headers[f"webhook-{name}"]
    content = b"%s.%s.%s" % (headers["svix-id"].encode(), headers["svix-timestamp"].encode(), request.body)
    given = [each.split(",") for each in headers["svix-signature"].split(" ")]
    if secret.startswith("whpk_"):
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(secret.removeprefix("whpk_")))
        for version, signature in given:
            if version == "v1a":
                key.verify(base64.b64decode(signature), content)
                return True
        return False
    return parse_key(secret).signature(content) in {",".join(each) for each in given}


def secret(world: WebhooksWorld, app: str, endpoint: str) -> str:
    return str(world.ask("GET", f"/app/{app}/endpoint/{endpoint}/secret")["key"])


def test_a_message_reaches_each_endpoint_that_wants_it_signed_and_byte_for_byte(world: WebhooksWorld, app: str) -> None:
    # Given two endpoints
    first = world.make_endpoint(app, headers={"X-Key": "1"})
    world.make_endpoint(app, "https://b.example/in")
    # When a message is posted with unusual formatting of its JSON
    text = '{"eventType": "user.created", "payload": {"b": 1.10,\n "a" : "\\u00fc"}}'
    posted = world.call("POST", f"/app/{app}/msg", text)
    assert posted.status == 202
    assert posted.body["payload"] == {"b": 1.1, "a": "ü"}
    world.run(seconds=1)
    # Then each gets it once, byte for byte, signed
    assert sorted(each.url for each in world.sender.requests) == [URL, "https://b.example/in"]
    [request] = world.sender.requests_to(URL)
    assert request.body == b'{"b": 1.10,\n "a" : "\\u00fc"}'
    assert request.headers["svix-id"] == posted.body["id"]
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["X-Key"] == "1"
    assert verified(request, secret(world, app, first))


def test_it_is_shown_and_listed_with_and_without_its_payload(world: WebhooksWorld) -> None:
    app = world.make_app(uid="acme")
    posted = post(world, app, eventId="e-1", channels=["b", "a"], tags=["t/1"])
    assert posted["channels"] == ["a", "b"]
    for name in (posted["id"], "e-1"):
        assert world.ask("GET", f"/app/acme/msg/{name}") == posted
        assert world.ask("GET", f"/app/{app}/msg/{name}", with_content="false")["payload"] == {}
    assert world.ask("GET", "/app/acme/msg")["data"] == [posted]
    assert world.call("GET", f"/app/{app}/msg/msg_1srOrx2ZWZBpBUvZwXKQmoEYga2").status == 404
    other = world.make_app()
    assert world.call("GET", f"/app/{other}/msg/{posted['id']}").status == 404


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"payload": [1]}, "payload"),
        ({"payload": None}, "payload"),
        ({"eventType": "a b"}, "eventType"),
        ({"eventType": ""}, "eventType"),
        ({"channels": []}, "channels"),
        ({"channels": ["a"] * 1 + [str(number) for number in range(10)]}, "channels"),
        ({"payloadRetentionPeriod": 91}, "payloadRetentionPeriod"),
        ({"payloadRetentionPeriod": 0}, "payloadRetentionPeriod"),
        ({"eventId": "msg_x"}, "eventId"),
        ({"tags": ["x"] * 1 + [str(number) for number in range(5)]}, "tags"),
        ({"deliverAt": "2099-01-01T00:00:00Z"}, "deliverAt"),
        ({"deliverAt": iso_time(START_MS + 24 * HOUR * 1000 + 60_000)}, "deliverAt"),
        ({"deliverAt": iso_time(START_MS + 30_000)}, "deliverAt"),
        ({"deliverAt": "2020-01-01T00:00:00Z"}, "deliverAt"),
        ({"deliverAt": "soon"}, "deliverAt"),
    ],
)
def test_a_message_that_breaks_a_rule_is_refused(world: WebhooksWorld, fields: dict[str, Any], place: str) -> None:
    app = world.make_app()
    answer = world.call("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}, **fields})
    assert answer.status == 422
    assert answer.body["detail"][0]["loc"][:2] == ["body", place]
    assert world.ask("GET", f"/app/{app}/msg")["data"] == []


def test_what_is_too_large_or_for_nobody_is_refused(world: WebhooksWorld, app: str) -> None:
    large = world.call("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {"a": "x" * 2_097_152}})
    assert (large.status, large.body["code"]) == (413, "payload_too_large")
    nobody = world.call("POST", "/app/none/msg", {"eventType": "a", "payload": {}})
    assert (nobody.status, nobody.body) == (404, {"code": "not_found", "detail": "Application not found"})
    assert world.call("POST", "/app/a b/msg", {"eventType": "a", "payload": {}}).status == 422


@pytest.mark.parametrize("kind", ["app", "stream"])
def test_what_goes_round_in_circles_ends(world: WebhooksWorld, kind: str) -> None:
    # Given an application or a stream whose receiver posts what it gets to where it came from, as a URL of this hub may
    place = world.make_app() if kind == "app" else str(world.ask("POST", "/stream", {"name": "s"})["id"])
    path, message = f"/app/{place}/msg", dict[str, Any](eventType="order.paid", payload={})
    if kind == "app":
        world.make_endpoint(place, "https://a.example/in")
    else:
        config = {"url": "https://a.example/in"}
        world.ask("POST", f"/stream/{place}/sink", {"type": "http", "config": config, "batchSize": 1})
        path, message = f"/stream/{place}/events", {"events": [{"eventType": "order.paid", "payload": "{}"}]}
    answer = world.call("POST", path, message)
    # When the message comes round with the headers that the hub sent
    rounds = 0
    while answer.status == 202:
        world.run(seconds=20)
        rounds += 1
        hops = world.sender.requests[-1].headers["Pushhub-Hops"]
        answer = world.call("POST", path, message, headers={"pushhub-hops": hops})
    # Then it is taken for a loop, in the dialect's own shape
    assert (rounds, answer.status, answer.body["code"]) == (MAX_HOPS, 508, "loop")
    assert len(world.sender.requests_to("https://a.example/in")) == MAX_HOPS


def test_an_event_id_is_unique_in_its_application(world: WebhooksWorld) -> None:
    app, other = world.make_app(), world.make_app()
    post(world, app, eventId="e")
    assert world.call("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}, "eventId": "e"}).status == 409
    post(world, other, eventId="e")


def test_an_application_is_made_with_its_first_message(world: WebhooksWorld) -> None:
    given = {"name": "Acme", "uid": "acme"}
    post(world, "acme", application=given)
    post(world, "acme", application={"name": "Other", "uid": "acme"})
    assert world.ask("GET", "/app/acme")["name"] == "Acme"
    for wrong, kind in (({"name": "x"}, "missing"), ({"name": "x", "uid": "y"}, "mismatch")):
        body = {"eventType": "a", "payload": {}, "application": wrong}
        answer = world.call("POST", "/app/new/msg", body)
        assert (answer.status, answer.body["detail"][0]["type"]) == (422, f"application_uid_{kind}")


def test_raw_text_goes_out_as_it_is_with_its_content_type(world: WebhooksWorld, app: str) -> None:
    world.make_endpoint(app)
    raw = {"rawPayload": "<a>ü</a>", "headers": {"content-type": "text/xml"}}
    posted = post(world, app, payload={}, transformationsParams=raw)
    world.run(seconds=1)
    [request] = world.sender.requests
    assert request.body == "<a>ü</a>".encode()
    assert request.headers["Content-Type"] == "text/xml"
    assert world.ask("GET", f"/app/{app}/msg/{posted['id']}")["payload"] == {"rawPayload": "<a>ü</a>"}


PAYLOAD_TEXT = '{ "b": 1.0, "a": 1e2, "n": 12345678901234567890123, "f": 0.1000,\n "\\u00fc": "ü" }'


@pytest.mark.parametrize("limit", [8_192, 10])
def test_a_payload_is_shown_as_the_very_text_it_was_posted_as(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given an endpoint and a message whose numbers no parser would write again as they are, kept inline or apart
    monkeypatch.setattr("pushhub.engine.acceptance.accept.INLINE_BODY_LIMIT", limit)
    world = WebhooksWorld()
    app = world.make_app()
    endpoint = world.make_endpoint(app)
    body = f'{{"eventType": "a", "payload": {PAYLOAD_TEXT}}}'
    posted = world.text("POST", f"/app/{app}/msg", body)
    message = json.loads(posted)["id"]
    world.run(seconds=3)
    # Then what was answered, every view of it, and what was sent, hold that text
    assert f'"payload": {PAYLOAD_TEXT}' in posted
    for path in (
        f"/app/{app}/msg/{message}",
        f"/app/{app}/msg",
        f"/app/{app}/endpoint/{endpoint}/msg",
    ):
        shown = world.text("GET", path)
        assert f'"payload": {PAYLOAD_TEXT}' in shown
        json.loads(shown)
    polled = world.text("GET", f"/app/{app}/poller/all", after="2026-01-01T00:00:00Z")
    assert f'"payload": {PAYLOAD_TEXT}' in polled
    assert world.sender.requests[0].body == PAYLOAD_TEXT.encode()


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": NaN}', '{"a": "\\ud800"}', "[" * 5_000])
def test_raw_text_that_only_looks_like_json_is_shown_as_text(world: WebhooksWorld, app: str, text: str) -> None:
    posted = post(world, app, payload={}, transformationsParams={"rawPayload": text})
    assert world.ask("GET", f"/app/{app}/msg/{posted['id']}")["payload"] == {"rawPayload": text}


def test_event_types_channels_and_disabling_select_endpoints(world: WebhooksWorld) -> None:
    # Given endpoints with filters
    for name in ("a", "b"):
        world.ask("POST", "/event-type", {"name": name, "description": "x"})
    app = world.make_app()
    chosen: dict[str, dict[str, Any]] = {
        "all": {},
        "of-a": {"eventTypes": ["a"]},
        "in-x": {"channels": ["x"]},
        "off": {"disabled": True},
    }
    for uid, fields in chosen.items():
        world.make_endpoint(app, f"https://{uid}.example/", uid=uid, **fields)
    # When messages are posted
    got: dict[str, set[str]] = {}
    for name, channels in {"a": None, "b": None, "b in x": ["x", "y"], "A": None}.items():
        world.sender.requests.clear()
        post(world, app, name[:1], channels=channels)
        world.run(seconds=1)
        got[name] = {each.url.split("/")[2].removesuffix(".example") for each in world.sender.requests}
    # Then each goes to the endpoints whose filters match
    assert got == {"a": {"all", "of-a"}, "b": {"all"}, "b in x": {"all", "in-x"}, "A": {"all"}}
    assert world.ask("POST", f"/app/{app}/msg/precheck/active", {"eventType": "a"}) == {"active": True}


def test_an_endpoint_made_or_changed_just_before_counts(world: WebhooksWorld, app: str) -> None:
    post(world, app)
    endpoint = world.make_endpoint(app)
    post(world, app)
    world.ask("PATCH", f"/app/{app}/endpoint/{endpoint}", {"disabled": True})
    post(world, app)
    world.ask("PATCH", f"/app/{app}/endpoint/{endpoint}", {"disabled": False})
    world.run(seconds=5)
    assert len(world.sender.requests) == 1


def test_a_repeated_post_is_one_message(world: WebhooksWorld, app: str) -> None:
    world.make_endpoint(app)
    body, key = {"eventType": "a", "payload": {"n": 1}}, {"Idempotency-Key": "k"}
    first = world.call("POST", f"/app/{app}/msg", body, headers=key)
    again = world.call("POST", f"/app/{app}/msg", body, headers=key)
    assert (again.status, again.body) == (202, first.body)
    # And another message under its key is refused, and not taken for the first one
    refused = world.call("POST", f"/app/{app}/msg", {**body, "payload": {"n": 2}}, headers=key)
    assert (refused.status, refused.body["detail"][0]["loc"]) == (422, ["header", "idempotency-key"])
    world.run(seconds=1)
    assert len(world.sender.requests) == 1
    assert len(world.ask("GET", f"/app/{app}/msg")["data"]) == 1


def test_a_post_that_was_refused_can_be_repeated_with_its_key(world: WebhooksWorld) -> None:
    app, key = world.make_app(), {"Idempotency-Key": "k"}
    assert world.call("POST", f"/app/{app}/msg", {"eventType": "a"}, headers=key).status == 422
    post(world, app, eventId="e")
    body = {"eventType": "a", "payload": {}}
    assert world.call("POST", f"/app/{app}/msg", {**body, "eventId": "e"}, headers=key).status == 409
    assert world.call("POST", f"/app/{app}/msg", body, headers=key).status == 202


def test_what_fails_is_tried_again_on_svix_schedule_and_then_given_up(world: WebhooksWorld, app: str) -> None:
    # Given an endpoint that is down
    endpoint = world.make_endpoint(app)
    world.sender.script(URL, Reply(status_code=500, body=b"no"))
    posted = post(world, app)
    # When two days pass
    world.run(seconds=1)
    message = world.ask("GET", f"/app/{app}/endpoint/{endpoint}/msg")["data"][0]
    assert (message["status"], message["statusText"]) == (3, "sending")
    wait = datetime.fromisoformat(message["nextAttempt"]) - datetime.fromtimestamp(world.clock.now() / 1000, UTC)
    assert 2 <= wait.total_seconds() <= 6
    world.run(seconds=48 * HOUR)
    # Then it was tried eight times, and is shown as failed
    attempts = world.ask("GET", f"/app/{app}/attempt/msg/{posted['id']}")["data"]
    assert len(attempts) == 8
    assert {(each["status"], each["statusText"], each["responseStatusCode"]) for each in attempts} == {(2, "fail", 500)}
    assert attempts == world.ask("GET", f"/app/{app}/attempt/endpoint/{endpoint}")["data"]
    times = [datetime.fromisoformat(each["timestamp"]).timestamp() for each in reversed(attempts)]
    planned = (5, 300, 1800, 7200, 18_000, 36_000, 36_000)
    for before, after, wait_s in zip(times, times[1:], planned, strict=False):
        assert 0.8 * wait_s <= after - before <= 1.2 * wait_s + 61
    [failed] = world.ask("GET", f"/app/{app}/endpoint/{endpoint}/msg", status=2)["data"]
    assert (failed["id"], "nextAttempt" in failed) == (posted["id"], False)
    [destination] = world.ask("GET", f"/app/{app}/msg/{posted['id']}/endpoint")["data"]
    assert (destination["id"], destination["statusText"], destination["nextAttempt"]) == (endpoint, "fail", None)


def test_an_answer_that_is_cut_within_a_letter_is_text(world: WebhooksWorld, app: str) -> None:
    # Given an endpoint whose answer is longer than what is kept, which ends within a letter
    world.make_endpoint(app)
    world.sender.script(URL, Reply(status_code=200, body="Überlastet, spät".encode()[:-2]))
    posted = post(world, app)
    world.run(seconds=5)
    # Then what is whole is shown
    [attempt] = world.ask("GET", f"/app/{app}/attempt/msg/{posted['id']}")["data"]
    assert attempt["response"] == "Überlastet, sp"


def test_attempts_say_what_was_answered(world: WebhooksWorld, app: str) -> None:
    endpoint = world.make_endpoint(app)
    world.sender.script(
        URL,
        Reply(status_code=302, body=b"\xff", takes_ms=20),
        Reply(error_class="timeout", message="No complete answer within 30 s"),
        Reply(status_code=204),
    )
    posted = post(world, app)
    world.run(seconds=HOUR)
    third, second, first = world.ask("GET", f"/app/{app}/attempt/msg/{posted['id']}")["data"]
    assert (first["responseStatusCode"], first["response"], first["responseDurationMs"]) == (302, "/w==", 20)
    assert (second["responseStatusCode"], second["response"]) == (0, "No complete answer within 30 s")
    assert (third["status"], third["statusText"], third["triggerType"]) == (0, "success", 0)
    # A timed-out attempt waits a minute at least
    seconds = [datetime.fromisoformat(each["timestamp"]).timestamp() for each in (second, third)]
    assert seconds[1] - seconds[0] >= 60
    # And they can be filtered
    listed = f"/app/{app}/attempt/endpoint/{endpoint}"
    for query, expected in (
        ({"status": 0}, [third]),
        ({"status": 2, "status_code_class": 300}, [first]),
        ({"event_types": "user.created,x"}, [third, second, first]),
        ({"event_types": "x"}, []),
        ({"channel": "x"}, []),
        ({"before": third["timestamp"]}, [second, first]),
        ({"after": third["timestamp"]}, [third]),
        ({"limit": 1}, [third]),
    ):
        assert world.ask("GET", listed, **query)["data"] == expected, query
    assert world.ask("GET", listed, limit=1, after=first["timestamp"])["data"] == [first]
    shown = f"/app/{app}/msg/{posted['id']}/attempt/{first['id']}"
    assert world.ask("GET", shown, with_content="false")["response"] == "{}"
    # And wrong parameters are refused, even if there is nothing to show
    none = f"/app/{app}/attempt/endpoint/{world.make_endpoint(app)}"
    for wrong in ("with_content=maybe", "with_msg=2"):
        assert world.call("GET", none, query=wrong).status == 400, wrong
    assert world.ask("GET", shown, with_msg="true")["msg"]["id"] == posted["id"]
    assert world.call("DELETE", f"{shown}/content").status == 204
    assert world.ask("GET", shown)["response"] == "EXPUNGED"
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}/stats") == {
        "success": 1,
        "fail": 2,
        "pending": 0,
        "sending": 0,
        "canceled": 0,
    }


@pytest.mark.parametrize("slow", [True, False], ids=["slow", "throttled"])
def test_statistics_of_very_many_attempts_tell_of_the_newest(
    world: WebhooksWorld, app: str, monkeypatch: pytest.MonkeyPatch, slow: bool
) -> None:
    # Given an endpoint with more attempts than can be read in time, or than the table gives in a second
    endpoint = world.make_endpoint(app)
    read: list[int] = []

    def attempts(*_: object, **__: object) -> Iterator[LoggedAttempt]:
        for number in range(1_000_000):
            read.append(number)
            world.clock.advance(seconds=0.01 if slow else 0)
            if not slow and number == 500:
                raise Unavailable("dynamodb:Query", "ProvisionedThroughputExceededException")
            yield filled(LoggedAttempt, success=number % 2 == 0)

    monkeypatch.setattr(world.ports.message_log, "attempts", attempts)
    # When they are asked for, then they are told of those that were read
    counted = world.ask("GET", f"/app/{app}/endpoint/{endpoint}/stats")
    assert counted["success"] + counted["fail"] >= 500
    assert len(read) <= COUNTED_MS // 10 + 1


def test_statistics_cover_four_weeks_at_most_and_nothing_to_come(world: WebhooksWorld, app: str) -> None:
    endpoint = world.make_endpoint(app)
    for query in ({"since": "2026-01-01T00:00:00Z"}, {"until": "2099-01-01T00:00:00Z"}):
        answer = world.call("GET", f"/app/{app}/endpoint/{endpoint}/stats", query=urlencode(query))
        assert (answer.status, answer.body["code"]) == (400, "invalid_range")


def test_a_resent_message_is_tried_once_at_once_whatever_the_filters(world: WebhooksWorld, app: str) -> None:
    # Given a message that an endpoint was never owed
    endpoint = world.make_endpoint(app, channels=["x"])
    posted = post(world, app)
    world.run(seconds=1)
    assert world.sender.requests == []
    # When it is resent, and fails
    world.sender.script(URL, 500, 200)
    path = f"/app/{app}/msg/{posted['id']}/endpoint/{endpoint}/resend"
    resent = world.call("POST", path)
    assert (resent.status, resent.body) == (202, {})
    world.run(seconds=48 * HOUR)
    # Then that is one manual attempt
    [attempt] = world.ask("GET", f"/app/{app}/attempt/msg/{posted['id']}")["data"]
    assert (attempt["triggerType"], attempt["status"]) == (1, 2)
    # When it is resent again and arrives, then it is shown as delivered, and is still signed with the same id
    world.ask("POST", path)
    world.run(seconds=10)
    [message] = world.ask("GET", f"/app/{app}/endpoint/{endpoint}/msg")["data"]
    assert message["statusText"] == "success"
    request = world.sender.requests[-1]
    assert request.headers["svix-id"] == posted["id"]
    assert verified(request, secret(world, app, endpoint))


def test_a_success_by_hand_ends_automatic_retries_and_a_failure_does_not(world: WebhooksWorld, app: str) -> None:
    endpoint = world.make_endpoint(app)
    world.sender.script(URL, 500, 500, 500, 200)
    posted = post(world, app)
    world.run(seconds=8)
    path = f"/app/{app}/msg/{posted['id']}/endpoint/{endpoint}/resend"
    # When a resend fails, then it waits for its next try as before
    world.ask("POST", path)
    world.run(seconds=2)
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}/msg")["data"][0]["statusText"] == "sending"
    # When a resend succeeds, then nothing more is sent
    world.ask("POST", path)
    world.run(seconds=48 * HOUR)
    triggers = [each["triggerType"] for each in world.ask("GET", f"/app/{app}/attempt/msg/{posted['id']}")["data"]]
    assert sorted(triggers) == [0, 0, 1, 1]
    assert len(world.sender.requests) == 4


def test_to_a_disabled_endpoint_nothing_is_resent(world: WebhooksWorld, app: str) -> None:
    endpoint = world.make_endpoint(app, disabled=True)
    posted = post(world, app)
    resent = world.call("POST", f"/app/{app}/msg/{posted['id']}/endpoint/{endpoint}/resend")
    assert (resent.status, resent.body) == (202, {"skipped": "endpoint_disabled"})
    world.run(seconds=60)
    assert world.sender.requests == []


def test_an_expunged_message_is_not_sent_nor_shown(world: WebhooksWorld, app: str) -> None:
    # Given a message that waits for its next try, and a large one
    endpoint = world.make_endpoint(app)
    world.sender.script(URL, 500)
    posted, large = post(world, app), post(world, app, payload={"a": "x" * 20_000}, eventId="order-7")
    world.run(seconds=1)
    # When their payloads are expunged, one of them by its producer's id
    assert world.call("DELETE", f"/app/{app}/msg/{posted['id']}/content").status == 204
    done = world.ask("POST", f"/app/{app}/msg/bulk-expunge", {"ids": ["order-7", "msg_none", "order-8"]})
    assert done == {"results": {"order-7": "expunged", "msg_none": "not-found", "order-8": "not-found"}}
    # Then there is nothing to expunge any more
    done = world.ask("POST", f"/app/{app}/msg/bulk-expunge", {"ids": [posted["id"], large["id"]]})
    assert done == {"results": {posted["id"]: "not-found", large["id"]: "not-found"}}
    world.run(seconds=48 * HOUR)
    # And nothing more is sent, and the message shows why
    assert len(world.sender.requests) == 2
    for each in (posted, large):
        assert world.ask("GET", f"/app/{app}/msg/{each['id']}")["payload"] == {"expired": True}
        gone = world.call("POST", f"/app/{app}/msg/{each['id']}/endpoint/{endpoint}/resend")
        assert (gone.status, gone.body["code"]) == (400, "missing_payload")


def test_a_payload_is_gone_after_its_retention_and_the_message_stays_listed(world: WebhooksWorld, app: str) -> None:
    posted = post(world, app, payloadRetentionHours=1)
    assert world.ask("GET", f"/app/{app}/msg/{posted['id']}")["payload"] == {"a": "ü"}
    world.clock.advance(ms=HOUR * 1000)
    assert world.ask("GET", f"/app/{app}/msg/{posted['id']}")["payload"] == {"expired": True}


def test_a_message_is_not_sent_before_its_time(world: WebhooksWorld, app: str) -> None:
    world.make_endpoint(app)
    at = datetime.fromtimestamp(world.clock.now() / 1000 + 23 * HOUR, UTC)
    posted = post(world, app, deliverAt=at.isoformat())
    assert datetime.fromisoformat(posted["deliverAt"]) == at.replace(microsecond=at.microsecond // 1000 * 1000)
    world.run(seconds=23 * HOUR - 60)
    assert world.sender.requests == []
    world.run(seconds=180)
    assert len(world.sender.requests) == 1


def test_retry_after_is_obeyed_and_410_disables(world: WebhooksWorld, app: str) -> None:
    endpoint = world.make_endpoint(app)
    world.sender.script(URL, Reply(status_code=503, headers={"retry-after": "3000"}), 410)
    post(world, app)
    world.run(seconds=2900)
    assert len(world.sender.requests) == 1
    world.run(seconds=300)
    assert len(world.sender.requests) == 2
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}")["disabled"] is True
    world.run(seconds=48 * HOUR)
    assert len(world.sender.requests) == 2


def test_a_rotated_secret_signs_beside_the_old_one_for_a_while(world: WebhooksWorld, app: str) -> None:
    # Given an endpoint whose secret is rotated to an Ed25519 key
    endpoint = world.make_endpoint(app)
    old = secret(world, app, endpoint)
    key = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
    rotated = world.call("POST", f"/app/{app}/endpoint/{endpoint}/secret/rotate", {"key": key})
    new = rotated.body["key"]
    assert (rotated.status, new[:5]) == (200, "whpk_")
    assert new == secret(world, app, endpoint)
    # Then messages carry both signatures, the new one first
    post(world, app)
    world.run(seconds=1)
    request = world.sender.requests[-1]
    assert verified(request, old)
    assert verified(request, new)
    assert [each[:4] for each in request.headers["svix-signature"].split(" ")] == ["v1a,", "v1,"] or request.headers[
        "svix-signature"
    ].startswith("v1a,")
    # When a day has passed, then the old one signs no more
    world.clock.advance(ms=24 * HOUR * 1000)
    post(world, app)
    world.run(seconds=1)
    assert not verified(world.sender.requests[-1], old)
    assert verified(world.sender.requests[-1], new)


def test_without_grace_the_old_secret_ends_at_once_and_the_eleventh_is_too_many(world: WebhooksWorld, app: str) -> None:
    endpoint = world.make_endpoint(app)
    path = f"/app/{app}/endpoint/{endpoint}/secret/rotate"
    old = secret(world, app, endpoint)
    world.ask("POST", path, {"gracePeriodSeconds": 0})
    post(world, app)
    world.run(seconds=1)
    assert not verified(world.sender.requests[-1], old)
    for _ in range(10):
        world.ask("POST", path, {})
    refused = world.call("POST", path, {})
    assert (refused.status, refused.body["code"]) == (400, "limit_reached")


def test_an_example_reaches_its_endpoint_whatever_it_chooses(world: WebhooksWorld) -> None:
    schema = {"type": "object", "examples": [{"email": "a@b.example"}]}
    world.ask("POST", "/event-type", {"name": "user.created", "description": "x", "schemas": {"1": schema}})
    world.ask("POST", "/event-type", {"name": "bare", "description": "x"})
    app = world.make_app()
    endpoint = world.make_endpoint(app, channels=["x"])
    world.make_endpoint(app, "https://b.example/in")
    path = f"/app/{app}/endpoint/{endpoint}/send-example"
    for name in ("svix.ping", "user.created"):
        answer = world.call("POST", path, {"eventType": name})
        assert (answer.status, answer.body["payload"]) == (200, {})
    world.run(seconds=1)
    assert [json.loads(each.body) for each in world.sender.requests] == [{"success": True}, {"email": "a@b.example"}]
    assert world.call("POST", path, {"eventType": "bare"}).body["code"] == "invalid_scheme"
    assert world.call("POST", path, {"eventType": "none"}).status == 404


def test_a_deleted_endpoint_gets_nothing_more_and_stays_a_destination(world: WebhooksWorld, app: str) -> None:
    endpoint = world.make_endpoint(app)
    world.sender.script(URL, 500)
    posted = post(world, app)
    world.run(seconds=1)
    world.ask("DELETE", f"/app/{app}/endpoint/{endpoint}")
    world.run(seconds=48 * HOUR)
    assert len(world.sender.requests) == 1
    [destination] = world.ask("GET", f"/app/{app}/msg/{posted['id']}/endpoint")["data"]
    assert destination["id"] == endpoint
    assert world.call("GET", f"/app/{app}/endpoint/{endpoint}").status == 404


def test_a_deleted_application_sends_nothing_more(world: WebhooksWorld, app: str) -> None:
    world.make_endpoint(app)
    world.sender.script(URL, 500)
    post(world, app)
    world.run(seconds=1)
    world.ask("DELETE", f"/app/{app}")
    world.run(seconds=48 * HOUR)
    assert len(world.sender.requests) == 1


def test_messages_are_listed_newest_first_within_the_times_asked_for(world: WebhooksWorld, app: str) -> None:
    # Given messages a minute apart
    posted = []
    for number in range(5):
        posted.append(post(world, app, f"type-{number % 2}"))
        world.clock.advance(ms=60_000)
    ids = [each["id"] for each in reversed(posted)]
    times = [each["timestamp"] for each in posted]

    def listed(**query: Any) -> list[str]:
        return [each["id"] for each in world.ask("GET", f"/app/{app}/msg", **query)["data"]]

    # Then they are listed newest first, before a moment and from one on
    assert listed() == ids
    assert listed(before=times[2]) == ids[3:]
    assert listed(after=times[2]) == ids[:3]
    assert listed(after=times[1], before=times[3]) == ids[2:4]
    # And from, or before, a moment that is older than any identifier
    assert listed(after="2013-11-10T17:17:34Z", before=times[3]) == ids[2:]
    assert listed(before="2013-11-10T17:17:34Z") == []
    # With a limit, the oldest from a moment on are shown
    assert listed(after=times[1], limit=2) == ids[2:4]
    assert listed(event_types="type-1") == [ids[1], ids[3]]
    assert world.ask("GET", f"/app/{app}/msg", query="event_types[]=type-1&event_types[]=x")["data"] != []
    # And a naive time is UTC
    assert listed(before=times[2].removesuffix("Z")) == ids[3:]
    # And times may be spelled as clients in other languages do
    spaced = times[2].replace("T", " ").removesuffix("Z")
    for spelled in (f"{spaced}000000 UTC", f"{spaced} +00:00", f"{spaced}  00:00", f"{spaced}Z", f"{spaced}z"):
        assert listed(before=spelled) == ids[3:], spelled
    for wrong in ("yesterday", f"{spaced} CET", ":" * 100, "2026-01-01T00:00:00 +99:00"):
        assert world.call("GET", f"/app/{app}/msg", before=wrong).status == 400, wrong
    first = world.ask("GET", f"/app/{app}/msg", limit=2)
    second = world.ask("GET", f"/app/{app}/msg", limit=2, iterator=first["iterator"])
    assert [each["id"] for each in second["data"]] == ids[2:4]
    assert world.ask("GET", f"/app/{app}/msg", limit=2, iterator=second["prevIterator"])["data"] == first["data"]
    # After 90 days they are no longer listed
    world.clock.advance(ms=91 * 86_400_000)
    assert listed() == []


def test_ingest_and_control_take_messages_alike(world: WebhooksWorld, app: str) -> None:
    posting = world.hub.part(Webhooks).posting_api
    body = {"eventType": "a", "payload": {"a": 1}}
    one = world.call("POST", f"/app/{app}/msg", body, api=posting)
    two = world.call("POST", f"/app/{app}/msg/", body)
    assert (one.status, two.status) == (202, 202)
    assert one.body.keys() == two.body.keys()
    assert world.call("GET", f"/app/{app}", api=posting).status == 404


def test_a_post_to_an_eager_application_sends_the_first_orders_once_also_if_it_is_repeated(
    world: WebhooksWorld,
) -> None:
    # Given an eager application with two endpoints, one of which has a rate
    app = world.make_app(eager=True)
    assert world.ask("GET", f"/app/{app}")["eager"] is True
    prompt = world.make_endpoint(app)
    world.make_endpoint(app, "https://limited.example/in", throttleRate=5)
    # When a message is posted, and the request repeated
    body, key = {"eventType": "a", "payload": {"n": 1}}, {"Idempotency-Key": "k"}
    for _ in range(2):
        assert world.call("POST", f"/app/{app}/msg", body, headers=key).status == 202
    # Then one order was sent, for the endpoint without a rate
    assert [order.key.subscriber_id for order, _ in world.push_queue.sent] == [prompt]
    # And each endpoint gets the message once
    world.run(seconds=300)
    assert sorted(each.url for each in world.sender.requests) == ["https://a.example/in", "https://limited.example/in"]
    # And after it is made like others, the stream sends all
    assert "eager" not in world.ask("PATCH", f"/app/{app}", {"eager": False})
    before = len(world.push_queue.sent)
    world.call("POST", f"/app/{app}/msg", body)
    assert len(world.push_queue.sent) == before
