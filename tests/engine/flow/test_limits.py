"""Rate and concurrency limits of subscribers, kept by whoever has the turn. On a fake clock."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace

import pytest
from tests.engine.world import World, subscribers
from tests.fakes import FaultPlan, Reply

from pushhub.base.ports import PushRequest
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.flow import Limits

A, B = "https://a.example/in", "https://b.example/in"


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


@pytest.mark.parametrize("rate", [0.1, 0.5, 5, 50, 500])
def test_a_subscriber_is_sent_as_many_a_second_as_it_wants(rate: float) -> None:
    # Given 200 messages for a subscriber with a limit
    world, times = a_limited_hub(Limits(rate_per_s=rate))
    world.post("q", *[b"x"] * 100)
    world.post("q", *[b"x"] * 100)
    world.run(seconds=2_500)
    # Then all arrive, as fast as they may and never faster
    assert len(times) == 200
    for seconds in (1, 5, 30):
        assert most_within(times, seconds * 1_000) <= rate * (seconds + 1) + 1
    assert (times[-1] - times[0]) / 1000 <= 200 / rate * 1.05
    # And the neighbour was not held up
    assert [each.state for each in world.messages.all_deliveries()] == [DeliveryState.DELIVERED] * 400
