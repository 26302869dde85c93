"""Publishing to several topics at once: a full one does not affect the others, and a repetition publishes nothing
twice.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from tests.fakes import Crash, Fault, FaultPlan
from tests.notifications.world import PROJECT, NotificationWorld

from pushhub.base.errors import Invalid, TooMuchWork, Unavailable
from pushhub.notifications import publish
from pushhub.notifications.log import Retention
from pushhub.notifications.model.topic import Topic
from pushhub.notifications.wire.errors import BacklogFull
from pushhub.notifications.wire.publish import Draft, parse_drafts

ABANDONED = Topic(project=PROJECT, name="abandoned")
HEALTHY = ("first", "second")


@pytest.fixture
def world() -> NotificationWorld:
    """Three topics of one source, the middle one full because of an abandoned subscriber."""
    world = NotificationWorld(retention=Retention(size=1000))
    for name in ("first", "abandoned", "second"):
        world.rule(topic=name)
        world.connect(name, world.token(topic=name))
    world.disconnect("abandoned")
    fill(world, ABANDONED)
    for name in HEALTHY:
        world.acknowledge(name, *world.numbers(name))
    return world


def fill(world: NotificationWorld, topic: Topic) -> None:
    """Publish to one topic alone until it accepts no more."""
    rules = {rule.name: rule for rule in world.rules.subscriptions(PROJECT)}
    for name in HEALTHY:
        world.rules.delete(rules[name])
    with pytest.raises(BacklogFull) as refused:
        _publish_on(world)
    assert refused.value.full == (topic,)
    for name in HEALTHY:
        world.rules.create(rules[name])


def _publish_on(world: NotificationWorld) -> None:
    for number in range(1000, 2000):
        world.publish(number)


def drafts(*numbers: int) -> list[Draft]:
    return [Draft(api="events", source="111", action="CREATE", data={"n": each}) for each in numbers]


def make_room(world: NotificationWorld) -> None:
    """The abandoned subscriber comes back and acknowledges all it was owed."""
    world.connect("back", world.token(topic="abandoned"))
    world.send_all()
    world.acknowledge("back", *world.numbers("back"))
    world.disconnect("back")


def received(world: NotificationWorld, name: str) -> list[int]:
    world.send_all()
    return [number for number in world.numbers(name) if number < 1000]


def test_every_topic_that_has_room_takes_what_is_published_and_the_full_ones_are_named(
    world: NotificationWorld,
) -> None:
    # Given a topic that is full, between two that are not, when something is published to all three
    with pytest.raises(BacklogFull) as refused:
        world.publish(1, 2)
    # Then the healthy ones have it, once
    assert [received(world, name) for name in HEALTHY] == [[1, 2], [1, 2]]
    # And the publisher learns which one was full, and which were not
    assert refused.value.full == (ABANDONED,)
    assert [each.name for each in refused.value.taken] == ["first", "second"]
    assert len(refused.value.ids) == 2


def test_a_repeat_with_a_key_reaches_only_what_was_full_before(world: NotificationWorld) -> None:
    # Given a request with a key that a full topic refused, however often it was repeated
    for _ in range(5):
        with pytest.raises(BacklogFull) as refused:
            world.publishing.publish(PROJECT, drafts(1, 2), key="k-1")
        assert refused.value.key == "k-1"
    # When there is room, and it is repeated again and again
    make_room(world)
    answers = [world.publishing.publish(PROJECT, drafts(1, 2), key="k-1") for _ in range(3)]
    # Then each topic has it once, and each repeat was answered the same
    assert [received(world, name) for name in HEALTHY] == [[1, 2], [1, 2]]
    world.connect("again", world.token(topic="abandoned"))
    assert received(world, "again") == [1, 2]
    assert answers == [list(refused.value.ids)] * 3


def test_a_request_without_a_key_gets_one_with_the_refusal(world: NotificationWorld) -> None:
    # Given a request without a key that was partly accepted
    with pytest.raises(BacklogFull) as refused:
        world.publish(1, 2)
    make_room(world)
    # When it is repeated with the key of the answer
    assert world.publishing.publish(PROJECT, drafts(1, 2), key=refused.value.key) == list(refused.value.ids)
    # Then every topic has it once
    assert [received(world, name) for name in HEALTHY] == [[1, 2], [1, 2]]
    world.connect("again", world.token(topic="abandoned"))
    assert received(world, "again") == [1, 2]


def test_without_a_key_the_same_again_is_new(world: NotificationWorld) -> None:
    world.rules.delete(next(each for each in world.rules.subscriptions(PROJECT) if each.name == "abandoned"))
    assert world.publish(1) != world.publish(1)
    assert received(world, "first") == [1, 1]


def test_where_nothing_was_taken_no_key_is_needed(world: NotificationWorld) -> None:
    for name in HEALTHY:
        world.rules.delete(next(each for each in world.rules.subscriptions(PROJECT) if each.name == name))
    with pytest.raises(BacklogFull) as refused:
        world.publish(1)
    assert (refused.value.key, refused.value.taken) == ("", ())


@pytest.mark.parametrize(
    "changed", [{"api": "alarms"}, {"source": "2"}, {"action": "DELETE"}, {"data": {"n": 2}}, {"base64_data": "AA=="}]
)
def test_a_key_stands_for_all_of_a_request(world: NotificationWorld, changed: dict[str, Any]) -> None:
    make_room(world)
    (draft,) = drafts(1)
    world.publishing.publish(PROJECT, [draft], key="k-1")
    with pytest.raises(Invalid, match="Idempotency-Key"):
        world.publishing.publish(PROJECT, [replace(draft, **changed)], key="k-1")


def test_a_key_stands_for_one_request(world: NotificationWorld) -> None:
    with pytest.raises(BacklogFull):
        world.publishing.publish(PROJECT, drafts(1), key="k-1")
    with pytest.raises(Invalid, match="Idempotency-Key"):
        world.publishing.publish(PROJECT, drafts(2), key="k-1")
    # And after a day for another
    world.clock.advance(seconds=25 * 3600)
    make_room(world)
    world.publishing.publish(PROJECT, drafts(3), key="k-1")
    assert received(world, "first") == [1, 3]


def test_a_topic_takes_a_request_whole_or_not_at_all() -> None:
    # Given a topic with a little room, and a request that needs several commits
    world = NotificationWorld(retention=Retention(size=1000))
    world.rule()
    world.connect("a")
    large = [Draft(api="events", source="1", action="CREATE", data={"n": n, "t": "x" * 90_000}) for n in range(10)]
    # When it is published, all of it is accepted; the next one is refused as a whole
    world.publishing.publish(PROJECT, large)
    with pytest.raises(BacklogFull):
        world.publish(10)
    world.send_all()
    assert world.numbers("a") == list(range(10))


@pytest.mark.parametrize("fault", list(Fault))
def test_a_request_repeated_after_any_fault_is_delivered_once(fault: Fault) -> None:
    at = 0
    while True:
        at += 1
        # Given a request of several commits for two topics, and one call that goes wrong
        world = NotificationWorld()
        for name in HEALTHY:
            world.rule(topic=name)
            world.connect(name, world.token(topic=name))
        world.send_all()
        request = [Draft(api="events", source="1", action="CREATE", data={"n": n, "t": "x" * 90_000}) for n in range(5)]
        world._plan = plan = FaultPlan(fault, at=at)
        world.start()
        with suppress(Crash, Unavailable):
            world.publishing.publish(PROJECT, request, key="k")
        if not plan.struck:
            break
        world._plan = FaultPlan()
        world.start()
        # When it is repeated until it is answered, and once more
        first = world.publishing.publish(PROJECT, request, key="k")
        assert world.publishing.publish(PROJECT, request, key="k") == first
        world.send_all()
        # Then both topics have all of it once, in order, under the answered ids, and no reader waits for an empty place
        assert [world.numbers(name) for name in HEALTHY] == [list(range(5))] * 2, (fault, at)
        stored = [
            each.message_id
            for c in world.topics.commits(Topic(project=PROJECT, name="first"), 1, 99)
            for each in c.notifications
        ]
        assert stored == first
    assert at > 8


def test_repeats_at_the_same_moment_are_one() -> None:
    # Given a publisher that repeats before the first request is answered
    world = NotificationWorld()
    world.rule()
    world.connect("a")
    answers: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: answers.append(world.publishing.publish(PROJECT, drafts(1, 2, 3), key="k")))
        for _ in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    world.send_all()
    # Then it was published once, and no place was left empty for readers to wait at
    assert world.numbers("a") == [1, 2, 3]
    assert answers == [answers[0]] * 8


def test_a_repeat_wakes_whom_the_first_request_could_not(world: NotificationWorld) -> None:
    # Given a request that was written, and its process died before it woke the subscribers
    world.rules.delete(next(each for each in world.rules.subscriptions(PROJECT) if each.name == "abandoned"))
    world.send_all()
    world._plan = FaultPlan(Fault.CRASHES_BEFORE, of="queue.wake")
    world.start()
    with pytest.raises(Crash):
        world.publishing.publish(PROJECT, drafts(1), key="k")
    world._plan = FaultPlan()
    world.start()
    # When it is repeated
    world.publishing.publish(PROJECT, drafts(1), key="k")
    # Then it arrives
    assert [received(world, name) for name in HEALTHY] == [[1], [1]]


def test_more_notifications_than_can_be_compared_with_all_subscriptions_are_refused_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given subscriptions with which only a few notifications can be compared in one request
    monkeypatch.setattr(publish, "PUBLISH_STEPS", 8)
    world = NotificationWorld()
    for name in HEALTHY:
        world.rule(topic=name)
        world.rule(topic=f"{name}only", type_filter="'x' or 'y'")
        world.connect(name, world.token(topic=name))
    # When more are published, then all are refused, and fewer are not
    with pytest.raises(TooMuchWork):
        world.publish(1, 2)
    world.publish(3)
    assert [received(world, name) for name in HEALTHY] == [[3], [3]]


def test_a_request_as_large_as_may_be_is_compared_with_a_few_subscriptions() -> None:
    # Given a topic that copies everything
    world = NotificationWorld()
    (name,) = HEALTHY[:1]
    world.rule(topic=name)
    world.connect(name, world.token(topic=name))
    # When a request of nearly 4 MiB is published
    large = [replace(each, data={**each.data, "text": "x" * 130_000}) for each in drafts(*range(30))]
    world.publishing.publish(PROJECT, large)
    # Then it is taken, however many steps its size would be
    world.send_all()
    assert len(received(world, name)) == 30


@pytest.mark.parametrize("fragments", [(), ("c8y_Price",)])
def test_numbers_come_out_as_they_were_published(fragments: tuple[str, ...]) -> None:
    """Given a subscription to everything or to a fragment, when numbers are published, then they stay as they are."""
    world = NotificationWorld()
    world.rule(fragments=fragments)
    world.connect("a")
    body = b'{"api": "events", "source": "111", "data": {"c8y_Price": {"eur": 19.90, "at": 165000000000000000000.12}}}'
    world.publishing.publish(PROJECT, parse_drafts(body))
    world.send_all()
    [frame] = world.frames("a")
    assert '{"eur": 19.90, "at": 165000000000000000000.12}' in frame.body
