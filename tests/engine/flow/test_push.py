"""Pushing on fakes: which subscribers are asked, when they are retried, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.engine.world import BASE_URL, PROJECT, World, subscribers
from tests.fakes import Reply

from pushhub.base.errors import Unavailable
from pushhub.base.ids import push_reservation_id
from pushhub.base.ports import PushRequest
from pushhub.base.verdict import Answer
from pushhub.engine.model.delivery import Delivery, DeliveryState
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.message import NewMessage

A, B, C = "https://a.example/in", "https://b.example/in", "https://c.example/in"


def test_a_push_carries_the_bytes_and_headers_of_ironmq() -> None:
    # Given a queue with one subscriber, and a body that is not UTF-8
    world = World()
    queue = world.make_queue("orders & more", subscribers(A))
    # When a message is posted
    [message_id] = world.post("orders & more", b"\xff\x00 caf\xc3\xa9")
    world.run(seconds=5)
    # Then exactly one request was made, with the bytes as they are
    [request] = world.sender.requests
    assert (request.method, request.url, request.body) == ("POST", A, b"\xff\x00 caf\xc3\xa9")
    reservation = push_reservation_id(queue.secret, message_id, "s0", 1)
    url = f"{BASE_URL}/3/projects/{PROJECT}/queues/orders%20%26%20more/messages/{message_id}"
    assert dict(request.headers) == {
        "User-Agent": "IronMQ Pusherd",
        "Content-Type": "text/plain; encoding=utf-8",
        "Pushhub-Hops": "1",
        "Pushhub-Descendants": "1000",
        "Iron-Message-Id": message_id,
        "Iron-Reservation-Id": reservation,
        "Iron-Subscriber-Name": "name-0",
        "Iron-Subscriber-Message-Url": f"{url}?reservation_id={reservation}&subscriber_name=name-0",
    }
    assert request.timeout_s == 10
    [delivery] = world.deliveries(message_id)
    assert delivery.state is DeliveryState.DELIVERED


def test_multicast_retries_only_who_failed_and_reports_it_once() -> None:
    # Given one healthy, one flaky and one dead subscriber
    world = World()
    world.make_queue("q", subscribers(A, B, C), retries=2, retries_delay=60, error_queue="failed")
    world.sender.script(B, 500, 200)
    world.sender.script(C, Reply(error_class="connect", message="connection refused"))
    # When a message is posted and time passes
    [message_id] = world.post("q", b"hello")
    world.run(seconds=600)
    # Then each was asked as often as needed
    assert [len(world.sender.requests_to(url)) for url in (A, B, C)] == [1, 2, 3]
    # And the dead one is reported in the error queue, once
    [error] = world.pulled("failed")
    assert json.loads(error) == {
        "source_msg_id": message_id,
        "queue": "q",
        "body": "hello",
        "headers": {},
        "subscribers": [{"name": "name-2", "url": C, "code": 0, "msg": "connection refused"}],
    }


def test_unicast_gives_one_error_message_with_all_subscribers() -> None:
    world = World()
    world.make_queue("q", subscribers(A, B), unicast=True, retries=1, retries_delay=3, error_queue="failed")
    world.sender.script(A, 500)
    world.sender.script(B, 404)
    world.post("q", b"x")
    world.run(seconds=60)
    assert [len(world.sender.requests_to(url)) for url in (A, B)] == [2, 2]
    [error] = world.pulled("failed")
    assert [(each["name"], each["code"]) for each in json.loads(error)["subscribers"]] == [
        ("name-0", 500),
        ("name-1", 404),
    ]


def test_a_long_wait_is_scheduled_and_woken() -> None:
    # Given retries a day apart
    world = World()
    world.make_queue("q", subscribers(A), retries=2, retries_delay=86_400)
    world.sender.script(A, 500, 500, 200)
    [message_id] = world.post("q", b"x" * 9000)
    # When the first try failed
    world.run(seconds=10)
    # Then it waits in the store and no queue holds it
    assert world.messages.scheduled()
    assert len(world.push_queue) == len(world.retry_queue) == 0
    # And two days later it was delivered
    world.run(seconds=2 * 86_400 + 300)
    [delivery] = world.deliveries(message_id)
    assert (delivery.state, delivery.tries) == (DeliveryState.DELIVERED, 3)
    assert [each.body for each in world.sender.requests] == [b"x" * 9000] * 3


def test_messages_of_two_queues_with_the_same_id_are_both_pushed() -> None:
    # Given two unicast queues, each with a message that the hub derived the same id for
    world = World()
    for name, url in (("first", A), ("second", B)):
        world.make_queue(name, subscribers(url), unicast=True)
    ids = {
        world.queue_intake.post_caused(PROJECT, name, NewMessage(body=name.encode()), cause="c", at=world.clock.now())
        for name in ("first", "second")
    }
    assert len(ids) == 1
    # When SQS hands both orders over in one batch
    world.run(seconds=5)
    # Then each subscriber has its own, and both deliveries are recorded
    assert [(each.url, each.body) for each in world.sender.requests] == [(A, b"first"), (B, b"second")]
    assert [each.state for each in world.deliveries(*ids)] == [DeliveryState.DELIVERED] * 2


def test_a_fault_of_our_own_is_told_with_its_place_and_without_what_it_was_about() -> None:
    # Given a fault whose text repeats the URL with its token, while its neighbours are fine
    world = World()
    world.make_queue("q", subscribers(f"{A}?auth=TOPSECRET", B))
    send = world.sender.send

    def broken(request: PushRequest) -> Answer:
        return send(request) if request.url == B else Answer(**{request.url: 1})  # type: ignore[arg-type]

    world.sender.send = broken  # type: ignore[method-assign]
    world.post("q", b"x")
    world.run(seconds=1)
    # Then the log says what went wrong and where, but not the URL
    [fault] = world.telemetry.named("push_fault")
    assert fault["error"] == "TypeError"
    assert "test_push.py" in str(fault["at"])
    assert "TOPSECRET" not in str(world.telemetry.events)
    assert world.telemetry.counts["PushFaults"] == 1
    assert [each.url for each in world.sender.requests] == [B]


def test_a_day_of_a_broken_store_gives_no_order_up() -> None:
    # Given a delivery whose state cannot be read for a day
    world = World()
    world.make_queue("q", subscribers(A))
    world.post("q", b"x")
    world.dispatch_only()
    readable = world.messages.deliveries

    def broken(keys: Sequence[DeliveryKey], *, consistent: bool = True) -> dict[DeliveryKey, Delivery]:
        raise Unavailable("dynamodb:BatchGetItem")

    world.messages.deliveries = broken  # type: ignore[method-assign]
    world.run(seconds=86_400)
    assert world.sender.requests == []
    # When it can be read again, then the message is delivered, and no queue dropped its order
    world.messages.deliveries = readable  # type: ignore[method-assign]
    world.run(seconds=1000)
    assert len(world.sender.requests) == 1
    assert world.push_queue.dead == []
    assert world.retry_queue.dead == []


def test_the_log_may_leave_out_attempts_that_delivered_at_the_first_try() -> None:
    # Given an operator who wants to be told of exceptions only
    world = World()
    world.ports.tells_first_successes = False
    world.sender.script(A, 200, 503, 200)
    world.make_queue("q", subscribers(A))
    # When one message is delivered at once, and one at the second try
    world.post("q", b"at once")
    world.run(seconds=1)
    world.post("q", b"later")
    world.run(seconds=120)
    # Then both tries of the second have their events, and the metrics have all
    events = world.telemetry.named("attempt")
    assert [(each["attempt"], each["state"]) for each in events] == [(1, "retrying"), (2, "delivered")]
    assert world.telemetry.counts["DeliveriesDelivered"] == 2
