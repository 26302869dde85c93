"""The hub's API: what a store pushes, and what its admin client reads and does."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.fakes import Reply
from tests.fakes.credentials import credentials
from tests.fakes.gateway import content_of, http_event
from tests.hub.api.hub_store import OTHER_STORE, Store

from pushhub.base.credentials import MASK
from pushhub.base.times import iso_time
from pushhub.hub.model.log import OpenRequest
from pushhub.hub.model.object_ids import from_object_id, is_object_id, to_object_id
from pushhub.hub.tokens import token_of

URL = "https://acme.example/import"
MAPPING: dict[str, Any] = {"name": "acme.import", "url": URL, "token": "t" * 32, "messages": ["order:new"]}


def made_mapping(store: Store, **changes: Any) -> dict[str, Any]:
    status, mapping = store.call("POST", "/mappings", {"mapping": {**MAPPING, **changes}})
    assert status == 201
    store.endpoints.setdefault(mapping["url"], lambda _: {})
    return dict(mapping)


# Producing


@pytest.mark.parametrize("path", ["/messages", "/messages/", "/messages.json"])
def test_a_pushed_message_is_answered_with_everything_submitted_and_its_id(store: Store, path: str) -> None:
    sent = {"message": "stock:change", "payload": {"sku": "APC-00001", "quantity": 10}, "origin": "store", "x": [1]}
    status, body = store.call("POST", path, sent)
    assert status == 201
    assert {key: body[key] for key in sent} == sent
    assert is_object_id(body["message_id"])
    assert set(body) == {*sent, "id", "message_id"}
    assert body["id"] == body["message_id"]


def test_json_posted_as_a_form_is_json_as_in_the_documentations_curl_lines() -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    status, _ = Store().call("POST", "/messages", {"message": "a:b", "payload": {}}, headers=headers)
    assert status == 201


def test_the_admin_clients_test_tool_nests_the_message(store: Store) -> None:
    made_mapping(store)
    nested = {"origin": "test", "message": {"message": "order:new", "payload": {"order": {"number": "R1"}}}}
    status, body = store.call("POST", "/messages", nested)
    assert (status, body["message"]) == (201, nested["message"])
    store.run(seconds=5)
    assert [sent["payload"] for sent in store.asked_at()] == [{"order": {"number": "R1"}}]


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({}, {"message": ["can't be blank"], "payload": ["can't be blank"]}),
        ({"message": "a:b"}, {"payload": ["can't be blank"]}),
        ({"message": "a:b", "payload": []}, {"payload": ["must be an object"]}),
        ({"message": "a b", "payload": {}}, {"message": ["must be a message type such as order:new"]}),
        ({"message": 5, "payload": {}}, {"message": ["must be a message type such as order:new"]}),
        ("{", {"base": ["The body is not valid JSON (line 1, column 2)"]}),
        ("[]", {"base": ["The body is JSON but not an object"]}),
        ("", {"base": ["The body is not valid JSON (line 1, column 1)"]}),
        ("[" * 200_000, {"base": ["The body is nested deeper than 100 levels"]}),
        (
            '{"message":"a:b","payload":{"x":"\\ud800"}}',
            {"base": ["The body holds half a surrogate pair (line 1, column 34)"]},
        ),
    ],
)
def test_what_is_no_message_is_refused_with_its_errors(body: Any, errors: dict[str, list[str]]) -> None:
    assert Store().call("POST", "/messages", body) == (422, {"error": "Invalid object.", "errors": errors})


def test_tokens_and_stores(store: Store) -> None:
    message = {"message": "a:b", "payload": {}}
    assert store.call("POST", "/messages", message, token="wrong") == (401, {"error": "Token is invalid."})
    assert store.call("POST", "/messages", message, token="") == (401, {"error": "Token is invalid."})
    assert store.call("POST", "/messages", message, token=store.other_token)[0] == 401
    assert store.call("POST", "/messages", message, store="9" * 24) == (401, {"error": "Token is invalid."})
    assert store.call("GET", "/queues", store=OTHER_STORE, token=store.other_token)[0] == 200


def test_a_body_over_the_limit_is_refused() -> None:
    status, body = Store().call("POST", "/messages", {"message": "a:b", "payload": {"x": "y" * 2_100_000}})
    assert (status, set(body)) == (413, {"error"})


def test_the_largest_message_and_its_largest_answer_are_shown_whole(store: Store) -> None:
    made_mapping(store)
    text = "ü" * 1_040_000

    def says(body: dict[str, Any]) -> Reply:
        answer = {"message_id": body["message_id"], "text": body["payload"]["text"]}
        return Reply(status_code=200, body=json.dumps(answer, ensure_ascii=False).encode())

    store.endpoints[URL] = says
    status, pushed = store.call(
        "POST", "/messages", json.dumps({"message": "order:new", "payload": {"text": text}}, ensure_ascii=False)
    )
    assert status == 201
    store.run(seconds=5)
    [copy] = store.copies(pushed["message_id"])
    status, shown = store.call("GET", f"/messages/{to_object_id(copy.message_id)}")
    assert (status, shown["state"]) == (200, "completed")
    assert shown["payload"]["text"] == shown["result"]["text"] == text


def test_unknown_paths_and_methods(store: Store) -> None:
    assert store.call("GET", "/nothing")[0] == 404
    status, _, headers = store.call_whole("DELETE", "/queues")
    assert (status, headers["Allow"]) == (405, "GET, HEAD, OPTIONS")


@pytest.mark.parametrize("kind", ["messages", "mappings", "schedulers", "parameters", "integrations", "queues"])
@pytest.mark.parametrize("odd", ["x", "a#b", "ü" * 12, "5" * 3000])
def test_ids_that_nothing_can_have(kind: str, odd: str) -> None:
    assert Store().call("GET", f"/{kind}/{odd}")[0] == 404


@pytest.mark.parametrize("odd", ["x", "a#b", "5" * 3000])
def test_stores_that_nobody_can_have(odd: str) -> None:
    assert Store().call("GET", "/queues", store=odd) == (401, {"error": "Token is invalid."})


def test_browsers_of_other_origins_may_ask() -> None:
    status, body, headers = Store().call_whole(
        "OPTIONS", "/messages", token="", headers={"Origin": "https://shop.example"}
    )
    assert (status, body) == (204, None)
    assert headers["Access-Control-Allow-Origin"] == "https://shop.example"
    assert "X-Augury-Token" in headers["Access-Control-Allow-Headers"]


# Queues and messages


def test_the_counts_of_all_queues(store: Store) -> None:
    made_mapping(store)
    made_mapping(store, messages=["flaky:one"], url="https://flaky.example/x")
    made_mapping(store, messages=["flaky:one"], url="https://dead.example/x", options={"retries_allowed": False})
    made_mapping(store, messages=["later:one"], url="https://later.example/x")
    store.endpoints["https://flaky.example/x"] = store.endpoints["https://dead.example/x"] = lambda _: 500
    store.endpoints["https://later.example/x"] = lambda _: {"delay": 600}
    for message_type in ("order:new", "flaky:one", "later:one", "unwanted:one"):
        store.push_message(message_type)
    store.run(seconds=5)
    store.push_message("order:new")
    assert store.call("GET", "/queues.json") == (
        200,
        {"incoming": 1, "archived": 5, "pending": 0, "failing": 1, "scheduled": 1, "parked": 1},
    )


def test_a_queue_is_shown_to_the_admin_client_in_pages(store: Store) -> None:
    mapping = made_mapping(store)
    ids = [store.push_message("order:new", n=n) for n in range(30)]
    store.run(seconds=5)
    status, first = store.call("GET", "/queues/archived")
    assert status == 200
    assert (first["page"], first["pages"], len(first["messages"])) == (1, 2, 25)
    assert first["available_messages"] == ["order:new"]
    assert first["available_consumers"] == [["acme.import", mapping["id"]]]
    _, second = store.call("GET", "/queues/archived", page=2)
    assert len(second["messages"]) == 5
    times = [row["created_at"] for row in [*first["messages"], *second["messages"]]]
    assert times == sorted(times, reverse=True)
    # And as a bare array, as in the documentation
    _, rows = store.call("GET", "/queues/archived.json", source="incoming", page=2)
    assert [row["id"] for row in rows] == ids[4::-1]


def test_rows_have_the_fields_of_the_protocol(store: Store) -> None:
    made_mapping(store)
    store.push_message("order:new")
    store.run(seconds=5)
    _, [row] = store.call("GET", "/queues/archived.json")
    assert {
        key: row[key] for key in ("message", "state", "consumer", "source", "queue_name", "is_consumer_remote")
    } == {
        "message": "order:new",
        "state": "completed",
        "consumer": "acme.import",
        "source": "accepted",
        "queue_name": "archived",
        "is_consumer_remote": True,
    }
    assert {"id", "created_at", "completed_at", "attempt_at", "destination_name", "locked_at"} <= set(row)


def test_filters_of_the_accepted_queue(store: Store) -> None:
    one = made_mapping(store, messages=["a:one"])
    two = made_mapping(store, messages=["a:one", "a:two"], url="https://b.example/x")
    store.endpoints[URL] = lambda _: 500
    store.endpoints["https://b.example/x"] = lambda _: {"delay": 900}
    store.push_message("a:one")
    store.run(seconds=1)
    half = store.clock.now()
    store.clock.advance(seconds=1)
    second = store.push_message("a:two")
    store.run(seconds=1)

    def found(**query: Any) -> list[str]:
        status, rows = store.call("GET", "/queues/accepted.json", **query)
        assert status == 200
        return sorted(f"{row['message']} {row['state']}" for row in rows)

    everything = ["a:one failing", "a:one scheduled", "a:two scheduled"]
    moment = iso_time(half).replace("Z", "+00:00")
    assert found() == everything
    assert found(message="a:one") == everything[:2]
    assert found(state="failing") == found(filter_state="failing") == everything[:1]
    assert found(state="parked") == []
    assert found(mapping_id=one["id"]) == found(consumer_class=one["id"]) == everything[:1]
    assert found(mapping_id=two["id"], message="a:two") == everything[2:]
    assert found(start_date=moment) == found(start_date=moment.replace("+", " ")) == everything[2:]
    assert found(end_date=moment) == everything[:2]
    # Before the first identifier there was nothing (found by the simulator's talk with the hub)
    assert found(start_date="2013-11-10T17:17:34+00:00") == everything
    assert found(end_date="2020-01-01T00:00:00Z") == []
    [copy] = store.copies(second)
    assert found(message_id=second) == []
    assert found(message_id=store.call("GET", f"/messages/{second}")[1]["children"][0]["id"]) == everything[2:]
    assert copy.type == "a:two"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"page": "0"}, "page"),
        ({"page": "x"}, "page"),
        ({"page": "000000001" + "9" * 5_000}, "page"),
        ({"state": "odd"}, "state"),
        ({"source": "elsewhere"}, "source"),
        ({"start_date": "yesterday"}, "start_date"),
    ],
)
def test_filters_that_mean_nothing_are_refused(query: dict[str, Any], field: str) -> None:
    status, body = Store().call("GET", "/queues/archived", **query)
    assert (status, list(body["errors"])) == (422, [field])


def test_a_message_with_everything_about_it(store: Store) -> None:
    mapping = made_mapping(store)
    answer = {
        "messages": [{"message": "email:sent", "payload": {}}],
        "notifications": [{"level": "warn", "subject": "Slow", "reference_type": "order", "reference_token": "R1"}],
        "events": [{"code": 400}],
        "mandrill_response": "queued",
    }
    store.endpoints[URL] = lambda _: answer
    incoming = store.push_message("order:new", order={"number": "R1"})
    store.run(seconds=5)
    _, parent = store.call("GET", f"/messages/{incoming}")
    [child] = parent["children"]
    assert (child["message"], child["state"], child["location"]) == ("order:new", "completed", "archived")
    status, message = store.call("GET", f"/messages/{child['id']}.json")
    assert status == 200
    assert message["payload"] == {"order": {"number": "R1"}}
    assert (message["parent_id"], message["store_id"], message["store_name"]) == (incoming, PROJECT, "A shop")
    assert (message["state"], message["attempts"], message["last_error"]) == ("completed", 0, None)
    assert message["result"] == {**answer, "message_id": child["id"]}
    assert message["events"] == [{"code": 400}]
    assert message["mapping"]["id"] == mapping["id"]
    assert message["can_attempt"] is False
    assert [each["message"] for each in message["children"]] == ["email:sent"]
    [notification] = message["notifications"]
    assert (notification["level"], notification["occurrences"], notification["reference_token"]) == ("warn", 1, "R1")


def test_a_failure_is_shown_with_what_the_endpoint_said(store: Store) -> None:
    made_mapping(store)
    store.endpoints[URL] = lambda _: Reply(
        status_code=500, body=b"<h1>Boom</h1>", headers={"content-type": "text/html"}
    )
    incoming = store.push_message("order:new")
    store.run(seconds=5)
    _, parent = store.call("GET", f"/messages/{incoming}")
    _, message = store.call("GET", f"/messages/{parent['children'][0]['id']}")
    assert (message["state"], message["attempts"], message["can_attempt"]) == ("failing", 1, True)
    assert message["last_error"] == "HTTP 500 Internal Server Error"
    assert message["result"] == "<h1>Boom</h1>"
    assert (message["last_answer"]["status"], message["last_answer"]["content_type"]) == (500, "text/html")
    assert message["next_attempt"] > message["attempt_at"]


@pytest.mark.parametrize("form", [True, False])
def test_a_parked_message_is_attempted_now_or_archived(store: Store, form: bool) -> None:
    made_mapping(store, options={"retries_allowed": False})
    store.endpoints[URL] = lambda _: 500
    incoming = store.push_message("order:new")
    store.run(seconds=5)
    child = store.call("GET", f"/messages/{incoming}")[1]["children"][0]["id"]
    # When a person asks for an attempt, it is made at once
    status, _ = store.call("PUT", f"/messages/{child}", {"attempt_now": "true" if form else True}, form=form)
    assert status == 200
    store.run(seconds=1)
    assert len(store.asked) == 2
    store.run(seconds=600)
    assert len(store.asked) == 2
    # When it is archived, it is never attempted again
    status, message = store.call("PUT", f"/messages/{child}", {"archive": "true" if form else True}, form=form)
    assert (status, message["queue_name"], message["state"]) == (200, "archived", "never_processed")
    store.run(seconds=600)
    assert len(store.asked) == 2
    assert message["reason"] == "Archived by a person"
    status, body = store.call("PUT", f"/messages/{child}", {"attempt_now": True})
    assert (status, body["error"]) == (422, "Invalid object.")


def test_a_message_that_its_service_works_on_is_not_attempted_again_meanwhile(store: Store) -> None:
    # Given a service that fails once and then takes its time, during which a person looks and tries
    made_mapping(store)
    store.endpoints[URL] = lambda _: 500
    incoming = store.push_message("order:new")
    store.run(seconds=5)
    child = store.call("GET", f"/messages/{incoming}")[1]["children"][0]["id"]
    meanwhile: list[Any] = []

    def slow(_: dict[str, Any]) -> int:
        store.clock.advance(ms=20_000)
        meanwhile.append(store.call("GET", f"/messages/{child}")[1])
        meanwhile.append(store.call("GET", "/queues/accepted")[1]["messages"][0])
        meanwhile.append(store.call("PUT", f"/messages/{child}", {"attempt_now": True}))
        return 500

    store.endpoints[URL] = slow

    # When it is attempted
    store.run(seconds=40)

    # Then it is shown as locked, and the attempt is refused and not made
    shown, row, (status, refusal) = meanwhile
    assert shown["locked_at"] == row["locked_at"] > shown["attempt_at"]
    assert shown["can_attempt"] is False
    assert (status, refusal["error"]) == (422, "Invalid object.")
    assert shown["locked_at"] in refusal["errors"]["base"][0]
    assert len(store.asked) == 2
    # And once it has been answered, a person may have it attempted
    store.endpoints[URL] = lambda _: 500
    _, after = store.call("GET", f"/messages/{child}")
    assert (after["locked_at"], after["can_attempt"], after["attempts"]) == (None, True, 2)
    assert store.call("PUT", f"/messages/{child}", {"attempt_now": True})[0] == 200
    store.run(seconds=1)
    assert len(store.asked) == 3


def test_a_message_whose_sender_was_lost_can_be_attempted_once_its_service_must_have_answered(store: Store) -> None:
    # Given a message whose request was begun by a worker that is gone
    made_mapping(store, options={"retries_allowed": False})
    store.endpoints[URL] = lambda _: 500
    incoming = store.push_message("order:new")
    store.run(seconds=5)
    child = store.call("GET", f"/messages/{incoming}")[1]["children"][0]["id"]
    now = store.clock.now()
    message_id = from_object_id(child)
    assert message_id is not None
    store.log.note_open(PROJECT, message_id, OpenRequest(opened_at=now, ends_at=now + 190_000))
    assert store.call("PUT", f"/messages/{child}", {"attempt_now": True})[0] == 422

    # When the time that an answer may take has passed
    store.clock.advance(ms=190_000)

    # Then it may be attempted
    assert store.call("PUT", f"/messages/{child}", {"attempt_now": True})[0] == 200


def test_a_message_archived_while_its_service_works_on_it_says_how_that_ended(store: Store) -> None:
    # Given a message that is archived during its request, which then succeeds and leads to another message
    made_mapping(store)
    archived: list[tuple[int, Any]] = []

    def done(_: dict[str, Any]) -> dict[str, Any]:
        store.clock.advance(ms=3_000)
        (row,) = store.call("GET", "/queues/accepted")[1]["messages"]
        archived.append(store.call("PUT", f"/messages/{row['id']}", {"archive": True}))
        store.clock.advance(ms=3_000)
        return {"messages": [{"message": "email:sent", "payload": {}}]}

    store.endpoints[URL] = done
    store.push_message("order:new")

    # When the answer comes
    store.run(seconds=20)

    # Then the archive was allowed and warned of this, and now the message says what became of the attempt
    ((status, at_once),) = archived
    assert status == 200
    assert at_once["reason"] == ("Archived by a person during an attempt, which the service may still have carried out")
    _, shown = store.call("GET", f"/messages/{at_once['id']}")
    assert (shown["state"], shown["locked_at"]) == ("never_processed", None)
    assert shown["reason"].startswith(at_once["reason"] + ". The attempt ended at ")
    assert shown["reason"].endswith(" with 200; what the answer asks for was carried out")
    assert [each["message"] for each in shown["children"]] == ["email:sent"]


def test_next_attempt_is_left_out_where_there_is_none(store: Store) -> None:
    # Given one message that waits for its next attempt, one that waits for a person, and one that is done
    made_mapping(store, messages=["a:waits"])
    made_mapping(store, messages=["a:parked"], options={"retries_allowed": False})
    made_mapping(store, messages=["a:done"], url="https://b.example/x")
    store.endpoints[URL] = lambda _: 500
    for message_type in ("a:waits", "a:parked", "a:done"):
        store.push_message(message_type)
    store.run(seconds=5)
    # Then the admin client, which formats any value it gets, gets only times
    rows = store.call("GET", "/queues/accepted.json")[1] + store.call("GET", "/queues/archived.json")[1]
    shown = {row["message"]: row for row in rows}
    assert isinstance(shown["a:waits"]["next_attempt"], str)
    assert "next_attempt" not in shown["a:parked"]
    assert "next_attempt" not in shown["a:done"]
    for row in rows:
        alone = store.call("GET", f"/messages/{row['id']}")[1]
        assert ("next_attempt" in alone) == ("next_attempt" in row)


def test_what_is_parked_for_a_deleted_mapping_shows_its_name_and_can_be_archived(store: Store) -> None:
    mapping = made_mapping(store, name="acme.gone", options={"retries_allowed": False})
    store.endpoints[URL] = lambda _: 500
    incoming = store.push_message("order:new")
    store.run(seconds=5)
    store.call("DELETE", f"/mappings/{mapping['id']}")
    store.run(seconds=3600)
    [row] = store.call("GET", "/queues/accepted.json", state="parked")[1]
    assert (row["consumer"], row["destination_name"], row["mapping_id"]) == ("acme.gone", "acme.gone", mapping["id"])
    status, message = store.call("PUT", f"/messages/{row['id']}", {"archive": True})
    assert (status, message["state"], message["consumer"]) == (200, "never_processed", "acme.gone")
    assert message["reason"] == "Archived by a person"
    assert store.call("GET", f"/messages/{incoming}")[1]["state"] == "completed"


def test_notifications_beyond_the_newest_are_found_by_filter_page_and_date(store: Store) -> None:
    # Given one error, followed by many other notifications
    made_mapping(store)
    said = {"notifications": [{"level": "error", "subject": "Long ago"}]}
    store.endpoints[URL] = lambda _: said
    store.push_message("order:new")
    store.run(seconds=5)
    then = datetime.fromtimestamp(store.clock.now() / 1000, UTC).isoformat()
    said["notifications"] = [{"level": "info", "subject": f"n{number}"} for number in range(100)]
    for _ in range(4):
        store.run(seconds=60)
        store.push_message("order:new")
    store.run(seconds=5)
    # Then filters cover all of them, pages lead to all of them, and dates limit them
    [found] = store.call("GET", "/notifications.json", level="error")[1]
    assert found["subject"] == "Long ago"
    last = store.call("GET", "/notifications", page=17)[1]
    assert (last["pages"], [each["subject"] for each in last["notifications"]]) == (17, ["Long ago"])
    assert [each["subject"] for each in store.call("GET", "/notifications.json", end_date=then)[1]] == ["Long ago"]
    assert store.call("GET", "/notifications", start_date=then)[1]["pages"] == 16


def test_a_scheduled_child_may_be_sent_early_or_never(store: Store) -> None:
    made_mapping(store)
    made_mapping(store, messages=["a:late"], url="https://b.example/x")
    store.endpoints[URL] = lambda _: {"messages": [{"message": "a:late", "payload": {}, "delay": 7200}] * 2}
    store.push_message("order:new")
    store.run(seconds=5)
    _, rows = store.call("GET", "/queues/accepted.json", state="scheduled")
    assert len(rows) == 2
    store.call("PUT", f"/messages/{rows[0]['id']}", {"attempt_now": True})
    store.call("PUT", f"/messages/{rows[1]['id']}", {"archive": True})
    store.run(seconds=4 * 3600)
    assert len(store.asked_at("https://b.example/x")) == 1


def test_messages_that_cannot_be_handled(store: Store) -> None:
    incoming = store.push_message("order:new")
    assert store.call("PUT", f"/messages/{incoming}", {"attempt_now": True})[0] == 422
    assert store.call("PUT", f"/messages/{incoming}", {})[0] == 422
    for unknown in ("5" * 24, "52811a8584a8169f7a000002"):
        assert store.call("GET", f"/messages/{unknown}") == (404, {"error": "Message not found."})
    assert store.call("GET", f"/messages/{incoming}", store=OTHER_STORE, token=store.other_token)[0] == 404


def test_available_messages_and_notifications(store: Store) -> None:
    made_mapping(store, messages=["b:two", "a:one"])
    notes = [
        {"level": "error", "subject": "Bad", "reference_type": "order", "reference_token": "R1"},
        {"level": "info", "subject": "Fine"},
    ]
    store.endpoints[URL] = lambda _: {"notifications": notes}
    store.push_message("b:two")
    store.push_message("a:one")
    store.run(seconds=5)
    assert store.call("GET", "/available_messages")[1] == ["a:one", "b:two", "notification:error", "notification:info"]
    _, every = store.call("GET", "/notifications")
    assert (every["page"], every["pages"], len(every["notifications"])) == (1, 1, 4)
    filters: list[dict[str, Any]] = [
        {"level": "error"},
        {"q[level]": "info"},
        {"reference_token": "R1"},
        {"reference_type": "item"},
    ]
    assert [len(store.call("GET", "/notifications.json", **each)[1]) for each in filters] == [2, 2, 2, 0]


# Settings


def test_mappings_are_made_shown_changed_and_deleted(store: Store) -> None:
    created = made_mapping(store)
    (listed,) = store.call("GET", "/mappings.json")[1]
    assert store.call("GET", f"/mappings/{created['id']}")[1] == listed
    assert {name: value for name, value in listed.items() if name != "health"} == created
    wrapped = {"mapping": {"enabled": False, "filters": json.dumps([{"path": "message", "operator": "present"}])}}
    status, changed = store.call("PUT", f"/mappings/{created['id']}", wrapped)
    assert (status, changed["enabled"], len(changed["formatted_filters"])) == (200, False, 1)
    assert store.call("DELETE", f"/mappings/{created['id']}") == (200, {})
    assert store.call("DELETE", f"/mappings/{created['id']}") == (404, {"error": "Mapping not found."})
    assert store.call("GET", "/mappings")[1] == []


def test_a_mapping_to_where_nothing_may_be_sent_is_refused(store: Store) -> None:
    store.refusals["http://10.0.0.1/"] = "is not a public address"
    status, body = store.call("POST", "/mappings", {"mapping": {**MAPPING, "url": "http://10.0.0.1/"}})
    assert (status, body["errors"]) == (422, {"url": ["is not a public address"]})
    created = made_mapping(store)
    status, _ = store.call("PUT", f"/mappings/{created['id']}", {"mapping": {"url": "http://10.0.0.1/"}})
    assert status == 422


def test_a_required_mapping_stays(store: Store) -> None:
    created = made_mapping(store, required=True)
    assert store.call("DELETE", f"/mappings/{created['id']}")[0] == 422
    assert store.call("PUT", f"/mappings/{created['id']}", {"mapping": {"enabled": False}})[0] == 422


def test_schedulers(store: Store) -> None:
    status, created = store.call(
        "POST", "/schedulers", {"scheduler": {"count": 1, "interval": "hours", "key": "acme:order:poll"}}
    )
    assert (status, created["key"], created["count"], created["interval"]) == (201, "acme:order:poll", 1, "hours")
    status, changed = store.call("PUT", f"/schedulers/{created['id']}", {"scheduler": {"count": "2"}})
    assert (status, changed["count"]) == (200, 2)
    assert changed["next_at"] > created["next_at"]
    assert store.call("GET", "/schedulers")[1] == [changed]
    assert store.call("GET", f"/schedulers/{created['id']}")[1] == changed
    for bad, field in (
        ({"count": 0, "interval": "hours", "key": "a"}, "count"),
        ({"count": 1, "interval": "ages", "key": "a"}, "interval"),
        ({"count": 1, "interval": "hours", "key": "a b"}, "key"),
    ):
        status, body = store.call("POST", "/schedulers", {"scheduler": bad})
        assert (status, list(body["errors"])) == (422, [field])
    assert store.call("DELETE", f"/schedulers/{created['id']}")[0] == 200
    assert store.call("GET", f"/schedulers/{created['id']}")[0] == 404


@pytest.mark.parametrize(
    ("sent", "value", "kind"),
    [
        ({"value": "k1"}, "k1", "string"),
        ({"value": 5}, 5, "integer"),
        ({"value": "5", "data_type": "integer"}, 5, "integer"),
        ({"value": "1.5", "data_type": "float"}, 1.5, "float"),
        ({"value": "true", "data_type": "boolean"}, True, "boolean"),
        ({"value": '[{"a": 1}]', "data_type": "list"}, [{"a": 1}], "list"),
        ({"value": "s", "data_type": "password"}, "s", "password"),
    ],
)
def test_parameters_are_made_unwrapped(store: Store, sent: dict[str, Any], value: Any, kind: str) -> None:
    status, created = store.call("POST", "/parameters", {"name": "acme.since", **sent})
    shown = MASK if kind == "password" else value
    assert (status, created["value"], created["data_type"]) == (201, shown, kind)
    assert store.call("GET", "/parameters")[1] == [created]
    assert store.call("GET", f"/parameters/{created['id']}")[1] == created
    status, changed = store.call("PUT", f"/parameters/{created['id']}", {"value": "other", "data_type": "string"})
    assert (status, changed["id"], changed["value"], changed["data_type"]) == (200, created["id"], "other", "string")
    assert store.call("DELETE", f"/parameters/{created['id']}")[0] == 200
    assert store.call("GET", f"/parameters/{created['id']}")[0] == 404


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"value": "x"}, "name"),
        ({"name": "a", "value": "x", "data_type": "integer"}, "value"),
        ({"name": "a", "value": "x", "data_type": "number"}, "data_type"),
        ({"name": "a", "value": True, "data_type": "integer"}, "value"),
        ({"name": "a", "value": "y" * 40_000}, "value"),
        ({"name": "a", "value": "[", "data_type": "list"}, "value"),
        ({"name": "a", "value": '["\\ud800"]', "data_type": "list"}, "value"),
        ({"name": "a", "value": "[NaN]", "data_type": "list"}, "value"),
        ({"name": "a", "value": '[{"a": 1, "a": 2}]', "data_type": "list"}, "value"),
        ({"name": "a", "value": "nan", "data_type": "float"}, "value"),
        ({"name": "a", "value": "-Infinity", "data_type": "float"}, "value"),
        ({"name": "a", "value": "1e999", "data_type": "float"}, "value"),
        ({"name": "a", "value": "1_0", "data_type": "integer"}, "value"),
        ({"name": "a", "value": "9" * 5_000, "data_type": "integer"}, "value"),
    ],
)
def test_parameters_that_are_wrong(store: Store, sent: dict[str, Any], field: str) -> None:
    status, body = store.call("POST", "/parameters", sent)
    assert (status, list(body["errors"])) == (422, [field])
    # And nothing of it is there
    assert store.call("GET", "/parameters") == (200, [])


# Integrations

ENDPOINT: dict[str, Any] = {
    "name": "acme",
    "display": "Acme",
    "icon_url": "https://acme.example/icon.png",
    "services": [
        {
            "name": "import",
            "path": "/import",
            "requires": {"parameters": [{"name": "api_key"}]},
            "recommends": {
                "messages": ["order:new"],
                "identifiers": {"number": "payload.order.number"},
                "options": {"retries_allowed": False},
            },
        },
        {
            "name": "poll",
            "path": "/poll",
            "required": True,
            "recommends": {"messages": ["acme:order:poll"], "schedule": {"count": 1, "interval": "hour"}},
        },
    ],
}
INTEGRATION = {"name": "acme", "url": "https://acme.example", "category": "custom"}


@pytest.mark.parametrize(
    "sent",
    [
        {"name": "acme.api_key", "value": "s3cret"},
        {"name": "acme.Password", "value": 12345},
        {"name": "acme.tokens", "value": [{"shop": "s3cret"}]},
        {"name": "acme.login", "value": "s3cret", "data_type": "password"},
    ],
    ids=str,
)
def test_a_secret_parameter_is_never_shown_again_and_survives_being_sent_back(sent: dict[str, Any]) -> None:
    store = Store()
    _, created = store.call("POST", "/parameters", sent)
    assert created["value"] == MASK
    [stored] = store.ports.settings.parameters(PROJECT)
    for method, path in (("PUT", f"/parameters/{created['id']}"), ("POST", "/parameters")):
        status, again = store.call(method, path, created)
        assert (status // 100, again["value"]) == (2, MASK)
        [kept] = store.ports.settings.parameters(PROJECT)
        assert (kept.value, kept.data_type) == (stored.value, stored.data_type)
    status, refused = store.call("POST", "/parameters", {"name": "acme.other_key", "value": MASK})
    assert (status, list(refused["errors"])) == (422, ["value"])


def test_secret_parameters_are_not_shown_in_what_a_service_answered(store: Store) -> None:
    made_mapping(store)
    store.call("POST", "/parameters", {"name": "acme.login", "value": "s3cret", "data_type": "password"})
    returned = [
        {"name": "acme.api_key", "value": "s3cret"},
        {"name": "acme.login", "value": "s3cret"},
        {"name": "acme.since", "value": 7},
        {"name": "acme.other_key", "value": None},
    ]
    store.endpoints[URL] = lambda _: {"parameters": returned}
    incoming = store.push_message()
    store.run(seconds=5)
    _, parent = store.call("GET", f"/messages/{incoming}")
    _, message = store.call("GET", f"/messages/{parent['children'][0]['id']}")
    assert [each["value"] for each in message["result"]["parameters"]] == [MASK, MASK, 7, None]


def tokens(store: Store) -> set[str]:
    """The tokens that services are sent."""
    return {token_of(each, PROJECT, credentials()) for each in store.ports.settings.mappings(PROJECT)}


def test_a_mappings_token_is_never_shown_and_survives_being_sent_back(store: Store) -> None:
    _, created = store.call("POST", "/mappings", {"mapping": MAPPING})
    assert created["token"] == MASK
    status, again = store.call("PUT", f"/mappings/{created['id']}", {"mapping": {**created, "name": "acme.other"}})
    assert (status, again["name"], again["token"]) == (200, "acme.other", MASK)
    # And it stays with the host that it was given for
    status, refused = store.call("PUT", f"/mappings/{created['id']}", {"url": "https://evil.example/in", "token": MASK})
    assert (status, [*refused["errors"]]) == (422, ["token"])
    assert tokens(store) == {MAPPING["token"]}
    status, refused = store.call("POST", "/mappings", {"mapping": created})
    assert (status, list(refused["errors"])) == (422, ["token"])


def endpoint_says(store: Store, body: Any, status: int = 200) -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    store.sender.script("https://acme.example/endpoint.json", Reply(status_code=status, body=raw))


def test_an_integration_describes_itself_and_gets_its_mappings(store: Store) -> None:
    endpoint_says(store, ENDPOINT)
    status, created = store.call("POST", "/integrations", {"integration": {**INTEGRATION, "token": "k" * 32}})
    assert (status, created["state"], created["error_messages"], created["display"]) == (201, "ready", None, "Acme")
    assert created["services"] == ENDPOINT["services"]
    [request] = store.sender.requests
    assert (request.method, request.url) == ("GET", "https://acme.example/endpoint.json")
    by_name = {each["name"]: each for each in store.call("GET", "/mappings")[1]}
    imports, polls = by_name["acme.import"], by_name["acme.poll"]
    assert imports["url"] == "https://acme.example/import"
    assert (created["token"], imports["token"]) == ("k" * 32, MASK)
    assert tokens(store) == {"k" * 32}
    assert imports["messages"] == ["order:new"]
    assert imports["identifiers"] == {"number": "payload.order.number"}
    assert imports["options"]["retries_allowed"] is False
    # The one that needs a parameter waits for sign-up; the required one is enabled and scheduled
    assert (imports["enabled"], polls["enabled"], polls["required"]) == (False, True, True)
    assert [each["key"] for each in store.call("GET", "/schedulers")[1]] == ["acme:order:poll"]
    # Its token is shown when it is made, and never again
    assert store.call("GET", "/integrations")[1] == [{**created, "token": MASK}]
    status, changed = store.call("PUT", f"/integrations/{created['id']}", {"integration": {**created, "token": MASK}})
    assert (status, changed["token"]) == (200, MASK)
    assert tokens(store) == {"k" * 32}
    catalogue: dict[str, Any] = {"global": 1}
    assert store.call("GET", "/integrations", **catalogue)[1] == []


def test_parameters_in_the_query_register_as_the_documentation_shows(store: Store) -> None:
    endpoint_says(store, ENDPOINT)
    query: dict[str, Any] = {f"integration[{key}]": each for key, each in INTEGRATION.items()}
    status, created = store.call("POST", "/integrations", **query)
    assert (status, created["name"], created["category"]) == (201, "acme", "custom")
    # Without a token, one is generated
    assert len(created["token"]) >= 32


TYPED: dict[str, Any] = {
    "name": "acme",
    "services": [
        {
            "name": "import",
            "path": "/import",
            "requires": {
                "parameters": [
                    {"name": "api_key", "data_type": "string"},
                    {"name": "batch", "data_type": "integer"},
                    {"name": "rate", "data_type": "float"},
                    {"name": "live", "data_type": "boolean"},
                    {"name": "lookup", "data_type": "list"},
                    {"name": "note", "data_type": "unheard-of"},
                ]
            },
            "recommends": {"messages": ["order:new"]},
        }
    ],
}


@pytest.mark.parametrize("form", [False, True])
def test_what_a_sign_up_sets_is_of_the_type_that_the_endpoint_declares(store: Store, form: bool) -> None:
    endpoint_says(store, TYPED)
    created = store.call("POST", "/integrations", {"integration": INTEGRATION})[1]
    # Given a value that was previously set as a string
    store.call("POST", "/parameters", {"name": "acme.batch", "value": "7", "data_type": "string"})
    # When somebody signs up, in JSON or with a form, where everything is text
    path = f"/integrations/{created['id']}/signup"
    lookup = [{"standard": "GROUND"}]
    texts = {"api_key": "007", "batch": "10", "rate": "0.5", "live": "true", "note": "n"}
    if form:
        fields = {f"parameters[{name}]": value for name, value in texts.items()}
        fields |= {"parameters[lookup][0][standard]": "GROUND", "enabled[]": "import"}
        status, _ = store.call("POST", path, fields, form=True)
    else:
        status, _ = store.call("POST", path, {"parameters": {**texts, "lookup": lookup}, "enabled": ["import"]})
    assert status == 200
    # Then services get numbers, booleans and lists, and the string that looks like a number stays a string
    store.endpoints["https://acme.example/import"] = lambda _: {}
    store.push_message("order:new")
    store.run(seconds=5)
    [body] = store.asked_at("https://acme.example/import")
    sent = {each["name"].removeprefix("acme."): each["value"] for each in body["payload"]["parameters"]}
    assert sent == {"api_key": "007", "batch": 10, "rate": 0.5, "live": True, "lookup": lookup, "note": "n"}
    assert {each["name"]: each["data_type"] for each in store.call("GET", "/parameters")[1]}["acme.batch"] == "integer"


def test_a_sign_up_with_a_value_of_another_type_changes_nothing(store: Store) -> None:
    endpoint_says(store, TYPED)
    created = store.call("POST", "/integrations", {"integration": INTEGRATION})[1]
    status, body = store.call(
        "POST", f"/integrations/{created['id']}/signup", {"parameters": {"api_key": "k", "batch": "ten", "live": "?"}}
    )
    assert status == 422
    assert body["errors"] == {
        "parameters": ["batch: value is not of the type integer", "live: value is not of the type boolean"]
    }
    assert store.call("GET", "/parameters")[1] == []


def test_enabling_and_disabling_all_mappings_leaves_required_ones_enabled(store: Store) -> None:
    endpoint_says(store, ENDPOINT)
    created = store.call("POST", "/integrations", {"integration": INTEGRATION})[1]
    for action, expected in (("enable", [True, True]), ("disable", [False, True])):
        status, mappings = store.call("GET", f"/integrations/{created['id']}/{action}_mappings")
        assert status == 200
        assert sorted(each["enabled"] for each in mappings) == sorted(expected)


@pytest.mark.parametrize(
    ("body", "status", "reason"), [(b"<html>", 200, "not valid JSON"), (b"", 502, "502"), ({}, 200, "no services")]
)
def test_a_broken_endpoint_stays_pending_with_its_errors_and_is_mended_by_asking_again(
    body: Any, status: int, reason: str
) -> None:
    store = Store()
    endpoint_says(store, body, status)
    created, built = store.call("POST", "/integrations", {"integration": INTEGRATION})
    assert (created, built["state"], built["services"]) == (201, "pending", [])
    assert reason in built["error_messages"][0]
    assert store.call("GET", "/mappings")[1] == []
    endpoint_says(store, ENDPOINT)
    changed, mended = store.call("PUT", f"/integrations/{built['id']}", {"integration": {}})
    assert (changed, mended["state"], mended["error_messages"]) == (200, "ready", None)
    assert len(store.call("GET", "/mappings")[1]) == 2


def test_asking_again_moves_the_mappings_and_keeps_what_their_owner_set(store: Store) -> None:
    endpoint_says(store, ENDPOINT)
    created = store.call("POST", "/integrations", {"integration": INTEGRATION})[1]
    imports = next(each for each in store.call("GET", "/mappings")[1] if each["name"] == "acme.import")
    store.call("PUT", f"/mappings/{imports['id']}", {"mapping": {"messages": ["order:mine"], "enabled": True}})
    store.sender.script(
        "https://new.example/base/endpoint.json", Reply(status_code=200, body=json.dumps(ENDPOINT).encode())
    )
    store.call("PUT", f"/integrations/{created['id']}", {"integration": {"url": "https://new.example/base"}})
    moved = store.call("GET", f"/mappings/{imports['id']}")[1]
    assert (moved["url"], moved["messages"], moved["enabled"]) == (
        "https://new.example/base/import",
        ["order:mine"],
        True,
    )


def test_an_integration_goes_with_its_mappings(store: Store) -> None:
    endpoint_says(store, ENDPOINT)
    created = store.call("POST", "/integrations", {"integration": INTEGRATION})[1]
    other = made_mapping(store)
    assert store.call("DELETE", f"/integrations/{created['id']}")[0] == 200
    assert [each["id"] for each in store.call("GET", "/mappings")[1]] == [other["id"]]
    assert store.call("GET", f"/integrations/{created['id']}")[0] == 404


@pytest.mark.parametrize("before", ["put_mapping", "delete_integration"])
def test_nothing_is_left_of_an_integration_that_is_deleted_while_it_is_described(
    store: Store, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    # Given an integration whose endpoint has come to offer services
    endpoint_says(store, {**ENDPOINT, "services": []})
    created = store.call("POST", "/integrations", {"integration": INTEGRATION})[1]
    endpoint_says(store, ENDPOINT)
    path, settings = f"/integrations/{created['id']}", store.ports.settings
    real = getattr(settings, before)
    requests: list[tuple[str, Any]] = [("PUT", {"integration": {}}), ("DELETE", None)]
    asked, meanwhile = requests if before == "put_mapping" else reversed(requests)

    def called(*given: Any) -> Any:
        monkeypatch.setattr(settings, before, real)
        store.call(meanwhile[0], path, meanwhile[1])
        return real(*given)

    # When it is asked again and deleted at once
    monkeypatch.setattr(settings, before, called)
    store.call(asked[0], path, asked[1])
    # Then neither mappings nor schedulers of it are left
    assert store.call("GET", "/integrations")[1] == []
    assert store.call("GET", "/mappings")[1] == []
    assert store.call("GET", "/schedulers")[1] == []


def before_it(store: Store, monkeypatch: pytest.MonkeyPatch, write: str, then: Callable[[], Any]) -> None:
    """Have something done right before the next write of a kind."""
    settings = store.ports.settings
    real = getattr(settings, write)

    def called(*given: Any) -> Any:
        monkeypatch.setattr(settings, write, real)
        then()
        return real(*given)

    monkeypatch.setattr(settings, write, called)


def test_of_two_integrations_of_one_name_that_are_registered_at_once_one_is_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint_says(store, ENDPOINT)
    first: list[tuple[int, Any]] = []
    # When one is registered after it was looked whether the name of another is free
    before_it(
        store,
        monkeypatch,
        "put_integration",
        lambda: first.append(store.call("POST", "/integrations", {"integration": INTEGRATION})),
    )
    status, body = store.call("POST", "/integrations", {"integration": INTEGRATION})
    # Then it stays, and the other one is refused
    assert (status, body["errors"]) == (422, {"name": ["has already been taken"]})
    [(created, integration)] = first
    assert created == 201
    assert [each["id"] for each in store.call("GET", "/integrations")[1]] == [integration["id"]]
    assert len(store.call("GET", "/mappings")[1]) == 2
    assert len(store.call("GET", "/schedulers")[1]) == 1


def other_integration(store: Store) -> dict[str, str]:
    """Another integration, whose endpoint says the same."""
    other = "https://other.example"
    store.sender.script(f"{other}/endpoint.json", Reply(status_code=200, body=json.dumps(ENDPOINT).encode()))
    return {**INTEGRATION, "name": "other", "url": other}


def test_what_two_endpoints_recommend_at_once_is_scheduled_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint_says(store, ENDPOINT)
    other = other_integration(store)
    # When one is registered after it was looked whether what another recommends is scheduled
    before_it(store, monkeypatch, "put_scheduler", lambda: store.call("POST", "/integrations", {"integration": other}))
    created = store.call("POST", "/integrations", {"integration": INTEGRATION})[1]
    # Then it is scheduled once, and still if one of them is deleted
    assert [each["key"] for each in store.call("GET", "/schedulers")[1]] == ["acme:order:poll"]
    store.call("DELETE", f"/integrations/{created['id']}")
    assert [each["key"] for each in store.call("GET", "/schedulers")[1]] == ["acme:order:poll"]


def test_what_another_endpoint_needs_stays_scheduled_if_one_is_deleted_while_it_is_described(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint_says(store, ENDPOINT)
    other = other_integration(store)

    def deleted() -> None:
        [each] = store.call("GET", "/integrations")[1]
        store.call("DELETE", f"/integrations/{each['id']}")
        # Its scheduler comes late, and is there when another one is registered
        before_it(store, monkeypatch, "integration", registered)

    def registered() -> None:
        assert store.call("POST", "/integrations", {"integration": other})[0] == 201

    # When an integration is deleted right before its scheduler is made, and another one needs that, too
    before_it(store, monkeypatch, "put_scheduler", deleted)
    assert store.call("POST", "/integrations", {"integration": INTEGRATION})[0] == 404
    # Then it is scheduled
    assert [each["key"] for each in store.call("GET", "/schedulers")[1]] == ["acme:order:poll"]


def test_the_schedulers_of_an_integration_stop_with_it(store: Store) -> None:
    # Given two integrations whose services want the same message each hour, and a scheduler of the owner's own
    other = "https://other.example"
    endpoint_says(store, ENDPOINT)
    store.sender.script(f"{other}/endpoint.json", Reply(status_code=200, body=json.dumps(ENDPOINT).encode()))
    acme = store.call("POST", "/integrations", {"integration": INTEGRATION})[1]
    shared = store.call("POST", "/integrations", {"integration": {**INTEGRATION, "name": "other", "url": other}})[1]
    store.call("POST", "/schedulers", {"scheduler": {"key": "mine:poll", "count": 1, "interval": "day"}})
    assert sorted(each["key"] for each in store.call("GET", "/schedulers")[1]) == ["acme:order:poll", "mine:poll"]
    # When one is deleted, the message that the other one needs is still scheduled, once
    store.call("DELETE", f"/integrations/{acme['id']}")
    assert sorted(each["key"] for each in store.call("GET", "/schedulers")[1]) == ["acme:order:poll", "mine:poll"]
    # When both are deleted, only the owner's own scheduler is left
    store.call("DELETE", f"/integrations/{shared['id']}")
    assert [each["key"] for each in store.call("GET", "/schedulers")[1]] == ["mine:poll"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"name": "Acme Inc"}, "name"), ({"name": ""}, "name"), ({"url": "x"}, "url"), ({"category": ""}, "category")],
)
def test_integrations_that_are_wrong(changes: dict[str, str], field: str) -> None:
    status, body = Store().call("POST", "/integrations", {"integration": {**INTEGRATION, **changes}})
    assert (status, list(body["errors"])) == (422, [field])


def test_integrations_are_named_once_and_may_be_refused_by_the_guard(store: Store) -> None:
    endpoint_says(store, ENDPOINT)
    store.call("POST", "/integrations", {"integration": INTEGRATION})
    status, body = store.call("POST", "/integrations", {"integration": INTEGRATION})
    assert (status, body["errors"]) == (422, {"name": ["has already been taken"]})
    store.refusals["http://10.0.0.1"] = "is not a public address"
    status, _ = store.call(
        "POST", "/integrations", {"integration": {**INTEGRATION, "name": "b", "url": "http://10.0.0.1"}}
    )
    assert status == 422
    assert len(store.sender.requests) == 1


def written(store: Store, method: str, path: str, body: str | None = None) -> str:
    """The answer to a request, as it was written."""
    shown = {"X-Augury-Token": store.token}
    answer = store.api.handle(http_event(method, f"/api/stores/{PROJECT}{path}", body, headers=shown))
    assert answer["statusCode"] in (200, 201), answer
    return content_of(answer).decode()


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ('{"name": "a", "value": 19.90}', '"value":19.90,"data_type":"float"'),
        ('{"parameter": {"name": "a", "value": 1.65e+20}}', '"value":1.65e+20,"data_type":"float"'),
        (
            '{"name": "a", "value": 0.10000000000000000555111512}',
            '"value":0.10000000000000000555111512',
        ),
        ('{"name": "a", "value": [{"b": 1.10}, 2]}', '"value":[{"b":1.10},2],"data_type":"list"'),
        ('{"name": "a", "value": -0}', '"value":0,"data_type":"integer"'),
        ('{"name": "a", "value": 5, "x": "-0"}', '"value":5,"data_type":"integer"'),
        ("name=a&value=19.90&data_type=float", '"value":19.90,"data_type":"float"'),
        ("name=a&value=.50&data_type=float", '"value":0.5,"data_type":"float"'),
        ("name=a&value=[1.10]&data_type=list", '"value":[1.10],"data_type":"list"'),
    ],
)
def test_numbers_in_parameters_are_shown_as_they_were_written(store: Store, sent: str, shown: str) -> None:
    for method, body in (("POST", sent), ("GET", None)):
        assert shown in written(store, method, "/parameters", body).replace(" ", "")
