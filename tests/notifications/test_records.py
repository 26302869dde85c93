"""The records of a notification's life, and that they add up."""

from __future__ import annotations

from contextlib import suppress

import pytest
from tests.fakes import Crash, Fault, FaultPlan
from tests.notifications.world import PROJECT, NotificationWorld, recorded

from pushhub.base.errors import Unavailable
from pushhub.engine.model.record import DeliveryRecord
from pushhub.notifications.model.topic import Topic, bucket_of, position_at
from pushhub.notifications.records import NotificationRecords
from pushhub.notifications.wire.errors import SubscriberUnknown

TOPIC = Topic(project=PROJECT, name="orders")


def of_kind(world: NotificationWorld, kind: str) -> list[DeliveryRecord]:
    return [each for each in recorded(world) if each.kind == kind]


def test_an_acceptance_tells_what_is_owed_to_whom(world: NotificationWorld) -> None:
    world.connect("a", world.token("one"))
    world.connect("b", world.token("two"))
    (message_id,) = world.publish(1)
    (accepted,) = of_kind(world, "accepted")
    uids = [each.uid for each in world.backlogs.backlogs(TOPIC)]
    head = world.topics.head(TOPIC)
    assert head is not None
    assert accepted.owed == tuple(sorted(f"{message_id}.{uid}" for uid in uids))
    assert (accepted.dialect, accepted.queue, accepted.queue_uid) == ("notifications", "orders", head.uid)
    # It may wait for its consumer until it expires, so only then is it due.
    assert accepted.due_at == accepted.expires_at
    assert accepted.body_size == len('{"n":1}')
    assert (accepted.sequence, accepted.order_key) == (position_at(1), None)


def test_sending_is_an_attempt_and_acknowledging_the_end(world: NotificationWorld) -> None:
    world.connect("a")
    (message_id,) = world.publish(1)
    world.clock.advance(ms=250)
    world.send_all()
    world.acknowledge("a", 1)
    world.disconnect("a")
    (attempt,) = of_kind(world, "attempt")
    assert (attempt.state, attempt.verdict, attempt.status_code) == ("reserved", "reserved", 200)
    assert attempt.wait_before_ms == 250
    assert attempt.subscriber == "app"
    (end,) = of_kind(world, "acknowledged")
    assert end.delivery_id == attempt.delivery_id == f"{message_id}.{attempt.subscriber_id}"
    assert (end.state, end.version) == ("acknowledged", 1)


def test_attempts_carry_the_order_that_is_promised_on_their_connection(world: NotificationWorld) -> None:
    # Given a consumer that acknowledges the second of three, and its next connection
    world.connect("a")
    world.publish(1, 2, 3)
    world.send_all()
    world.acknowledge("a", 2)
    world.disconnect("a")
    world.connect("b")
    world.publish(4)
    world.send_all()
    attempts = of_kind(world, "attempt")
    # Then sequences rise on each, and first sendings are marked as such
    sent = [(each.order_key, each.sequence, each.attempt) for each in attempts]
    one, two, three, four = position_at(1), position_at(1, 1), position_at(1, 2), position_at(2)
    assert sent == [
        *(("a", each, 1) for each in (one, two, three)),
        *(("b", each, None) for each in (one, three)),
        ("b", four, 1),
    ]


def test_the_order_of_a_shared_subscriber_is_told_for_each_source(world: NotificationWorld) -> None:
    world.connect("a", world.token(shared=True), "alpha")
    for number, source in enumerate(("x", "y", "x")):
        world.publish(number, source=source)
    world.send_all()
    keys = [each.order_key for each in of_kind(world, "attempt")]
    assert keys == [f"a/{bucket_of(source)}" for source in ("x", "y", "x")]


def test_unsubscribing_cancels_what_was_not_acknowledged_sent_or_not(world: NotificationWorld) -> None:
    world.connect("a")
    world.publish(1, 2)
    world.send_all()
    world.acknowledge("a", 1)
    world.sockets.cut("a")
    world.publish(3)
    world.consumers.remove(TOPIC, "app")
    world.publish(4)
    assert len(of_kind(world, "acknowledged")) == 1
    assert len(of_kind(world, "cancelled")) == 2
    owed = [each for record in of_kind(world, "accepted") for each in record.owed or ()]
    assert len(owed) == 3


def test_what_was_acknowledged_before_its_sending_was_recorded_counts_as_such_when_its_subscriber_is_removed(
    world: NotificationWorld,
) -> None:
    # Given a consumer that takes two of three while they are being sent
    world.connect("a")
    world.publish(1, 2, 3)

    def meanwhile(connection_id: str) -> None:
        number = world.numbers(connection_id)[-1]
        if number < 3:
            world.acknowledge(connection_id, number)
        if number == 2:
            # When it unsubscribes right after that
            world.consumers.receive(connection_id, "unsubscribe_subscriber")

    world.sockets.meanwhile = meanwhile
    world.send_all()
    # Then each owed delivery has ended the way the consumer saw it
    ends = [each.kind.value for each in recorded(world) if each.version == 1]
    assert sorted(ends) == ["acknowledged", "acknowledged", "cancelled"]


@pytest.mark.parametrize("deleted", [False, True])
def test_what_expires_is_recorded_once_whether_a_consumer_passes_it_or_the_table_removes_it(
    world: NotificationWorld, deleted: bool
) -> None:
    # Given one notification that was sent and one that was not, both not acknowledged
    world.connect("a")
    world.publish(1)
    world.send_all()
    world.disconnect("a")
    world.publish(2)
    world.clock.advance(seconds=36 * 3600)
    records = NotificationRecords(topics=world.topics, backlogs=world.backlogs, clock=world.clock)
    ends: list[DeliveryRecord] = []
    # When the table removes them first, or a consumer comes first and skips them
    if deleted:
        world.topics.expire(world.clock.now())
        ends += [record for change in world.topics.changes if change.removed for record in records.of(change)]
    seen = len(world.backlogs.changes)
    world.connect("b")
    world.publish(3)
    world.send_all()
    for change in world.backlogs.changes[seen:]:
        ends += [each for each in records.of(change) if each.version == 1]
    if not deleted:
        world.topics.expire(world.clock.now())
        ends += [record for change in world.topics.changes if change.removed for record in records.of(change)]
    # Then each is recorded as expired, once
    assert sorted(each.kind for each in ends) == ["expired", "expired"]
    assert len({each.delivery_id for each in ends}) == 2
    assert world.numbers("b") == [3]


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("removed", [False, True])
def test_what_was_owed_to_a_subscriber_whose_first_handshake_died_has_an_end(fault: Fault, removed: bool) -> None:
    at = 0
    while True:
        at += 1
        # Given a topic with a history, and a first handshake of another subscriber that fails half-way
        world = NotificationWorld()
        world.rule()
        world.connect("a", world.token("other"))
        world.publish(1)
        world._plan = plan = FaultPlan(fault, at=at)
        world.start()
        with suppress(Crash, Unavailable):
            world.connect("b")
        struck = plan.struck
        world._plan = FaultPlan()
        world.start()
        # When something is published before it connects again, or is removed
        world.publish(2)
        if removed:
            with suppress(SubscriberUnknown):
                world.subscribers.unsubscribe(world.token())
        else:
            world.clock.advance(seconds=10)
            if not struck:
                world.disconnect("b")
            world.connect("c")
            world.publish(3)
            world.send_all()
            for each in ("b", "c"):
                world.acknowledge(each, *world.numbers(each))
            world.disconnect("c")
        world.send_all()
        world.acknowledge("a", *world.numbers("a"))
        world.disconnect("a")
        # Then each owed delivery has one end, and a subscriber that never connected is owed nothing from before
        records = recorded(world)
        owed = [each for record in records for each in record.owed or ()]
        ended = [each.delivery_id for each in records if each.version == 1]
        assert sorted(ended, key=str) == sorted(owed), at
        if not struck:
            break
    assert at > 5


def test_a_non_persistent_topic_owes_nothing() -> None:
    world = NotificationWorld()
    world.rule(non_persistent=True)
    world.connect("a", world.token(volatile=True))
    world.publish(1)
    world.send_all()
    world.disconnect("a")
    world.topics.expire(world.clock.now() + 10**12)
    (accepted,) = recorded(world)
    assert (accepted.kind, accepted.owed) == ("accepted", ())


def test_records_made_again_are_the_same(world: NotificationWorld) -> None:
    world.connect("a")
    world.publish(1, 2)
    world.send_all()
    world.acknowledge("a", 2)
    world.disconnect("a")
    assert recorded(world) == recorded(world)
