"""A queue's subscriber that is a topic: the outcome of an attempt."""

from __future__ import annotations

import json

import pytest
from tests.notifications.world import PROJECT, NotificationWorld

from pushhub.base.verdict import Verdict
from pushhub.engine.acceptance.accept import Ids
from pushhub.engine.model.delivery import opening
from pushhub.engine.model.message import Message
from pushhub.engine.model.queue import PushSettings, Queue, QueueType, Subscriber
from pushhub.engine.target import PushOrder
from pushhub.notifications.log import Retention
from pushhub.notifications.target import TopicTarget


def target(world: NotificationWorld) -> TopicTarget:
    next_id = Ids(workers=world.config, clock=world.clock).next
    return TopicTarget(log=lambda: world.log, next_id=next_id, clock=world.clock)


def order(body: bytes, url: str = "notification2://orders?api=alarms&source=7") -> PushOrder:
    subscriber = Subscriber(subscriber_id="s", name="", url=url)
    push = PushSettings(subscribers=(subscriber,))
    message = Message(
        project=PROJECT,
        queue="q",
        queue_uid="u",
        message_id="1",
        body=body,
        body_size=len(body),
        accepted_at=0,
        due_at=0,
        expires_at=1,
        subscriber_ids=("s",),
    )
    queue = Queue(
        project=PROJECT,
        name="q",
        uid="u",
        pull_uid="l",
        type=QueueType.MULTICAST,
        push=push,
        secret="s",
        created_at=0,
    )
    return PushOrder(
        queue=queue, push=push, subscriber=subscriber, message=message, body=body, delivery=opening(message, "s")
    )


@pytest.fixture
def world() -> NotificationWorld:
    world = NotificationWorld(retention=Retention(size=300))
    world.connect("a")
    world.send_all()
    return world


def test_a_message_becomes_a_notification_without_any_subscription(world: NotificationWorld) -> None:
    outcome = target(world).deliver(order(b'{"n": 1}'))
    world.send_all()
    (frame,) = world.frames("a")
    assert (frame.description, frame.action, frame.body) == (f"/{PROJECT}/alarms/7", "CREATE", '{"n": 1}')
    assert (outcome.verdict, outcome.answer.status_code) == (Verdict.DELIVERED, 200)


def test_bytes_that_are_no_text_arrive_as_base64(world: NotificationWorld) -> None:
    target(world).deliver(order(b"\xff\x00"))
    world.send_all()
    assert [each.body for each in world.frames("a")] == ["/wA="]


def test_a_topic_without_subscribers_takes_the_message_and_keeps_nothing(world: NotificationWorld) -> None:
    outcome = target(world).deliver(order(b"{}", "notification2://nobody"))
    assert outcome.verdict is Verdict.DELIVERED


def test_a_full_topic_is_a_failed_try_and_another_one_helps_once_there_is_room(world: NotificationWorld) -> None:
    # Given a topic filled up by its queue
    body = json.dumps({"n": 1, "text": "x" * 90}).encode()
    outcomes = [target(world).deliver(order(body)) for _ in range(4)]
    assert [each.verdict for each in outcomes] == [Verdict.DELIVERED] * 3 + [Verdict.FAILED]
    assert outcomes[-1].answer.status_code == 500
    assert "quota" in outcomes[-1].answer.message
    # When its consumer acknowledges
    world.send_all()
    for frame in world.frames("a"):
        world.consumers.receive("a", frame.ack_id)
    world.disconnect("a")
    # Then the next try succeeds
    assert target(world).deliver(order(body)).verdict is Verdict.DELIVERED


def test_a_body_too_large_for_a_frame_is_a_failed_try(world: NotificationWorld) -> None:
    outcome = target(world).deliver(order(b"x" * 131_072))
    assert outcome.verdict is Verdict.FAILED
    # And the attempt says that it is the notification, not a request, both in its line and in what endpoints log
    said = outcome.answer.message
    assert said.startswith("A notification of 131")
    assert said.endswith("is larger than 131072 bytes")
    assert outcome.answer.body.decode() == said
    world.send_all()
    assert world.frames("a") == []
