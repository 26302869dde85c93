"""Long waits while the schedule's table is away: they are spent in a queue, and every attempt counts."""

from __future__ import annotations

import pytest
from tests.engine.world import World, subscribers

from pushhub.base.errors import Unavailable
from pushhub.engine.model.delivery import Delivery, DeliveryState

A = "https://a.example/in"
HOUR = 3_600


def down(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The schedule's table is away."""

    def away(delivery: Delivery) -> None:
        raise Unavailable("dynamodb:PutItem", "ResourceNotFoundException")

    monkeypatch.setattr(world.schedule, "enter", away)


def test_a_subscriber_that_fails_is_asked_as_often_as_its_policy_says(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a subscriber that fails, to be tried again each hour, and a schedule that is away
    world = World()
    down(world, monkeypatch)
    world.make_queue("q", subscribers(A), retries=4, retries_delay=HOUR)
    world.sender.script(A, 503, 503, 503, 200)
    [message_id] = world.post("q", b"x")
    # When hours pass
    world.run(seconds=2.5 * HOUR)
    # Then it was asked once an hour, and each try counts
    assert len(world.sender.requests) == 3
    assert [each.tries for each in world.deliveries(message_id)] == [3]
    world.run(seconds=2 * HOUR)
    assert len(world.sender.requests) == 4
    assert [each.state for each in world.deliveries(message_id)] == [DeliveryState.DELIVERED]


def test_one_that_was_entered_although_no_answer_came_waits_there(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a table whose first write of a failed attempt is made, and not answered
    world = World()
    world.make_queue("q", subscribers(A), retries=4, retries_delay=HOUR)
    world.sender.script(A, 503, 200)
    save, unanswered = world.messages.save, [True]

    def lost(delivery: Delivery) -> None:
        save(delivery)
        if unanswered:
            unanswered.pop()
            raise Unavailable("dynamodb:PutItem")

    monkeypatch.setattr(world.messages, "save", lost)
    [message_id] = world.post("q", b"x")
    world.run(seconds=HOUR / 2)
    # Then the attempt counts once, and the next one is made when it is due
    [waits] = world.deliveries(message_id)
    assert (waits.scheduled, waits.tries, waits.attempts) == (True, 1, 1)
    world.run(seconds=HOUR)
    assert len(world.sender.requests) == 2
