"""Integrations: services that look after an application's endpoints, each with a key of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.webhooks.world import WebhooksWorld

YEAR_S = 365 * 86_400


def integration(world: WebhooksWorld, app: str, **asked: Any) -> str:
    """The id of a new one."""
    return str(world.ask("POST", f"/app/{app}/integration", {"name": "Order desk", **asked})["id"])


def rotated(world: WebhooksWorld, app: str, created: str) -> str:
    """Its new key."""
    return str(world.ask("POST", f"/app/{app}/integration/{created}/key/rotate")["key"])


def status(world: WebhooksWorld, path: str, key: str) -> int:
    return int(world.call("GET", path, token=key).status)


def test_an_integration_is_made_listed_replaced_and_deleted(world: WebhooksWorld) -> None:
    app = world.make_app(uid="acme")
    first = integration(world, "acme", name="One")
    world.clock.advance(seconds=1)
    second = integration(world, "acme", name="Two")
    assert [each["id"] for each in world.ask("GET", f"/app/{app}/integration")["data"]] == [first, second]
    # A page at a time, in either order
    page = world.ask("GET", f"/app/{app}/integration", limit=1, order="descending")
    assert ([each["name"] for each in page["data"]], page["done"]) == (["Two"], False)
    assert "featureFlags" not in page["data"][0]
    world.clock.advance(seconds=5)
    after = world.ask("PUT", f"/app/{app}/integration/{first}", {"name": "Uno", "featureFlags": ["a", "b", "a"]})
    assert (after["name"], after["featureFlags"]) == ("Uno", ["a", "b"])
    assert after["updatedAt"] > after["createdAt"]
    assert world.ask("GET", f"/app/{app}/integration/{first}") == after
    assert world.call("DELETE", f"/app/{app}/integration/{first}").status == 204
    for method, path, body in (
        ("GET", "", None),
        ("PUT", "", {"name": "x"}),
        ("DELETE", "", None),
        ("POST", "/key/rotate", None),
    ):
        assert world.call(method, f"/app/{app}/integration/{first}{path}", body).status == 404, (method, path)


def test_a_key_opens_its_application_until_it_is_rotated(world: WebhooksWorld) -> None:
    # Given an integration, which has no key until it is given one
    app, other = world.make_app(), world.make_app()
    created = integration(world, app)
    key = rotated(world, app, created)
    # Then the key opens its application and no other, and does not end by itself
    world.clock.advance(seconds=YEAR_S)
    assert (status(world, f"/app/{app}/endpoint", key), status(world, f"/app/{other}/endpoint", key)) == (200, 404)
    assert world.call("POST", f"/app/{app}/endpoint", {"url": "https://desk.example/in"}, token=key).status == 201
    # Nor does it give keys, or outlive a rotation
    for method, path in (
        ("GET", ""),
        ("GET", f"/{created}"),
        ("POST", f"/{created}/key/rotate"),
        ("DELETE", f"/{created}"),
    ):
        assert world.call(method, f"/app/{app}/integration{path}", token=key).status == 403, (method, path)
    world.clock.advance(seconds=1)
    newer = rotated(world, app, created)
    assert (status(world, f"/app/{app}", key), status(world, f"/app/{app}", newer)) == (401, 200)


def test_portals_end_without_the_keys_of_integrations(world: WebhooksWorld, app: str) -> None:
    key = rotated(world, app, integration(world, app))
    portal = world.ask("POST", f"/auth/app-portal-access/{app}", {})["token"]
    world.ask("POST", f"/auth/app/{app}/expire-all", {})
    assert (status(world, f"/app/{app}", portal), status(world, f"/app/{app}", key)) == (401, 200)


@pytest.mark.parametrize("gone", ["integration", "application"])
def test_a_key_ends_with_what_it_is_of(world: WebhooksWorld, app: str, gone: str) -> None:
    created = integration(world, app)
    key = rotated(world, app, created)
    assert status(world, "/event-type", key) == 200
    path = f"/app/{app}" if gone == "application" else f"/app/{app}/integration/{created}"
    assert world.call("DELETE", path).status == 204
    # Also where no application is named
    assert status(world, "/event-type", key) == 401


def before_the_next(
    monkeypatch: pytest.MonkeyPatch, world: WebhooksWorld, call: str, meanwhile: Callable[[], object]
) -> None:
    """Have something done just before the next call of the store of tokens."""
    store = world.ports.portal_tokens
    real = getattr(store, call)

    def called(*given: Any) -> Any:
        monkeypatch.setattr(store, call, real)
        meanwhile()
        return real(*given)

    monkeypatch.setattr(store, call, called)


def test_no_key_is_left_of_an_integration_that_is_deleted_while_it_is_given_one(
    world: WebhooksWorld, app: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given an integration with a key
    created = integration(world, app)
    former = rotated(world, app, created)
    path = f"/app/{app}/integration/{created}"
    # When it is deleted between the looks and the writes of a rotation
    before_the_next(monkeypatch, world, "put_access", lambda: world.call("DELETE", path))
    answer = world.call("POST", f"{path}/key/rotate")
    # Then there is no key, neither in the answer nor in the store
    assert answer.status == 404
    assert status(world, "/event-type", former) == 401
    assert [*world.ports.portal_tokens.accesses(PROJECT, app)] == []


def test_no_key_is_left_of_an_integration_that_is_given_one_while_it_is_deleted(
    world: WebhooksWorld, app: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given an integration
    created = integration(world, app)
    path, store = f"/app/{app}/integration/{created}", world.ports.integration_store
    delete = store.delete_integration
    keys: list[str] = []

    def late(*given: Any) -> Any:
        keys.append(rotated(world, app, created))
        return delete(*given)

    # When it is given a key after those it had were taken back
    monkeypatch.setattr(store, "delete_integration", late)
    assert world.call("DELETE", path).status == 204
    # Then that opens nothing
    assert status(world, "/event-type", keys[0]) == 401


def test_a_key_has_the_flags_that_were_set_while_it_was_made(
    world: WebhooksWorld, app: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given an integration that sees an event type that is not for everybody
    world.ask("POST", "/event-type", {"name": "a.b", "description": "x", "featureFlags": ["beta"]})
    created = integration(world, app, featureFlags=["beta"])
    # When the flag is taken from it while it is given a key
    path = f"/app/{app}/integration/{created}"
    before_the_next(monkeypatch, world, "put_access", lambda: world.ask("PUT", path, {"name": "Order desk"}))
    key = rotated(world, app, created)
    # Then the key does not have it
    assert world.ask("GET", "/event-type", token=key)["data"] == []


def test_a_key_has_the_flags_of_the_later_of_two_changes(
    world: WebhooksWorld, app: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given an integration that sees an event type that is not for everybody, and has a key
    world.ask("POST", "/event-type", {"name": "a.b", "description": "x", "featureFlags": ["beta"]})
    created = integration(world, app)
    key = rotated(world, app, created)
    # When it is given the flag, and it is taken from it before its key has it
    path = f"/app/{app}/integration/{created}"
    before_the_next(monkeypatch, world, "change_access", lambda: world.ask("PUT", path, {"name": "Order desk"}))
    world.ask("PUT", path, {"name": "Order desk", "featureFlags": ["beta"]})
    # Then its key does not have it either
    assert "featureFlags" not in world.ask("GET", path)
    assert world.ask("GET", "/event-type", token=key)["data"] == []


def test_a_key_that_is_made_while_its_application_is_deleted_opens_nothing(
    world: WebhooksWorld, app: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = integration(world, app)
    # Given an application that is deleted just before a key to it is stored
    before_the_next(monkeypatch, world, "put_access", lambda: world.call("DELETE", f"/app/{app}"))
    key = rotated(world, app, created)
    # Then it opens nothing, also where no application is named
    assert status(world, f"/app/{app}", key) == 404
    assert status(world, "/event-type", key) == 401


@pytest.mark.parametrize("call", ["put_access", "accesses"])
def test_one_key_is_left_of_two_that_are_made_at_once(
    world: WebhooksWorld, app: str, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    created = integration(world, app)
    former = rotated(world, app, created)
    # When a key is made while another one is, in the same millisecond
    keys: list[str] = []
    before_the_next(monkeypatch, world, call, lambda: keys.append(rotated(world, app, created)))
    keys.append(rotated(world, app, created))
    # Then one of them opens its application, and nothing else does
    assert sorted(status(world, "/event-type", each) for each in keys) == [200, 401]
    assert status(world, "/event-type", former) == 401


def test_a_key_to_a_source_ends_with_the_source(world: WebhooksWorld) -> None:
    wanted = {"name": "Repositories", "type": "generic-webhook"}
    source = str(world.ask("POST", "/source", wanted, root="/ingest/api/v1")["id"])
    key = rotated(world, source, integration(world, source))
    assert status(world, "/event-type", key) == 200
    assert world.call("DELETE", f"/source/{source}", root="/ingest/api/v1").status == 204
    assert status(world, "/event-type", key) == 401


def test_a_key_sees_the_event_types_of_its_feature_flags(world: WebhooksWorld, app: str) -> None:
    world.ask("POST", "/event-type", {"name": "secret.made", "description": "", "featureFlags": ["beta"]})
    created = integration(world, app)
    key = rotated(world, app, created)

    def seen() -> list[str]:
        return [each["name"] for each in world.call("GET", "/event-type", token=key).body["data"]]

    assert "secret.made" not in seen()
    # When it is given the flag, then the same key sees it at once
    world.ask("PUT", f"/app/{app}/integration/{created}", {"name": "Order desk", "featureFlags": ["beta"]})
    assert "secret.made" in seen()


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({}, ["body", "name"]),
        ({"name": ""}, ["body", "name"]),
        ({"name": "x" * 257}, ["body", "name"]),
        ({"name": ["x"]}, ["body", "name"]),
        ({"name": "x", "featureFlags": "beta"}, ["body", "featureFlags"]),
        ({"name": "x", "featureFlags": ["a b"]}, ["body", "featureFlags"]),
    ],
)
def test_what_is_wrong_with_an_integration_is_said(world: WebhooksWorld, app: str, body: Any, where: list[str]) -> None:
    answer = world.call("POST", f"/app/{app}/integration", body)
    assert (answer.status, answer.body["detail"][0]["loc"][: len(where)]) == (422, where)
    assert world.ask("GET", f"/app/{app}/integration")["data"] == []


def test_of_another_application_there_is_none(world: WebhooksWorld) -> None:
    app, other = world.make_app(), world.make_app()
    created = integration(world, app)
    assert world.call("GET", f"/app/{other}/integration/{created}").status == 404
    assert world.call("GET", f"/app/none/integration/{created}").status == 404
    assert world.call("POST", f"/app/{other}/integration/{created}/key/rotate").status == 404
