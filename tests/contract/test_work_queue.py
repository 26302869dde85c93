"""What every work queue does. A test reads all visible messages, so each kind provides a way to do that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.cloud import aws_services as aws
from tests.contract.samples import full_message, message, order
from tests.fakes import FakeClock, FakeWorkQueue

from pushhub.engine.model.work import WorkOrder
from pushhub.engine.ports import WorkQueue
from pushhub.engine.store.sqs_work import SqsWorkQueue


@dataclass
class Bench:
    """A queue and how to receive from it: (order, receipt handle) of each visible message."""

    queue: WorkQueue
    clock: FakeClock
    receive: Callable[[], list[tuple[WorkOrder, str]]]


@pytest.fixture(params=["fake", "sqs"])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    clock = FakeClock()
    if request.param == "fake":
        fake = FakeWorkQueue(clock)
        yield Bench(fake, clock, lambda: [(each.order, each.receipt_handle) for each in fake.receive(limit=1_000)])
        return
    with aws.sqs() as (client, url):

        def receive() -> list[tuple[WorkOrder, str]]:
            found: list[Any] = []
            while some := client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
                found += some
            return [(WorkOrder.decode(each["Body"]), each["ReceiptHandle"]) for each in found]

        yield Bench(SqsWorkQueue(client, url, clock), clock, receive)


@pytest.mark.parametrize("count", [0, 1, 10, 11, 100])
def test_all_orders_arrive(bench: Bench, count: int) -> None:
    sent = [order(message()) for _ in range(count)]
    bench.queue.send([(each, 0) for each in sent])
    arrived = [each.key.message_id for each, _ in bench.receive()]
    assert sorted(arrived) == sorted(each.key.message_id for each in sent)


def test_an_order_arrives_as_it_was_sent(bench: Bench) -> None:
    sent = [order(message()), order(full_message(cause=None)), order(message(body=b"\xff\x00"))]
    bench.queue.send([(each, 0) for each in sent])
    arrived = {each.key.message_id: each for each, _ in bench.receive()}
    assert arrived == {each.key.message_id: each for each in sent}


def test_large_orders_are_spread_over_calls(bench: Bench) -> None:
    # Given orders, five of which are too large for one call (1 MiB)
    sent = [order(message(body=b"x" * 300_000)) for _ in range(5)]
    bench.queue.send([(each, 0) for each in sent])
    assert len(bench.receive()) == 5


def test_a_delayed_order_is_not_there_yet(bench: Bench) -> None:
    bench.queue.send([(order(message()), 900), (order(message()), 0)])
    assert len(bench.receive()) == 1


def test_a_delayed_pack_is_not_there_yet(bench: Bench) -> None:
    bench.queue.send_packed([order(message()) for _ in range(3)], 900)
    assert bench.receive() == []


def test_deferred_messages_come_back_when_told(bench: Bench) -> None:
    # Given three received messages
    bench.queue.send([(order(message()), 0) for _ in range(3)])
    received = bench.receive()
    # When two are deferred by zero seconds and one by an hour
    failed = bench.queue.defer([(handle, 0 if index < 2 else 3_600) for index, (_, handle) in enumerate(received)])
    # Then the two come back at once
    assert failed == set()
    again = {each.key.message_id for each, _ in bench.receive()}
    assert again == {each.key.message_id for each, _ in received[:2]}


def test_what_cannot_be_deferred_is_named(bench: Bench) -> None:
    # Given 12 received messages
    bench.queue.send([(order(message()), 0) for _ in range(12)])
    handles = [handle for _, handle in bench.receive()]
    # When they are deferred together with an invalid handle
    failed = bench.queue.defer([*((handle, 60) for handle in handles), ("no-such-handle", 60)])
    # Then that one is reported
    assert failed == {"no-such-handle"}
    assert bench.queue.defer([]) == set()


def test_orders_are_received_ten_messages_at_a_time_and_gone_when_deleted(bench: Bench) -> None:
    # Given twelve messages and a pack of three orders
    singles = [order(message()) for _ in range(12)]
    bench.queue.send([(each, 0) for each in singles])
    together = [order(message()) for _ in range(3)]
    bench.queue.send_packed(together)
    # When all are received
    rounds = [bench.queue.receive(0) for _ in range(3)]
    received = [each for each_round in rounds for each in each_round]
    # Then every order arrives once, in messages of which each call returns at most ten
    assert sorted(each.order.key for each in received) == sorted(each.key for each in [*singles, *together])
    assert max(len({each.sqs_id for each in each_round}) for each_round in rounds) == 10
    assert {each.receive_count for each in received} == {1}
    assert len({each.sqs_id for each in received}) == 13
    # When half are deleted and all are made visible, the other half comes again
    handles = sorted({each.receipt_handle for each in received})
    bench.queue.delete(handles[:6])
    bench.queue.delete(["no-such-handle"])
    bench.queue.defer([(each, 0) for each in handles[6:]])
    again = [each for _ in range(2) for each in bench.queue.receive(0)]
    assert len({each.sqs_id for each in again}) == 7
    assert {each.receive_count for each in again} == {2}
