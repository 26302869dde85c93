"""Retry, replay, expunge, against a hub on fakes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cli.rest import Rest
from tests.cli.conftest import Typed
from tests.cli.served_hub import ServedHub
from tests.cli.test_queues import peeked
from tests.engine.world import PROJECT
from tests.fakes.sender import Reply

from pushhub.hub.model.mapping import ServiceOptions


def failed(queue: str, **fields: Any) -> str:
    return json.dumps({"source_msg_id": "1", "queue": queue, "body": "", "headers": {}, "subscribers": [], **fields})


SHOP, CRM = "https://shop.example/in", "https://crm.example/in"


def given_up(hub: ServedHub, count: int, *, kind: str = "multicast") -> Any:
    """A hub whose queue ``orders`` gave up messages at ``shop``, which goes on failing at once; ``crm`` has them."""
    world = hub.worlds["ironmq"].world
    world.sender.script(SHOP, 500)
    if kind == "unicast":
        world.sender.script(CRM, 500)
    subscribers = [{"name": "shop", "url": SHOP}, {"name": "crm", "url": CRM}]
    push = {"subscribers": subscribers, "retries": 0, "retries_delay": 3, "error_queue": "errors"}
    rest = Rest(hub.base_url, PROJECT, "t0ken")
    rest.call("PUT", rest.queue("orders"), {"queue": {"type": kind, "push": push}})
    rest.call("POST", rest.queue("orders", "/messages"), {"messages": [{"body": f"{each}"} for each in range(count)]})
    hub.lives = True
    world.run(seconds=10)
    return world


def sizes(typed: Typed) -> int:
    return int(typed.json("queues", "show", "errors")[0]["size"])


@pytest.mark.parametrize("count", [3, 70])
def test_an_error_queue_is_replayed_once_and_only_to_who_missed_it(hub: ServedHub, typed: Typed, count: int) -> None:
    # Given what one of two subscribers did not accept, and it still fails at once
    world = given_up(hub, count)
    assert sizes(typed) == count
    # When it is replayed, then that ends: each message is sent once more, to that subscriber, and stays
    assert typed.json("replay", "errors", code=1) == [{"queue": "errors", "sent": 0, "left": count}]
    assert "shop failed again: 500" in typed.errors
    assert (len(world.sender.requests_to(SHOP)), len(world.sender.requests_to(CRM))) == (2 * count, count)
    assert sizes(typed) == count
    # When the subscriber is well again, then it gets each once, and the error queue is empty
    world.sender.script(SHOP, 200)
    assert typed.json("replay", "errors") == [{"queue": "errors", "sent": count, "left": 0}]
    assert (len(world.sender.requests_to(SHOP)), len(world.sender.requests_to(CRM))) == (3 * count, count)
    assert sizes(typed) == 0
    assert typed.json("queues", "show", "orders")[0]["size"] == 0
    # When there is nothing left to replay, then that is said, and is no failure
    typed("replay", "errors")
    assert "there was nothing in errors" in typed.errors


def test_a_replay_takes_what_was_there_when_it_began(hub: ServedHub, typed: Typed) -> None:
    # Given a unicast queue all of whose subscribers fail, so a message that is replayed comes back at once
    world = given_up(hub, 3, kind="unicast")
    assert sizes(typed) == 3
    before = len(world.sender.requests_to(SHOP))
    assert typed.json("replay", "errors") == [{"queue": "errors", "sent": 3, "left": 0}]
    # Then each was posted once
    world.run(seconds=10)
    assert len(world.sender.requests_to(SHOP)) == before + 3
    assert sizes(typed) == 3


def test_what_arrived_meanwhile_is_not_sent_again(hub: ServedHub, typed: Typed) -> None:
    world = given_up(hub, 2)
    world.sender.script(SHOP, 200)
    typed("replay", "--queue", "orders", "--subscriber", "shop")
    sent = len(world.sender.requests_to(SHOP))
    assert typed.json("replay", "errors") == [{"queue": "errors", "sent": 2, "left": 0}]
    assert len(world.sender.requests_to(SHOP)) == sent
    assert sizes(typed) == 0


def test_what_cannot_go_back_stays_and_is_told(hub: ServedHub, typed: Typed) -> None:
    # Given messages that are deleted, of a queue that is gone, of a subscriber that is gone, and no error message
    given_up(hub, 2)
    first, _ = [json.loads(each["body"]) for each in peeked(hub, "errors")]
    typed("expunge", first["source_msg_id"], "--queue", "orders", "--yes")
    typed("post", "errors", failed("gone", body="x"))
    typed("post", "errors", json.dumps(first | {"subscribers": [{"name": "other"}]}))
    typed("post", "errors", "[]")
    rest = Rest(hub.base_url, PROJECT, "t0ken")
    rest.call("DELETE", rest.queue("orders", "/subscribers"), {"subscribers": [{"name": "shop"}]})
    assert typed.json("replay", "errors", code=1) == [{"queue": "errors", "sent": 0, "left": 5}]
    for said in ("has expired or was deleted", "gone is no push queue", "Subscriber not found", "not an error message"):
        assert said in typed.errors
    # Then they are all there, and can be taken at once
    assert len(peeked(hub, "errors")) == 5


def test_an_error_queue_is_posted_to_another_queue(hub: ServedHub, typed: Typed) -> None:
    # Given an error queue with text, with bytes, with a message whose body is gone, and with one that is no error
    # message
    typed("post", "errors", failed("orders", body="first"))
    typed("post", "errors", failed("orders", body="?", body_base64="/w=="))
    typed("post", "errors", failed("orders", body_left_out=True))
    typed("post", "errors", "[]")
    # When it is replayed to a queue
    assert typed.json("replay", "errors", "--to", "again", code=1) == [{"queue": "errors", "sent": 2, "left": 2}]
    assert "its body is not in the error message" in typed.errors
    assert "it is not an error message" in typed.errors
    # Then everything that can be sent is in that queue, and only that has left the error queue
    assert [each.get("body_base64", each["body"]) for each in peeked(hub, "again")] == ["first", "/w=="]
    assert sizes(typed) == 2


def test_what_a_subscriber_missed_is_counted_and_tried_again(hub: ServedHub, typed: Typed) -> None:
    # Given a queue that gave up 150 messages at one of its subscribers
    world, url = hub.worlds["ironmq"].world, "https://shop.example/in"
    world.sender.script(url, 500)
    push = {"subscribers": [{"name": "shop", "url": url}], "retries": 0}
    rest = Rest(hub.base_url, PROJECT, "t0ken")
    rest.call("PUT", rest.queue("orders"), {"queue": {"type": "multicast", "push": push}})
    for count in (100, 50):
        rest.call("POST", rest.queue("orders", "/messages"), {"messages": [{"body": "x"}] * count})
    world.run(seconds=5)
    # When they are counted, then nothing is sent; when they are replayed, each is, once
    reported = {"queue": "orders", "subscriber": "shop", "looked": 150, "found": 150}
    replay = ("replay", "--queue", "orders", "--subscriber", "shop")
    assert typed.json(*replay, "--dry-run") == [{**reported, "replayed": 0}]
    world.sender.script(url, 200)
    assert typed.json(*replay) == [{**reported, "replayed": 150}]
    world.run(seconds=5)
    assert len(world.sender.requests_to(url)) == 300
    assert typed.json(*replay, "--dry-run")[0]["found"] == 0
    typed("replay", "--queue", "orders", code=2)
    typed("replay", "errors", "--queue", "orders", "--subscriber", "shop", code=2)


def test_a_replay_may_go_elsewhere_and_is_limited(hub: ServedHub, typed: Typed) -> None:
    for number in range(15):
        typed("post", "errors", failed("orders", body=str(number)))
    assert typed.json("replay", "errors", "--to", "other", "--limit", "12")[0]["sent"] == 12
    assert [each["body"] for each in peeked(hub, "other")] == [str(number) for number in range(12)]


def test_a_message_that_could_not_be_posted_stays_in_the_error_queue(hub: ServedHub, typed: Typed) -> None:
    typed("post", "errors", failed("orders", body="first"))
    # Given a hub that fails right after the message was taken out
    hub.down_after = len(hub.asked) + 2
    typed("replay", "errors", "--to", "again", code=3)
    hub.down_after = None
    assert typed.json("queues", "show", "errors")[0]["size"] == 1


def waiting(hub: ServedHub) -> str:
    """A message of the store that waits for a person."""
    store = hub.worlds["hub"].world
    said: Any = iter([500, {}])
    store.map("order:new", says=lambda _: next(said), options=ServiceOptions(retries_allowed=False))
    store.call("POST", "/messages", {"message": "order:new", "payload": {}})
    store.run(seconds=1)
    [row] = store.call("GET", "/queues/accepted.json", state="parked")[1]
    return str(row["id"])


def test_a_message_of_a_store_is_tried_again(hub: ServedHub, typed: Typed) -> None:
    message = waiting(hub)
    # When nobody can be asked, or the person says no, then nothing is sent
    typed("retry", "--waiting", code=2)
    typed("retry", "--waiting", given=b"n\n", person=True, code=130)
    assert "Send 1 messages again now?" in typed.errors + typed.printed
    assert hub.writes == []
    [shown] = typed.json("retry", "--waiting", "--yes")
    assert (shown["message"], shown["type"]) == (message, "order:new")
    hub.worlds["hub"].world.run(seconds=1)
    # When nothing waits, then there is nothing to ask
    assert typed.json("retry", "--waiting") == []
    # When it is already done, or there is none, then the command says so, and fails
    assert "refused" in typed.json("retry", message, code=1)[0]["state"]
    assert "refused" in typed.json("retry", "nosuch", code=1)[0]["state"]


def test_webhooks_are_asked_for_by_the_routes_of_their_api(hub: ServedHub, typed: Typed) -> None:
    base = "/api/v1/app/a b"
    hub.answers[("POST", f"{base}/msg/m/endpoint/e/resend")] = (202, b"{}")
    hub.answers[("POST", f"{base}/endpoint/e/recover")] = (202, b'{"id": "qtask_1", "status": "running"}')
    hub.answers[("DELETE", f"{base}/msg/m/content")] = (204, b"")
    typed("retry", "m", "--app", "a b", "--endpoint", "e")
    assert typed.json("replay", "--app", "a b", "--endpoint", "e", "--since", "2h")[0]["status"] == "running"
    assert "since" in json.loads(hub.bodies[-1])
    typed("expunge", "m", "--app", "a b", "--yes")
    typed("retry", "m", "--app", "a b", code=2)
    typed("replay", "--app", "a b", code=2)
    typed("replay", code=2)
    typed("retry", code=2)


def test_a_message_of_a_queue_is_removed(hub: ServedHub, typed: Typed) -> None:
    [posted] = typed.json("post", "q", "x")
    typed("expunge", posted["id"], "--queue", "q", code=2)
    typed("expunge", posted["id"], "--queue", "q", "--yes")
    assert peeked(hub, "q") == []
    typed("expunge", posted["id"], "--queue", "q", "--yes", code=1)
    typed("expunge", posted["id"], "--yes", code=2)


def test_the_attempts_of_a_message_are_listed_with_their_answers(hub: ServedHub, typed: Typed) -> None:
    world = given_up(hub, 1)
    world.sender.script(SHOP, Reply(status_code=500, body=b"no room"))
    posted = typed.json("post", "orders", "one")[0]
    world.run(seconds=10)
    found = {each["subscriber"]: each for each in typed.json("attempts", "orders", posted["id"])}
    assert (found["shop"]["status_code"], found["shop"]["answer"], found["shop"]["result"]) == (
        500,
        "no room",
        "failed",
    )
    assert (found["crm"]["number"], found["crm"]["answer"], found["crm"]["result"]) == (1, "", "delivered")
