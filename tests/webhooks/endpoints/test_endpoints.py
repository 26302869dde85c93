"""Endpoints, their secrets and headers through the API, on fakes (checks 12 to 22 of the protocol's description)."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.fakes.credentials import credentials
from tests.webhooks.world import WebhooksWorld

from pushhub.base.credentials import MASK
from pushhub.webhooks.endpoints.credentials import opened

URL = "https://a.example/in"
PRIVATE = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
PUBLIC = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="


def symmetric(size: int) -> str:
    return "whsec_" + base64.b64encode(b"k" * size).decode()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        dict.fromkeys(("metadata", "channels", "secret", "uid", "throttleRate", "rateLimit", "headers", "eventTypes")),
    ],
)
def test_an_endpoint_needs_a_url_only(world: WebhooksWorld, app: str, fields: dict[str, Any]) -> None:
    answer = world.call("POST", f"/app/{app}/endpoint", {"url": "http://localhost/webhook/receiver", **fields})
    assert answer.status == 201
    created = answer.body
    assert created.pop("id").startswith("ep_")
    assert created.pop("createdAt") == created.pop("updatedAt")
    assert created == {
        "url": "http://localhost/webhook/receiver",
        "description": "",
        "uid": None,
        "version": 1,
        "disabled": False,
        "eventTypes": None,
        "filterTypes": None,
        "channels": None,
        "throttleRate": None,
        "rateLimit": None,
        "metadata": {},
    }


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("http://Example.COM", "http://example.com/"),
        ("HTTP://Example.com/Foo?Bar=Baz", "http://example.com/Foo?Bar=Baz"),
        ("http://example.com?A=b", "http://example.com/?A=b"),
        ("https://Shop:Secret@Example.com:443/A", "https://Shop:Secret@example.com/A"),
        ("http://example.com:80/a", "http://example.com/a"),
        ("http://example.com:443/a", "http://example.com:443/a"),
        ("http://example.com:/a", "http://example.com/a"),
        ("http://[2001:DB8::1]:8080/a", "http://[2001:db8::1]:8080/a"),
        ("https://example.com#top", "https://example.com/"),
    ],
)
def test_its_url_is_kept_as_browsers_write_it(world: WebhooksWorld, app: str, given: str, kept: str) -> None:
    created = world.ask("POST", f"/app/{app}/endpoint", {"url": given})
    assert created["url"] == kept.replace("Shop:Secret@", f"{MASK}@")
    # And a URL in that form is kept unchanged
    assert world.ask("PATCH", f"/app/{app}/endpoint/{created['id']}", {"url": kept})["url"] == created["url"]


def test_it_is_read_changed_replaced_and_deleted(world: WebhooksWorld) -> None:
    # Given an endpoint created as old clients do it
    world.ask("POST", "/event-type", {"name": "a", "description": "x"})
    app = world.make_app(uid="acme")
    given = {"url": URL, "uid": "shop", "version": 3, "filterTypes": ["a"], "rateLimit": 7, "channels": ["y", "x"]}
    created = world.ask("POST", "/app/acme/endpoint", given)
    assert (created["eventTypes"], created["throttleRate"], created["version"], created["channels"]) == (
        ["a"],
        7,
        3,
        ["x", "y"],
    )
    path = f"/app/{app}/endpoint/shop"
    assert world.ask("GET", path) == created == world.ask("GET", f"/app/acme/endpoint/{created['id']}")
    # When it is patched, then nulls clear and the rest stays
    patched = world.ask("PATCH", path, {"eventTypes": None, "channels": None, "throttleRate": None})
    assert (patched["eventTypes"], patched["channels"], patched["throttleRate"]) == (None, None, None)
    assert patched["uid"] == "shop"
    # When it is replaced, then whatever was not sent is removed, except its secret
    key = world.ask("GET", f"{path}/secret")
    replaced = world.call("PUT", path, {"url": "https://b.example"})
    assert (replaced.status, replaced.body["uid"], replaced.body["url"]) == (200, None, "https://b.example/")
    path = f"/app/acme/endpoint/{created['id']}"
    assert world.ask("GET", f"{path}/secret") == key
    # When it is deleted, then it no longer exists and its uid is free
    assert world.call("DELETE", path).status == 204
    assert world.call("GET", path).status == 404
    assert world.call("PUT", "/app/acme/endpoint/none", {"url": URL, "uid": "shop"}).status == 201


def test_a_uid_is_unique_in_its_application_only(world: WebhooksWorld) -> None:
    app, other = world.make_app(), world.make_app()
    first = world.make_endpoint(app, uid="e")
    second = world.make_endpoint(app)
    world.make_endpoint(other, uid="e")
    for method, path in (("POST", ""), ("PUT", f"/{second}"), ("PATCH", f"/{second}")):
        taken = world.call(method, f"/app/{app}/endpoint{path}", {"url": URL, "uid": "e"})
        assert (taken.status, taken.body["code"]) == (409, "conflict")
    world.ask("PUT", f"/app/{app}/endpoint/{first}", {"url": URL, "uid": "e"})


def test_another_applications_endpoint_is_not_there(world: WebhooksWorld) -> None:
    app, other = world.make_app(), world.make_app()
    endpoint = world.make_endpoint(app)
    for path in ("", "/secret", "/headers", "/stats", "/msg"):
        assert world.call("GET", f"/app/{other}/endpoint/{endpoint}{path}").status == 404
        assert world.call("GET", f"/app/{app}/endpoint/{endpoint}{path}", token=world.other_token).status == 404


@pytest.mark.parametrize(
    "fields",
    [
        {"url": "ftp://a.example"},
        {"url": "a.example"},
        {"url": "http://"},
        {"url": "http://a b/"},
        {"url": None},
        {"description": None},
        {"disabled": None},
        {"eventTypes": []},
        {"eventTypes": ["none"]},
        {"channels": []},
        {"channels": ["a b"]},
        {"channels": [str(number) for number in range(11)]},
        {"throttleRate": 0},
        {"uid": "ep_x"},
        {"secret": symmetric(23)},
        {"secret": symmetric(76)},
        {"secret": "whsec_%%%"},
        {"secret": base64.b64encode(b"k" * 24).decode()},
        {"secret": PRIVATE[:-8] + "AAAAAAA="},
        {"secret": "whsk_" + base64.b64encode(b"k" * 63).decode()},
        {"headers": {"User-Agent": "x"}},
        {"headers": {"webhook-id": "x"}},
        {"headers": {"Svix-Id": "x"}},
        {"headers": {"X-Amz-Date": "x"}},
        {"headers": {"X": "a\nb"}},
        {"headers": {"X": "x" * 4_097}},
        {"headers": {"a b": "x"}},
        {"headers": {"X-Key": "1", "x-key": "2"}},
    ],
)
def test_a_field_that_breaks_a_rule_is_told_with_its_place(world: WebhooksWorld, fields: dict[str, Any]) -> None:
    answer = world.call("POST", f"/app/{world.make_app()}/endpoint", {"url": URL, **fields})
    assert answer.status == 422
    [problem] = answer.body["detail"]
    [field] = fields
    assert problem["loc"][:2] == ["body", field]
    # Whatever is wrong with a secret, it is not repeated
    assert str(fields[field])[6:] not in problem["msg"] or field != "secret"


def test_archived_types_cannot_be_chosen_but_kept(world: WebhooksWorld) -> None:
    world.ask("POST", "/event-type", {"name": "a", "description": "x"})
    app = world.make_app()
    endpoint = world.make_endpoint(app, eventTypes=["a", "endpoint.created"])
    world.ask("DELETE", "/event-type/a")
    refused = world.call("POST", f"/app/{app}/endpoint", {"url": URL, "eventTypes": ["a"]})
    assert (refused.status, refused.body["detail"][0]["msg"]) == (422, "The following event types don't exist: a")
    assert world.call("PATCH", f"/app/{app}/endpoint/{endpoint}", {"description": "y"}).status == 200


@pytest.mark.parametrize("size", [24, 75])
def test_a_given_secret_is_kept_and_one_is_made_otherwise(world: WebhooksWorld, app: str, size: int) -> None:
    given = world.make_endpoint(app, secret=symmetric(size))
    assert world.ask("GET", f"/app/{app}/endpoint/{given}/secret") == {"key": symmetric(size)}
    created = world.ask("GET", f"/app/{app}/endpoint/{world.make_endpoint(app)}/secret")["key"]
    assert len(base64.b64decode(created.removeprefix("whsec_"), validate=True)) == 24


def test_of_an_ed25519_secret_the_public_half_is_shown(world: WebhooksWorld, app: str) -> None:
    endpoint = world.make_endpoint(app, secret=PRIVATE)
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}/secret")["key"] == PUBLIC


def test_headers_are_set_merged_and_removed_and_sensitive_ones_withheld(world: WebhooksWorld, app: str) -> None:
    path = f"/app/{app}/endpoint/{world.make_endpoint(app)}/headers"
    assert world.ask("GET", path) == {"headers": {}, "sensitive": []}
    assert world.call("PUT", path, {"headers": {"X-One": "1", "X-Two": "2", "Authorization": "x"}}).status == 204
    assert world.ask("GET", path) == {"headers": {"X-One": "1", "X-Two": "2"}, "sensitive": ["Authorization"]}
    # When some are changed: null removes, and so do the lists of new clients, whatever the case
    assert (
        world.call("PATCH", path, {"headers": {"x-one": None, "X-Three": "3"}, "deleteHeaders": ["x-two"]}).status
        == 204
    )
    assert world.ask("GET", path) == {"headers": {"X-Three": "3"}, "sensitive": ["Authorization"]}
    assert world.call("PATCH", path, {"headers": {"User-Agent": None}}).status == 422
    # When a request to replace them names none, then it is refused and they stay
    for nothing in ({}, {"headers": None}):
        refused = world.call("PUT", path, nothing)
        assert (refused.status, refused.body["detail"][0]["loc"]) == (422, ["body", "headers"])
    assert world.ask("GET", path)["headers"] == {"X-Three": "3"}
    # When they are replaced, then the old ones are removed
    world.ask("PUT", path, {"headers": {}})
    assert world.ask("GET", path) == {"headers": {}, "sensitive": []}


def test_endpoints_are_listed_newest_first(world: WebhooksWorld, app: str) -> None:
    ids = []
    for _ in range(3):
        ids.append(world.make_endpoint(app))
        world.clock.advance(ms=10)
    first = world.ask("GET", f"/app/{app}/endpoint", limit=2)
    assert [each["id"] for each in first["data"]] == ids[:0:-1]
    rest = world.ask("GET", f"/app/{app}/endpoint", limit=2, iterator=first["iterator"])
    assert ([each["id"] for each in rest["data"]], rest["done"]) == (ids[:1], True)
    assert world.ask("GET", f"/app/{app}/endpoint", limit=2, iterator=rest["prevIterator"])["data"] == first["data"]
    up = world.ask("GET", f"/app/{app}/endpoint", order="ascending")
    assert [each["id"] for each in up["data"]] == ids


SECRET_URL = "https://shop:p4ssw0rd@a.example/in"
SECRET_HEADERS = {"Authorization": "Bearer t0ken", "X-Plain": "s3cret", "Accept": "text/plain"}


def test_what_opens_something_is_sent_with_each_message_and_found_nowhere_else(world: WebhooksWorld, app: str) -> None:
    created = world.ask("POST", f"/app/{app}/endpoint", {"url": SECRET_URL, "headers": SECRET_HEADERS})
    assert created["url"] == f"https://{MASK}@a.example/in"
    path = f"/app/{app}/endpoint/{created['id']}"
    # When the endpoint is read, changed and written by clients that send everything back, then it keeps them
    world.ask("PUT", path, {**created, "description": "x"})
    world.ask("PATCH", path, {"url": f"https://{MASK}@a.example/other", "description": "y"})
    shown = world.ask("GET", f"{path}/headers")
    assert shown == {"headers": {"X-Plain": "s3cret", "Accept": "text/plain"}, "sensitive": ["Authorization"]}
    assert world.call("PUT", f"{path}/headers", {"headers": {**shown["headers"], "Authorization": MASK}}).status == 204
    assert world.call("PATCH", f"{path}/headers", {"headers": {"X-More": "m0re"}}).status == 204
    stored = world.ports.applications.endpoint(PROJECT, app, created["id"])
    for secret in ("p4ssw0rd", "t0ken", "s3cret", "m0re"):
        assert secret not in repr(stored)
    kept = opened(stored, credentials()) if stored else None
    assert kept is not None
    assert kept.fields.url == "https://shop:p4ssw0rd@a.example/other"
    assert kept.headers == {**SECRET_HEADERS, "X-More": "m0re"}
    # And messages carry them, while the log of attempts does not
    world.ask("POST", f"/app/{app}/msg", {"eventType": "a.b", "payload": {}})
    world.run(seconds=5)
    [request] = world.sender.requests
    assert request.url == "https://shop:p4ssw0rd@a.example/other"
    assert {name: request.headers[name] for name in kept.headers} == kept.headers
    [attempt] = world.ask("GET", f"/app/{app}/attempt/endpoint/{created['id']}")["data"]
    assert attempt["url"] == f"https://{MASK}@a.example/other"
    # A deleted endpoint keeps nothing
    assert world.call("DELETE", path).status == 204
    gone = world.ports.applications.deleted_endpoint(PROJECT, app, created["id"])
    assert gone is not None
    assert gone.credentials == b""


@pytest.mark.parametrize("url", [f"https://{MASK}@evil.example/in", f"http://{MASK}@a.example/in"])
def test_a_masked_password_is_never_sent_to_another_host(world: WebhooksWorld, app: str, url: str) -> None:
    created = world.ask("POST", f"/app/{app}/endpoint", {"url": SECRET_URL})
    for method in ("PUT", "PATCH"):
        assert world.call(method, f"/app/{app}/endpoint/{created['id']}", {"url": url}).status == 422
    assert world.call("POST", f"/app/{app}/endpoint", {"url": url}).status == 422
    assert world.call("POST", f"/app/{app}/endpoint", {"url": URL, "headers": {"X": MASK}}).status == 422
