"""Subscribers whose answers ask for something: to wait, to stop, to send nothing more. On fakes."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from email.utils import formatdate
from itertools import product

import pytest
from tests.engine.world import PROJECT, World, subscribers
from tests.fakes import Crash, Fault, FaultPlan, Reply

from pushhub.base.errors import HubError
from pushhub.engine.model.answer_rules import STANDARD_RULES, AnswerRules
from pushhub.engine.model.backoff import SCHEDULES, RetrySchedule
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.subscriber_event import SubscriberEventKind

A, B = "https://a.example/in", "https://b.example/in"
DAY_S = 86_400


def seconds_between_attempts(world: World, message_id: str) -> list[float]:
    """From the end of each attempt to the start of the next."""
    saved = [each for each in world.messages.saved if each.message_id == message_id and each.last is not None]
    attempts = {each.attempts: each.last for each in saved}
    return [round(last.wait_before_ms / 1000) for number, last in sorted(attempts.items()) if last and number > 1]


def test_a_published_schedule_is_kept_from_the_first_try_to_the_last() -> None:
    # Given a dead subscriber and Svix's schedule
    world = World()
    world.make_queue("q", subscribers(A), retry=replace(SCHEDULES["svix"], spread=(1, 1)))
    world.sender.script(A, 500)
    # When a message is posted and two days pass
    [message_id] = world.post("q", b"x")
    world.run(seconds=2 * DAY_S)
    # Then there were eight tries, each when due; waits in the schedule end on the minute
    waits = seconds_between_attempts(world, message_id)
    for waited, expected in zip(waits, SCHEDULES["svix"].waits_s, strict=True):
        assert expected <= waited <= expected + 61
    assert [each.state for each in world.deliveries(message_id)] == [DeliveryState.EXHAUSTED]


def test_a_subscribers_own_schedule_goes_before_the_queues() -> None:
    world = World()
    own, other = subscribers(A, B)
    world.make_queue("q", [replace(own, retry=RetrySchedule(waits_s=())), other], retries=1, retries_delay=60)
    world.sender.script(A, 500)
    world.sender.script(B, 500)
    world.post("q", b"x")
    world.run(seconds=DAY_S)
    assert (len(world.sender.requests_to(A)), len(world.sender.requests_to(B))) == (1, 2)


@pytest.mark.parametrize("as_date", [False, True])
def test_a_retry_after_longer_than_the_wait_is_obeyed_in_full(as_date: bool) -> None:
    # Given a subscriber that asks for five hours where the schedule says a minute
    world = World()
    world.make_queue("q", subscribers(A), retry=RetrySchedule(waits_s=(60,)), rules=STANDARD_RULES)
    asks = formatdate(world.clock.now() / 1000 + 18_000, usegmt=True) if as_date else "18000.5"
    world.sender.script(A, Reply(status_code=429, headers={"retry-after": asks}), 200)
    [message_id] = world.post("q", b"x")
    # When a second less than five hours has passed, then nothing more was sent
    world.run(seconds=17_998)
    assert len(world.sender.requests) == 1
    # And soon after them the message arrives
    world.run(seconds=70)
    assert [each.state for each in world.deliveries(message_id)] == [DeliveryState.DELIVERED]


def test_a_retry_after_beyond_the_messages_life_lets_it_expire() -> None:
    world = World()
    world.make_queue("q", subscribers(A), retry=RetrySchedule(waits_s=(60, 60)), rules=STANDARD_RULES, expiration=3_600)
    world.sender.script(A, Reply(status_code=503, headers={"retry-after": "999999999"}))
    [message_id] = world.post("q", b"x")
    world.run(seconds=3_700)
    assert [each.state for each in world.deliveries(message_id)] == [DeliveryState.EXPIRED]
    assert len(world.sender.requests) == 1


def test_without_rules_nothing_that_is_asked_for_is_done() -> None:
    # Given an IronMQ queue, and a subscriber that asks for long waits
    world = World()
    world.make_queue("q", subscribers(A), retries=2, retries_delay=60)
    world.sender.script(A, Reply(status_code=410, headers={"retry-after": "9999", "webhook-delivery": "disable"}))
    [message_id] = world.post("q", b"x")
    world.run(seconds=DAY_S)
    # Then it got its three tries a minute apart
    assert seconds_between_attempts(world, message_id) == [60, 60]
    assert world.owner.events == []


def test_overload_slows_down_and_other_failures_do_not() -> None:
    world = World()
    waits_s = (5, 5, 5, 5, 5, 300)
    world.make_queue("q", subscribers(A), retry=RetrySchedule(waits_s=waits_s, spread=(1, 1)), rules=STANDARD_RULES)
    world.sender.script(A, 503, 502, 500, 504, Reply(error_class="timeout"), 429, 200)
    [message_id] = world.post("q", b"x")
    world.run(seconds=DAY_S)
    restart, overload, failure, restarted_again, timeout, longer = seconds_between_attempts(world, message_id)
    assert restart == failure == restarted_again == 5
    assert 60 <= overload <= 73
    assert 60 <= timeout <= 73
    assert longer == 300


def test_an_abort_ends_this_delivery_only() -> None:
    # Given a subscriber that refuses one message for good
    world = World()
    world.make_queue("q", subscribers(A), retries=3, rules=STANDARD_RULES, error_queue="errors")
    world.sender.script(A, Reply(status_code=500, headers={"webhook-delivery": "abort-message"}), 200)
    first, second = world.post("q", b"1", b"2")
    world.run(seconds=DAY_S)
    # Then that one is exhausted with the reason, reported to the error queue, and the next one is sent
    [aborted], [other] = world.deliveries(first), world.deliveries(second)
    assert (aborted.state, aborted.reason, aborted.tries) == (DeliveryState.EXHAUSTED, "asked_to_stop", 1)
    assert other.state is DeliveryState.DELIVERED
    [error] = [json.loads(each) for each in world.pulled("errors")]
    assert error["source_msg_id"] == first
    assert world.owner.events == []


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


def test_a_subscriber_that_is_enabled_in_time_gets_what_it_was_owed() -> None:
    world = World()
    world.make_queue("q", subscribers(A), retry=RetrySchedule(waits_s=(600,)), rules=STANDARD_RULES)
    world.sender.script(A, 500, 200)
    [message_id] = world.post("q", b"1")
    world.run(seconds=10)
    world.owner.set_disabled(PROJECT, "q", "s0", disabled=True)
    world.run(seconds=100)
    world.owner.set_disabled(PROJECT, "q", "s0", disabled=False)
    world.run(seconds=1_000)
    assert [each.state for each in world.deliveries(message_id)] == [DeliveryState.DELIVERED]


def test_a_round_goes_on_without_the_subscriber_that_is_gone() -> None:
    world = World()
    world.make_queue("q", subscribers(A, B), unicast=True, retries=1, rules=STANDARD_RULES)
    world.sender.script(A, 410)
    world.sender.script(B, 500, 200)
    [message_id] = world.post("q", b"1")
    world.run(seconds=DAY_S)
    [delivery] = world.deliveries(message_id)
    assert delivery.state is DeliveryState.DELIVERED
    assert len(world.sender.requests_to(A)) == 1


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


def test_rules_of_a_subscriber_go_before_those_of_its_queue() -> None:
    world = World()
    lenient, strict = subscribers(A, B)
    world.make_queue("q", [replace(lenient, rules=AnswerRules()), strict], retries=1, rules=STANDARD_RULES)
    world.sender.script(A, 410)
    world.sender.script(B, 410)
    world.post("q", b"1")
    world.run(seconds=DAY_S)
    assert (len(world.sender.requests_to(A)), len(world.sender.requests_to(B))) == (2, 1)
    assert {each.subscriber_id for each in world.owner.events} == {"s1"}
