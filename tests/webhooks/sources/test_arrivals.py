"""What senders post to sources: verified, taken in once, passed on byte for byte; and what is turned away."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.engine.world import PROJECT
from tests.fakes import Crash, Fault, FaultPlan
from tests.fakes.gateway import http_event
from tests.webhooks.world import OTHER_PROJECT, WebhooksWorld

from pushhub.base.errors import Contended
from pushhub.cloud.observability import logger
from pushhub.engine.model.consumed import Consumed
from pushhub.engine.model.message import MAX_HOPS
from pushhub.engine.model.project import Project
from pushhub.engine.model.quota import Quota
from pushhub.engine.projects.projects import Projects
from pushhub.runtime.apis import handle
from pushhub.webhooks.api.arrivals import MESSAGE_ID
from pushhub.webhooks.wiring import Webhooks

ROOT = "/ingest/api/v1/source"
SECRET = "It's a Secret to Everybody"
BODY = b'{"zen": "Keep it logically awesome.",\n "caf\xc3\xa9": 1.10}'
ENDPOINT = "https://a.example/in"


class Sources(WebhooksWorld):
    """A hub that is asked at all paths, as a producer asks it."""

    def ask_at(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None, query: str = ""
    ) -> dict[str, Any]:
        """One request, at the function that producers call or, for another method than POST, at the other one."""
        protocol = self.hub.part(Webhooks).protocol
        mounted = protocol.producer_apis if method == "POST" and path.startswith("/ingest/in") else protocol.apis
        event = http_event(method, path, body, query=query, headers=headers, address="192.0.2.7")
        return handle([mounted], event)

    def manage(self, method: str, path: str, body: Any = None, *, token: str | None = None) -> tuple[int, Any]:
        """A request of the owner's; ``path`` follows ``/ingest/api/v1/source``."""
        headers = {"authorization": f"Bearer {token or self.token}"}
        sent = b"" if body is None else json.dumps(body).encode()
        answer = self.ask_at(method, f"{ROOT}{path}", sent, headers)
        return answer["statusCode"], json.loads(answer["body"]) if answer["body"] else None

    def create(self, kind: str = "github", url: str | None = ENDPOINT, **config: Any) -> dict[str, Any]:
        """A source with an endpoint."""
        wanted = {"name": "s", "type": kind, "config": config}
        status, source = self.manage("POST", "", wanted)
        assert status == 201, source
        if url:
            assert self.manage("POST", f"/{source['id']}/endpoint", {"url": url})[0] == 201
        return dict(source)

    def arrive(
        self, source: Mapping[str, Any], body: bytes, headers: Mapping[str, str], query: str = ""
    ) -> dict[str, Any]:
        """What a sender posts to a source's URL."""
        return self.ask_at("POST", urlsplit(source["ingestUrl"]).path, body, headers, query)

    def stats(self, source: Mapping[str, Any]) -> Any:
        return self.manage("GET", f"/{source['id']}/stats")[1]


def github(
    body: bytes = BODY, *, secret: str = SECRET, delivery: str = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
) -> dict[str, str]:
    """The headers with which GitHub sends a body."""
    return {
        "content-type": "application/json; charset=utf-8",
        "user-agent": "GitHub-Hookshot/044aadd",
        "x-github-event": "push",
        "x-github-delivery": delivery,
        "x-hub-signature-256": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest(),
    }


def slack(world: Sources, body: bytes, secret: str = "slack-secret") -> dict[str, str]:
    """The headers with which Slack sends a body now."""
    at = str(world.clock.now() // 1000)
    signature = hmac.new(secret.encode(), f"v0:{at}:".encode() + body, hashlib.sha256).hexdigest()
    return {"x-slack-request-timestamp": at, "x-slack-signature": f"v0={signature}", "content-type": "application/json"}


@pytest.fixture
def world() -> Sources:
    return Sources()


def test_what_is_verified_goes_on_byte_for_byte_with_its_senders_headers(world: Sources) -> None:
    # Given a source with an endpoint
    source = world.create(secret=SECRET)
    # When its sender posts
    answer = world.arrive(source, BODY, github())
    # Then it is accepted under an id, and the answer is empty
    assert (answer["statusCode"], answer["body"]) == (200, "")
    assert answer["headers"][MESSAGE_ID].startswith("msg_")
    # And the endpoint gets the same bytes, with what the sender said of them, and our signature
    world.run(seconds=5)
    [sent] = world.sender.requests_to(ENDPOINT)
    headers = {name.lower(): value for name, value in sent.headers.items()}
    assert sent.body == BODY
    assert headers["content-type"] == "application/json; charset=utf-8"
    assert headers["x-github-event"] == "push"
    assert headers["x-hub-signature-256"] == github()["x-hub-signature-256"]
    assert headers["webhook-signature"].startswith("v1,")
    assert headers["user-agent"] != "GitHub-Hookshot/044aadd"
    # And its log is that of any application
    [listed] = world.ask("GET", f"/app/{source['id']}/msg")["data"]
    assert (listed["eventType"], listed["eventId"]) == ("push", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
    [attempt] = world.ask("GET", f"/app/{source['id']}/attempt/msg/{listed['id']}")["data"]
    assert attempt["responseStatusCode"] == 200


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"x-hub-signature-256": "sha256=" + "0" * 64}, "forged"),
        ({"x-hub-signature-256": ""}, "unsigned"),
        ({"x-hub-signature-256": "sha1=" + "0" * 40}, "unsigned"),
    ],
)
def test_what_is_not_its_senders_is_refused_counted_and_kept_nowhere(changed: dict[str, str], reason: str) -> None:
    world = Sources()
    source = world.create(secret=SECRET)
    answer = world.arrive(source, BODY, {**github(), **changed})
    assert (answer["statusCode"], json.loads(answer["body"])["code"]) == (400, reason)
    world.run(seconds=5)
    assert world.sender.requests_to(ENDPOINT) == []
    assert world.ask("GET", f"/app/{source['id']}/msg")["data"] == []
    stats = world.stats(source)
    assert [(day[reason], sum(each for each in day.values() if isinstance(each, int))) for day in stats["days"]] == [
        (1, 1)
    ]
    assert (stats["last"]["reason"], stats["last"]["address"]) == (reason, "192.0.2.7")
    # And a forged one takes no id away from the true one
    assert world.arrive(source, BODY, github())["headers"][MESSAGE_ID]


def test_an_old_request_is_refused_even_if_it_is_true(world: Sources) -> None:
    source = world.create("slack", secret="slack-secret")
    body = b'{"type": "event_callback", "event_id": "Ev1", "event": {"type": "app_mention"}}'
    headers = slack(world, body)
    world.clock.advance(seconds=301)
    assert json.loads(world.arrive(source, body, headers)["body"])["code"] == "old"
    assert world.stats(source)["days"][0]["old"] == 1


def test_the_same_event_twice_is_delivered_once_and_answered_twice(world: Sources) -> None:
    # Given a sender that got no answer, and posts again with a new signature
    source = world.create("slack", secret="slack-secret")
    body = b'{"type": "event_callback", "event_id": "Ev1", "event": {"type": "app_mention"}}'
    first = world.arrive(source, body, slack(world, body))
    world.clock.advance(seconds=60)
    second = world.arrive(source, body, slack(world, body))
    # Then both are answered, and one is delivered
    assert (first["statusCode"], second["statusCode"]) == (200, 200)
    assert MESSAGE_ID not in second["headers"]
    world.run(seconds=5)
    assert len(world.sender.requests_to(ENDPOINT)) == 1
    assert world.stats(source)["days"][0]["duplicate"] == 1
    # And the id of another source says nothing here
    other = world.create("slack", secret="slack-secret")
    assert MESSAGE_ID in world.arrive(other, body, slack(world, body))["headers"]


def _learned() -> int:
    """How many calls of its ports it takes to take in what a sender posts."""
    world = Sources()
    source = world.create(secret=SECRET)
    world.plan = FaultPlan()
    world.__dict__.pop("hub", None)
    world.arrive(source, BODY, github())
    return len(world.plan.calls)


@pytest.mark.parametrize("fault", Fault)
def test_nothing_is_lost_and_nothing_comes_twice_whatever_call_goes_wrong(fault: Fault) -> None:
    for number in range(1, _learned() + 1):
        # Given a hub one of whose calls goes wrong, or that dies there
        world = Sources()
        source = world.create(secret=SECRET)
        world.plan = FaultPlan(fault, at=number)
        world.__dict__.pop("hub", None)
        # When the sender posts until it is answered
        for _ in range(3):
            try:
                status = world.arrive(source, BODY, github())["statusCode"]
            except Crash:
                world.__dict__.pop("hub", None)
                continue
            if status == 200:
                break
        else:
            pytest.fail(f"It was never answered: {world.plan.calls}")
        # Then the event is delivered once
        world.run(seconds=30)
        assert len(world.sender.requests_to(ENDPOINT)) == 1, (number, world.plan.calls)


def test_a_sender_without_a_secret_is_known_by_the_url_alone(world: Sources) -> None:
    source = world.create("generic-webhook")
    assert source["verified"] is False
    answer = world.arrive(
        source, b"\x00\xff", {"content-type": "image/x-icon", "x-shop": "7", "idempotency-key": "a b"}
    )
    assert answer["statusCode"] == 200
    world.run(seconds=5)
    [sent] = world.sender.requests_to(ENDPOINT)
    headers = {name.lower(): value for name, value in sent.headers.items()}
    assert (sent.body, headers["content-type"], headers["x-shop"]) == (b"\x00\xff", "image/x-icon", "7")
    assert "idempotency-key" not in headers


def test_a_scheme_of_the_owners_verifies_a_sender_that_nobody_knows(world: Sources) -> None:
    scheme = {"content": "{body}", "header": {"name": "X-Acme-Signature"}, "secret": "acme-secret"}
    source = world.create("generic-webhook", signature=scheme)
    assert source["verified"] is True
    assert "secret" not in json.dumps(source["config"])
    signature = hmac.new(b"acme-secret", BODY, hashlib.sha256).hexdigest()
    assert world.arrive(source, BODY, {"x-acme-signature": signature})["statusCode"] == 200
    assert world.arrive(source, BODY + b" ", {"x-acme-signature": signature})["statusCode"] == 400


def test_twilio_signs_the_url_that_the_source_has(world: Sources) -> None:
    source = world.create("generic-webhook", signature={"preset": "twilio", "secret": "12345"})
    url = f"{source['ingestUrl']}?a=b%20c"
    signed = url + "BodyhiFrom+1"
    signature = base64.b64encode(hmac.new(b"12345", signed.encode(), "sha1").digest()).decode()
    headers = {"content-type": "application/x-www-form-urlencoded", "x-twilio-signature": signature}
    assert world.arrive(source, b"From=%2B1&Body=hi", headers, "a=b%20c")["statusCode"] == 200
    assert world.arrive(source, b"From=%2B1&Body=hi", headers, "a=c")["statusCode"] == 400


class TestTheUrl:
    """It is public, so it tells nothing to whoever does not have it."""

    @pytest.mark.parametrize("method", ["POST", "GET", "OPTIONS"])
    def test_a_guess_is_not_found_whatever_is_wrong(self, world: Sources, method: str) -> None:
        source = world.create("meta", secret="s", verifyToken="v")
        project, source_id, token = urlsplit(source["ingestUrl"]).path.split("/")[-3:]
        app = world.make_app()
        guesses = [
            (project, source_id, token[:-1] + ("A" if token[-1] != "A" else "B")),
            (project, source_id, "x"),
            (project, source_id, "é" * 32),
            (project, "src_" + "0" * 27, token),
            (project, app, token),
            (project, "%", token),
            (OTHER_PROJECT, source_id, token),
            ("nobody", source_id, token),
        ]
        answers = {
            (each["statusCode"], each["body"])
            for guess in guesses
            for each in [world.ask_at(method, "/ingest/in/" + "/".join(guess), BODY, github())]
        }
        assert answers == {(404, '{"code": "not_found", "detail": "Entity not found"}')}
        assert world.stats(source)["days"] == []

    def test_of_a_deleted_source_nothing_is_left(self, world: Sources) -> None:
        source = world.create(secret=SECRET)
        assert world.arrive(source, BODY, github())["statusCode"] == 200
        assert world.manage("DELETE", f"/{source['id']}")[0] == 204
        assert world.arrive(source, BODY, github(delivery="2"))["statusCode"] == 404
        world.run(seconds=5)
        assert world.sender.requests_to(ENDPOINT) == []

    def test_a_body_that_is_too_large_is_refused_unread(self, world: Sources) -> None:
        source = world.create(secret=SECRET)
        body = b" " * 2_097_153
        assert world.arrive(source, body, github(body))["statusCode"] == 413

    def test_a_suspended_project_takes_nothing(self, world: Sources) -> None:
        source = world.create(secret=SECRET)
        Projects(config=world.config, clock=world.clock).suspend(source["ingestUrl"].split("/")[-3])
        world.clock.advance(seconds=5)
        assert world.arrive(source, BODY, github())["statusCode"] == 403

    def test_headers_of_strangers_neither_break_anything_nor_go_on(self, world: Sources) -> None:
        source = world.create("generic-webhook")
        evil = {
            "content-type": "text/\r\nx: y",
            "x-ok": "1",
            "x-split": "a\r\nSet-Cookie: b",
            "x-nul": "\x00",
            "x-long": "v" * 70_000,
            "svix-signature": "v1,x",
            "webhook-signature": "v1,x",
            "pushhub-hops": "-1",
            "traceparent": "nonsense",
        }
        assert world.arrive(source, BODY, evil)["statusCode"] == 200
        world.run(seconds=5)
        [sent] = world.sender.requests_to(ENDPOINT)
        headers = {name.lower(): value for name, value in sent.headers.items()}
        assert headers["content-type"] == "application/octet-stream"
        assert {name for name in headers if name.startswith("x-")} == {"x-ok"}
        assert "v1,x" not in headers.values()


@pytest.mark.parametrize(
    ("fault", "event"), [(RuntimeError("a fault"), "request_failed"), (Contended("a write"), "request_shed")]
)
def test_the_log_of_a_fault_does_not_hold_the_token_of_a_url(
    fault: Exception, event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a source, and a table that cannot be read
    world = Sources()
    source = world.create("generic-webhook")
    path = urlsplit(source["ingestUrl"]).path
    reported: list[tuple[str, dict[str, Any]]] = []
    for level in ("exception", "warning"):
        monkeypatch.setattr(logger, level, lambda name, **more: reported.append((name, more)))

    def failing(*_: Any) -> None:
        raise fault

    monkeypatch.setattr(world.ports.applications, "application", failing)
    # When something is posted there
    assert world.ask_at("POST", path, BODY, {})["statusCode"] >= 500
    # Then the log says where, but not how to post there
    [(name, more)] = reported
    assert name == event
    assert more["path"] == f"{path.rpartition('/')[0]}/********"


class TestLoops:
    """A source may send to another hub, or to itself."""

    @pytest.mark.parametrize(
        ("written", "otherwise"),
        [
            ("", ""),
            ("/in/", "/%69n/"),
            ("/in/", "//in/./"),
            ("https://", "HTTPS://"),
            ("/ingest/", ":443/ingest/"),
            ("/ingest/", "./ingest/"),
        ],
    )
    def test_an_endpoint_that_is_the_sources_own_url_is_refused_however_it_is_spelled(
        self, written: str, otherwise: str
    ) -> None:
        world = Sources()
        source = world.create(url=None, secret=SECRET)
        url = source["ingestUrl"].replace(written, otherwise, 1)
        status, body = world.manage("POST", f"/{source['id']}/endpoint", {"url": url})
        assert (status, body["detail"][0]["loc"]) == (422, ["body", "url"])
        assert "own URL" in body["detail"][0]["msg"]

    def test_a_longer_one_ends_by_its_hops(self, world: Sources) -> None:
        # Given two sources that send to each other, and a first message
        one, two = world.create("generic-webhook", url=None), world.create("generic-webhook", url=None)
        targets = {"https://one.example/": one, "https://two.example/": two}
        for source, url in ((one, "https://two.example/"), (two, "https://one.example/")):
            assert world.manage("POST", f"/{source['id']}/endpoint", {"url": url})[0] == 201
        answers = [world.arrive(one, BODY, {"content-type": "application/json"})["statusCode"]]
        # When each of them is handed what the other one sends
        handed = 0
        while answers[-1] == 200:
            world.run(seconds=5)
            sent = world.sender.requests[handed]
            handed += 1
            headers = {name.lower(): value for name, value in sent.headers.items()}
            answers.append(world.arrive(targets[sent.url], sent.body, headers)["statusCode"])
        # Then it ends
        assert answers == [200] * MAX_HOPS + [508]

    @pytest.mark.parametrize("name", ["Pushhub-Hops", "pushhub-hops"])
    def test_no_header_of_an_owners_makes_a_way_look_shorter(self, world: Sources, name: str) -> None:
        # Given a source whose endpoint is to be told that every message is new
        source = world.create("generic-webhook")
        [endpoint] = world.manage("GET", f"/{source['id']}/endpoint")[1]["data"]
        headers = {"headers": {name: "0"}}
        assert world.manage("PUT", f"/{source['id']}/endpoint/{endpoint['id']}/headers", headers)[0] == 204
        # When a message comes that has passed three sources, then its way is told as it is
        assert world.arrive(source, BODY, {"pushhub-hops": "3"})["statusCode"] == 200
        world.run(seconds=5)
        [sent] = world.sender.requests_to(ENDPOINT)
        assert [text for each, text in sent.headers.items() if each.lower() == "pushhub-hops"] == ["4"]

    def test_the_way_of_what_was_consumed_goes_on(self, world: Sources) -> None:
        # Given an application that is given a message of a queue, which has passed three queues of hubs
        app = world.make_app()
        world.make_endpoint(app, url=ENDPOINT)
        takes_in = world.hub.part(Webhooks).takes_in
        assert takes_in.take_in(PROJECT, app, [Consumed(body=BODY, event_id="1", at=world.clock.now(), hops=3)]) == [
            None
        ]
        # When it is sent, then to a source of this hub, too, it has passed four
        world.run(seconds=5)
        [sent] = world.sender.requests_to(ENDPOINT)
        assert sent.headers["Pushhub-Hops"] == "4"


class TestChallenges:
    """Senders ask whether a URL is really their user's. Nothing is stored of that."""

    def test_slack_is_sent_back_its_challenge_once_its_question_is_verified(self, world: Sources) -> None:
        source = world.create("slack", secret="slack-secret")
        body = b'{"type": "url_verification", "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}'
        answer = world.arrive(source, body, slack(world, body))
        assert (answer["statusCode"], answer["headers"]["Content-Type"]) == (200, "text/plain")
        assert answer["body"] == "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"
        assert world.arrive(source, body, slack(world, body, "another"))["statusCode"] == 400
        assert world.ask("GET", f"/app/{source['id']}/msg")["data"] == []

    def test_zoom_is_sent_back_its_token_hashed(self, world: Sources) -> None:
        source = world.create("zoom", secret="zoom-secret-token")
        body = b'{"event": "endpoint.url_validation", "payload": {"plainToken": "qgg8vlvZRS6UYooatFL8Aw"}}'
        at = str(world.clock.now() // 1000)
        signature = hmac.new(b"zoom-secret-token", f"v0:{at}:".encode() + body, hashlib.sha256).hexdigest()
        answer = world.arrive(source, body, {"x-zm-signature": f"v0={signature}", "x-zm-request-timestamp": at})
        assert json.loads(answer["body"]) == {
            "plainToken": "qgg8vlvZRS6UYooatFL8Aw",
            "encryptedToken": "d9e0d764a78494688ba3f2d5c0ed4ca311394b4834d959759213424d2df961e3",
        }

    @pytest.mark.parametrize("token", [1, None, ["a"], "", "two\nlines", "x" * 4_097])
    def test_what_is_no_token_of_zooms_is_not_hashed_but_an_event(self, world: Sources, token: Any) -> None:
        source = world.create("zoom", secret="zoom-secret-token")
        body = json.dumps({"event": "endpoint.url_validation", "payload": {"plainToken": token}}).encode()
        at = str(world.clock.now() // 1000)
        signature = hmac.new(b"zoom-secret-token", f"v0:{at}:".encode() + body, hashlib.sha256).hexdigest()
        answer = world.arrive(source, body, {"x-zm-signature": f"v0={signature}", "x-zm-request-timestamp": at})
        assert answer["statusCode"] == 200
        assert "encryptedToken" not in answer["body"]
        assert len(world.ask("GET", f"/app/{source['id']}/msg")["data"]) == 1

    def test_meta_is_sent_back_its_challenge_if_it_shows_the_token(self, world: Sources) -> None:
        source = world.create("meta", secret="app-secret", verifyToken="mine")
        path = urlsplit(source["ingestUrl"]).path

        def asked(query: str) -> tuple[int, str]:
            answer = world.ask_at("GET", path, query=query)
            return answer["statusCode"], answer["body"]

        assert asked("hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=mine") == (200, "1158201444")
        assert asked("hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=other")[0] == 400
        assert asked("hub.mode=subscribe&hub.challenge=%0d%0a&hub.verify_token=mine")[0] == 404
        assert asked("")[0] == 404

    def test_a_subscription_of_sns_is_confirmed_at_sns_alone(self, world: Sources) -> None:
        source = world.create("generic-webhook")
        headers = {"x-amz-sns-message-type": "SubscriptionConfirmation", "content-type": "text/plain; charset=UTF-8"}
        url = "https://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=arn:aws:sns:x&Token=2336"

        def asked(where: object) -> int:
            body = json.dumps({"Type": "SubscriptionConfirmation", "Token": "2336", "SubscribeURL": where}).encode()
            return int(world.arrive(source, body, headers)["statusCode"])

        assert asked(url) == 200
        [sent] = world.sender.requests
        assert (sent.method, sent.url) == ("GET", url)
        # What SNS does not answer it asks again
        world.sender.script(url, 500)
        assert asked(url) == 503
        # And nobody else is called
        asked_before = len(world.sender.requests)
        for evil in (
            *("http://sns.eu-central-1.amazonaws.com/?a", "https://sns.eu-central-1.amazonaws.com.evil.example/?a"),
            *("https://sns.eu-central-1.amazonaws.com@evil.example/?a", "https://sns.x.amazonaws.com:8443/?a"),
            *("https://bucket.s3.amazonaws.com/?a", "https://evil.example/?sns.x.amazonaws.com", None, 5),
            "https://sns.eu-central-1.amazonaws.com/?a b",
        ):
            assert asked(evil) == 400
        assert len(world.sender.requests) == asked_before
        assert world.stats(source)["days"][0]["forged"] == 9
        assert world.ask("GET", f"/app/{source['id']}/msg")["data"] == []
        # A sender that is verified is not SNS
        github_source = world.create(secret=SECRET)
        body = json.dumps({"Type": "SubscriptionConfirmation", "SubscribeURL": url}).encode()
        assert world.arrive(github_source, body, {**github(body), **headers})["statusCode"] == 200
        assert len(world.sender.requests) == asked_before

    def test_a_sender_of_cloud_events_gets_consent(self, world: Sources) -> None:
        source = world.create("generic-webhook")
        path = urlsplit(source["ingestUrl"]).path
        answer = world.ask_at("OPTIONS", path, headers={"webhook-request-origin": "events.example"})
        assert answer["statusCode"] == 204
        assert answer["headers"]["WebHook-Allowed-Origin"] == "*"
        assert "WebHook-Allowed-Origin" not in world.ask_at("OPTIONS", path)["headers"]


def test_a_quota_is_not_used_up_by_forgers(world: Sources) -> None:
    source = world.create(secret=SECRET)
    world.config.put_project(Project(project_id=PROJECT, created_at=0, quota=Quota.of(1, 1)))
    for _ in range(100):
        assert world.arrive(source, BODY, github(secret="another"))["statusCode"] == 400
    assert world.arrive(source, BODY, github())["statusCode"] == 200
    # Only what is verified counts
    answers = [world.arrive(source, BODY, github(delivery=str(number))) for number in range(200)]
    assert "429" in {str(each["statusCode"]) for each in answers}
