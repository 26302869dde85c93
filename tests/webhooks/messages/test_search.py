"""Messages of applications are found by the values of fields that the application's owner has named."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

import pytest
from tests.engine.world import PROJECT
from tests.fakes import Fault, FaultPlan
from tests.ironmq.api.hub import OTHER_PROJECT, Hub
from tests.webhooks.world import WebhooksWorld

from pushhub.webhooks.wiring import Webhooks

URL = "https://a.example/in"
FIELDS = ["order.id", "customer"]


def found(world: WebhooksWorld, value: str, project: str = PROJECT) -> list[dict[str, Any]]:
    answer = Hub(world).call("GET", f"/search?value={quote(value)}", project=project)
    assert answer.status == 200, answer
    return list(answer.body["found"])


def post(world: WebhooksWorld, app: str, payload: dict[str, Any], **more: Any) -> str:
    posted = world.ask("POST", f"/app/{app}/msg", {"eventType": "order.paid", "payload": payload, **more})
    world.run(seconds=5)
    return str(posted["id"])


def test_a_message_is_found_with_the_state_of_its_deliveries_and_by_nobody_else(world: WebhooksWorld) -> None:
    # Given an application whose messages are found by two fields, and endpoints that fail and accept
    app = world.make_app(searchFields=FIELDS)
    assert world.ask("GET", f"/app/{app}")["searchFields"] == FIELDS
    bad, good = world.make_endpoint(app, URL), world.make_endpoint(app, "https://b.example/in")
    world.sender.script(URL, 500)
    message = post(world, app, {"order": {"id": 4711}, "customer": "Müller"})
    post(world, app, {"order": {"id": 4712}})
    # When somebody looks for the order, then it is found
    [shown] = found(world, "4711")
    deliveries = shown.pop("deliveries")
    states = {each["subscriber_id"]: each["state"] for each in deliveries}
    # And endpoints are called by their URLs where they have no description
    assert {each["subscriber_name"] for each in deliveries} == {URL, "https://b.example/in"}
    assert shown == {
        "kind": "application",
        "queue": None,
        "application": app,
        "application_name": "Acme",
        "topic": None,
        "message_id": message,
        "type": "order.paid",
        "accepted_at": world.ask("GET", f"/app/{app}/msg/{message}")["timestamp"],
        "state": "retrying",
        "field": "order.id",
        "excerpt": '{"order": {"id": 4711}, "customer": "M\\u00fcller"}',
    }
    assert states == {bad: "retrying", good: "delivered"}
    assert [each["field"] for each in found(world, " mÜLLER")] == ["customer"]
    # And no other project finds it
    assert found(world, "4711", OTHER_PROJECT) == []


def test_events_say_names_and_are_selected_by_them(world: WebhooksWorld) -> None:
    # Given messages of two applications, one of whose endpoints is removed afterwards
    acme, other = world.make_app("Acme"), world.make_app("Globex")
    endpoint = world.make_endpoint(acme)
    world.make_endpoint(other, description="Their shop")
    post(world, acme, {"n": 1})
    post(world, other, {"n": 2})
    world.ask("DELETE", f"/app/{acme}/endpoint/{endpoint}", status=204)

    def found_by(**query: str) -> list[tuple[str, str]]:
        events = Hub(world).call("GET", f"/events?{urlencode({'kind': 'application', **query})}").body["events"]
        return [(each["application_name"], each["deliveries"][0]["subscriber_name"]) for each in events]

    # Then no name is an id
    assert found_by() == [("Globex", "Their shop"), ("Acme", "removed endpoint")]
    # And an application is selected by its name as well as by its id
    assert found_by(of="Acme") == found_by(of=acme) == [("Acme", "removed endpoint")]
    assert found_by(of="Initech") == []


def test_an_application_without_named_fields_makes_no_call_and_one_with_them_one_for_each_value(
    world: WebhooksWorld,
) -> None:
    entries = world.ports.search_index.entries
    plain, named = world.make_app(), world.make_app(searchFields=["order.id"])
    struck = FaultPlan(Fault.FAILS, at=1, of="search_index.add")
    api = world.ports.build(struck, only=("search_index",)).part(Webhooks).api
    world.__dict__["api"] = api
    post(world, plain, {"order": {"id": 1}})
    post(world, named, {"other": 1})
    # When the index cannot be written, then nothing is accepted
    answer = world.call("POST", f"/app/{named}/msg", {"eventType": "a", "payload": {"order": {"id": 1}}})
    assert answer.status >= 500
    assert world.ask("GET", f"/app/{named}/msg")["data"][0]["payload"] == {"other": 1}
    assert entries == {}
    post(world, named, {"order": {"id": 1}})
    assert [len(each) for each in entries.values()] == [1]


def test_what_redaction_withholds_is_neither_entered_nor_found(world: WebhooksWorld) -> None:
    hidden = {"payload": ["order.*", "**.customer"]}
    app = world.make_app(searchFields=[*FIELDS, "number"], redaction=hidden)
    post(world, app, {"order": {"id": 4711}, "customer": "Müller", "number": 7})
    assert len(world.ports.search_index.entries) == 1
    assert (found(world, "4711"), found(world, "Müller"), len(found(world, "7"))) == ([], [], 1)
    # And what is withheld from now on is not found any more, by that field
    world.ask("PATCH", f"/app/{app}", {"redaction": {"payload": ["number"]}})
    assert found(world, "7") == []


def test_what_is_expunged_or_gone_is_not_found_and_leaves_no_entry(world: WebhooksWorld) -> None:
    app = world.make_app(searchFields=["order.id"])
    expunged = post(world, app, {"order": {"id": 4711}})
    kept = post(world, app, {"order": {"id": 4711}}, payloadRetentionHours=1)
    large = post(world, app, {"order": {"id": 4711}, "text": "x" * 20_000})
    for message in (expunged, large):
        world.ask("DELETE", f"/app/{app}/msg/{message}/content")
    assert [each["message_id"] for each in found(world, "4711")] == [kept]
    [left] = world.ports.search_index.entries.values()
    assert len(left) == 1
    # The entry that is left goes with the payload, by its time to live
    [entry] = left.values()
    assert 0 < entry.expires_at - world.clock.now() <= 3_600_000
    world.run(seconds=3_700)
    assert found(world, "4711") == []


def test_a_deleted_application_is_not_found(world: WebhooksWorld) -> None:
    app = world.make_app(searchFields=["order.id"])
    post(world, app, {"order": {"id": 4711}})
    world.ask("DELETE", f"/app/{app}")
    assert found(world, "4711") == []


@pytest.mark.parametrize(
    "fields", [["a", "b", "c", "d"], [""], [1], ["x" * 101], ["header:X-Key"], "order.id", ["a\n"]]
)
def test_fields_that_cannot_be_are_refused(world: WebhooksWorld, fields: Any) -> None:
    answer = world.call("POST", "/app", {"name": "a", "searchFields": fields})
    assert answer.status == 422
    assert "searchFields" in answer.text
