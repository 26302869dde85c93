"""What opens something at an endpoint's host stays with that host, for callers who may not read secrets."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fakes import Reply
from tests.fakes.private_keys import identity
from tests.webhooks.world import WebhooksWorld

URL, OTHER = "https://a.example/in", "https://evil.example/in"
OAUTH = {
    "grantType": "clientCredentials",
    "authMethod": "clientSecretPost",
    "clientId": "pushhub",
    "clientSecret": "s3cret",
    "tokenUrl": "https://login.example/token",
}
GIVEN: dict[str, tuple[str, str, dict[str, Any]]] = {
    "OAuth tokens": ("PUT", "oauth", OAUTH),
    "client certificate": ("PUT", "mtls", {"identity": identity()}),
    "sensitive headers": ("PUT", "headers", {"headers": {"X-Api-Key": "hidden"}}),
}
MANAGER = ["ViewBase", "ManageEndpoint"]


@pytest.fixture
def world() -> WebhooksWorld:
    created = WebhooksWorld()
    created.sender.script(OAUTH["tokenUrl"], Reply(status_code=200, body=b'{"access_token":"t","token_type":"Bearer"}'))
    return created


def with_secret(world: WebhooksWorld, what: str) -> tuple[str, str]:
    """The application, and the path of an endpoint of it with one secret, set by the project."""
    app = world.make_app()
    path = f"/app/{app}/endpoint/{world.make_endpoint(app, URL)}"
    method, place, body = GIVEN[what]
    world.ask(method, f"{path}/{place}", body)
    return app, path


def portal(world: WebhooksWorld, app: str, capabilities: list[str]) -> str:
    return str(world.ask("POST", f"/auth/app-portal-access/{app}", {"capabilities": capabilities})["token"])


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
@pytest.mark.parametrize("url", [OTHER, "https://a.example:8443/in", "http://a.example/in"])
@pytest.mark.parametrize("what", GIVEN)
def test_a_portal_without_the_right_to_secrets_sends_them_to_no_other_host(
    world: WebhooksWorld, what: str, url: str, method: str
) -> None:
    # Given an endpoint with a secret that the project gave for its host
    app, path = with_secret(world, what)
    # When a portal that may change endpoints, but not read secrets, moves it
    refused = world.call(method, path, {"url": url}, token=portal(world, app, MANAGER))
    # Then that is refused by name, and nothing goes there
    assert (refused.status, refused.body["detail"][0]["loc"]) == (422, ["body", "url"])
    assert what in refused.body["detail"][0]["msg"]
    assert world.ask("GET", path)["url"] == URL
    world.ask("POST", f"/app/{app}/msg", {"eventType": "order.paid", "payload": {}})
    world.run(seconds=1)
    assert world.sender.requests_to(url) == []


@pytest.mark.parametrize("what", GIVEN)
def test_it_may_change_the_path_and_everything_else(world: WebhooksWorld, what: str) -> None:
    app, path = with_secret(world, what)
    token = portal(world, app, MANAGER)
    assert world.ask("PATCH", path, {"url": "https://A.example:443/other"}, token=token)["url"] == (
        "https://a.example/other"
    )
    assert world.ask("PATCH", path, {"description": "moved"}, token=token)["description"] == "moved"


@pytest.mark.parametrize("what", GIVEN)
def test_who_may_read_secrets_may_move_them(world: WebhooksWorld, what: str) -> None:
    for token in (None, "ViewEndpointSecret"):
        app, path = with_secret(world, what)
        by = portal(world, app, [*MANAGER, token]) if token else world.token
        assert world.ask("PATCH", path, {"url": OTHER}, token=by)["url"] == OTHER


def test_an_endpoint_without_secrets_may_be_moved(world: WebhooksWorld, app: str) -> None:
    # Given headers that are shown to everybody who sees the endpoint
    path = f"/app/{app}/endpoint/{world.make_endpoint(app, URL, headers={'X-Shop': '1'})}"
    assert world.ask("PATCH", path, {"url": OTHER}, token=portal(world, app, MANAGER))["url"] == OTHER
