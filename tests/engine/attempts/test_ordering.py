"""Messages of an ordering key are delivered in order to each subscriber, and a stuck key blocks only itself.

On fakes.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, cast

import pytest
from tests.engine.world import World, subscribers
from tests.fakes import Crash, Fault, FaultPlan, Reply

from pushhub.base.errors import HubError
from pushhub.base.ports import PushRequest
from pushhub.engine.attempts.in_order import cancelled, is_over
from pushhub.engine.model.backoff import RetrySchedule
from pushhub.engine.model.delivery import Delivery, DeliveryState, opening
from pushhub.engine.model.keys import DeliveryKey, MessageKey
from pushhub.engine.model.work import WorkOrder

if TYPE_CHECKING:
    from pushhub.engine.ports import StoredMessages

A, B = "https://a.example/in", "https://b.example/in"
MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400


def arrived(world: World, subscriber_id: str) -> list[tuple[str, int]]:
    """Key and sequence of each delivery, in the order in which they were delivered."""
    done = [each for each in world.messages.saved if each.subscriber_id == subscriber_id]
    return [
        (each.order_key, each.sequence or 0)
        for each in done
        if each.state is DeliveryState.DELIVERED and each.order_key is not None
    ]


def in_order(found: list[tuple[str, int]]) -> bool:
    """Whether the sequences of each key rise."""
    keys = {key for key, _ in found}
    return all(
        numbers == sorted(numbers) for numbers in ([number for each, number in found if each == key] for key in keys)
    )


def test_a_retry_holds_back_what_follows_it_in_its_key_and_nothing_else() -> None:
    # Given a subscriber that fails for one key's first message
    world = World()
    world.make_queue("q", subscribers(A, B), retry=RetrySchedule(waits_s=(600, 600), spread=(1, 1)))
    world.sender.script(A, 500, 200)
    world.post("q", b"1", b"2", b"3", order_key="stuck")
    world.post("q", b"4", b"5", order_key="free")
    world.post("q", b"6")
    world.run(seconds=300)
    # Then the other key, messages without one, and the other subscriber continue
    assert {each.body for each in world.sender.requests_to(A)} == {b"1", b"4", b"5", b"6"}
    assert arrived(world, "s0") == [("free", 1), ("free", 2)]
    assert len(world.sender.requests_to(B)) == 6
    # And when it succeeds, what follows comes in its order
    world.run(seconds=400)
    assert [key for key in arrived(world, "s0") if key[0] == "stuck"] == [("stuck", 1), ("stuck", 2), ("stuck", 3)]
    assert in_order(arrived(world, "s1"))


def test_no_two_requests_of_a_key_are_under_way_at_a_time() -> None:
    world = World()
    world.make_queue("q", subscribers(A))
    under_way: list[bytes] = []

    def look(request: PushRequest) -> None:
        assert not under_way, f"{request.body!r} beside {under_way}"
        under_way.append(request.body)
        world.step()
        under_way.pop()

    world.sender.script(A, Reply(status_code=200, meanwhile=look))
    world.post("q", *[b"%d" % number for number in range(10)], order_key="k")
    world.run(seconds=60)
    assert [each.body for each in world.sender.requests] == [b"%d" % number for number in range(10)]


def test_messages_without_a_key_cost_nothing_more() -> None:
    plan = FaultPlan()
    world = World(plan)
    world.make_queue("q", subscribers(A))
    world.post("q", b"1", b"2")
    world.run(seconds=5)
    assert not [each for each in plan.calls if each.startswith("subscribers.")]


def a_line(plan: FaultPlan) -> tuple[World, list[str]]:
    """Five messages of a key to a subscriber that fails now and then."""
    world = World(plan)
    world.make_queue("q", subscribers(A), retry=RetrySchedule(waits_s=(5, 60, 1_800, 1_800)))
    world.sender.script(A, 500, 200, 200, 503, 200)
    accepted: list[str] = []
    for bodies in ((b"1", b"2"), (b"3",), (b"4", b"5")):
        with suppress(Crash, HubError):
            accepted += world.post("q", *bodies, order_key="k")
    world.run(seconds=3 * DAY_S)
    return world, accepted


@pytest.mark.parametrize("slice_", range(3))
def test_whatever_call_goes_wrong_nothing_is_lost_and_order_is_kept(slice_: int) -> None:
    learned = FaultPlan()
    a_line(learned)
    assert {"subscribers.wait_behind", "subscribers.behind", "subscribers.let_go"} <= {*learned.calls}
    for position, (number, fault) in enumerate(product(range(1, len(learned.calls) + 1), Fault)):
        if position % 3 != slice_:
            continue
        world, accepted = a_line(FaultPlan(fault, at=number))
        case = f"{fault.value} at call {number} ({learned.calls[number - 1]})"
        for message_id in accepted:
            assert [each.state for each in world.deliveries(message_id)] == [DeliveryState.DELIVERED], case
        assert in_order(arrived(world, "s0")), case


def test_a_try_by_hand_that_failed_lets_its_message_overtake_nothing() -> None:
    # Given a message that waits behind a failing one, after a manual try that failed
    world = World()
    world.make_queue("q", subscribers(A), retry=RetrySchedule(waits_s=(HOUR_S,), spread=(1, 1)))
    world.sender.script(A, 500, 500, 200)
    world.post("q", b"1", order_key="k")
    world.run(seconds=5)
    [second] = world.post("q", b"2", order_key="k")
    world.run(seconds=5)
    message = next(each for each in world.messages.all_messages() if each.message_id == second)
    world.hub.engine.resend.ask(message, "s0")
    world.run(seconds=5)
    # When its order comes once more, from a queue that repeats or from the sweep
    world.retry_queue.send([(WorkOrder(key=message.delivery_key("s0"), queue="q"), 0)])
    world.run(seconds=600)
    # Then it still waits for the one before it
    assert [each.body for each in world.sender.requests_to(A)] == [b"1", b"2"]
    world.run(seconds=HOUR_S)
    assert [each.body for each in world.sender.requests_to(A)] == [b"1", b"2", b"1", b"2"]


def test_what_was_cleared_holds_back_nothing_that_is_posted_from_then_on() -> None:
    # Given a message that failed and is tried again in an hour, and one that waits behind it
    world = World()
    queue = world.make_queue("q", subscribers(A), retry=RetrySchedule(waits_s=(HOUR_S,), spread=(1, 1)))
    world.sender.script(A, 500, 200)
    world.post("q", b"1", b"2", order_key="k")
    world.run(seconds=5)
    # When the queue is cleared, and more is posted with their key
    world.config.update_queue(replace(queue, cleared_at=world.clock.now()))
    world.run(seconds=MINUTE_S)
    world.post("q", b"3", b"4", order_key="k")
    world.run(seconds=5)
    # Then that comes at once, in its order, and nothing of what was cleared
    assert [each.body for each in world.sender.requests_to(A)] == [b"1", b"3", b"4"]
    world.run(seconds=2 * HOUR_S)
    assert [each.body for each in world.sender.requests_to(A)] == [b"1", b"3", b"4"]


def test_behind_messages_deleted_one_after_the_other_one_looks_once_for_who_goes_before_them() -> None:
    # Given a message that failed, and many behind it that are deleted from the oldest on
    world = World()
    queue = world.make_queue("q", subscribers(A), retry=RetrySchedule(waits_s=(HOUR_S,), spread=(1, 1)))
    world.sender.script(A, 500, 200)
    first, *others = world.post("q", *(b"%d" % each for each in range(50)), order_key="k")
    world.run(seconds=5)
    for each in others:
        message = world.messages.message(MessageKey(queue.project, queue.uid, each))
        assert message is not None
        waiting = world.messages.delivery(message.delivery_key("s0")) or opening(message, "s0")
        world.messages.save(cancelled(world.messages, waiting, message, world.clock.now()))
    # Then whoever comes behind the last of them reads that, and the first
    reads: list[DeliveryKey] = []

    class Counted:
        def delivery(self, key: DeliveryKey) -> Delivery | None:
            reads.append(key)
            return world.messages.delivery(key)

    last = DeliveryKey(queue.project, queue.uid, others[-1], "s0")
    assert not is_over(cast("StoredMessages", Counted()), last)
    assert [each.message_id for each in reads] == [others[-1], first]
    # And goes on once that has ended
    world.run(seconds=2 * HOUR_S)
    assert is_over(world.messages, last)
