"""Delivery to consumers: windows, acknowledgements, redelivery, sharing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.notifications.world import PROJECT, NotificationWorld

from pushhub.base.errors import Unavailable
from pushhub.notifications.model.backlog import (
    MAX_CONSUMERS,
    MAX_HELD,
    WINDOW,
    Backlog,
    Consumer,
    Entry,
)
from pushhub.notifications.model.topic import Topic, position_at
from pushhub.notifications.store._items import encode_backlog

TOPIC = Topic(project=PROJECT, name="orders")


def test_nothing_from_before_the_first_connection_everything_after_it(world: NotificationWorld) -> None:
    # Given a notification that nobody was there for
    world.publish(1)
    # When a consumer connects and more is published
    world.connect("a")
    world.publish(2)
    world.publish(3, 4)
    world.send_all()
    # Then it receives only that, in order
    assert world.numbers("a") == [2, 3, 4]


def test_a_frame_has_the_documented_lines(world: NotificationWorld) -> None:
    world.connect("a")
    world.publish(1, source="4711", api="alarms")
    world.send_all()
    (text,) = world.sockets.frames("a")
    ack_id, description, action, blank, body = text.split("\n")
    assert (description, action, blank, body) == (f"/{PROJECT}/alarms/4711", "CREATE", "", '{"n":1}')
    assert ack_id.endswith("=")


def test_what_was_not_acknowledged_is_sent_again_after_a_reconnect_in_order(world: NotificationWorld) -> None:
    # Given five notifications, of which the second and fourth were acknowledged
    world.connect("a")
    world.publish(1, 2, 3, 4, 5)
    world.send_all()
    world.acknowledge("a", 4, 2)
    # When the connection is lost and more is published meanwhile
    world.disconnect("a")
    world.publish(6)
    world.send_all()
    world.connect("b")
    world.send_all()
    # Then the next connection gets exactly the others
    assert world.numbers("b") == [1, 3, 5, 6]


def test_without_a_reconnect_nothing_is_sent_twice(world: NotificationWorld) -> None:
    world.connect("a")
    world.publish(1)
    world.send_all()
    world.clock.advance(seconds=3600)
    world.publish(2)
    world.send_all()
    assert world.numbers("a") == [1, 2]


def test_the_window_is_exact_and_each_acknowledgement_frees_one_place() -> None:
    # Given a window of three
    world = NotificationWorld(window=3)
    world.rule()
    world.connect("a")
    # When five are published
    world.publish(1, 2, 3, 4, 5)
    world.send_all()
    # Then three arrive
    assert world.numbers("a") == [1, 2, 3]
    # And one more for each acknowledgement, whichever it is; a repeated one counts once
    world.acknowledge("a", 2)
    world.send_all()
    assert world.numbers("a") == [1, 2, 3, 4]
    world.start()
    world.acknowledge("a", 2)
    world.send_all()
    assert world.numbers("a") == [1, 2, 3, 4]
    world.acknowledge("a", 4)
    world.send_all()
    assert world.numbers("a") == [1, 2, 3, 4, 5]


def test_a_missing_acknowledgement_blocks_nothing_and_thousands_of_others_are_forgotten(
    world: NotificationWorld,
) -> None:
    # Given a consumer that acknowledges everything but the first
    world.connect("a")
    for start in range(0, 2500, 100):
        world.publish(*range(start, start + 100))
        world.send_all()
        world.acknowledge("a", *range(max(1, start), start + 100))
    world.send_all()
    # Then it receives all, and its stored state stays small
    assert world.numbers("a") == list(range(2500))
    (connection,) = world.connections.connections(["a"]).values()
    assert len(connection.acknowledged) < 400
    # And only the first one is sent again
    world.disconnect("a")
    world.connect("b")
    world.send_all()
    assert world.numbers("b") == [0]


def test_a_dead_socket_makes_room_for_the_next_connection(world: NotificationWorld) -> None:
    # Given a consumer that died unnoticed
    world.connect("a")
    world.publish(1)
    world.send_all()
    world.sockets.cut("a")
    # When the client connects again
    world.connect("b")
    world.send_all()
    # Then it is let in at once and gets what was not acknowledged
    assert world.numbers("b") == [1]


def test_sending_to_a_dead_socket_frees_the_subscriber(world: NotificationWorld) -> None:
    world.connect("a")
    world.publish(1)
    world.send_all()
    world.sockets.cut("a")
    world.publish(2)
    world.send_all()
    (backlog,) = world.backlogs.backlogs(world.rules.subscriptions(PROJECT)[0].topic)
    assert backlog.consumers == ()
    assert world.connections.connections(["a"]) == {}


def test_a_consumer_whose_handshake_is_not_finished_is_waited_for(world: NotificationWorld) -> None:
    # Given a connection that API Gateway does not know yet
    world.consumers.connect(world.token(), "", "a")
    world.publish(1)
    # When the sender looks at once, and again after the handshake
    world.send_once()
    assert len(world.queue) == 1
    world.sockets.opened("a")
    world.send_all()
    # Then nothing was lost
    assert world.numbers("a") == [1]


def test_several_subscribers_get_the_very_same_frames(world: NotificationWorld) -> None:
    for name in ("one", "two", "three"):
        world.connect(name, world.token(name))
    world.publish(1, 2)
    world.send_all()
    assert world.sockets.frames("one") == world.sockets.frames("two") == world.sockets.frames("three")
    assert len(world.sockets.frames("one")) == 2


def test_shared_consumers_divide_the_sources_and_a_leaver_s_rest_goes_to_the_others(world: NotificationWorld) -> None:
    # Given two consumers of a shared subscriber
    token = world.token(shared=True)
    world.connect("a", token, "alpha")
    world.connect("b", token, "beta")
    for number in range(60):
        world.publish(number, source=f"s{number % 10}")
    world.send_all()
    # Then both have a share, and every source is with one of them, in order
    shares = {each: world.frames(each) for each in ("a", "b")}
    assert sorted(world.numbers("a") + world.numbers("b")) == list(range(60))
    sources = {each: {frame.description for frame in frames} for each, frames in shares.items()}
    assert sources["a"]
    assert sources["b"]
    assert not sources["a"] & sources["b"]
    # When one leaves with everything unacknowledged
    world.disconnect("a")
    world.send_all()
    # Then the other gets it, oldest first
    again = world.numbers("b")[len(shares["b"]) :]
    assert again == world.numbers("a")
    # And when it returns under its name, its sources return to it once the other one has acknowledged theirs
    world.acknowledge("b", *range(60))
    world.connect("c", token, "alpha")
    for number in range(60, 120):
        world.publish(number, source=f"s{number % 10}")
    world.send_all()
    assert {frame.description for frame in world.frames("c")} == sources["a"]


def test_a_shared_consumer_that_is_stuck_far_behind_does_not_hold_up_the_others() -> None:
    # Given a consumer that acknowledges nothing, with far more of its sources waiting than its window holds
    world = NotificationWorld(window=50)
    world.rule()
    token = world.token(shared=True)
    world.connect("a", token, "alpha")
    world.publish(0, source="stuck")
    world.send_all()
    world.connect("b", token, "beta")
    for start in range(1, 1401, 100):
        world.publish(*range(start, start + 100), source="stuck")
    world.send_all()
    # When its sibling is sent something, then it gets it
    owners = {f"s{number}": number for number in range(40)}
    for source, number in owners.items():
        world.publish(10_000 + number, source=source)
        world.send_all()
        world.acknowledge("b", *world.numbers("b"))
    got = len(world.numbers("b"))
    assert got > 10
    # And when the stuck one leaves, then its sibling gets all of it, in order
    world.disconnect("a")
    for _ in range(30):
        world.send_all()
        world.acknowledge("b", *world.numbers("b")[-50:])
    stuck = [each for each in world.numbers("b") if each < 10_000]
    assert stuck == list(range(1401))
    assert len(world.numbers("b")) == 1401 + 40


def test_the_largest_backlog_fits_an_item() -> None:
    # Given the maximum number of consumers, each with the longest name and a full window, and the maximum passed over
    entries = [Entry(position_at(1_000_000 + number * 15_000), number % 65_536) for number in range(WINDOW)]
    consumers = tuple(
        Consumer(
            connection_id=f"{number:0>20}=",
            name="\U0001f600" * 200,
            joined_at=1_795_000_000_000,
            active_at=1_795_000_000_000,
            unacknowledged=tuple(entries),
        )
        for number in range(MAX_CONSUMERS)
    )
    held = tuple(Entry(position_at(2_000_000 + number * 15_000), number % 65_536) for number in range(MAX_HELD))
    backlog = Backlog(
        topic=TOPIC,
        subscriber="\U0001f600" * 200,
        uid="0123456789ab",
        shared=True,
        next=1 << 50,
        returned=held,
        consumers=consumers,
        created_at=1_795_000_000_000,
        version=1_000_000,
    )

    # Then it fits into a DynamoDB item
    def size(value: Any) -> int:
        if isinstance(value, dict):
            return sum(len(name) + 1 + size(each) for name, each in value.items())
        if isinstance(value, list):
            return sum(1 + size(each) for each in value)
        return len(value.encode() if isinstance(value, str) else value) if not isinstance(value, bool) else 1

    assert size(encode_backlog(backlog)) < 400 * 1024


def test_a_shared_consumer_that_cannot_be_sent_to_does_not_hold_up_the_others(world: NotificationWorld) -> None:
    # Given a consumer whose connection API Gateway has no room for, as it does not read
    token = world.token(shared=True)
    world.connect("a", token, "alpha")
    world.connect("b", token, "beta")
    world.send_all()
    real = world.sockets.send

    def send(connection_id: str, text: str) -> bool:
        if connection_id == "a":
            raise Unavailable("execute-api:PostToConnection")
        return real(connection_id, text)

    world.sockets.send = send  # type: ignore[method-assign]
    for number in range(40):
        world.publish(number, source=f"s{number % 10}")
    for _ in range(5):
        world.send_once()
    # Then its sibling has got all of its own
    mine = world.numbers("b")
    assert mine
    assert world.numbers("a") == []
    # And when it reads again it gets the rest, in order
    world.sockets.send = real  # type: ignore[method-assign]
    world.send_all()
    assert world.numbers("b") == mine
    assert world.numbers("a") == [each for each in range(40) if each not in mine]


def test_several_acknowledgements_may_come_in_one_frame(world: NotificationWorld) -> None:
    world.connect("a")
    world.publish(1, 2, 3, 4)
    world.send_all()
    first, second, third, fourth = (each.ack_id for each in world.frames("a"))
    world.consumers.receive("a", f"{first}\r\n{fourth}\ngarbage\n{first}\n{second}\n")
    # Each on a line of its own: this is none.
    world.consumers.receive("a", f"{third} {third}")
    world.disconnect("a")
    world.connect("b")
    world.send_all()
    assert world.numbers("b") == [3]


def test_a_non_persistent_topic_starts_anew_at_each_connection() -> None:
    world = NotificationWorld()
    world.rule(non_persistent=True)
    token = world.token(volatile=True)
    world.connect("a", token)
    world.publish(1, 2)
    world.send_all()
    world.acknowledge("a", 1)
    world.disconnect("a")
    world.publish(3)
    world.connect("b", token)
    world.publish(4)
    world.send_all()
    assert world.numbers("a") == [1, 2]
    assert world.numbers("b") == [4]


def test_unsubscribing_in_band_removes_the_subscriber_and_closes_the_connection(world: NotificationWorld) -> None:
    world.connect("a")
    world.publish(1)
    world.send_all()
    world.consumers.receive("a", "unsubscribe_subscriber\n")
    assert world.sockets.closed == ["a"]
    world.publish(2)
    world.connect("b")
    world.publish(3)
    world.send_all()
    assert world.numbers("b") == [3]


@pytest.mark.parametrize("text", ["", "garbage", "=" * 16, "AAAAAAAAAAAAAAA=", "x" * 100_000, "\x00\ud800"])
def test_garbage_from_a_consumer_is_ignored(world: NotificationWorld, text: str) -> None:
    world.connect("a")
    world.publish(1)
    world.send_all()
    world.consumers.receive("a", text)
    world.disconnect("a")
    world.connect("b")
    world.send_all()
    assert world.numbers("b") == [1]
