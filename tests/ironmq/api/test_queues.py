"""Queues: create, update, info, list, delete (IronMQ v3, Q1 to Q5)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from tests.engine.world import PROJECT
from tests.ironmq.api.hub import Hub
from tests.web.known_good import QUEUE

from pushhub.base.fields import settings_of
from pushhub.engine.model.queue import Queue

URL = "https://a.example/in"
SUBSCRIBERS = [{"name": "s", "url": URL}]


def test_a_queue_made_of_nothing_has_the_defaults_and_no_counts(hub: Hub) -> None:
    # When a queue is created with an empty body
    result = hub.call("PUT", "/queues/q", {})
    # Then it is a pull queue with the documented defaults
    assert result.status == 200
    queue = result.body["queue"]
    queue.pop("id")
    assert queue == {
        "project_id": PROJECT,
        "name": "q",
        "message_timeout": 60,
        "message_expiration": 604_800,
        "type": "pull",
    }


def test_a_push_queue_shows_all_its_push_settings(hub: Hub) -> None:
    queue = hub.make("q", push={"subscribers": [{"name": "s", "url": URL, "headers": {"X-A": "1"}}]})
    # push settings without a type mean multicast
    assert queue["type"] == "multicast"
    assert queue["push"] == {
        "subscribers": [{"name": "s", "url": URL, "headers": {"X-A": "********"}}],
        "retries": 3,
        "retries_delay": 60,
        "error_queue": "",
    }
    assert (hub.info("q")["size"], hub.info("q")["total_messages"]) == (0, 0)


def test_the_secret_of_a_queue_is_never_shown(hub: Hub) -> None:
    hub.make_push("q", URL)
    stored = hub.world.config.queue(PROJECT, "q")
    assert stored is not None
    assert stored.secret not in str(hub.info("q"))


@pytest.mark.parametrize("kind", ["multicast", "unicast"])
@pytest.mark.parametrize(
    "push",
    [None, {}, {"subscribers": []}, {"retries": 3}, {"subscribers": None}],
    ids=["no push", "empty push", "empty list", "settings only", "null"],
)
def test_a_push_queue_needs_a_subscriber(hub: Hub, kind: str, push: Any) -> None:
    result = hub.call("PUT", "/queues/q", {"queue": {"type": kind, "push": push}})
    assert result.status == 400
    assert "Push queues must have at least one subscriber" in result.msg
    assert hub.call("GET", "/queues/q").status == 404


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({"message_timeout": 1}, {"message_timeout": 1}),
        ({"message_timeout": 86_400}, {"message_timeout": 86_400}),
        ({"message_timeout": 0}, {"message_timeout": 60}),
        ({"message_timeout": None}, {"message_timeout": 60}),
        ({"message_expiration": 2_592_000}, {"message_expiration": 2_592_000}),
        ({"message_expiration": 0}, {"message_expiration": 604_800}),
        ({"type": ""}, {"type": "pull"}),
        ({"type": "pull", "push": None}, {"type": "pull"}),
        ({"name": "other", "size": 0, "total_messages": 0}, {"name": "q"}),
        ({"rate_limit": -1, "replicas": 2, "nonsense": [{}]}, {"type": "pull"}),
        ({"alerts": [{}]}, {"type": "pull"}),
    ],
    ids=str,
)
def test_settings_taken_on_a_pull_queue(hub: Hub, settings: dict[str, Any], shown: dict[str, Any]) -> None:
    queue = hub.make("q", **settings)
    assert {name: queue[name] for name in shown} == shown


@pytest.mark.parametrize(
    ("push", "shown"),
    [
        ({"retries": 0}, {"retries": 0}),
        ({"retries": 100}, {"retries": 100}),
        ({"retries": None}, {"retries": 3}),
        ({"retries_delay": 3}, {"retries_delay": 3}),
        ({"retries_delay": 86_400}, {"retries_delay": 86_400}),
        ({"retries_delay": 0}, {"retries_delay": 60}),
        ({"error_queue": "Test error"}, {"error_queue": "Test error"}),
        ({"error_queue": None}, {"error_queue": ""}),
        ({"rate_limit": -1}, {"retries": 3}),
    ],
    ids=str,
)
def test_settings_taken_on_a_push_queue(hub: Hub, push: dict[str, Any], shown: dict[str, Any]) -> None:
    queue = hub.make("q", push={"subscribers": SUBSCRIBERS, **push})
    assert {name: queue["push"][name] for name in shown} == shown


@pytest.mark.parametrize(
    "settings",
    [
        {"type": "broadcast"},
        {"type": 1},
        {"message_timeout": 86_401},
        {"message_timeout": -1},
        {"message_timeout": "60"},
        {"message_timeout": 60.0},
        {"message_timeout": True},
        {"message_expiration": 2_592_001},
        {"message_expiration": -5},
        {"push": []},
        {"push": "x"},
        {"push": {"subscribers": {}}},
        {"push": {"subscribers": SUBSCRIBERS, "retries": 101}},
        {"push": {"subscribers": SUBSCRIBERS, "retries": -1}},
        {"push": {"subscribers": SUBSCRIBERS, "retries_delay": 2}},
        {"push": {"subscribers": SUBSCRIBERS, "retries_delay": 86_401}},
        {"push": {"subscribers": SUBSCRIBERS, "error_queue": 3}},
        {"push": {"subscribers": SUBSCRIBERS, "error_queue": "a/b"}},
        {"push": {"subscribers": SUBSCRIBERS, "error_queue": "q"}},
        {"type": "pull", "push": {"subscribers": SUBSCRIBERS}},
        {"dead_letter": {"queue_name": ""}},
        {"dead_letter": {"max_reservations": 5}},
        {"dead_letter": {"queue_name": "d", "max_reservations": 1001}},
        {"dead_letter": {"queue_name": "d", "max_reservations": -1}},
        {"dead_letter": {"queue_name": "q"}},
        {"dead_letter": "d"},
        {"push": {"subscribers": SUBSCRIBERS}, "dead_letter": {"queue_name": "d"}},
        {"push": {"subscribers": SUBSCRIBERS}, "alerts": [{"type": "fixed", "trigger": 1, "queue": "a"}]},
        {"alerts": {}},
        {"alerts": ["x"]},
        {"alerts": [{"type": "fixed", "trigger": 0, "queue": "a"}]},
        {"alerts": [{"type": "fixed", "trigger": 1.5, "queue": "a"}]},
        {"alerts": [{"type": "sometimes", "trigger": 1, "queue": "a"}]},
        {"alerts": [{"type": "fixed", "trigger": 1, "queue": ""}]},
        {"alerts": [{"type": "fixed", "trigger": 1, "queue": "a", "direction": "up"}]},
        {"alerts": [{"type": "fixed", "trigger": 1, "queue": "a", "snooze": -1}]},
        {"alerts": [{"type": "fixed", "trigger": number, "queue": "a"} for number in range(1, 7)]},
    ],
    ids=str,
)
def test_settings_refused(hub: Hub, settings: dict[str, Any]) -> None:
    # When a queue is to be created with a setting that is out of range, of the wrong type, or for the other kind of
    # queue
    result = hub.call("PUT", "/queues/q", {"queue": settings})
    # Then it is refused, and nothing is created
    assert result.status == 400
    assert hub.call("GET", "/queues").body == {"queues": []}


@pytest.mark.parametrize("body", [b'{"queue": "x"}', b'{"queue": []}', b"[]", b'"x"', b"3", b"null"])
def test_bodies_that_are_no_queue(hub: Hub, body: bytes) -> None:
    assert hub.send("PUT", f"/3/projects/{PROJECT}/queues/q", body, token=hub.token).status == 400


def test_put_on_an_existing_queue_changes_only_what_it_names(hub: Hub) -> None:
    # Given a queue with settings of its own
    hub.make(
        "q", message_timeout=90, push={"subscribers": SUBSCRIBERS, "retries": 7, "retries_delay": 9, "error_queue": "e"}
    )
    # When only one of them is put, as IronMQ's Ruby client does to update a queue
    queue = hub.make("q", message_expiration=100)
    # Then the others stay
    assert (queue["message_timeout"], queue["message_expiration"]) == (90, 100)
    assert queue["push"]["retries"] == 7
    assert queue["push"]["subscribers"] == SUBSCRIBERS
    # And the answer still has no counts
    assert "size" not in queue


def test_patch_answers_with_counts_and_keeps_what_it_does_not_name(hub: Hub) -> None:
    hub.make("q", push={"subscribers": SUBSCRIBERS, "retries": 7, "error_queue": "e"})
    result = hub.call("PATCH", "/queues/q", {"queue": {"push": {"retries_delay": 30}}})
    assert result.status == 200
    queue = result.body["queue"]
    assert (queue["size"], queue["total_messages"]) == (0, 0)
    assert queue["push"]["retries"] == 7
    assert queue["push"]["retries_delay"] == 30
    assert queue["push"]["error_queue"] == "e"


def test_the_zeros_of_the_go_client_change_nothing(hub: Hub) -> None:
    hub.make("q", message_timeout=90, message_expiration=100)
    zeros = {"name": "q", "size": 0, "total_messages": 0, "message_timeout": 0, "message_expiration": 0}
    queue = hub.call("PATCH", "/queues/q", {"queue": zeros}).body["queue"]
    assert (queue["message_timeout"], queue["message_expiration"]) == (90, 100)


def test_an_empty_error_queue_disables_it(hub: Hub) -> None:
    hub.make("q", push={"subscribers": SUBSCRIBERS, "error_queue": "e"})
    assert hub.make("q", push={"retries": 1})["push"]["error_queue"] == "e"
    assert hub.make("q", push={"error_queue": ""})["push"]["error_queue"] == ""


def test_patch_of_a_missing_queue_is_404(hub: Hub) -> None:
    result = hub.call("PATCH", "/queues/none", {"queue": {"message_timeout": 90}})
    assert (result.status, result.msg) == (404, "Queue not found")


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize(("created", "wanted"), [("pull", "unicast"), ("multicast", "pull"), ("multicast", "unicast")])
def test_the_type_of_a_queue_is_static(hub: Hub, method: str, created: str, wanted: str) -> None:
    # Given a queue of one type
    hub.make("q", type=created, **({} if created == "pull" else {"push": {"subscribers": SUBSCRIBERS}}))
    # Then another type is forbidden, not invalid, and the same one is fine
    push = {} if wanted == "pull" else {"push": {"subscribers": SUBSCRIBERS}}
    assert hub.call(method, "/queues/q", {"queue": {"type": wanted, **push}}).status == 403
    assert hub.call(method, "/queues/q", {"queue": {"type": created}}).status == 200
    assert hub.info("q")["type"] == created


def test_the_old_name_of_the_type_is_understood(hub: Hub) -> None:
    assert hub.make("q", push_type="unicast", push={"subscribers": SUBSCRIBERS})["type"] == "unicast"


def test_subscribers_on_a_pull_queue_are_refused(hub: Hub) -> None:
    hub.make("q")
    assert hub.call("PATCH", "/queues/q", {"queue": {"push": {"subscribers": SUBSCRIBERS}}}).status == 400


def test_alerts_on_a_push_queue_are_refused(hub: Hub) -> None:
    hub.make_push("q", URL)
    alert = {"type": "fixed", "trigger": 1, "queue": "a"}
    result = hub.call("PATCH", "/queues/q", {"queue": {"alerts": [alert]}})
    assert (result.status, result.msg) == (400, "Push queues do not support alerts.")
    # But none are what it has
    assert hub.call("PATCH", "/queues/q", {"queue": {"alerts": []}}).status == 200


def test_alerts_are_echoed_with_ids_that_stay(hub: Hub) -> None:
    # When an alert is given without a direction
    [alert] = hub.make("q", alerts=[{"type": "progressive", "trigger": 5, "queue": "some_q"}])["alerts"]
    # Then it is ascending, and has an id
    assert alert.pop("id")
    assert alert == {"type": "progressive", "trigger": 5, "direction": "asc", "queue": "some_q", "snooze": 0}
    # And setting it again together with another keeps its id
    both = [{"type": "fixed", "trigger": 2, "queue": "x"}, {"type": "progressive", "trigger": 5, "queue": "some_q"}]
    before = hub.info("q")["alerts"][0]["id"]
    after = hub.make("q", alerts=both)["alerts"]
    assert [each["id"] == before for each in after] == [False, True]
    # And the empty alert of the Node client clears the list
    assert "alerts" not in hub.make("q", alerts=[{}])


@pytest.mark.parametrize("other", [{"direction": "asc", "snooze": 9}, {"queue": "b"}])
def test_alerts_of_one_type_direction_and_trigger_are_duplicates(hub: Hub, other: dict[str, Any]) -> None:
    alert = {"type": "fixed", "trigger": 1, "queue": "a"}
    result = hub.call("PUT", "/queues/q", {"queue": {"alerts": [alert, {**alert, **other}]}})
    assert (result.status, result.msg) == (400, "At least one new alert duplicates current queue alerts.")


def test_an_alert_that_tells_another_queue_from_now_on_is_the_same_alert(hub: Hub) -> None:
    alert = {"type": "fixed", "trigger": 1, "queue": "a"}
    [before] = hub.make("q", alerts=[alert])["alerts"]
    [after] = hub.make("q", alerts=[{**alert, "queue": "b"}])["alerts"]
    assert after == {**before, "queue": "b"}
    hub.post("q", "x")
    assert hub.info("b")["size"] == 1


def test_dead_letter_settings(hub: Hub) -> None:
    # Given a queue with a dead letter queue
    assert hub.make("q", dead_letter={"queue_name": "dead"})["dead_letter"] == {
        "queue_name": "dead",
        "max_reservations": 10,
    }
    # Then that queue exists from then on
    assert hub.info("dead")["type"] == "pull"
    # And its settings can be changed one by one
    assert hub.make("q", dead_letter={"max_reservations": 3})["dead_letter"]["queue_name"] == "dead"
    assert hub.make("q", dead_letter={"queue_name": "dead2"})["dead_letter"]["max_reservations"] == 3
    assert "dead_letter" in hub.make("q", dead_letter={})
    # And an empty name removes them
    assert "dead_letter" not in hub.make("q", dead_letter={"queue_name": ""})


def test_queues_are_listed_by_name_in_pages(hub: Hub) -> None:
    # Given more queues than a page holds
    for number in range(35):
        hub.make(f"q{number:02d}")
    # Then a page has thirty names, and only names
    first = hub.call("GET", "/queues").body["queues"]
    assert first == [{"name": f"q{number:02d}"} for number in range(30)]
    # And the next begins after the last one
    rest = hub.call("GET", "/queues?previous=q29").body["queues"]
    assert [each["name"] for each in rest] == [f"q{number}" for number in range(30, 35)]
    # And that last one need not exist
    assert hub.call("GET", "/queues?previous=q33x&per_page=5").body["queues"] == [{"name": "q34"}]


@pytest.mark.parametrize(
    ("query", "count"),
    [("per_page=101", 100), ("per_page=100000", 100), ("per_page=0", 30), ("per_page=", 30), ("per_page=3", 3)],
)
def test_page_sizes(hub: Hub, query: str, count: int) -> None:
    for number in range(102):
        hub.make(f"q{number}")
    assert len(hub.call("GET", f"/queues?{query}").body["queues"]) == count


@pytest.mark.parametrize("per_page", ["x", "-1", "1.5", "%D9%A3", "1e3", "99999999999999999999"])
def test_page_sizes_that_are_no_numbers(hub: Hub, per_page: str) -> None:
    assert hub.call("GET", f"/queues?per_page={per_page}").status == 400


def test_queues_are_filtered_by_prefix_and_sorted(hub: Hub) -> None:
    for name in ("abbd", "abba", "abc", "abbc"):
        hub.make(name)
    assert [each["name"] for each in hub.call("GET", "/queues?prefix=abb").body["queues"]] == ["abba", "abbc", "abbd"]


def test_deleting_a_queue(hub: Hub) -> None:
    # Given a queue with a message
    hub.make("q")
    [message_id] = hub.post("q", "old")
    # When it is deleted
    result = hub.call("DELETE", "/queues/q")
    assert (result.status, result.body) == (200, {"msg": "Deleted"})
    # Then it is gone, and deleting it again is a 404
    assert hub.call("GET", "/queues/q").msg == "Queue not found"
    assert hub.call("DELETE", "/queues/q", {}).status == 404
    # And a new one of that name has none of its messages, and may be of another type
    hub.make("q")
    assert hub.reserve("q") == []
    assert hub.call("GET", f"/queues/q/messages/{message_id}").msg == "Message not found"
    assert hub.info("q")["total_messages"] == 0


@pytest.mark.parametrize(
    "name",
    [
        "pushqueue2026-11-21 05:34:16.123 +0000 UTC m=+0.5",
        "Test error",
        "a+b:c=d",
        "été 漢字 🎉",
        "a#b",
        "..",
        "n" * 255,
    ],
)
def test_names_that_clients_use(hub: Hub, name: str) -> None:
    # Given a queue of that name, percent-encoded in its path
    encoded = quote(name, safe="")
    assert hub.make(encoded)["name"] == name
    # Then it accepts messages and is listed under that name
    hub.post(encoded, "x")
    assert [each["body"] for each in hub.reserve(encoded)] == ["x"]
    assert hub.call("GET", "/queues").body["queues"] == [{"name": name}]


@pytest.mark.parametrize("encoded", ["%00", "a%0Ab", "a%0D%0Ab", "%EF%BF%BD", "n" * 256, "%C2%85", "a%3Fb", "100%25"])
def test_names_that_no_queue_can_have(hub: Hub, encoded: str) -> None:
    assert hub.call("PUT", f"/queues/{encoded}", {}).status == 400
    assert hub.call("POST", f"/queues/{encoded}/messages", {"messages": [{"body": "x"}]}).status == 400
    assert hub.call("GET", "/queues").body == {"queues": []}


def test_a_name_with_a_slash_matches_no_route(hub: Hub) -> None:
    result = hub.call("PUT", "/queues/a%2Fb", {})
    assert (result.status, result.msg) == (404, "Not found")


@pytest.mark.parametrize("name", [name for name, *_ in settings_of(Queue)])
def test_a_setting_of_a_queue_is_stored_shown_and_left_alone_by_other_changes(hub: Hub, name: str) -> None:
    # Given a queue that has the setting since it was made, and one that got it later
    wanted = {name: QUEUE[name]}
    hub.call("PUT", "/queues/made", {"queue": wanted})
    hub.call("PUT", "/queues/changed", {})
    hub.call("PATCH", "/queues/changed", {"queue": wanted})
    for queue in ("made", "changed"):
        # When another change follows, and one to null
        hub.call("PATCH", f"/queues/{queue}", {"queue": {"search_fields": ["order"]}})
        hub.call("PATCH", f"/queues/{queue}", {"queue": {name: None}})
        # Then it has it
        assert hub.info(queue)[name] == QUEUE[name]


def test_a_push_queue_is_eager_from_when_its_owner_says_so_until_they_say_otherwise(hub: Hub) -> None:
    # Given a push queue that is made eager
    push = {"subscribers": SUBSCRIBERS, "eager": True}
    assert hub.call("PUT", "/queues/q", {"queue": {"push": push}}).body["queue"]["push"]["eager"] is True
    # Then other changes leave that alone, and nothing else is taken for it
    hub.call("PATCH", "/queues/q", {"queue": {"push": {"retries": 5, "eager": None}}})
    assert hub.call("PATCH", "/queues/q", {"queue": {"push": {"eager": "no"}}}).status == 400
    assert hub.call("GET", "/queues/q").body["queue"]["push"]["eager"] is True
    # Until it is made like others
    hub.call("PATCH", "/queues/q", {"queue": {"push": {"eager": False}}})
    assert "eager" not in hub.call("GET", "/queues/q").body["queue"]["push"]


def test_an_error_queue_appears_with_its_first_message(hub: Hub) -> None:
    # Given a push queue with an error queue
    hub.make_push("q", URL, retries=0, error_queue="failed")
    assert [each["name"] for each in hub.call("GET", "/queues").body["queues"]] == ["q"]
    # When a message is given up
    hub.world.sender.script(URL, 500)
    hub.post("q", "x")
    hub.world.run(seconds=5)
    # Then the queue is there, of type pull
    assert [each["name"] for each in hub.call("GET", "/queues").body["queues"]] == ["failed", "q"]
    assert hub.info("failed")["type"] == "pull"


def test_a_dry_run_refuses_what_a_run_does_and_stores_nothing(hub: Hub) -> None:
    wanted = {"queue": {"push": {"subscribers": [{"name": "s", "url": URL}]}, "dead_letter": None}, "dry_run": True}
    # Given no queue, when one is asked for dry, then it is shown, and there is none
    shown = hub.call("PUT", "/queues/q", wanted)
    assert (shown.status, shown.body["queue"]["type"]) == (200, "multicast")
    assert hub.call("GET", "/queues/q").status == 404
    # Given one, when it is changed dry, then it stays as it is, and what may not change is refused
    hub.make_push("q", URL)
    before = hub.info("q")
    for method in ("PUT", "PATCH"):
        planned = hub.call(method, "/queues/q", {"queue": {"push": {"retries": 9}}, "dry_run": True})
        assert (planned.status, planned.body["queue"]["push"]["retries"]) == (200, 9)
        assert hub.info("q") == before
        assert hub.call(method, "/queues/q", {"queue": {"type": "pull"}, "dry_run": True}).status == 403
        assert hub.call(method, "/queues/q", {"queue": {}, "dry_run": "yes"}).status == 400
    assert hub.call("PATCH", "/queues/none", {"queue": {}, "dry_run": True}).status == 404
