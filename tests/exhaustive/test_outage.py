"""An outage of a subscriber, in which each call goes wrong once, in every way."""

from __future__ import annotations

from contextlib import suppress

from tests.engine.world import PROJECT, World, subscribers
from tests.fakes import Crash, FaultPlan, each_strike

from pushhub.base.errors import HubError
from pushhub.engine.model.backoff import RetrySchedule
from pushhub.engine.model.circuit import Circuit, SubscriberKey
from pushhub.engine.model.delivery import DeliveryState

DEAD = "https://dead.example/in"
KEY = SubscriberKey(project=PROJECT, queue="q", queue_uid="uid-q", subscriber_id="s0")
HALF_A_DAY_S = 43_200


def outage(plan: FaultPlan) -> tuple[World, list[str]]:
    """Twelve messages while a subscriber is dead for some minutes."""
    world = World(plan)
    world.make_queue(
        "q", subscribers(DEAD), retry=RetrySchedule(waits_s=(5, 60, 600, 3_600)), circuit=Circuit(failures=3)
    )
    world.sender.script(DEAD, *[500] * 5, 200)
    accepted: list[str] = []
    for _ in range(4):
        with suppress(Crash, HubError):
            accepted += world.post("q", b"1", b"2", b"3")
    world.run(seconds=HALF_A_DAY_S)
    return world, accepted


def test_an_outage_loses_nothing_whatever_call_goes_wrong() -> None:
    learned = FaultPlan()
    outage(learned)
    assert {"subscribers.add", "subscribers.remove", "subscribers.save", "subscribers.leave"} <= {*learned.calls}
    for fault, number in each_strike(outage):
        world, accepted = outage(FaultPlan(fault, at=number))
        case = f"{fault.value} at call {number} ({learned.calls[number - 1]})"
        for message_id in accepted:
            states = [each.state for each in world.deliveries(message_id)]
            assert states == [DeliveryState.DELIVERED], case
        assert world.ports.subscribers.waiting(KEY, 9) == [], case
