"""Services of stores behind OAuth 2.0 and mutual TLS: what they are sent, also when they are asked for a result later,
how that is set, changed and removed, and that nobody sees what is secret in it.
"""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.fakes import Reply
from tests.fakes.private_keys import identity
from tests.hub.api.hub_store import OTHER_STORE, Store
from tests.hub.world import URL

from pushhub.base.ports import PushRequest
from pushhub.engine.ends import DAY_MS
from pushhub.engine.model.records import record_of_delivery
from pushhub.hub.wiring import Hub

TOKEN_URL = "https://login.example/token"
SECRET = "s3cr%t:+/="
PEM = identity()
KEY, CERTIFICATE = PEM[: PEM.index("-----BEGIN CERTIFICATE")], PEM[PEM.index("-----BEGIN CERTIFICATE") :]
SHOWN = ("signed_by", "token_client", "certificate")
OAUTH = {"token_url": TOKEN_URL, "client_id": "pushhub", "client_secret": SECRET}
MAPPING = {"name": "acme.import", "url": URL, "token": "t" * 32, "messages": ["order:new"]}


def token(value: str = "token-1") -> Reply:
    body = json.dumps({"access_token": value, "token_type": "Bearer", "expires_in": 3600})
    return Reply(status_code=200, body=body.encode())


@pytest.fixture
def store() -> Store:
    made = Store()
    made.sender.script(TOKEN_URL, token())
    return made


def made(store: Store, says: Any = None, **fields: Any) -> dict[str, Any]:
    status, shown = store.call("POST", "/mappings", {"mapping": {**MAPPING, **fields}})
    assert status == 201, shown
    store.endpoints.setdefault(URL, says or (lambda _: {}))
    return dict(shown)


def change(store: Store, mapping: dict[str, Any], *, form: bool = False, **fields: Any) -> dict[str, Any]:
    status, shown = store.call("PUT", f"/mappings/{mapping['id']}", fields if form else {"mapping": fields}, form=form)
    assert status == 200, shown
    return dict(shown)


def push(store: Store, *, seconds: float = 5) -> None:
    store.push_message("order:new", number="R1")
    store.run(seconds=seconds)


def to(store: Store, url: str = URL) -> list[PushRequest]:
    return [each for each in store.sender.requests if each.url == url]


def authorizations(store: Store, url: str = URL) -> list[str | None]:
    return [each.headers.get("Authorization") for each in to(store, url)]


def test_a_token_is_asked_for_once_and_a_service_without_gates_gets_none(store: Store) -> None:
    # Given a service behind OAuth, and one that is not
    mapping = made(store, oauth=OAUTH)
    other = "https://b.example/import"
    store.endpoints[other] = lambda _: {}
    made(store, url=other, name="acme.other")
    assert mapping["oauth"] is True
    # When messages are pushed
    for _ in range(3):
        push(store)
    # Then one token was asked for, and is sent to that service alone, beside the hub's own token
    assert len(to(store, TOKEN_URL)) == 1
    assert authorizations(store) == ["Bearer token-1"] * 3
    assert authorizations(store, other) == [None] * 3
    assert {each.headers["X-Augury-Token"] for each in to(store)} == {"t" * 32}


def test_a_result_that_comes_later_is_asked_for_with_both(store: Store) -> None:
    # Given services that answer later: at their own address, and at another one
    here, elsewhere = "https://acme.example/status/1", "https://status.example/1"
    for url in (here, elsewhere):
        mapping = made(store, oauth=OAUTH, mtls={"identity": PEM, "ca": CERTIFICATE})
        store.endpoints[URL] = lambda _, url=url: {"update_url": url, "delay": 10}  # type: ignore[misc]
        store.endpoints[url] = lambda _: {}
        push(store, seconds=60)
        store.call("DELETE", f"/mappings/{mapping['id']}")
    # Then the polls to its own address show what its requests show, and those to another address nothing
    assert {each.headers.get("Authorization") for each in to(store)} == {"Bearer token-1"}
    assert {each.headers.get("Authorization") for each in to(store, here)} == {"Bearer token-1"}
    assert all(each.identity is not None and each.identity.pem == PEM for each in (*to(store), *to(store, here)))
    assert [(each.headers.get("Authorization"), each.identity) for each in to(store, elsewhere)] == [(None, None)]


def test_another_store_with_the_same_settings_shares_neither_token_nor_connection(store: Store) -> None:
    # Given two stores whose service, client and certificate are the same
    store.sender.script(TOKEN_URL, token("mine"), token("theirs"))
    same = {"mapping": {**MAPPING, "oauth": OAUTH, "mtls": {"identity": PEM}}}
    store.endpoints[URL] = lambda _: {}
    for project, opened in ((PROJECT, store.token), (OTHER_STORE, store.other_token)):
        assert store.call("POST", "/mappings", same, store=project, token=opened)[0] == 201
        message = {"message": "order:new", "payload": {"of": project}}
        assert store.call("POST", "/messages", message, store=project, token=opened)[0] in (200, 201, 202)
        store.run(seconds=5)
    # Then each is sent a token of its own, over a connection of its own
    assert authorizations(store) == ["Bearer mine", "Bearer theirs"]
    digests = {each.identity.digest for each in to(store) if each.identity is not None}
    assert len(digests) == 2


def test_a_refused_token_is_replaced_once_in_the_same_attempt(store: Store) -> None:
    made(store, oauth=OAUTH)
    push(store)
    store.sender.script(TOKEN_URL, token("token-2"))
    said: list[Any] = [401, {}]
    store.endpoints[URL] = lambda _: said.pop(0)
    push(store)
    assert authorizations(store) == ["Bearer token-1", "Bearer token-1", "Bearer token-2"]


def test_nothing_reaches_the_service_while_the_token_server_fails(store: Store) -> None:
    # Given a token server that is down
    store.sender.script(TOKEN_URL, *[503] * 3)
    made(store, oauth=OAUTH, options={"retry_base": 3, "retry_cap": 3})
    ids = [store.push_message("order:new", number=str(each)) for each in range(5)]
    store.run(seconds=4)
    # Then nothing reaches the service, one request is made, and the reason is told
    assert not to(store)
    assert len(to(store, TOKEN_URL)) == 1
    (copy,) = store.copies(ids[0])
    assert copy.last_error == "No usable answer: oauth: the token server answered 503"
    # When it is up again, then all come, once each
    store.sender.script(TOKEN_URL, *[token()] * 3)
    store.run(seconds=300)
    assert len(to(store)) == len(ids)
    assert len(to(store, TOKEN_URL)) <= 4


def test_whoever_does_not_speak_of_gates_leaves_them_as_they_are_and_false_ends_them(store: Store) -> None:
    mapping = made(store, oauth=OAUTH, mtls={"identity": PEM, "ca": CERTIFICATE})
    assert mapping["mtls"] == {"subject": "pushhub.example", "ends_at": "2046-01-01T00:00:00.000Z", "private_ca": True}
    stored = store.settings.mapping(PROJECT, mapping["id"])
    # When a client writes back what it read, as JSON or as a form, or says nothing of it
    change(store, mapping, **mapping)
    change(store, mapping, form=True, **{"name": "acme.import", "mtls": json.dumps(mapping["mtls"]), "oauth": "true"})
    change(store, mapping, name="acme.import")
    after = store.settings.mapping(PROJECT, mapping["id"])
    assert stored is not None
    assert after is not None
    assert (after.oauth, after.certificate, after.identity) == (stored.oauth, stored.certificate, stored.identity)
    # When both are ended, then requests show neither
    shown = change(store, mapping, oauth=False, mtls=False)
    assert "oauth" not in shown
    assert "mtls" not in shown
    push(store)
    (request,) = to(store)
    assert (request.headers.get("Authorization"), request.identity) == (None, None)


def test_they_can_be_set_by_a_form(store: Store) -> None:
    mapping = made(store)
    change(store, mapping, form=True, oauth=json.dumps(OAUTH), mtls=json.dumps({"identity": PEM}))
    push(store)
    (request,) = to(store)
    assert request.headers["Authorization"] == "Bearer token-1"
    assert request.identity is not None


def test_after_its_end_nothing_is_sent(store: Store) -> None:
    now = datetime.datetime.fromtimestamp(store.clock.now() / 1000, datetime.UTC)
    ends = (now + datetime.timedelta(days=2)).replace(microsecond=0)
    made(store, mtls={"identity": identity(ends=ends)})
    store.clock.set(round(ends.timestamp() * 1000))
    message = store.push_message("order:new", number="1")
    store.run(seconds=2)
    assert not to(store)
    (copy,) = store.copies(message)
    assert copy.last_error == f"No usable answer: mtls: the client certificate ended {ends.date()}"


@pytest.mark.parametrize(
    ("fields", "gate", "place"),
    [
        ({"oauth": 5}, "oauth", ""),
        ({"oauth": "{"}, "oauth", ""),
        ({"oauth": {}}, "oauth", "token_url "),
        ({"oauth": True}, "oauth", "token_url "),
        ({"oauth": {**OAUTH, "client_secret": None}}, "oauth", "client_secret "),
        ({"oauth": {**OAUTH, "auth_method": "none"}}, "oauth", "auth_method "),
        ({"oauth": {**OAUTH, "token_url": "http://login.example/"}}, "oauth", "token_url "),
        ({"mtls": {}}, "mtls", "identity "),
        ({"mtls": {"identity": CERTIFICATE}}, "mtls", "identity "),
        ({"mtls": {"identity": PEM, "ca": "junk"}}, "mtls", "ca "),
        ({"mtls": {"identity": PEM}, "url": "http://acme.example/"}, "mtls", ""),
    ],
    ids=range(11),
)
def test_what_could_not_be_right_is_refused_by_name(store: Store, fields: Any, gate: str, place: str) -> None:
    status, shown = store.call("POST", "/mappings", {"mapping": {**MAPPING, **fields}})
    assert status == 422, shown
    (message,) = shown["errors"][gate]
    assert message.startswith(place)
    assert SECRET not in message
    assert not store.settings.mappings(PROJECT)


def test_a_token_url_that_the_guard_refuses_is_not_registered(store: Store) -> None:
    url = "https://10.0.0.7/latest/meta-data/"
    store.refusals[url] = "it leads into a network"
    status, shown = store.call("POST", "/mappings", {"mapping": {**MAPPING, "oauth": {**OAUTH, "token_url": url}}})
    assert (status, shown["errors"]) == (422, {"oauth": ["token_url it leads into a network"]})


def test_no_secret_is_seen_anywhere(store: Store) -> None:
    echo = json.dumps({"error": "invalid_client", "error_description": f"wrong {SECRET}"}).encode()
    store.sender.script(TOKEN_URL, Reply(status_code=401, body=echo), token())
    mapping = made(store, oauth=OAUTH, mtls={"identity": PEM}, options={"retry_base": 1, "retry_cap": 1})
    message = store.push_message("order:new", number="1")
    store.run(seconds=60)
    assert len(to(store)) == 1
    _, listed = store.call("GET", "/mappings")
    shown = [mapping, listed, store.call("GET", f"/messages/{message}"), store.telemetry.__dict__]
    kept = [store.settings.mapping(PROJECT, mapping["id"]), store.log.__dict__, store.messages.all_deliveries()]
    written = json.dumps([*shown, *map(repr, kept)], default=repr)
    for secret in (SECRET, KEY[40:80], "token-1"):
        assert secret not in written


def test_records_say_what_was_shown(store: Store) -> None:
    # Given a service with gates that answers later, at another address
    elsewhere = "https://status.example/1"
    signing = {"signatures": [{"preset": "stripe", "secret": "whsec_test"}]}
    made(store, lambda _: {"update_url": elsewhere, "delay": 10}, oauth=OAUTH, signing=signing)
    store.endpoints[elsewhere] = lambda _: {}
    store.push_message("order:new", number="R1")
    store.run(seconds=5)

    def fields() -> dict[str, object]:
        (delivery,) = [each for each in store.messages.all_deliveries() if each.queue != "hub/incoming"]
        record = record_of_delivery(None, delivery, 0)
        assert record is not None
        return {name: each for name, each in record.as_fields().items() if name in ("kind", *SHOWN)}

    # Then its request showed a token, and the poll elsewhere a signature only
    assert fields() == {"kind": "attempt", "signed_by": ("stripe",), "token_client": "pushhub"}
    store.run(seconds=60)
    assert fields() == {"kind": "poll", "signed_by": ("stripe",)}


def test_a_store_is_told_30_7_and_1_days_before_an_end_and_at_the_end(store: Store) -> None:
    # Given a certificate that ends in 40 days, and a service that wants warnings
    begun = store.clock.now()
    ends = datetime.datetime.fromtimestamp(begun // 1000 + 40 * 86_400, datetime.UTC)
    mapping = made(store, mtls={"identity": identity(ends=ends)})
    watcher = "https://watch.example/in"
    store.endpoints[watcher] = lambda _: {}
    made(store, url=watcher, name="watch", messages=["notification:warn"])

    def look() -> None:
        store.clock.set((store.clock.now() // 3_600_000 + 1) * 3_600_000)
        store.hub.part(Hub).ends.run(lambda: 55_000)

    # When time goes by, with two looks at each time
    for day in (9.5, 10.5, 20, 33.5, 38, 39.5, 40.5, 60):
        store.clock.set(begun + round(day * DAY_MS))
        look()
        look()
        store.run(seconds=60)
    # Then there is a notification each time, once, in the list and at the service
    said = ["ends in 30 days", "ends in 7 days", "ends in 1 day", "has ended"]
    subjects = [f"The client certificate for acme.import {each}" for each in said]
    sent = [json.loads(each.body)["payload"]["subject"] for each in to(store, watcher)]
    assert sent == subjects
    _, listed = store.call("GET", "/notifications")
    assert sorted(each["subject"] for each in listed["notifications"]) == sorted(subjects)
    assert [each["days_left"] for each in store.telemetry.named("certificate_ending")] == [30, 7, 1, 0]
    assert mapping["mtls"]["subject"] == "pushhub.example"


def test_a_certificate_that_ends_in_five_days_is_told_of_within_a_minute(store: Store) -> None:
    ends = datetime.datetime.fromtimestamp(store.clock.now() // 1000 + 5 * 86_400, datetime.UTC)
    made(store, mtls={"identity": identity(ends=ends)})
    for _ in range(3):
        store.clock.advance(seconds=60)
        store.hub.part(Hub).ends.run(lambda: 55_000)
    _, listed = store.call("GET", "/notifications")
    subjects = [each["subject"] for each in listed["notifications"]]
    assert subjects == ["The client certificate for acme.import ends in 5 days"]


def test_a_certificate_that_is_gone_is_told_nothing_of(store: Store) -> None:
    ends = datetime.datetime.fromtimestamp(store.clock.now() // 1000 + 2 * 86_400, datetime.UTC)
    change(store, made(store, mtls={"identity": identity(ends=ends)}), mtls=False)
    store.call("DELETE", f"/mappings/{made(store, mtls={'identity': identity(ends=ends)})['id']}")
    for _ in range(2):
        store.clock.advance(seconds=2 * 86_400)
        store.clock.set((store.clock.now() // 3_600_000 + 1) * 3_600_000)
        assert store.hub.part(Hub).ends.run(lambda: 55_000) == 0
    assert not store.telemetry.named("certificate_ending")
