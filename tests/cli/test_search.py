"""Finding messages, now and in the past, against a hub on fakes."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from cli.commands import search
from tests.cli.conftest import Typed
from tests.cli.served_hub import ServedHub
from tests.engine.world import PROJECT

from pushhub.base.times import iso_time
from pushhub.engine.model.catalogue import Accepted, chunks_of


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "WAIT_S", 0)


def keep_records(hub: ServedHub) -> Any:
    """Two events of a message, at a time that the person's clock knows."""
    ports = hub.worlds["ironmq"].world.ports
    now = round(time.time() * 1000)
    ports.clock.advance(seconds=(now - ports.clock.now()) / 1000)
    event = {"project": PROJECT, "queue": "orders", "message_id": "4711", "subscriber": "shop"}
    ports.past_records.records = [
        {**event, "kind": "accepted", "at": iso_time(now - 7_200_000)},
        {
            **event,
            "kind": "attempt",
            "at": iso_time(now - 3_600_000),
            "state": "exhausted",
            "status_code": 500,
            "attempt": 1,
        },
    ]
    return ports.past_records


def catalogued(hub: ServedHub, queue: str, message_id: str, body: str) -> None:
    """What the stream does, which nobody plays here."""
    world = hub.worlds["ironmq"].world
    stored = world.config.queue(PROJECT, queue)
    assert stored is not None
    entry = Accepted(
        project=PROJECT,
        queue=queue,
        queue_uid=stored.pull_uid,
        message_id=message_id,
        accepted_at=world.clock.now(),
        body=body.encode(),
    )
    world.ports.catalogue.add([*chunks_of([entry], message_id)])


def test_any_value_finds_a_message_and_what_was_accepted_is_listed(hub: ServedHub, typed: Typed) -> None:
    hub.lives = True
    typed("queues", "create", "orders")
    body = '{"order": {"number": 4711}}'
    reported = json.dumps(typed.json("post", "orders", body)[0])
    (message,) = re.findall(r"\d{19}", reported)
    catalogued(hub, "orders", message, body)
    (found,) = typed.json("search", "4711")
    assert found == {
        "message": message,
        "of": "orders",
        "state": "waiting",
        "field": "order.number",
        "excerpt": body,
    }
    (listed,) = typed.json("events", "--queue", "orders", "--state", "waiting")
    assert (listed["message"], listed["excerpt"]) == (message, body)
    assert typed.json("events", "--store") == []
    assert typed.json("events", "--type", "order:new", "--limit", "1") == []
    typed("events", "--store", "--queue", "orders", code=2)


def test_an_application_is_called_by_its_name(hub: ServedHub, typed: Typed) -> None:
    place = {"application": "app_1", "application_name": "Acme", "message_id": "msg_1", "state": "retrying"}
    found = {**place, "deliveries": [], "field": "id", "excerpt": "4711"}
    hub.instead = (200, json.dumps({"found": [found], "after": None}).encode())
    assert [each["of"] for each in typed.json("search", "4711")] == ["Acme"]


def test_a_message_is_found_by_a_named_field(hub: ServedHub, typed: Typed) -> None:
    hub.lives = True
    typed("queues", "create", "orders")
    api = hub.worlds["ironmq"]
    api.send("PATCH", f"/3/projects/{PROJECT}/queues/orders", {"queue": {"search_fields": ["order"]}})
    message = typed.json("post", "orders", '{"order": 4711}')[0]
    (found,) = typed.json("search", "4711")
    assert (found["of"], found["field"]) == ("orders", "order")
    assert found["message"] in json.dumps(message)
    # And where nothing is found, then it is said what was looked through
    assert typed("search", "4712").strip() == "none"
    assert "bodies of the last week's messages" in typed.errors


def test_the_past_is_searched_with_progress_and_shown_newest_first(hub: ServedHub, typed: Typed) -> None:
    records = keep_records(hub)
    records.running = 2
    rows = typed.json("search", "4711", "--past", "--since", "3h")
    assert [(each["event"], each["answer"]) for each in rows] == [("attempt", 500), ("accepted", None)]
    # And a part of that time, or another state, has less
    assert len(typed.json("search", "4711", "--past", "--since", "3h", "--until", "90m")) == 1
    assert len(typed.json("search", "--past", "--queue", "orders", "--state", "exhausted")) == 1
    assert typed.json("search", "--past", "--subscriber", "crm") == []


def test_one_that_fails_says_why(hub: ServedHub, typed: Typed) -> None:
    reported = {"state": "failed", "reason": "choose fewer days", "scanned_bytes": 0, "found": [], "after": None}
    started = {"id": "a" * 32, "first_day": "2026-11-20", "last_day": "2026-11-21"}
    hub.answers["POST", f"/3/projects/{PROJECT}/past"] = 202, json.dumps(started).encode()
    hub.answers["GET", f"/3/projects/{PROJECT}/past/{'a' * 32}"] = 200, json.dumps(reported).encode()
    typed("search", "--past", "--queue", "orders", code=1)
    assert "choose fewer days" in typed.errors


@pytest.mark.parametrize("wrong", [[], ["--past"], ["1", "--queue", "q"], ["--queue", "q"], ["--past", "--since", "x"]])
def test_what_says_nothing_to_look_for_is_wrong_usage(hub: ServedHub, typed: Typed, wrong: list[str]) -> None:
    typed("search", *wrong, code=2)
    assert hub.asked == []
