"""What is specific to the schedule in DynamoDB: keys that share the load, and the cost of an entry and of a read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import cast

import pytest
from botocore.exceptions import ClientError
from mypy_boto3_dynamodb import DynamoDBClient
from tests.cloud import aws_services as aws
from tests.cloud.aws_services import Intercepted
from tests.contract.samples import NOW, first, message
from tests.fakes import FakeClock
from tests.simulation import simulated_services

from pushhub.base.errors import Conflict
from pushhub.base.verdict import Verdict
from pushhub.engine.store.dynamodb_schedule import LITTLE, MINUTES_PER_LOOK, SHARDS, DynamoDBSchedule

HOUR = 3_600_000


class Bench:
    """The schedule on a client whose calls are recorded."""

    def __init__(self, client: DynamoDBClient) -> None:
        self.client = Intercepted(client)
        self.clock = FakeClock()
        self.schedule = self.another()

    def another(self) -> DynamoDBSchedule:
        """The schedule as another execution environment has it."""
        return DynamoDBSchedule(cast(DynamoDBClient, self.client), aws.SCHEDULE_TABLE, self.clock)


@pytest.fixture
def bench() -> Iterator[Bench]:
    with simulated_services.dynamodb() as client:
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
    entries, behind = bench.another().due(position, NOW + 100 * HOUR, 10)
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


def looked(bench: Bench, schedule: DynamoDBSchedule) -> list[str]:
    """What wake does each minute; the messages that it finds, which it moves past."""
    found = []
    for position in schedule.positions():
        entries, passed = schedule.due(position, bench.clock.now(), 1000)
        # What another one has moved past since it was last asked for is not found again.
        with suppress(Conflict):
            if entries:
                schedule.move(position, passed)
            found += [each.key.message_id for each in entries]
    return found


def test_while_the_table_holds_little_one_read_of_it_says_that_nothing_is_due(bench: Bench) -> None:
    # Given a table with its positions, and entries of later and of long ago, in two shards
    looked(bench, bench.schedule)
    for number, hours in enumerate((-100, 5)):
        entered = DynamoDBSchedule(cast(DynamoDBClient, bench.client), aws.SCHEDULE_TABLE, FakeClock(NOW - 200 * HOUR))
        entered.enter(first(message(message_id=f"{number}"), Verdict.FAILED, due_at=NOW + hours * HOUR))
    queries, reads = bench.client.count("query"), bench.client.count("scan")
    # When wake looks each minute for an hour
    for _ in range(60):
        bench.clock.advance(seconds=60)
        assert looked(bench, bench.schedule) == []
    # Then it read the table once each time, consistently, and asked no shard
    scans = [call for operation, call in bench.client.calls if operation == "scan"]
    assert (bench.client.count("query") - queries, len(scans) - reads) == (0, 60)
    assert all(call["ConsistentRead"] for call in scans)


@pytest.mark.parametrize("more", [0, LITTLE])
def test_what_is_entered_is_found_in_its_minute_however_much_the_table_holds(bench: Bench, more: int) -> None:
    # Given wakes in two environments that look each minute, and much or little that is due another day
    others = [bench.schedule, bench.another()]
    for number in range(more):
        bench.schedule.enter(first(message(message_id=f"9{number}"), Verdict.FAILED, due_at=NOW + 48 * HOUR))
    due: dict[str, int] = {}
    for minute in range(12):
        now = bench.clock.now()
        # When something is entered every other minute, due in two to seven minutes
        if minute % 2 == 0 and minute < 6:
            name = f"{minute}"
            due[name] = now + 120_000 + (minute * 7_919 % 5) * 60_000 + minute * 977
            bench.schedule.enter(first(message(message_id=name), Verdict.FAILED, due_at=due[name]))
        bench.clock.advance(seconds=60)
        for name in looked(bench, others[minute % 2]):
            # Then it is found when it is due, within a minute; perhaps by the other one, too, which is harmless
            assert 0 <= bench.clock.now() - due.pop(name, bench.clock.now()) <= 60_000
    assert due == {}


def test_a_table_that_holds_much_is_read_as_a_whole_once_in_half_an_hour(bench: Bench) -> None:
    for number in range(LITTLE):
        bench.schedule.enter(first(message(message_id=f"{number}"), Verdict.FAILED, due_at=NOW + 48 * HOUR))
    for _ in range(3):
        looked(bench, bench.schedule)
        bench.clock.advance(seconds=720)
    assert bench.client.count("scan") == 1
    bench.schedule.positions()
    assert bench.client.count("scan") == 2


def test_a_role_that_may_not_read_the_whole_table_asks_each_shard(bench: Bench) -> None:
    # As in the moments of an update in which the code is newer than its role
    def refused(**_: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "Scan")

    bench.client.scan = refused  # type: ignore[attr-defined]
    assert looked(bench, bench.schedule) == []
    assert bench.client.count("query") >= SHARDS


def test_positions_are_read_once_in_half_an_hour_while_nothing_is_due(bench: Bench) -> None:
    # Given shards whose positions were made
    known = bench.schedule.positions()
    before = bench.client.count("batch_get_item")
    # When wake asks for them each minute for an hour and a half
    for _ in range(90):
        bench.clock.advance(seconds=60)
        assert bench.schedule.positions() == known
    # Then they were read three times
    assert bench.client.count("batch_get_item") - before == 3


def test_positions_are_read_again_once_something_is_due_or_somebody_else_has_moved_one(bench: Bench) -> None:
    # Given two environments that know where all shards stand, and an entry in one of these
    other = bench.another()
    assert bench.schedule.positions() == other.positions()
    bench.schedule.enter(first(message(), Verdict.FAILED, due_at=NOW + 180_000))
    _, call = bench.client.calls[-1]
    shard = int(call["Item"]["pk"]["S"].partition("#")[2])
    bench.clock.advance(seconds=240)
    # When one has found that, and moved past it
    position = bench.schedule.positions()[shard]
    entries, behind = bench.schedule.due(position, bench.clock.now(), 10)
    assert len(entries) == 1
    bench.schedule.move(position, behind)
    before = bench.client.count("batch_get_item")
    assert bench.schedule.positions()[shard] == behind
    # Then it has read again where shards stand, as others may work on what is due, too
    assert bench.client.count("batch_get_item") == before + 1
    # And the other goes by what it knows, is refused, and knows better
    stale = other.positions()[shard]
    assert stale == position
    with pytest.raises(Conflict):
        other.move(stale, stale.at(stale.minute + 1, ""))
    assert other.positions()[shard] == behind


def test_positions_of_which_another_run_has_one_are_not_remembered(bench: Bench) -> None:
    position = bench.schedule.positions()[3]
    other = bench.another()
    other.move(position, replace(position, taken_until=bench.clock.now() + 50_000))
    mine = bench.another()
    assert mine.positions()[3].taken_until > bench.clock.now()
    # When it is given back
    other.move(mine.positions()[3], position)
    # Then that is seen at once
    assert mine.positions()[3].taken_until == 0
