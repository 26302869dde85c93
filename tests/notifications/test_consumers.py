"""Handshakes, tokens, removal, idle connections."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest
from tests.fakes import Crash, Fault, FaultPlan
from tests.notifications.world import PROJECT, SECRET, NotificationWorld

from pushhub.base.errors import Unauthorized, Unavailable
from pushhub.notifications.model.backlog import AlreadyConnected
from pushhub.notifications.model.topic import Topic
from pushhub.notifications.wire.errors import SubscriberUnknown
from pushhub.notifications.wire.tokens import Claims, Tokens

TOPIC = Topic(project=PROJECT, name="orders")


@pytest.fixture
def world() -> NotificationWorld:
    world = NotificationWorld()
    world.rule()
    return world


def test_an_expired_token_is_refused_but_an_open_connection_stays(world: NotificationWorld) -> None:
    token = world.token(minutes=1)
    world.connect("a", token)
    world.clock.advance(seconds=61)
    with pytest.raises(Unauthorized):
        world.connect("b", token)
    world.publish(1)
    world.pump_all()
    assert world.numbers("a") == [1]


@pytest.mark.parametrize("project", ["5e0000000000000000000002", ""])
def test_a_token_of_a_project_that_does_not_exist_is_refused(world: NotificationWorld, project: str) -> None:
    now_s = world.clock.now() // 1000
    claims = Claims(
        topic=Topic(project=project, name="orders"), subscriber="app", issued_at=now_s, expires_at=now_s + 60
    )
    with pytest.raises(Unauthorized):
        world.connect("a", Tokens(lambda: [SECRET]).sign(claims))


def test_a_question_whether_one_may_connect_changes_nothing(world: NotificationWorld) -> None:
    world.consumers.may_connect(world.token())
    assert world.backlogs.backlogs(TOPIC) == []
    world.connect("a")
    with pytest.raises(AlreadyConnected):
        world.consumers.may_connect(world.token())
    world.clock.advance(seconds=6)
    world.sockets.cut("a")
    world.consumers.may_connect(world.token())
    (backlog,) = world.backlogs.backlogs(TOPIC)
    assert [each.connection_id for each in backlog.consumers] == ["a"]


def test_a_connection_that_ended_before_its_handshake_does_not_block_for_long(world: NotificationWorld) -> None:
    # Given a connection that never got further than its $connect
    world.consumers.connect(world.token(), "", "a")
    started = world.clock.now()
    # When the client tries again
    world.connect("b")
    # Then it is let in within the grace of the first
    assert world.clock.now() - started <= 5_250


def test_a_shared_and_an_exclusive_consumer_do_not_mix(world: NotificationWorld) -> None:
    world.connect("a", world.token(shared=True))
    world.clock.advance(seconds=6)
    with pytest.raises(AlreadyConnected):
        world.connect("b", world.token())
    world.disconnect("a")
    world.connect("c", world.token())
    with pytest.raises(AlreadyConnected):
        world.connect("d", world.token(shared=True))


def test_fifty_shared_consumers_are_enough(world: NotificationWorld) -> None:
    for number in range(50):
        world.connect(f"c{number}", world.token(shared=True))
    with pytest.raises(AlreadyConnected):
        world.connect("c50", world.token(shared=True))


def test_two_first_connections_at_once_make_one_subscriber_and_one_of_them_is_refused() -> None:
    for _ in range(20):
        world = NotificationWorld()
        world.rule()
        token = world.token()
        outcomes: list[str] = []
        start = threading.Barrier(2)

        def connect(
            name: str,
            world: NotificationWorld = world,
            token: str = token,
            start: threading.Barrier = start,
            outcomes: list[str] = outcomes,
        ) -> None:
            start.wait()
            try:
                world.connect(name, token)
                outcomes.append(name)
            except AlreadyConnected:
                outcomes.append("refused")

        threads = [threading.Thread(target=connect, args=(name,)) for name in ("a", "b")]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert outcomes.count("refused") == 1
        (backlog,) = world.backlogs.backlogs(TOPIC)
        head = world.topics.head(TOPIC)
        assert head is not None
        assert head.subscribers == {backlog.uid}


def test_a_publish_that_races_a_first_connection_is_either_before_or_after_it() -> None:
    for _ in range(20):
        world = NotificationWorld()
        world.rule()
        threads = [
            threading.Thread(target=world.connect, args=("a",)),
            threading.Thread(target=lambda world=world: [world.publish(each) for each in range(10)]),
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        world.publish(10)
        world.pump_all()
        numbers = world.numbers("a")
        assert numbers == list(range(numbers[0], 11))


@pytest.mark.parametrize("fault", list(Fault))
def test_whatever_fails_while_connecting_the_next_attempt_works_and_nothing_is_lost(fault: Fault) -> None:
    at = 0
    while True:
        at += 1
        world = NotificationWorld()
        world.rule()
        world._plan = plan = FaultPlan(fault, at=at)
        world.start()
        connected = True
        try:
            world.connect("a")
        except (Crash, Unavailable):
            connected = False
        if not plan.struck:
            break
        world._plan = FaultPlan()
        world.start()
        if not connected:
            world.connect("b")
        world.publish(1)
        world.pump_all()
        assert world.numbers("a" if connected else "b") == [1], (fault, at)
        # And nothing is owed to anybody who does not exist
        head = world.topics.head(TOPIC)
        assert head is not None
        assert head.subscribers == {each.uid for each in world.backlogs.backlogs(TOPIC)}
    assert at > 5


def test_unsubscribing_removes_the_backlog_and_a_second_time_says_so(world: NotificationWorld) -> None:
    token = world.token()
    world.connect("a", token)
    world.publish(1)
    world.subscribers.unsubscribe(token)
    assert world.sockets.closed == ["a"]
    with pytest.raises(SubscriberUnknown):
        world.subscribers.unsubscribe(token)
    assert world.publish(2)
    assert world.topics.commits(TOPIC, 0, 100)[-1].sequence == 1
    world.connect("b", token)
    world.publish(3)
    world.pump_all()
    assert world.numbers("b") == [3]


def test_unsubscribing_with_a_bad_token_is_refused(world: NotificationWorld) -> None:
    with pytest.raises(Unauthorized):
        world.subscribers.unsubscribe("a.b.c")


def test_of_several_shared_consumers_the_last_one_unsubscribes(world: NotificationWorld) -> None:
    token = world.token(shared=True)
    for each in ("a", "b", "c"):
        world.connect(each, token)
    world.clock.advance(seconds=6)
    outcomes: list[str] = []
    for each in ("a", "b", "c"):
        world.sockets.cut(each)
        try:
            world.subscribers.unsubscribe(token)
            outcomes.append("done")
        except SubscriberUnknown:
            outcomes.append("refused")
    assert outcomes == ["refused", "refused", "done"]
    assert world.backlogs.backlogs(TOPIC) == []


@pytest.mark.parametrize("fault", list(Fault))
def test_unsubscribing_can_be_repeated_whatever_failed(world: NotificationWorld, fault: Fault) -> None:
    token = world.token()
    for at in range(1, 8):
        world.connect(f"c{at}", token)
        world._plan = FaultPlan(fault, at=at)
        world.start()
        try:
            world.subscribers.unsubscribe(token)
        except (Crash, Unavailable):
            world._plan = FaultPlan()
            world.start()
            with suppress(SubscriberUnknown):
                world.subscribers.unsubscribe(token)
        world._plan = FaultPlan()
        world.start()
        assert world.backlogs.backlogs(TOPIC) == []
        head = world.topics.head(TOPIC)
        assert head is not None
        assert not head.subscribers


def test_five_minutes_without_traffic_close_a_connection_and_a_ping_keeps_it(world: NotificationWorld) -> None:
    world.connect("quiet", world.token("one"))
    world.connect("pinging", world.token("two"))
    world.clock.advance(seconds=200)
    world.sockets.heard("pinging")
    world.clock.advance(seconds=100)
    world.idle.run(lambda: 60_000)
    assert world.sockets.closed == ["quiet"]
    assert world.sockets.is_open("pinging")
    # And once more when its time has come
    world.clock.advance(seconds=199)
    world.idle.run(lambda: 60_000)
    assert world.sockets.is_open("pinging")
    world.clock.advance(seconds=1)
    world.idle.run(lambda: 60_000)
    assert world.sockets.closed == ["quiet", "pinging"]


def test_what_is_sent_counts_as_traffic(world: NotificationWorld) -> None:
    world.connect("a")
    world.clock.advance(seconds=200)
    world.publish(1)
    world.pump_all()
    world.clock.advance(seconds=100)
    world.idle.run(lambda: 60_000)
    assert world.sockets.is_open("a")


def test_the_idle_check_clears_away_what_died_unnoticed_and_wakes_what_was_forgotten(world: NotificationWorld) -> None:
    # Given a dead consumer, and one whose publisher died before waking it
    world.connect("dead", world.token("one"))
    world.connect("alive", world.token("two"))
    world.pump_all()
    world.sockets.cut("dead")
    world._plan = FaultPlan(Fault.CRASHES_BEFORE, of="queue.wake")
    world.start()
    with pytest.raises(Crash):
        world.publish(1)
    world._plan = FaultPlan()
    world.start()
    world.clock.advance(seconds=150)
    world.sockets.heard("alive")
    # When their time has come
    world.clock.advance(seconds=150)
    world.idle.run(lambda: 60_000)
    world.pump_all()
    # Then the one is gone, and the other has what it was owed
    assert world.connections.connections(["dead"]) == {}
    assert world.numbers("alive") == [1]


def test_a_connection_without_a_subscriber_is_closed_by_the_idle_check(world: NotificationWorld) -> None:
    world.connect("a")
    (backlog,) = world.backlogs.backlogs(TOPIC)
    world.backlogs.delete(backlog)
    world.clock.advance(seconds=300)
    world.idle.run(lambda: 60_000)
    assert world.sockets.closed == ["a"]
    assert world.connections.connections(["a"]) == {}
