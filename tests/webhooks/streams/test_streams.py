"""Streams, their event types and their events, in Svix's words."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.webhooks.world import WebhooksWorld

from pushhub.engine.model.project import Project
from pushhub.engine.model.quota import Quota


def make_stream(world: WebhooksWorld, **fields: Any) -> str:
    return str(world.ask("POST", "/stream", {"name": "Orders", **fields})["id"])


def event(number: int, kind: str = "order.paid") -> dict[str, str]:
    return {"eventType": kind, "payload": f'{{"number": {number}}}'}


def test_a_stream_is_made_found_by_its_uid_changed_and_deleted(world: WebhooksWorld) -> None:
    stream = world.ask("POST", "/stream", {"name": "Orders", "uid": "orders", "metadata": {"a": "b"}})
    assert stream["id"].startswith("strm_")
    assert world.ask("GET", "/stream/orders") == stream
    assert world.ask("GET", "/stream")["data"] == [stream]
    changed = world.ask("PATCH", "/stream/orders", {"description": "Sold"})
    assert (changed["name"], changed["uid"], changed["metadata"]) == ("Sold", "orders", {"a": "b"})
    assert world.call("PUT", "/stream/other", {"name": "Other", "uid": "other"}).status == 201
    assert world.ask("PUT", "/stream/other", {"name": "Renamed"})["uid"] is None
    world.call("DELETE", "/stream/orders")
    assert world.call("GET", "/stream/orders").status == 404


def test_streams_applications_and_sources_are_three_lists_with_uids_of_their_own(world: WebhooksWorld) -> None:
    app, stream = world.make_app(uid="same"), make_stream(world, uid="same")
    assert [each["id"] for each in world.ask("GET", "/app")["data"]] == [app]
    assert world.ask("GET", "", root="/ingest/api/v1/source")["data"] == []
    assert [each["id"] for each in world.ask("GET", "/stream")["data"]] == [stream]
    assert world.call("GET", f"/stream/{app}").status == 404
    taken = world.call("POST", "/stream", {"name": "x", "uid": "same"})
    assert (taken.status, taken.body["code"]) == (409, "conflict")


def test_nobody_else_sees_a_stream_or_posts_to_it(world: WebhooksWorld) -> None:
    stream = make_stream(world)
    other = world.other_token
    assert world.ask("GET", "/stream", token=other)["data"] == []
    for method, path, body in (
        ("GET", "", None),
        ("DELETE", "", None),
        ("PATCH", "", {"description": "x"}),
        ("POST", "/events", {"events": [event(1)]}),
    ):
        assert world.call(method, f"/stream/{stream}{path}", body, token=other).status == 404


def test_events_are_stored_in_the_order_in_which_they_are_given(world: WebhooksWorld) -> None:
    # Given a stream
    stream = make_stream(world)
    # When events are posted together
    assert world.ask("POST", f"/stream/{stream}/events", {"events": [event(each) for each in range(60)]}) == {}
    # Then its log has all of them, in their order
    listed = world.ask("GET", f"/stream/{stream}/events", limit=100)["data"]
    assert [each["payload"]["number"] for each in reversed(listed)] == list(range(60))


def test_a_request_may_bring_the_stream_that_it_posts_to(world: WebhooksWorld) -> None:
    sent = {"events": [event(1)], "stream": {"name": "Orders"}}
    world.ask("POST", "/stream/orders/events", sent)
    world.ask("POST", "/stream/orders/events", sent)
    [stream] = world.ask("GET", "/stream")["data"]
    assert stream["uid"] == "orders"
    assert len(world.ask("GET", f"/stream/{stream['id']}/events")["data"]) == 2
    assert world.call("POST", "/stream/none/events", {"events": [event(1)]}).status == 404


@pytest.mark.parametrize(
    "events",
    [[], None, "x", [event(1)] * 101, [{"eventType": "a"}], [{"eventType": "a", "payload": {}}], [[]], [event(1, "ä")]],
)
def test_what_is_no_list_of_events_is_refused_and_nothing_of_it_is_stored(world: WebhooksWorld, events: Any) -> None:
    stream = make_stream(world)
    assert world.call("POST", f"/stream/{stream}/events", {"events": events}).status == 422
    assert world.call("POST", f"/stream/{stream}/events", {"events": [event(1), {"payload": "x"}]}).status == 422
    assert world.ask("GET", f"/stream/{stream}/events")["data"] == []


def test_a_repeated_request_posts_its_events_once(world: WebhooksWorld) -> None:
    stream = make_stream(world)
    for _ in range(2):
        world.ask("POST", f"/stream/{stream}/events", {"events": [event(1)]}, headers={"Idempotency-Key": "k"})
    assert len(world.ask("GET", f"/stream/{stream}/events")["data"]) == 1


def test_each_event_counts_towards_the_projects_quota(world: WebhooksWorld) -> None:
    stream = make_stream(world)
    world.config.put_project(Project(project_id=PROJECT, created_at=0, quota=Quota.of(1, 1)))
    sent = {"events": [event(each) for each in range(100)]}
    answers = [world.call("POST", f"/stream/{stream}/events", sent).status for _ in range(3)]
    assert answers[-1] == 429


def test_event_types_of_streams_are_those_of_the_project(world: WebhooksWorld) -> None:
    created = world.ask("POST", "/stream/event-type", {"name": "order.paid"})
    assert (created["description"], created["deprecated"], created["archived"], created["featureFlags"]) == (
        "",
        False,
        False,
        [],
    )
    assert world.call("POST", "/stream/event-type", {"name": "order.paid"}).status == 409
    changed = world.ask("PATCH", "/stream/event-type/order.paid", {"description": "Paid", "featureFlags": ["beta"]})
    assert (changed["description"], changed["featureFlags"]) == ("Paid", ["beta"])
    assert world.ask("GET", "/event-type/order.paid")["description"] == "Paid"
    assert world.ask("PUT", "/stream/event-type/order.paid", {"name": "order.paid"})["description"] == ""
    world.call("DELETE", "/stream/event-type/order.paid")
    assert world.ask("GET", "/stream/event-type")["data"] == []
    assert [each["name"] for each in world.ask("GET", "/stream/event-type", include_archived="true")["data"]] == [
        "order.paid"
    ]


@pytest.mark.parametrize("name", ["x" * 257, "x" * 2_100, "a%20b", "%C3%A9"])
def test_events_bring_no_stream_of_a_name_that_none_can_have(world: WebhooksWorld, name: str) -> None:
    sent = {"events": [event(1)], "stream": {"name": "Orders"}}
    assert world.call("POST", f"/stream/{name}/events", sent).status == 404
    assert world.ask("GET", "/stream")["data"] == []
