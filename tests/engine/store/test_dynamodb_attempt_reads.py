"""How many calls it takes to read what attempts need."""

from __future__ import annotations

from typing import cast

import pytest
from mypy_boto3_dynamodb import DynamoDBClient
from tests.cloud import aws_services as aws
from tests.cloud.aws_services import Intercepted
from tests.contract.samples import first, message
from tests.fakes import FakeClock
from tests.fakes.schedule import FakeSchedule
from tests.simulation import simulated_services

from pushhub.base.verdict import Verdict
from pushhub.engine.store.dynamodb_attempt_reads import DynamoDBAttemptReads
from pushhub.engine.store.dynamodb_messages import DynamoDBMessageStore


@pytest.mark.parametrize("notes", [False, True])
@pytest.mark.parametrize(("orders", "calls"), [(1, 1), (49, 1), (100, 3)])
def test_deliveries_messages_and_notes_are_read_a_hundred_items_at_a_time(orders: int, calls: int, notes: bool) -> None:
    # Given messages that were tried
    posted = [message() for _ in range(orders)]
    tried = [first(each, Verdict.FAILED) for each in posted]
    with simulated_services.dynamodb() as client:
        clock = FakeClock()
        schedule = FakeSchedule(clock)
        store = DynamoDBMessageStore(client, aws.MESSAGES_TABLE, clock, lambda: schedule)
        store.accept(posted)
        for each in tried:
            store.save(each)
        counted = Intercepted(client)
        reads = DynamoDBAttemptReads(cast(DynamoDBClient, counted), aws.MESSAGES_TABLE, clock, aws.CONFIG_TABLE)
        # When they are read for orders that carry no messages
        keys, messages = [each.key for each in tried], [each.key for each in posted]
        read = reads.read_with_notes(keys, messages)[0] if notes else reads.read(keys, messages)
    # Then no item is read by itself
    assert (len(read.deliveries), len(read.messages)) == (orders, orders)
    assert [operation for operation, _ in counted.calls] == ["batch_get_item"] * (calls if notes or orders < 100 else 2)
