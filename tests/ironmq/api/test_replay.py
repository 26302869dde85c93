"""Replaying what a subscriber of a queue missed, and showing its activity."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from tests.engine.world import PROJECT
from tests.fakes.sender import Reply
from tests.ironmq.api.hub import Hub

from pushhub.base.times import epoch_ms, iso_time
from pushhub.engine.model.activity import HOUR_MS, SubscriberActivity

SHOP, CRM = "https://shop.example/in", "https://crm.example/in"
QUEUE = "/queues/orders"


@pytest.fixture
def hub() -> Hub:
    """A queue with two subscribers, which try once."""
    hub = Hub()
    subscribers = [{"name": "shop", "url": SHOP}, {"name": "crm", "url": CRM}]
    push = {"subscribers": subscribers, "retries": 0, "error_queue": "errors"}
    created = hub.call("PUT", QUEUE, {"queue": {"type": "multicast", "push": push}})
    assert created.status == 200
    return hub


def post(hub: Hub, count: int) -> None:
    messages = [{"body": f"order {number}"} for number in range(count)]
    assert hub.call("POST", f"{QUEUE}/messages", {"messages": messages}).status == 201
    hub.world.run(seconds=5)


def replay(hub: Hub, **body: Any) -> dict[str, Any]:
    answer = hub.call("POST", f"{QUEUE}/replay", {"subscriber": "shop", **body})
    assert answer.status == 200, answer
    return dict(answer.body)


def test_what_a_subscriber_missed_is_counted_and_then_tried_again(hub: Hub) -> None:
    # Given three messages that one of two subscribers refused
    hub.world.sender.script(SHOP, 500)
    post(hub, 3)
    # When they are counted, then nothing is sent
    assert replay(hub, dry_run=True) == {"looked": 3, "found": 3, "replayed": 0, "after": None, "msg": "Counted"}
    hub.world.run(seconds=5)
    assert len(hub.world.sender.requests_to(SHOP)) == 3
    # When they are replayed, then each is tried once more, at this subscriber only
    hub.world.sender.script(SHOP, 500, 200)
    assert replay(hub) == {"looked": 3, "found": 3, "replayed": 3, "after": None, "msg": "Replayed"}
    hub.world.run(seconds=5)
    assert len(hub.world.sender.requests_to(SHOP)) == 6
    assert len(hub.world.sender.requests_to(CRM)) == 3
    # And those refused again can be replayed again, accepted ones cannot
    assert replay(hub)["found"] == 1
    hub.world.run(seconds=5)
    assert replay(hub)["looked"] == 0


def test_named_messages_are_replayed_and_no_others(hub: Hub) -> None:
    # Given three messages that one subscriber refused, and another one of which it waits for its next try
    hub.world.sender.script(SHOP, 500)
    post(hub, 3)
    first, second, _ = [each["message_id"] for each in listed(hub, "exhausted")["deliveries"]]
    hub.call("PATCH", QUEUE, {"queue": {"push": {"retries": 3}}})
    post(hub, 1)
    [waiting] = [each["message_id"] for each in listed(hub, "retrying")["deliveries"]]
    before = len(hub.world.sender.requests_to(SHOP))
    # When two of them are named, one twice, and one that waits, and one that does not exist
    named = [first, second, first, waiting, "1"]
    assert replay(hub, message_ids=named, dry_run=True)["found"] == 2
    reported = replay(hub, message_ids=named)
    # Then those two are tried, once each, at that subscriber
    assert reported == {"looked": 2, "found": 2, "replayed": 2, "after": None, "msg": "Replayed"}
    hub.world.run(seconds=0)
    assert len(hub.world.sender.requests_to(SHOP)) == before + 2
    assert len(hub.world.sender.requests_to(CRM)) == 4
    # And another subscriber missed none of them
    assert replay(hub, subscriber="crm", message_ids=named)["found"] == 0
    assert len(listed(hub, "exhausted")["deliveries"]) == 3


def test_messages_of_a_time_are_replayed_and_no_others(hub: Hub) -> None:
    # Given messages that were given up, an hour apart each
    hub.world.sender.script(SHOP, 500)
    times = []
    for _ in range(3):
        times.append(hub.world.clock.now())
        post(hub, 1)
        hub.world.clock.advance(seconds=3600)
    first, second, third = listed(hub, "exhausted")["deliveries"]
    assert [each["accepted_at"] for each in (first, second, third)] == [iso_time(each) for each in times]
    # When a time is given, then its beginning belongs to it and its end does not
    since, until = second["accepted_at"], third["accepted_at"]
    assert replay(hub, since=since, until=until, dry_run=True)["found"] == 1
    assert replay(hub, since=since, dry_run=True)["found"] == 2
    assert replay(hub, until=until, dry_run=True)["found"] == 2
    hub.world.sender.script(SHOP, 200)
    assert replay(hub, since=since, until=until)["replayed"] == 1
    hub.world.run(seconds=5)
    assert [each["message_id"] for each in listed(hub, "exhausted")["deliveries"]] == [
        first["message_id"],
        third["message_id"],
    ]


def test_every_attempt_is_shown_with_its_time_answer_and_duration() -> None:
    # Given a subscriber that fails in two ways before it accepts, beside one that accepts at once
    hub = Hub()
    subscribers = [{"name": "shop", "url": SHOP}, {"name": "crm", "url": CRM}]
    push = {"subscribers": subscribers, "retries": 5, "retries_delay": 60}
    hub.call("PUT", QUEUE, {"queue": {"type": "multicast", "push": push}})
    hub.world.sender.script(SHOP, 500, 500, 404, 200)
    began = hub.world.clock.now()
    [posted] = hub.call("POST", f"{QUEUE}/messages", {"messages": [{"body": "one"}]}).body["ids"]
    hub.world.run(seconds=400)
    # When its attempts are listed
    answer = hub.call("GET", f"{QUEUE}/messages/{posted}/attempts").body
    # Then each is there, in order
    shop = [each for each in answer["attempts"] if each["subscriber_name"] == "shop"]
    assert [(each["number"], each["status_code"], each["result"], each["manual"]) for each in shop] == [
        (1, 500, "failed", False),
        (2, 500, "failed", False),
        (3, 404, "failed", False),
        (4, 200, "delivered", False),
    ]
    assert [each["status_code"] for each in answer["attempts"] if each["subscriber_name"] == "crm"] == [200]
    starts = [epoch_ms(each["started_at"]) - began for each in shop]
    assert [round(each / 60_000) for each in starts] == [0, 1, 2, 3]
    assert answer["attempts"] == sorted(answer["attempts"], key=lambda each: each["started_at"])
    assert answer["forgotten"] == 0
    assert hub.call("GET", f"{QUEUE}/messages/1/attempts").status == 404


def test_the_beginning_of_each_answer_is_shown_without_what_opens_the_subscriber() -> None:
    # Given a subscriber with a password and a key, which echoes them, and then answers at length
    hub = Hub()
    url = "https://me:s3cret-word@shop.example/in"
    shop = {"name": "shop", "url": url, "headers": {"X-Api-Key": "k/1234567"}}
    push = {"subscribers": [shop], "retries": 5, "retries_delay": 60}
    hub.call("PUT", QUEUE, {"queue": {"type": "multicast", "push": push}})
    echo = b'{"error": "no", "key": "k\\/1234567", "sent": "Basic bWU6czNjcmV0", "who": "me:s3cret-word"}'
    hub.world.sender.script(
        url,
        Reply(status_code=503, body=echo),
        Reply(error_class="timeout"),
        Reply(status_code=200, body=b"\xff" * 20),
    )
    [posted] = hub.call("POST", f"{QUEUE}/messages", {"messages": [{"body": "one"}]}).body["ids"]
    hub.world.run(seconds=400)
    first, second, third = hub.call("GET", f"{QUEUE}/messages/{posted}/attempts").body["attempts"]
    assert first["answer"] == '{"error": "no", "key": "********", "sent": "Basic ********", "who": "********"}'
    assert second["answer"] == ""
    assert third["answer"] == "\ufffd" * 20


def test_a_subscriber_without_a_name_is_sent_again_what_it_missed_by_its_id() -> None:
    # Given two subscribers without a name, of which the second gave up
    hub = Hub()
    push = {"subscribers": [{"name": "", "url": CRM}, {"name": "", "url": SHOP}], "retries": 0}
    hub.call("PUT", QUEUE, {"queue": {"type": "multicast", "push": push}})
    hub.world.sender.script(SHOP, 500)
    post(hub, 1)
    (event,) = hub.call("GET", "/events").body["events"]
    (missed,) = [each for each in event["deliveries"] if each["state"] == "exhausted"]
    assert missed["subscriber_name"] == SHOP
    # When it is sent again to that id, Then only that one gets it
    hub.world.sender.script(SHOP, 200)
    before = len(hub.world.sender.requests_to(CRM))
    reported = replay(hub, subscriber=missed["subscriber_id"], message_ids=[event["message_id"]])
    hub.world.run(seconds=5)
    assert reported["replayed"] == 1
    assert len(hub.world.sender.requests_to(SHOP)) == 2
    assert len(hub.world.sender.requests_to(CRM)) == before
    assert hub.call("POST", f"{QUEUE}/replay", {"subscriber": "nobody"}).status == 404


def test_of_very_many_attempts_the_newest_are_known(hub: Hub) -> None:
    hub.call("PATCH", QUEUE, {"queue": {"push": {"retries": 60, "retries_delay": 3}}})
    hub.world.sender.script(SHOP, *[500] * 61)
    [posted] = hub.call("POST", f"{QUEUE}/messages", {"messages": [{"body": "one"}]}).body["ids"]
    hub.world.run(seconds=600)
    # And a manual one counts like the others
    hub.world.sender.script(SHOP, 200)
    assert replay(hub)["replayed"] == 1
    hub.world.run(seconds=5)
    answer = hub.call("GET", f"{QUEUE}/messages/{posted}/attempts").body
    shop = [each for each in answer["attempts"] if each["subscriber_name"] == "shop"]
    assert [each["number"] for each in shop] == list(range(12, 63))
    assert answer["forgotten"] == 11
    assert [each["number"] for each in shop if each["manual"]] == [62]


def test_a_replay_goes_on_part_by_part(hub: Hub) -> None:
    hub.world.sender.script(SHOP, 500)
    hub.world.sender.script(CRM, 500)
    post(hub, 5)
    parts, after = [], ""
    while after is not None:
        parts.append(replay(hub, n=4, after=after, dry_run=True))
        after = parts[-1]["after"]
    assert [each["looked"] for each in parts] == [4, 4, 2]
    assert sum(each["found"] for each in parts) == 5


def test_what_still_waits_was_cleared_or_is_over_is_not_replayed(hub: Hub) -> None:
    hub.world.sender.script(SHOP, 500)
    post(hub, 1)
    # One that waits for its next try is not given up
    hub.call("PATCH", QUEUE, {"queue": {"push": {"retries": 3}}})
    post(hub, 1)
    assert replay(hub, dry_run=True)["looked"] == 1
    hub.call("DELETE", f"{QUEUE}/messages", {})
    assert replay(hub, dry_run=True)["found"] == 0
    # Nor is an expired one
    hub.call("PATCH", QUEUE, {"queue": {"push": {"retries": 0}, "message_expiration": 60}})
    hub.world.clock.advance(seconds=1)
    post(hub, 1)
    assert replay(hub, dry_run=True)["found"] == 1
    hub.world.clock.advance(seconds=60)
    assert replay(hub)["found"] == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"subscriber": 1}, 400),
        ({"subscriber": "nobody"}, 404),
        ({"subscriber": "shop", "n": 101}, 400),
        ({"subscriber": "shop", "after": "x" * 201}, 400),
        ({"subscriber": "shop", "after": "ü"}, 400),
        ({"subscriber": "shop", "dry_run": "yes"}, 400),
        ({"subscriber": "shop", "since": "yesterday"}, 400),
        ({"subscriber": "shop", "until": 1}, 400),
        ({"subscriber": "shop", "message_ids": []}, 400),
        ({"subscriber": "shop", "message_ids": None}, 400),
        ({"subscriber": "shop", "message_ids": "1"}, 400),
        ({"subscriber": "shop", "message_ids": ["1", 2]}, 400),
        ({"subscriber": "shop", "message_ids": ["x"]}, 400),
        ({"subscriber": "shop", "message_ids": ["1"] * 101}, 400),
    ],
)
def test_what_cannot_be_replayed_is_refused(hub: Hub, body: dict[str, Any], status: int) -> None:
    assert hub.call("POST", f"{QUEUE}/replay", body).status == status
    assert hub.call("POST", "/queues/none/replay", {"subscriber": "shop"}).status == 404


def listed(hub: Hub, state: str, **more: Any) -> dict[str, Any]:
    query = "&".join(f"{name}={value}" for name, value in more.items())
    answer = hub.call("GET", f"{QUEUE}/deliveries?state={state}&{query}")
    assert answer.status == 200, answer
    return dict(answer.body)


def test_deliveries_are_listed_by_state(hub: Hub) -> None:
    # Given one message that was given up at a subscriber, and one that it is to get again
    hub.world.sender.script(SHOP, 500)
    post(hub, 1)
    hub.call("PATCH", QUEUE, {"queue": {"push": {"retries": 3}}})
    post(hub, 1)
    [given_up] = listed(hub, "exhausted")["deliveries"]
    [waiting] = listed(hub, "retrying")["deliveries"]
    assert [(each["subscriber_name"], each["state"], each["status_code"]) for each in (given_up, waiting)] == [
        ("shop", "exhausted", 500),
        ("shop", "retrying", 500),
    ]
    assert "next_try_at" in waiting
    assert hub.call("GET", f"{QUEUE}/messages/{given_up['message_id']}").status == 200
    assert listed(hub, "reserved") == {"deliveries": [], "after": None}
    # And page by page all are replayed, each once
    post(hub, 4)
    found, after = [], ""
    while after is not None:
        part = listed(hub, "retrying", count=2, after=quote(after))
        found += [each["message_id"] for each in part["deliveries"]]
        after = part["after"]
    assert len(found) == len(set(found)) == 5
    # What was cleared is gone
    hub.call("DELETE", f"{QUEUE}/messages", {})
    assert listed(hub, "retrying")["deliveries"] == []


@pytest.mark.parametrize(
    "query",
    ["", "state=delivered", "state=retrying&count=x", "state=retrying&count=101", "state=retrying&after=%C3%BC"],
)
def test_what_cannot_be_listed_is_refused(hub: Hub, query: str) -> None:
    answer = hub.call("GET", f"{QUEUE}/deliveries?{query}")
    assert answer.status == 400
    hub.call("PUT", "/queues/pulled", {"queue": {"type": "pull"}})
    assert hub.call("GET", "/queues/pulled/deliveries?state=retrying").status == 400


def test_a_subscriber_is_told_of_hour_by_hour(hub: Hub) -> None:
    now = hub.world.clock.now()
    this = now - now % HOUR_MS
    queue = hub.world.config.queue(PROJECT, "orders")
    assert queue is not None
    assert queue.push is not None
    shop = queue.push.subscribers[0].subscriber_id
    activity = SubscriberActivity(attempts=3, delivered=2, failed=1, given_up=1, took_ms=100, took={11: 3})
    hub.world.ports.activity.add_subscriber_activity(PROJECT, shop, this, activity)
    answer = hub.call("GET", "/activity/subscriber?queue=orders&subscriber=shop&hours=2").body
    unknown = {"p50_ms": None, "p95_ms": None, "p99_ms": None}
    quiet = {"attempts": 0, "delivered": 0, "failed": 0, "given_up": 0, "average_ms": None, **unknown}
    busy = {"attempts": 3, "delivered": 2, "failed": 1, "given_up": 1, "average_ms": 33}
    took = {"p50_ms": 31, "p95_ms": 34, "p99_ms": 34}
    assert answer == {
        "hours": [
            {"hour": iso_time(this - HOUR_MS), **quiet},
            {"hour": iso_time(this), **busy, **took},
        ],
        **took,
        "complete": True,
    }
    # Its activity can be read by its id, without a queue; an unknown id has none
    by_id = hub.call("GET", f"/activity/subscriber?subscriber={shop}&hours=1").body
    assert by_id["hours"] == answer["hours"][1:]
    assert hub.call("GET", "/activity/subscriber?subscriber=other&hours=1").body["hours"][0]["attempts"] == 0
    assert hub.call("GET", "/activity/subscriber?queue=orders&subscriber=other").status == 404
    assert hub.call("GET", "/activity/subscriber?queue=none&subscriber=shop").status == 404
    assert hub.call("GET", "/activity/subscriber?queue=orders&subscriber=shop&hours=999").status == 400
