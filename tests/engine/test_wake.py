"""Waking: what is due goes back to its queue once, as fast as a function can make it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from tests.engine.world import PROJECT, World, subscribers

from pushhub.engine.model.delivery import Delivery
from pushhub.engine.model.message import NewMessage
from pushhub.engine.wake import Wake

A = "https://a.example/in"
MANY = 40


def scheduled(world: World) -> None:
    """Forty messages that are due in an hour."""
    world.make_queue("q", subscribers(A))
    world.ingest.post(PROJECT, "q", [NewMessage(body=b"x", delay_s=3600)] * MANY)
    world.dispatch_only()
    assert len(world.messages.scheduled()) == MANY


def test_what_is_due_is_woken_once() -> None:
    world = World()
    scheduled(world)
    assert world.wake.run(lambda: 10**6) == 0
    world.clock.advance(seconds=3600)
    assert world.wake.run(lambda: 10**6) == MANY
    assert world.wake.run(lambda: 10**6) == 0
    assert len(world.retry_queue) == MANY
    assert world.telemetry.counts["DeliveriesWoken"] == MANY


def test_deliveries_are_taken_out_of_the_index_side_by_side() -> None:
    # Given a store that answers only when eight calls are under way
    world = World()
    scheduled(world)
    world.clock.advance(seconds=3600)
    together = threading.Barrier(8, timeout=5)
    unschedule = world.messages.unschedule

    def slow(delivery: Delivery) -> None:
        together.wait()
        unschedule(delivery)

    world.messages.unschedule = slow  # type: ignore[method-assign]
    with ThreadPoolExecutor(max_workers=8) as pool:
        wake = Wake(
            due_index=world.messages,
            retry_queue=world.retry_queue,
            poll_queue=world.poll_queue,
            route_queue=world.route_queue,
            internal=lambda _: False,
            clock=world.clock,
            telemetry=world.telemetry,
            executor=pool,
        )
        # When all are woken, then none waits for another
        assert wake.run(lambda: 10**6) == MANY
    assert world.messages.scheduled() == []
