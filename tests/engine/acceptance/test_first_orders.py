"""Eager queues: ingest sends the first orders itself, and the stream's orders find them done."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from tests.engine.world import ENDLESS_MS, World, subscribers
from tests.fakes import Crash, Fault, FaultPlan, each_strike

from pushhub.base.errors import HubError
from pushhub.engine.acceptance.dispatch import LOOKS_AFTER_MS, MOST_LOOKED_UP
from pushhub.engine.acceptance.first_orders import NOT_EAGER_MS
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.eager import FRESH_MS, GOOD_FOR_MS, MARGIN_S, MOST_ORDERS
from pushhub.engine.model.flow import Limits

URL = "https://one.example/in"
OTHER = "https://two.example/in"
AGAIN_S = GOOD_FOR_MS // 1000 + 10 + MARGIN_S
"""When the stream's order comes: every subscriber here has ten seconds to answer."""


def eager_world(*, plan: FaultPlan | None = None, unicast: bool = False, retries: int = 2) -> World:
    world = World(plan)
    world.make_queue("q", subscribers(URL, OTHER), eager=True, unicast=unicast, retries=retries)
    return world


def attempts(world: World) -> list[str]:
    return [each.url for each in world.sender.requests]


@pytest.mark.parametrize("unicast", [False, True])
def test_a_post_is_delivered_before_the_stream_is_read_and_not_again_after(unicast: bool) -> None:
    # Given an eager queue, and a stream that nobody reads yet
    world = eager_world(unicast=unicast)
    [message_id] = world.post("q", b"x")

    # When push receives what ingest sent
    world._push(world.push_queue, world.hub.engine.ports.push_queue)

    # Then it is delivered
    owed = 1 if unicast else 2
    assert len(attempts(world)) == owed
    assert {each.state for each in world.deliveries(message_id)} == {DeliveryState.DELIVERED}

    # Without having looked whether somebody else had begun: nobody could have
    assert "messages.deliveries" not in world.plan.calls

    # And the stream's orders for the same deliveries come when that must be over, without the message
    world.dispatch_only()
    first, second = world.push_queue.sent[:owed], world.push_queue.sent[owed:]
    assert [delay_s for _, delay_s in second] == [AGAIN_S] * owed
    assert [order.key for order, _ in first] == [order.key for order, _ in second]
    assert all(order.second and order.message is None for order, _ in second)

    # And end without a post, or a look at the message or its queue
    before = len(world.plan.calls)
    world.run(seconds=3_600)
    assert len(attempts(world)) == owed
    later = world.plan.calls[before:]
    assert not [each for each in later if each in ("messages.message", "config.queue", "messages.save")]
    assert len(world.push_queue) == len(world.retry_queue) == 0


@pytest.mark.parametrize("fault", Fault)
def test_nothing_is_lost_and_nothing_doubled_when_ingest_cannot_send_or_dies(fault: Fault) -> None:
    # Given an ingest that dies, or whose call fails or times out, when it sends the first orders
    plan = FaultPlan()
    world = eager_world(plan=plan)
    plan.strike(fault, of="push_queue.send_packed")

    # When a message is posted
    accepted = []
    with suppress(Crash):
        accepted = world.post("q", b"x")
    assert plan.struck
    assert bool(accepted) == (fault in (Fault.FAILS, Fault.TIMES_OUT))
    world.run(seconds=3_600)

    # Then each subscriber got it once
    assert sorted(attempts(world)) == [URL, OTHER]


def begin(world: World) -> None:
    """Let push receive what ingest has sent, and the stream be read a while later."""
    world._push(world.push_queue, world.hub.engine.ports.push_queue)
    world.clock.advance(ms=LOOKS_AFTER_MS)
    world.dispatch_only()


def test_what_ingests_order_has_begun_when_the_stream_is_read_gets_no_second_one() -> None:
    # Given an eager queue of two subscribers, of which one is down for now
    world = eager_world()
    world.sender.script(OTHER, 503, 200)

    # When what ingest sent has been received before the stream is read
    world.post("q", b"x")
    begin(world)

    # Then there is no other order but the one that waits for its retry
    assert [order.second for order, _ in world.push_queue.sent] == [False, False]
    world.run(seconds=3_600)
    assert sorted(attempts(world)) == [URL, OTHER, OTHER]
    assert len(world.push_queue) == len(world.retry_queue) == 0


def test_what_ingests_order_has_not_begun_when_the_stream_is_read_gets_its_second_one() -> None:
    # Given an eager queue, of which one subscriber's order was lost
    world = eager_world()
    world.post("q", b"x")
    lost = next(each for each in world.push_queue.receive() if each.order.key.subscriber_id == "s1")
    world.push_queue.delete([lost.receipt_handle])
    world.clock.advance(ms=120_000)
    before = len(world.push_queue.sent)

    # When the stream is read
    world.dispatch_only()

    # Then both get another, as neither was begun
    assert [order.key.subscriber_id for order, _ in world.push_queue.sent[before:]] == ["s0", "s1"]
    world.run(seconds=3_600)
    assert sorted(attempts(world)) == [URL, OTHER]


def test_nothing_is_looked_up_when_second_orders_cost_no_more() -> None:
    # Given more deliveries than one call reads
    world = eager_world()
    for _ in range(MOST_LOOKED_UP // 2 + 1):
        world.post("q", b"x")
    world.clock.advance(ms=LOOKS_AFTER_MS)

    # When the stream is read, then second orders are sent without a look
    world.dispatch_only()
    assert "messages.deliveries" not in world.plan.calls
    assert sum(order.second for order, _ in world.push_queue.sent) == MOST_LOOKED_UP + 2


def test_a_look_that_fails_leaves_it_to_second_orders() -> None:
    # Given a delivery that was begun, and a table that cannot be read
    plan = FaultPlan()
    world = eager_world(plan=plan)
    world.post("q", b"x")
    world._push(world.push_queue, world.hub.engine.ports.push_queue)
    world.clock.advance(ms=LOOKS_AFTER_MS)
    plan.strike(Fault.FAILS, of="messages.deliveries")

    # When the stream is read, then the orders are sent, and end without a post
    world.dispatch_only()
    assert plan.struck
    assert sum(order.second for order, _ in world.push_queue.sent) == 2
    world.run(seconds=3_600)
    assert sorted(attempts(world)) == [URL, OTHER]


def test_each_call_of_an_eager_message_goes_wrong_once_and_it_is_delivered() -> None:
    # Given a message that needs a second try, whose first one may have been recorded before the stream is read
    def play(plan: FaultPlan) -> World:
        world = World(plan)
        world.make_queue("q", subscribers(URL), eager=True, retries=5)
        world.sender.script(URL, 503, 200)
        with suppress(Crash, HubError):
            world.post("q", b"x")
        begin(world)
        world.run(seconds=3_600)
        return world

    # When each call goes wrong once, or is the last of its process
    struck = 0
    for fault, number in each_strike(play):
        plan = FaultPlan(fault, at=number)
        world = play(plan)
        struck += plan.struck

        # Then what is stored is delivered, and no order is left
        case = f"{fault.value} at call {number}, {plan.calls[number - 1]}"
        stored = world.messages.all_messages()
        assert [each.state for each in world.messages.all_deliveries()] == [DeliveryState.DELIVERED] * len(stored), case
        assert len(world.push_queue) == len(world.retry_queue) == 0, case
    assert struck > 40


def test_orders_that_could_not_be_sent_leave_the_next_posts_to_the_stream() -> None:
    plan = FaultPlan()
    world = eager_world(plan=plan)
    plan.strike(Fault.FAILS, of="push_queue.send_packed")
    world.post("q", b"x")

    # When more is posted soon after
    world.post("q", b"y")
    world.dispatch_only()

    # Then the stream's orders for it are the only ones, and at once
    assert [delay_s for order, delay_s in world.push_queue.sent if order.message and order.message.body == b"y"] == [
        0,
        0,
    ]

    # And a while later, posts are eager again
    world.clock.advance(ms=NOT_EAGER_MS)
    before = len(world.push_queue.sent)
    world.post("q", b"z")
    assert [order.until for order, _ in world.push_queue.sent[before:]] == [world.clock.now() + GOOD_FOR_MS] * 2


def test_ingests_order_is_void_once_the_streams_may_come() -> None:
    # Given a backlog, so that ingest's orders are received late
    world = eager_world()
    world.post("q", b"x")
    world.dispatch_only()
    world.clock.advance(ms=GOOD_FOR_MS)

    # When they are
    world._push(world.push_queue, world.hub.engine.ports.push_queue)

    # Then nothing is attempted until the stream's are due
    assert attempts(world) == []
    world.run(seconds=3_600)
    assert sorted(attempts(world)) == [URL, OTHER]


@pytest.mark.parametrize("late_ms", [0, FRESH_MS])
def test_whether_somebody_has_begun_is_looked_up_unless_the_order_is_fresh(late_ms: int) -> None:
    # Given an order of ingest's that is received at once, or later
    world = eager_world()
    world.post("q", b"x")
    world.clock.advance(ms=late_ms)

    # When push takes it
    world._push(world.push_queue, world.hub.engine.ports.push_queue)

    # Then it reads the deliveries first only in the second case
    assert ("messages.deliveries" in world.plan.calls) == (late_ms > 0)
    assert sorted(attempts(world)) == [URL, OTHER]


def test_an_order_of_ingests_that_comes_again_is_looked_up_however_soon() -> None:
    # Given a try that was made, of which the queue did not hear
    world = eager_world()
    world.post("q", b"x")
    source = world.hub.engine.ports.push_queue
    batch = world.push_queue.receive()
    world.push.run(batch, source=source, remaining_ms=lambda: ENDLESS_MS)
    assert "messages.deliveries" not in world.plan.calls

    # When the queue hands it out again at once, as its second receive
    again = [replace(each, receive_count=2) for each in batch]
    assert world.push.run(again, source=source, remaining_ms=lambda: ENDLESS_MS) == set()

    # Then it was looked up, and nothing is sent twice
    assert "messages.deliveries" in world.plan.calls
    assert sorted(attempts(world)) == [URL, OTHER]


def test_only_what_would_be_attempted_at_once_is_ordered_by_ingest() -> None:
    # Given subscribers of which one may be attempted at once
    world = World()
    plain, *others = subscribers(URL, *(f"https://{each}.example/in" for each in ("limited", "paused", "disabled")))
    limited, paused, disabled = others
    owed = [
        plain,
        replace(limited, limits=Limits(rate_per_s=5)),
        replace(paused, paused=True),
        replace(disabled, disabled=True),
    ]
    world.make_queue("q", owed, eager=True)

    # When messages are posted
    world.post("q", b"x")
    ordered = [order.key.subscriber_id for order, _ in world.push_queue.sent]
    world.post("q", b"later", delay_s=5)
    world.post("q", b"in order", order_key="k")

    # Then ingest has ordered that one delivery
    assert ordered == ["s0"] == [order.key.subscriber_id for order, _ in world.push_queue.sent]

    # And the stream orders all others as ever
    world.dispatch_only()
    delays = {
        (order.message.body if order.message else None, order.key.subscriber_id): delay_s
        for order, delay_s in world.push_queue.sent[1:]
    }
    expected: dict[tuple[bytes | None, str], int] = {
        (body, f"s{number}"): 5 if body == b"later" else 0
        for body in (b"x", b"later", b"in order")
        for number in range(4)
    }
    del expected[b"x", "s0"]
    expected[None, "s0"] = AGAIN_S
    assert delays == expected


def test_a_post_that_makes_many_orders_leaves_them_to_the_stream() -> None:
    world = eager_world()
    world.post("q", *[b"x"] * (MOST_ORDERS // 2 + 1))
    assert world.push_queue.sent == []
    world.post("q", *[b"x"] * (MOST_ORDERS // 2))
    assert len(world.push_queue.sent) == MOST_ORDERS


def test_no_first_order_of_a_queue_that_is_not_eager_is_sent_by_ingest() -> None:
    world = World()
    world.make_queue("q", subscribers(URL))
    world.post("q", b"x")
    assert world.push_queue.sent == []
