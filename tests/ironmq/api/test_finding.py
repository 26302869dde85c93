"""With nothing set up before, any value in a body finds its message, and everything that was accepted is listed."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.engine.world import PROJECT
from tests.ironmq.api.hub import OTHER_PROJECT, Hub

from pushhub.base.errors import Unreadable
from pushhub.engine.model.catalogue import DAY_MS, LEAST_VALUES, Accepted, chunks_of
from pushhub.ironmq.model.finding import LOOKS_MS, PER_PAGE
from pushhub.ironmq.pushing import push_messages

SHOP, CRM = "https://shop.example/in", "https://crm.example/in"


@pytest.fixture
def hub() -> Hub:
    """A push queue and a pull queue, with no settings but what they need."""
    hub = Hub()
    push = {"subscribers": [{"name": "shop", "url": SHOP}, {"name": "", "url": CRM}], "retries": 0}
    hub.call("PUT", "/queues/orders", {"queue": {"push": push, "message_expiration": 20 * 86_400}})
    hub.call("PUT", "/queues/pulled", {"queue": {}})
    return hub


def post(hub: Hub, queue: str, *bodies: Any) -> list[str]:
    texts = [each if isinstance(each, str) else json.dumps(each) for each in bodies]
    answer = hub.call("POST", f"/queues/{queue}/messages", {"messages": [{"body": each} for each in texts]})
    assert answer.status == 201, answer
    hub.world.run(seconds=5)
    if queue == "pulled":
        # The stream of the pull table, which the world does not play.
        uid = hub.world.config.queue(PROJECT, queue).pull_uid  # type: ignore[union-attr]
        now = hub.world.clock.now()
        found = [
            Accepted(project=PROJECT, queue=queue, queue_uid=uid, message_id=each, accepted_at=now, body=text.encode())
            for each, text in zip(answer.body["ids"], texts, strict=True)
        ]
        hub.world.ports.catalogue.add([*chunks_of(found, "pull")])
    return list(answer.body["ids"])


def pages(hub: Hub, path: str, name: str, **query: Any) -> list[list[dict[str, Any]]]:
    found: list[list[dict[str, Any]]] = []
    after: str | None = ""
    while after is not None:
        answer = hub.call("GET", f"{path}?{urlencode(query | {'after': after})}")
        assert answer.status == 200, answer
        found.append(answer.body[name])
        after = answer.body["after"]
    return found


def search(hub: Hub, value: str) -> list[dict[str, Any]]:
    return [each for page in pages(hub, "/search", "found", value=value) for each in page]


def events(hub: Hub, **query: Any) -> list[str]:
    return [each["message_id"] for page in pages(hub, "/events", "events", **query) for each in page]


def test_any_value_finds_its_message_in_any_state_with_names_and_what_is_around_it(hub: Hub) -> None:
    hub.world.sender.script(SHOP, 500)
    one, _ = post(hub, "orders", {"order": {"number": 4711, "to": "Anna"}}, {"order": {"number": 4712}})
    (pulled,) = post(hub, "pulled", "<order>4711</order>")
    found = {each["message_id"]: each for each in search(hub, " 4711 ")}
    assert {*found} == {one, pulled}
    assert found[one]["field"] == "order.number"
    assert found[one]["excerpt"] == '{"order": {"number": 4711, "to": "Anna"}}'
    assert found[one]["state"] == "exhausted"
    # A receiver without a name is called by its URL
    assert [(each["subscriber_name"], each["state"]) for each in found[one]["deliveries"]] == [
        ("shop", "exhausted"),
        (CRM, "delivered"),
    ]
    assert (found[pulled]["queue"], found[pulled]["state"], found[pulled]["field"]) == ("pulled", "waiting", "")
    assert [each["message_id"] for each in search(hub, "anna")] == [one]
    # Also by several words of a text, and never by a part of a word
    (noted,) = post(hub, "pulled", {"note": "ask Anna about parcel 99"})
    assert [each["message_id"] for each in search(hub, "Parcel 99")] == [noted]
    assert search(hub, "471") == []
    assert hub.call("GET", "/search?value=4711", project=OTHER_PROJECT).body["found"] == []


def test_what_has_more_values_than_are_kept_is_found_by_reading_it(hub: Hub) -> None:
    many = {f"v{each}": f"value-{each}" for each in range(LEAST_VALUES + 5)}
    (crowded,) = post(hub, "orders", many)
    (large,) = post(hub, "orders", {"filling": "x " * 10_000, "late": "needle"})
    assert [each["message_id"] for each in search(hub, f"value-{LEAST_VALUES + 4}")] == [crowded]
    assert [each["message_id"] for each in search(hub, "needle")] == [large]


def test_many_with_one_value_come_page_by_page_newest_first_and_once(hub: Hub) -> None:
    posted = [each for _ in range(3) for each in post(hub, "orders", *[{"n": "X"}] * 20)]
    found = pages(hub, "/search", "found", value="x")
    assert [len(each) for each in found] == [PER_PAGE, PER_PAGE, 60 - 2 * PER_PAGE]
    assert [each["message_id"] for page in found for each in page] == sorted(posted, reverse=True)
    # As few at a time as somebody wants
    assert [len(each) for each in pages(hub, "/search", "found", value="x", limit=20)] == [20, 20, 20]
    # Also those that have it in a named field besides
    hub.call("PATCH", "/queues/orders", {"queue": {"search_fields": ["n"]}})
    posted += post(hub, "orders", *[{"n": "X"}] * 30)
    assert sorted(each["message_id"] for each in search(hub, "x")) == sorted(posted)
    few = pages(hub, "/search", "found", value="x", limit=20)
    assert sorted(each["message_id"] for page in few for each in page) == sorted(posted)
    assert max(len(each) for each in few) == 20


def test_a_search_that_takes_long_answers_and_continues(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    posted = post(hub, "orders", *[{"n": "X"}] * 3)
    read = hub.world.messages.message_with_deliveries

    def slowly(key: Any) -> Any:
        hub.world.clock.advance(seconds=LOOKS_MS / 1000)
        return read(key)

    monkeypatch.setattr(hub.world.messages, "message_with_deliveries", slowly)
    found = pages(hub, "/search", "found", value="x")
    assert [[each["message_id"] for each in page] for page in found[:3]] == [[each] for each in reversed(posted)]


def test_a_search_whose_days_take_long_answers_between_them(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given messages of three days, and a table that takes as long for a day as a request may
    posted: list[str] = []
    for day in range(3):
        hub.world.clock.advance(seconds=min(day, 1) * DAY_MS // 1000)
        posted += post(hub, "orders", {"n": "X"})
    with_value = hub.world.ports.catalogue.with_value

    def slowly(*asked: Any) -> Any:
        found = [*with_value(*asked)]
        hub.world.clock.advance(seconds=LOOKS_MS / 1000)
        return found

    monkeypatch.setattr(hub.world.ports.catalogue, "with_value", slowly)
    # When a value that nobody has is looked for, Then each request looks at one day, until the last says so
    assert pages(hub, "/search", "found", value="y") == [[], [], []]
    answer = hub.call("GET", "/search?value=y")
    assert answer.body["after"] == f"~values#{hub.world.clock.now() // DAY_MS - 1}#"


def test_what_is_deleted_is_neither_found_nor_listed(hub: Hub) -> None:
    deleted, kept = post(hub, "orders", *[{"n": "X"}] * 2)
    hub.call("DELETE", f"/queues/orders/messages/{deleted}", {})
    assert [each["message_id"] for each in search(hub, "x")] == [kept]
    assert events(hub) == [kept]


def test_everything_that_was_accepted_is_listed_newest_first_delivered_or_not(hub: Hub) -> None:
    (delivered,) = post(hub, "orders", {"order": 1})
    hub.world.sender.script(SHOP, 500)
    (given_up,) = post(hub, "orders", {"order": 2})
    (pulled,) = post(hub, "pulled", {"order": 3})
    assert events(hub) == [pulled, given_up, delivered]
    assert events(hub, limit=1) == [pulled, given_up, delivered]
    assert events(hub, kind="queue", of="orders") == [given_up, delivered]
    assert events(hub, in_state="exhausted") == [given_up]
    assert events(hub, in_state="waiting") == [pulled]
    assert events(hub, subscriber="SHOP.example", in_state="delivered") == [given_up, delivered]
    assert events(hub, kind="application") == []
    assert events(hub, type="order:new") == []
    (page,) = pages(hub, "/events", "events", of="orders", limit=1)[:1]
    assert page[0]["excerpt"] == '{"order": 2}'


def test_events_of_a_time_and_of_days_ago_are_listed(hub: Hub) -> None:
    (first,) = post(hub, "orders", {"order": 1})
    noon = hub.world.clock.now()
    hub.world.clock.advance(seconds=3 * DAY_MS // 1000)
    (second,) = post(hub, "orders", {"order": 2})
    assert events(hub) == [second, first]
    at = "2026-11-19T00:00:00Z"
    assert (events(hub, since=at), events(hub, until=at)) == ([second], [first])
    assert hub.world.clock.now() > noon


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=101",
        "limit=x",
        "limit=%D9%A1",
        "after=x",
        "after=1%23",
        "kind=x",
        "since=x",
        "of=" + "x" * 301,
    ],
)
def test_what_cannot_be_listed_is_refused(hub: Hub, query: str) -> None:
    assert hub.call("GET", f"/events?{query}").status == 400
    assert hub.send("GET", f"/3/projects/{PROJECT}/events", token=hub.other_token).status == 401


@pytest.mark.parametrize("damaged", ["message_with_deliveries", "body"])
def test_a_message_that_cannot_be_read_hides_no_other(hub: Hub, damaged: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given three messages, of which one was damaged
    ids = post(hub, "orders", *({"n": "same"} for _ in range(3)))
    on = hub.world.messages if damaged == "message_with_deliveries" else push_messages
    real = getattr(on, "message_with_deliveries" if damaged == "message_with_deliveries" else "body_of")

    def read(*given: Any) -> Any:
        if ids[1] in repr(given):
            raise Unreadable
        return real(*given)

    monkeypatch.setattr(on, real.__name__, read)
    # Then the others are listed and found
    assert [each["message_id"] for page in pages(hub, "/events", "events") for each in page] == [ids[2], ids[0]]
    assert [each["message_id"] for each in search(hub, "same")] == [ids[2], ids[0]]
