"""Endpoints behind OAuth 2.0, through the API and the real push path, on fakes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

import pytest
from tests.engine.world import PROJECT
from tests.fakes import Reply
from tests.fakes.private_keys import secret_base64
from tests.webhooks.world import WebhooksWorld

from pushhub.engine.model.circuit import SubscriberKey
from pushhub.engine.model.records import record_of_delivery
from pushhub.webhooks.model.internal_queues import queue_of, queue_uid

URL = "https://a.example/in"
TOKEN_URL = "https://login.example/token?tenant=1"
SECRET = "s3cr%t:+/="
OAUTH = {
    "grantType": "clientCredentials",
    "authMethod": "clientSecretPost",
    "clientId": "pushhub",
    "clientSecret": SECRET,
    "tokenUrl": TOKEN_URL,
}
IDENTITY = ("signedBy", "tokenClient", "certificate")
SHOWN = {
    "grantType": "clientCredentials",
    "authMethod": "clientSecretPost",
    "clientId": "pushhub",
    "tokenUrl": TOKEN_URL,
    "scopes": [],
    "extraParams": {},
    "extraHeaders": {},
}


def token(value: str = "token-1", **more: Any) -> Reply:
    body = json.dumps({"access_token": value, "token_type": "Bearer", "expires_in": 3600, **more})
    return Reply(status_code=200, body=body.encode())


@pytest.fixture
def world() -> WebhooksWorld:
    created = WebhooksWorld()
    created.sender.script(TOKEN_URL, token())
    return created


def gated(world: WebhooksWorld, app: str, url: str = URL, **fields: Any) -> str:
    endpoint = world.make_endpoint(app, url)
    world.ask("PUT", f"/app/{app}/endpoint/{endpoint}/oauth", {**OAUTH, **fields})
    return endpoint


def post(world: WebhooksWorld, app: str, *, seconds: float = 1) -> str:
    created = world.ask("POST", f"/app/{app}/msg", {"eventType": "order.paid", "payload": {"note": "x"}})
    world.run(seconds=seconds)
    return str(created["id"])


def sent_tokens(world: WebhooksWorld, url: str = URL) -> list[str | None]:
    return [each.headers.get("Authorization") for each in world.sender.requests_to(url)]


def another_environment(world: WebhooksWorld) -> None:
    """Everything that is kept in memory is gone."""
    world.__dict__.pop("hub", None)
    world.__dict__.pop("api", None)


def everything_written(world: WebhooksWorld, app: str, endpoint: str) -> str:
    """The log, the attempts, and the messages' states as an owner sees them."""
    written = [world.telemetry.events, world.call("GET", f"/app/{app}/attempt/endpoint/{endpoint}").body]
    written.append([repr(each) for each in world.messages.all_deliveries()])
    return json.dumps(written, default=repr)


def test_a_token_is_asked_for_once_whoever_needs_it(world: WebhooksWorld, app: str) -> None:
    # Given an endpoint behind OAuth
    gated(world, app, scopes=["a", "b"], extraParams={"audience": "x"})
    # When messages are pushed by several environments
    for _ in range(3):
        post(world, app)
        post(world, app)
        another_environment(world)
    # Then one token was asked for, and all carry it
    (asked,) = world.sender.requests_to(TOKEN_URL)
    form = {name: value for name, (value,) in parse_qs(asked.body.decode()).items()}
    assert form == {
        "grant_type": "client_credentials",
        "scope": "a b",
        "audience": "x",
        "client_id": "pushhub",
        "client_secret": SECRET,
    }
    assert sent_tokens(world) == ["Bearer token-1"] * 6
    # And it is stored, but not in plain text
    assert "token-1" not in repr([each.sealed for each in world.ports.token_store.states.values()])
    # When its lifetime is over, then another one is asked for
    world.clock.advance(seconds=3241)
    world.sender.script(TOKEN_URL, token("token-2"))
    post(world, app)
    post(world, app)
    assert sent_tokens(world)[6:] == ["Bearer token-2"] * 2
    assert len(world.sender.requests_to(TOKEN_URL)) == 2


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (
            Reply(status_code=401, body=json.dumps({"error": "invalid_client", "error_description": SECRET}).encode()),
            "invalid_client",
        ),
        (Reply(status_code=500, body=SECRET.encode()), "the token server answered 500"),
        (Reply(error_class="timeout", message=SECRET), "the token server gave no answer (timeout)"),
        (Reply(error_class="refused_by_guard"), "the token server gave no answer (refused_by_guard)"),
    ],
)
def test_a_failing_token_server_is_not_the_endpoints_fault(world: WebhooksWorld, reply: Reply, reason: str) -> None:
    # Given a token server that fails
    app = world.make_app()
    endpoint = gated(world, app)
    world.sender.script(TOKEN_URL, reply)
    # When many messages are pushed
    messages = [post(world, app, seconds=0.1) for _ in range(30)]
    another_environment(world)
    messages.append(post(world, app, seconds=0.1))
    # Then it was asked once, and nothing has reached the endpoint
    assert len(world.sender.requests_to(TOKEN_URL)) == 1
    assert not world.sender.requests_to(URL)
    # And each attempt says why, with nothing that the server wrote
    attempts = world.ask("GET", f"/app/{app}/attempt/endpoint/{endpoint}")["data"]
    assert {(each["responseStatusCode"], each["response"]) for each in attempts} == {(0, f"oauth: {reason}")}
    assert SECRET not in everything_written(world, app, endpoint)
    # And the endpoint's circuit knows nothing of it
    key = SubscriberKey(project=PROJECT, queue=queue_of(app), queue_uid=queue_uid(app), subscriber_id=endpoint)
    assert world.ports.subscribers.health(key) is None
    # When the token server is back, then one request brings everything through
    world.sender.script(TOKEN_URL, token())
    world.run(seconds=900)
    assert len(world.sender.requests_to(TOKEN_URL)) == 2
    assert len(set(sent_tokens(world))) == 1
    for each in messages:
        assert world.ask("GET", f"/app/{app}/msg/{each}/endpoint")["data"][0]["status"] == 0


def test_a_token_server_that_stays_down_is_asked_ever_more_rarely(world: WebhooksWorld, app: str) -> None:
    gated(world, app)
    world.sender.script(TOKEN_URL, 503)
    for _ in range(360):
        post(world, app, seconds=10)
    # An hour: after 5, 10, 20, 40, 80, 160, 320 s, and then every 10 minutes
    assert 9 <= len(world.sender.requests_to(TOKEN_URL)) <= 13
    assert not world.sender.requests_to(URL)


@pytest.mark.parametrize("down", [Reply(status_code=503), Reply(error_class="connect"), Reply(status_code=429)])
def test_a_token_server_that_is_down_for_twelve_seconds_delays_messages_by_half_a_minute_at_most(
    world: WebhooksWorld, down: Reply
) -> None:
    # Given a token server that is down from the first message on
    app = world.make_app()
    gated(world, app)
    world.sender.script(TOKEN_URL, down)
    posted: dict[str, int] = {}
    for _ in range(12):
        posted[post(world, app, seconds=1)] = world.clock.now()
    assert not world.sender.requests_to(URL)
    # When it is back after twelve seconds
    world.sender.script(TOKEN_URL, token())
    world.run(seconds=20)
    # Then its circuit's next look brings everything through, long before the schedule's second retry
    arrived = {each.headers["svix-id"] for each in world.sender.requests_to(URL)}
    assert arrived == posted.keys()
    assert len(world.sender.requests_to(TOKEN_URL)) == 3
    # And none of the schedule was used up
    assert {each.tries for each in world.messages.all_deliveries()} == {1}


@pytest.mark.parametrize(
    "down",
    [Reply(status_code=401, body=b'{"error": "invalid_client"}'), Reply(error_class="refused_by_guard")],
)
def test_a_token_server_that_refuses_is_no_outage(world: WebhooksWorld, app: str, down: Reply) -> None:
    # Given a token server that refuses what it is sent, or that may not be asked
    gated(world, app)
    world.sender.script(TOKEN_URL, down)
    post(world, app, seconds=100)
    # Then the schedule goes on as ever: at once, after five seconds, and then after five minutes
    (delivery,) = world.messages.all_deliveries()
    assert (delivery.tries, delivery.attempts) == (2, 2)


def test_an_outage_that_lasts_costs_tries_after_five_minutes(world: WebhooksWorld, app: str) -> None:
    gated(world, app)
    world.sender.script(TOKEN_URL, 503)
    post(world, app, seconds=299)
    (delivery,) = world.messages.all_deliveries()
    assert (delivery.tries, delivery.attempts) == (0, 6)
    world.run(seconds=1_500)
    (delivery,) = world.messages.all_deliveries()
    assert delivery.tries >= 2


def test_a_token_server_says_how_long_to_wait(world: WebhooksWorld, app: str) -> None:
    gated(world, app)
    world.sender.script(TOKEN_URL, Reply(status_code=429, headers={"retry-after": "1000"}), token())
    post(world, app, seconds=900)
    assert len(world.sender.requests_to(TOKEN_URL)) == 1
    world.run(seconds=200)
    assert sent_tokens(world) == ["Bearer token-1"]


def test_what_is_set_is_shown_without_secrets_and_may_be_sent_back(world: WebhooksWorld, app: str) -> None:
    endpoint = world.make_endpoint(app)
    path = f"/app/{app}/endpoint/{endpoint}"
    assert world.call("GET", f"{path}/oauth").status == 404
    assert world.call("DELETE", f"{path}/oauth").status == 404
    assert world.ask("GET", f"{path}/oauth-config") == {"enabled": False}
    more = {"extraHeaders": {"X-Api-Key": "hidden"}, "extraParams": {"audience": "a", "password": "hidden"}}
    assert world.call("PUT", f"{path}/oauth", {**OAUTH, **more}).status == 204
    shown = world.ask("GET", f"{path}/oauth")
    assert shown == {
        **SHOWN,
        "extraHeaders": {"X-Api-Key": "********"},
        "extraParams": {"audience": "a", "password": "********"},
    }
    assert world.ask("GET", f"{path}/oauth-config") == {"enabled": True, "config": shown}
    world.ask("PUT", f"{path}/oauth", {**shown, "scopes": ["a"]})
    post(world, app)
    (asked,) = world.sender.requests_to(TOKEN_URL)
    assert asked.headers["X-Api-Key"] == "hidden"
    assert parse_qs(asked.body.decode())["client_secret"] == [SECRET]
    assert parse_qs(asked.body.decode())["password"] == ["hidden"]
    # And a PUT of the endpoint by a client that knows nothing of it leaves it
    world.ask("PUT", path, {"url": URL})
    assert world.ask("GET", f"{path}/oauth-config")["enabled"] is True
    # When it is removed, then nothing is sent, and a token that was there is not used again
    world.ask("DELETE", f"{path}/oauth")
    post(world, app)
    world.ask("PUT", f"{path}/oauth", OAUTH)
    post(world, app)
    assert sent_tokens(world) == ["Bearer token-1", None, "Bearer token-1"]
    assert len(world.sender.requests_to(TOKEN_URL)) == 2


JWT = {
    **{name: value for name, value in OAUTH.items() if name != "clientSecret"},
    "authMethod": "clientSecretJwt",
    "jwtParams": {"secretBase64": secret_base64(), "signingAlgorithm": "RS256", "secretId": "k1"},
}


def jwt(**more: Any) -> dict[str, Any]:
    return {**JWT, "jwtParams": {**JWT["jwtParams"], **more}}  # type: ignore[dict-item]


def test_a_grant_by_a_key_is_shown_without_the_key(world: WebhooksWorld, app: str) -> None:
    path = f"/app/{app}/endpoint/{world.make_endpoint(app)}/oauth"
    world.ask("PUT", path, JWT)
    assert world.ask("GET", path) == {**SHOWN, "authMethod": "clientSecretJwt"}


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({**OAUTH, "grantType": None}, ["grantType"]),
        ({**OAUTH, "authMethod": "clientSecretBasic", "clientSecret": "é"}, ["clientSecret"]),
        (jwt(tokenExpirySecs=301), ["jwtParams", "tokenExpirySecs"]),
        (jwt(tokenExpirySecs=True), ["jwtParams", "tokenExpirySecs"]),
    ],
    ids=range(4),
)
def test_what_could_not_be_right_is_refused_by_name(world: WebhooksWorld, body: Any, place: list[str]) -> None:
    app = world.make_app()
    path = f"/app/{app}/endpoint/{world.make_endpoint(app)}/oauth"
    refused = world.call("PUT", path, body)
    assert (refused.status, refused.body["detail"][0]["loc"]) == (422, ["body", *place])
    assert SECRET not in refused.text
    assert world.call("GET", path).status == 404


def test_one_authorization_at_a_time_whichever_is_set_last(world: WebhooksWorld, app: str) -> None:
    plain = {"headers": {"authorization": "Basic x"}}
    endpoints = [
        world.make_endpoint(app, url) for url in ("https://u:p@a.example/", "notification2://alarms?api=alarms")
    ]
    endpoints.append(str(world.ask("POST", f"/app/{app}/endpoint", {"url": URL, **plain})["id"]))
    for endpoint in endpoints:
        assert world.call("PUT", f"/app/{app}/endpoint/{endpoint}/oauth", OAUTH).status == 422
    path = f"/app/{app}/endpoint/{gated(world, app)}"
    for method in ("PUT", "PATCH"):
        refused = world.call(method, f"{path}/headers", plain)
        assert (refused.status, refused.body["detail"][0]["loc"]) == (422, ["body", "headers"])
    for url in ("https://u:p@a.example/", "notification2://alarms?api=alarms"):
        refused = world.call("PATCH", path, {"url": url})
        assert (refused.status, refused.body["detail"][0]["loc"]) == (422, ["body", "url"])


def test_the_guard_looks_at_the_token_url_when_it_is_set_and_when_it_is_used(world: WebhooksWorld) -> None:
    # Given a hub whose guard refuses a host
    asked: list[tuple[str, tuple[str, ...]]] = []

    def check(url: str, allowed: Any) -> str | None:
        asked.append((url, tuple(allowed)))
        return "metadata.example resolves to a link local address" if "metadata" in url else None

    world.ports.check_url = check
    app = world.make_app()
    path = f"/app/{app}/endpoint/{world.make_endpoint(app)}/oauth"
    refused = world.call("PUT", path, {**OAUTH, "tokenUrl": "https://metadata.example/latest"})
    assert (refused.status, refused.body["detail"][0]["loc"]) == (422, ["body", "tokenUrl"])
    # When the project may reach hosts inside, then its own token does, and a portal's does not
    project = world.config.project(PROJECT)
    assert project is not None
    world.config.put_project(replace(project, allowed_targets=("login.inside",)))
    inside = {**OAUTH, "tokenUrl": "http://login.inside/token"}
    portal = world.ask("POST", f"/auth/app-portal-access/{app}", {})["token"]
    assert world.call("PUT", path, inside, token=portal).status == 422
    assert world.call("PUT", path, inside).status == 204
    assert asked[-1] == ("http://login.inside/token", ("login.inside",))
    world.sender.script("http://login.inside/token", token())
    post(world, app)
    assert world.sender.requests_to("http://login.inside/token")[0].allowed_targets == ("login.inside",)
    # And a portal that sets the URL of a public one gets no more at the time of use
    world.ask("PUT", path, OAUTH, token=portal)
    post(world, app)
    assert world.sender.requests_to(TOKEN_URL)[-1].allowed_targets == ()


def test_a_portal_needs_the_secrets_capability(world: WebhooksWorld, app: str) -> None:
    path = f"/app/{app}/endpoint/{gated(world, app)}"
    for capability, statuses in (
        ("ManageEndpoint", (403, 403, 403, 403)),
        ("ViewEndpointSecret", (200, 200, 403, 403)),
        ("ManageEndpointSecret", (403, 403, 204, 204)),
    ):
        access = world.ask("POST", f"/auth/app-portal-access/{app}", {"capabilities": ["ViewBase", capability]})
        got = tuple(
            world.call(method, f"{path}/{place}", OAUTH if method == "PUT" else None, token=access["token"]).status
            for method, place in (("GET", "oauth"), ("GET", "oauth-config"), ("PUT", "oauth"), ("DELETE", "oauth"))
        )
        assert got == statuses


def test_other_tenants_neither_see_nor_use_it(world: WebhooksWorld) -> None:
    app, other = world.make_app(), world.make_app("Other")
    endpoint = gated(world, app)
    path = f"/app/{app}/endpoint/{endpoint}/oauth"
    portal = world.ask("POST", f"/auth/app-portal-access/{other}", {})["token"]
    for method in ("GET", "PUT", "DELETE"):
        assert world.call(method, path, OAUTH if method == "PUT" else None, token=portal).status == 404
        assert world.call(method, path, OAUTH if method == "PUT" else None, token=world.other_token).status == 404
        place = f"/app/{other}/endpoint/{endpoint}/oauth"
        assert world.call(method, place, OAUTH if method == "PUT" else None).status == 404
    # And two endpoints with the same settings have tokens of their own
    gated(world, other, "https://b.example/in")
    world.sender.script(TOKEN_URL, token("mine"), token("theirs"))
    post(world, app)
    post(world, other)
    assert sent_tokens(world) == ["Bearer mine"]
    assert sent_tokens(world, "https://b.example/in") == ["Bearer theirs"]


def test_an_endpoint_is_asked_for_its_consent_with_a_token(world: WebhooksWorld, app: str) -> None:
    path = f"/app/{app}/endpoint/{gated(world, app)}"
    world.ask("PATCH", path, {"cloudEvents": {"mode": "binary", "consent": True}})
    world.run(seconds=5)
    question = next(each for each in world.sender.requests_to(URL) if each.method == "OPTIONS")
    assert question.headers["Authorization"] == "Bearer token-1"


def test_records_name_the_client_and_the_schemes_that_are_not_everybodys(world: WebhooksWorld, app: str) -> None:
    behind = gated(world, app)
    stripe = {"signatures": [{"preset": "stripe", "secret": "whsec_x"}, {"preset": "standard-webhooks"}]}
    other = world.make_endpoint(app, "https://b.example/in")
    world.ask("PUT", f"/app/{app}/endpoint/{other}/signatures", stripe)
    created = [behind, other, world.make_endpoint(app, "https://c.example/in")]
    post(world, app)
    shown = []
    for each in world.messages.all_deliveries():
        record = record_of_delivery(None, each, 0)
        assert record is not None
        shown.append((record.signed_by, record.token_client, record.certificate))
    assert sorted(shown, key=repr) == sorted(
        [(None, "pushhub", None), (("standard-webhooks", "stripe"), None, None), (None, None, None)], key=repr
    )
    # And so do the attempts that owners and portals list
    portal = world.ask("POST", f"/auth/app-portal-access/{app}", {})["token"]
    for key in (world.token, portal):
        listed = [world.call("GET", f"/app/{app}/attempt/endpoint/{each}", token=key).body["data"] for each in created]
        reported = [{name: each[0][name] for name in IDENTITY if name in each[0]} for each in listed]
        assert reported == [{"tokenClient": "pushhub"}, {"signedBy": ["standard-webhooks", "stripe"]}, {}]
