"""Messages of push queues: statuses, acknowledgements, deleting, clearing (IronMQ v3 sections 4.1 and 5)."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.engine.world import PROJECT, World
from tests.fakes import Fault, FaultPlan, Reply
from tests.fakes.large_bodies import large_text
from tests.ironmq.api.hub import OTHER_PROJECT, Hub, Result

from pushhub.base.ports import PushRequest
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.message import NewMessage

A, B, C = "https://a.example/in", "https://b.example/in", "https://c.example/in"


@pytest.fixture
def world() -> World:
    """An engine that pushes."""
    return World()


@pytest.fixture
def hub(world: World) -> Hub:
    """The API in front of that engine."""
    return Hub(world)


def acknowledge(hub: Hub, request: PushRequest, body: Any = None, *, query: bool = True) -> Result:
    """Acknowledge as a subscriber does, with the headers of a push: no token, just the URL."""
    url = urlsplit(request.headers["Iron-Subscriber-Message-Url"])
    path = f"{url.path}?{url.query}" if query else url.path
    return hub.send("DELETE", path, b"" if body is None else json.dumps(body).encode())


def reservation(request: PushRequest) -> dict[str, str]:
    """The body a subscriber acknowledges with."""
    return {
        "reservation_id": request.headers["Iron-Reservation-Id"],
        "subscriber_name": request.headers["Iron-Subscriber-Name"],
    }


def codes(hub: Hub, message_id: str, queue: str = "q") -> list[int | None]:
    return [each.get("status_code") for each in hub.statuses(queue, message_id)]


def seconds_between(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


def test_statuses_exist_before_the_first_try_in_the_order_of_subscribers(hub: Hub) -> None:
    hub.make_push("q", A, B)
    [message_id] = hub.post("q", "x")
    statuses = hub.statuses("q", message_id)
    assert [each.pop("next_try_at").startswith("2026-") for each in statuses] == [True, True]
    untried = {"retries_remaining": 3, "tries": 0, "state": "pending"}
    assert statuses == [
        {"name": f"s{n}", "subscriber_name": f"s{n}", "url": url, **untried} for n, url in enumerate((A, B))
    ]


def test_statuses_of_success_and_failure(hub: Hub, world: World) -> None:
    # Given one healthy subscriber and one that fails
    world.sender.script(B, 500)
    hub.make_push("q", A, B, retries=3, retries_delay=10)
    [message_id] = hub.post("q", "x")
    world.run(seconds=1)
    # Then a success leaves the retries as they were, and so does the first failed try
    good, bad = hub.statuses("q", message_id)
    assert good.pop("last_try_at").startswith("2026-")
    assert good == {
        "name": "s0",
        "subscriber_name": "s0",
        "url": A,
        "retries_remaining": 3,
        "tries": 1,
        "state": "delivered",
        "status_code": 200,
        "msg": "Message was pushed successfully.",
    }
    assert (bad["status_code"], bad["msg"], bad["tries"], bad["retries_remaining"]) == (
        500,
        "Internal Server Error",
        1,
        3,
    )
    assert hub.info("q")["size"] == 1
    # And it shows when the next one is due: ten seconds after the end of the last
    assert bad["state"] == "retrying"
    assert seconds_between(bad["last_try_at"], bad["next_try_at"]) == 10
    # And each retry uses one, until none is left
    seen = []
    for _ in range(3):
        world.run(seconds=10)
        seen.append((hub.statuses("q", message_id)[1]["tries"], hub.statuses("q", message_id)[1]["retries_remaining"]))
    assert seen == [(2, 2), (3, 1), (4, 0)]
    # And nothing waits any more, everything was counted, and the message stays readable
    exhausted = hub.statuses("q", message_id)[1]
    assert (exhausted["state"], "next_try_at" in exhausted) == ("exhausted", False)
    assert (hub.info("q")["size"], hub.info("q")["total_messages"]) == (0, 1)
    message = hub.call("GET", f"/queues/q/messages/{message_id}").body["message"]
    assert (message["id"], message["body"]) == (message_id, "x")
    assert [each["status_code"] for each in message["push_statuses"]] == [200, 500]


def test_a_status_without_an_answer_has_code_zero(hub: Hub, world: World) -> None:
    world.sender.script(A, Reply(error_class="timeout", message="timed out"))
    hub.make_push("q", A)
    [message_id] = hub.post("q", "x")
    world.run(seconds=1)
    [status] = hub.statuses("q", message_id)
    assert (status["status_code"], status["msg"], status["tries"]) == (0, "timed out", 1)


CHANGES = {
    "removed": ("DELETE", [{"name": "s0"}]),
    "replaced": ("PUT", [{"name": "another", "url": C}, {"name": "s1", "url": B}]),
    "moved": ("POST", [{"name": "s0", "url": C}]),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ["multicast", "unicast"])
def test_who_was_asked_stays_known_whatever_became_of_the_subscriber(
    hub: Hub, world: World, change: str, kind: str
) -> None:
    # Given two subscribers that refuse a message for different reasons
    world.sender.script(A, Reply(status_code=501, message="A refuses"))
    world.sender.script(B, Reply(status_code=502, message="B refuses"))
    world.sender.script(C, Reply(status_code=503, message="C refuses"))
    hub.make_push("q", A, B, type=kind, retries=1, retries_delay=10, error_queue="failed")
    [message_id] = hub.post("q", "x")
    world.run(seconds=1)
    # When one of them is removed, replaced, or moved to another URL
    method, subscribers = CHANGES[change]
    assert hub.call(method, "/queues/q/subscribers", {"subscribers": subscribers}).status == 200
    # Then the statuses say who was asked
    asked = [(each["name"], each["url"], each["tries"], each["msg"]) for each in hub.statuses("q", message_id)]
    assert asked == [("s0", A, 1, "A refuses"), ("s1", B, 1, "B refuses")]
    # And when nothing is left to try, who was asked last, with its answer and the number of its tries
    world.run(seconds=60)
    last = ("s0", C, 2, 503, "C refuses") if change == "moved" else ("s0", A, 1, 501, "A refuses")
    reported = [
        (each["name"], each["url"], each["tries"], each["status_code"], each["msg"])
        for each in hub.statuses("q", message_id)
    ]
    assert reported == [last, ("s1", B, 2, 502, "B refuses")]
    errors = [each for error in world.pulled("failed") for each in json.loads(error)["subscribers"]]
    assert sorted((each["name"], each["url"], each["code"], each["msg"]) for each in errors) == [
        (last[0], last[1], last[3], last[4]),
        ("s1", B, 502, "B refuses"),
    ]


def test_subscribers_that_are_replaced_again_and_again_before_they_are_asked_keep_their_names(
    hub: Hub, world: World
) -> None:
    # Given messages that wait for subscribers that are all replaced, with a secret in their URLs
    hub.make_push("q", *(f"https://me:s3cret@{n}.example/in" for n in range(2)), error_queue="failed")
    hub.post("q", "x", delay=5)
    for turn in range(5):
        new = [{"name": f"{turn}-{n}", "url": f"https://{turn}.example/{n}"} for n in range(2)]
        assert hub.call("PUT", "/queues/q/subscribers", {"subscribers": new}).status == 200
        hub.post("q", "x", delay=5)
    world.run(seconds=10)
    # Then each error message names the one that it is about
    answer = [each for error in world.pulled("failed") for each in json.loads(error)["subscribers"]]
    assert {each["name"] for each in answer} == {"s0", "s1"} | {f"{turn}-{n}" for turn in range(4) for n in range(2)}
    assert all(each["url"] for each in answer)
    assert "s3cret" not in json.dumps(answer)


def test_a_renamed_subscriber_keeps_its_deliveries(hub: Hub, world: World) -> None:
    # Given a message that a subscriber refused once
    world.sender.script(A, 500, 200)
    hub.make_push("q", A, B, retries_delay=10)
    [message_id] = hub.post("q", "x")
    world.run(seconds=1)
    # When the list is set again with another name for its URL
    renamed = [{"name": "renamed", "url": A}, {"name": "s1", "url": B}]
    assert hub.call("PUT", "/queues/q/subscribers", {"subscribers": renamed}).status == 200
    world.run(seconds=20)
    # Then it is retried under its new name
    assert [(each["name"], each["tries"], each["status_code"]) for each in hub.statuses("q", message_id)] == [
        ("renamed", 2, 200),
        ("s1", 1, 200),
    ]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("moment", ["reserved", "open"])
def test_the_acknowledgement_of_a_subscriber_that_is_gone_is_taken(
    hub: Hub, world: World, change: str, moment: str
) -> None:
    # Given a subscriber that reserved a message, or is about to, and is then removed, replaced or moved
    method, subscribers = CHANGES[change]

    def leave() -> None:
        hub.call(method, "/queues/q/subscribers", {"subscribers": subscribers})

    def acknowledge_while_open(request: PushRequest) -> None:
        leave()
        assert acknowledge(hub, request, reservation(request), query=False).status == 200

    script = acknowledge_while_open if moment == "open" else None
    world.sender.script(A, Reply(status_code=202, meanwhile=script))
    hub.make_push("q", A, B)
    [message_id] = hub.post("q", "x")
    world.run(seconds=1)
    request = world.sender.requests_to(A)[0]
    if moment == "reserved":
        leave()
        # When it acknowledges by its name, without a token
        wrong = {**reservation(request), "subscriber_name": "nobody"}
        assert acknowledge(hub, request, wrong, query=False).status == 403
        assert acknowledge(hub, request, reservation(request), query=False).status == 200
    # Then it is acknowledged
    assert codes(hub, message_id)[0] == 200
    assert DeliveryState.ACKNOWLEDGED in {each.state for each in world.deliveries(message_id)}


def test_subscribers_of_one_name_acknowledge_each_for_itself(hub: Hub, world: World) -> None:
    # Given two subscribers of one name, and two reservations
    for url in (A, B):
        world.sender.script(url, 202)
    hub.make("q", push={"subscribers": [{"name": "s", "url": A}, {"name": "s", "url": B}]})
    [message_id] = hub.post("q", "x")
    world.run(seconds=1)
    [request] = world.sender.requests_to(B)
    # When the second acknowledges, then the first still has to
    assert acknowledge(hub, request, reservation(request), query=False).status == 200
    assert codes(hub, message_id) == [202, 200]


def test_a_message_that_expires_while_it_is_tried_is_in_the_error_queue(hub: Hub, world: World) -> None:
    # Given a message that lives for a minute, which one subscriber takes, one refuses, and one lets lapse
    world.sender.script(A, 200)
    world.sender.script(B, Reply(status_code=500, message="not now"))
    world.sender.script(C, 202)
    hub.make("q", message_expiration=60)
    hub.call("DELETE", "/queues/q")
    subscribers = [{"name": f"s{n}", "url": url} for n, url in enumerate((A, B, C))]
    hub.make(
        "q",
        message_expiration=60,
        push={"subscribers": subscribers, "retries": 100, "retries_delay": 50, "error_queue": "failed"},
    )
    [message_id] = hub.post("q", "x")
    world.run(seconds=200)
    # Then it is in the error queue for those that did not accept it, with the reason
    errors = [json.loads(each) for each in world.pulled("failed")]
    assert [(each["source_msg_id"], each["reason"], each["body"]) for each in errors] == [
        (message_id, "expired", "x")
    ] * 2
    reported = sorted((each["code"], each["msg"]) for error in errors for each in error["subscribers"])
    assert reported == [(202, "Not acknowledged in time"), (500, "not now")]
    # And its statuses say so, while the message itself is gone
    statuses = [(each.get("status"), each["msg"], each["retries_remaining"]) for each in hub.statuses("q", message_id)]
    assert statuses[1:] == [("expired", "not now", 0), ("expired", "Not acknowledged in time", 0)]
    assert statuses[0][0] is None
    for method in ("GET", "DELETE"):
        assert hub.call(method, f"/queues/q/messages/{message_id}").msg == "Message not found"


def test_a_message_that_expires_before_it_is_pushed_says_so(hub: Hub, world: World) -> None:
    hub.make_push("q", A, error_queue="failed")
    hub.call("PATCH", "/queues/q", {"queue": {"message_expiration": 60}})
    [message_id] = hub.post("q", "x")
    world.dispatch_only()
    world.clock.advance(seconds=61)
    world.run(seconds=5)
    [status] = hub.statuses("q", message_id)
    assert (status["status"], status["msg"], status["tries"]) == ("expired", "Message expired before it was pushed", 0)
    [error] = world.pulled("failed")
    assert json.loads(error)["subscribers"][0]["msg"] == "Message expired before it was pushed"
    assert world.sender.requests == []


def test_pull_queues_have_no_statuses(hub: Hub) -> None:
    [message_id] = hub.post("pull", "x")
    assert hub.call("GET", f"/queues/pull/messages/{message_id}/subscribers").status == 400


def test_messages_of_push_queues_cannot_be_reserved(hub: Hub) -> None:
    hub.make_push("q", A)
    [message_id] = hub.post("q", "x")
    assert hub.call("POST", "/queues/q/reservations", {}).status == 400
    for action in ("touch", "release"):
        path = f"/queues/q/messages/{message_id}/{action}"
        assert hub.call("POST", path, {"reservation_id": "r"}).status == 400


def test_peeking_into_a_push_queue_shows_what_waits(hub: Hub, world: World) -> None:
    world.sender.script(A, 500)
    hub.make_push("q", A, B)
    first, second = hub.post("q", "a", "b")
    assert hub.call("GET", "/queues/q/messages").body == {"messages": []}
    world.run(seconds=1)
    shown = hub.call("GET", "/queues/q/messages?n=10").body["messages"]
    assert [(each["id"], each["body"]) for each in shown] == [(first, "a"), (second, "b")]
    assert len(hub.call("GET", "/queues/q/messages").body["messages"]) == 1


def test_peeking_into_a_push_queue_shows_as_much_as_fits(hub: Hub, world: World) -> None:
    # Given large messages that wait, each of characters that take more room in an answer
    hub.make_push("q", A)
    world.sender.script(A, 500)
    for letter in "abcd":
        hub.post("q", letter + "é" * 700_000)
    world.run(seconds=5)
    # Then as many as fit into one answer are shown, oldest first
    shown = hub.call("GET", "/queues/q/messages?n=100").body["messages"]
    assert [each["body"][0] for each in shown] == ["a", "b", "c"]


def test_peeking_into_a_push_queue_leaves_out_what_fits_only_compressed(hub: Hub, world: World) -> None:
    # Given a message that waits and fits only into a compressed answer
    hub.make_push("q", A)
    world.sender.script(A, 500)
    unanswerable = b"\x01" * 2_000_000
    hub.send("POST", f"/3/projects/{PROJECT}/queues/q/webhook", unanswerable, token=hub.token)
    world.run(seconds=5)
    # Then a client without gzip is refused only while there is nothing else to show
    assert hub.call("GET", "/queues/q/messages?n=5").status == 406
    hub.post("q", "a")
    world.run(seconds=5)
    assert [each["body"] for each in hub.call("GET", "/queues/q/messages?n=5").body["messages"]] == ["a"]
    shown = hub.call("GET", "/queues/q/messages?n=5", headers={"Accept-Encoding": "gzip"}).body["messages"]
    assert [each["body"].encode() for each in shown] == [unanswerable]


@pytest.mark.parametrize("how", ["body", "query", "both", "body without name", "token and body"])
def test_acknowledging_a_202(hub: Hub, world: World, how: str) -> None:
    # Given a subscriber that answered 202
    world.sender.script(A, 202)
    hub.make_push("q", A, B, retries_delay=60)
    [message_id] = hub.post("q", "x")
    world.run(seconds=1)
    assert codes(hub, message_id) == [202, 200]
    [request] = world.sender.requests_to(A)
    # When it acknowledges, without a token or with one
    if how == "token and body":
        result = hub.call("DELETE", f"/queues/q/messages/{message_id}", reservation(request))
    elif how == "query":
        result = acknowledge(hub, request)
    else:
        body: dict[str, str] = {**reservation(request), "id": message_id}
        if how == "body without name":
            del body["subscriber_name"]
        result = acknowledge(hub, request, body, query=how == "both")
    # Then it is done: status 200, and no further push
    assert (result.status, result.body) == (200, {"msg": "Deleted"})
    assert codes(hub, message_id) == [200, 200]
    world.run(seconds=600)
    assert len(world.sender.requests_to(A)) == 1
    # And repeating it changes nothing
    assert acknowledge(hub, request).status == 200


def test_acknowledging_while_the_push_is_open(hub: Hub, world: World) -> None:
    # Given a subscriber that acknowledges before it answers
    answers: list[Result] = []
    world.sender.script(A, Reply(status_code=202, meanwhile=lambda request: answers.append(acknowledge(hub, request))))
    hub.make_push("q", A, retries_delay=10)
    [message_id] = hub.post("q", "x")
    world.run(seconds=100)
    # Then the acknowledgement counts, and it is not pushed again
    assert [each.status for each in answers] == [200]
    assert codes(hub, message_id) == [200]
    assert hub.statuses("q", message_id)[0]["tries"] == 1
    assert len(world.sender.requests) == 1


def test_acknowledging_in_unicast(hub: Hub, world: World) -> None:
    # Given a unicast queue whose first subscriber fails and whose second answers 202, whichever is asked first
    hub.make_push("q", A, B, type="unicast", retries_delay=60)
    world.sender.script(A, 500)
    world.sender.script(B, 202)
    [message_id] = hub.post("q", "x")
    world.run(seconds=1)
    [request] = world.sender.requests_to(B)
    # When the second acknowledges, under its own name only
    wrong = {**reservation(request), "subscriber_name": "s0"}
    assert acknowledge(hub, request, wrong, query=False).status == 403
    assert acknowledge(hub, request, reservation(request), query=False).status == 200
    # Then the message is done
    world.run(seconds=600)
    assert len(world.sender.requests_to(B)) == 1
    assert codes(hub, message_id)[1] == 200
    [delivery] = world.deliveries(message_id)
    assert delivery.state is DeliveryState.ACKNOWLEDGED


def test_a_late_acknowledgement_is_refused(hub: Hub, world: World) -> None:
    world.sender.script(A, 202)
    hub.make_push("q", A, retries_delay=10, retries=1)
    [message_id] = hub.post("q", "x")
    world.run(seconds=1)
    [first] = world.sender.requests
    # When the reservation has lapsed and the message was pushed again
    world.run(seconds=11)
    assert len(world.sender.requests) == 2
    # Then the first reservation is superseded, with or without a token, and the second is good
    assert acknowledge(hub, first).status == 403
    assert hub.call("DELETE", f"/queues/q/messages/{message_id}", reservation(first)).status == 403
    assert acknowledge(hub, world.sender.requests[1]).status == 200


def test_without_a_token_only_a_message_that_is_there_can_refuse(hub: Hub, world: World) -> None:
    # Given a reserved push, a pull queue with a reserved message, and a message that is gone
    world.sender.script(A, 202)
    hub.make_push("q", A)
    [message_id] = hub.post("q", "x")
    world.run(seconds=1)
    [request] = world.sender.requests
    hub.post("pull", "y")
    [reserved] = hub.reserve("pull")
    good, wrong = request.headers["Iron-Reservation-Id"], "0" * 32
    refused: list[tuple[str, str, str, dict[str, Any]]] = [
        (PROJECT, "q", message_id, {"reservation_id": wrong}),
        (PROJECT, "q", message_id, {"reservation_id": wrong, "subscriber_name": "s0"}),
        (PROJECT, "q", message_id, {"reservation_id": good, "subscriber_name": "nobody"}),
        (PROJECT, "q", message_id, {"reservation_id": "é"}),
    ]
    unknown: list[tuple[str, str, str, dict[str, Any]]] = [
        (PROJECT, "q", "1234567890123456789", {"reservation_id": good}),
        (PROJECT, "q", "abc", {"reservation_id": good}),
        (PROJECT, "none", message_id, {"reservation_id": good}),
        (PROJECT, "pull", reserved["id"], {"reservation_id": reserved["reservation_id"]}),
        (OTHER_PROJECT, "q", message_id, {"reservation_id": good}),
        ("nonsense", "q", message_id, {"reservation_id": good}),
    ]
    for attempts, expected in (
        (refused, (403, "Reservation has timed out")),
        (unknown, (404, "Message not found")),
    ):
        # When requests without a token present something that is no valid reservation
        answers = {
            (result.status, result.msg)
            for project, queue, message, body in attempts
            for result in [
                hub.send(
                    "DELETE", f"/3/projects/{project}/queues/{queue}/messages/{message}", json.dumps(body).encode()
                )
            ]
        }
        # Then anything but a push looks like a missing message, and nothing happened
        assert answers == {expected}
    assert codes(hub, message_id) == [202]
    assert hub.info("pull")["size"] == 1


@pytest.mark.parametrize("body", [b"", b"{}", b'{"subscriber_name": "s0"}', b'{"reservation_id": ""}', b"[["])
def test_without_a_token_and_without_a_reservation_it_is_401(hub: Hub, body: bytes) -> None:
    assert hub.send("DELETE", f"/3/projects/{PROJECT}/queues/q/messages/1", body).status == 401


def test_a_foreign_authorization_header_does_not_spoil_an_acknowledgement(hub: Hub, world: World) -> None:
    world.sender.script(A, 202)
    hub.make_push("q", A)
    hub.post("q", "x")
    world.run(seconds=1)
    url = urlsplit(world.sender.requests[0].headers["Iron-Subscriber-Message-Url"])
    result = hub.send("DELETE", f"{url.path}?{url.query}", headers={"Authorization": "Basic dTpw"})
    assert result.status == 200


def test_acknowledging_with_a_token(hub: Hub, world: World) -> None:
    world.sender.script(A, 202)
    hub.make_push("q", A)
    [message_id] = hub.post("q", "x")
    world.run(seconds=1)
    path = f"/queues/q/messages/{message_id}"
    assert hub.call("DELETE", path, {"reservation_id": "0" * 32, "subscriber_name": "s0"}).status == 403
    nameless = hub.call("DELETE", path, {"subscriber_name": "s0"})
    assert (nameless.status, nameless.msg) == (400, "A reservation_id is required")
    missing = hub.call("DELETE", "/queues/q/messages/1", reservation(world.sender.requests[0]))
    assert (missing.status, missing.msg) == (404, "Message not found")
    # in a batch, one wrong reservation acknowledges none
    batch = [{"id": message_id, **reservation(world.sender.requests[0])}, {"id": "1"}]
    assert hub.call("DELETE", "/queues/q/messages", {"ids": batch}).status == 404
    assert codes(hub, message_id) == [202]
    assert hub.call("DELETE", "/queues/q/messages", {"ids": batch[:1]}).status == 200
    assert codes(hub, message_id) == [200]


def test_queue_names_with_reserved_characters_acknowledge_through_their_urls(hub: Hub, world: World) -> None:
    world.sender.script(A, 202)
    hub.make_push("a%20b%2Bc%3Ad", A)
    hub.post("a%20b%2Bc%3Ad", "x")
    world.run(seconds=1)
    assert acknowledge(hub, world.sender.requests[0]).status == 200


def test_deleting_stops_further_pushes(hub: Hub, world: World) -> None:
    # Given a message that one subscriber has and another refuses
    world.sender.script(B, 500)
    hub.make_push("q", A, B, retries_delay=10)
    [message_id] = hub.post("q", "x")
    world.run(seconds=1)
    assert hub.info("q")["size"] == 1
    # When it is deleted
    path = f"/queues/q/messages/{message_id}"
    assert hub.call("DELETE", path).body == {"msg": "Deleted"}
    # Then it is not pushed again and no longer there
    world.run(seconds=100)
    assert len(world.sender.requests_to(B)) == 1
    for gone in (hub.call("GET", path), hub.call("GET", f"{path}/subscribers"), hub.call("DELETE", path)):
        assert (gone.status, gone.msg) == (404, "Message not found")
    assert hub.info("q")["size"] == 0


def test_deleting_while_a_push_is_open(hub: Hub, world: World) -> None:
    # Given a subscriber that fails, and an owner who deletes during the push
    deleted: list[int] = []

    def delete(request: PushRequest) -> None:
        path = f"/queues/q/messages/{request.headers['Iron-Message-Id']}"
        deleted.append(hub.call("DELETE", path).status)

    world.sender.script(A, Reply(status_code=500, meanwhile=delete))
    hub.make_push("q", A, retries_delay=10)
    hub.post("q", "x")
    world.run(seconds=100)
    assert deleted == [200]
    assert len(world.sender.requests) == 1


@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize("answer", [200, 500])
@pytest.mark.parametrize("batch", [False, True])
def test_deleting_what_was_delivered_or_given_up_takes_it_away_with_its_body(
    hub: Hub, world: World, size: int, answer: int, batch: bool
) -> None:
    # Given two settled messages of one post, with bodies in the table or in the bodies bucket
    world.sender.script(A, answer)
    hub.make_push("q", A, retries=0, error_queue="failed")
    bodies = ("x", "y") if size == 1 else (large_text(size), large_text(size, seed=1))
    first, second = hub.post("q", *bodies)
    world.run(seconds=5)
    before = world.messages.all_deliveries()
    # When one is deleted
    path = f"/queues/q/messages/{first}"
    if batch:
        assert hub.call("DELETE", "/queues/q/messages", {"ids": [first]}).msg == "Deleted"
    else:
        assert hub.call("DELETE", path).msg == "Deleted"
    # Then it is gone for everybody
    for gone in (hub.call("GET", path), hub.call("GET", f"{path}/subscribers"), hub.call("DELETE", path)):
        assert (gone.status, gone.msg) == (404, "Message not found")
    # And its bytes are nowhere except in the error queue, while those of the other are intact
    deleted, other = (each.encode() for each in bodies)
    assert not any(each.body == deleted for each in world.messages.all_messages())
    if size > 1:
        assert sum(each.count(deleted) for each in world.bodies.objects.values()) == (answer == 500)
        assert sum(each.count(other) for each in world.bodies.objects.values()) == 1 + (answer == 500)
    assert hub.call("GET", f"/queues/q/messages/{second}").body["message"]["body"] == bodies[1]
    # And its outcome stays on record
    assert world.messages.all_deliveries() == before


def test_a_message_the_hub_made_is_not_made_again_once_its_owner_deleted_it(hub: Hub, world: World) -> None:
    # Given a push queue that got a message from another queue, and an owner who deleted it there
    hub.make_push("target", A)
    hub.make_push("q", "ironmq:///target")
    hub.post("q", "x")
    world.run(seconds=1)
    [created] = [each for each in world.messages.all_messages() if each.queue == "target"]
    assert hub.call("DELETE", f"/queues/target/messages/{created.message_id}").status == 200
    # When it is made again for the same cause, as after a crash
    assert created.cause is not None
    again = world.queue_intake.post_caused(
        PROJECT, "target", NewMessage(body=b"x"), cause=created.cause, at=_made_at(world)
    )
    # Then it stays deleted, and nobody gets it again
    assert again == created.message_id
    world.run(seconds=1)
    assert hub.call("GET", f"/queues/target/messages/{again}").status == 404
    assert len(world.sender.requests_to(A)) == 1


def _made_at(world: World) -> int:
    return next(each.accepted_at for each in world.messages.all_messages() if each.queue == "q")


def test_deleting_what_is_about_to_be_told_to_the_error_queue_ends_it(hub: Hub, world: World) -> None:
    # Given a message that was given up, and an owner who deletes it before the error message was posted
    hub.make_push("q", A, retries=0, error_queue="failed")
    world.sender.script(A, 500)
    [message_id] = hub.post("q", "x")
    world.dispatch_only()
    [received] = world.push_queue.receive()
    world.push.run([received], source=world.push_queue, remaining_ms=lambda: 10**6)
    world.push_queue.delete(received.receipt_handle)
    assert hub.call("DELETE", f"/queues/q/messages/{message_id}").status == 200
    world.run(seconds=5)
    # Then the errors function is done with it
    assert len(world.errors_queue) == 0
    assert world.pulled("failed") == []


@pytest.mark.parametrize("call", ["messages.save", "bodies.erase", "messages.delete"])
@pytest.mark.parametrize("fault", [Fault.FAILS, Fault.TIMES_OUT])
def test_a_deletion_that_failed_half_way_is_finished_by_the_next(call: str, fault: Fault) -> None:
    # Given a message that waits for its retry, and a deletion that fails at one of its steps
    plan = FaultPlan(fault, of=call, at=2 if call == "messages.save" else 1)
    world = World()
    hub = Hub(world)
    world.sender.script(A, 500)
    hub.make_push("q", A, B, retries_delay=10)
    world.sender.script(B, 500)
    [message_id] = hub.post("q", large_text(10_000))
    world.run(seconds=1)
    path = f"/queues/q/messages/{message_id}"
    assert hub.struck(plan, "messages", "bodies").call("DELETE", path).status == 500
    assert plan.struck
    # When it is repeated, then the message is gone with its body, and no longer pushed
    assert hub.call("DELETE", path).status in (200, 404)
    assert hub.call("GET", path).status == 404
    assert not any(b"xxx" in each for each in world.bodies.objects.values())
    world.run(seconds=100)
    assert len(world.sender.requests) == 2


def test_clearing_a_push_queue(hub: Hub, world: World) -> None:
    # Given a message that waits for its retry and one that was not tried yet
    world.sender.script(A, 500)
    hub.make_push("q", A, retries_delay=10)
    [waiting] = hub.post("q", "x")
    world.run(seconds=1)
    [delayed] = hub.post("q", "y", delay=5)
    # When the queue is cleared
    assert hub.call("DELETE", "/queues/q/messages", {}).body == {"msg": "Cleared"}
    # Then nothing waits, both are gone, and neither is pushed again
    assert hub.info("q")["size"] == 0
    for message_id in (waiting, delayed):
        assert hub.call("GET", f"/queues/q/messages/{message_id}").status == 404
    world.run(seconds=100)
    assert len(world.sender.requests) == 1
    # And what is posted in the very same moment is pushed
    hub.call("DELETE", "/queues/q/messages", {})
    world.sender.script(A, 200)
    [later] = hub.post("q", "z")
    world.run(seconds=1)
    assert codes(hub, later) == [200]


def test_an_error_message_leads_back_to_the_original(hub: Hub, world: World) -> None:
    world.sender.script(A, 301)
    hub.make_push("q", A, retries=0, error_queue="Test error")
    [message_id] = hub.post("q", "x", push_headers={"X-Custom": "1"})
    assert hub.call("GET", "/queues/Test%20error").status == 404
    world.run(seconds=5)
    [error] = hub.reserve("Test%20error")
    fields = json.loads(error["body"])
    assert fields["source_msg_id"] == message_id
    assert fields["headers"] == {"X-Custom": "1"}
    assert fields["subscribers"][0]["code"] == 301
    assert hub.call("GET", f"/queues/q/messages/{fields['source_msg_id']}").body["message"]["body"] == "x"
    assert hub.info("Test%20error")["total_messages"] == 1


def test_a_peek_shows_as_many_messages_as_wait_however_many_subscribers_each_fails_at(hub: Hub, world: World) -> None:
    # Given 70 messages that fail at three subscribers
    hub.make_push("q", A, A, A, retries=3, retries_delay=3600)
    world.sender.script(A, *(250 * [500]))
    ids = hub.post("q", *map(str, range(70)))
    world.run(seconds=60)
    assert hub.info("q")["size"] == 210
    # Then a peek shows them all, and after a clear what fails then
    peek = hub.call("GET", "/queues/q/messages?n=100")
    assert [each["id"] for each in peek.body["messages"]] == ids
    hub.call("DELETE", "/queues/q/messages", {})
    world.run(seconds=60)
    [new] = hub.post("q", "new")
    world.run(seconds=60)
    assert [each["id"] for each in hub.call("GET", "/queues/q/messages?n=100").body["messages"]] == [new]


def ordered(hub: Hub, *bodies: str, key: str = "k") -> list[str]:
    return hub.post("q", *bodies, ordering_key=key)


def test_what_is_deleted_or_acknowledged_lets_the_next_of_its_key_go_at_once(hub: Hub, world: World) -> None:
    # Given a message that waits for an hour, one that is reserved for an hour, and a third, all of one key
    world.sender.script(A, 500, 202, 200)
    hub.make_push("q", A, retries=3, retries_delay=3600)
    first, _, _ = ordered(hub, "1", "2", "3")
    world.run(seconds=5)
    assert [each.body for each in world.sender.requests] == [b"1"]
    # When the first is deleted, and the second is acknowledged
    assert hub.call("DELETE", f"/queues/q/messages/{first}").status == 200
    world.run(seconds=5)
    assert [each.body for each in world.sender.requests] == [b"1", b"2"]
    assert acknowledge(hub, world.sender.requests[1]).status == 200
    world.run(seconds=5)
    # Then nothing waits for the hour
    assert [each.body for each in world.sender.requests] == [b"1", b"2", b"3"]


@pytest.mark.parametrize("oldest_first", [True, False])
def test_who_is_deleted_while_it_waits_lets_nobody_overtake_those_before_it(
    hub: Hub, world: World, oldest_first: bool
) -> None:
    # Given a message that fails and is tried again in a minute, and three that wait behind it
    world.sender.script(A, 500, 200)
    hub.make_push("q", A, retries=3, retries_delay=60)
    _, second, third, _ = ordered(hub, "1", "2", "3", "4")
    world.run(seconds=5)
    # When the next two are deleted
    for each in (second, third) if oldest_first else (third, second):
        assert hub.call("DELETE", f"/queues/q/messages/{each}").status == 200
    world.run(seconds=5)
    # Then the last one waits for the first, as does what is posted now
    ordered(hub, "5")
    world.run(seconds=30)
    assert [each.body for each in world.sender.requests] == [b"1"]
    world.run(seconds=60)
    assert [each.body for each in world.sender.requests] == [b"1", b"1", b"4", b"5"]


@pytest.mark.parametrize("key", ["a b", "\u00e9", "x" * 257, 1, ["k"]])
def test_an_ordering_key_that_is_none_is_refused(hub: Hub, key: object) -> None:
    hub.make_push("q", A)
    refused = hub.call("POST", "/queues/q/messages", {"messages": [{"body": "x", "ordering_key": key}]})
    assert refused.status == 400
    assert "ordering_key" in refused.msg


def test_an_empty_ordering_key_is_none_and_a_pull_queue_needs_none(hub: Hub, world: World) -> None:
    hub.make_push("q", A)
    ordered(hub, "1", key="")
    world.run(seconds=1)
    assert [each.body for each in world.sender.requests] == [b"1"]
    assert len(hub.post("pulled", "1", ordering_key="k")) == 1
