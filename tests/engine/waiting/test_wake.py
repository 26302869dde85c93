"""Waking: due deliveries return to their queues once, in parallel, and a shard with much to do gets its own run."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.engine.world import PROJECT, World, subscribers
from tests.fakes import FakeWorkQueue

from pushhub.base.errors import Unavailable
from pushhub.engine.acceptance.order_queues import OrderQueues
from pushhub.engine.model.message import NewMessage
from pushhub.engine.model.schedule import Position, ScheduleEntry
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.waiting import wake as wake_module
from pushhub.engine.waiting.wake import Wake

A = "https://a.example/in"
MANY = 40
ENDLESS = 10**6


def scheduled(world: World, count: int = MANY) -> None:
    """Messages that are due in an hour."""
    world.make_queue("q", subscribers(A))
    world.ingest.post(PROJECT, "q", [NewMessage(body=b"x", delay_s=3600)] * count)
    world.dispatch_only()
    assert len(world.schedule.waiting()) == count


def test_what_is_due_is_woken_once_and_nothing_is_written_for_it() -> None:
    # Given deliveries due in an hour
    world = World()
    scheduled(world)
    written = len(world.messages.saved)
    assert world.wake.run(lambda: ENDLESS) == 0
    # When the hour is over
    world.clock.advance(seconds=3600)
    assert world.wake.run(lambda: ENDLESS) == MANY
    # Then each has an order, further runs skip it, and no delivery was written
    assert world.wake.run(lambda: ENDLESS) == 0
    assert len(world.retry_queue.sent) == MANY
    assert len(world.messages.saved) == written
    assert world.telemetry.counts["DeliveriesWoken"] == MANY


def test_orders_for_one_subscriber_travel_together() -> None:
    world = World()
    scheduled(world)
    world.clock.advance(seconds=3600)
    world.wake.run(lambda: ENDLESS)
    assert len(world.retry_queue) <= MANY // 10 + 4  # a remainder for each shard


def test_orders_are_sent_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a queue that answers only once three calls are in progress together
    monkeypatch.setattr(wake_module, "SLICE", 2)
    world = World()
    scheduled(world)
    world.clock.advance(seconds=3600)
    together, under_way = threading.Event(), threading.Semaphore(2)

    class Slow(FakeWorkQueue):
        def send_packed(self, orders: Sequence[WorkOrder], delay_s: int = 0) -> None:
            if not under_way.acquire(blocking=False):
                together.set()
            assert together.wait(timeout=10)
            super().send_packed(orders, delay_s)

    queue = Slow(world.clock)
    with ThreadPoolExecutor(max_workers=8) as pool:
        wake = Wake(
            schedule=world.schedule,
            runs=world.ports.shard_runs,
            queues=OrderQueues(
                usual=queue,
                poll=world.poll_queue,
                route=world.route_queue,
                internal=lambda _: False,
                long=lambda _: False,
            ),
            clock=world.clock,
            telemetry=world.telemetry,
            executor=pool,
        )
        # When all are woken, then none waits for another
        assert wake.run(lambda: ENDLESS) == MANY


def test_each_shard_with_much_to_do_gets_a_run_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given four shards with more than a page in each
    monkeypatch.setattr(wake_module, "PAGE", 5)
    world = World()
    scheduled(world, 48)
    world.clock.advance(seconds=3600)
    # When the minute's run looks, then it starts a run for each, and handles none of them itself
    assert world.wake.run(lambda: ENDLESS) == 0
    assert world.ports.shard_runs.started == [0, 1, 2, 3]
    # When those run, then each handles all of its own shard
    woken = [world.wake.run(lambda: ENDLESS, shard=shard) for shard in range(4)]
    assert sum(woken) == 48
    assert min(woken) >= 5
    assert len(world.retry_queue.sent) == 48


def test_a_run_that_cannot_be_started_is_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wake_module, "PAGE", 5)
    world = World()
    scheduled(world, 48)
    world.clock.advance(seconds=3600)

    def refused(shard: int) -> None:
        raise Unavailable("lambda:Invoke", "TooManyRequestsException")

    world.ports.shard_runs.start = refused  # type: ignore[method-assign]
    assert world.wake.run(lambda: ENDLESS) == 48


def test_a_shard_that_a_run_has_taken_is_left_to_it() -> None:
    # Given a run that has claimed a shard and is still running
    world = World()
    scheduled(world)
    world.clock.advance(seconds=3600)
    taken = [replace(each, taken_until=world.clock.now() + 50_000) for each in world.schedule.positions()]
    for before, after in zip(world.schedule.positions()[:1], taken[:1], strict=True):
        world.schedule.move(before, after)
    # When the next minute's run comes, then it handles the others
    first = world.wake.run(lambda: ENDLESS)
    assert 0 < first < MANY
    # And when the run that claimed it is long over, the rest of the shard is woken
    world.clock.advance(seconds=60)
    assert world.wake.run(lambda: ENDLESS) == MANY - first


def test_a_run_that_loses_the_race_for_a_shard_sends_nothing() -> None:
    # Given a shard that another run claims after ours has read it
    world = World()
    scheduled(world)
    world.clock.advance(seconds=3600)
    due = world.schedule.due

    def raced(position: Position, now: int, limit: int) -> object:
        found = due(position, now, limit)
        world.schedule.move(position, replace(position, taken_until=now + 50_000))
        return found

    world.schedule.due = raced  # type: ignore[method-assign, assignment]
    assert world.wake.run(lambda: ENDLESS) == 0
    assert world.retry_queue.sent == []


def test_a_shard_that_was_moved_since_its_position_was_read_is_looked_at_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given an environment that remembers positions, and another one that has moved them since, to before what is due
    world = World()
    scheduled(world)
    stale = world.schedule.positions()
    world.clock.advance(seconds=1_800)
    for each in stale:
        world.schedule.move(each, each.at(world.clock.now() // 60_000, ""))
    world.clock.advance(seconds=1_800)
    fresh, asked = world.schedule.positions, [stale]
    monkeypatch.setattr(world.schedule, "positions", lambda: asked.pop() if asked else fresh())
    # When it wakes what is due, then that is not left to the next minute
    assert world.wake.run(lambda: ENDLESS) == MANY
    assert len({each.key for each, _ in world.retry_queue.sent}) == MANY == len(world.retry_queue.sent)


def test_a_shard_that_fails_does_not_hold_up_the_others_and_is_read_again() -> None:
    # Given a queue that fails once
    world = World()
    scheduled(world)
    world.clock.advance(seconds=3600)
    send = world.retry_queue.send_packed
    failures = iter([True])

    def sometimes(orders: Sequence[WorkOrder], delay_s: int = 0) -> None:
        if next(failures, False):
            raise Unavailable("sqs:SendMessageBatch")
        send(orders, delay_s)

    world.retry_queue.send_packed = sometimes  # type: ignore[method-assign]
    # When wake runs, then it fails, but three of the four shards are done
    with pytest.raises(Unavailable):
        world.wake.run(lambda: ENDLESS)
    first = len(world.retry_queue.sent)
    assert first >= MANY // 2
    # And the next run continues with the fourth
    assert world.wake.run(lambda: ENDLESS) == MANY - first


def test_a_shard_that_cannot_be_read_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given deliveries that are due, and a shard that cannot be read
    world = World()
    scheduled(world)
    world.clock.advance(seconds=3600)
    due, there = world.schedule.due, [each.shard for each in world.schedule.positions()]
    broken = there[0]

    def failing(position: Position, now: int, limit: int) -> tuple[list[ScheduleEntry], Position]:
        if position.shard == broken:
            raise Unavailable("dynamodb:Query", "ThrottlingException")
        return due(position, now, limit)

    monkeypatch.setattr(world.schedule, "due", failing)
    # When wake runs, then it reports that, the other shards are woken, and their positions are stored
    with pytest.raises(Unavailable):
        world.wake.run(lambda: ENDLESS)
    woken = len(world.retry_queue.sent)
    assert 0 < woken < MANY
    # And the next run that can read it wakes the rest
    monkeypatch.setattr(world.schedule, "due", due)
    assert world.wake.run(lambda: ENDLESS) == MANY - woken


def test_how_far_shards_were_read_is_kept_before_others_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given deliveries that are due in all shards, of which two are looked at together
    world = World()
    scheduled(world)
    world.clock.advance(seconds=3600)
    monkeypatch.setattr(wake_module, "LOOKS", 2)
    due, move = world.schedule.due, world.schedule.move
    calls: list[tuple[str, int]] = []

    def looked(position: Position, now: int, limit: int) -> tuple[list[ScheduleEntry], Position]:
        calls.append(("look", position.shard))
        return due(position, now, limit)

    def moved(before: Position, after: Position) -> None:
        calls.append(("move", before.shard))
        move(before, after)

    monkeypatch.setattr(world.schedule, "due", looked)
    monkeypatch.setattr(world.schedule, "move", moved)
    # When wake runs, then the first two are done when the next one is read, in case the run dies there
    assert world.wake.run(lambda: ENDLESS) == MANY
    done = calls[: calls.index(("look", 2))]
    assert {("move", 0), ("move", 1)} <= set(done)
    assert len({each.key for each, _ in world.retry_queue.sent}) == MANY


def test_a_run_out_of_time_leaves_the_rest_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wake_module, "PAGE", 5)
    world = World()
    scheduled(world, 48)
    world.clock.advance(seconds=3600)
    # Given time for two pages
    left = iter([60_000, 60_000, 60_000])
    first = world.wake.run(lambda: next(left, 5_000), shard=1)
    assert first == 10
    # Then the claim on the shard is released, and the next run wakes the rest of it
    rest = world.wake.run(lambda: ENDLESS, shard=1)
    assert rest > 0
    assert len({each.key for each, _ in world.retry_queue.sent}) == first + rest == len(world.retry_queue.sent)


def test_lateness_is_counted() -> None:
    # Given deliveries that nobody wakes for two minutes and a bit
    world = World()
    scheduled(world)
    world.clock.advance(seconds=3600 + 119)
    world.wake.run(lambda: ENDLESS)
    assert "DeliveriesWokenLate" not in world.telemetry.counts
    late = World()
    scheduled(late)
    late.clock.advance(seconds=3600 + 121)
    late.wake.run(lambda: ENDLESS)
    assert late.telemetry.counts["DeliveriesWokenLate"] == MANY
    [longest_ms] = {fields["longest_ms"] for name, fields in late.telemetry.events if name == "woken_late"}
    assert longest_ms == 121_000
