"""Manual tries, on fakes: beside the automatic ones, after them, and where nothing was owed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import product

import pytest
from tests.engine.world import PROJECT, World, subscribers
from tests.fakes import Crash, Fault, FaultPlan, Reply

from pushhub.base.errors import HubError
from pushhub.base.ports import PushRequest
from pushhub.engine.model.backoff import RetrySchedule
from pushhub.engine.model.delivery import Delivery, DeliveryState
from pushhub.engine.model.keys import MessageKey
from pushhub.engine.model.message import Message
from pushhub.engine.model.queue import PushSettings

A, B = "https://a.example/in", "https://b.example/in"
HOUR_S, DAY_S = 3_600, 86_400


def message_of(world: World, message_id: str) -> Message:
    found = world.messages.message(MessageKey(PROJECT, "uid-q", message_id))
    assert found is not None
    return found


def resend(world: World, message_id: str, subscriber_id: str = "s0") -> Delivery:
    return world.hub.engine.resend.ask(message_of(world, message_id), subscriber_id)


def a_failing_queue(world: World, *waits_s: float) -> str:
    """A queue whose one subscriber fails, and a message that was tried once."""
    world.make_queue("q", subscribers(A), retry=RetrySchedule(waits_s=waits_s, spread=(1, 1)))
    world.sender.script(A, 500)
    [message_id] = world.post("q", b"x")
    world.run(seconds=5)
    return message_id


def the_delivery(world: World, message_id: str, subscriber_id: str = "s0") -> Delivery:
    [found] = [each for each in world.deliveries(message_id) if each.subscriber_id == subscriber_id]
    return found


@pytest.mark.parametrize("wait_s", [600, 2 * HOUR_S])
def test_a_success_ends_the_automatic_tries(wait_s: int) -> None:
    # Given a delivery that waits for its retry, in SQS or in the schedule
    world = World()
    message_id = a_failing_queue(world, wait_s, wait_s)
    world.sender.script(A, 200)
    # When a person asks for a try
    resend(world, message_id)
    world.run(seconds=1)
    # Then it is delivered at once, and nothing follows
    done = the_delivery(world, message_id)
    assert (done.state, done.attempts, done.tries) == (DeliveryState.DELIVERED, 2, 1)
    assert done.last is not None
    assert done.last.manual
    world.run(seconds=DAY_S)
    assert len(world.sender.requests) == 2
    assert world.messages.scheduled() == []


def test_what_is_exhausted_can_be_tried_again_as_often_as_a_person_wants() -> None:
    # Given an exhausted delivery, reported to the error queue
    world = World()
    world.make_queue("q", subscribers(A), retries=0, error_queue="errors")
    world.sender.script(A, 500, 500, 500, 200)
    [message_id] = world.post("q", b"x")
    world.run(seconds=5)
    given_up = the_delivery(world, message_id)
    assert given_up.state is DeliveryState.EXHAUSTED
    # When it is tried and fails again, twice, then it stays exhausted and is not reported again
    for attempts in (2, 3):
        resend(world, message_id)
        world.run(seconds=5)
        again = the_delivery(world, message_id)
        assert (again.state, again.settled_at, again.attempts) == (given_up.state, given_up.settled_at, attempts)
    assert len(world.pulled("errors")) == 1
    assert world.telemetry.counts["DeliveriesExhausted"] == 1
    # And when it succeeds, then it is delivered
    resend(world, message_id)
    world.run(seconds=5)
    assert the_delivery(world, message_id).state is DeliveryState.DELIVERED


def test_asking_twice_before_the_try_is_made_is_asking_once() -> None:
    world = World()
    message_id = a_failing_queue(world, 600)
    resend(world, message_id)
    resend(world, message_id)
    world.run(seconds=1)
    assert len(world.sender.requests) == 2


@pytest.mark.parametrize(("first", "second"), [(200, 200), (200, 500), (500, 200), (500, 500)])
@pytest.mark.parametrize("wait_s", [600, 2 * HOUR_S])
def test_asking_again_while_the_try_is_under_way_is_asking_for_another(first: int, second: int, wait_s: int) -> None:
    # Given a try that a person asked for
    world = World()
    message_id = a_failing_queue(world, wait_s)
    resend(world, message_id)

    def ask_again(request: PushRequest) -> None:
        del request
        resend(world, message_id)

    # When its receiver has it, and the person, who may have changed something meanwhile, asks again
    world.sender.script(A, Reply(status_code=first, meanwhile=ask_again), second)
    world.run(seconds=60)
    # Then there are two, and one success is enough
    assert len(world.sender.requests) == 3
    done = the_delivery(world, message_id)
    assert (done.attempts, done.asked_at) == (3, None)
    assert (done.state is DeliveryState.DELIVERED) is (200 in (first, second))
    world.run(seconds=DAY_S)
    assert len(world.sender.requests) == (3 if 200 in (first, second) else 4)


def test_a_message_never_tried_so_far_can_be_sent() -> None:
    # Given a message that is due in an hour
    world = World()
    world.make_queue("q", subscribers(A))
    world.sender.script(A, 500, 200)
    [message_id] = world.post("q", b"x", delay_s=HOUR_S)
    world.run(seconds=5)
    # When a person has it sent now and that fails, then it is sent again when it is due
    resend(world, message_id)
    world.run(seconds=5)
    assert len(world.sender.requests) == 1
    assert the_delivery(world, message_id).tries == 0
    world.run(seconds=HOUR_S + 100)
    assert the_delivery(world, message_id).state is DeliveryState.DELIVERED


def the_subscriber_is_added(world: World, message_id: str) -> Message:
    """The queue gets a second subscriber after the message was accepted."""
    stored = world.config.queue(PROJECT, "q", fresh=True)
    assert stored is not None
    world.config.update_queue(replace(stored, push=PushSettings(subscribers=subscribers(A, B), retries=1)))
    return message_of(world, message_id)


def a_delivered_message(world: World) -> Message:
    world.make_queue("q", subscribers(A))
    [message_id] = world.post("q", b"x")
    world.run(seconds=5)
    return the_subscriber_is_added(world, message_id)


@pytest.mark.parametrize(("status", "state"), [(200, DeliveryState.DELIVERED), (500, DeliveryState.EXHAUSTED)])
def test_a_subscriber_that_was_not_owed_a_message_gets_one_try_of_it(status: int, state: DeliveryState) -> None:
    world = World()
    message = a_delivered_message(world)
    world.sender.script(B, status)
    resend(world, message.message_id, "s1")
    world.run(seconds=DAY_S)
    created = the_delivery(world, message.message_id, "s1")
    assert (created.state, created.attempts, created.tries) == (state, 1, 0)
    assert created.settled_at is not None
    [request] = world.sender.requests_to(B)
    assert request.body == b"x"


def test_a_subscriber_can_be_owed_a_message_later_with_all_its_tries() -> None:
    world = World()
    message = a_delivered_message(world)
    world.sender.script(B, 500, 200)
    # When it is added, twice
    for _ in range(2):
        world.hub.engine.resend.add(message, "s1")
    world.run(seconds=DAY_S)
    # Then its retries are like those of others, and adding it once more changes nothing
    done = the_delivery(world, message.message_id, "s1")
    assert (done.state, done.attempts, done.tries) == (DeliveryState.DELIVERED, 2, 2)
    assert world.hub.engine.resend.add(message, "s1") == done
    assert world.hub.engine.resend.add(message, "s0").attempts == 1
    world.run(seconds=DAY_S)
    assert len(world.sender.requests) == 3


@pytest.mark.parametrize(
    ("automatic", "asked", "requests"),
    [(500, 500, 4), (200, 500, 3), (500, 200, 3), (200, 200, 3)],
)
def test_an_automatic_try_and_an_asked_one_at_the_same_time_do_not_get_into_each_others_way(
    automatic: int, asked: int, requests: int
) -> None:
    # Given an automatic retry, and a manual try made while it is still in progress
    world = World()
    message_id = a_failing_queue(world, 60, 60)

    def ask_meanwhile(request: PushRequest) -> None:
        del request
        resend(world, message_id)
        world.run(seconds=1)

    world.sender.script(A, Reply(status_code=automatic, meanwhile=ask_meanwhile), asked, 200)
    world.run(seconds=DAY_S)
    # Then one success is enough, two failures cost one automatic try, and each request is recorded
    done = the_delivery(world, message_id)
    assert done.state is DeliveryState.DELIVERED
    assert (done.attempts, len(world.sender.requests)) == (requests, requests)
    assert done.tries <= 3


def test_an_asked_try_that_was_lost_is_found_by_the_sweep() -> None:
    world = World()
    message_id = a_failing_queue(world)
    resend(world, message_id)
    for each in world.retry_queue.receive():
        world.retry_queue.delete([each.receipt_handle])
    world.sender.script(A, 200)
    world.clock.advance(ms=2 * HOUR_S * 1000)
    assert sum(world.hub.engine.sweep.run(part, 24, lambda: 10**9) for part in range(24)) == 1
    world.run(seconds=5)
    assert the_delivery(world, message_id).state is DeliveryState.DELIVERED


def resent(plan: FaultPlan) -> tuple[World, bool]:
    """A message exhausted, then asked for until the hub says that it will be tried."""
    world = World(plan)
    world.make_queue("q", subscribers(A), retries=0)
    world.sender.script(A, 500, 200)
    accepted: list[str] = []
    with suppress(Crash, HubError):
        accepted = world.post("q", b"x")
    world.run(seconds=HOUR_S)
    if not accepted:
        return world, False
    reported = False
    for _ in range(3):
        with suppress(Crash, HubError):
            resend(world, accepted[0])
            reported = True
            break
    world.run(seconds=DAY_S)
    return world, reported


def test_a_try_that_was_promised_is_made_whatever_goes_wrong() -> None:
    learned = FaultPlan()
    resent(learned)
    assert len(learned.calls) > 10
    for number, fault in product(range(1, len(learned.calls) + 1), Fault):
        world, reported = resent(FaultPlan(fault, at=number))
        if reported:
            [delivery] = world.messages.all_deliveries()
            assert delivery.state is DeliveryState.DELIVERED, f"{fault.value} at call {number}"
