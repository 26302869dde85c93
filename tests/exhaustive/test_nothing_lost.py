"""Decision 1 as a test: nothing is lost whichever single call fails, times out after taking effect, or is followed by a
crash.
"""

from __future__ import annotations

import json

import pytest
from tests.engine.world import World, subscribers
from tests.fakes import Crash, Fault, FaultPlan, Reply, each_strike
from tests.fakes.large_bodies import large_body

from pushhub.base.errors import HubError
from pushhub.engine.model.deflated import plain
from pushhub.engine.model.delivery import SETTLED, DeliveryState, acknowledge
from pushhub.engine.model.queue import Subscriber

HEALTHY, FLAKY, DEAD = "https://healthy.example/", "https://flaky.example/", "https://dead.example/"
SLOW = "https://slow.example/"
LARGE = large_body(10_000)


def play(plan: FaultPlan) -> tuple[World, list[str]]:
    """A busy quarter of an hour: three subscribers and a fan-out queue, four messages, one scheduled wait,
    one error queue.
    """
    world = World(plan)
    fan_out = Subscriber(subscriber_id="s4", name="fan-out", url="ironmq:///copies")
    world.make_queue(
        "q", [*subscribers(HEALTHY, FLAKY, DEAD, SLOW), fan_out], retries=2, retries_delay=60, error_queue="failed"
    )
    world.make_queue("patient", subscribers(FLAKY), retries=2, retries_delay=1000)
    world.sender.script(FLAKY, 500, 200, 503, 200)
    world.sender.script(DEAD, Reply(error_class="timeout", message="timed out"))
    world.sender.script(SLOW, Reply(status_code=200, takes_ms=5000))
    accepted: list[str] = []
    for queue, body in [("q", b"one"), ("q", LARGE), ("patient", b"three"), ("patient", b"four")]:
        try:
            accepted += world.post(queue, body)
        except (Crash, HubError):
            continue  # the producer was told; it is owed nothing
    world.run(seconds=4000)
    return world, accepted


def test_each_call_goes_wrong_once_and_nothing_is_lost() -> None:
    struck = 0
    for fault, number in each_strike(play):
        plan = FaultPlan(fault, at=number)
        world, accepted = play(plan)
        case = f"{fault.value} at call {number} ({plan.calls[number - 1] if plan.struck else 'never'})"
        struck += plan.struck
        everything_accepted_ended_well(world, accepted, case)
    assert struck > 160


def everything_accepted_ended_well(world: World, accepted: list[str], reason: str) -> None:
    copies = world.pulled("copies")
    errors = [json.loads(each) for each in world.pulled("failed")]
    for message_id in accepted:
        message = next(each for each in world.messages.all_messages() if each.message_id == message_id)
        states = {each.subscriber_id: each for each in world.deliveries(message_id)}
        # Every owed delivery has ended: the healthy ones delivered, the dead one in the error queue
        assert set(states) == set(message.subscriber_ids), reason
        for subscriber_id, delivery in states.items():
            assert delivery.state in SETTLED, f"{reason}: {subscriber_id} is {delivery.state}"
            assert delivery.tries <= 3, reason
            dead = message.queue == "q" and subscriber_id == "s2"
            assert delivery.state is (DeliveryState.EXHAUSTED if dead else DeliveryState.DELIVERED), reason
        if message.queue == "q":
            # The error message and the copy exist exactly once, however often they were made
            assert [each["source_msg_id"] for each in errors].count(message_id) == 1, reason
            body = plain(message.body) if message.body is not None else LARGE
            assert copies.count(body) == 1, reason
    assert world.push_queue.dead == world.retry_queue.dead == world.slow_queue.dead == world.errors_queue.dead == [], (
        reason
    )
    assert len(world.push_queue) == len(world.retry_queue) == len(world.slow_queue) == len(world.errors_queue) == 0, (
        reason
    )


@pytest.mark.parametrize("after_s", [0, 30, 86_400, 5 * 86_400])
def test_late_and_double_orders_never_push_what_is_settled(after_s: float) -> None:
    # Given deliveries that ended in every possible way
    world = World()
    world.make_queue("q", subscribers(HEALTHY, DEAD), retries=1, retries_delay=3, error_queue="failed")
    world.sender.script(DEAD, 500)
    ids = world.post("q", b"x", b"y")
    handles: list[str] = []
    while world.step():
        pass
    world.run(seconds=60)
    requests = len(world.sender.requests)
    # When SQS hands out every order ever received once more
    for queue in (world.push_queue, world.retry_queue, world.errors_queue):
        for handle in list(queue._received):
            queue.duplicate(handle, after_s=after_s)
            handles.append(handle)
    world.run(seconds=after_s + 60)
    # Then no request was made and no error message added
    # (the two that gave up travelled in one message)
    assert len(handles) >= 5
    assert len(world.sender.requests) == requests
    assert len(world.pulled("failed")) == len(ids)


@pytest.mark.parametrize("fault", list(Fault))
def test_what_was_acknowledged_is_not_pushed_again_whatever_call_fails(fault: Fault) -> None:
    # Given every call of a push that is answered with 202 and acknowledged
    learned = FaultPlan()
    acknowledged_push(learned)
    posting = FaultPlan()
    accepted_push(posting)
    refused = 0
    for number in range(1, len(learned.calls) + 1):
        # When one of them goes wrong
        plan = FaultPlan(fault, at=number)
        world, acknowledged_at = acknowledged_push(plan)
        # Then no request follows the acknowledgement; only a refused post leads to no request at all
        if acknowledged_at is None:
            refused += 1
            assert number <= len(posting.calls), f"{fault.value} at {plan.calls[number - 1]}"
        else:
            assert acknowledged_at > 0
            later = world.sender.requests[acknowledged_at:]
            assert later == [], f"{fault.value} at {plan.calls[number - 1]}"
    assert refused < len(learned.calls) / 2


def accepted_push(plan: FaultPlan) -> tuple[World, str | None]:
    """One message posted but not yet worked on; returns its id, None when the post was refused."""
    world = World(plan)
    world.make_queue("q", subscribers(SLOW), retries=3, retries_delay=60)
    world.sender.script(SLOW, 202)
    try:
        [message_id] = world.post("q", b"x")
    except (Crash, HubError):
        return world, None
    return world, message_id


def acknowledged_push(plan: FaultPlan) -> tuple[World, int | None]:
    """One message answered with 202 and acknowledged once that is on record; the number of requests made by then."""
    world, message_id = accepted_push(plan)
    if message_id is None:
        return world, None
    for _ in range(30):
        world.run(seconds=50)
        if world.deliveries(message_id):
            break
    [delivery] = world.deliveries(message_id)
    world.messages.save(acknowledge(delivery, "s0", delivery.attempts, world.clock.now()))
    requests = len(world.sender.requests)
    world.run(seconds=4000)
    return world, requests


class Outage(FaultPlan):
    """Every call of one port fails as long as it lasts.

    Args:
        port: Its name.
        lasts: Whether it does.
    """

    def __init__(self, port: str, *, lasts: bool) -> None:
        super().__init__()
        self._port = port
        self.lasts = lasts

    def next_fault(self, call: str) -> Fault | None:
        return Fault.FAILS if self.lasts and call.startswith(f"{self._port}.") else None


@pytest.mark.parametrize("port", ["messages", "config", "retry_queue"])
def test_an_hours_outage_sends_nothing_to_the_dead_letter_queues(port: str) -> None:
    # Given a message whose first try is due, and one that waits for its second, when a service behind the hub breaks
    # down
    outage = Outage(port, lasts=False)
    world = World(outage)
    world.make_queue("q", subscribers(HEALTHY), retries=2, retries_delay=60)
    world.make_queue("again", subscribers(FLAKY), retries=2, retries_delay=60)
    world.sender.script(FLAKY, 500, 500, 200)
    world.post("again", b"second")
    world.run(seconds=1)
    world.post("q", b"first")
    outage.lasts = True
    world.run(seconds=3600)
    # Then somebody is told
    assert world.telemetry.counts["CallsFailed"] >= 1
    # When it is back, then both are soon delivered without anybody's help
    outage.lasts = False
    world.run(seconds=1800)
    assert world.push_queue.dead == world.retry_queue.dead == []
    assert all(each.state is DeliveryState.DELIVERED for each in world.messages.all_deliveries())
    assert {each.body for each in world.sender.requests} == {b"first", b"second"}
