"""A failing subscriber among healthy ones, on fakes and a fake clock: few requests, no loss, and a way back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.engine.world import PROJECT, World, subscribers
from tests.fakes import FakeClock, FaultPlan
from tests.fakes.subscribers import FakeSubscribers
from tests.fakes.telemetry import FakeTelemetry

from pushhub.base.errors import Unavailable
from pushhub.engine.attempts.circuits import FRESH_MS, Circuits
from pushhub.engine.model.answer_rules import STANDARD_RULES
from pushhub.engine.model.backoff import SCHEDULES
from pushhub.engine.model.circuit import Circuit, CircuitState, Health, SubscriberKey
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.keys import DeliveryKey, MessageKey
from pushhub.engine.model.message import NewMessage
from pushhub.engine.model.subscriber_event import SubscriberEventKind
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.ports import BacklogOrder

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


def test_what_waits_comes_back_on_a_ramp_behind_what_is_new() -> None:
    # Given 300 waiting messages, and a subscriber that has recovered
    world = a_hub()
    for _ in range(3):
        world.post("q", *[b"old"] * 100)
    world.run(seconds=30)
    world.sender.script(DEAD, 200)
    world.run(seconds=100)
    sent = [each.body for each in world.sender.requests_to(DEAD)].count(b"old")
    assert sent < 40
    # When something new is posted, then it goes out at once
    world.post("q", b"new")
    world.run(seconds=1)
    assert world.sender.requests_to(DEAD)[-1].body == b"new"
    # And the others follow, twice as many each minute
    minutes = []
    for _ in range(7):
        before = len(world.sender.requests_to(DEAD))
        world.run(seconds=60)
        minutes.append(len(world.sender.requests_to(DEAD)) - before)
    grows = [each for each in minutes if each]
    assert grows[:-1] == sorted(grows[:-1])
    assert len(grows) >= 3
    assert states_at(world, "s0") == [DeliveryState.DELIVERED] * 301


def test_an_order_of_the_schedule_that_failed_once_and_then_waits_on_its_subscriber_is_not_void_when_it_is_let_go() -> (
    None
):
    # Given a message that was woken from the schedule and failed, whose order waits in the queue for the next try
    world = World()
    waits = replace(SCHEDULES["svix"], waits_s=(30,) * 9)
    world.make_queue("q", subscribers(DEAD), retry=waits, circuit=Circuit(failures=4))
    world.sender.script(DEAD, 500)
    world.ingest.post(PROJECT, "q", [NewMessage(body=b"later", delay_s=HOUR_S)])
    while not world.sender.requests_to(DEAD):
        world.run(seconds=60)
    # When the circuit opens before that try, then it waits in the subscriber's backlog
    world.post("q", b"1", b"2", b"3")
    world.run(seconds=40)
    assert len(world.ports.subscribers.waiting(KEY, 9)) == 4
    # And when the subscriber is back, it is released like the others, and arrives
    world.sender.script(DEAD, 200)
    world.run(seconds=HOUR_S)
    assert states_at(world, "s0") == [DeliveryState.DELIVERED] * 4


def test_a_subscriber_that_fails_again_while_it_ramps_is_left_alone_again() -> None:
    world = a_hub()
    world.post("q", *[b"x"] * 100)
    world.run(seconds=30)
    # When it recovers for three requests only
    world.sender.script(DEAD, 200, 200, 200, 500)
    world.run(seconds=6 * 60)
    tried = len(world.sender.requests_to(DEAD))
    assert tried < 40
    health = world.ports.subscribers.health(KEY)
    assert health is not None
    assert health.state is CircuitState.OPEN
    # And when it recovers for good, then nothing was lost
    world.sender.script(DEAD, 200)
    world.run(seconds=3 * HOUR_S)
    assert states_at(world, "s0") == [DeliveryState.DELIVERED] * 100


def test_a_subscriber_that_refuses_one_message_is_not_taken_for_dead() -> None:
    world = a_hub()
    world.sender.script(DEAD, *[500, 200] * 20)
    world.post("q", *[b"x"] * 20)
    world.run(seconds=10)
    assert world.telemetry.counts["CircuitsOpen"] == 0
    # And the failures in between cost few writes: at most two per minute, one for a success and one for a failure
    assert len(world.ports.subscribers.writes) <= 4


def test_a_large_share_of_failures_opens_the_circuit_too() -> None:
    world = a_hub(circuit=Circuit(failures=50, share=0.7, least=20))
    world.sender.script(DEAD, *[500, 500, 500, 200] * 20)
    world.post("q", *[b"x"] * 60)
    world.run(seconds=3)
    assert world.telemetry.counts["CircuitsOpen"] == 1
    assert len(world.sender.requests_to(DEAD)) < 25


def test_without_a_circuit_each_delivery_keeps_its_promised_waits() -> None:
    # Given an IronMQ queue
    world = World()
    world.make_queue("q", subscribers(DEAD), retries=2, retries_delay=60)
    world.sender.script(DEAD, 500)
    world.post("q", *[b"x"] * 50)
    world.run(seconds=HOUR_S)
    # Then every message had its three tries, and nothing was stored about the subscriber
    assert len(world.sender.requests_to(DEAD)) == 150
    assert world.ports.subscribers.writes == []


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


def failing_for(world: World, seconds: int) -> list[tuple[int, str, int | None]]:
    """Post each hour for this long; returns hour, kind and percentage of each event."""
    start = world.clock.now()
    for _ in range(seconds // HOUR_S):
        world.post("q", b"x")
        world.run(seconds=HOUR_S)
    return [
        ((each.at - start) // 3_600_000, each.kind.value, each.percent)
        for each in world.owner.events
        if each.subscriber_id == "s0"
    ]


def test_days_of_nothing_but_failure_are_warned_of_and_end_in_disabling() -> None:
    # Given a subscriber that is dead for six days
    world = a_hub()
    reported = failing_for(world, 6 * DAY_S)
    # Then its protocol heard of it at 50, 70 and 90 percent of five days, once each, and then had it disabled
    assert [(kind, percent) for _, kind, percent in reported] == [
        ("failing", 50),
        ("failing", 70),
        ("failing", 90),
        ("disable", 100),
    ]
    for (hour, _, _), expected in zip(reported, (60, 84, 108, 120), strict=True):
        assert expected <= hour <= expected + 2
    assert len({each.cause for each in world.owner.events}) == 4
    # And its messages ended visibly, without a request
    requests = len(world.sender.requests_to(DEAD))
    world.run(seconds=DAY_S)
    assert set(states_at(world, "s0")) == {DeliveryState.EXHAUSTED}
    assert len(states_at(world, "s0")) == 144
    assert len(world.sender.requests_to(DEAD)) == requests
    reasons = {each.reason for each in world.messages.all_deliveries() if each.subscriber_id == "s0"}
    assert "subscriber_disabled" in reasons


def test_one_success_in_five_days_starts_the_count_anew() -> None:
    world = a_hub()
    failing_for(world, 4 * DAY_S)
    world.sender.script(DEAD, 200, 500)
    failing_for(world, 2 * DAY_S)
    assert SubscriberEventKind.DISABLE not in {each.kind for each in world.owner.events}


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


def test_a_person_can_have_a_message_tried_while_the_circuit_is_open() -> None:
    world = a_hub()
    message_ids = world.post("q", *[b"x"] * 20)
    world.run(seconds=30)
    world.sender.script(DEAD, 200)
    message = world.messages.message(MessageKey(PROJECT, "uid-q", message_ids[-1]))
    assert message is not None
    world.hub.engine.resend.ask(message, "s0")
    world.run(seconds=1)
    # Then it arrives at once, and after that success the others follow
    assert [each.state for each in world.deliveries(message_ids[-1]) if each.subscriber_id == "s0"] == [
        DeliveryState.DELIVERED
    ]
    world.run(seconds=10 * 60)
    assert states_at(world, "s0") == [DeliveryState.DELIVERED] * 20


def test_environments_that_learn_late_make_few_requests_more() -> None:
    # Given four execution environments
    world = a_hub()
    hubs = [world.hub, *(world.ports.build() for _ in range(3))]
    for number in range(400):
        world.__dict__["hub"] = hubs[number % 4]
        world.post("q", b"x")
        world.step()
    world.run(seconds=60)
    # Then each finds out at most once by itself
    assert len(world.sender.requests_to(DEAD)) <= 4 * Circuit().failures + 2


def test_more_circuits_than_a_run_can_see_to_come_in_turn() -> None:
    # Given 120 dead subscribers with one waiting order each, and runs that have time for some of them
    world = a_hub()
    store = world.ports.subscribers
    keys = [replace(KEY, subscriber_id=f"dead-{number:03d}") for number in range(120)]
    for key in keys:
        store.look_after(key)
        message_key = DeliveryKey(key.project, key.queue_uid, "1", key.subscriber_id)
        store.add(key, WorkOrder(key=message_key, queue="q"), world.clock.now())
    # When five minutes pass
    for _ in range(5):
        left = iter([10**9, 0])
        world.hub.engine.recover.run(lambda left=left: next(left))  # type: ignore[misc]
        world.clock.advance(ms=60_000)
    # Then all were handled
    assert [key for key in keys if store.waiting(key, 1)] == []


def test_a_subscriber_that_cannot_be_seen_to_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given two dead subscribers, one of which causes an error
    world = a_hub()
    store = world.ports.subscribers
    keys = [replace(KEY, subscriber_id=each) for each in ("bad", "good")]
    for key in keys:
        store.look_after(key)
        message_key = DeliveryKey(key.project, key.queue_uid, "1", key.subscriber_id)
        store.add(key, WorkOrder(key=message_key, queue="q"), world.clock.now())
    whole = store.waiting

    def spoiled(key: SubscriberKey, limit: int) -> list[BacklogOrder]:
        if key.subscriber_id == "bad":
            raise ValueError("not a work order")
        return whole(key, limit)

    monkeypatch.setattr(store, "waiting", spoiled)
    # When they are handled, then the other one's order is released, and the fault is reported
    assert world.hub.engine.recover.run(lambda: 10**9) == 1
    assert world.telemetry.counts["CircuitFaults"] == 1
    assert [each["subscriber_id"] for each in world.telemetry.named("circuit_not_seen_to")] == ["bad"]


class Restless(FakeSubscribers):
    """A store of subscribers in which another writer always comes first."""

    def save(self, health: Health) -> None:
        stored = self.health(health.key) or Health(key=health.key)
        super().save(replace(stored, version=stored.version + 1, changed_at=stored.changed_at + 1))
        super().save(health)


def test_a_change_that_others_always_overtake_is_left_for_later_and_said() -> None:
    """Given another writer before each save, then starting over fails, and an attempt's outcome is only logged."""
    clock, telemetry = FakeClock(), FakeTelemetry()
    known = Restless()
    FakeSubscribers.save(known, Health(key=KEY, failing_since=1, version=1))
    circuits = Circuits(healths=known, events=lambda _: (), clock=clock, telemetry=telemetry)
    with pytest.raises(Unavailable, match="what is known of a subscriber"):
        circuits.start_over(KEY)
    circuits.ended(KEY, Circuit(), failure=False, probe=False)
    assert len(telemetry.named("health_not_written")) == 1
