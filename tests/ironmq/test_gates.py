"""Subscribers of push queues behind OAuth 2.0 and mutual TLS: what they are sent, how that is set, changed and removed,
and that nobody sees what is secret in it.
"""

from __future__ import annotations

import datetime
import json
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from tests.engine.world import PROJECT
from tests.fakes import Reply
from tests.fakes.private_keys import identity, secret_base64
from tests.fakes.verifier import symmetric
from tests.ironmq.api.hub import OTHER_PROJECT, Hub, Result

from pushhub.engine.ends import DAY_MS
from pushhub.engine.model.records import record_of_delivery
from pushhub.engine.oauth import TokenOwner
from pushhub.engine.store._delivery_items import decode_delivery, encode_delivery
from pushhub.ironmq.wiring import Ironmq

URL, TOKEN_URL = "https://a.example/in", "https://login.example/token"
SECRET = "s3cr%t:+/="
PEM = identity()
KEY, CERTIFICATE = PEM[: PEM.index("-----BEGIN CERTIFICATE")], PEM[PEM.index("-----BEGIN CERTIFICATE") :]
SHOWN = {"signed_by", "token_client", "certificate"}
OAUTH = {"token_url": TOKEN_URL, "client_id": "pushhub", "client_secret": SECRET, "auth_method": "client_secret_post"}


def token(value: str = "token-1", **more: Any) -> Reply:
    body = json.dumps({"access_token": value, "token_type": "Bearer", "expires_in": 3600, **more})
    return Reply(status_code=200, body=body.encode())


@pytest.fixture
def hub() -> Hub:
    made = Hub()
    made.world.sender.script(TOKEN_URL, token())
    return made


def gated(**more: Any) -> dict[str, Any]:
    return {"name": "s0", "url": URL, "oauth": OAUTH, **more}


def put(hub: Hub, *subscribers: dict[str, Any], method: str = "PUT") -> Result:
    return hub.call(method, "/queues/q/subscribers", {"subscribers": list(subscribers)})


def shown(hub: Hub) -> list[dict[str, Any]]:
    return list(hub.info("q")["push"]["subscribers"])


def post(hub: Hub, *, seconds: float = 1, **fields: Any) -> str:
    [message_id] = hub.post("q", "x", **fields)
    hub.world.run(seconds=seconds)
    return str(message_id)


def authorizations(hub: Hub, url: str = URL) -> list[str | None]:
    return [each.headers.get("Authorization") for each in hub.world.sender.requests_to(url)]


def everything_written(hub: Hub, message_id: str = "") -> str:
    """The log, the queue, statuses, deliveries and notes, as owners and operators see them."""
    world = hub.world
    told: list[object] = [world.telemetry.__dict__, hub.info("q"), repr(world.config.queue(PROJECT, "q"))]
    told += [repr(each) for each in world.messages.all_deliveries()]
    told += [repr(each) for each in world.sender.requests_to(URL)]
    if message_id:
        told.append(hub.statuses("q", message_id))
    return json.dumps(told, default=repr)


def test_a_token_is_asked_for_once_and_others_get_none(hub: Hub) -> None:
    # Given a queue with a subscriber behind OAuth, and one that is not
    other = {"name": "s1", "url": "https://b.example/in"}
    hub.make("q", push={"subscribers": [gated(oauth={**OAUTH, "scopes": ["a", "b"]}), other]})
    assert shown(hub)[0] == {"name": "s0", "url": URL, "oauth": True}
    # When messages are pushed
    for _ in range(3):
        post(hub)
    # Then one token was asked for, in the way that was set, and it is sent to that subscriber alone
    (asked,) = hub.world.sender.requests_to(TOKEN_URL)
    form = {name: value for name, (value,) in parse_qs(asked.body.decode()).items()}
    assert form["scope"] == "a b"
    assert (form["client_id"], form["client_secret"]) == ("pushhub", SECRET)
    assert authorizations(hub) == ["Bearer token-1"] * 3
    assert authorizations(hub, other["url"]) == [None] * 3


def test_a_subscriber_without_gates_pays_nothing(hub: Hub) -> None:
    hub.make("q", push={"subscribers": [{"name": "s0", "url": URL}]})
    hub.world.ports.token_store.token_state = None  # type: ignore[assignment,method-assign]
    hub.world.ports.vault.open = None  # type: ignore[assignment,method-assign]
    post(hub)
    assert len(hub.world.sender.requests_to(URL)) == 1
    queue = hub.world.config.queue(PROJECT, "q")
    assert queue is not None
    assert queue.push is not None
    assert (queue.push.subscribers[0].oauth, queue.push.subscribers[0].certificate) == (b"", None)


def test_a_producer_cannot_send_another_authorization(hub: Hub) -> None:
    hub.make("q", push={"subscribers": [gated()]})
    post(hub, push_headers={"authorization": "Bearer forged"})
    (request,) = hub.world.sender.requests_to(URL)
    given = {name: value for name, value in request.headers.items() if name.lower() == "authorization"}
    assert given == {"Authorization": "Bearer token-1"}


def test_a_refused_token_is_replaced_once_in_the_same_attempt(hub: Hub) -> None:
    hub.make("q", push={"subscribers": [gated()], "retries": 0})
    post(hub)
    # When the receiver no longer takes the token, then the message comes with a new one, in one attempt
    hub.world.sender.script(TOKEN_URL, token("token-2"))
    hub.world.sender.script(URL, 401, 200)
    message_id = post(hub)
    assert authorizations(hub) == ["Bearer token-1", "Bearer token-1", "Bearer token-2"]
    assert hub.statuses("q", message_id)[0]["tries"] == 1
    # And a receiver that takes none does not turn messages into requests for tokens
    hub.world.sender.script(TOKEN_URL, token("token-3"))
    hub.world.sender.script(URL, *[401] * 8)
    for _ in range(3):
        post(hub)
    assert len(hub.world.sender.requests_to(TOKEN_URL)) == 3


def test_nothing_reaches_the_receiver_while_the_token_server_fails(hub: Hub) -> None:
    # Given a token server that is down, and more messages than it may be asked for
    hub.world.sender.script(TOKEN_URL, *[503] * 3)
    hub.make("q", push={"subscribers": [gated()], "retries": 10, "retries_delay": 3})
    ids = [post(hub, seconds=0.2) for _ in range(5)]
    # Then nothing reaches the receiver, one environment asks, and the reason is told
    assert not hub.world.sender.requests_to(URL)
    assert len(hub.world.sender.requests_to(TOKEN_URL)) == 1
    assert {hub.statuses("q", each)[0]["msg"] for each in ids} == {"oauth: the token server answered 503"}
    # When it is up again, then all come, once each
    hub.world.sender.script(TOKEN_URL, *[token()] * 3)
    hub.world.run(seconds=300)
    assert len(hub.world.sender.requests_to(URL)) == len(ids)
    assert len(hub.world.sender.requests_to(TOKEN_URL)) <= 4


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


def test_a_key_signs_what_the_token_server_is_asked(hub: Hub) -> None:
    jwt = {"secret_base64": secret_base64(), "signing_algorithm": "RS256", "secret_id": "k1"}
    oauth = {"token_url": TOKEN_URL, "client_id": "pushhub", "auth_method": "private_key_jwt", "jwt_params": jwt}
    hub.make("q", push={"subscribers": [gated(oauth=oauth)]})
    post(hub)
    (asked,) = hub.world.sender.requests_to(TOKEN_URL)
    form = {name: value for name, (value,) in parse_qs(asked.body.decode()).items()}
    assert len(form["client_assertion"].split(".")) == 3
    assert "client_secret" not in form
    assert authorizations(hub) == ["Bearer token-1"]


@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.parametrize("gates", [{}, {"oauth": None, "mtls": None}, {"oauth": True, "mtls": True}, "as shown"])
def test_whoever_does_not_speak_of_gates_leaves_them_as_they_are(hub: Hub, method: str, gates: Any) -> None:
    hub.make("q", push={"subscribers": [gated(mtls={"identity": PEM, "ca": CERTIFICATE})]})
    before = hub.world.config.queue(PROJECT, "q")
    assert (
        put(hub, shown(hub)[0] if gates == "as shown" else {"name": "s0", "url": URL, **gates}, method=method).status
        == 200
    )
    after = hub.world.config.queue(PROJECT, "q")
    assert before is not None
    assert after is not None
    assert after.push == before.push
    post(hub)
    (request,) = hub.world.sender.requests_to(URL)
    assert request.headers["Authorization"] == "Bearer token-1"
    assert request.identity is not None
    assert (request.identity.pem, request.identity.ca) == (PEM, CERTIFICATE)


def test_false_ends_them_and_true_alone_begins_nothing(hub: Hub) -> None:
    hub.make("q", push={"subscribers": [gated(mtls={"identity": PEM})]})
    assert put(hub, {"name": "s0", "url": URL, "oauth": False, "mtls": False}).status == 200
    post(hub)
    (request,) = hub.world.sender.requests_to(URL)
    assert (request.headers.get("Authorization"), request.identity) == (None, None)
    assert shown(hub) == [{"name": "s0", "url": URL}]
    for gate, place in (("oauth", "oauth.token_url"), ("mtls", "mtls.identity")):
        refused = put(hub, {"name": "s0", "url": URL, gate: True})
        assert (refused.status, refused.msg.partition(":")[0]) == (400, place)


def test_a_change_of_the_grant_counts_at_once_and_the_same_grant_again_is_none(hub: Hub) -> None:
    hub.make("q", push={"subscribers": [gated()]})
    post(hub)
    # When the same is set again, even without the secret, then the token is kept
    assert put(hub, gated()).status == 200
    assert put(hub, gated(oauth={name: OAUTH[name] for name in OAUTH if name != "client_secret"})).status == 200
    post(hub)
    assert len(hub.world.sender.requests_to(TOKEN_URL)) == 1
    # When a secret is to go elsewhere, then it has to be given
    moved = {**OAUTH, "token_url": "https://evil.example/token"}
    refused = put(hub, gated(oauth={name: moved[name] for name in moved if name != "client_secret"}))
    assert (refused.status, refused.msg.partition(":")[0]) == (400, "oauth.client_secret")
    # When another client is set, then the old one's token is not used any more
    hub.world.sender.script(TOKEN_URL, token("token-2"))
    assert put(hub, gated(oauth={**OAUTH, "client_id": "another"})).status == 200
    post(hub)
    assert authorizations(hub) == ["Bearer token-1", "Bearer token-1", "Bearer token-2"]


def test_requests_are_sent_with_the_certificate_and_the_token_server_is_not_shown_it(hub: Hub) -> None:
    hub.make("q", push={"subscribers": [gated(mtls={"identity": PEM, "ca": CERTIFICATE})]})
    expected = {"subject": "pushhub.example", "ends_at": "2046-01-01T00:00:00.000Z", "private_ca": True}
    assert shown(hub)[0]["mtls"] == expected
    post(hub)
    (request,) = hub.world.sender.requests_to(URL)
    assert request.identity is not None
    assert (request.identity.pem, request.identity.ca) == (PEM, CERTIFICATE)
    assert hub.world.sender.requests_to(TOKEN_URL)[0].identity is None


def test_two_subscribers_with_the_same_certificate_have_connections_of_their_own(hub: Hub) -> None:
    mtls = {"identity": PEM}
    hub.make("q", push={"subscribers": [{"name": each, "url": URL, "mtls": mtls} for each in ("s0", "s1")]})
    post(hub)
    first, second = (each.identity for each in hub.world.sender.requests_to(URL))
    assert first is not None
    assert second is not None
    assert first.digest != second.digest


def test_another_project_with_the_same_settings_shares_neither_token_nor_connection(hub: Hub) -> None:
    # Given two projects whose queue, subscriber, receiver, client and certificate are the same
    same = gated(mtls={"identity": PEM})
    hub.world.sender.script(TOKEN_URL, token("mine"), token("theirs"))
    for project in (PROJECT, OTHER_PROJECT):
        asked = {"queue": {"push": {"subscribers": [same]}}}
        assert hub.call("PUT", "/queues/q", asked, project=project).status == 200
        assert hub.call("POST", "/queues/q/messages", {"messages": [{"body": project}]}, project=project).status == 201
        hub.world.run(seconds=1)
    # Then each is sent a token of its own, over a connection of its own
    requests = {each.body.decode(): each for each in hub.world.sender.requests_to(URL)}
    mine, theirs = requests[PROJECT], requests[OTHER_PROJECT]
    assert (mine.headers["Authorization"], theirs.headers["Authorization"]) == ("Bearer mine", "Bearer theirs")
    assert mine.identity is not None
    assert theirs.identity is not None
    assert mine.identity.digest != theirs.identity.digest


def test_after_its_end_nothing_is_sent_and_a_new_certificate_sends_what_waits(hub: Hub) -> None:
    soon = identity(ends=datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC))
    now = datetime.datetime.fromtimestamp(hub.world.clock.now() / 1000, datetime.UTC)
    ends = (now + datetime.timedelta(days=2)).replace(microsecond=0)
    mtls = {"identity": identity(ends=ends)}
    hub.make("q", push={"subscribers": [{"name": "s0", "url": URL, "mtls": mtls}], "retries_delay": 60})
    hub.world.clock.set(round(ends.timestamp() * 1000))
    message_id = post(hub)
    assert not hub.world.sender.requests
    assert hub.statuses("q", message_id)[0]["msg"] == f"mtls: the client certificate ended {ends.date()}"
    assert put(hub, {"name": "s0", "url": URL, "mtls": {"identity": soon}}).status == 200
    hub.world.run(seconds=120)
    assert len(hub.world.sender.requests_to(URL)) == 1


@pytest.mark.parametrize(
    ("subscriber", "place"),
    [
        (gated(oauth=5), "oauth"),
        (gated(oauth=[]), "oauth"),
        (gated(oauth={}), "oauth.token_url"),
        (gated(oauth={**OAUTH, "token_url": 5}), "oauth.token_url"),
        (gated(oauth={**OAUTH, "token_url": "http://login.example/token"}), "oauth.token_url"),
        (gated(oauth={**OAUTH, "token_url": "https://u:p@login.example/token"}), "oauth.token_url"),
        (gated(oauth={**OAUTH, "token_url": "https://login.example/token#x"}), "oauth.token_url"),
        (gated(oauth={**OAUTH, "token_url": "ironmq:///q"}), "oauth.token_url"),
        (gated(oauth={**OAUTH, "client_id": None}), "oauth.client_id"),
        (gated(oauth={**OAUTH, "client_secret": ""}), "oauth.client_secret"),
        (gated(oauth={**OAUTH, "auth_method": "clientSecretPost"}), "oauth.auth_method"),
        (gated(oauth={**OAUTH, "auth_method": 5}), "oauth.auth_method"),
        (gated(oauth={**OAUTH, "grant_type": "refresh_token"}), "oauth.grant_type"),
        (gated(oauth={**OAUTH, "refresh_token": "x"}), "oauth.refresh_token"),
        (gated(oauth={**OAUTH, "jwt_params": {}}), "oauth.jwt_params"),
        (gated(oauth={**OAUTH, "scopes": ["a b"]}), "oauth.scopes.0"),
        (gated(oauth={**OAUTH, "extra_params": {"client_secret": "x"}}), "oauth.extra_params.client_secret"),
        (gated(oauth={**OAUTH, "extra_headers": {"Host": "x"}}), "oauth.extra_headers.Host"),
        (gated(oauth={**OAUTH, "extra_headers": {"clientId": "\n"}}), "oauth.extra_headers.clientId"),
        (
            gated(oauth={"token_url": TOKEN_URL, "client_id": "a", "auth_method": "private_key_jwt"}),
            "oauth.jwt_params",
        ),
        (
            gated(oauth={**OAUTH, "auth_method": "private_key_jwt", "jwt_params": {"secret_base64": "eA=="}}),
            "oauth.client_secret",
        ),
        (gated(headers={"authorization": "Basic x"}), "oauth"),
        (gated(url="https://u:p@a.example/in"), "oauth"),
        (gated(url="ironmq:///next"), "oauth"),
        (gated(url="ironworker://P:T@worker.example/code"), "oauth"),
        (gated(url="notification2://t"), "oauth"),
        ({"name": "s0", "url": URL, "mtls": 5}, "mtls"),
        ({"name": "s0", "url": URL, "mtls": {}}, "mtls.identity"),
        ({"name": "s0", "url": URL, "mtls": {"identity": KEY}}, "mtls.identity"),
        ({"name": "s0", "url": URL, "mtls": {"identity": KEY + identity(key=False)}}, "mtls.identity"),
        ({"name": "s0", "url": URL, "mtls": {"identity": PEM, "ca": "junk"}}, "mtls.ca"),
        ({"name": "s0", "url": URL, "mtls": {"identity": PEM, "ca": PEM}}, "mtls.ca"),
        ({"name": "s0", "url": "http://a.example/in", "mtls": {"identity": PEM}}, "mtls"),
        ({"name": "s0", "url": "ironmq:///next", "mtls": {"identity": PEM}}, "mtls"),
    ],
    ids=range(34),
)
def test_what_could_not_be_right_is_refused_by_name(hub: Hub, subscriber: dict[str, Any], place: str) -> None:
    result = hub.call("PUT", "/queues/q", {"queue": {"push": {"subscribers": [subscriber]}}})
    assert (result.status, result.msg.partition(":")[0]) == (400, place), result
    assert SECRET not in result.msg
    assert KEY[40:80] not in result.msg
    assert hub.call("GET", "/queues/q").status == 404


@pytest.mark.parametrize(
    "url", ["https://169.254.169.254/latest/meta-data/", "https://[::1]/token", "https://a.local/t"]
)
def test_a_token_url_that_the_guard_refuses_is_not_registered(hub: Hub, url: str) -> None:
    hub.refusals[url] = "it leads into a network"
    refused = hub.call(
        "PUT", "/queues/q", {"queue": {"push": {"subscribers": [gated(oauth={**OAUTH, "token_url": url})]}}}
    )
    assert (refused.status, refused.msg) == (400, "oauth.token_url: it leads into a network")
    assert url in {checked for checked, _ in hub.checked}


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


def test_no_secret_is_seen_anywhere(hub: Hub) -> None:
    # Given a subscriber with both gates whose token server repeats what it was sent, and whose message fails
    echo = json.dumps({"error": "invalid_client", "error_description": f"wrong {SECRET}"}).encode()
    hub.world.sender.script(TOKEN_URL, Reply(status_code=401, body=echo), token())
    hub.make(
        "q",
        push={
            "subscribers": [gated(mtls={"identity": PEM})],
            "retries": 1,
            "retries_delay": 60,
            "error_queue": "failed",
        },
    )
    hub.world.sender.script(URL, 500)
    message_id = post(hub, seconds=200)
    [failed] = hub.world.pulled("failed")
    # Then neither secret, key nor token is in the log, in what is shown, stored or kept of it
    for place in (everything_written(hub, message_id), failed.decode()):
        for secret in (SECRET, KEY[40:80], "token-1"):
            assert secret not in place.replace("Bearer token-1", "")
    owner = next(iter(hub.world.ports.token_store.states))
    assert owner.project == PROJECT
    assert b"token-1" not in hub.world.ports.token_store.states[TokenOwner(PROJECT, owner.name)].sealed


def test_records_say_what_was_shown(hub: Hub) -> None:
    # Given a subscriber that is signed for twice and has both gates, one that is signed as by default, and a plain one
    own = {"content": "{body}", "header": {"name": "X-Own"}, "secret": "k" * 8}
    schemes = [{"preset": "stripe", "secret": "whsec_test"}, own]
    both = gated(mtls={"identity": PEM}, signing={"signatures": schemes})
    plain = {"name": "s2", "url": "https://b.example/in"}
    hub.make("q", push={"subscribers": [both, {**plain, "name": "s1", "signing": {"secret": symmetric("1")}}, plain]})
    # When a message is pushed, then its records name schemes, client and certificate, also after they were stored
    post(hub)
    found = {}
    for each in hub.world.messages.all_deliveries():
        stored = decode_delivery(encode_delivery(each))
        record = record_of_delivery(None, stored, 0)
        assert record is not None
        found[record.subscriber] = {name: record.as_fields().get(name) for name in SHOWN}
    fingerprint = x509.load_pem_x509_certificate(CERTIFICATE.encode()).fingerprint(SHA256()).hex()
    assert found == {
        "s0": {"signed_by": ("stripe", "x-own"), "token_client": "pushhub", "certificate": fingerprint},
        "s1": {"signed_by": ("standard-webhooks",), "token_client": None, "certificate": None},
        "s2": dict.fromkeys(SHOWN),
    }
    # And an attempt at which nothing was sent has shown nothing
    hub.world.sender.script(TOKEN_URL, 503)
    assert put(hub, gated(oauth={**OAUTH, "client_id": "other"})).status == 200
    message_id = post(hub)
    (delivery,) = [each for each in hub.world.messages.all_deliveries() if each.message_id == message_id]
    record = record_of_delivery(None, delivery, 0)
    assert record is not None
    assert not SHOWN & set(record.as_fields())


def ending_in(hub: Hub, days: float) -> str:
    ends = datetime.datetime.fromtimestamp(hub.world.clock.now() // 1000 + round(days * 86_400), datetime.UTC)
    return identity(ends=ends)


def look(hub: Hub) -> int:
    """Go on to the next hour, and look for ends."""
    hub.world.clock.set((hub.world.clock.now() // 3_600_000 + 1) * 3_600_000)
    return hub.world.hub.part(Ironmq).ends.run(lambda: 55_000)


def test_alerts_are_told_30_7_and_1_days_before_an_end_and_at_the_end(hub: Hub) -> None:
    # Given alerts of the project, of the queue, and of another queue, and a certificate that ends in 40 days
    for queue in ("", "q", "other"):
        if queue:
            hub.make(queue, push={"subscribers": [{"name": "plain", "url": URL}]})
        alert = {"name": f"of {queue}", "measure": "given_up", "threshold": 1, "queue": queue}
        made = hub.call("POST", "/alerts", {"alert": {**alert, "url": f"https://alerts.example/{queue}"}})
        assert made.status == 201, made
    assert put(hub, {"name": "s0", "url": URL, "mtls": {"identity": ending_in(hub, 40)}}, method="POST").status == 200

    def told(queue: str) -> list[tuple[object, ...]]:
        hub.world.run(seconds=5)
        bodies = [json.loads(each.body) for each in hub.world.sender.requests_to(f"https://alerts.example/{queue}")]
        return [(each["state"], each["queue"], each["subscriber"], each["value"]) for each in bodies]

    # When time goes by, with two looks at each time, then each alert that it concerns is told once each time
    expected: list[tuple[object, ...]] = []
    begun = hub.world.clock.now()
    for day, left in ((9.5, None), (10.5, 30), (20, None), (33.5, 7), (38, None), (39.5, 1), (40.5, 0), (60, None)):
        hub.world.clock.set(begun + round(day * DAY_MS))
        for _ in range(2):
            look(hub)
        expected += [] if left is None else [("certificate_ending", "q", "s0", left)]
        assert told("") == told("q") == expected
    assert told("other") == []
    # And operators are told, too, by the log
    events = hub.world.telemetry.named("certificate_ending")
    assert [each["days_left"] for each in events] == [30, 7, 1, 0]


def test_a_certificate_that_ends_in_five_days_is_told_of_within_a_minute(hub: Hub) -> None:
    hub.make("q", push={"subscribers": [{"name": "plain", "url": URL}]})
    alert = {"name": "all", "measure": "given_up", "threshold": 1, "url": "https://alerts.example/"}
    assert hub.call("POST", "/alerts", {"alert": alert}).status == 201
    # Given a subscriber that is given a certificate for five days
    assert put(hub, {"name": "s0", "url": URL, "mtls": {"identity": ending_in(hub, 5)}}, method="POST").status == 200
    # When a minute has passed, then the alert is told, once
    for _ in range(3):
        hub.world.clock.advance(seconds=60)
        hub.world.hub.part(Ironmq).ends.run(lambda: 55_000)
    hub.world.run(seconds=5)
    bodies = [json.loads(each.body) for each in hub.world.sender.requests_to("https://alerts.example/")]
    assert [(each["state"], each["subscriber"], each["value"]) for each in bodies] == [("certificate_ending", "s0", 5)]


def test_an_alert_is_told_of_each_subscriber_that_shows_the_same_certificate(hub: Hub) -> None:
    alert = {"name": "all", "measure": "given_up", "threshold": 1, "url": "https://alerts.example/"}
    assert hub.call("POST", "/alerts", {"alert": alert}).status == 201
    mtls = {"identity": ending_in(hub, 2)}
    hub.make("q", push={"subscribers": [{"name": name, "url": URL, "mtls": mtls} for name in ("s0", "s1")]})
    assert look(hub) == 2
    hub.world.run(seconds=5)
    bodies = [json.loads(each.body) for each in hub.world.sender.requests_to("https://alerts.example/")]
    assert sorted(each["subscriber"] for each in bodies) == ["s0", "s1"]


@pytest.mark.parametrize("then", ["replaced", "ended", "removed", "deleted"])
def test_a_certificate_that_is_gone_is_told_nothing_of(hub: Hub, then: str) -> None:
    soon = {"name": "s0", "url": URL, "mtls": {"identity": ending_in(hub, 2)}}
    hub.make("q", push={"subscribers": [soon, {"name": "s1", "url": URL}]})
    if then == "replaced":
        put(hub, {"name": "s0", "url": URL, "mtls": {"identity": PEM}}, method="POST")
    elif then == "ended":
        put(hub, {"name": "s0", "url": URL, "mtls": False}, method="POST")
    elif then == "removed":
        put(hub, {"name": "s1", "url": URL})
    else:
        hub.call("DELETE", "/queues/q")
    hub.world.clock.advance(seconds=86_400 + 3_600)
    assert look(hub) == 0
    assert not hub.world.telemetry.named("certificate_ending")
    hub.world.clock.advance(seconds=2 * 86_400)
    assert look(hub) == 0
