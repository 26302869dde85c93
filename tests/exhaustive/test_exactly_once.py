"""Children, parameters and notifications exactly once: whichever call fails, whatever SQS delivers twice, whatever
endpoints answer the second time.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.world import PROJECT
from tests.fakes import Crash, Fault, FaultPlan, Reply, each_strike
from tests.hub.world import URL, HubWorld

from pushhub.base.errors import HubError
from pushhub.base.verdict import Verdict
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.received import Received
from pushhub.engine.model.work import WorkOrder
from pushhub.hub.model.internal_queues import service_queue
from pushhub.hub.model.object_ids import from_object_id

LATER, FLAKY, DESK = "https://later.example/in", "https://flaky.example/in", "https://desk.example/in"


def received(world: HubWorld, url: str) -> Received:
    """An order for the first message to a URL, as SQS would deliver it again."""
    [mapping] = [each for each in world.settings.mappings(PROJECT) if each.url == url]
    queue = service_queue(mapping.mapping_id)
    message = next(each for each in world.messages.all_messages() if each.queue == queue)
    order = WorkOrder.carrying(message, mapping.mapping_id)
    return Received(order=order, sqs_id="again", receipt_handle="again", received_at=world.clock.now())


def play(plan: FaultPlan) -> tuple[HubWorld, bool]:
    """One order to a synchronous, an asynchronous and a flaky service; their notifications go to a help desk."""
    world = HubWorld(plan)
    world.map(
        "order:new",
        identifiers={"number": "payload.number"},
        says=lambda _: {
            "messages": [
                {"message": "child:now", "payload": {}},
                {"message": "child:late", "payload": {}, "delay": 60},
            ],
            "parameters": [{"name": "acme.watermark", "value": 7}],
            "notifications": [{"level": "info", "subject": "Imported"}],
        },
    )
    world.map("order:new", url=LATER, says=lambda _: {"delay": 30, "update_url": "/status"})
    status = "https://later.example/status"
    done = {"messages": [{"message": "child:polled", "payload": {}}]}
    again = {"delay": 60, "update_url": "/status"}
    world.endpoints[status] = lambda _: done if len(world.asked_at(status)) > 2 else again
    quota = {"notifications": [{"level": "error", "subject": "Quota"}]}
    failing = Reply(status_code=500, body=json.dumps(quota).encode())
    world.map("order:new", url=FLAKY, says=lambda _: {} if len(world.asked_at(FLAKY)) > 3 else failing)
    world.map("notification:info", "notification:error", "child:now", "child:late", "child:polled", url=DESK)
    try:
        world.push_message("order:new", number="R1")
    except (Crash, HubError):
        world.run(seconds=4000)
        return world, False
    world.run(seconds=4000)
    return world, True


def everything_happened_once(world: HubWorld, reason: str) -> None:
    types = [each.headers["type"] for each in world.messages.all_messages() if each.queue == "hub/incoming"]
    expected = ["child:late", "child:now", "child:polled", "notification:error", "notification:info", "order:new"]
    assert sorted(types) == expected, reason
    every = world.messages.all_messages()
    deliveries = world.messages.all_deliveries()
    assert len(every) == len(types) + 3 + 5 == len(deliveries), reason
    assert {each.state for each in deliveries} == {DeliveryState.DELIVERED}, reason
    assert [(each.name, each.value) for each in world.settings.parameters(PROJECT)] == [("acme.watermark", 7)], reason
    notifications = {each.subject: each.occurrences for each in world.log.notifications(PROJECT)}
    failures = [each for each in world.messages.saved if each.last and each.last.verdict is Verdict.FAILED]
    assert notifications == {"Imported": 1, "Quota": len(failures)}, reason
    # And the log agrees with the deliveries
    for each in deliveries:
        entry = world.log.entry(PROJECT, each.message_id)
        assert entry is not None, reason
        assert entry.version == each.version, reason
        assert entry.location == "archived", reason


def test_each_call_goes_wrong_once_and_everything_happens_once() -> None:
    world, pushed = play(FaultPlan())
    assert pushed
    everything_happened_once(world, "without fault")
    struck = 0
    for fault, number in each_strike(play):
        plan = FaultPlan(fault, at=number)
        world, pushed = play(plan)
        struck += plan.struck
        if pushed:
            case = f"{fault.value} at call {number} ({plan.calls[number - 1] if plan.struck else 'never'})"
            everything_happened_once(world, case)
    assert struck > 160


@pytest.mark.parametrize("fault", [Fault.TIMES_OUT, Fault.CRASHES_BEFORE, Fault.CRASHES_AFTER])
@pytest.mark.parametrize("of", ["messages.save", "messages.accept_once", "settings.set_parameter", "log.add_children"])
def test_a_recorded_answer_counts_even_if_the_endpoint_says_something_else_the_second_time(
    fault: Fault, of: str
) -> None:
    # Given an endpoint that recognizes messages by their id and adds nothing the second time
    world = HubWorld(
        FaultPlan(fault, at=2 if of == "messages.save" else 3 if of == "messages.accept_once" else 1, of=of)
    )
    seen: set[str] = set()

    def says(body: dict[str, Any]) -> dict[str, Any]:
        if body["message_id"] in seen:
            return {}
        seen.add(body["message_id"])
        return {
            "messages": [{"message": "child:now", "payload": {}}, {"message": "child:too", "payload": {}}],
            "parameters": [{"name": "w", "value": 1}],
        }

    world.map("order:new", says=says)
    # When a call between the recorded answer and the state that says "done" goes wrong
    world.push_message("order:new")
    world.run(seconds=3600)
    # Then the endpoint was called once, and what it asked for happened once
    assert world.plan.struck
    assert len(world.asked) == 1
    assert (len(world.of_type("child:now")), len(world.of_type("child:too"))) == (1, 1)
    assert [each.value for each in world.settings.parameters(PROJECT)] == [1]


@given(copies=st.lists(st.sampled_from([URL, FLAKY, LATER]), max_size=12))
@settings(max_examples=25, deadline=None)
def test_orders_that_sqs_delivers_again_at_any_time_change_nothing(copies: list[str]) -> None:
    world, _ = play(FaultPlan())
    asked = len(world.asked)
    for url in copies:
        world.hub.engine.poll.run([received(world, url)], source=world.poll_queue, remaining_ms=lambda: 10**9)
        world.run(seconds=100)
    everything_happened_once(world, "duplicates afterwards")
    assert len(world.asked) == asked


@pytest.mark.parametrize("answer", [{}, {"delay": 30, "update_url": "/s"}, {"delay": 30}, 500])
def test_two_functions_with_the_same_order_at_the_same_time_agree_on_one_answer(answer: Any) -> None:
    # Given a service that asks for something else in each answer
    world = HubWorld()
    count = 0

    def says(body: dict[str, Any]) -> Any:
        nonlocal count
        count += 1
        mine = count
        if mine == 1:
            # When the same order is processed again while the first request is in progress
            world.hub.engine.poll.run([received(world, URL)], source=world.poll_queue, remaining_ms=lambda: 10**9)
        if answer == 500:
            notes = {"notifications": [{"level": "error", "subject": "No", "description": str(mine)}]}
            return Reply(status_code=500, body=json.dumps(notes).encode())
        return {
            **answer,
            "messages": [{"message": f"child:{mine}", "payload": {}}],
            "parameters": [{"name": "w", "value": mine}],
            "notifications": [{"level": "error", "subject": "No", "description": str(mine)}],
        }

    world.map("order:new", says=says)
    world.endpoints["https://acme.example/s"] = lambda _: {}
    incoming = world.push_message("order:new")
    world.run(seconds=20)
    # Then two requests were made, but one answer counts: the one recorded first
    assert count == 2
    [notification] = world.log.notifications(PROJECT)
    assert (notification.occurrences, notification.description) == (1, "2")
    assert len(world.of_type("notification:error")) == 1
    assert len(world.of_type("child:1")) == 0
    done = answer == {}
    assert len(world.of_type("child:2")) == done
    assert [each.value for each in world.settings.parameters(PROJECT)] == [2] * done
    [copy] = world.copies(incoming)
    [delivery] = world.deliveries(copy.message_id)
    assert delivery.attempts == 1
    assert copy.version == delivery.version


def test_two_racing_messages_of_one_identity_give_one_delivery() -> None:
    world = HubWorld()
    world.map("order:new", identifiers={"number": "payload.number"})
    first = world.push_message("order:new", number="R1")
    second = world.push_message("order:new", number="R1")
    world.run(seconds=5)
    assert len(world.asked) == 1
    assert sorted(len(world.copies(each)) for each in (first, second)) == [0, 1]


@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_polls_and_posts_never_come_before_their_delay(data: st.DataObject) -> None:
    """Whatever an endpoint answers, in any order: nothing is sent early, and nothing is posted again once it was
    accepted for later.
    """
    world = HubWorld()
    kinds = data.draw(st.lists(st.sampled_from(["poll", "delay", "fail", "late"]), max_size=8))
    waits = [data.draw(st.integers(0, 4000)) for _ in kinds]
    script = list(zip(kinds, waits, strict=True))
    earliest = world.clock.now()
    taken = False

    def says(_: dict[str, Any]) -> Any:
        nonlocal earliest, taken
        now = world.clock.now()
        assert now >= earliest
        if not script:
            return {}
        kind, wait = script.pop(0)
        earliest = now + wait * 1000
        if kind == "poll":
            taken = True
            return {"delay": wait, "update_url": "/status"}
        if kind == "delay":
            return {"delay": str(wait)}
        earliest = now
        return 500 if kind == "fail" else Reply(error_class="timeout", takes_ms=100)

    def posted(body: dict[str, Any]) -> Any:
        assert not taken, "posted again after it was taken for later"
        return says(body)

    world.map("order:new", says=posted)
    world.endpoints["https://acme.example/status"] = says
    incoming = world.push_message("order:new")
    world.run(seconds=8 * 4000 + 8 * 3600)
    assert script == []
    assert world.copies(incoming)[0].location == "archived"
    assert from_object_id(incoming) is not None
