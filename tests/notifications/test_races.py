"""Events between two steps of a sender or a publisher: each once, at the only moment where it could do harm."""

from __future__ import annotations

import pytest
from tests.fakes import Crash
from tests.notifications.world import PROJECT, NotificationWorld

from pushhub.base.errors import Unavailable
from pushhub.notifications.model.backlog import Backlog
from pushhub.notifications.model.topic import Head, Reservation, Topic
from pushhub.notifications.ports import Connection, WakeUp

TOPIC = Topic(project=PROJECT, name="orders")


def test_what_was_sent_to_a_consumer_that_left_before_it_was_recorded_comes_again(world: NotificationWorld) -> None:
    # Given a consumer whose connection ends, and the hub is told, while three are sent to it
    world.connect("a")
    world.publish(1, 2, 3)
    world.sockets.meanwhile = world.disconnect
    world.send_all()
    assert world.numbers("a") == [1]
    world.sockets.meanwhile = lambda _: None
    # When it connects again
    world.connect("b")
    world.send_all()
    # Then it gets all of them, including the one that was on the wire
    assert world.numbers("b") == [1, 2, 3]


def test_what_was_acknowledged_before_its_sending_was_recorded_does_not_come_again(world: NotificationWorld) -> None:
    # Given a consumer that acknowledges at once, and whose connection ends before the sender has recorded anything
    world.connect("a")
    world.publish(1, 2, 3)

    def meanwhile(connection_id: str) -> None:
        number = world.numbers(connection_id)[-1]
        world.acknowledge(connection_id, number)
        if number == 2:
            world.disconnect(connection_id)

    world.sockets.meanwhile = meanwhile
    world.send_all()
    world.sockets.meanwhile = lambda _: None
    # When it connects again, it gets the third only
    world.connect("b")
    world.send_all()
    assert world.numbers("b") == [3]


def test_what_was_acknowledged_does_not_come_again_where_recording_it_was_repeated(world: NotificationWorld) -> None:
    # Given a sender whose call to record what was sent takes effect but gets no answer; before the client repeats it,
    # the consumer acknowledges and leaves
    world.connect("a")
    world.publish(1, 2, 3)
    real = world.backlogs.save

    def save(backlog: Backlog) -> None:
        world.backlogs.save = real  # type: ignore[method-assign]
        real(backlog)
        world.acknowledge("a", 2)
        world.disconnect("a")
        real(backlog)

    world.backlogs.save = save  # type: ignore[method-assign]
    world.send_all()
    assert world.numbers("a") == [1, 2, 3]
    # When it connects again, then it gets only the others
    world.connect("b")
    world.send_all()
    assert world.numbers("b") == [1, 3]


def test_an_acknowledgement_just_before_it_would_wake_the_sender_still_frees_its_place() -> None:
    # Given a full window, more that waits, and a wake-up that is older than the backlog
    world = NotificationWorld(window=3)
    world.rule()
    world.connect("a")
    world.publish(1, 2, 3)
    world.send_all()
    world.publish(4)
    (backlog,) = world.backlogs.backlogs(TOPIC)
    old = WakeUp(topic=TOPIC, subscriber="app", subscriber_uid=backlog.uid, version=backlog.version - 1)
    # When an acknowledgement arrives after the sender has looked, and before it asks to be woken by one
    real = world.connections.stall

    def stall(connection_id: str, *, stalled: bool) -> Connection | None:
        world.connections.stall = real  # type: ignore[method-assign]
        world.acknowledge("a", 2)
        return real(connection_id, stalled=stalled)

    world.connections.stall = stall  # type: ignore[method-assign]
    assert world.sender.look(old, lambda: 60_000) is None
    # Then the sender has seen it
    assert world.numbers("a") == [1, 2, 3, 4]


def test_what_comes_again_comes_before_what_is_new_also_when_some_of_it_has_expired(world: NotificationWorld) -> None:
    # Given more to resend than one pass sends, the oldest of which expire
    world.connect("a")
    world.publish(*range(100))
    world.clock.advance(seconds=3600)
    for start in range(100, 600, 100):
        world.publish(*range(start, start + 100))
    world.send_all()
    world.disconnect("a")
    world.clock.advance(seconds=35 * 3600)
    # When something new was published before the consumer is back
    world.publish(600)
    world.connect("b")
    world.send_all()
    # Then the rest comes first, in order
    assert world.numbers("b") == list(range(100, 601))


def test_a_frame_that_could_not_be_sent_keeps_those_after_it_back(world: NotificationWorld) -> None:
    # Given a call that fails once, in the middle of a pass
    world.connect("a")
    world.publish(1, 2, 3, 4)
    real, calls = world.sockets.send, 0

    def send(connection_id: str, text: str) -> bool:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise Unavailable("execute-api:PostToConnection")
        return real(connection_id, text)

    world.sockets.send = send  # type: ignore[method-assign]
    world.send_all()
    # Then all arrive, in order
    assert world.numbers("a") == [1, 2, 3, 4]


def test_every_subscriber_that_is_connected_is_woken(world: NotificationWorld) -> None:
    names = [f"s{number}" for number in range(12)]
    for name in names:
        world.connect(name, world.token(name))
    world.send_all()
    # Given several waiting subscribers, when something is published
    world.publish(1)
    world.send_all()
    # Then each gets it
    assert [world.numbers(name) for name in names] == [[1]] * len(names)


def test_a_publisher_that_stood_still_for_a_minute_does_not_write_where_readers_have_passed(
    world: NotificationWorld,
) -> None:
    # Given a publisher that pauses after reserving its place, for so long that the readers skip a gap of that width
    world.connect("a")
    world.send_all()
    reserve = world.topics.reserve

    def slow_reserve(topic: Topic, size: int, now: int, *, admitted: bool = False) -> Reservation | None:
        world.topics.reserve = reserve  # type: ignore[method-assign]
        place = reserve(topic, size, now, admitted=admitted)
        for _ in range(40):
            reserve(TOPIC, 10, world.clock.now())
        world.publish(2)
        world.clock.advance(seconds=61)
        world.send_all()
        assert world.numbers("a") == [2]
        return place

    world.topics.reserve = slow_reserve  # type: ignore[method-assign]
    world.publish(1)
    world.send_all()
    # Then its notifications arrive, after those that overtook them
    assert world.numbers("a") == [2, 1]


def test_a_consumer_that_connects_while_its_subscriber_is_removed_goes_with_it(world: NotificationWorld) -> None:
    # Given a subscriber that is being removed, and is owed nothing any more
    world.connect("a")
    dismiss = world.topics.dismiss

    def dismissed(topic: Topic, subscriber_uid: str) -> None:
        world.topics.dismiss = dismiss  # type: ignore[method-assign]
        dismiss(topic, subscriber_uid)
        # When another consumer of it connects before its backlog is deleted
        world.disconnect("a")
        world.connect("b")

    world.topics.dismiss = dismissed  # type: ignore[method-assign]
    world.subscribers.unsubscribe(world.token())
    # Then it does not wait for what never comes, and nothing is kept for a subscriber that is not there
    assert world.sockets.closed == ["b"]
    assert world.backlogs.backlogs(TOPIC) == []
    head = world.topics.head(TOPIC)
    assert head is not None
    assert not head.subscribers


def test_nothing_is_kept_for_a_consumer_that_died_while_its_subscriber_was_removed(world: NotificationWorld) -> None:
    # Given a consumer that dies when its subscriber is owed something, which was removed meanwhile, and is not stored
    admit = world.topics.admit

    def died(topic: Topic, subscriber_uid: str, *, ceiling: int) -> Head:
        world.topics.admit = admit  # type: ignore[method-assign]
        world.subscribers.unsubscribe(world.token())
        admit(topic, subscriber_uid, ceiling=ceiling)
        raise Crash

    world.topics.admit = died  # type: ignore[method-assign]
    with pytest.raises(Crash):
        world.connect("a")
    # When something is published
    world.publish(1)
    # Then nothing is kept from then on: there is nobody to read it
    world.publish(2)
    assert [len(each.notifications) for each in world.topics.commits(TOPIC, 1, 10)] == [1]
