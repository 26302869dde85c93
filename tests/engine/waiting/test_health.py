"""How subscribers are doing is told without reading all that waits for them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest
from mypy_boto3_dynamodb import DynamoDBClient
from tests.cloud import aws_services as aws
from tests.cloud.aws_services import Intercepted
from tests.contract.samples import NOW, PROJECT, QUEUE_UID, SUBSCRIBER
from tests.fakes import FakeClock
from tests.fakes.activity import FakeActivity
from tests.fakes.message_store import FakeMessageStore
from tests.fakes.schedule import FakeSchedule
from tests.fakes.subscribers import FakeSubscribers
from tests.fakes.tokens import FakeTokens
from tests.simulation import simulated_services

from pushhub.base.ids import first_message_id
from pushhub.engine.model.circuit import SubscriberKey
from pushhub.engine.model.flow import BacklogEntry, FlowKey, Limits
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.store.dynamodb_subscribers import SHARDS, DynamoDBSubscribers
from pushhub.engine.waiting.health import MOST_COUNTED, SubscriberHealths, Watched

KEY = SubscriberKey(project=PROJECT, queue="q", queue_uid=QUEUE_UID, subscriber_id=SUBSCRIBER)


def order(number: int) -> WorkOrder:
    message_id = str(int(first_message_id(NOW)) + number)
    return WorkOrder(key=DeliveryKey(PROJECT, QUEUE_UID, message_id, SUBSCRIBER), queue="q")


class Line(FakeSubscribers):
    """Counts the orders that are read."""

    read = 0

    def backlog(self, key: FlowKey, limit: int, *, now: int | None = None) -> list[BacklogEntry]:
        found = super().backlog(key, limit, now=now)
        self.read += sum(len(each.orders) for each in found)
        return found


@pytest.mark.parametrize(("entries", "size"), [(3, 1), (105, 2), (1_100, 2), (9_999, 1), (10_001, 1), (3_000, 100)])
def test_what_waits_for_a_rate_is_counted_so_far(entries: int, size: int) -> None:
    # Given so many entries of a backlog
    clock = FakeClock()
    line = Line()
    flow = FlowKey.of_subscriber(PROJECT, QUEUE_UID, SUBSCRIBER)
    for entry in range(entries):
        line.add_to_backlog(flow, [order(entry * size + number) for number in range(size)], NOW + entry)
    healths = SubscriberHealths(
        subscribers=lambda: line,
        tokens=FakeTokens,
        deliveries=FakeMessageStore(FakeSchedule(clock)),
        activity=FakeActivity,
        is_suspended=lambda _: False,
        executor=ThreadPoolExecutor(max_workers=2),
        clock=clock,
    )
    # When its health is asked for
    [health] = healths.of(PROJECT, [Watched(key=KEY, limits=Limits(rate_per_s=1))])
    # Then what waits is exact up to a number, and not much more than that is read
    count = entries * size
    assert health.owed.complete == (count <= MOST_COUNTED)
    assert health.owed.in_line == count if health.owed.complete else health.owed.in_line > MOST_COUNTED
    assert line.read < 2.5 * MOST_COUNTED


def test_no_more_of_what_waits_for_a_circuit_is_read_than_is_told() -> None:
    # Given a backlog with entries in each partition
    with simulated_services.dynamodb() as client:
        calls = Intercepted(client)
        store = DynamoDBSubscribers(cast(DynamoDBClient, calls), aws.SCHEDULE_TABLE, FakeClock())
        for number in range(20 * SHARDS):
            store.add(KEY, order(number), NOW)
        # When some are told
        assert len(store.waiting_ids(KEY, 5)) == 5
        # Then the others are not read
        assert calls.count("query") < SHARDS
        assert len(store.waiting_ids(KEY, 10_000)) == 20 * SHARDS
