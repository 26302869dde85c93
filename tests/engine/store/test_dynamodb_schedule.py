"""What is specific to the schedule in DynamoDB: keys that share the load, and the cost of an entry and of a read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import cast

import pytest
from mypy_boto3_dynamodb import DynamoDBClient
from tests.cloud import aws_services as aws
from tests.cloud.aws_services import Intercepted
from tests.contract.samples import NOW, first, message
from tests.fakes import FakeClock

from pushhub.base.verdict import Verdict
from pushhub.engine.store.dynamodb_schedule import MINUTES_PER_LOOK, SHARDS, DynamoDBSchedule

HOUR = 3_600_000


class Bench:
    """The schedule on a client whose calls are recorded."""

    def __init__(self, client: DynamoDBClient) -> None:
        self.client = Intercepted(client)
        self.schedule = DynamoDBSchedule(cast(DynamoDBClient, self.client), aws.SCHEDULE_TABLE, FakeClock())


@pytest.fixture
def bench() -> Iterator[Bench]:
    with aws.dynamodb() as client:
        yield Bench(client)


def test_the_waits_of_a_minute_are_spread_over_all_shards(bench: Bench) -> None:
    # Given 640 waits that end in one minute
    for _ in range(640):
        bench.schedule.enter(first(message(), Verdict.FAILED, due_at=NOW + HOUR))
    # Then no key takes much more than its share of the writes
    keys = Counter(call["Item"]["pk"]["S"] for _, call in bench.client.calls)
    assert len(keys) == SHARDS
    assert max(keys.values()) <= 3 * 640 // SHARDS


def test_an_entry_holds_keys_and_the_queue_s_name_only(bench: Bench) -> None:
    bench.schedule.enter(first(message(), Verdict.FAILED, due_at=NOW + HOUR))
    [(_, call)] = bench.client.calls
    assert set(call["Item"]) == {"pk", "sk", "queue", "ttl"}
    # And it expires by itself
    assert int(call["Item"]["ttl"]["N"]) == (NOW + HOUR) // 1000 + 7 * 86_400


def test_reading_is_consistent_and_writes_nothing(bench: Bench) -> None:
    # Given an entry, and shards that have their first positions
    bench.schedule.enter(first(message(), Verdict.FAILED, due_at=NOW + HOUR))
    bench.schedule.positions()
    written = bench.client.count("put_item")
    assert written == 1 + SHARDS
    # When all are read, then nothing is written
    for position in bench.schedule.positions():
        bench.schedule.due(position, NOW + HOUR, 10)
    reads = [call for operation, call in bench.client.calls if operation == "query"]
    assert all(call["ConsistentRead"] for call in reads)
    assert bench.client.count("put_item") == written


def test_a_look_passes_a_bounded_number_of_empty_minutes(bench: Bench) -> None:
    [position, *_] = bench.schedule.positions()
    entries, behind = bench.schedule.due(position, NOW + 100 * HOUR, 10)
    assert (entries, behind.minute - position.minute) == ([], MINUTES_PER_LOOK)
    assert bench.client.count("query") == MINUTES_PER_LOOK


def test_minutes_that_were_empty_are_not_read_again(bench: Bench) -> None:
    [position, *_] = bench.schedule.positions()
    now = position.minute * 60_000 + 5_000
    # Given a shard without entries, whose position is not moved
    for minute in range(10):
        before = bench.client.count("query")
        entries, passed = bench.schedule.due(position, now + minute * 60_000, 10)
        assert (entries, passed.minute) == ([], position.minute + minute)
        # When wake looks each minute, then it reads this minute only
        assert bench.client.count("query") - before == 1
    # And another position is believed, as another run may have moved it
    before = bench.client.count("query")
    bench.schedule.due(position.at(position.minute + 3, ""), now + 540_000, 10)
    assert bench.client.count("query") - before == 7


def test_an_entry_of_the_minute_that_was_just_read_is_found_a_minute_later(bench: Bench) -> None:
    # Given entries that are due late in a minute
    for _ in range(200):
        bench.schedule.enter(first(message(), Verdict.FAILED, due_at=NOW + HOUR))
    due_minute = (NOW + HOUR) // 60_000
    early, later = due_minute * 60_000, (due_minute + 1) * 60_000 + 5_000
    positions = bench.schedule.positions()
    # When that minute was read while nothing was due in it
    found = [bench.schedule.due(each, early - 1, 1000)[0] for each in positions]
    assert not any(found)
    # Then the next minute finds them all
    assert sum(len(bench.schedule.due(each, later, 1000)[0]) for each in positions) == 200
