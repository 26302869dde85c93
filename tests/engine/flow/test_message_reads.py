"""How often messages are read that orders do not carry, and that none is sent which its owner has deleted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.engine.world import PROJECT, World, subscribers
from tests.fakes import Reply

from pushhub.base.ports import PushRequest
from pushhub.engine.model.delivery import DeliveryState, close, opening
from pushhub.engine.model.flow import Limits
from pushhub.engine.model.keys import MessageKey
from pushhub.engine.model.received import GOOD_MS

A = "https://a.example/in"
AT_ONCE = 10


def a_hub(limits: Limits) -> World:
    world = World()
    (limited,) = subscribers(A)
    world.make_queue("q", [replace(limited, limits=limits)])
    return world


def deletes(world: World, message_id: str, *, after_ms: int) -> Callable[[PushRequest], None]:
    """A subscriber that takes its time to answer, while the owner deletes a message."""

    def meanwhile(_: PushRequest) -> None:
        world.clock.advance(ms=after_ms)
        message = world.messages.message(MessageKey(PROJECT, "uid-q", message_id))
        assert message is not None
        world.messages.save(close(opening(message, "s0"), DeliveryState.CANCELLED, world.clock.now()))
        world.messages.delete(message)

    return meanwhile


def test_the_messages_of_orders_from_a_backlog_are_read_with_their_deliveries() -> None:
    # Given twice as many messages as may wait in memory, for a subscriber that takes so many at once
    world = a_hub(Limits(concurrency=AT_ONCE))
    for _ in range(2):
        world.post("q", *[b"x"] * 100)
    world.run(seconds=10)
    assert len(world.sender.requests_to(A)) == 200
    # Then those of the backlog were read as many at a time as begin together, and none by itself
    assert world.plan.calls.count("messages.messages") == 100 / AT_ONCE
    assert world.plan.calls.count("messages.message") == 0


def test_under_a_rate_messages_are_read_when_it_is_their_turn() -> None:
    # Given a rate of which a run has ten seconds' worth in memory
    world = a_hub(Limits(rate_per_s=2))
    world.post("q", *[b"x"] * 30)
    world.run(seconds=60)
    assert len(world.sender.requests_to(A)) == 30
    # Then each is read right before it is sent, but for those that were sent at once
    assert world.plan.calls.count("messages.messages") == 0
    assert world.plan.calls.count("messages.message") == 28


@pytest.mark.parametrize(("after_ms", "sent"), [(GOOD_MS - 1, 1), (GOOD_MS, 0)])
def test_what_was_deleted_since_it_was_read_is_not_sent_half_a_second_later(after_ms: int, sent: int) -> None:
    # Given orders in a backlog, two of whose messages are read at a time
    world = a_hub(Limits(concurrency=2))
    posted = world.post("q", *[b"x"] * 30)
    quick, deleted = [Reply(status_code=200)] * 26, posted[28]
    # When the owner deletes the second of such a pair while the attempt of the first takes its time
    slow = Reply(status_code=200, meanwhile=deletes(world, deleted, after_ms=after_ms))
    world.sender.script(A, *quick, slow, Reply(status_code=200))
    world.run(seconds=60)
    # Then it is sent only if it was read a moment before
    asked = [each.headers["Iron-Message-Id"] for each in world.sender.requests_to(A)]
    assert (len(asked), asked[26], asked.count(deleted)) == (29 + sent, posted[27], sent)
    (ended,) = world.deliveries(deleted)
    assert (ended.state, ended.attempts) == (DeliveryState.CANCELLED, sent)


@pytest.mark.parametrize("limits", [Limits(concurrency=1), Limits(concurrency=2), Limits(rate_per_s=2)])
def test_what_was_deleted_while_it_waited_with_its_message_for_a_limit_is_not_sent(limits: Limits) -> None:
    # Given orders that carry their messages, and wait in memory until their subscriber's limits allow them
    world = a_hub(limits)
    posted = world.post("q", *[b"x"] * 15)
    slow = Reply(status_code=200, meanwhile=deletes(world, posted[10], after_ms=0), takes_ms=1_000)
    # When the owner deletes one of them in the third attempt
    world.sender.script(A, *[Reply(status_code=200)] * 2, slow, Reply(status_code=200))
    world.run(seconds=60)
    # Then it is not sent when its time comes
    asked = [each.headers["Iron-Message-Id"] for each in world.sender.requests_to(A)]
    assert (len(asked), asked.count(posted[10])) == (14, 0)
