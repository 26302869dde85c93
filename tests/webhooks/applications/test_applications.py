"""Applications through the API, on fakes (checks 1 to 11 of the protocol's description)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.webhooks.world import WebhooksWorld


def test_an_application_is_created_with_an_id_and_its_defaults(world: WebhooksWorld) -> None:
    answer = world.call("POST", "/app", {"name": "Acme"})
    assert answer.status == 201
    assert re.fullmatch(r"app_[A-Za-z0-9]{27}", answer.body.pop("id"))
    created = answer.body.pop("createdAt")
    assert created.endswith("Z")
    assert answer.body == {"name": "Acme", "throttleRate": None, "metadata": {}, "updatedAt": created}


@pytest.mark.parametrize("token", ["", "wrong"])
@pytest.mark.parametrize(("method", "path"), [("GET", "/app"), ("POST", "/app"), ("GET", "/app/x/endpoint/y")])
def test_whoever_has_no_good_token_is_told_so(world: WebhooksWorld, token: str, method: str, path: str) -> None:
    answer = world.call(method, path, token=token)
    assert answer.status == 401
    assert answer.body == {"code": "authentication_failed", "detail": "Invalid token"}


def test_health_needs_no_token(world: WebhooksWorld) -> None:
    assert world.call("GET", "/health", token="").status == 200
    assert world.call("HEAD", "/health/ping", token="").status == 204


@pytest.mark.parametrize("name", ["id", "uid"])
def test_it_is_read_changed_and_deleted_by_id_and_by_uid(world: WebhooksWorld, name: str) -> None:
    # Given an application
    created = world.ask("POST", "/app", {"name": "Acme", "uid": "acme", "rateLimit": 5, "metadata": {"a": "b"}})
    path = f"/app/{created[name]}"
    # Then it is shown with both old and new field names
    assert world.ask("GET", path) == created
    assert (created["rateLimit"], created["throttleRate"], created["uid"]) == (5, 5, "acme")
    # When it is patched, then fields that were not sent stay, and null clears
    assert world.ask("PATCH", path, {"throttleRate": None})["throttleRate"] is None
    assert world.ask("PATCH", path, {"name": "New"})["metadata"] == {"a": "b"}
    # When it is replaced, then fields that were not sent are removed
    replaced = world.ask("PUT", path, {"name": "Newer", "uid": "acme"})
    assert (replaced["id"], replaced["metadata"]) == (created["id"], {})
    # When it is deleted, then it no longer exists
    assert world.call("DELETE", path).status == 204
    for each in (created["id"], "acme"):
        missing = world.call("GET", f"/app/{each}")
        assert (missing.status, missing.body) == (404, {"code": "not_found", "detail": "Entity not found"})


def test_a_uid_is_unique_until_its_application_is_deleted(world: WebhooksWorld) -> None:
    # Given a uid
    first = world.make_app(uid="acme")
    # Then nobody else can take it: not by creating, replacing or changing
    second = world.make_app(uid="other")
    for method, path, body in (
        ("POST", "/app", {"name": "x", "uid": "acme"}),
        ("PUT", f"/app/{second}", {"name": "x", "uid": "acme"}),
        ("PATCH", f"/app/{second}", {"uid": "acme"}),
    ):
        taken = world.call(method, path, body)
        assert (taken.status, taken.body["code"]) == (409, "conflict")
    # Except in another organization, or its own application
    world.ask("POST", "/app", {"name": "x", "uid": "acme"}, token=world.other_token)
    world.ask("PUT", f"/app/{first}", {"name": "x", "uid": "acme"})
    # When its application gives it up or is deleted, then it is free
    world.ask("PATCH", f"/app/{second}", {"uid": None})
    world.make_app(uid="other")
    world.ask("DELETE", f"/app/{first}")
    world.make_app(uid="acme")


def test_get_or_create_returns_what_is_there_unchanged(world: WebhooksWorld) -> None:
    created = world.call("POST", "/app", {"name": "Acme", "uid": "acme"}, get_if_exists="true")
    again = world.call("POST", "/app", {"name": "Other", "uid": "acme"}, get_if_exists="true")
    assert (created.status, again.status) == (201, 200)
    assert again.body == created.body
    # Without a uid a new one is always created
    assert world.call("POST", "/app", {"name": "Other"}, get_if_exists="true").status == 201


def test_replacing_one_that_is_not_there_makes_it_of_the_body_alone(world: WebhooksWorld) -> None:
    created = world.call("PUT", "/app/none", {"name": "x"})
    assert created.status == 201
    assert "uid" not in created.body


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"name": ""},
        {"name": None},
        {"name": "\x00"},
        {"uid": "a b"},
        {"uid": "app_x"},
        {"uid": ""},
        {"uid": "x" * 257},
        {"throttleRate": 0},
        {"throttleRate": 65_536},
        {"rateLimit": "5"},
        {"metadata": {"a": 1}},
        {"metadata": {"a": "x" * 4_096}},
    ],
)
def test_a_field_that_breaks_a_rule_is_told_with_its_place(world: WebhooksWorld, fields: dict[str, Any]) -> None:
    answer = world.call("POST", "/app", {"name": "Acme", **fields} if fields else {})
    assert answer.status == 422
    [problem] = answer.body["detail"]
    assert problem["loc"] == ["body", *(fields or ["name"])]
    assert problem["msg"]
    assert problem["type"] == "value_error"


@pytest.mark.parametrize(
    "body", ["{", "[]", "1", '{"name": NaN}', '{"name": 1e999}', "[" * 5_000, '{"name": "\\ud800"}']
)
def test_what_is_no_json_object_is_told_as_such(world: WebhooksWorld, body: str) -> None:
    answer = world.call("POST", "/app", body)
    assert answer.status == 422
    assert answer.body["detail"][0]["loc"] == ["body"]


def test_a_list_is_walked_forth_and_back_without_loss_or_repeat(world: WebhooksWorld) -> None:
    # Given five applications
    ids = []
    for _ in range(5):
        ids.append(world.make_app())
        world.clock.advance(ms=10)
    # When they are listed two at a time
    first = world.ask("GET", "/app", limit=2)
    second = world.ask("GET", "/app", limit=2, iterator=first["iterator"])
    third = world.ask("GET", "/app", limit=2, iterator=second["iterator"])
    # Then each is there once, and the last page is known
    pages = [first, second, third]
    assert [each["id"] for page in pages for each in page["data"]] == ids
    assert [page["done"] for page in pages] == [False, False, True]
    # And going back shows the same pages
    back = world.ask("GET", "/app", limit=2, iterator=third["prevIterator"])
    assert (back["data"], back["done"]) == (second["data"], False)
    back = world.ask("GET", "/app", limit=2, iterator=back["prevIterator"])
    assert (back["data"], back["done"]) == (first["data"], True)
    # And the other order is the other way round
    assert [each["id"] for each in world.ask("GET", "/app", order="descending")["data"]] == ids[::-1]
    # And a page that holds exactly all of them is the last
    assert world.ask("GET", "/app", limit=5)["done"] is True


def test_an_empty_list_has_no_iterators(world: WebhooksWorld) -> None:
    assert world.ask("GET", "/app") == {"data": [], "iterator": None, "done": True}


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("limit=251", 422),
        ("limit=0", 422),
        ("limit=x", 400),
        ("order=up", 400),
        ("iterator=BAD-$$$ITERATOR", 422),
        ("iterator=ep_1srOrx2ZWZBpBUvZwXKQmoEYga2", 422),
        ("iterator=-", 422),
        ("iterator=--app_1srOrx2ZWZBpBUvZwXKQmoEYga2", 422),
    ],
)
def test_a_list_that_cannot_be_is_refused(world: WebhooksWorld, query: str, status: int) -> None:
    assert world.call("GET", "/app", query=query).status == status


def test_another_organizations_applications_are_not_there(world: WebhooksWorld) -> None:
    app = world.make_app(uid="acme")
    for name in (app, "acme"):
        for method, body in (("GET", None), ("PATCH", {"name": "x"}), ("DELETE", None)):
            assert world.call(method, f"/app/{name}", body, token=world.other_token).status == 404
    assert world.ask("GET", "/app", token=world.other_token)["data"] == []


@pytest.mark.parametrize("path", ["", "/nothing", "/app/x/y/z"])
def test_unknown_paths_and_methods_are_told_as_json(world: WebhooksWorld, path: str) -> None:
    missing = world.call("GET", path)
    assert (missing.status, missing.body["code"], bool(missing.body["detail"])) == (404, "not_found", True)
    wrong = world.call("TRACE", "/app")
    assert (wrong.status, wrong.body["code"]) == (405, "method_not_allowed")


def test_a_trailing_slash_changes_nothing(world: WebhooksWorld) -> None:
    app = world.ask("POST", "/app/", {"name": "x", "unknown": 1})["id"]
    assert world.ask("GET", f"/app/{app}//")["id"] == app


def test_browsers_may_ask_from_everywhere(world: WebhooksWorld) -> None:
    asked = {"Origin": "https://portal.example", "Access-Control-Request-Headers": "authorization,svix-req-id"}
    answer = world.call("OPTIONS", "/app", token="", headers=asked)
    assert answer.status == 204
    assert answer.headers["Access-Control-Allow-Origin"] == "https://portal.example"
    assert answer.headers["Access-Control-Allow-Headers"] == "authorization,svix-req-id"
    assert answer.headers["Access-Control-Max-Age"] == "600"


def test_a_repeated_request_is_answered_as_the_first_time(world: WebhooksWorld) -> None:
    key = {"Idempotency-Key": "k"}
    first = world.call("POST", "/app", {"name": "a"}, headers=key)
    # When it is repeated, then nothing is created
    assert world.call("POST", "/app", {"name": "a"}, headers=key) == first
    # And with another body it is another request, which may not have the key
    refused = world.call("POST", "/app", {"name": "b"}, headers=key)
    assert (refused.status, refused.body["detail"][0]["loc"]) == (422, ["header", "idempotency-key"])
    assert len(world.ask("GET", "/app")["data"]) == 1
    # Another URL, another key or another token is another request
    assert world.call("POST", "/app", {"name": "b"}, headers=key, get_if_exists="false").body != first.body
    assert world.call("POST", "/app", {"name": "b"}, headers={"Idempotency-Key": "l"}).body != first.body
    assert world.call("POST", "/app", {"name": "b"}, headers=key, token=world.other_token).body != first.body
    # After the key has expired it is a new request
    world.clock.advance(ms=12 * 3_600_000)
    assert world.call("POST", "/app", {"name": "b"}, headers=key).body["name"] == "b"


def test_a_request_that_takes_long_is_not_made_twice(world: WebhooksWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a request that takes longer than its client waits, which then repeats it
    key, settings = {"Idempotency-Key": "k"}, world.ports.applications
    put, again = settings.put_application, []

    def slow(*given: Any) -> Any:
        monkeypatch.setattr(settings, "put_application", put)
        world.clock.advance(seconds=15)
        again.append(world.call("POST", "/app", {"name": "a"}, headers=key).status)
        return put(*given)

    monkeypatch.setattr(settings, "put_application", slow)
    first = world.call("POST", "/app", {"name": "a"}, headers=key)
    # Then the second one has to come again, and both have made one application
    assert (first.status, again) == (201, [503])
    assert world.call("POST", "/app", {"name": "a"}, headers=key) == first
    assert len(world.ask("GET", "/app")["data"]) == 1


def test_a_refused_request_does_not_use_up_its_key(world: WebhooksWorld) -> None:
    key = {"Idempotency-Key": "k"}
    assert world.call("POST", "/app", {"name": ""}, headers=key).status == 422
    assert world.call("POST", "/app", {"name": "a"}, headers=key).status == 201
