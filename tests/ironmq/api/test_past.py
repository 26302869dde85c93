"""Searches of a project's past: what may be asked, what is shown, and to whom."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from tests.engine.world import PROJECT
from tests.ironmq.api.hub import OTHER_PROJECT, Hub

from pushhub.base.times import iso_time
from pushhub.engine.model.past import DAY_MS, MOST_AN_HOUR
from pushhub.hub.model.object_ids import to_object_id
from pushhub.webhooks.model.ids import message_id

ENGINE_ID = "6112035678239908289"
APP = "app_2abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def hub() -> Hub:
    """A hub with records of two projects."""
    hub = Hub()
    now = hub.world.clock.now()
    event = {"kind": "attempt", "message_id": ENGINE_ID, "subscriber_id": "s1", "state": "exhausted"}
    hub.world.ports.past_records.records = [
        {
            **event,
            "project": PROJECT,
            "queue": "orders",
            "at": iso_time(now - 5_000),
            "subscriber": "shop",
            "attempt": 2,
        },
        {
            **event,
            "project": PROJECT,
            "queue": "orders",
            "at": iso_time(now - 9_000),
            "kind": "accepted",
            "state": None,
        },
        {**event, "project": PROJECT, "queue": "orders", "at": iso_time(now - 3 * DAY_MS)},
        {**event, "project": PROJECT, "queue": f"webhooks/{APP}", "at": iso_time(now - 6_000)},
        {**event, "project": PROJECT, "queue": "hub/5f", "at": iso_time(now - 7_000)},
        {**event, "project": OTHER_PROJECT, "queue": "orders", "at": iso_time(now - 4_000), "subscriber": "secret"},
    ]
    return hub


def started(hub: Hub, *, project: str = PROJECT, **wanted: Any) -> str:
    answer = hub.call("POST", "/past", wanted, project=project)
    assert answer.status == 202, answer
    return str(answer.body["id"])


def found(hub: Hub, search: str, *, project: str = PROJECT) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    after: str | None = ""
    while after is not None:
        answer = hub.call("GET", f"/past/{search}?after={quote(after)}", project=project)
        assert (answer.status, answer.body["state"]) == (200, "done"), answer
        rows += answer.body["found"]
        after = answer.body["after"]
    return rows


def test_events_of_the_last_day_are_found_newest_first_page_by_page(hub: Hub) -> None:
    rows = found(hub, started(hub, queue="orders"))
    assert [each["event"] for each in rows] == ["attempt", "accepted"]
    assert rows[0] == {
        "at": iso_time(hub.world.clock.now() - 5_000),
        "event": "attempt",
        "kind": "queue",
        "queue": "orders",
        "application": None,
        "message_id": ENGINE_ID,
        "subscriber": "shop",
        "state": "exhausted",
        "reason": None,
        "attempt": 2,
        "status_code": None,
        "error": None,
        "duration_ms": None,
    }
    assert len(found(hub, started(hub, queue="orders", since=iso_time(hub.world.clock.now() - 4 * DAY_MS)))) == 3
    assert len(found(hub, started(hub, queue="orders", subscriber="shop", state="exhausted"))) == 1


@pytest.mark.parametrize("asked", [ENGINE_ID, message_id(ENGINE_ID), to_object_id(ENGINE_ID)])
def test_a_message_is_found_by_its_id_in_any_protocol_and_shown_with_its_own(hub: Hub, asked: str) -> None:
    rows = {each["kind"]: each for each in found(hub, started(hub, message_id=asked))}
    assert rows["queue"]["message_id"] == ENGINE_ID
    assert (rows["application"]["application"], rows["application"]["message_id"]) == (APP, message_id(ENGINE_ID))
    assert (rows["store"]["queue"], rows["store"]["message_id"]) == (None, to_object_id(ENGINE_ID))


def test_one_that_still_runs_says_how_much_it_has_read(hub: Hub) -> None:
    search = started(hub, queue="orders")
    hub.world.ports.past_records.running = 1
    answer = hub.call("GET", f"/past/{search}").body
    assert answer == {
        "state": "running",
        "reason": None,
        "scanned_bytes": 10,
        "hours_left": None,
        "found": [],
        "after": None,
    }
    assert len(found(hub, search)) == 2


def test_another_projects_search_is_not_there_and_shows_nothing_of_it(hub: Hub) -> None:
    search = started(hub, queue="orders")
    assert hub.call("GET", f"/past/{search}", project=OTHER_PROJECT).status == 404
    assert hub.send("GET", f"/3/projects/{PROJECT}/past/{search}", token=hub.other_token).status == 401
    assert hub.send("POST", f"/3/projects/{PROJECT}/past", b'{"queue": "orders"}', token=hub.other_token).status == 401
    (theirs,) = found(hub, started(hub, queue="orders", project=OTHER_PROJECT), project=OTHER_PROJECT)
    assert theirs["subscriber"] == "secret"


@pytest.mark.parametrize("search", ["x", "a" * 32, "A" * 32, "%2e%2e", f"{'a' * 32}%23"])
def test_a_search_that_nobody_started_is_not_there(hub: Hub, search: str) -> None:
    assert hub.call("GET", f"/past/{search}").status == 404


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"queue": ""},
        {"queue": " "},
        {"queue": 7},
        {"queue": "a\nb"},
        {"queue": "a\x00"},
        {"queue": "x" * 301},
        {"subscriber": ["a"]},
        {"state": "lost"},
        {"queue": "q", "since": "yesterday"},
        {"queue": "q", "until": "2099-01-01T00:00:00Z"},
        {"queue": "q", "since": "2026-01-01T00:00:00Z", "until": "2026-02-02T00:00:00Z"},
        {"queue": "q", "since": "2026-01-02T00:00:00Z", "until": "2026-01-02T00:00:00Z"},
        {"queue": "q", "since": "1969-01-01T00:00:00Z", "until": "1969-01-02T00:00:00Z"},
        {"queue": "q", "since": "0001-01-01T00:00:00Z"},
    ],
)
def test_what_cannot_be_looked_for_is_refused(hub: Hub, wanted: dict[str, Any]) -> None:
    assert hub.call("POST", "/past", wanted).status == 400


def test_a_cursor_that_is_not_from_the_search_is_refused(hub: Hub) -> None:
    search = started(hub, queue="orders")
    for after in ("x", "x" * 1_025):
        assert hub.call("GET", f"/past/{search}?after={after}").status == 400


def test_a_project_may_start_so_many_an_hour(hub: Hub) -> None:
    for _ in range(MOST_AN_HOUR):
        started(hub, queue="orders")
    refused = hub.call("POST", "/past", {"queue": "orders"})
    assert refused.status == 429
    assert 0 < int(refused.headers["Retry-After"]) <= 3_601
    # Then others still may, and this one in the next hour
    started(hub, queue="orders", project=OTHER_PROJECT)
    hub.world.clock.advance(seconds=int(refused.headers["Retry-After"]))
    started(hub, queue="orders")


def test_a_search_service_that_cannot_be_reached_is_no_fault_of_the_hub(hub: Hub) -> None:
    # Given a search, and a service that cannot be reached from then on
    search = started(hub, queue="orders")
    hub.world.ports.past_records.down = True
    # When somebody looks, or starts another
    looked, refused = hub.call("GET", f"/past/{search}"), hub.call("POST", "/past", {"queue": "orders"})
    # Then both are to be tried again
    assert (looked.status, refused.status) == (503, 503)
    assert refused.body["msg"]
    assert "Retry-After" in refused.headers
    # And later they succeed
    hub.world.ports.past_records.down = False
    found(hub, search)
