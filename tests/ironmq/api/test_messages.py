"""Messages of pull queues: post, webhook, reserve, peek, get, touch, release, delete, clear (IronMQ v3, M1 to M10)."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.fakes import Fault, FaultPlan
from tests.fakes.large_bodies import large_text
from tests.ironmq.api.hub import Hub

from pushhub.base.errors import Unavailable
from pushhub.engine.model.message import BodyRef


def delete(hub: Hub, message_id: str, body: Any = None) -> tuple[int, str]:
    result = hub.call("DELETE", f"/queues/q/messages/{message_id}", body)
    return result.status, result.msg


def test_posting_answers_201_with_ids_in_order(hub: Hub) -> None:
    # When messages are posted to a queue that does not exist
    messages = [{"body": f"m{number}"} for number in range(100)]
    result = hub.call("POST", "/queues/q/messages", {"messages": messages})
    # Then a pull queue is created and holds them in order
    assert result.status == 201
    assert result.body["msg"] == "Messages put on queue."
    assert set(result.body) == {"ids", "msg"}
    ids = result.body["ids"]
    assert all(re.fullmatch(r"[0-9]{19}", each) and int(each) < 2**63 for each in ids)
    assert len(set(ids)) == 100
    reserved = hub.reserve("q", n=100)
    assert [(each["id"], each["body"]) for each in reserved] == [
        (message_id, f"m{number}") for number, message_id in enumerate(ids)
    ]
    assert hub.info("q")["type"] == "pull"


@pytest.mark.parametrize(
    "message",
    [
        {"body": "x", "delay": 604_800},
        {"body": "x", "delay": 0},
        {"body": "x", "delay": None, "push_headers": None},
        {"body": "x", "push_headers": {}},
        {"body": "x", "push_headers": {f"X-{number}": "v" * 1024 for number in range(5)}},
        {"body": "x", "push_headers": {"X" * 64: "v"}},
        {"body": "x", "push_headers": {"Authentication": "the token"}},
        {"body": "x", "push_headers": {"User-Agent": "Mine/1.0", "content-type": "application/json"}},
        {"body": "x", "timeout": 60, "expires_in": 3600, "reserved_count": 0, "id": None},
    ],
    ids=lambda each: str(each)[:60],
)
def test_messages_taken(hub: Hub, message: dict[str, Any]) -> None:
    assert hub.call("POST", "/queues/q/messages", {"messages": [message]}).status == 201


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"body": None},
        {"body": 1},
        {"body": {"a": 1}},
        {"body": ["x"]},
        "x",
        None,
        {"body": "x", "delay": -1},
        {"body": "x", "delay": 604_801},
        {"body": "x", "delay": "10"},
        {"body": "x", "delay": 1.5},
        {"body": "x", "delay": True},
        {"body": "x", "push_headers": []},
        {"body": "x", "push_headers": {f"X-{number}": "v" for number in range(6)}},
        {"body": "x", "push_headers": {"": "v"}},
        {"body": "x", "push_headers": {"X" * 65: "v"}},
        {"body": "x", "push_headers": {"X": ""}},
        {"body": "x", "push_headers": {"X": "v" * 1025}},
        {"body": "x", "push_headers": {"X": 1}},
        {"body": "x", "push_headers": {"X": None}},
        {"body": "x", "push_headers": {"X": "a\r\nb"}},
        {"body": "x", "push_headers": {"X": "a\nb"}},
        {"body": "x", "push_headers": {"X": "漢"}},
        {"body": "x", "push_headers": {"X\r\nY": "v"}},
        {"body": "x", "push_headers": {"X": "1", "x": "2"}},
        *(
            {"body": "x", "push_headers": {name: "v"}}
            for name in (
                "Iron-Message-Id",
                "Iron-Reservation-Id",
                "IRON-SUBSCRIBER-NAME",
                "Iron-Subscriber-Message-Url",
                "Pushhub-Hops",
                "pushhub-descendants",
                "Host",
                "Content-Length",
            )
        ),
    ],
    ids=lambda each: str(each)[:60],
)
def test_messages_refused(hub: Hub, message: Any) -> None:
    # When one of two messages breaks a rule
    result = hub.call("POST", "/queues/q/messages", {"messages": [{"body": "good"}, message]})
    # Then neither is stored, and no queue is created
    assert result.status == 400
    assert hub.call("GET", "/queues").body == {"queues": []}


@pytest.mark.parametrize(
    "body", [{}, {"messages": []}, {"messages": None}, {"messages": {}}, {"messages": "x"}], ids=str
)
def test_posts_without_messages(hub: Hub, body: Any) -> None:
    assert hub.call("POST", "/queues/q/messages", body).status == 400


def test_at_most_a_hundred_messages_are_posted_at_once(hub: Hub) -> None:
    assert hub.call("POST", "/queues/q/messages", {"messages": [{"body": ""}] * 101}).status == 400


def test_messages_expire_counted_from_when_they_are_due(hub: Hub) -> None:
    hub.make("q", message_expiration=60)
    hub.post("q", "delayed", delay=60)
    hub.post("q", "now")
    hub.world.clock.advance(seconds=60)
    assert [each["body"] for each in hub.reserve("q", n=10, timeout=1)] == ["delayed"]
    hub.world.clock.advance(seconds=60)
    assert hub.reserve("q", n=10) == []
    assert hub.info("q")["size"] == 0


def test_a_webhook_keeps_any_bytes_and_makes_the_queue(hub: Hub) -> None:
    # When bytes that are not UTF-8 are posted, with the token in the query as third parties do
    path = f"/3/projects/{PROJECT}/queues/q/webhook?oauth={hub.token}"
    result = hub.send("POST", path, b"\xff\x00raw", {"Content-Type": "application/octet-stream"})
    # Then the answer is that of a post
    assert result.status == 201
    [message_id] = result.body["ids"]
    assert result.body["msg"] == "Messages put on queue."
    # And the bytes can be read exactly, through our addition
    message = hub.call("GET", f"/queues/q/messages/{message_id}").body["message"]
    assert message["body"] == "\ufffd\x00raw"
    assert base64.b64decode(message["body_base64"]) == b"\xff\x00raw"


@pytest.mark.parametrize(("given", "hops"), [("4", 4), ("", 0), ("-1", 0), ("x", 0), ("1" * 30, 0), ("٣", 0)])
def test_a_webhook_knows_how_far_a_message_has_come(hub: Hub, given: str, hops: int) -> None:
    hub.make_push("q", "https://a.example/in")
    path = f"/3/projects/{PROJECT}/queues/q/webhook?oauth={hub.token}"
    hub.send("POST", path, b"x", {"Pushhub-Hops": given})
    [message] = hub.world.messages.take_inserted()
    assert message.hops == hops


def test_a_webhook_does_not_read_its_body(hub: Hub) -> None:
    body = b'{"oauth": "x", "oauth": [[['
    path = f"/3/projects/{PROJECT}/queues/q/webhook"
    assert hub.send("POST", path, body, token=hub.token).status == 201
    assert hub.send("POST", path, b"", token=hub.token).status == 201
    assert [each["body"] for each in hub.reserve("q", n=2)] == [body.decode(), ""]


def test_webhook_headers_become_push_headers_and_bad_ones_are_ignored(hub: Hub) -> None:
    hub.make_push("q", "https://a.example/in")
    headers = {
        "X-Subscribers-X-Custom": "1",
        "X-Subscribers-Content-Type": "text/csv",
        "X-Subscribers-User-Agent": "Mine/1.0",
        "X-Subscribers-": "no",
        "X-Subscribers-X-Empty": "",
        "X-Subscribers-X-Bad": "a\nb",
        "X-Subscribers-X-Other": "2",
        "X-Other": "no",
        "Content-Type": "text/xml",
    }
    hub.send("POST", f"/3/projects/{PROJECT}/queues/q/webhook", b"<x/>", headers, token=hub.token)
    [message] = hub.world.messages.all_messages()
    assert message.headers == {
        "x-custom": "1",
        "content-type": "text/csv",
        "user-agent": "Mine/1.0",
        "x-other": "2",
    }


@pytest.mark.parametrize("name", ["Host", "Iron-Message-Id", "Pushhub-Hops", "Transfer-Encoding"])
def test_a_webhook_is_refused_for_a_reserved_header_by_its_name(hub: Hub, name: str) -> None:
    hub.make_push("q", "https://a.example/in")
    path, headers = f"/3/projects/{PROJECT}/queues/q/webhook", {f"X-Subscribers-{name}": "v"}
    result = hub.send("POST", path, b"x", headers, token=hub.token)
    assert (result.status, result.msg) == (400, f"Push header {name.lower()} cannot be set")
    assert hub.world.messages.all_messages() == []


def test_a_reservation(hub: Hub) -> None:
    # Given two messages
    first, second = hub.post("q", "a", "b")
    # When one is reserved
    [message] = hub.reserve("q")
    # Then it comes with its reservation, and the other is next
    assert re.fullmatch(r"[0-9a-f]{32}", message.pop("reservation_id"))
    assert message == {"id": first, "body": "a", "reserved_count": 1}
    assert [each["id"] for each in hub.reserve("q", n=5)] == [second]
    assert hub.reserve("q") == []
    # And both still count
    assert hub.info("q")["size"] == 2


def test_reservations_last_as_long_as_the_queue_says(hub: Hub) -> None:
    hub.make("q", message_timeout=5)
    hub.post("q", "a")
    # zero, as the Go client sends it, and null mean the queue's own
    assert hub.reserve("q", timeout=0)
    hub.world.clock.advance(ms=4_999)
    assert hub.reserve("q", timeout=None) == []
    hub.world.clock.advance(ms=1)
    assert hub.reserve("q")


@pytest.mark.parametrize(
    "options",
    [
        {"n": 101},
        {"n": -1},
        {"n": "1"},
        {"n": 1.0},
        {"timeout": 86_401},
        {"timeout": -1},
        {"wait": 31},
        {"wait": -1},
        {"wait": "1"},
        {"delete": "true"},
        {"delete": 1},
    ],
    ids=str,
)
def test_reservations_refused(hub: Hub, options: dict[str, Any]) -> None:
    hub.post("q", "a")
    assert hub.call("POST", "/queues/q/reservations", options).status == 400
    assert hub.reserve("q")


def test_reserving_with_delete_takes_messages_for_good(hub: Hub) -> None:
    [message_id] = hub.post("q", "a")
    [message] = hub.reserve("q", delete=True, timeout=0, n=0, wait=None)
    assert (message["id"], message["reserved_count"]) == (message_id, 1)
    assert hub.call("GET", f"/queues/q/messages/{message_id}").msg == "Message not found"
    assert hub.info("q")["size"] == 0
    assert hub.info("q")["total_messages"] == 1


def test_a_long_poll_waits_as_long_as_asked(hub: Hub) -> None:
    hub.make("q")
    start = hub.world.clock.now()
    assert hub.reserve("q", wait=3) == []
    assert hub.world.clock.now() - start == 3_000
    # with pauses that grow up to a second
    assert max(hub.world.clock.slept) <= 1
    assert len(hub.world.clock.slept) < 12


def test_a_long_poll_ends_before_the_gateway_gives_up(hub: Hub) -> None:
    hub.make("q")
    start = hub.world.clock.now()
    assert hub.reserve("q", wait=30) == []
    assert hub.world.clock.now() - start == 28_000


def test_only_so_many_requests_of_a_project_wait_at_the_same_time(hub: Hub) -> None:
    # Given the maximum number of waiting requests of a project
    waits = hub.world.ports.waits
    start = hub.world.clock.now()
    places = [waits.enter(PROJECT, now=start, until=start + 20_000) for _ in range(waits.places)]
    hub.make("q")
    # When another one asks to wait, then it is answered at once
    assert hub.reserve("q", wait=10) == []
    assert hub.world.clock.now() == start
    # And it gets what is available
    hub.post("q", "x")
    assert len(hub.reserve("q", wait=10)) == 1
    # When one of them leaves, or the time of all is over, then another can wait
    waits.leave(PROJECT, places[0] or "")
    assert hub.reserve("q", wait=10) == []
    assert hub.world.clock.now() == start + 10_000
    hub.world.clock.advance(seconds=11)
    for _ in range(3):
        assert hub.reserve("q", wait=1) == []
    assert hub.world.clock.now() == start + 24_000
    # And leaves its place, even when something fails
    assert waits.waiting[PROJECT] == {}
    hub.world.ports.pull.reserve = _failing  # type: ignore[method-assign]
    assert hub.call("POST", "/queues/q/reservations", {"wait": 5}).status == 500
    assert waits.waiting[PROJECT] == {}


def _failing(*_: Any, **__: Any) -> Any:
    raise Unavailable("pull.reserve")


def test_a_long_poll_answers_soon_after_a_message_came(hub: Hub) -> None:
    hub.make("q")
    start = hub.world.clock.now()
    hub.post("q", "soon", delay=5)
    assert [each["body"] for each in hub.reserve("q", wait=30)] == ["soon"]
    assert 5_000 <= hub.world.clock.now() - start <= 6_000


def test_peeking_changes_nothing_and_shows_what_is_available(hub: Hub) -> None:
    hub.post("q", "a", "b", "c")
    hub.reserve("q")
    shown = hub.call("GET", "/queues/q/messages?n=2").body["messages"]
    assert [set(each) for each in shown] == [{"id", "body", "reserved_count"}] * 2
    assert [(each["body"], each["reserved_count"]) for each in shown] == [("b", 0), ("c", 0)]
    assert len(hub.call("GET", "/queues/q/messages").body["messages"]) == 1
    assert len(hub.call("GET", "/queues/q/messages?n=100").body["messages"]) == 2


@pytest.mark.parametrize("count", ["101", "x", "-1", "1.0"])
def test_peeks_refused(hub: Hub, count: str) -> None:
    hub.make("q")
    assert hub.call("GET", f"/queues/q/messages?n={count}").status == 400


def test_a_message_is_shown_by_id_reserved_or_not(hub: Hub) -> None:
    [message_id] = hub.post("q", "a")
    path = f"/queues/q/messages/{message_id}"
    assert hub.call("GET", path).body == {"message": {"id": message_id, "body": "a", "reserved_count": 0}}
    hub.reserve("q")
    assert hub.call("GET", path).body == {"message": {"id": message_id, "body": "a", "reserved_count": 1}}


@pytest.mark.parametrize("message_id", ["1", "abc", "99999999999999999999", "0x1", "-1", "%D9%A3"])
@pytest.mark.parametrize(
    ("method", "suffix"),
    [("GET", ""), ("DELETE", ""), ("POST", "/touch"), ("POST", "/release"), ("GET", "/subscribers")],
)
def test_messages_that_do_not_exist(hub: Hub, method: str, suffix: str, message_id: str) -> None:
    hub.make("q")
    hub.make_push("p", "https://a.example")
    queue = "p" if suffix == "/subscribers" else "q"
    body = {"reservation_id": "r"} if method == "POST" else None
    result = hub.call(method, f"/queues/{queue}/messages/{message_id}{suffix}", body)
    assert (result.status, result.msg) == (404, "Message not found")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/queues/none/messages"),
        ("DELETE", "/queues/none/messages"),
        ("GET", "/queues/none/messages/1"),
        ("DELETE", "/queues/none/messages/1"),
        ("POST", "/queues/none/messages/1/touch"),
        ("POST", "/queues/none/messages/1/release"),
        ("GET", "/queues/none/messages/1/subscribers"),
        ("POST", "/queues/none/reservations"),
    ],
)
def test_queues_that_do_not_exist(hub: Hub, method: str, path: str) -> None:
    result = hub.call(method, path, {"reservation_id": "r", "ids": ["1"]})
    assert (result.status, result.msg) == (404, "Queue not found")
    assert hub.call("GET", "/queues").body == {"queues": []}


def test_touching_gives_a_new_reservation_and_the_old_one_dies(hub: Hub) -> None:
    # Given a reserved message
    hub.post("q", "a")
    [message] = hub.reserve("q", timeout=5)
    old = message["reservation_id"]
    touch = f"/queues/q/messages/{message['id']}/touch"
    hub.world.clock.advance(seconds=4)
    # When it is touched
    result = hub.call("POST", touch, {"reservation_id": old, "timeout": 5})
    assert (result.status, result.msg) == (200, "Touched")
    new = result.body["reservation_id"]
    assert re.fullmatch(r"[0-9a-f]{32}", new)
    assert new != old
    # Then it stays reserved from then on, the count rises, and only the new reservation works
    hub.world.clock.advance(seconds=4)
    assert hub.reserve("q") == []
    assert hub.call("POST", touch, {"reservation_id": old}).status == 403
    assert delete(hub, message["id"], {"reservation_id": old})[0] == 403
    assert hub.call("GET", f"/queues/q/messages/{message['id']}").body["message"]["reserved_count"] == 2
    assert delete(hub, message["id"], {"reservation_id": new}) == (200, "Deleted")


def test_a_touch_without_timeout_lasts_as_long_as_the_queue_says(hub: Hub) -> None:
    hub.make("q", message_timeout=30)
    hub.post("q", "a")
    [message] = hub.reserve("q", timeout=1)
    hub.call("POST", f"/queues/q/messages/{message['id']}/touch", {"reservation_id": message["reservation_id"]})
    hub.world.clock.advance(seconds=29)
    assert hub.reserve("q") == []
    hub.world.clock.advance(seconds=1)
    assert hub.reserve("q")


def test_a_released_message_returns_to_the_front(hub: Hub) -> None:
    hub.post("q", "a", "b")
    [message] = hub.reserve("q")
    path = f"/queues/q/messages/{message['id']}/release"
    result = hub.call("POST", path, {"reservation_id": message["reservation_id"]})
    assert (result.status, result.body) == (200, {"msg": "Released"})
    # the old reservation is void
    assert delete(hub, message["id"], {"reservation_id": message["reservation_id"]})[0] == 403
    [again] = hub.reserve("q")
    assert again["body"] == "a"
    # and with a delay it comes back later
    hub.call("POST", path, {"reservation_id": again["reservation_id"], "delay": 10})
    assert [each["body"] for each in hub.reserve("q", n=2)] == ["b"]
    hub.world.clock.advance(seconds=10)
    assert [each["body"] for each in hub.reserve("q")] == ["a"]


@pytest.mark.parametrize("action", ["touch", "release"])
@pytest.mark.parametrize("given", [{}, {"reservation_id": ""}, {"reservation_id": None}], ids=str)
def test_touch_and_release_need_a_reservation(hub: Hub, action: str, given: dict[str, Any]) -> None:
    [message_id] = hub.post("q", "a")
    result = hub.call("POST", f"/queues/q/messages/{message_id}/{action}", given)
    assert (result.status, result.msg) == (400, "A reservation_id is required")


@pytest.mark.parametrize(
    ("action", "given"),
    [
        ("touch", {"timeout": 86_401}),
        ("touch", {"timeout": "5"}),
        ("release", {"delay": 604_801}),
        ("release", {"delay": -1}),
        ("touch", {"reservation_id": 5}),
    ],
)
def test_touch_and_release_refused(hub: Hub, action: str, given: dict[str, Any]) -> None:
    hub.post("q", "a")
    [message] = hub.reserve("q")
    body = {"reservation_id": message["reservation_id"], **given}
    assert hub.call("POST", f"/queues/q/messages/{message['id']}/{action}", body).status == 400


@pytest.mark.parametrize("body", [None, {}, {"reservation_id": ""}, {"reservation_id": None, "subscriber_name": ""}])
def test_a_free_message_is_deleted_without_a_reservation(hub: Hub, body: Any) -> None:
    [message_id] = hub.post("q", "a")
    assert delete(hub, message_id, body) == (200, "Deleted")
    assert delete(hub, message_id, body) == (404, "Message not found")


def test_a_reserved_message_is_deleted_with_its_reservation_only(hub: Hub) -> None:
    hub.post("q", "a")
    [message] = hub.reserve("q")
    assert delete(hub, message["id"]) == (400, "A reservation_id is required")
    assert delete(hub, message["id"], {"reservation_id": "0" * 32})[0] == 403
    assert hub.info("q")["size"] == 1
    assert delete(hub, message["id"], {"reservation_id": message["reservation_id"]}) == (200, "Deleted")
    assert hub.info("q")["size"] == 0


def test_a_free_message_cannot_be_deleted_with_an_invented_reservation(hub: Hub) -> None:
    [message_id] = hub.post("q", "a")
    assert delete(hub, message_id, {"reservation_id": "0" * 32})[0] == 403


def test_many_are_deleted_by_plain_ids_numbers_or_objects(hub: Hub) -> None:
    ids = hub.post("q", "a", "b", "c", "d")
    [reserved] = hub.reserve("q")
    entries = [
        {"id": reserved["id"], "reservation_id": reserved["reservation_id"]},
        ids[1],
        {"id": ids[2], "reservation_id": ""},
        int(ids[3]),
        ids[1],
    ]
    result = hub.call("DELETE", "/queues/q/messages", {"ids": entries})
    assert (result.status, result.body) == (200, {"msg": "Deleted"})
    assert hub.info("q")["size"] == 0


def test_one_bad_id_refuses_the_whole_batch(hub: Hub) -> None:
    # Given two free messages and a reserved one
    hub.post("q", "a", "b", "c")
    [reserved] = hub.reserve("q")
    free = [each["id"] for each in hub.call("GET", "/queues/q/messages?n=9").body["messages"]]
    # When they are deleted together with something wrong
    for wrong, status in [
        (reserved["id"], 400),
        ({"id": reserved["id"], "reservation_id": "0" * 32}, 403),
        ("1", 404),
        ("abc", 404),
    ]:
        assert hub.call("DELETE", "/queues/q/messages", {"ids": [*free, wrong]}).status == status
    # Then nothing was deleted
    assert hub.info("q")["size"] == 3


@pytest.mark.parametrize("ids", [[], None, "x", {}, [None], [{}], [{"id": None}], [[1]], [True], [""], ["1"] * 101])
def test_ids_that_are_none_never_clear_a_queue(hub: Hub, ids: Any) -> None:
    hub.post("q", "a")
    assert hub.call("DELETE", "/queues/q/messages", {"ids": ids}).status == 400
    assert hub.info("q")["size"] == 1


@pytest.mark.parametrize("body", [{"id": "1"}, {"messages": ["1"]}, {"Ids": ["1"], "oauth": "TOKEN"}])
def test_a_body_that_names_something_else_never_clears_a_queue(hub: Hub, body: Any) -> None:
    hub.post("q", "a")
    refused = hub.call("DELETE", "/queues/q/messages", body)
    assert (refused.status, refused.body["msg"][:16]) == (400, "ids is missing: ")
    assert hub.info("q")["size"] == 1


@pytest.mark.parametrize("body", [None, {}, {"oauth": "TOKEN"}])
def test_clearing(hub: Hub, body: Any) -> None:
    hub.post("q", "a", "b")
    [reserved] = hub.reserve("q")
    result = hub.call("DELETE", "/queues/q/messages", body)
    assert (result.status, result.body) == (200, {"msg": "Cleared"})
    assert hub.info("q")["size"] == 0
    assert hub.reserve("q") == []
    assert delete(hub, reserved["id"], {"reservation_id": reserved["reservation_id"]}) == (404, "Message not found")
    # what comes later stays, and the count of messages ever posted goes on
    hub.post("q", "c")
    assert (hub.info("q")["size"], hub.info("q")["total_messages"]) == (1, 3)


def test_dead_letters_move_when_they_are_reserved_too_often(hub: Hub) -> None:
    # Given a queue that allows two reservations
    hub.make("q", dead_letter={"queue_name": "dead", "max_reservations": 2})
    bad, _ = hub.post("q", "bad", "good")
    for _ in range(2):
        assert hub.reserve("q", timeout=1)[0]["id"] == bad
        hub.world.clock.advance(seconds=1)
    # When the message would be reserved for the third time
    [message] = hub.reserve("q")
    # Then the next one is handed out instead, and it is in the other queue with its id, body and count
    assert message["body"] == "good"
    assert hub.call("GET", f"/queues/q/messages/{bad}").status == 404
    [dead] = hub.call("GET", "/queues/dead/messages").body["messages"]
    assert dead == {"id": bad, "body": "bad", "reserved_count": 2}
    assert (hub.info("q")["size"], hub.info("dead")["size"]) == (1, 1)
    assert hub.info("dead")["total_messages"] == 1


def test_a_dead_letter_starts_its_time_anew(hub: Hub) -> None:
    hub.make("q", message_expiration=60, dead_letter={"queue_name": "dead", "max_reservations": 1})
    hub.post("q", large_text(10_000))
    hub.reserve("q", timeout=1)
    hub.world.clock.advance(seconds=30)
    assert hub.reserve("q") == []
    hub.world.clock.advance(seconds=100)
    assert [each["body"] for each in hub.reserve("dead")] == [large_text(10_000)]


def test_a_batch_is_answered_as_far_as_it_fits_and_the_rest_goes_back(hub: Hub) -> None:
    # Given three messages of 2.5 MB and a small one
    for letter in "abc":
        hub.post("q", letter * 2_500_000)
    hub.post("q", "d")
    # Then two fit into an answer, and the next answer has the rest in order, seen by nobody yet
    assert [each["body"][0] for each in hub.reserve("q", n=10)] == ["a", "b"]
    rest = hub.reserve("q", n=10)
    assert [(each["body"][0], each["reserved_count"]) for each in rest] == [("c", 1), ("d", 1)]


LARGEST = 4_194_304
GROWING = {
    "text beyond ASCII": "я" * ((LARGEST - 100) // 2),
    "JSON in JSON": '{"a":"b"},' * (LARGEST // 20),
    "lines": "0123456789\n" * (LARGEST // 12),
    "plain": "x" * (LARGEST - 100),
}


@pytest.mark.parametrize("kind", GROWING)
def test_a_message_that_grows_in_an_answer_is_answered_all_the_same(hub: Hub, kind: str) -> None:
    # Given a message of about the maximum size, with characters that take more room in an answer
    body = GROWING[kind].encode()
    assert hub.send("POST", f"/3/projects/{PROJECT}/queues/q/webhook", body, token=hub.token).status == 201
    [message_id] = [each["id"] for each in hub.call("GET", "/queues/q/messages").body["messages"]]
    # Then it is peeked at, shown, and handed out, whole
    assert hub.call("GET", f"/queues/q/messages/{message_id}").body["message"]["body"] == GROWING[kind]
    assert hub.reserve("q", n=10, delete=True)[0]["body"] == GROWING[kind]


def test_bytes_that_are_no_text_are_answered_whatever_their_number(hub: Hub) -> None:
    body = bytes(range(256)) * (LARGEST // 256)
    assert hub.send("POST", f"/3/projects/{PROJECT}/queues/q/webhook", body, token=hub.token).status == 201
    [message] = hub.reserve("q")
    assert (message["body"], base64.b64decode(message["body_base64"])) == ("", body)


UNANSWERABLE = "\u0001" * 690_000


def post_unanswerable(hub: Hub, queue: str) -> None:
    """Post a message that fits into a compressed answer only."""
    hub.send("POST", f"/3/projects/{PROJECT}/queues/{queue}/webhook", UNANSWERABLE.encode() * 3, token=hub.token)


GZIP = {"Accept-Encoding": "gzip, deflate"}


def test_what_fits_only_compressed_is_refused_to_those_who_do_not_take_that_and_nothing_is_lost(hub: Hub) -> None:
    # Given a message of which each byte takes six in JSON, written as such by its producer, and no other
    post_unanswerable(hub, "q")
    # When a client that does not accept gzip asks for it, then it learns what to do
    assert hub.call("GET", "/queues/q/messages?n=2").status == 406
    refused = hub.call("POST", "/queues/q/reservations", {"n": 2, "delete": True, "wait": 5})
    assert refused.status == 406
    assert "gzip" in refused.msg
    # And the message is in the queue, as if a consumer had taken it and died
    assert hub.info("q")["size"] == 1
    assert hub.reserve("q") == []
    hub.world.clock.advance(seconds=60)
    hub.post("q", "next")
    # When one that accepts it looks and asks
    shown = hub.call("GET", "/queues/q/messages?n=2", headers=GZIP)
    taken = hub.call("POST", "/queues/q/reservations", {"n": 2, "delete": True}, headers=GZIP)
    # Then it gets that one, and the next one afterwards
    assert [each["body"] for each in shown.body["messages"]] == [UNANSWERABLE * 3]
    assert [each["body"] for each in taken.body["messages"]] == [UNANSWERABLE * 3]
    assert taken.body["messages"][0]["reserved_count"] == 2
    assert [each["body"] for each in hub.reserve("q", n=2)] == ["next"]


@pytest.mark.parametrize(("count", "delete"), [(1, False), (2, True), (100, False)])
def test_what_does_not_fit_blocks_nothing_behind_it(hub: Hub, count: int, delete: bool) -> None:
    # Given messages that do not fit, before and between others
    for body in ("", "a", "", "b", "c"):
        if body:
            hub.post("q", body)
        else:
            post_unanswerable(hub, "q")
    # When a client without gzip peeks, then it sees the others
    peeked = hub.call("GET", f"/queues/q/messages?n={count}").body["messages"]
    assert [each["body"] for each in peeked] == ["a", "b", "c"][:count]
    # When it asks until there is nothing, then it gets the others in order, and nothing else is said to it
    got: list[str] = []
    while taken := hub.reserve("q", n=count, delete=delete):
        got += [each["body"] for each in taken]
    assert got == ["a", "b", "c"]
    # And the messages that do not fit are still there
    assert hub.info("q")["size"] == (2 if delete else 5)
    hub.world.clock.advance(seconds=60)
    assert len(hub.call("GET", "/queues/q/messages", headers=GZIP).body["messages"]) == 1


def test_what_nobody_can_take_becomes_a_dead_letter_after_its_reservations(hub: Hub) -> None:
    # Given a queue that allows two reservations, and consumers without gzip
    hub.make("q", dead_letter={"queue_name": "dead", "max_reservations": 2})
    post_unanswerable(hub, "q")
    # When they have asked as often as it may be reserved
    statuses: list[int] = []
    for _ in range(3):
        statuses.append(hub.call("POST", "/queues/q/reservations", {}).status)
        hub.world.clock.advance(seconds=60)
    # Then it is a dead letter, whole
    assert statuses == [406, 406, 200]
    assert (hub.info("q")["size"], hub.info("dead")["size"]) == (0, 1)
    [dead] = hub.call("POST", "/queues/dead/reservations", {}, headers=GZIP).body["messages"]
    assert (dead["body"], dead["reserved_count"]) == (UNANSWERABLE * 3, 3)


def test_many_that_do_not_fit_take_one_call_ten_seconds(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given many such messages, each of which takes a second to read, and one behind them
    for _ in range(15):
        post_unanswerable(hub, "q")
    hub.post("q", "a")
    real = hub.world.bodies.get

    def slow(reference: BodyRef) -> bytes:
        hub.world.clock.advance(seconds=1)
        return real(reference)

    monkeypatch.setattr(hub.world.bodies, "get", slow)
    # When a client without gzip asks, then it is answered in time, and the next call goes on
    began = hub.world.clock.now()
    assert hub.call("POST", "/queues/q/reservations", {"timeout": 600}).status == 406
    assert hub.world.clock.now() - began < 12_000
    assert [each["body"] for each in hub.reserve("q", timeout=600)] == ["a"]


@pytest.mark.parametrize(
    ("accepted", "compressed"),
    [
        ("gzip", True),
        ("deflate, gzip;q=0.5", True),
        ("GZIP", True),
        ("gzip;q=0", False),
        ("gzip/deflate", False),
        ("identity", False),
        ("", False),
    ],
)
def test_who_takes_gzip(hub: Hub, accepted: str, compressed: bool) -> None:
    hub.send("POST", f"/3/projects/{PROJECT}/queues/q/webhook", UNANSWERABLE.encode() * 3, token=hub.token)
    result = hub.call("POST", "/queues/q/reservations", {}, headers={"Accept-Encoding": accepted})
    assert (result.status == 200) is compressed


def test_reservations_that_end_while_their_messages_are_deleted_are_left_out(hub: Hub) -> None:
    # Given deletions that take a while
    hub.post("q", *"abcdefgh")
    pull = hub.world.pull
    real = pull.delete

    def slow(*args: Any, **kwargs: Any) -> None:
        hub.world.clock.advance(seconds=9)
        real(*args, **{**kwargs, "now": hub.world.clock.now()})

    pull.delete = slow  # type: ignore[method-assign]
    # When all are reserved and deleted at once, with a short timeout
    taken = hub.reserve("q", n=8, timeout=1, delete=True)
    pull.delete = real  # type: ignore[method-assign]
    # Then each message was handed out or is still there, and none is neither
    left = hub.reserve("q", n=8)
    assert sorted(each["body"] for each in [*taken, *left]) == list("abcdefgh")


@pytest.mark.parametrize("fault", [Fault.FAILS, Fault.TIMES_OUT])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_taking_for_good_loses_nothing_when_a_deletion_fails(hub: Hub, fault: Fault, at: int) -> None:
    # Given a store in which one deletion fails
    hub.post("q", "a", "b", "c")
    struck = hub.struck(FaultPlan(fault, at=at, of="pull.delete"), "pull")
    # When all are taken for good
    taken = [each["body"] for each in struck.reserve("q", n=3, delete=True)]
    # Then each was handed out or is still there
    hub.world.clock.advance(seconds=61)
    left = [each["body"] for each in hub.reserve("q", n=3)]
    assert set(taken) | set(left) == {"a", "b", "c"}


def test_an_answer_that_comes_too_late_for_the_gateway_hands_nothing_out(hub: Hub) -> None:
    # Given a message whose body takes 15 seconds to read, twice over, on a queue that allows one reservation
    hub.make("q", dead_letter={"queue_name": "dead", "max_reservations": 1})
    hub.post("q", large_text(10_000), large_text(10_000, seed=1))
    bodies = hub.world.bodies
    real = bodies.get

    def slow(ref: BodyRef) -> bytes:
        hub.world.clock.advance(seconds=15)
        return real(ref)

    bodies.get = slow  # type: ignore[method-assign]
    # When both are requested again and again, to be deleted or not, then no message is handed out in an answer that
    # comes too late
    for delete in (False, True, False):
        assert hub.reserve("q", n=2, delete=delete) == []
    bodies.get = real  # type: ignore[method-assign]
    # And both are there at once afterwards, as if they had never been reserved
    assert [each["reserved_count"] for each in hub.reserve("q", n=2)] == [1, 1]
    assert hub.info("dead")["size"] == 0


def test_deletions_that_take_too_long_stop_and_what_is_left_goes_back(hub: Hub) -> None:
    # Given deletions that take eight seconds each
    hub.post("q", *"abcdefgh")
    pull = hub.world.pull
    real = pull.delete

    def slow(*args: Any, **kwargs: Any) -> None:
        hub.world.clock.advance(seconds=8)
        real(*args, **kwargs)

    pull.delete = slow  # type: ignore[method-assign]
    # When eight are reserved and deleted at once, then those deleted in time for the answer are handed out
    taken = hub.reserve("q", n=8, delete=True)
    pull.delete = real  # type: ignore[method-assign]
    assert [each["body"] for each in taken] == ["a", "b", "c", "d"]
    # And the others are available at once
    assert [(each["body"], each["reserved_count"]) for each in hub.reserve("q", n=8)] == [(body, 1) for body in "efgh"]


@pytest.mark.parametrize("fault", [Fault.FAILS, Fault.TIMES_OUT])
def test_what_was_reserved_before_a_call_failed_is_answered(hub: Hub, fault: Fault) -> None:
    # Given a queue whose first message is a dead letter, so that a reservation looks twice, and a second look that
    # fails
    hub.make("q", dead_letter={"queue_name": "dead", "max_reservations": 1})
    hub.post("q", "dead", "b", "c")
    hub.reserve("q", timeout=1)
    hub.world.clock.advance(seconds=2)
    faults = hub.struck(FaultPlan(fault, at=2, of="pull.reserve"), "pull")
    # Then the others of the first look are answered, not hidden until they time out
    assert [each["body"] for each in faults.reserve("q", n=3)] == ["b", "c"]


def test_a_message_whose_bytes_are_gone_does_not_block_the_queue(hub: Hub) -> None:
    hub.post("q", large_text(10_000))
    hub.post("q", "next")
    hub.world.bodies.objects.clear()
    assert [each["body"] for each in hub.call("GET", "/queues/q/messages?n=2").body["messages"]] == ["next"]
    assert [each["body"] for each in hub.reserve("q", n=2)] == ["next"]
    assert hub.info("q")["size"] == 1
