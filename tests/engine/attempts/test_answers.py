"""Subscribers whose answers ask for something: to wait, to stop, to send nothing more. On fakes."""

from __future__ import annotations

from contextlib import suppress
from itertools import product

from tests.engine.world import World, subscribers
from tests.fakes import Crash, Fault, FaultPlan

from pushhub.base.errors import HubError
from pushhub.engine.model.answer_rules import STANDARD_RULES
from pushhub.engine.model.backoff import RetrySchedule
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.subscriber_event import SubscriberEventKind

A, B = "https://a.example/in", "https://b.example/in"
DAY_S = 86_400


def test_a_subscriber_that_is_gone_is_disabled_and_what_is_owed_to_it_ends_in_sight() -> None:
    # Given two subscribers, one of which is gone, and a message that waits for a retry at it
    world = World()
    world.make_queue("q", subscribers(A, B), retry=RetrySchedule(waits_s=(600, 600)), rules=STANDARD_RULES)
    world.sender.script(A, 500, 410)
    [waiting] = world.post("q", b"1")
    world.run(seconds=10)
    # When the next message meets a 410
    [refused] = world.post("q", b"2")
    world.run(seconds=10)
    # Then its protocol was told once, and that message is exhausted at once
    [event] = world.owner.events
    assert (event.kind, event.subscriber_id, event.reason) == (SubscriberEventKind.DISABLE, "s0", "status_410")
    states = {each.subscriber_id: (each.state, each.reason) for each in world.deliveries(refused)}
    assert states == {"s0": (DeliveryState.EXHAUSTED, "status_410"), "s1": (DeliveryState.DELIVERED, "")}
    # And the waiting message ends when it is due, with the reason and without a request; so do later messages
    world.post("q", b"3")
    world.run(seconds=1_000)
    ended = {(each.state, each.reason) for each in world.messages.all_deliveries() if each.subscriber_id == "s0"}
    assert ended == {(DeliveryState.EXHAUSTED, "status_410"), (DeliveryState.EXHAUSTED, "subscriber_disabled")}
    assert len(world.sender.requests_to(A)) == 2
    assert len(world.sender.requests_to(B)) == 3
    assert len(world.deliveries(waiting)) == 2


def gone(plan: FaultPlan) -> tuple[World, list[str]]:
    """One message to a subscriber that answers 410."""
    world = World(plan)
    world.make_queue("q", subscribers(A), retry=RetrySchedule(waits_s=(60, 60)), rules=STANDARD_RULES)
    world.sender.script(A, 410)
    accepted: list[str] = []
    with suppress(Crash, HubError):
        accepted = world.post("q", b"x")
    world.run(seconds=DAY_S)
    return world, accepted


def test_the_end_of_a_subscriber_survives_any_fault() -> None:
    # Given each call going wrong once in each way
    learned = FaultPlan()
    gone(learned)
    assert "owner.happened" in learned.calls
    for number, fault in product(range(1, len(learned.calls) + 1), Fault):
        world, accepted = gone(FaultPlan(fault, at=number))
        case = f"{fault.value} at call {number} ({learned.calls[number - 1]})"
        # Then, if the message was accepted, the subscriber was disabled and the message ended visibly, with at most one
        # further request
        for message_id in accepted:
            assert world.owner.events, case
            [delivery] = world.deliveries(message_id)
            assert delivery.state is DeliveryState.EXHAUSTED, case
            assert delivery.reason in {"status_410", "subscriber_disabled"}, case
            assert len(world.sender.requests) <= 2, case
