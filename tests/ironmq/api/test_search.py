"""Messages are found by the values of the fields that their queue's owner has named."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from tests.engine.world import PROJECT
from tests.fakes import Fault, FaultPlan
from tests.ironmq.api.hub import OTHER_PROJECT, Hub

SHOP, CRM = "https://shop.example/in", "https://crm.example/in"
FIELDS = ["order.id", "header:X-Customer"]


@pytest.fixture
def hub() -> Hub:
    """A push queue and a pull queue whose messages are found by two fields, and one without."""
    hub = Hub()
    push = {"subscribers": [{"name": "shop", "url": SHOP}, {"name": "crm", "url": CRM}], "retries": 0}
    created = hub.call("PUT", "/queues/orders", {"queue": {"push": push, "search_fields": FIELDS}})
    assert created.body["queue"]["search_fields"] == FIELDS
    hub.call("PUT", "/queues/pulled", {"queue": {"search_fields": ["order.id"]}})
    return hub


def post(hub: Hub, queue: str, *bodies: Any, **more: Any) -> list[str]:
    texts = [each if isinstance(each, str) else json.dumps(each) for each in bodies]
    answer = hub.call("POST", f"/queues/{queue}/messages", {"messages": [{"body": each, **more} for each in texts]})
    assert answer.status == 201, answer
    hub.world.run(seconds=5)
    return list(answer.body["ids"])


def search(hub: Hub, value: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after: str | None = ""
    while after is not None:
        answer = hub.call("GET", f"/search?value={quote(value)}&after={quote(after)}")
        assert answer.status == 200, answer
        found += answer.body["found"]
        after = answer.body["after"]
    return found


def ids(hub: Hub, value: str) -> list[str]:
    return [each["message_id"] for each in search(hub, value)]


def test_a_message_is_found_by_a_field_with_the_state_of_its_deliveries(hub: Hub) -> None:
    hub.world.sender.script(SHOP, 500)
    one, other = post(hub, "orders", {"order": {"id": 4711}}, {"order": {"id": 4712}})
    (pulled,) = post(hub, "pulled", {"order": {"id": "4711"}})
    # When somebody looks for an order, then it is found in both kinds of queues, and no other
    found = sorted(search(hub, "4711"), key=lambda each: str(each["queue"]))
    accepted_at = "2026-11-18T11:06:40.000Z"
    queue = hub.world.config.queue(PROJECT, "orders")
    assert queue is not None
    assert queue.push is not None
    ids_of = {each.name: each.subscriber_id for each in queue.push.subscribers}
    assert found == [
        {
            "kind": "queue",
            "queue": "orders",
            "application": None,
            "application_name": None,
            "topic": None,
            "message_id": one,
            "type": None,
            "accepted_at": accepted_at,
            "state": "exhausted",
            "field": "order.id",
            "excerpt": '{"order": {"id": 4711}}',
            "deliveries": [
                {"subscriber_id": ids_of["shop"], "subscriber_name": "shop", "state": "exhausted"},
                {"subscriber_id": ids_of["crm"], "subscriber_name": "crm", "state": "delivered"},
            ],
        },
        {
            "kind": "queue",
            "queue": "pulled",
            "application": None,
            "application_name": None,
            "topic": None,
            "message_id": pulled,
            "type": None,
            "accepted_at": "2026-11-18T11:06:45.000Z",
            "state": "waiting",
            "field": "order.id",
            "excerpt": '{"order": {"id": "4711"}}',
            "deliveries": [],
        },
    ]
    assert ids(hub, "4712") == [other]
    assert ids(hub, "471") == []
    # And the list of what was given up shows its fields
    listed = hub.call("GET", "/queues/orders/deliveries?state=exhausted").body["deliveries"]
    assert {each["message_id"]: each["fields"] for each in listed} == {
        one: {"order.id": "4711"},
        other: {"order.id": "4712"},
    }


def test_headers_and_any_case_are_found_and_numbers_as_they_are_written(hub: Hub) -> None:
    (one,) = post(hub, "orders", "no JSON", push_headers={"x-customer": "Müller GmbH"})
    assert ids(hub, " MÜLLER gmbh") == [one]
    (exact,) = post(hub, "orders", '{"order": {"id": 1.10}}')
    assert (ids(hub, "1.10"), ids(hub, "1.1")) == ([exact], [])
    (dotted,) = post(hub, "orders", {"order.id": "A-1"})
    assert ids(hub, "a-1") == [dotted]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[" * 100_000,
        '{"order": ' * 60 + "1" + "}" * 60,
        '{"order": {"id": [1, 2]}}',
        '{"order": {"id": null}}',
        '{"order": {"id": ""}}',
        '{"order": {"id": "' + "x" * 201 + '"}}',
        '{"order": 1}',
        "null",
        '{"order": {"id": NaN}}',
        '{"order": {"id": "\\ud800"}}',
    ],
)
def test_whatever_a_body_holds_it_is_accepted(hub: Hub, body: str) -> None:
    assert len(post(hub, "orders", body)) == 1


def test_many_with_one_value_come_page_by_page_newest_first(hub: Hub) -> None:
    posted = [each for _ in range(3) for each in post(hub, "orders", *[{"order": {"id": "X"}}] * 20)]
    assert ids(hub, "x") == sorted(posted, reverse=True)


def test_what_is_deleted_cleared_expired_or_in_another_project_is_not_found(hub: Hub) -> None:
    deleted, kept = post(hub, "orders", *[{"order": {"id": "4711"}}] * 2)
    hub.call("DELETE", f"/queues/orders/messages/{deleted}", {})
    assert ids(hub, "4711") == [kept]
    # And nothing of the deleted one is left in the index
    left = [each for entries in hub.world.ports.search_index.entries.values() for each in entries.values()]
    assert [each.message_id for each in left] == [kept]
    # Another project finds nothing, and only with its own token
    other = hub.call("GET", "/search?value=4711", project=OTHER_PROJECT)
    assert (other.status, other.body["found"]) == (200, [])
    assert hub.send("GET", f"/3/projects/{PROJECT}/search?value=4711", token=hub.other_token).status == 401
    hub.call("DELETE", "/queues/orders/messages", {})
    assert ids(hub, "4711") == []
    # A queue with the same name does not have the messages of the one before
    (pulled,) = post(hub, "pulled", {"order": {"id": "4713"}})
    assert ids(hub, "4713") == [pulled]
    hub.call("DELETE", "/queues/pulled", {})
    hub.call("PUT", "/queues/pulled", {"queue": {"search_fields": ["order.id"]}})
    assert ids(hub, "4713") == []


def test_nothing_is_written_where_no_field_is_named_and_one_entry_where_one_is() -> None:
    hub = Hub()
    hub.call("PUT", "/queues/plain", {"queue": {"type": "pull"}})
    post(hub, "plain", {"order": {"id": "4711"}})
    assert hub.world.ports.search_index.entries == {}
    # When a field is named, then it holds from then on; when it is removed, too
    hub.call("PATCH", "/queues/plain", {"queue": {"search_fields": ["order.id"]}})
    hub.world.clock.advance(seconds=60)
    (later,) = post(hub, "plain", {"order": {"id": "4711"}})
    assert ids(hub, "4711") == [later]
    hub.call("PATCH", "/queues/plain", {"queue": {"search_fields": []}})
    hub.world.clock.advance(seconds=60)
    post(hub, "plain", {"order": {"id": "4711"}})
    assert ids(hub, "4711") == [later]
    assert "search_fields" not in hub.call("GET", "/queues/plain").body["queue"]


@pytest.mark.parametrize(
    "fields", ["order", [1], [""], ["header:"], ["a" * 101], ["a\n"], ["a", "b", "c", "d"], {"a": 1}]
)
def test_fields_that_cannot_be_named_are_refused(hub: Hub, fields: Any) -> None:
    assert hub.call("PATCH", "/queues/orders", {"queue": {"search_fields": fields}}).status == 400
    assert hub.call("GET", "/queues/orders").body["queue"]["search_fields"] == FIELDS


@pytest.mark.parametrize("after", ["x", "~x", "~values", "~values#\u0661#", "~values##" + "9" * 21, "1" * 3_000 + "##"])
def test_what_is_no_cursor_is_refused(hub: Hub, after: str) -> None:
    assert hub.call("GET", f"/search?value=1&after={quote(after)}").status == 400


@pytest.mark.parametrize("query", ["", "value=", "value=%20", f"value={'x' * 201}"])
def test_what_cannot_be_looked_for_is_refused(hub: Hub, query: str) -> None:
    assert hub.call("GET", f"/search?{query}").status == 400


@pytest.mark.parametrize("fault", [Fault.FAILS, Fault.TIMES_OUT])
def test_a_message_that_cannot_be_entered_is_not_stored(hub: Hub, fault: Fault) -> None:
    # Given an index that cannot be written
    struck = hub.struck(FaultPlan(fault, at=1, of="search_index.add"), "search_index")
    # When a message is posted, then the producer is told, and nothing is stored
    answer = struck.call("POST", "/queues/pulled/messages", {"messages": [{"body": '{"order": {"id": "4711"}}'}]})
    assert answer.status == 500
    assert hub.call("GET", "/queues/pulled").body["queue"]["size"] == 0
    assert ids(hub, "4711") == []
    # And the repetition is found
    (again,) = post(hub, "pulled", {"order": {"id": "4711"}})
    assert ids(hub, "4711") == [again]
