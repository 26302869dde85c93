"""Connectors: templates of transformations, for the owners of endpoints."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.known_good import CONNECTOR
from tests.webhooks.world import WebhooksWorld

from pushhub.webhooks.applications.connectors import MAX_CONNECTOR_BYTES, PAGE_BYTES

CODE = "function handler(webhook) { return webhook }"
SMALL = {"name": "Chat", "transformation": CODE}


def create(world: WebhooksWorld, **fields: Any) -> dict[str, Any]:
    """A new connector, a second later than the one before."""
    world.clock.advance(seconds=1)
    shown: dict[str, Any] = world.ask("POST", "/connector", {**SMALL, **fields})
    return shown


def test_a_connector_is_made_shown_changed_and_deleted(world: WebhooksWorld) -> None:
    shown = create(world, **CONNECTOR, uid="chat", productType="Stream")
    assert shown["id"].startswith("trtmpl_")
    assert shown["orgId"].startswith("org_")
    assert {**shown, **CONNECTOR, "uid": "chat", "productType": "Stream"} == shown
    assert shown["createdAt"] == shown["updatedAt"] == shown["transformationUpdatedAt"]
    # It is found by its id and by its uid
    for name in (shown["id"], "chat"):
        assert world.ask("GET", f"/connector/{name}") == shown
    # What is left out of a change stays, and the time of its code only changes with that
    world.clock.advance(seconds=5)
    changed = world.ask("PATCH", "/connector/chat", {"description": "other", "allowedEventTypes": None})
    assert (changed["description"], changed["allowedEventTypes"], changed["kind"]) == ("other", None, "Slack")
    assert changed["updatedAt"] > changed["transformationUpdatedAt"] == shown["transformationUpdatedAt"]
    coded = world.ask("PATCH", "/connector/chat", {"transformation": CODE + " "})
    assert coded["transformationUpdatedAt"] > shown["transformationUpdatedAt"]
    # When it is deleted, then nothing of it is there, and its uid is free
    assert world.call("DELETE", "/connector/chat").status == 204
    for method in ("GET", "PATCH", "DELETE"):
        body: dict[str, Any] | None = {} if method == "PATCH" else None
        assert world.call(method, f"/connector/{shown['id']}", body).status == 404, method
    assert create(world, uid="chat")["id"] != shown["id"]


def test_what_is_replaced_is_made_if_it_is_not_there(world: WebhooksWorld) -> None:
    # Given no connector of that uid
    answer = world.call("PUT", "/connector/chat", {"transformation": CODE, "description": "d"})
    assert (answer.status, answer.body["uid"], answer.body["name"]) == (201, "chat", "chat")
    # When it is replaced, then what is left out is gone, but for its name and its product
    answer = world.call("PUT", "/connector/chat", {"transformation": CODE, "kind": "Discord"})
    assert (answer.status, answer.body["name"], answer.body["description"]) == (200, "chat", "")
    assert answer.body["kind"] == "Discord"
    # And nobody can choose an id
    assert world.call("PUT", "/connector/trtmpl_" + "0" * 27, {"transformation": CODE}).status == 404


def test_connectors_are_listed_in_pages_and_by_product(world: WebhooksWorld) -> None:
    names = [create(world, name=str(number))["name"] for number in range(3)]
    streamed = create(world, name="stream", productType="Stream")
    page = world.ask("GET", "/connector", limit=2)
    assert ([each["name"] for each in page["data"]], page["done"]) == (names[:2], False)
    page = world.ask("GET", "/connector", limit=2, iterator=page["iterator"])
    assert ([each["name"] for each in page["data"]], page["done"]) == ([names[2], "stream"], True)
    assert world.ask("GET", "/connector", product_type="Stream")["data"] == [streamed]
    assert world.call("GET", "/connector", product_type="x").status == 422
    assert world.ask("GET", "/connector", token=world.other_token)["data"] == []


def test_a_page_ends_before_it_is_larger_than_an_answer_may_be(world: WebhooksWorld) -> None:
    # Given more code than one answer holds
    count = PAGE_BYTES // 51_000 + 5
    there = [create(world, transformation="x" * 51_000)["id"] for _ in range(count)]
    # When it is read on and back again, then each is there once
    read = list[str]()
    page = world.ask("GET", "/connector", limit=250)
    while True:
        assert sum(len(each["transformation"]) for each in page["data"]) <= PAGE_BYTES
        read += [each["id"] for each in page["data"]]
        if page["done"]:
            break
        page = world.ask("GET", "/connector", limit=250, iterator=page["iterator"])
    assert read == there
    first = read.index(page["data"][0]["id"])
    page = world.ask("GET", "/connector", limit=250, iterator=page["prevIterator"])
    back = [each["id"] for each in page["data"]]
    assert back == read[first - len(back) : first]
    assert 0 < sum(len(each["transformation"]) for each in page["data"]) <= PAGE_BYTES


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": None}, "name"),
        ({"name": "x" * 257}, "name"),
        ({"uid": "trtmpl_x"}, "uid"),
        ({"uid": "a b"}, "uid"),
        ({"kind": "Fax"}, "kind"),
        ({"kind": ["Slack"]}, "kind"),
        ({"logo": 1}, "logo"),
        ({"logo": "javascript:alert(1)"}, "logo"),
        ({"logo": "https://a.example/\n"}, "logo"),
        ({"allowedEventTypes": "user.created"}, "allowedEventTypes"),
        ({"allowedEventTypes": ["a b"]}, "allowedEventTypes"),
        ({"transformation": "short"}, "transformation"),
        ({"transformation": "x" * 51_201}, "transformation"),
        ({"transformation": None}, "transformation"),
        ({"featureFlags": ["a b"]}, "featureFlags"),
        ({"productType": "Other"}, "productType"),
        ({"productType": {}}, "productType"),
    ],
)
def test_what_cannot_be_right_is_refused(world: WebhooksWorld, given: dict[str, Any], field: str) -> None:
    refused = world.call("POST", "/connector", {**SMALL, **given})
    assert (refused.status, refused.body["detail"][0]["loc"][:2]) == (422, ["body", field])
    assert world.ask("GET", "/connector")["data"] == []


def test_one_that_is_too_large_is_refused(world: WebhooksWorld) -> None:
    large = {"instructions": "ü" * 65_536, "description": "ü" * 65_536, "logo": "https://" + "ü" * 60_000}
    assert sum(2 * len(each) for each in large.values()) > MAX_CONNECTOR_BYTES
    assert world.call("POST", "/connector", {**SMALL, **large}).status == 422
    connector = create(world)
    assert world.call("PATCH", f"/connector/{connector['id']}", large).status == 422
    assert world.ask("GET", f"/connector/{connector['id']}") == connector


def test_a_uid_is_taken_once(world: WebhooksWorld) -> None:
    create(world, uid="chat")
    answer = world.call("POST", "/connector", {**SMALL, "uid": "chat"})
    assert (answer.status, answer.body["code"]) == (409, "conflict")


def test_a_portal_sees_what_its_flags_show_and_changes_nothing(world: WebhooksWorld, app: str) -> None:
    # Given connectors for all and for some, and portals with and without the flag
    everybody, some = create(world, name="all"), create(world, name="some", featureFlags=["beta"])

    def portal(**asked: Any) -> str:
        return str(world.ask("POST", f"/auth/app-portal-access/{app}", asked)["token"])

    plain, beta = portal(), portal(featureFlags=["beta"])
    assert world.ask("GET", "/connector", token=plain)["data"] == [everybody]
    assert world.ask("GET", "/connector", token=beta)["data"] == [everybody, some]
    assert world.call("GET", f"/connector/{some['id']}", token=plain).status == 404
    # And whoever may not write code does not see any
    viewer = portal(capabilities=["ViewBase", "ManageEndpoint"])
    assert world.call("GET", "/connector", token=viewer).status == 403
    for method, path in (("POST", ""), ("PUT", "/chat"), ("PATCH", f"/{some['id']}"), ("DELETE", f"/{some['id']}")):
        assert world.call(method, f"/connector{path}", {**SMALL}, token=beta).status == 403, method
    # And an endpoint that is made from one has a copy of its code, which stays when the connector goes
    path = f"/app/{app}/endpoint/{world.make_endpoint(app)}/transformation"
    world.ask("PATCH", path, {"code": everybody["transformation"], "enabled": True}, token=plain)
    world.ask("DELETE", f"/connector/{everybody['id']}")
    assert world.ask("GET", path)["code"] == CODE


def test_connectors_go_to_another_project_with_its_environment(world: WebhooksWorld) -> None:
    # Given a connector with a uid and one without
    create(world, **CONNECTOR, uid="chat")
    create(world, name="Other")
    exported = world.ask("POST", "/environment/export")
    # When another project imports them, twice, then it has the same
    for _ in range(2):
        world.ask("POST", "/environment/import", exported, token=world.other_token)
    there = world.ask("GET", "/connector", token=world.other_token)["data"]

    def essence(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
        own = ("id", "orgId", "createdAt", "updatedAt", "transformationUpdatedAt")
        return [{name: each[name] for name in each if name not in own} for each in listed]

    assert sorted(essence(there), key=str) == sorted(essence(exported["connectors"]), key=str)
    assert len(there) == 2
    # And a document with a bad one changes nothing
    bad = {"eventTypes": [{"name": "a.b", "description": "d"}], "connectors": [SMALL, {"name": "x"}]}
    refused = world.call("POST", "/environment/import", bad)
    assert refused.body["detail"][0]["loc"] == ["body", "connectors", "1", "transformation"]
    assert world.ask("GET", "/event-type")["data"] == []
    for listed in ("x", [1], [SMALL] * 1_001):
        assert world.call("POST", "/environment/import", {"connectors": listed}).status == 422
