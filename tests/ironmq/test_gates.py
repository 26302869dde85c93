"""Subscribers of push queues behind OAuth 2.0 and mutual TLS, beside what every dialect promises (``tests/dialects``):
all that is refused, rooms, records, and who is told of ends.
"""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from tests.fakes import Reply
from tests.fakes.private_keys import identity
from tests.ironmq.api.hub import Hub, Result

from pushhub.ironmq.wiring import Ironmq

URL, TOKEN_URL = "https://a.example/in", "https://login.example/token"
SECRET = "s3cr%t:+/="
PEM = identity()
KEY, CERTIFICATE = PEM[: PEM.index("-----BEGIN CERTIFICATE")], PEM[PEM.index("-----BEGIN CERTIFICATE") :]
OAUTH = {"token_url": TOKEN_URL, "client_id": "pushhub", "client_secret": SECRET, "auth_method": "client_secret_post"}


def token(value: str = "token-1", **more: Any) -> Reply:
    body = json.dumps({"access_token": value, "token_type": "Bearer", "expires_in": 3600, **more})
    return Reply(status_code=200, body=body.encode())


@pytest.fixture
def hub() -> Hub:
    created = Hub()
    created.world.sender.script(TOKEN_URL, token())
    return created


def gated(**more: Any) -> dict[str, Any]:
    return {"name": "s0", "url": URL, "oauth": OAUTH, **more}


def put(hub: Hub, *subscribers: dict[str, Any], method: str = "PUT") -> Result:
    return hub.call(method, "/queues/q/subscribers", {"subscribers": list(subscribers)})


def post(hub: Hub, *, seconds: float = 1, **fields: Any) -> str:
    [message_id] = hub.post("q", "x", **fields)
    hub.world.run(seconds=seconds)
    return str(message_id)


def authorizations(hub: Hub, url: str = URL) -> list[str | None]:
    return [each.headers.get("Authorization") for each in hub.world.sender.requests_to(url)]


def test_a_producer_cannot_send_another_authorization(hub: Hub) -> None:
    hub.make("q", push={"subscribers": [gated()]})
    post(hub, push_headers={"authorization": "Bearer forged"})
    (request,) = hub.world.sender.requests_to(URL)
    given = {name: value for name, value in request.headers.items() if name.lower() == "authorization"}
    assert given == {"Authorization": "Bearer token-1"}


def test_a_short_outage_of_the_token_server_gives_no_message_up(hub: Hub) -> None:
    # Given a queue that does not retry, and a token server that is down for a moment
    hub.make("q", push={"subscribers": [gated()], "retries": 0, "error_queue": "failed"})
    hub.world.sender.script(TOKEN_URL, 503, 503, token())
    message_id = post(hub)
    hub.world.run(seconds=30)
    # Then the message comes, and nothing is reported
    assert authorizations(hub) == ["Bearer token-1"]
    (status,) = hub.statuses("q", message_id)
    assert (status["state"], status["status_code"]) == ("delivered", 200)
    assert hub.call("GET", "/queues/failed").status == 404


def test_a_long_outage_of_the_token_server_uses_up_tries(hub: Hub) -> None:
    # Given a queue that does not retry, and a token server that is down for half an hour
    hub.make("q", push={"subscribers": [gated()], "retries": 0, "error_queue": "failed"})
    hub.world.sender.script(TOKEN_URL, *[503] * 100)
    message_id = post(hub)
    # When five minutes are not over, then it waits; after them it is given up
    hub.world.run(seconds=240)
    assert hub.statuses("q", message_id)[0]["state"] == "retrying"
    hub.world.run(seconds=1_560)
    assert (hub.statuses("q", message_id)[0]["state"], authorizations(hub)) == ("exhausted", [])
    assert hub.call("GET", "/queues/failed").status == 200


@pytest.mark.parametrize(
    ("subscriber", "place"),
    [
        (gated(headers={"authorization": "Basic x"}), "oauth"),
        (gated(url="https://u:p@a.example/in"), "oauth"),
        (gated(url="ironmq:///next"), "oauth"),
        (gated(url="ironworker://P:T@worker.example/code"), "oauth"),
        (gated(url="notification2://t"), "oauth"),
        ({"name": "s0", "url": "http://a.example/in", "mtls": {"identity": PEM}}, "mtls"),
        ({"name": "s0", "url": "ironmq:///next", "mtls": {"identity": PEM}}, "mtls"),
    ],
    ids=range(7),
)
def test_what_could_not_be_right_is_refused_by_name(hub: Hub, subscriber: dict[str, Any], place: str) -> None:
    result = hub.call("PUT", "/queues/q", {"queue": {"push": {"subscribers": [subscriber]}}})
    assert (result.status, result.msg.partition(":")[0]) == (400, place), result
    assert SECRET not in result.msg
    assert KEY[40:80] not in result.msg
    assert hub.call("GET", "/queues/q").status == 404


def test_a_url_that_changes_must_still_fit(hub: Hub) -> None:
    hub.make("q", push={"subscribers": [gated(mtls={"identity": PEM})]})
    for changed in ({"url": "ironmq:///next"}, {"url": "http://a.example/in"}, {"headers": {"Authorization": "x"}}):
        assert put(hub, {"name": "s0", "url": URL, **changed}).status == 400


def test_a_queue_has_room_for_so_many_certificates(hub: Hub) -> None:
    long = identity(rsa_bits=2_048) + CERTIFICATE * 9
    subscribers = [{"name": str(each), "url": URL, "mtls": {"identity": long}} for each in range(30)]
    refused = hub.call("PUT", "/queues/q", {"queue": {"push": {"subscribers": subscribers}}})
    assert refused.status == 400
    assert "120000 bytes" in refused.msg
    hub.make("q", push={"subscribers": subscribers[:8]})


def ending_in(hub: Hub, days: float) -> str:
    ends = datetime.datetime.fromtimestamp(hub.world.clock.now() // 1000 + round(days * 86_400), datetime.UTC)
    return identity(ends=ends)


def look(hub: Hub) -> int:
    """Go on to the next hour, and look for ends."""
    hub.world.clock.set((hub.world.clock.now() // 3_600_000 + 1) * 3_600_000)
    return hub.world.hub.part(Ironmq).ends.run(lambda: 55_000)


def test_an_alert_is_told_of_each_subscriber_that_shows_the_same_certificate(hub: Hub) -> None:
    alert = {"name": "all", "measure": "given_up", "threshold": 1, "url": "https://alerts.example/"}
    assert hub.call("POST", "/alerts", {"alert": alert}).status == 201
    mtls = {"identity": ending_in(hub, 2)}
    hub.make("q", push={"subscribers": [{"name": name, "url": URL, "mtls": mtls} for name in ("s0", "s1")]})
    assert look(hub) == 2
    hub.world.run(seconds=5)
    bodies = [json.loads(each.body) for each in hub.world.sender.requests_to("https://alerts.example/")]
    assert sorted(each["subscriber"] for each in bodies) == ["s0", "s1"]


@pytest.mark.parametrize("then", ["removed", "deleted"])
def test_a_certificate_that_is_gone_is_told_nothing_of(hub: Hub, then: str) -> None:
    soon = {"name": "s0", "url": URL, "mtls": {"identity": ending_in(hub, 2)}}
    hub.make("q", push={"subscribers": [soon, {"name": "s1", "url": URL}]})
    if then == "removed":
        put(hub, {"name": "s1", "url": URL})
    else:
        hub.call("DELETE", "/queues/q")
    hub.world.clock.advance(seconds=86_400 + 3_600)
    assert look(hub) == 0
    assert not hub.world.telemetry.named("certificate_ending")
    hub.world.clock.advance(seconds=2 * 86_400)
    assert look(hub) == 0
