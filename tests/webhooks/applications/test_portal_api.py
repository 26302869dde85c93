"""A portal's token at the API: its own application, what it may do there and for how long; and tokens that a project
exports and imports.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
from tests.engine.world import PROJECT
from tests.webhooks.world import WebhooksWorld


def access(world: WebhooksWorld, app: str, **asked: Any) -> str:
    """A new token."""
    return str(world.ask("POST", f"/auth/app-portal-access/{app}", asked)["token"])


def test_a_token_opens_its_application_and_nothing_else(world: WebhooksWorld) -> None:
    app, other = world.make_app(uid="acme"), world.make_app()
    endpoint = world.make_endpoint(app)
    token = access(world, app)
    for path in (f"/app/{app}", "/app/acme", f"/app/acme/endpoint/{endpoint}/secret", "/event-type"):
        assert world.call("GET", path, token=token).status == 200, path
    for path in (f"/app/{other}", f"/app/{other}/endpoint", "/app/none"):
        assert world.call("GET", path, token=token).status == 404, path
    for method, path in (
        ("GET", "/app"),
        ("POST", "/app"),
        ("DELETE", f"/app/{app}"),
        ("POST", "/event-type"),
        ("POST", f"/auth/app-portal-access/{app}"),
        ("POST", "/environment/export"),
    ):
        answer = world.call(method, path, {}, token=token)
        assert (answer.status, answer.body["code"]) == (403, "insufficient access"), path


def test_a_name_that_no_application_has_is_not_looked_for(
    world: WebhooksWorld, app: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = access(world, app)
    asked = Mock(return_value=None)
    monkeypatch.setattr(world.ports.applications, "application", asked)
    assert world.call("GET", f"/app/{'x' * 3_000}", token=token).status == 404
    asked.assert_not_called()


def test_a_token_does_no_more_than_it_may(world: WebhooksWorld, app: str) -> None:
    path = f"/app/{app}/endpoint/{world.make_endpoint(app)}"
    viewer = access(world, app, capabilities=["ViewBase"])
    manager = access(world, app, capabilities=["ManageEndpoint"])
    asked = [("GET", path), ("GET", f"{path}/secret"), ("POST", f"{path}/secret/rotate"), ("PATCH", path)]
    for token, allowed in ((viewer, [200, 403, 403, 403]), (manager, [200, 403, 403, 200])):
        assert [world.call(*each, {}, token=token).status for each in asked] == allowed


def test_a_token_ends_when_it_is_told_to(world: WebhooksWorld, app: str) -> None:
    one, two, three = (access(world, app, sessionId=name) for name in ("one", "two", "three"))

    def open_ones() -> list[int]:
        return [world.call("GET", f"/app/{app}", token=each).status for each in (one, two, three)]

    assert world.call("POST", "/auth/logout", token=one).status == 204
    assert open_ones() == [401, 200, 200]
    world.ask("POST", f"/auth/app/{app}/expire-all", {"sessionIds": ["two"]})
    assert open_ones() == [401, 401, 200]
    world.ask("POST", f"/auth/app/{app}/expire-all", {"expiry": 60})
    assert open_ones() == [401, 401, 200]
    world.clock.advance(seconds=60)
    assert open_ones() == [401, 401, 401]
    assert world.call("POST", "/auth/logout").status == 403


def test_an_application_may_be_brought_along(world: WebhooksWorld) -> None:
    brought = {"application": {"name": "New", "uid": "new"}}
    access(world, "new", **brought)
    assert world.ask("GET", "/app/new")["name"] == "New"
    access(world, "new", application={"name": "Ignored", "uid": "other"})
    for uid, kind in ((None, "application_uid_missing"), ("else", "application_uid_mismatch")):
        body = {"application": {"name": "New", "uid": uid}}
        (problem,) = world.call("POST", "/auth/app-portal-access/newer", body).body["detail"]
        assert (problem["loc"], problem["type"]) == (["body", "application", "uid"], kind)
    assert world.call("POST", "/auth/app-portal-access/newer", {}).status == 404


def test_no_token_is_kept_that_could_be_shown(world: WebhooksWorld, app: str) -> None:
    headers = {"Idempotency-Key": "k"}
    first, again = (
        world.call("POST", f"/auth/app-portal-access/{app}", {}, headers=headers).body["token"] for _ in range(2)
    )
    # Then each request has a token of its own, and neither is stored
    assert first != again
    assert world.call("GET", f"/app/{app}", token=first).status == 200
    assert first not in repr(vars(world.ports.idempotency_keys))


def test_a_new_secret_is_answered_again_and_kept_encrypted(world: WebhooksWorld, app: str) -> None:
    path, headers = f"/app/{app}/endpoint/{world.make_endpoint(app)}/secret", {"Idempotency-Key": "k"}
    keys = [world.call("POST", f"{path}/rotate", {}, headers=headers).body["key"] for _ in range(2)]
    assert keys == [world.ask("GET", path)["key"]] * 2
    assert keys[0] not in repr(vars(world.ports.idempotency_keys))


def test_what_a_project_has_goes_to_another(world: WebhooksWorld) -> None:
    schemas = {"1": {"type": "object", "examples": [{"a": 1}]}}
    for name in ("a.b", "c.d"):
        world.ask("POST", "/event-type", {"name": name, "description": name, "schemas": schemas})
    world.ask("DELETE", "/event-type/c.d")
    exported = world.ask("POST", "/environment/export")
    assert (exported["settings"], exported["connectors"]) == (None, [])
    assert [each["name"] for each in exported["eventTypes"]] == ["a.b", "c.d"]
    # When another project imports it, twice, then it has the same
    for _ in range(2):
        world.ask("POST", "/environment/import", exported, token=world.other_token)
    imported = world.ask("POST", "/environment/export", token=world.other_token)

    def essence(document: Any) -> Any:
        return [(each["name"], each["archived"], each["schemas"]) for each in document["eventTypes"]]

    assert essence(imported) == essence(exported)


def test_a_document_with_one_bad_event_type_changes_nothing(world: WebhooksWorld) -> None:
    listed = [{"name": "ok", "description": "d"}, {"name": "no good", "description": "d"}]
    answer = world.call("POST", "/environment/import", {"eventTypes": listed})
    assert answer.status == 422
    assert answer.body["detail"][0]["loc"] == ["body", "eventTypes", "1", "name"]
    assert world.ask("GET", "/event-type")["data"] == []
    assert world.call("POST", "/environment/import", {"eventTypes": "x"}).status == 422
    assert world.call("POST", "/environment/import", {}).status == 204


def framed(world: WebhooksWorld, token: str, app: str, frame: str) -> int:
    """The status of a request from the portal's page in a frame."""
    headers = {"Pushhub-Portal-Frame": frame}
    return world.call("GET", f"/app/{app}", token=token, headers=headers).status


def test_a_link_leads_to_the_frame_of_its_application_else_to_that_of_the_project(world: WebhooksWorld) -> None:
    own, other = world.make_app(uid="own"), world.make_app()

    def page(app: str) -> str:
        url: str = world.ask("POST", f"/auth/app-portal-access/{app}", {})["url"]
        return url.partition("/console")[2].partition("#")[0]

    # Given no origins, then a link leads to the console, which nobody may show in a frame
    assert world.ask("GET", "/portal/frame") == {"origins": []}
    assert (page(own), page(other)) == ("", "")
    # When the project has some, and one application has its own
    world.ask("PUT", "/portal/frame", {"origins": ["https://a.example", "https://a.example"]})
    assert (page(own), page(other)) == (f"/p/{PROJECT}", f"/p/{PROJECT}")
    world.ask("PUT", "/app/own/portal/frame", {"origins": ["https://b.example"]})
    # Then each link has the public id of what applies to it
    assert world.ask("GET", "/portal/frame") == {"origins": ["https://a.example"]}
    assert world.ask("GET", f"/app/{own}/portal/frame") == {"origins": ["https://b.example"]}
    assert world.ask("GET", f"/app/{other}/portal/frame") == {"origins": []}
    assert (page(own), page(other)) == (f"/p/{PROJECT}.{own}", f"/p/{PROJECT}")
    # And an empty list takes it back
    world.ask("PUT", f"/app/{own}/portal/frame", {"origins": []})
    assert page(own) == f"/p/{PROJECT}"


def test_a_token_opens_nothing_in_a_frame_that_it_was_not_made_for(world: WebhooksWorld) -> None:
    # Given a token from before there were origins, and one for the application's frame
    app, other = world.make_app(), world.make_app()
    before = access(world, app)
    world.ask("PUT", f"/app/{app}/portal/frame", {"origins": ["https://a.example"]})
    token = access(world, app)
    # When the page of a frame shows them to the API
    frames = (f"{PROJECT}.{app}", f"{PROJECT}.{other}", PROJECT, "x")
    # Then each opens its application in its own frame alone
    assert [framed(world, token, app, each) for each in frames] == [200, 403, 403, 403]
    assert [framed(world, before, app, each) for each in frames] == [403, 403, 403, 403]
    # And the project's own token opens nothing in any
    assert [framed(world, world.token, app, each) for each in frames] == [403, 403, 403, 403]
    # And code outside frames, such as the hooks of svix-react, is not asked
    assert world.call("GET", f"/app/{app}", token=token).status == 200


@pytest.mark.parametrize(
    "origins", [None, "https://a.example", ["https://*.example"], ["http://a.example"], [7], ["https://a.example"] * 21]
)
def test_what_is_no_origin_is_refused_with_the_field_named(world: WebhooksWorld, app: str, origins: Any) -> None:
    for path in ("/portal/frame", f"/app/{app}/portal/frame"):
        answer = world.call("PUT", path, {"origins": origins})
        assert (answer.status, answer.body["detail"][0]["loc"]) == (422, ["body", "origins"])
        assert world.ask("GET", path) == {"origins": []}


def test_an_application_owner_does_not_say_who_shows_the_portal(world: WebhooksWorld, app: str) -> None:
    token = access(world, app)
    for path in ("/portal/frame", f"/app/{app}/portal/frame"):
        assert world.call("PUT", path, {"origins": ["https://evil.example"]}, token=token).status == 403
