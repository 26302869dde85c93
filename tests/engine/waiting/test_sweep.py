"""Work that streams and queues lose is found in the table and requeued; work that they still have is left alone."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.engine.world import PROJECT, World, subscribers
from tests.fakes import Reply

from pushhub.engine.model.backoff import RetrySchedule
from pushhub.engine.model.circuit import Circuit
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.project import Project
from pushhub.engine.projects.projects import Projects
from pushhub.engine.waiting.sweep import GRACE_MS
from pushhub.runtime.engine import SWEEP_PARTS, sweep_part

ENDLESS = SimpleNamespace(aws_request_id="1", get_remaining_time_in_millis=lambda: 10**6)

A, B = "https://a.example/in", "https://b.example/in"
HOUR, DAY = 3_600, 86_400


def sweep(world: World, parts: int = 1) -> int:
    """Sweep the whole table, part by part."""
    return sum(world.hub.engine.sweep.run(part, parts, lambda: 10**6) for part in range(parts))


def lose_the_stream(world: World) -> None:
    """The stream drops what it has not delivered."""
    world.messages.take_inserted()


@pytest.mark.parametrize("parts", [1, SWEEP_PARTS])
def test_messages_whose_stream_records_were_lost_are_delivered_all_the_same(parts: int) -> None:
    # Given accepted messages that dispatch never saw, and a day without it
    world = World()
    world.make_queue("q", subscribers(A, B))
    world.post("q", b"1", b"2")
    lose_the_stream(world)
    world.run(seconds=24 * HOUR)
    assert world.sender.requests == []
    # When the table is swept
    assert sweep(world, parts) == 4
    world.run(seconds=5)
    # Then each subscriber has each message once
    assert sorted((each.url, each.body) for each in world.sender.requests) == [
        (A, b"1"),
        (A, b"2"),
        (B, b"1"),
        (B, b"2"),
    ]
    assert sweep(world, parts) == 0


def test_retries_whose_orders_were_lost_go_on() -> None:
    # Given deliveries that wait for their retry in a queue that somebody purges
    world = World()
    world.make_queue("q", subscribers(A), retries=5, retries_delay=600)
    world.sender.script(A, 500, 200)
    [message_id] = world.post("q", b"x")
    world.run(seconds=5)
    world.retry_queue.purge()
    world.run(seconds=3 * HOUR)
    assert len(world.sender.requests) == 1
    # When the table is swept, then the retry is made
    assert sweep(world) == 1
    world.run(seconds=5)
    assert len(world.sender.requests) == 2
    assert world.deliveries(message_id)[0].state is DeliveryState.DELIVERED


def test_what_is_on_its_way_or_settled_is_left_alone() -> None:
    # Given one delivery that is made, one that waits for its retry, one that waits for days, and one that was accepted
    # just now
    world = World()
    world.make_queue("done", subscribers(A))
    world.make_queue("later", subscribers(B), retries=3, retries_delay=86_400)
    world.sender.script(B, Reply(error_class="timeout"))
    world.post("done", b"x")
    world.post("later", b"x")
    world.post("done", b"y", delay_s=7 * 86_400)
    world.run(seconds=2 * HOUR)
    world.post("done", b"z")
    # When the table is swept, then nothing is queued
    assert sweep(world) == 0
    # Nor are deliveries that are late by less than the grace period
    lose_the_stream(world)
    world.clock.advance(seconds=GRACE_MS / 1000)
    assert sweep(world) == 0
    world.clock.advance(seconds=1)
    assert sweep(world) == 1


def test_each_swept_delivery_is_told_and_a_sweep_without_time_says_so() -> None:
    world = World()
    world.make_queue("q", subscribers(A))
    world.post("q", *[b"x"] * 3)
    lose_the_stream(world)
    world.clock.advance(seconds=2 * HOUR)
    # When there is no time, then that is counted in a metric
    assert world.hub.engine.sweep.run(0, 1, lambda: 1_000) == 0
    assert world.telemetry.counts["SweepsUnfinished"] == 1
    # When there is, then each delivery is logged with its ids
    assert sweep(world) == 3
    assert world.telemetry.counts["DeliveriesSwept"] == 3
    events = [fields for name, fields in world.telemetry.events if name == "delivery_swept"]
    assert {(each["queue"], each["to"]) for each in events} == {("q", "push")}


def test_each_part_is_swept_once_a_day_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given as many parts as the runbook has an operator raise them to, and as many runs a day
    monkeypatch.setattr("pushhub.runtime.engine.SWEEP_PARTS", 96)
    world = World()
    swept: list[int] = []
    monkeypatch.setitem(vars(world.hub.engine), "nights", None)

    def run(_: object, part: int, *__: object, **___: object) -> int:
        swept.append(part)
        return 0

    monkeypatch.setattr(type(world.hub.engine.sweep), "run", run)
    # When a day has passed
    for _ in range(96):
        sweep_part(world.hub, {}, ENDLESS)
        world.clock.advance(seconds=DAY / 96)
    # Then each of them was swept
    assert sorted(swept) == [*range(96)]


def test_what_a_lost_schedule_held_is_put_back_part_by_part() -> None:
    # Given messages that wait for hours, and a schedule that is lost
    world = World()
    world.make_queue("q", subscribers(A))
    world.post("q", *[b"x"] * 20, delay_s=5 * HOUR)
    world.run(seconds=5)
    lose_the_table(world)
    # When sweep is run by hand for each part, as the runbook says, where no run has the time for all of them
    answers = [
        sweep_part(world.hub, {"everything": True, "part": part, "parts": 24}, ENDLESS)["swept"] for part in range(24)
    ]
    # Then each has entered its own, and says in the log that it has come to its end
    assert max(answers) < sum(answers) == 20
    assert len(world.schedule.waiting()) == 20


def sweep_everything(world: World) -> int:
    """What the runbook says when the schedule's table was lost."""
    return world.hub.engine.sweep.run(0, 1, lambda: 10**6, schedule_lost=True)


def lose_the_table(world: World) -> None:
    """The table with the schedule, and with what waits for subscribers, is made anew, which takes a minute."""
    world.schedule.lose()
    world.ports.subscribers.lose()
    world.clock.advance(seconds=60)


@pytest.mark.parametrize("resumed_first", [False, True])
def test_what_waited_for_a_suspended_project_comes_within_the_hour_after_the_table_was_lost(
    resumed_first: bool,
) -> None:
    # Given 1,210 deliveries of a suspended project, all waiting: posted just now, failed once, delayed
    world = World()
    world.make_queue("q", subscribers(A), retries=3, retries_delay=1_800)
    world.config.put_project(Project(project_id=PROJECT, created_at=0))
    world.sender.script(A, *[500] * 200, 200)
    for number in range(0, 200, 100):
        world.post("q", *(b"%d" % each for each in range(number, number + 100)))
    world.run(seconds=10)
    for number in range(200, 1_200, 100):
        world.post("q", *(b"%d" % each for each in range(number, number + 100)))
    world.post("q", *(b"%d" % each for each in range(1_200, 1_210)), delay_s=1_000)
    projects = Projects(config=world.config, clock=world.clock)
    projects.suspend(PROJECT)
    world.run(seconds=1_200)
    assert len(world.sender.requests) == 200
    # When the table is lost, and everything swept as the runbook says, before or after the project is resumed
    lose_the_table(world)
    if resumed_first:
        projects.resume(PROJECT)
        world.clock.advance(seconds=5)
    assert sweep_everything(world) == 1_210
    world.run(seconds=300)
    projects.resume(PROJECT)
    # Then all of it has come within the hour, and each once
    world.run(seconds=HOUR)
    assert sorted(int(each.body) for each in world.sender.requests[200:]) == [*range(1_210)]


def test_what_waited_for_a_subscriber_is_found_though_it_has_been_held_anew_since_the_table_was_lost() -> None:
    # Given a delivery that waits for a paused subscriber, whose table is lost
    world = World()
    world.make_queue("q", tuple(replace(each, paused=True) for each in subscribers(A)))
    world.post("q", b"before")
    world.run(seconds=10)
    lose_the_table(world)
    # When another one is held before anybody sweeps
    world.post("q", b"after")
    world.run(seconds=10)
    assert sweep_everything(world) == 2
    world.run(seconds=10)
    # Then both come when it is no longer paused
    queue = world.config.queue(PROJECT, "q", fresh=True)
    assert queue is not None
    assert queue.push is not None
    push = replace(queue.push, subscribers=subscribers(A))
    world.config.update_queue(replace(queue, push=push))
    world.run(seconds=HOUR)
    assert sorted(each.body for each in world.sender.requests) == [b"after", b"before"]


def test_what_waited_behind_another_message_comes_in_order_after_the_table_was_lost() -> None:
    # Given a message that waits behind another one, which is tried again in ten minutes
    world = World()
    world.make_queue("q", subscribers(A), retries=3, retries_delay=600)
    world.sender.script(A, 500, 200)
    world.post("q", b"1", b"2", order_key="k")
    world.run(seconds=10)
    # When the table is lost and everything swept
    lose_the_table(world)
    assert sweep_everything(world) >= 1
    world.run(seconds=HOUR)
    # Then both have come, one after the other
    assert [each.body for each in world.sender.requests] == [b"1", b"1", b"2"]


def test_a_delivery_that_ended_and_is_gone_before_its_message_does_not_begin_anew() -> None:
    # Given a delivered message that has expired, and whose delivery's time to live was over first
    world = World()
    world.make_queue("q", subscribers(A), error_queue="failed", expiration=60)
    [message_id] = world.post("q", b"x")
    world.run(seconds=60)
    world.clock.advance(ms=73 * HOUR * 1000)
    [delivery] = world.deliveries(message_id)
    world.messages.drop(delivery)
    # When the table is swept
    swept = sweep(world)
    world.run(seconds=60)
    # Then nothing is queued, and there is no error message about the successful delivery
    assert swept == 0
    assert world.pulled("failed") == []
    assert len(world.sender.requests) == 1


def test_what_expired_before_anybody_tried_it_is_found_on_the_day_of_its_expiry() -> None:
    # Given a message that dispatch never saw, and that has just expired
    world = World()
    world.make_queue("q", subscribers(A), error_queue="failed", expiration=60)
    world.post("q", b"x")
    lose_the_stream(world)
    world.run(seconds=120)
    # When the table is swept, then it ends as expired, although it is not yet an hour late
    assert sweep(world) == 1
    world.run(seconds=60)
    assert world.sender.requests == []
    assert len(world.pulled("failed")) == 1


@pytest.mark.parametrize("delay_h", [0, 100])
def test_what_expired_while_push_was_down_for_a_day_is_still_found_a_day_later(delay_h: int) -> None:
    # Given a message that expires soon after it is due, whose order was lost, and that sweep looks at two days later
    world = World()
    world.make_queue("q", subscribers(A), error_queue="failed", expiration=60)
    world.post("q", b"x", delay_s=delay_h * HOUR)
    lose_the_stream(world)
    world.clock.advance(ms=(delay_h + 50) * HOUR * 1000)
    # When the table is swept, then it ends as expired, and is reported
    assert sweep(world) == 1
    world.run(seconds=60)
    assert world.sender.requests == []
    assert len(world.pulled("failed")) == 1


def test_what_waits_on_its_subscriber_or_in_its_order_is_not_lost() -> None:
    # Given messages in the backlog of a dead subscriber, and some that wait behind another one of their ordering key
    world = World()
    world.make_queue("dead", subscribers(A), retries=50, circuit=Circuit(failures=2), expiration=DAY)
    world.make_queue("ordered", subscribers(B), retry=RetrySchedule(waits_s=(5 * HOUR, 60)), expiration=DAY)
    world.sender.script(A, 500)
    world.sender.script(B, 500, 200)
    world.post("dead", b"1", b"2", b"3", b"4")
    for body in (b"1", b"2", b"3"):
        world.post("ordered", body, order_key="k")
    world.run(seconds=3 * HOUR)
    # Then sweep leaves them alone
    assert sweep(world) == 0
    # And when the key continues, then all of them arrive
    world.run(seconds=3 * HOUR)
    assert [each.body for each in world.sender.requests_to(B)] == [b"1", b"1", b"2", b"3"]
    # And a message that expired in the backlog is found and ends
    world.clock.advance(ms=DAY * 1000)
    assert sweep(world) > 0
    world.run(seconds=60)
    assert {each.settled for each in world.messages.all_deliveries()} == {True}
