"""What every store of queues' totals does."""

from __future__ import annotations

from tests.cloud import aws_services as aws
from tests.contract.samples import OTHER_PROJECT, PROJECT
from tests.fakes import FakeClock

from pushhub.engine.ports import TotalStore
from pushhub.engine.store.dynamodb_config import TOTAL_PARTS, DynamoDBConfigStore


def test_totals_add_up_for_each_queue(config_store: TotalStore) -> None:
    config_store.add_to_total(PROJECT, "u1", 100)
    config_store.add_to_total(PROJECT, "u1", 1)
    config_store.add_to_total(PROJECT, "u2", 7)
    assert config_store.total(PROJECT, "u1") == 101
    assert config_store.total(PROJECT, "u2") == 7
    assert config_store.total(OTHER_PROJECT, "u1") == 0


def test_totals_of_all_environments_are_one_and_each_part_takes_its_share() -> None:
    # Given more environments than a total has parts
    queue_uid, clock = "aaaaaaaaaaaa", FakeClock()
    with aws.dynamodb() as client:
        for number in range(2 * TOTAL_PARTS):
            clock.jitter_value = number / (2 * TOTAL_PARTS)
            store = DynamoDBConfigStore(client, aws.CONFIG_TABLE, clock)
            store.add_to_total(PROJECT, queue_uid, 3)
            store.add_to_total(PROJECT, "bbbbbbbbbbbb", 1)
        # Then every reader gets the sum, and no key has more than its share of the writes
        assert store.total(PROJECT, queue_uid) == 6 * TOTAL_PARTS
        assert store.total(PROJECT, "cccccccccccc") == 0
        items = client.scan(TableName=aws.CONFIG_TABLE)["Items"]
        parts = [int(each["posted"]["N"]) for each in items if queue_uid in each["sk"]["S"]]
    assert parts == [6] * TOTAL_PARTS
