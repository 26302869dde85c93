"""Handshakes, tokens, removal, idle connections."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace

import pytest
from tests.fakes import Crash, Fault, FaultPlan
from tests.notifications.world import PROJECT, PROJECT_TOKEN, SECRET, NotificationWorld

from pushhub.base.errors import Unauthorized, Unavailable
from pushhub.notifications.model.backlog import AlreadyConnected
from pushhub.notifications.model.topic import Topic
from pushhub.notifications.wire.errors import SubscriberUnknown
from pushhub.notifications.wire.tokens import Claims, Tokens

TOPIC = Topic(project=PROJECT, name="orders")


def test_an_expired_token_is_refused_but_an_open_connection_stays(world: NotificationWorld) -> None:
    token = world.token(minutes=1)
    world.connect("a", token)
    world.clock.advance(seconds=61)
    with pytest.raises(Unauthorized):
        world.connect("b", token)
    world.publish(1)
    world.send_all()
    assert world.numbers("a") == [1]


@pytest.mark.parametrize("project", ["5e0000000000000000000002", ""])
def test_a_token_of_a_project_that_does_not_exist_is_refused(world: NotificationWorld, project: str) -> None:
    now_s = world.clock.now() // 1000
    claims = Claims(
        topic=Topic(project=project, name="orders"),
        subscriber="app",
        issued_at=now_s,
        expires_at=now_s + 60,
        issued_by=PROJECT_TOKEN,
        token_id="1",
    )
    with pytest.raises(Unauthorized):
        world.connect("a", Tokens(lambda: [SECRET]).sign(claims))


def test_a_token_ends_with_the_project_s_token_that_made_it(world: NotificationWorld) -> None:
    # Given two tokens of the project, and a consumer's token made with each
    other = "0f" * 32
    world.config.put_token(PROJECT, other, "", 0)
    stays, goes = world.token("stays"), world.token("goes", issued_by=other)
    world.connect("a", stays)
    # When one of the two is revoked
    world.config.remove_token(PROJECT, other)
    # Then tokens made with it open nothing, remove nothing, and are invalid
    for use in (
        lambda: world.connect("b", goes),
        lambda: world.consumers.may_connect(goes),
        lambda: world.subscribers.unsubscribe(goes),
        lambda: world.subscribers.verify(goes),
    ):
        with pytest.raises(Unauthorized):
            use()
    # And tokens made with the other one are as valid as before
    assert world.subscribers.verify(stays).subscriber == "stays"


def test_the_token_of_another_project_makes_nothing(world: NotificationWorld) -> None:
    world.config.put_token("5e0000000000000000000002", "0f" * 32, "", 0)
    with pytest.raises(Unauthorized):
        world.subscribers.verify(world.token(issued_by="0f" * 32))


def test_connections_whose_token_was_revoked_are_closed_by_the_next_run_each_minute(world: NotificationWorld) -> None:
    # Given connections of two tokens of the project, none of which idles
    other = "0f" * 32
    world.config.put_token(PROJECT, other, "", 0)
    for name in ("one", "two"):
        world.connect(name, world.token(name))
    for name in ("three", "four"):
        world.connect(name, world.token(name, issued_by=other))
    world.publish(1)
    world.idle.run(lambda: 60_000)
    assert world.sockets.closed == []
    # When one of them is revoked
    world.config.remove_token(PROJECT, other)
    world.idle.run(lambda: 60_000)
    # Then its connections are closed, and its subscribers keep their backlog
    assert sorted(world.sockets.closed) == ["four", "three"]
    world.send_all()
    assert (world.numbers("one"), world.numbers("three")) == ([1], [])
    world.connect("again", world.token("three"))
    world.send_all()
    assert world.numbers("again") == [1]


def test_trouble_with_revoked_tokens_does_not_keep_what_idles_open(world: NotificationWorld) -> None:
    world.connect("a")
    world.clock.advance(seconds=300)
    world._plan = FaultPlan(Fault.FAILS, of="connections.everyone")
    world.start()
    world.idle.run(lambda: 60_000)
    assert world.sockets.closed == ["a"]


def test_nobody_is_asked_for_who_idles_while_nobody_is_connected(world: NotificationWorld) -> None:
    # Given that asking who idles would fail
    world._plan = FaultPlan(Fault.FAILS, of="connections.idle")
    world.start()
    # When nobody is connected, then the run does not ask
    world.idle.run(lambda: 60_000)
    # And does as soon as somebody is
    world.connect("a")
    with pytest.raises(Unavailable):
        world.idle.run(lambda: 60_000)


def test_a_token_is_good_for_a_year_at_most(world: NotificationWorld) -> None:
    claims = world.subscribers.verify(world.token(minutes=525_600_000))
    assert claims.expires_at - claims.issued_at == 365 * 86_400


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
    # Then it is let in within the grace period of the first
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


def test_a_live_consumer_keeps_its_name_to_itself(world: NotificationWorld) -> None:
    # Given a consumer of a shared subscriber, with a name
    world.connect("a", world.token(shared=True), "one")
    world.publish(1)
    # When a second one comes with that name
    # Then it is refused as the second of an exclusive subscriber is, and the first one is undisturbed
    with pytest.raises(AlreadyConnected, match="'one' is connected already"):
        world.connect("b", world.token(shared=True), "one")
    with pytest.raises(AlreadyConnected, match="'one' is connected already"):
        world.consumers.may_connect(world.token(shared=True), "one")
    world.send_all()
    assert (world.numbers("a"), world.sockets.closed) == ([1], [])
    # And other names, and consumers without, come in
    world.connect("c", world.token(shared=True), "two")
    world.connect("d", world.token(shared=True))
    world.connect("e", world.token(shared=True))


@pytest.mark.parametrize("after_s", [0, 1, 6])
def test_a_shared_consumer_that_comes_back_has_its_name_again_at_once(world: NotificationWorld, after_s: int) -> None:
    # Given a consumer whose connection has ended, of which the hub was not told
    world.connect("a", world.token(shared=True), "one")
    world.publish(1)
    world.send_all()
    world.clock.advance(seconds=after_s)
    world.sockets.cut("a")
    began = world.clock.now()
    # When it comes again
    world.connect("b", world.token(shared=True), "one")
    # Then it takes its place, and gets what it had not acknowledged
    assert world.clock.now() - began <= 5_000
    world.send_all()
    assert world.numbers("b") == [1]
    (backlog,) = world.backlogs.backlogs(TOPIC)
    assert [each.connection_id for each in backlog.consumers] == ["b"]


def test_two_first_connections_at_once_make_one_subscriber_and_one_of_them_is_refused() -> None:
    for _ in range(20):
        world = NotificationWorld()
        world.rule()
        token = world.token()
        # The gateway knows both. Whoever meets one that it does not know waits, and the fake clock passes its grace.
        world.sockets.opened("a")
        world.sockets.opened("b")
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
        world.send_all()
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
        world.send_all()
        assert world.numbers("a" if connected else "b") == [1], (fault, at)
        # And nothing is owed to a subscriber that does not exist
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
    world.send_all()
    assert world.numbers("b") == [3]


def test_shared_consumers_that_all_stop_at_once_leave_no_subscriber_behind(world: NotificationWorld) -> None:
    # Given shared listeners with a token each, whose connections have not yet been seen to end
    tokens = {each: world.token(shared=True) for each in ("a", "b", "c")}
    for each, token in tokens.items():
        world.connect(each, token)
    # When each of them stops, one right after the other
    outcomes: list[str] = []
    for token in tokens.values():
        try:
            world.subscribers.unsubscribe(token)
            outcomes.append("done")
        except SubscriberUnknown:
            outcomes.append("refused")
    # Then the last one has removed the subscriber
    assert outcomes == ["refused", "refused", "done"]
    assert world.backlogs.backlogs(TOPIC) == []
    head = world.topics.head(TOPIC)
    assert head is not None
    assert not head.subscribers


def test_a_shared_consumer_that_asks_twice_does_not_remove_the_subscriber_of_one_that_stays(
    world: NotificationWorld,
) -> None:
    leaves, stays = world.token(shared=True), world.token(shared=True)
    world.connect("a", leaves)
    world.connect("b", stays)
    for _ in range(3):
        with pytest.raises(SubscriberUnknown):
            world.subscribers.unsubscribe(leaves)
    # And a connection that stays keeps its backlog, no matter which others left
    world.disconnect("a")
    world.publish(1)
    world.send_all()
    assert world.numbers("b") == [1]


def test_a_consumer_that_was_refused_to_unsubscribe_stays_connected(world: NotificationWorld) -> None:
    asks, stays = world.token(shared=True), world.token(shared=True)
    world.connect("a", asks)
    world.connect("b", stays)
    with pytest.raises(SubscriberUnknown):
        world.subscribers.unsubscribe(asks)
    assert world.sockets.closed == []


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


def test_a_wish_to_be_unsubscribed_that_comes_late_does_not_remove_who_subscribed_since(
    world: NotificationWorld,
) -> None:
    # Given a consumer that unsubscribes in-band, of which only its connection stays, as the process dies
    world.connect("a")
    world._plan = FaultPlan(Fault.CRASHES_BEFORE, of="connections.close")
    world.start()
    with pytest.raises(Crash):
        world.consumers.receive("a", "unsubscribe_subscriber")
    world._plan = FaultPlan()
    world.start()
    # When it has connected again, and its frame is processed once more
    world.sockets.cut("a")
    world.connect("b")
    world.consumers.receive("a", "unsubscribe_subscriber")
    # Then the new subscriber stays
    world.publish(1)
    world.send_all()
    assert world.numbers("b") == [1]


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
    world.send_all()
    world.clock.advance(seconds=100)
    world.idle.run(lambda: 60_000)
    assert world.sockets.is_open("a")


def test_the_idle_check_clears_away_what_died_unnoticed_and_wakes_what_was_forgotten(world: NotificationWorld) -> None:
    # Given a dead consumer, and one whose publisher died before waking it
    world.connect("dead", world.token("one"))
    world.connect("alive", world.token("two"))
    world.send_all()
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
    world.send_all()
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


def test_a_run_checks_as_many_connections_as_its_time_allows(world: NotificationWorld) -> None:
    # Given a thousand connections that nobody uses, of a subscriber that is gone
    world.connect("a")
    connection = world.connections.connections(["a"])["a"]
    for number in range(1_000):
        world.connections.open(replace(connection, connection_id=f"c{number}"), check_at=world.clock.now())
    (backlog,) = world.backlogs.backlogs(TOPIC)
    world.backlogs.delete(backlog)
    # When a run has time for some of them, after looking at the tokens of all, then it checks those
    left = iter([60_000] * 1_300)
    world.idle.run(lambda: next(left, 1_000))
    left_over = len(world.connections.connections([f"c{number}" for number in range(1_000)]))
    assert 700 <= left_over <= 800
    # And one with enough time checks all of the rest
    world.idle.run(lambda: 60_000)
    assert world.connections.connections([f"c{number}" for number in range(1_000)]) == {}
