"""Rate and concurrency limits of subscribers, respected by several execution environments together. On a fake clock."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from dataclasses import replace

import pytest
from tests.engine.world import PROJECT, World, subscribers
from tests.fakes import FakeClock, FaultPlan, Reply
from tests.fakes.subscribers import FakeSubscribers

from pushhub.base.ports import PushRequest
from pushhub.engine.limiter import Limiter
from pushhub.engine.model.circuit import SubscriberKey
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.seats import Limits

A, B = "https://a.example/in", "https://b.example/in"
KEY = SubscriberKey(project=PROJECT, queue="q", queue_uid="uid-q", subscriber_id="s0")


def most_within(times: list[int], ms: int) -> int:
    """The most requests that began within any span of this many milliseconds."""
    return max(bisect_left(times, at + ms) - bisect_left(times, at) for at in times)


def a_limited_hub(limits: Limits, plan: FaultPlan | None = None) -> tuple[World, list[int]]:
    """A queue with a limited subscriber and one that is not; and when each request to the limited one began."""
    world = World(plan)
    limited, free = subscribers(A, B)
    world.make_queue("q", [replace(limited, limits=limits), free])
    times: list[int] = []

    def note(request: PushRequest) -> None:
        del request
        times.append(world.clock.now())

    world.sender.script(A, Reply(status_code=200, meanwhile=note))
    return world, times


@pytest.mark.parametrize("rate", [0.5, 5, 50])
def test_a_subscriber_is_sent_no_more_a_second_than_it_wants(rate: float) -> None:
    # Given 200 messages for a subscriber with a limit
    world, times = a_limited_hub(Limits(rate_per_s=rate))
    world.post("q", *[b"x"] * 100)
    world.post("q", *[b"x"] * 100)
    world.run(seconds=2_000)
    # Then all arrive, about as fast as they may and never faster
    assert len(times) == 200
    assert most_within(times, 1_000) <= max(1, rate)
    assert (times[-1] - times[0]) / 1000 <= 200 / rate * 2 + 30
    # And the neighbour was not held up
    assert [each.state for each in world.messages.all_deliveries()] == [DeliveryState.DELIVERED] * 400


def test_several_environments_share_a_rate() -> None:
    # Given four environments that all have messages for it
    world, times = a_limited_hub(Limits(rate_per_s=8))
    hubs = [world.hub, *(world.ports.build() for _ in range(3))]
    for number in range(160):
        world.__dict__["hub"] = hubs[number % 4]
        world.post("q", *[b"x"] * 5)
        world.step()
        world.clock.advance(ms=500)
    # Then, once all of them know of each other, it is respected to within one request for each
    steady = times[bisect_right(times, times[0] + 30_000) :]
    assert len(steady) > 100
    assert most_within(steady, 1_000) <= 8 + 4
    assert most_within(steady, 10_000) <= 80 + 4


def test_a_limit_costs_an_environment_a_write_in_ten_seconds_and_none_for_others() -> None:
    plan = FaultPlan()
    world, times = a_limited_hub(Limits(rate_per_s=10), plan)
    world.post("q", *[b"x"] * 100)
    world.run(seconds=60)
    assert len(times) == 100
    asked = [each for each in plan.calls if each.startswith("subscribers.")]
    assert 1 <= asked.count("subscribers.save_seats") <= 3
    # The list of slow subscribers is read for all together
    assert asked.count("subscribers.slow") <= 7
    others = {"subscribers.slow", "subscribers.looked_after"}
    assert {*asked} <= {"subscribers.seats", "subscribers.save_seats", *others}


@pytest.mark.parametrize("limit", [1, 3, 10])
def test_no_more_requests_are_under_way_than_a_subscriber_wants(limit: int) -> None:
    # Given five environments that come and go, and attempts that take up to twelve seconds
    clock, store, chance = FakeClock(), FakeSubscribers(), random.Random(limit)
    limiters = [Limiter(seats=store, clock=clock) for _ in range(5)]
    limits, most, begun = Limits(concurrency=limit), 0, 0
    under_way: list[tuple[int, Limiter]] = []
    for step in range(4_000):
        for ends_at, limiter in [each for each in under_way if each[0] <= clock.now()]:
            limiter.end(KEY)
            under_way.remove((ends_at, limiter))
        # Each is busy for some minutes, and then idle for some
        busy = [each for number, each in enumerate(limiters) if (step // 300 + number) % 5 < 3]
        limiter = chance.choice(busy)
        if limiter.begin(KEY, limits, longest_ms=12_000) == 0:
            begun += 1
            under_way.append((clock.now() + chance.randrange(12_000), limiter))
        most = max(most, len(under_way))
        clock.advance(ms=chance.randrange(600))
    # Then the limit is reached, and never exceeded
    assert most == limit
    assert begun > 80


def test_one_that_crashed_gives_its_share_back() -> None:
    clock, store = FakeClock(), FakeSubscribers()
    lost, left = (Limiter(seats=store, clock=clock) for _ in range(2))
    limits = Limits(concurrency=1)
    assert lost.begin(KEY, limits, longest_ms=5_000) == 0
    # When the environment with the only place disappears, then another one gets it within a minute
    waits = 0
    while wait_ms := left.begin(KEY, limits, longest_ms=5_000):
        clock.advance(ms=wait_ms)
        waits += wait_ms
    assert 5_000 <= waits <= 60_000


def test_a_limit_without_a_number_is_none() -> None:
    clock = FakeClock()
    limiter = Limiter(seats=FakeSubscribers(), clock=clock)
    assert [limiter.begin(KEY, Limits(), longest_ms=1_000) for _ in range(50)] == [0] * 50
