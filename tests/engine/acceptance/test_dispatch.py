"""From the stream to the queue: everything is queued, in few calls, and within a function's memory and time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from threading import get_ident

import pytest
from tests.contract.samples import message
from tests.engine.world import PROJECT, World, subscribers
from tests.fakes import FakeClock, FakeWorkQueue
from tests.fakes.message_store import FakeMessageStore
from tests.fakes.schedule import FakeSchedule
from tests.fakes.telemetry import FakeTelemetry

from pushhub.base.errors import Unavailable
from pushhub.engine.acceptance import dispatch
from pushhub.engine.acceptance.dispatch import ORDERS_BYTES, Dispatch
from pushhub.engine.acceptance.order_queues import OrderQueues
from pushhub.engine.model.delivery import Delivery, opening
from pushhub.engine.model.message import BodyRef, Message, NewMessage
from pushhub.engine.model.work import WorkOrder

MANY = [f"https://{number}.example/" for number in range(100)]


class WatchedWorkQueue(FakeWorkQueue):
    """Notes how much text each call would hold at once."""

    def __init__(self, world: World) -> None:
        super().__init__(world.clock)
        self.held: list[int] = []

    def send_packed(self, orders: Sequence[WorkOrder], delay_s: int = 0) -> None:
        super().send_packed(orders, delay_s)
        self.held.append(sum(len(each.encode()) for each in orders))


@pytest.mark.parametrize("body", [b"\x01" * 8192, b"x" * 500])
def test_a_hundred_messages_for_a_hundred_subscribers_are_queued_piece_by_piece(body: bytes) -> None:
    # Given the largest post to a queue of a hundred subscribers
    world = World()
    queue = WatchedWorkQueue(world)
    world.dispatch.__dict__["queues"] = replace(world.dispatch.queues, usual=queue)
    world.make_queue("q", subscribers(*MANY))
    ids = world.ingest.post(PROJECT, "q", [NewMessage(body=body)] * 100)
    # When the stream delivers it
    world.dispatch_only()
    # Then each order is queued once, no more than a bounded amount was in memory at a time, and packs are full
    sent = {(each.key.message_id, each.key.subscriber_id) for each, _ in queue.sent}
    assert len(queue.sent) == len(sent) == 100 * len(ids)
    assert max(queue.held) < ORDERS_BYTES * 1.5
    assert len(queue) <= 2500


class Bench:
    """Dispatch on queues in memory."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.telemetry = FakeTelemetry()
        self.schedule = FakeSchedule(self.clock)
        self.stored = FakeMessageStore(self.schedule)
        self.push_queue, self.route_queue, self.poll_queue = (FakeWorkQueue(self.clock) for _ in range(3))
        self.totals: list[tuple[str, str, int]] = []
        self.unavailable = False
        self.dispatch = Dispatch(
            totals=self,
            deliveries=self.stored,
            queues=OrderQueues(
                usual=self.push_queue,
                poll=self.poll_queue,
                route=self.route_queue,
                internal=lambda name: name.startswith("hub/"),
                long=lambda name: name.startswith("long/"),
            ),
            executor=ThreadPoolExecutor(max_workers=4),
            clock=self.clock,
            telemetry=self.telemetry,
        )

    def add_to_total(self, project_id: str, queue_uid: str, count: int) -> None:
        """As the store of totals."""
        if self.unavailable:
            raise Unavailable("totals")
        self.totals.append((project_id, queue_uid, count))

    def total(self, project_id: str, queue_uid: str) -> int:
        return sum(count for *queue, count in self.totals if queue == [project_id, queue_uid])

    def calls_of_the_push_queue(self) -> list[int]:
        """Records, from now on, how many orders each call sends to the push queue."""
        sent: list[int] = []
        self.push_queue.send_packed = lambda orders, delay_s=0: sent.append(len(orders))  # type: ignore[method-assign]
        return sent

    def message(self, *, due_in_ms: int = 0, **more: object) -> Message:
        now = self.clock.now()
        fields: dict[str, object] = {
            **{"project": "p", "queue": "q", "queue_uid": "u", "message_id": "7", "body": b"x"},
            "due_at": now + due_in_ms,
            "expires_at": now + 10**9,
            "subscriber_ids": ("a",),
        }
        return message(**fields | more)


@pytest.mark.parametrize(
    ("due_in_ms", "delay_s"), [(-5, 0), (0, 0), (1, 1), (1_000, 1), (1_001, 2), (900_000, 900), (900_001, None)]
)
def test_a_message_waits_in_the_queue_until_it_is_due_or_in_the_schedule(due_in_ms: int, delay_s: int | None) -> None:
    bench = Bench()
    message = bench.message(due_in_ms=due_in_ms)
    bench.dispatch.run([message])
    if delay_s is not None:
        assert bench.push_queue.sent == [(WorkOrder.carrying(message, "a"), delay_s)]
        assert bench.stored.all_deliveries() == []
        return
    # Then its first version waits there
    assert bench.push_queue.sent == []
    [delivery] = bench.stored.all_deliveries()
    assert delivery == replace(opening(message, "a"), scheduled=True, changed_at=bench.clock.now(), version=1)
    # And a repeated batch leaves its later state alone
    bench.stored.save(replace(delivery, scheduled=False, tries=1, version=2))
    bench.dispatch.run([message])
    assert [each.tries for each in bench.stored.all_deliveries()] == [1]
    assert bench.telemetry.counts == {"DeliveriesScheduled": 1, "MessagesDispatched": 2}


def test_many_deliveries_are_scheduled_side_by_side_and_each_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a post of a hundred messages to a queue of fifty, all due in an hour, and a run with time for a third of it
    bench = Bench()
    batch = [
        bench.message(message_id=str(number), due_in_ms=3_600_000, subscriber_ids=MANY[:50]) for number in range(100)
    ]
    save, threads, left = bench.stored.save, set[int](), [1_800]

    def limited(delivery: Delivery) -> None:
        threads.add(get_ident())
        left[0] -= 1
        if left[0] < 0:
            raise Unavailable("the time is over")
        save(delivery)

    monkeypatch.setattr(bench.stored, "save", limited)
    # When the stream delivers it again and again
    for _ in range(3):
        left[0] = 1_800
        with suppress(Unavailable):
            bench.dispatch.run(batch)
    # Then each run has scheduled what the earlier ones had not, side by side
    assert len(threads) > 1
    assert len(bench.stored.all_deliveries()) == 5_000


def test_what_cannot_be_scheduled_holds_up_others_for_two_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a schedule whose table is away for an hour, and a message for later in front of another project's
    world = World()
    world.make_queue("later", subscribers("https://later.example/in"))
    world.make_queue("now", subscribers("https://now.example/in"))
    enter = world.schedule.enter

    def away(delivery: Delivery) -> None:
        if world.clock.now() < begun + 3_600_000:
            raise Unavailable("dynamodb:PutItem", "ResourceNotFoundException")
        enter(delivery)

    begun = world.clock.now()
    monkeypatch.setattr(world.schedule, "enter", away)
    world.post("later", b"later", delay_s=7_200)
    world.dispatch_only()
    world.post("now", b"now")
    # When the stream delivers both again and again
    for _ in range(12):
        world.dispatch_only()
        world.clock.advance(seconds=15)
    world.run(seconds=5)
    # Then the other one has come, and the first comes when it is due, once
    assert [each.body for each in world.sender.requests] == [b"now"]
    assert world.telemetry.counts["CallsFailed"] == 1
    world.run(seconds=begun / 1000 + 7_190 - world.clock.now() / 1000)
    assert len(world.sender.requests) == 1
    world.run(seconds=60)
    assert [each.body for each in world.sender.requests] == [b"now", b"later"]


def test_what_the_hub_works_on_itself_is_queued_apart_due_or_not() -> None:
    bench = Bench()
    orders = [bench.message(queue="hub/x"), bench.message(queue="hub/x", due_in_ms=5_000, message_id="8")]
    bench.dispatch.run([*orders, bench.message(message_id="9")])
    assert [(order.key.message_id, delay_s) for order, delay_s in bench.route_queue.sent] == [("7", 0), ("8", 0)]
    assert [order.key.message_id for order, _ in bench.push_queue.sent] == ["9"]


def test_what_may_take_long_is_queued_where_such_attempts_are_made() -> None:
    bench = Bench()
    orders = [bench.message(queue="long/q"), bench.message(queue="long/q", due_in_ms=2_000, message_id="8")]
    bench.dispatch.run([*orders, bench.message(message_id="9")])
    assert [(order.key.message_id, delay_s) for order, delay_s in bench.poll_queue.sent] == [("7", 0), ("8", 2)]
    assert [order.key.message_id for order, _ in bench.push_queue.sent] == ["9"]


def test_totals_are_counted_by_queue_and_no_batch_comes_again_for_them() -> None:
    bench = Bench()
    batch = [bench.message(), bench.message(message_id="8"), bench.message(message_id="9", queue_uid="v")]
    bench.dispatch.run(batch)
    assert bench.totals == [("p", "u", 2), ("p", "v", 1)]
    assert bench.telemetry.counts == {"MessagesDispatched": 3}
    bench.unavailable = True
    bench.dispatch.run(batch[:2])
    fields = {"error": "totals failed", "project": "p", "count": 2}
    assert bench.telemetry.events == [("total_not_counted", fields)]


@pytest.mark.parametrize(("limit", "calls"), [(2_001, [3, 1]), (2_002, [4])])
def test_orders_are_sent_whenever_they_are_many_bytes(
    monkeypatch: pytest.MonkeyPatch, limit: int, calls: list[int]
) -> None:
    # Given orders of about 667 bytes: 600, a body of 48 that grows by a third, and three of headers
    monkeypatch.setattr(dispatch, "ORDERS_BYTES", limit)
    bench = Bench()
    sent = bench.calls_of_the_push_queue()
    message = bench.message(body=b"x" * 48, headers={"X": "yz"}, subscriber_ids=("a", "b", "c", "d"))
    bench.dispatch.run([message])
    assert sent == calls


@pytest.mark.parametrize(("limit", "calls"), [(632, [1, 1]), (633, [2])])
def test_a_unicast_order_counts_with_its_targets_and_one_with_a_large_body_without_it(
    monkeypatch: pytest.MonkeyPatch, limit: int, calls: list[int]
) -> None:
    monkeypatch.setattr(dispatch, "ORDERS_BYTES", limit)
    bench = Bench()
    sent = bench.calls_of_the_push_queue()
    ref = BodyRef(key="k", offset=0, length=99_999)
    message = bench.message(body=None, body_ref=ref, unicast=True, subscriber_ids=("a", "b"))
    bench.dispatch.run([message, replace(message, message_id="8")])
    assert sent == calls
