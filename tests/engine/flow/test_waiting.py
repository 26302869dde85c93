"""Endpoints that hang: waiting for them costs threads of a run, not the run, and nobody else waits."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from tests.engine.world import PROJECT, World, subscribers
from tests.fakes import FakeWorkQueue, Reply

from pushhub.base.ports import PushRequest
from pushhub.engine.flow.push import Push
from pushhub.engine.model.concurrency import SLOW_MS
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.message import NewMessage
from pushhub.engine.model.received import Received
from pushhub.engine.model.run import AT_ONCE, FLUSH_SECONDS

HANGS = "https://hangs.example/in"
VICTIM = "https://victim.example/in"
OTHER_PROJECT = "5f0000000000000000000002"
LONG_ENOUGH_S = 60
"""How long a test waits for what must happen; it fails then."""


class Hung:
    """An endpoint that does not answer until it is released."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lock = threading.Lock()
        self.free = threading.Event()
        self.at_once = 0
        self.most = 0

    def meanwhile(self, _: PushRequest) -> None:
        with self._lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        # By now it counts as slow, and the run receives further orders.
        self._world.clock.advance(ms=SLOW_MS + 1)
        assert self.free.wait(LONG_ENOUGH_S)
        with self._lock:
            self.at_once -= 1


@contextmanager
def pushing(world: World) -> Iterator[Push]:
    """A push that works on its orders in parallel, like the function."""
    with ThreadPoolExecutor(max_workers=AT_ONCE + 1) as threads:
        side_by_side = copy.copy(world.ports)
        side_by_side.executor = threads
        yield side_by_side.build().engine.push


def hung_and_victim(hung: int = 1) -> tuple[World, Hung]:
    """Queues of hanging endpoints and of one that answers."""
    world = World()
    endpoint = Hung(world)
    for number in range(hung):
        world.make_queue(f"hung{number}", subscribers(f"{HANGS}/{number}"))
        world.sender.script(f"{HANGS}/{number}", Reply(status_code=200, meanwhile=endpoint.meanwhile))
    world.make_queue("victim", subscribers(VICTIM))
    return world, endpoint


def post(world: World, queue: str, count: int = 1, *, project: str = PROJECT) -> None:
    world.ingest.post(project, queue, [NewMessage(body=b"x")] * count)
    world.dispatch_only()


def until(true: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    for _ in range(LONG_ENOUGH_S * 100):
        if true():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen")


def run(world: World, push: Push, source: FakeWorkQueue, remaining_ms: Callable[[], int] = lambda: 10**9) -> None:
    batch = source.receive()
    keep = push.run(batch, source=source, remaining_ms=remaining_ms)
    source.delete([each.receipt_handle for each in batch if each.sqs_id not in keep])


def test_a_run_that_waits_for_an_endpoint_works_on_what_comes_meanwhile() -> None:
    # Given a run with only an order for an endpoint that hangs until its neighbour is served
    world, hung = hung_and_victim()
    post(world, "hung0")
    batch = world.push_queue.receive()
    world.sender.script(VICTIM, Reply(status_code=200, meanwhile=lambda _: hung.free.set()))
    with pushing(world) as push:
        # When an order for the neighbour comes after it
        post(world, "victim")
        keep = push.run(batch, source=world.push_queue, remaining_ms=lambda: 10**9)
    # Then that same run has served it, and taken it off the queue
    assert len(world.sender.requests_to(VICTIM)) == 1
    assert keep == set()
    assert [each.key.subscriber_id for each in world.push_queue.orders()] == ["s0"]
    world.push_queue.delete([each.receipt_handle for each in batch])
    assert len(world.push_queue) == 0
    assert {each.state for each in world.messages.all_deliveries()} == {DeliveryState.DELIVERED}


def test_fifty_hanging_endpoints_with_a_backlog_leave_the_others_their_threads() -> None:
    # Given fifty endpoints that hang, ten messages for each, and behind them one for an endpoint that answers
    world, hung = hung_and_victim(50)
    for number in range(50):
        post(world, f"hung{number}", 10)
    served = threading.Event()
    world.sender.script(VICTIM, Reply(status_code=200, meanwhile=lambda _: served.set()))
    with pushing(world) as push, pushing(world) as slow, ThreadPoolExecutor(max_workers=2) as other:
        # When a single run works on them, and another one on what the first puts into the slow lane
        post(world, "victim")
        running = [other.submit(run, world, push, world.push_queue)]
        until(lambda: len(world.slow_queue.sent) > 0)
        running.append(other.submit(run, world, slow, world.slow_queue))
        # Then the last one is served while the others hang, each of which has one thread in each run only
        assert served.wait(LONG_ENOUGH_S)
        assert hung.most <= 2 * 50
        hung.free.set()
        for each in running:
            each.result(LONG_ENOUGH_S)
        # And nothing is lost: orders put aside are delivered once their endpoint answers
        queues = (world.push_queue, world.retry_queue, world.slow_queue)
        while any(queue.next_at() is not None for queue in queues):
            world.clock.advance(seconds=900)
            for queue in queues:
                run(world, push, queue)
    assert {each.state for each in world.messages.all_deliveries()} == {DeliveryState.DELIVERED}
    assert len(world.messages.all_deliveries()) == 501


def test_a_project_that_is_alone_in_a_run_has_all_of_its_threads() -> None:
    world, together = World(), threading.Barrier(80, timeout=LONG_ENOUGH_S)

    def waits_for_all(_: PushRequest) -> None:
        together.wait()

    many = subscribers(*(f"https://many.example/{number}" for number in range(80)))
    world.make_queue("many", many)
    for each in many:
        world.sender.script(each.url, Reply(status_code=200, meanwhile=waits_for_all))
    post(world, "many")
    batch = world.push_queue.receive(limit=1_000)
    with pushing(world) as push:
        # When a run works on its orders, none of which ends before all have begun
        push.run(batch, source=world.push_queue, remaining_ms=lambda: 10**9)
    assert {each.state for each in world.messages.all_deliveries()} == {DeliveryState.DELIVERED}


def test_a_run_with_idle_threads_takes_others_orders_although_nobody_has_waited_for_long() -> None:
    # Given a run with several orders for a subscriber that gets one attempt at first, and a clock that stands still
    world, free = World(), threading.Event()

    def lasts(_: PushRequest) -> None:
        assert free.wait(LONG_ENOUGH_S)

    world.make_queue("one", subscribers("https://one.example/in"))
    world.make_queue("victim", subscribers(VICTIM), project=OTHER_PROJECT)
    world.sender.script("https://one.example/in", Reply(status_code=200, meanwhile=lasts))
    world.sender.script(VICTIM, Reply(status_code=200, meanwhile=lambda _: free.set()))
    post(world, "one", 10)
    batch = world.push_queue.receive()
    post(world, "victim", project=OTHER_PROJECT)
    with pushing(world) as push:
        push.run(batch, source=world.push_queue, remaining_ms=lambda: 10**9)
    # Then the run has received and served the other project's order, and all others when they were admitted
    assert {each.state for each in world.messages.all_deliveries()} == {DeliveryState.DELIVERED}
    assert len(world.messages.all_deliveries()) == 11


def test_a_look_for_idle_threads_that_finds_nothing_does_not_wait_and_is_not_repeated_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given a run with several orders for a subscriber that gets one attempt at first, and nothing else to do
    world, looks = World(), list[int]()
    receive = world.push_queue.receive

    def counted(wait_s: int = 0, *, limit: int = 10) -> list[Received]:
        looks.append(wait_s)
        return receive(wait_s, limit=limit)

    def lasts(_: PushRequest) -> None:
        until(lambda: bool(looks))
        # Time for some further rounds of the run
        time.sleep(3 * FLUSH_SECONDS)

    world.make_queue("one", subscribers("https://one.example/in"))
    world.sender.script("https://one.example/in", Reply(status_code=200, meanwhile=lasts), 200)
    post(world, "one", 2)
    batch = world.push_queue.receive()
    monkeypatch.setattr(world.push_queue, "receive", counted)
    with pushing(world) as push:
        push.run(batch, source=world.push_queue, remaining_ms=lambda: 10**9)
    assert looks == [0]
