"""Services of stores behind OAuth 2.0 and mutual TLS, beside what every dialect promises (``tests/dialects``): what
they are sent when they are asked for a result later, forms, and who is told of ends.
"""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.fakes import Reply
from tests.fakes.private_keys import identity
from tests.hub.api.hub_store import Store
from tests.hub.world import URL

from pushhub.base.ports import PushRequest
from pushhub.engine.ends import DAY_MS
from pushhub.engine.model.records import record_of_delivery
from pushhub.hub.wiring import Hub

TOKEN_URL = "https://login.example/token"
SECRET = "s3cr%t:+/="
PEM = identity()
CERTIFICATE = PEM[PEM.index("-----BEGIN CERTIFICATE") :]
SHOWN = ("signed_by", "token_client", "certificate")
OAUTH = {"token_url": TOKEN_URL, "client_id": "pushhub", "client_secret": SECRET}
MAPPING = {"name": "acme.import", "url": URL, "token": "t" * 32, "messages": ["order:new"]}


def token(value: str = "token-1") -> Reply:
    body = json.dumps({"access_token": value, "token_type": "Bearer", "expires_in": 3600})
    return Reply(status_code=200, body=body.encode())


@pytest.fixture
def store() -> Store:
    created = Store()
    created.sender.script(TOKEN_URL, token())
    return created


def create_mapping(store: Store, says: Any = None, **fields: Any) -> dict[str, Any]:
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


def test_a_result_that_comes_later_is_asked_for_with_both(store: Store) -> None:
    # Given services that answer later: at their own address, and at another one
    here, elsewhere = "https://acme.example/status/1", "https://status.example/1"
    for url in (here, elsewhere):
        mapping = create_mapping(store, oauth=OAUTH, mtls={"identity": PEM, "ca": CERTIFICATE})
        store.endpoints[URL] = lambda _, url=url: {"update_url": url, "delay": 10}  # type: ignore[misc]
        store.endpoints[url] = lambda _: {}
        push(store, seconds=60)
        store.call("DELETE", f"/mappings/{mapping['id']}")
    # Then the polls to its own address show what its requests show, and those to another address nothing
    assert {each.headers.get("Authorization") for each in to(store)} == {"Bearer token-1"}
    assert {each.headers.get("Authorization") for each in to(store, here)} == {"Bearer token-1"}
    assert all(each.identity is not None and each.identity.pem == PEM for each in (*to(store), *to(store, here)))
    assert [(each.headers.get("Authorization"), each.identity) for each in to(store, elsewhere)] == [(None, None)]


def test_they_can_be_set_by_a_form(store: Store) -> None:
    mapping = create_mapping(store)
    change(store, mapping, form=True, oauth=json.dumps(OAUTH), mtls=json.dumps({"identity": PEM}))
    push(store)
    # And a form that says what was shown leaves them
    shown = next(each for each in store.call("GET", "/mappings")[1] if each["id"] == mapping["id"])
    change(store, mapping, form=True, name="acme.import", mtls=json.dumps(shown["mtls"]), oauth="true")
    push(store)
    for request in to(store):
        assert request.headers["Authorization"] == "Bearer token-1"
        assert request.identity is not None


@pytest.mark.parametrize(
    ("fields", "gate", "place"),
    [
        ({"oauth": "{"}, "oauth", ""),
        ({"mtls": {"identity": PEM}, "url": "http://acme.example/"}, "mtls", ""),
    ],
    ids=range(2),
)
def test_what_could_not_be_right_is_refused_by_name(store: Store, fields: Any, gate: str, place: str) -> None:
    status, shown = store.call("POST", "/mappings", {"mapping": {**MAPPING, **fields}})
    assert status == 422, shown
    (message,) = shown["errors"][gate]
    assert message.startswith(place)
    assert SECRET not in message
    assert not store.settings.mappings(PROJECT)


def test_records_say_what_was_shown(store: Store) -> None:
    # Given a service with gates that answers later, at another address
    elsewhere = "https://status.example/1"
    signing = {"signatures": [{"preset": "stripe", "secret": "whsec_test"}]}
    create_mapping(store, lambda _: {"update_url": elsewhere, "delay": 10}, oauth=OAUTH, signing=signing)
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
    mapping = create_mapping(store, mtls={"identity": identity(ends=ends)})
    watcher = "https://watch.example/in"
    store.endpoints[watcher] = lambda _: {}
    create_mapping(store, url=watcher, name="watch", messages=["notification:warn"])

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
