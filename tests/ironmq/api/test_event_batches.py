"""CloudEvents that come to the webhook of a queue: binary, structured and batched."""

from __future__ import annotations

import json

import pytest
from tests.engine.world import PROJECT
from tests.fakes import Crash, Fault, FaultPlan
from tests.ironmq.api.hub import Hub

from pushhub.base.times import iso_time

PATH = f"/3/projects/{PROJECT}/queues/q/webhook"
BATCH = {"Content-Type": "application/cloudevents-batch+json; charset=utf-8"}
STRUCTURED = {"Content-Type": "application/cloudevents+json"}


def event(hub: Hub, number: str, *, timed: bool = True) -> str:
    """An event as its sender writes it, now."""
    time = f', "time": "{iso_time(hub.world.clock.now())}"' if timed else ""
    return f'{{"specversion":"1.0", "id":"{number}","source":"/shop","type":"order.new","data":1.10{time}}}'


def post(hub: Hub, body: str, headers: dict[str, str]) -> tuple[int, list[str]]:
    """Status and ids."""
    answer = hub.send("POST", PATH, body.encode(), headers, token=hub.token)
    return answer.status, answer.body.get("ids", [])


def test_a_batch_is_a_message_for_each_event_and_comes_once(hub: Hub) -> None:
    # Given a queue, and a batch
    one, two = event(hub, "1"), event(hub, "2")
    # When it is posted twice, as its sender got no answer, and an event of it once more in each other mode
    status, ids = post(hub, f"[ {one} ,{two}]", BATCH)
    hub.world.clock.advance(seconds=90)
    again = post(hub, f"[{one},{two}]", BATCH)
    at = json.loads(one)["time"]
    binary = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/shop", "ce-type": "order.new", "ce-time": at}
    others = [post(hub, one, STRUCTURED), post(hub, "1.10", binary)]
    # Then the answers name the same messages, with the status that Azure's client wants for a batch
    assert (status, len(set(ids))) == (200, 2)
    assert again == (200, ids)
    assert others == [(201, ids[:1])] * 2
    # And the queue has each event once, byte for byte
    assert sorted(each["body"] for each in hub.reserve("q", n=10)) == sorted([one, two])


@pytest.mark.parametrize("days", [-91, 1])
def test_an_event_without_a_credible_time_is_always_new(hub: Hub, days: int) -> None:
    untimed = event(hub, "1", timed=False)
    at = iso_time(hub.world.clock.now() + days * 86_400_000)
    strange = f'{{"id":"1","source":"/shop","type":"t","time":"{at}"}}'
    for body in (untimed, strange):
        assert len({*post(hub, body, STRUCTURED)[1], *post(hub, body, STRUCTURED)[1]}) == 2
        hub.world.clock.advance(seconds=1)
    # And its place in the queue is the one at which it came
    assert [each["body"] for each in hub.reserve("q", n=10)] == [untimed, untimed, strange, strange]


@pytest.mark.parametrize("body", ["", "{}", "[1]", '[{"id": "1", "source": "/s"}]', "[" * 200])
def test_what_is_no_batch_is_refused(body: str) -> None:
    assert post(Hub(), body, BATCH) == (400, [])


def test_a_queue_that_names_a_sender_takes_no_batch_of_others(hub: Hub) -> None:
    hub.make("q", webhook={"type": "github", "secret": "s"})
    assert post(hub, f"[{event(hub, '1')}]", BATCH)[0] == 400
    assert hub.reserve("q", n=10) == []


def _calls() -> int:
    """How many calls of its ports it takes to take in a batch."""
    hub, plan = Hub(), FaultPlan()
    post(hub.struck(plan), f"[{event(hub, '1')},{event(hub, '2')}]", BATCH)
    return len(plan.calls)


@pytest.mark.parametrize("fault", Fault)
def test_nothing_is_lost_and_nothing_comes_twice_whatever_call_goes_wrong(fault: Fault) -> None:
    for number in range(1, _calls() + 1):
        # Given a hub one of whose calls goes wrong, or that dies there
        hub = Hub()
        body = f"[{event(hub, '1')},{event(hub, '2')}]"
        plan = FaultPlan(fault, at=number)
        # When the sender posts until it is answered
        for _ in range(3):
            try:
                status = post(hub.struck(plan), body, BATCH)[0]
            except Crash:
                continue
            if status == 200:
                break
        else:
            pytest.fail(f"It was never answered: {plan.calls}")
        # Then each event is there once
        assert len(hub.reserve("q", n=10)) == 2, (number, plan.calls)
