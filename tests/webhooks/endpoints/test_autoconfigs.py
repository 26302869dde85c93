"""Autoconfiguration: a consumer sets up its endpoint with nothing but a token."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.webhooks.world import WebhooksWorld

from pushhub.base.errors import Unavailable

URL, OTHER_URL = "https://consumer.example/in", "https://consumer.example/other"


def opened(token: str) -> dict[str, str]:
    """What clients read in a token."""
    assert token.startswith("auto_v2_")
    found: dict[str, str] = json.loads(base64.b64decode(token.removeprefix("auto_v2_")))
    return found


def created(world: WebhooksWorld, app: str, **asked: Any) -> tuple[str, dict[str, str]]:
    """The id of a new one, and what is in its token."""
    built = world.ask("POST", f"/app/{app}/autoconfig", asked)
    return built["id"], opened(built["token"])


def subscribed(world: WebhooksWorld, token: dict[str, str], **endpoint: Any) -> Any:
    """The endpoint that a consumer sets up."""
    path = f"/app/{token['aid']}/autoconfig/{token['sid']}/endpoint"
    return world.call("PUT", path, {"url": URL, **endpoint}, token=token["tok"])


def test_a_consumer_sets_up_one_endpoint_and_changes_it(world: WebhooksWorld, app: str) -> None:
    # Given a token
    autoconfig, token = created(world, app)
    path = f"/app/{app}/autoconfig/{autoconfig}"
    assert (token["aid"], token["sid"], token["surl"]) == (app, autoconfig, world.hub.engine.ports.base_url)
    shown = world.call("GET", path, token=token["tok"]).body
    assert (shown["status"], shown["tokenCensored"], "endpId" in shown) == ("pending", "auto_v2_********", False)
    # When its consumer sets up an endpoint, and again at another URL
    first = subscribed(world, token)
    again = subscribed(world, token, url=OTHER_URL, eventTypes=None, description="mine")
    # Then there is one endpoint, with what was asked last
    assert (first.status, again.status, first.body["id"]) == (200, 200, again.body["id"])
    [endpoint] = world.ask("GET", f"/app/{app}/endpoint")["data"]
    assert (endpoint["id"], endpoint["url"], endpoint["description"]) == (first.body["id"], OTHER_URL, "mine")
    shown = world.ask("GET", path)
    assert (shown["status"], shown["endpId"]) == ("active", endpoint["id"])


@pytest.mark.parametrize("own", [{}, {"uid": "mine"}])
def test_an_interrupted_consumer_has_one_endpoint(
    world: WebhooksWorld, app: str, monkeypatch: pytest.MonkeyPatch, own: dict[str, str]
) -> None:
    # Given that the endpoint was stored, and that it is bound was not
    autoconfig, token = created(world, app)
    endpoints, store = world.ports.applications, world.ports.autoconfig_store
    put_endpoint = endpoints.put_endpoint

    def stored(*given: Any) -> Any:
        put_endpoint(*given)
        raise Unavailable("dynamodb:TransactWriteItems")

    monkeypatch.setattr(endpoints, "put_endpoint", stored)
    assert subscribed(world, token, **own).status == 500
    monkeypatch.setattr(endpoints, "put_endpoint", put_endpoint)
    [first] = world.ask("GET", f"/app/{app}/endpoint")["data"]
    unbound = store.autoconfig(PROJECT, app, autoconfig)
    assert unbound is not None
    assert not unbound.endpoint_id
    # When it comes again, with a new token, then it finds that one, which signs with the new secret
    newer = opened(world.ask("POST", f"/app/{app}/autoconfig/{autoconfig}/rotate")["token"])
    assert subscribed(world, newer, **own).body["id"] == first["id"]
    assert len(world.ask("GET", f"/app/{app}/endpoint")["data"]) == 1
    assert world.ask("GET", f"/app/{app}/endpoint/{first['id']}/secret")["key"] == newer["esec"]


def test_two_that_set_it_up_at_once_make_one_endpoint(
    world: WebhooksWorld, app: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a consumer that comes twice, and whose first request has found no endpoint
    autoconfig, token = created(world, app)
    store = world.ports.autoconfig_store
    change, second = store.change_autoconfig, []

    def late(*given: Any) -> bool:
        monkeypatch.setattr(store, "change_autoconfig", change)
        second.append(subscribed(world, token, uid="mine").body["id"])
        return change(*given)

    # When the second sets one up before the first goes on
    monkeypatch.setattr(store, "change_autoconfig", late)
    assert subscribed(world, token, uid="mine").status == 409
    # Then that one is bound
    assert world.ask("GET", f"/app/{app}/autoconfig/{autoconfig}")["endpId"] == second[0]
    assert subscribed(world, token, uid="mine", url=OTHER_URL).body["id"] == second[0]


@pytest.mark.parametrize("deleted_first", [True, False])
def test_no_token_is_left_of_what_is_deleted_while_it_is_given_another(
    world: WebhooksWorld, app: str, monkeypatch: pytest.MonkeyPatch, deleted_first: bool
) -> None:
    # Given an autoconfiguration
    autoconfig, _ = created(world, app)
    path, tokens, store = f"/app/{app}/autoconfig/{autoconfig}", world.ports.portal_tokens, world.ports.autoconfig_store
    put, delete = tokens.put_access, store.delete_autoconfig

    def late(*given: Any) -> None:
        monkeypatch.setattr(tokens, "put_access", put)
        world.call("DELETE", path)
        put(*given)

    def early(*given: Any) -> None:
        world.call("POST", f"{path}/rotate")
        delete(*given)

    # When it is deleted and given another token at once
    if deleted_first:
        monkeypatch.setattr(tokens, "put_access", late)
        assert world.call("POST", f"{path}/rotate").status == 404
    else:
        monkeypatch.setattr(store, "delete_autoconfig", early)
        assert world.call("DELETE", path).status == 204
    # Then no token is left
    assert [*tokens.accesses(PROJECT, app)] == []


def test_what_is_deleted_while_it_sets_up_its_endpoint_stays_deleted(
    world: WebhooksWorld, app: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given an autoconfiguration
    autoconfig, token = created(world, app)
    path, endpoints = f"/app/{app}/autoconfig/{autoconfig}", world.ports.endpoints
    put = endpoints.put_endpoint

    def late(*given: Any, **more: Any) -> Any:
        monkeypatch.setattr(endpoints, "put_endpoint", put)
        world.call("DELETE", path)
        return put(*given, **more)

    # When it is deleted while its consumer sets up the endpoint
    monkeypatch.setattr(endpoints, "put_endpoint", late)
    endpoint = subscribed(world, token).body["id"]
    # Then it does not come back, and the endpoint stays
    assert world.call("GET", path).status == 404
    assert [each["id"] for each in world.ask("GET", f"/app/{app}/endpoint")["data"]] == [endpoint]


def test_what_is_sent_is_verified_with_the_secret_in_the_token(world: WebhooksWorld, app: str) -> None:
    autoconfig, token = created(world, app)
    # A secret that a consumer sends is not used
    subscribed(world, token, secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    endpoint = world.ask("GET", f"/app/{app}/autoconfig/{autoconfig}")["endpId"]
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}/secret")["key"] == token["esec"]
    # When there is a new token, then the endpoint goes on with the secret before, until a consumer comes with it
    newer = opened(world.ask("POST", f"/app/{app}/autoconfig/{autoconfig}/rotate")["token"])
    assert newer["esec"] != token["esec"]
    assert subscribed(world, token).status == 401
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}/secret")["key"] == token["esec"]
    assert subscribed(world, newer).status == 200
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}/secret")["key"] == newer["esec"]
    # And what is sent for a day is right by both
    world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})
    world.run(seconds=2)
    signatures = world.sender.requests_to(URL)[-1].headers["webhook-signature"].split()
    assert len(signatures) == 2


def test_its_key_does_nothing_else(world: WebhooksWorld) -> None:
    app, other = world.make_app(), world.make_app()
    _, token = created(world, app)
    neighbour, _ = created(world, app)
    endpoint = world.make_endpoint(app)
    for method, path in (
        ("GET", f"/app/{app}"),
        ("GET", "/event-type"),
        ("GET", f"/app/{app}/endpoint"),
        ("PATCH", f"/app/{app}/endpoint/{endpoint}"),
        ("GET", f"/app/{app}/msg"),
        ("POST", f"/app/{app}/autoconfig"),
        ("DELETE", f"/app/{app}/autoconfig/{token['sid']}"),
        ("POST", f"/app/{app}/autoconfig/{token['sid']}/rotate"),
    ):
        answer = world.call(method, path, {"url": URL}, token=token["tok"])
        assert (answer.status, answer.body["code"]) == (403, "insufficient access"), (method, path)
    # Of others it is not told that they are there
    for path in (f"/app/{other}/autoconfig/{token['sid']}", f"/app/{app}/autoconfig/{neighbour}"):
        assert world.call("GET", path, token=token["tok"]).status == 404
        assert world.call("PUT", f"{path}/endpoint", {"url": URL}, token=token["tok"]).status == 404
    # Nor does another's key set up its endpoint: a project's, or a portal's
    portal = world.ask("POST", f"/auth/app-portal-access/{app}", {})["token"]
    for each in (world.token, portal):
        assert subscribed(world, {**token, "tok": each}).status == 403


def test_it_takes_over_no_endpoint_of_somebody_else(world: WebhooksWorld, app: str) -> None:
    theirs = world.make_endpoint(app, "https://theirs.example/in", uid="theirs")
    _, token = created(world, app)
    assert subscribed(world, token, uid="theirs").status == 409
    assert world.ask("GET", f"/app/{app}/endpoint/{theirs}")["url"] == "https://theirs.example/in"
    # And what is wrong with an endpoint is said as anywhere, and what is out of a portal's reach is out of its
    for url in ("nonsense", "http://169.254.169.254/", "ironmq:///inner", "notification2://alarms?api=alarms"):
        assert subscribed(world, token, url=url).status == 422, url
    assert [each["id"] for each in world.ask("GET", f"/app/{app}/endpoint")["data"]] == [theirs]


def test_a_deleted_one_sets_up_nothing_and_its_endpoint_stays(world: WebhooksWorld, app: str) -> None:
    autoconfig, token = created(world, app)
    endpoint = subscribed(world, token).body["id"]
    assert world.call("DELETE", f"/app/{app}/autoconfig/{autoconfig}").status == 204
    assert subscribed(world, token).status == 401
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}")["id"] == endpoint
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/rotate")):
        assert world.call(method, f"/app/{app}/autoconfig/{autoconfig}{path}").status == 404


def test_an_endpoint_that_was_deleted_is_set_up_again(world: WebhooksWorld, app: str) -> None:
    _, token = created(world, app)
    first = subscribed(world, token).body["id"]
    world.call("DELETE", f"/app/{app}/endpoint/{first}")
    store = world.ports.autoconfig_store
    before = store.autoconfig(PROJECT, app, token["sid"])
    assert before is not None
    again = subscribed(world, token)
    assert (again.status, again.body["id"] != first) == (200, True)
    # Also if that is interrupted before it is bound
    store.put_autoconfig(before)
    assert subscribed(world, token).body["id"] == again.body["id"]
