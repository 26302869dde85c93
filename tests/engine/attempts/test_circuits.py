"""A failing subscriber among healthy ones, on fakes and a fake clock: few requests, no loss, and a way back."""

from __future__ import annotations

from tests.engine.world import PROJECT, World, subscribers
from tests.fakes import FaultPlan

from pushhub.engine.attempts.circuits import FRESH_MS
from pushhub.engine.model.answer_rules import STANDARD_RULES
from pushhub.engine.model.backoff import SCHEDULES
from pushhub.engine.model.circuit import Circuit, CircuitState, SubscriberKey
from pushhub.engine.model.delivery import DeliveryState

DEAD, WELL = "https://dead.example/in", "https://well.example/in"
KEY = SubscriberKey(project=PROJECT, queue="q", queue_uid="uid-q", subscriber_id="s0")
HOUR_S, DAY_S = 3_600, 86_400
MONTH_S = 30 * DAY_S


def a_hub(plan: FaultPlan | None = None, *, circuit: Circuit | None = None) -> World:
    world = World(plan)
    world.make_queue(
        "q",
        subscribers(DEAD, WELL),
        retry=SCHEDULES["svix"],
        rules=STANDARD_RULES,
        circuit=circuit or Circuit(),
        expiration=MONTH_S - 1,
    )
    world.sender.script(DEAD, 500)
    return world


def states_at(world: World, subscriber_id: str) -> list[DeliveryState]:
    return [each.state for each in world.messages.all_deliveries() if each.subscriber_id == subscriber_id]


def test_a_dead_subscriber_with_six_hundred_messages_gets_few_requests_and_neighbours_all_of_theirs() -> None:
    # Given 600 messages for a dead subscriber and a healthy one
    world = a_hub()
    for _ in range(6):
        world.post("q", *[b"x"] * 100)
    # When the whole duration of Svix's schedule passes, in which each message would have been tried eight times
    world.run(seconds=60)
    # Then the healthy one had all of its messages at once
    assert len(world.sender.requests_to(WELL)) == 600
    assert states_at(world, "s1") == [DeliveryState.DELIVERED] * 600
    world.run(seconds=28 * HOUR_S)
    # And the dead one got fewer than fifty requests
    assert 10 < len(world.sender.requests_to(DEAD)) < 50
    # And its health was written for the probes and little else
    assert len(world.ports.subscribers.writes) < 100
    # When it is back
    world.sender.script(DEAD, 200)
    before = len(world.sender.requests_to(DEAD))
    world.run(seconds=HOUR_S + 61)
    assert len(world.sender.requests_to(DEAD)) > before
    world.run(seconds=HOUR_S)
    # Then everything arrives about once, and the circuit is closed
    assert states_at(world, "s0") == [DeliveryState.DELIVERED] * 600
    health = world.ports.subscribers.health(KEY)
    assert health is not None
    assert (health.state, health.failing_since) == (CircuitState.CLOSED, None)
    assert [*world.ports.subscribers.looked_after()] == []
    assert world.ports.subscribers.waiting(KEY, 9) == []
    assert len(world.sender.requests_to(DEAD)) == before + 600


def test_a_healthy_subscriber_costs_no_write_and_one_read_in_ten_seconds() -> None:
    plan = FaultPlan()
    world = World(plan)
    world.make_queue("q", subscribers(WELL), circuit=Circuit())
    for _ in range(3):
        world.post("q", *[b"x"] * 100)
        world.run(seconds=1)
    asked = [each for each in plan.calls if each.startswith("subscribers.")]
    # The list of slow subscribers is read once for all of them
    assert sorted(asked) == ["subscribers.health", "subscribers.slow"]
    world.clock.advance(ms=FRESH_MS)
    world.post("q", b"x")
    world.run(seconds=1)
    assert sorted(each for each in plan.calls if each.startswith("subscribers.")) == [
        *["subscribers.health"] * 2,
        "subscribers.slow",
    ]


def test_what_waits_on_a_subscriber_that_its_owner_disables_ends_within_minutes() -> None:
    world = a_hub()
    world.post("q", *[b"x"] * 100)
    world.run(seconds=30)
    requests = len(world.sender.requests_to(DEAD))
    # When the owner disables it
    world.owner.set_disabled(PROJECT, "q", "s0", disabled=True)
    world.hub.engine.circuits.start_over(KEY)
    world.run(seconds=600)
    # Then all of it has ended, and nobody was asked
    ended = [each for each in world.messages.all_deliveries() if each.subscriber_id == "s0" and each.settled]
    assert len(ended) >= 95
    assert {each.reason for each in ended} == {"subscriber_disabled"}
    assert len(world.sender.requests_to(DEAD)) == requests
