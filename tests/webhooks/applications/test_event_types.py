"""Event types through the API, on fakes (check 42 of the protocol's description)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.webhooks.world import WebhooksWorld

SCHEMA = {"1": {"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]}}


def test_an_event_type_is_made_once_archived_and_revived(world: WebhooksWorld) -> None:
    # Given an event type
    body = {"name": "user.created", "description": "x", "schemas": SCHEMA, "featureFlag": "beta", "groupName": "users"}
    created = world.call("POST", "/event-type", body)
    assert created.status == 201
    assert (created.body["schemas"], created.body["featureFlag"], created.body["deprecated"]) == (SCHEMA, "beta", False)
    taken = world.call("POST", "/event-type", body)
    assert (taken.status, taken.body["code"]) == (409, "event_type_exists")
    # When it is archived, then it is listed only on request
    assert world.call("DELETE", "/event-type/user.created").status == 204
    assert world.ask("GET", "/event-type")["data"] == []
    [listed] = world.ask("GET", "/event-type", include_archived="true")["data"]
    assert (listed["archived"], listed["schemas"]) == (True, None)
    assert world.ask("GET", "/event-type", include_archived="true", with_content="true")["data"][0]["schemas"] == SCHEMA
    assert world.ask("GET", "/event-type/user.created")["schemas"] == SCHEMA
    # When it is created again, then it is revived with its new description
    revived = world.call("POST", "/event-type", {"name": "user.created", "description": "y"})
    assert (revived.status, revived.body["archived"], revived.body["description"]) == (201, False, "y")
    assert revived.body["schemas"] is None


def test_it_is_replaced_patched_and_expunged(world: WebhooksWorld) -> None:
    assert world.call("PUT", "/event-type/a", {"description": "x", "schemas": SCHEMA}).status == 201
    assert world.ask("PATCH", "/event-type/a", {"deprecated": True})["schemas"] == SCHEMA
    assert world.ask("PATCH", "/event-type/a", {"schemas": None})["schemas"] is None
    replaced = world.call("PUT", "/event-type/a", {"description": "y"})
    assert (replaced.status, replaced.body["deprecated"]) == (200, False)
    assert world.call("DELETE", "/event-type/a", expunge="true").status == 204
    for method, body in (("GET", None), ("PATCH", {}), ("DELETE", None)):
        assert world.call(method, "/event-type/a", body).status == 404


@pytest.mark.parametrize("expunge", ["true", "false"])
def test_what_is_not_there_is_not_deleted(world: WebhooksWorld, expunge: str) -> None:
    assert world.call("DELETE", "/event-type/no.such", expunge=expunge).status == 404


def test_they_are_listed_by_name(world: WebhooksWorld) -> None:
    for name in ("b", "a", "c"):
        world.ask("POST", "/event-type", {"name": name, "description": "x"})
    first = world.ask("GET", "/event-type", limit=2, order="descending")
    assert [each["name"] for each in first["data"]] == ["a", "b"]
    assert [each["name"] for each in world.ask("GET", "/event-type", iterator=first["iterator"])["data"]] == ["c"]
    assert world.ask("GET", "/event-type", token=world.other_token)["data"] == []


@pytest.mark.parametrize(
    "schema",
    [
        {"readOnly": 15},
        {"type": "text"},
        {"required": "a"},
        {"properties": {"a": 1}},
        {"items": {"minLength": -1}},
        {"anyOf": []},
        {"not": {"enum": 1}},
        {"dependencies": {"a": {"maxItems": "x"}}},
        [],
        "x",
    ],
)
def test_what_is_no_json_schema_is_refused(world: WebhooksWorld, schema: Any) -> None:
    body = {"name": "a", "description": "x", "schemas": {"1": schema}}
    answer = world.call("POST", "/event-type", body)
    assert (answer.status, answer.body["detail"][0]["loc"][:2]) == (422, ["body", "schemas"])


@pytest.mark.parametrize(
    "fields", [{"name": "a b"}, {"name": ""}, {"description": None}, {"schemas": [1]}, {"archived": 1}]
)
def test_a_field_that_breaks_a_rule_is_refused(world: WebhooksWorld, fields: dict[str, Any]) -> None:
    assert world.call("POST", "/event-type", {"name": "a", "description": "x", **fields}).status == 422


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_names_that_begin_like_iterators_are_listed_once_each(world: WebhooksWorld, limit: int) -> None:
    # Given names of all beginnings there may be
    names = ["-", "--a", "-a", "-b", ".-", ".a", "A", "_", "a", "a-", "b"]
    for name in names:
        world.ask("POST", "/event-type", {"name": name, "description": ""})

    # When the whole list is read page by page, and then backwards
    pages: list[dict[str, Any]] = []
    asked: dict[str, Any] = {}
    while not (pages and pages[-1]["done"]):
        pages.append(world.ask("GET", "/event-type", limit=limit, **asked))
        asked = {"iterator": pages[-1]["iterator"]}
        assert len(pages) <= len(names)
    back = pages[-1]
    seen_back = [[each["name"] for each in back["data"]]]
    for _ in pages[1:]:
        back = world.ask("GET", "/event-type", limit=limit, iterator=back["prevIterator"])
        seen_back.insert(0, [each["name"] for each in back["data"]])

    # Then each name came once, in order, in both directions
    seen = [[each["name"] for each in page["data"]] for page in pages]
    assert [name for page in seen for name in page] == sorted(names)
    assert [name for page in seen_back for name in page] == sorted(names)
