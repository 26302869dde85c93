"""Pushing on fakes: which subscribers are asked, when they are retried, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.engine.world import BASE_URL, PROJECT, World, subscribers
from tests.fakes import Reply

from pushhub.base.errors import Unavailable
from pushhub.base.ids import push_reservation_id
from pushhub.base.ports import PushRequest
from pushhub.base.verdict import Answer
from pushhub.engine.model.delivery import Delivery, DeliveryState
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.message import NewMessage
from pushhub.engine.model.queue import Subscriber

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


def test_the_headers_of_a_subscriber_are_sent_and_the_hubs_own_win() -> None:
    world = World()
    sub = Subscriber(
        subscriber_id="s0",
        name="n",
        url=A,
        headers={"content-type": "application/json", "X-Key": "1", "iron-message-id": "forged"},
    )
    world.make_queue("q", [sub])
    [message_id] = world.post("q", b"{}")
    world.run(seconds=5)
    headers = world.sender.requests[0].headers
    assert headers["content-type"] == "application/json"
    assert headers["X-Key"] == "1"
    assert headers["Iron-Message-Id"] == message_id
    assert "iron-message-id" not in headers
    assert "Content-Type" not in headers


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


def test_retries_keep_their_distance() -> None:
    world = World()
    world.make_queue("q", subscribers(A), retries=3, retries_delay=100)
    world.sender.script(A, Reply(status_code=500, takes_ms=2000))
    start = world.clock.now()
    [message_id] = world.post("q", b"x")
    world.run(seconds=1000)
    [delivery] = world.deliveries(message_id)
    # Four tries of 2 s each, three waits of 100 s between end and start
    assert delivery.settled_at == start + 4 * 2000 + 3 * 100_000


def test_unicast_stops_at_the_first_that_accepts() -> None:
    world = World()
    world.make_queue("q", subscribers(A, B, C), unicast=True)
    world.sender.script(A, 500)
    world.sender.script(B, 301)
    ids = world.post("q", *[b"x"] * 9)
    world.run(seconds=5)
    assert len(world.sender.requests_to(C)) == 9
    assert all(world.deliveries(each)[0].state is DeliveryState.DELIVERED for each in ids)
    assert all(world.deliveries(each)[0].tries == 1 for each in ids)


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


def test_an_unacknowledged_202_is_pushed_again_and_ends_in_the_error_queue() -> None:
    world = World()
    world.make_queue("q", subscribers(A), retries=1, retries_delay=30, error_queue="failed")
    world.sender.script(A, 202)
    world.post("q", b"x")
    world.run(seconds=59)
    assert len(world.sender.requests) == 2
    assert world.pulled("failed") == []
    world.run(seconds=10)
    assert len(world.sender.requests) == 2
    assert len(world.pulled("failed")) == 1


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


def test_a_history_longer_than_sqs_keeps_messages_goes_on() -> None:
    world = World()
    world.make_queue("q", subscribers(A), retries=100, retries_delay=86_400, expiration=2_592_000)
    world.sender.script(A, *[500] * 20, 200)
    [message_id] = world.post("q", b"x")
    world.run(seconds=21 * 86_400)
    [delivery] = world.deliveries(message_id)
    assert (delivery.state, delivery.tries) == (DeliveryState.DELIVERED, 21)


def test_a_hundred_short_retries_fit_one_queue_message() -> None:
    world = World()
    world.make_queue("q", subscribers(A), retries=100, retries_delay=900, error_queue="failed")
    world.sender.script(A, 500)
    [message_id] = world.post("q", b"x")
    world.run(seconds=101 * 901)
    [delivery] = world.deliveries(message_id)
    assert (delivery.state, delivery.tries) == (DeliveryState.EXHAUSTED, 101)
    assert len(world.pulled("failed")) == 1
    assert world.retry_queue.dead == []


@pytest.mark.parametrize(("wait_s", "messages"), [(3, 1), (60, 1), (61, 2), (900, 2)])
def test_a_wait_of_a_minute_is_a_visibility_timeout_and_a_longer_one_a_new_message(wait_s: int, messages: int) -> None:
    # Given a subscriber that fails twice
    world = World()
    world.make_queue("q", subscribers(A), retries=2, retries_delay=wait_s)
    world.sender.script(A, 500, 500, 200)
    [message_id] = world.post("q", b"x")
    # When the order has waited once more in the retry queue, where it was sent after the first attempt
    world.run(seconds=2 * wait_s + 10)
    # Then it is the same SQS message, hidden, unless it would have been in flight for long
    assert world.deliveries(message_id)[0].state is DeliveryState.DELIVERED
    assert len(world.retry_queue.sent) == messages


@pytest.mark.parametrize("delay_s", [5, 900, 901, 604_800 - 3600])
def test_a_delayed_message_is_pushed_when_it_is_due_and_not_before(delay_s: int) -> None:
    world = World()
    world.make_queue("q", subscribers(A))
    world.post("q", b"x", delay_s=delay_s)
    world.run(seconds=delay_s - 1)
    assert world.sender.requests == []
    world.run(seconds=62)
    assert len(world.sender.requests) == 1


def test_a_message_expires_at_its_time_and_not_at_its_next_try() -> None:
    world = World()
    world.make_queue("q", subscribers(A), retries=5, retries_delay=600, expiration=700)
    world.sender.script(A, 500)
    [message_id] = world.post("q", b"x")
    start = world.clock.now()
    world.run(seconds=2000)
    [delivery] = world.deliveries(message_id)
    assert delivery.state is DeliveryState.EXPIRED
    assert delivery.settled_at is not None
    assert 0 <= delivery.settled_at - start - 700_000 < 2000
    assert len(world.sender.requests) == 2


def test_duplicates_and_stale_orders_do_nothing() -> None:
    # Given a delivery that was made
    world = World()
    world.make_queue("q", subscribers(A))
    world.post("q", b"x")
    world.dispatch_only()
    [received] = world.push_queue.receive()
    world.push.run([received, received], source=world.push_queue, remaining_ms=lambda: 10**6)
    assert len(world.sender.requests) == 1
    # When SQS delivers its order again, now and much later
    world.push_queue.duplicate(received.receipt_handle)
    world.push_queue.duplicate(received.receipt_handle, after_s=86_400)
    world.run(seconds=2 * 86_400)
    # Then nobody is asked again
    assert len(world.sender.requests) == 1


def test_a_stale_order_of_a_waiting_delivery_does_not_push_early() -> None:
    world = World()
    world.make_queue("q", subscribers(A), retries=3, retries_delay=300)
    world.sender.script(A, 500, 200)
    world.post("q", b"x")
    world.dispatch_only()
    [received] = world.push_queue.receive()
    world.push_queue.duplicate(received.receipt_handle)
    world.push_queue.duplicate(received.receipt_handle, after_s=100)
    assert world.push.run([received], source=world.push_queue, remaining_ms=lambda: 10**6) == set()
    world.push_queue.delete([received.receipt_handle])
    world.run(seconds=299)
    assert len(world.sender.requests) == 1
    world.run(seconds=3)
    assert len(world.sender.requests) == 2


def test_no_attempt_starts_that_could_outlast_the_invocation() -> None:
    world = World()
    world.make_queue("q", subscribers(A))
    world.post("q", b"x")
    world.dispatch_only()
    [received] = world.push_queue.receive()
    world.push.run([received], source=world.push_queue, remaining_ms=lambda: 14_000)
    assert world.sender.requests == []
    assert len(world.retry_queue) == 1


def test_a_removed_subscriber_ends_in_the_error_queue() -> None:
    world = World()
    world.make_queue("q", subscribers(A, B), retries=3, retries_delay=60, error_queue="failed")
    world.sender.script(B, 500)
    world.post("q", b"x")
    world.run(seconds=5)
    current = world.config.queue(PROJECT, "q", fresh=True)
    assert current is not None
    assert current.push is not None
    world.config.update_queue(replace(current, push=replace(current.push, subscribers=subscribers(A))))
    world.run(seconds=200)
    assert len(world.sender.requests_to(B)) == 1
    [error] = world.pulled("failed")
    assert json.loads(error)["subscribers"][0] == {
        "name": "name-1",
        "url": B,
        "code": 500,
        "msg": "Internal Server Error",
    }


def test_a_unicast_message_whose_subscribers_are_all_gone_is_given_up_at_once() -> None:
    # Given a unicast message that failed once, and all its subscribers replaced by another one
    world = World()
    world.make_queue("q", subscribers(A, B), unicast=True, retries=9, retries_delay=60, error_queue="failed")
    for url in (A, B):
        world.sender.script(url, 500)
    world.post("q", b"x")
    world.run(seconds=5)
    current = world.config.queue(PROJECT, "q", fresh=True)
    assert current is not None
    assert current.push is not None
    another = Subscriber(subscriber_id="s9", name="another", url=C)
    world.config.update_queue(replace(current, push=replace(current.push, subscribers=(another,))))
    # When it is processed again, then it ends in the error queue, and nobody is asked
    world.run(seconds=61)
    assert len(world.sender.requests) == 2
    [error] = world.pulled("failed")
    assert {each["msg"] for each in json.loads(error)["subscribers"]} == {"Internal Server Error"}
    assert {each["url"] for each in json.loads(error)["subscribers"]} == {A, B}


def test_deleting_the_queue_stops_its_pushes() -> None:
    world = World()
    queue = world.make_queue("q", subscribers(A), retries=3, retries_delay=60)
    world.sender.script(A, 500)
    [message_id] = world.post("q", b"x")
    world.run(seconds=5)
    world.config.delete_queue(queue)
    world.run(seconds=600)
    assert len(world.sender.requests) == 1
    assert world.deliveries(message_id)[0].state is DeliveryState.CANCELLED


def test_one_wide_event_tells_of_each_attempt() -> None:
    world = World()
    world.make_queue("q", subscribers(A), retries=1, retries_delay=3)
    world.sender.script(A, 500, 200)
    world.post("q", b"x")
    world.run(seconds=60)
    events = world.telemetry.named("attempt")
    assert [(each["attempt"], each["state"], each["status_code"]) for each in events] == [
        (1, "retrying", 500),
        (2, "delivered", 200),
    ]
    assert events[0]["wait_after_ms"] == 3000
    assert world.telemetry.counts["DeliveriesDelivered"] == 1


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


def test_an_order_that_our_own_code_fails_on_ends_in_the_dead_letter_queue() -> None:
    # Given a fault of ours in each attempt at a delivery
    world = World()
    world.make_queue("q", subscribers(A))
    world.post("q", b"x")

    def fault(request: PushRequest) -> Answer:
        raise TypeError("a mistake")

    world.sender.send = fault  # type: ignore[method-assign]
    world.run(seconds=86_400)
    # Then its order is not retried for ever
    assert [each.message and each.message.body for each in world.push_queue.dead] == [b"x"]


def test_an_old_message_is_replaced_before_its_queue_drops_it() -> None:
    # Given a waiting order whose message is five days old
    world = World()
    world.make_queue("q", subscribers(A), retries=3, retries_delay=300)
    world.sender.script(A, 500, 500)
    world.post("q", b"x")
    world.run(seconds=1)
    world.clock.advance(seconds=5 * 86_400)
    [received] = world.retry_queue.receive()
    # When it has to wait further
    keep = world.push.run([received], source=world.retry_queue, remaining_ms=lambda: 10**6)
    # Then a new message carries the order
    assert keep == set()
    assert len(world.retry_queue.sent) == 2


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
