"""The simulator's models of AWS pass the stores' contract tests, like moto; and also do what moto does not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

import pytest
from botocore.exceptions import ClientError
from simulation.dynamodb import READS_PER_KEY, WRITES_PER_KEY, DynamoDB, Index, Schema
from simulation.sqs import MOST_BYTES, MOST_COPIES, Chances, Queue, QueueSettings, Sqs
from simulation.storage import A_PAGE, S3
from tests.fakes import FakeClock

from pushhub.cloud.bucket import Bucket

ROOT = Path(__file__).parents[2]
DAY_S = 86_400


def test_every_store_keeps_its_contract_on_the_models() -> None:
    # When the contract tests of all adapters run on the simulator's services instead of moto
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "tests/contract",
            "-k",
            "dynamodb or sqs or s3",
            "-p",
            "no:cacheprovider",
        ],
        cwd=ROOT,
        env={**os.environ, "SERVICES": "simulation", "PYTHONPATH": "layers/pushhub:."},
        capture_output=True,
        text=True,
        check=False,
    )
    # Then they pass
    assert run.returncode == 0, run.stdout
    assert " passed" in run.stdout


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def queue(clock: FakeClock, chances: Chances | None = None, most: int = 120_000, **settings: object) -> Queue:
    created = QueueSettings("q", **settings)  # type: ignore[arg-type]
    return Queue(created, now_ms=clock.now, random=Random(1), chances=chances or Chances(), most_in_flight=most)


def test_a_message_is_hidden_for_twelve_hours_at_most(clock: FakeClock) -> None:
    # Given a message that was received an hour ago
    waiting = queue(clock, visibility_s=7_200)
    waiting.send("x")
    [received] = waiting.receive(10)
    clock.advance(seconds=3_600)
    # When it is to be hidden beyond twelve hours after its receive, then that is refused; up to that it is not
    assert waiting.defer(received.handle, 39_600) == "InvalidParameterValue"
    assert waiting.defer(received.handle, 39_599) == ""
    clock.advance(seconds=39_598)
    assert waiting.receive(10) == []
    clock.advance(seconds=1)
    assert [each.body for each in waiting.receive(10)] == ["x"]


def test_a_message_received_too_often_goes_to_the_dead_letters_with_its_age(clock: FakeClock) -> None:
    # Given a queue that gives up after two receives
    waiting, dead = queue(clock, visibility_s=1, dead_letters="d", receives=2), queue(clock)
    waiting.dead = dead
    waiting.send("x")
    sent_at = clock.now()
    for _ in range(2):
        assert waiting.receive(10)
        clock.advance(seconds=1)
    # When it is received a third time, then it is in the other queue, with its age
    assert waiting.receive(10) == []
    clock.advance(seconds=13 * DAY_S)
    [found] = dead.receive(10)
    assert (found.body, found.sent_at) == ("x", sent_at)


def test_a_message_is_dropped_fourteen_days_after_it_was_sent(clock: FakeClock) -> None:
    waiting = queue(clock)
    waiting.send("x")
    clock.advance(seconds=14 * DAY_S)
    assert waiting.receive(10) == []
    assert len(waiting) == 0


def test_nothing_is_handed_out_while_too_many_are_in_flight(clock: FakeClock) -> None:
    # Given a queue at its limit
    waiting = queue(clock, most=3, visibility_s=60)
    for _ in range(5):
        waiting.send("x")
    assert len(waiting.receive(3)) == 3
    # When more are requested, then it returns nothing; once one is deleted, it does
    assert waiting.receive(10) == []
    assert (waiting.in_flight, waiting.stopped) == (3, 1)


def test_a_stale_handle_neither_deletes_nor_hides_what_another_received(clock: FakeClock) -> None:
    waiting = queue(clock, visibility_s=5)
    waiting.send("x")
    [first] = waiting.receive(1)
    clock.advance(seconds=5)
    [second] = waiting.receive(1)
    assert waiting.defer(first.handle, 100) == "MessageNotInflight"
    assert not waiting.delete(first.handle)
    assert waiting.delete(second.handle)
    assert len(waiting) == 0


def test_a_group_of_a_fifo_queue_has_one_batch_in_flight_and_keeps_its_order(clock: FakeClock) -> None:
    # Given two groups
    waiting = queue(clock, fifo=True, visibility_s=5)
    for number, group in enumerate("aab"):
        waiting.send(f"{group}{number}", group=group, once=str(number))
    # When one message of a group is in flight, then no other of it is handed out, but those of other groups are
    [first] = waiting.receive(1)
    assert first.body == "a0"
    assert [each.body for each in waiting.receive(10)] == ["b2"]
    # And when its time is over, it comes first again, and those behind it in the same batch
    clock.advance(seconds=5)
    assert [each.body for each in waiting.receive(10) if each.group == "a"] == ["a0", "a1"]


def test_a_fifo_queue_drops_what_it_was_sent_within_five_minutes(clock: FakeClock) -> None:
    waiting = queue(clock, fifo=True)
    for seconds in (0, 299, 2):
        clock.advance(seconds=seconds)
        waiting.send("x", group="g", once="same")
    assert len(waiting) == 2


def test_a_duplicate_has_the_same_id_and_a_handle_of_its_own(clock: FakeClock) -> None:
    waiting = queue(clock, Chances(repeats=lambda _: True), visibility_s=1_000_000)
    waiting.send("order of 1910872757046663791")
    [first] = waiting.receive(10)
    clock.advance(seconds=900)
    [again] = waiting.receive(10)
    assert again.message_id == first.message_id
    assert again.handle != first.handle
    # And each is counted for what it names
    assert waiting.copied == {"1910872757046663791": 2}


def test_what_is_about_one_message_is_repeated_a_limited_number_of_times(clock: FakeClock) -> None:
    # Given a queue that repeats each message, and a receiver that lets each copy come again
    waiting = queue(clock, Chances(repeats=lambda _: True), visibility_s=60)
    waiting.send("order of 1910872757046663791")
    # When it is received for an hour
    for _ in range(60):
        clock.advance(seconds=61)
        waiting.receive(1_000)
    # Then there are no more copies than one queue makes
    assert waiting.copied == {"1910872757046663791": MOST_COPIES}
    assert len(waiting) == 1 + MOST_COPIES


def test_an_index_is_late_and_a_table_is_not(clock: FakeClock) -> None:
    # Given an index with a lag of five seconds
    schema = Schema("t", indexes=(Index("due", "part", "at"),))
    service = DynamoDB([schema], now_ms=clock.now, lag_ms=lambda: 5_000)
    item = {"pk": {"S": "a"}, "sk": {"S": "b"}, "part": {"S": "0"}, "at": {"S": "1"}}
    service.put_item(TableName="t", Item=item)

    def listed() -> int:
        found = service.query(
            TableName="t",
            IndexName="due",
            KeyConditionExpression="part = :part",
            ExpressionAttributeValues={":part": {"S": "0"}},
        )
        return int(found["Count"])

    # Then the table shows a write at once, the index only later
    assert service.get_item(TableName="t", Key={"pk": {"S": "a"}, "sk": {"S": "b"}})["Item"] == item
    assert listed() == 0
    clock.advance(seconds=5)
    assert listed() == 1


def test_a_key_that_had_a_thousand_units_in_a_second_takes_no_more_until_the_next(clock: FakeClock) -> None:
    # Given a table in which many items have the same key of its index
    service = DynamoDB([Schema("t", indexes=(Index("due", "part", "at"),))], now_ms=clock.now)

    def put(number: int, **more: Any) -> None:
        service.put_item(TableName="t", Item={"pk": {"S": f"{number}"}, "sk": {"S": "b"}, **more})

    due = {"part": {"S": "0"}, "at": {"S": "1"}}
    for number in range(WRITES_PER_KEY):
        put(number, **due)
    # When another one of them is written in the same second, then it is refused, and not stored
    with pytest.raises(ClientError, match="ThrottlingException"):
        put(WRITES_PER_KEY, **due)
    assert service.tables["t"].item({"pk": {"S": f"{WRITES_PER_KEY}"}, "sk": {"S": "b"}}) is None
    assert service.tables["t"].refused == 1
    # But other keys can be written, and this one a second later
    put(WRITES_PER_KEY)
    clock.advance(seconds=1)
    put(WRITES_PER_KEY, **due)


def test_an_item_that_is_read_too_often_in_a_second_is_left_unprocessed_by_a_batch(clock: FakeClock) -> None:
    service = DynamoDB([Schema("t")], now_ms=clock.now)
    key = {"pk": {"S": "a"}, "sk": {"S": "b"}}
    service.put_item(TableName="t", Item=key)
    for _ in range(READS_PER_KEY):
        service.get_item(TableName="t", Key=key, ConsistentRead=True)
    asked = {"t": {"Keys": [key], "ConsistentRead": True}}
    assert service.batch_get_item(RequestItems=asked) == {"Responses": {"t": []}, "UnprocessedKeys": asked}
    clock.advance(seconds=1)
    assert service.batch_get_item(RequestItems=asked) == {"Responses": {"t": [key]}}


def test_a_batch_reads_of_several_tables(clock: FakeClock) -> None:
    service = DynamoDB([Schema("t"), Schema("u")], now_ms=clock.now)
    service.put_item(TableName="u", Item=KEY)
    asked = {name: {"Keys": [KEY], "ConsistentRead": True} for name in ("t", "u")}
    assert service.batch_get_item(RequestItems=asked) == {"Responses": {"t": [], "u": [KEY]}}


def test_a_transaction_repeated_with_its_token_is_made_once(clock: FakeClock) -> None:
    service = DynamoDB([Schema("t")], now_ms=clock.now)
    update = {
        "Update": {
            "TableName": "t",
            "Key": {"pk": {"S": "a"}, "sk": {"S": "b"}},
            "UpdateExpression": "ADD used :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
    }
    for _ in range(2):
        service.transact_write_items(TransactItems=[update], ClientRequestToken="same")
    assert service.tables["t"].item({"pk": {"S": "a"}, "sk": {"S": "b"}})["used"] == {"N": "1"}  # type: ignore[index]


def test_a_read_that_is_not_consistent_shows_a_table_as_it_was(clock: FakeClock) -> None:
    # Given items that were put, changed and deleted within a second
    service = DynamoDB([Schema("t")], now_ms=clock.now, stale_ms=lambda: 1_500)

    def key(sk: str) -> dict[str, Any]:
        return {"pk": {"S": "a"}, "sk": {"S": sk}}

    for each in ("changed", "deleted"):
        service.put_item(TableName="t", Item={**key(each), "n": {"N": "1"}})
    clock.advance(seconds=2)
    service.put_item(TableName="t", Item={**key("changed"), "n": {"N": "2"}})
    service.put_item(TableName="t", Item={**key("changed"), "n": {"N": "3"}})
    service.delete_item(TableName="t", Key=key("deleted"))
    service.put_item(TableName="t", Item=key("new"))
    clock.advance(seconds=1)

    def shown(**more: Any) -> list[list[str]]:
        partition: dict[str, Any] = {
            "KeyConditionExpression": "pk = :a",
            "ExpressionAttributeValues": {":a": {"S": "a"}},
        }
        found = [service.query(TableName="t", **partition, **more)["Items"]]
        found.append(service.scan(TableName="t", **more)["Items"])
        asked: dict[str, Any] = {"t": {"Keys": [key("changed"), key("deleted"), key("new")], **more}}
        found.append(service.batch_get_item(RequestItems=asked)["Responses"]["t"])
        got = (service.get_item(TableName="t", Key=each, **more).get("Item") for each in asked["t"]["Keys"])
        found.append([each for each in got if each])
        return [sorted(each["sk"]["S"] + each.get("n", {"N": ""})["N"] for each in items) for items in found]

    # Then a read that is not consistent shows none of that, however it is made
    assert shown() == [["changed1", "deleted1"]] * 4
    # But a consistent one does, and so does any once that is long ago
    assert shown(ConsistentRead=True) == [["changed3", "new"]] * 4
    clock.advance(seconds=1)
    assert shown() == [["changed3", "new"]] * 4


def test_writes_to_the_items_of_a_transaction_in_progress_conflict_with_it(clock: FakeClock) -> None:
    # Given a transaction in progress
    service = DynamoDB([Schema("t")], now_ms=clock.now)
    item = {"pk": {"S": "a"}, "sk": {"S": "b"}}
    put = {"Put": {"TableName": "t", "Item": item}}
    ends = service.hold([put])

    # When its item is written by others, then they are refused, each in its way
    other = {"Put": {"TableName": "t", "Item": {**item, "sk": {"S": "c"}}}}
    with pytest.raises(ClientError) as cancelled:
        service.transact_write_items(TransactItems=[other, put], ClientRequestToken="1")
    reasons: Any = cancelled.value.response
    assert reasons["CancellationReasons"] == [{"Code": "None"}, {"Code": "TransactionConflict"}]
    with pytest.raises(ClientError, match="TransactionConflictException"):
        service.put_item(TableName="t", Item=item)
    with pytest.raises(ClientError, match="TransactionConflictException"):
        service.delete_item(TableName="t", Key=item)
    inserted = service.batch_execute_statement(
        Statements=[{"Statement": "INSERT INTO \"t\" VALUE {'pk': ?, 'sk': ?}", "Parameters": [*item.values()]}]
    )
    assert inserted["Responses"][0]["Error"]["Code"] == "TransactionConflict"

    # And may be read; once it has ended, they may be written
    assert service.get_item(TableName="t", Key=item, ConsistentRead=True) == {}
    ends()
    service.transact_write_items(TransactItems=[other, put], ClientRequestToken="1")
    service.put_item(TableName="t", Item=item)


def test_a_wait_in_flight_of_more_than_a_minute_is_noted(clock: FakeClock) -> None:
    # Given two messages that were received
    waiting = queue(clock, visibility_s=30)
    waiting.send("short")
    waiting.send("long")
    handles = {each.body: each.handle for each in waiting.receive(10)}
    # When one is hidden for a minute, and one for ten, then the second is recorded with its time
    assert waiting.defer(handles["short"], 60) == waiting.defer(handles["long"], 600) == ""
    assert waiting.long == [(clock.now(), 600, "long")]


KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}


def keys(count: int) -> list[dict[str, Any]]:
    return [{"pk": {"S": "a"}, "sk": {"S": f"{number}"}} for number in range(count)]


def puts(count: int, size: int) -> list[dict[str, Any]]:
    return [{"Put": {"TableName": "t", "Item": {**each, "x": {"B": b"x" * size}}}} for each in keys(count)]


@pytest.mark.parametrize(
    ("operation", "parameters", "taken"),
    [
        ("put_item", {"TableName": "t", "Item": {**KEY, "x": {"B": b"x" * 409_500}}}, True),
        ("put_item", {"TableName": "t", "Item": {**KEY, "x": {"B": b"x" * 409_600}}}, False),
        ("put_item", {"TableName": "t", "Item": KEY, "ReturnValues": "ALL_OLD"}, True),
        ("put_item", {"TableName": "t", "Item": KEY, "ReturnValues": "ALL_NEW"}, False),
        ("delete_item", {"TableName": "t", "Key": KEY, "ReturnValues": "UPDATED_OLD"}, False),
        ("batch_get_item", {"RequestItems": {"t": {"Keys": keys(100)}}}, True),
        ("batch_get_item", {"RequestItems": {"t": {"Keys": keys(101)}}}, False),
        ("batch_get_item", {"RequestItems": {"t": {"Keys": [KEY, KEY]}}}, False),
        ("batch_get_item", {"RequestItems": {"t": {"Keys": []}}}, False),
        ("batch_write_item", {"RequestItems": {"t": [{"PutRequest": {"Item": each}} for each in keys(25)]}}, True),
        ("batch_write_item", {"RequestItems": {"t": [{"PutRequest": {"Item": each}} for each in keys(26)]}}, False),
        ("batch_write_item", {"RequestItems": {"t": [{"PutRequest": {"Item": KEY}}] * 2}}, False),
        ("put_item", {"TableName": "t", "Item": {"pk": {"S": "a" * 2_048}, "sk": {"S": "b" * 1_024}}}, True),
        ("put_item", {"TableName": "t", "Item": {**KEY, "pk": {"S": "a" * 2_049}}}, False),
        ("put_item", {"TableName": "t", "Item": {**KEY, "sk": {"S": "ü" * 513}}}, False),
        ("put_item", {"TableName": "t", "Item": {**KEY, "sk": {"S": ""}}}, False),
        ("put_item", {"TableName": "t", "Item": {**KEY, "due": {"S": ""}, "who": {"S": "x"}}}, False),
        ("get_item", {"TableName": "t", "Key": {**KEY, "sk": {"S": "b" * 1_025}}}, False),
        ("batch_get_item", {"RequestItems": {"t": {"Keys": [{**KEY, "pk": {"S": "a" * 2_049}}]}}}, False),
        ("transact_write_items", {"TransactItems": puts(16, 262_000), "ClientRequestToken": "1"}, True),
        ("transact_write_items", {"TransactItems": puts(16, 262_144), "ClientRequestToken": "1"}, False),
    ],
)
def test_a_request_that_dynamodb_would_not_take_is_refused_as_a_whole(
    clock: FakeClock, operation: str, parameters: dict[str, Any], taken: bool
) -> None:
    service = DynamoDB([Schema("t", indexes=(Index("by", "who", "due"),))], now_ms=clock.now)
    if taken:
        getattr(service, operation)(**parameters)
        return
    with pytest.raises(ClientError, match="ValidationException"):
        getattr(service, operation)(**parameters)
    assert not list(service.tables["t"].everything())


def written(expression: str, names: Any = None, **values: Any) -> tuple[str, dict[str, Any]]:
    given: dict[str, Any] = {"TableName": "t", "Key": KEY, "UpdateExpression": expression}
    given |= {} if names is None else {"ExpressionAttributeNames": names}
    return "update_item", given | ({"ExpressionAttributeValues": values_of(values)} if values else {})


def queried(expression: str = "", more: Mapping[str, Any] = MappingProxyType({}), **values: Any) -> Any:
    asked = {"TableName": "t", "KeyConditionExpression": f"pk = :pk{expression}"}
    return "query", {**asked, "ExpressionAttributeValues": values_of({"pk": {"S": "a"}, **values}), **more}


def values_of(values: Mapping[str, Any]) -> dict[str, Any]:
    return {f":{name}": each for name, each in values.items()}


ONE, TEXT = {"N": "1"}, {"S": "a"}
OF_INDEX = {"KeyConditionExpression": "who = :pk", "IndexName": "by"}


@pytest.mark.parametrize(
    ("call", "taken"),
    [
        (written("SET x = if_not_exists(x, :x), z = :x ADD y :x", x=ONE), True),
        (written("SET pk = :x", x=TEXT), False),
        (written("SET x = :x, x = :x", x=ONE), False),
        (written("SET x = :x, x.y = :x", x=ONE), False),
        (written("SET x = :x SET y = :x", x=ONE), False),
        (written("SET status = :x", x=ONE), False),
        (written("SET #status = :x", {"#status": "status"}, x=ONE), True),
        (written("SET x = :x", x=ONE, y=ONE), False),
        (written("SET x = :x", {"#y": "y"}, x=ONE), False),
        (written("SET x = :x", {}, x=ONE), False),
        (written("SET x = :x", x={"N": "1" * 38}), True),
        (written("SET x = :x", x={"N": "1" * 39}), False),
        (written("SET x = :x", x={"N": "1e-130"}), True),
        (written("SET x = :x", x={"N": "1e126"}), False),
        (written("SET x = :x", x={"N": "nan"}), False),
        (written("ADD x :x", x={"SS": []}), False),
        (written("ADD x :x", x={"NS": ["1", "1"]}), False),
        (written("SET x = :x", x={"M": {"": ONE}}), False),
        (written("SET x = :x", x={"S": "\ud800"}), False),
        (written("SET x" + "x" * 4_096 + " = :x", x=ONE), False),
        (queried(" AND sk BETWEEN :a AND :b", a={"S": "a"}, b={"S": "a"}), True),
        (queried(" AND sk BETWEEN :a AND :b", a={"S": "b"}, b={"S": "a"}), False),
        (queried(" AND begins_with(sk, :a)", a={"S": ""}), False),
        (queried(" AND begins_with(sk, :a)", a={"S": "a" * 1_025}), False),
        (queried(" AND ((sk = :a))", a=TEXT), False),
        (queried(more={"FilterExpression": "x = :x"}, x=ONE), True),
        (queried(more={"FilterExpression": "sk = :x"}, x=TEXT), False),
        (queried(more={"Limit": 0}), False),
        (queried(more=OF_INDEX), True),
        (queried(more={**OF_INDEX, "ConsistentRead": True}), False),
        (queried(more={"ExclusiveStartKey": KEY}), True),
        (queried(more={"ExclusiveStartKey": {**KEY, "pk": {"S": "b"}}}), False),
        (queried(" AND sk > :a", {"ExclusiveStartKey": KEY}, a={"S": "c"}), False),
        (queried(more={**OF_INDEX, "ExclusiveStartKey": KEY}), False),
        (queried(more={"Select": "COUNT", "ProjectionExpression": "x"}), False),
    ],
)
def test_expressions_that_dynamodb_would_not_take_are_refused(clock: FakeClock, call: Any, taken: bool) -> None:
    service = DynamoDB([Schema("t", indexes=(Index("by", "who", "due"),))], now_ms=clock.now)
    operation, parameters = call
    if taken:
        getattr(service, operation)(**parameters)
        return
    with pytest.raises(ClientError, match="ValidationException"):
        getattr(service, operation)(**parameters)


@pytest.mark.parametrize(
    ("fifo", "entries", "code"),
    [
        (False, [{}], ""),
        (False, [], "EmptyBatchRequest"),
        (False, [{}] * 11, "TooManyEntriesInBatchRequest"),
        (False, [{"Id": "0"}] * 2, "BatchEntryIdsNotDistinct"),
        (False, [{"Id": "a b"}], "InvalidBatchEntryId"),
        (False, [{}, {"MessageBody": ""}], "MissingParameter"),
        (False, [{"MessageBody": "\uffff"}], "InvalidMessageContents"),
        (False, [{"MessageBody": "x" * MOST_BYTES}], ""),
        (
            False,
            [{"MessageBody": "x" * (MOST_BYTES // 2)}, {"MessageBody": "ü" * (MOST_BYTES // 3)}],
            "BatchRequestTooLong",
        ),
        (False, [{"DelaySeconds": 901}], "InvalidParameterValue"),
        (False, [{"MessageGroupId": "g" * 128}], ""),
        (False, [{"MessageGroupId": "g" * 129}], "InvalidParameterValue"),
        (False, [{"MessageGroupId": "a b"}], "InvalidParameterValue"),
        (True, [{"MessageGroupId": "g", "MessageDeduplicationId": "1"}], ""),
        (True, [{"MessageGroupId": "g", "MessageDeduplicationId": "1", "DelaySeconds": 1}], "InvalidParameterValue"),
        (True, [{"MessageDeduplicationId": "1"}], "InvalidParameterValue"),
    ],
)
def test_a_batch_that_sqs_would_not_take_is_refused_as_a_whole(
    clock: FakeClock, fifo: bool, entries: list[dict[str, Any]], code: str
) -> None:
    waiting = queue(clock, fifo=fifo)
    service = Sqs({"q": waiting}, Chances())
    batch = [{"Id": str(number), "MessageBody": "x", **each} for number, each in enumerate(entries)]
    if not code:
        assert service.send_message_batch(QueueUrl="https://sqs/q", Entries=batch) == {}
        return
    with pytest.raises(ClientError, match=code):
        service.send_message_batch(QueueUrl="https://sqs/q", Entries=batch)
    assert not waiting.bodies()


def test_the_answer_of_a_batch_ends_at_16_mb_and_the_rest_is_unprocessed(clock: FakeClock) -> None:
    # Given items of 400 KB, of which 41 fit
    service = DynamoDB([Schema("t")], now_ms=clock.now, refuses=False)
    for each in keys(60):
        service.put_item(TableName="t", Item={**each, "x": {"B": b"x" * 409_000}})
    # When all are asked for at once
    answer = service.batch_get_item(RequestItems={"t": {"Keys": keys(60), "ConsistentRead": True}})
    # Then the rest is to be asked for again
    assert len(answer["Responses"]["t"]) == 41
    assert answer["UnprocessedKeys"]["t"] == {"Keys": keys(60)[41:], "ConsistentRead": True}


def test_a_token_is_good_for_one_transaction(clock: FakeClock) -> None:
    service = DynamoDB([Schema("t")], now_ms=clock.now)
    one, other = puts(2, 1), puts(2, 2)
    for _ in range(2):
        assert service.transact_write_items(TransactItems=one, ClientRequestToken="1") == {}
    with pytest.raises(ClientError, match="IdempotentParameterMismatchException"):
        service.transact_write_items(TransactItems=other, ClientRequestToken="1")


def test_a_write_answers_with_what_it_was_asked_for(clock: FakeClock) -> None:
    service = DynamoDB([Schema("t")], now_ms=clock.now)
    old, new = {**KEY, "x": {"N": "1"}}, {**KEY, "x": {"N": "2"}}
    assert service.put_item(TableName="t", Item=old) == {}
    change: dict[str, Any] = {
        "TableName": "t",
        "Key": KEY,
        "UpdateExpression": "SET x = :x",
        "ExpressionAttributeValues": {":x": {"N": "2"}},
    }
    assert service.update_item(**change) == {}
    assert service.update_item(**change, ReturnValues="ALL_NEW") == {"Attributes": new}
    assert service.put_item(TableName="t", Item=old, ReturnValues="ALL_OLD") == {"Attributes": new}
    assert service.delete_item(TableName="t", Key=KEY, ReturnValues="ALL_OLD") == {"Attributes": old}
    # And a refusal shows the item only to who asked for it
    service.put_item(TableName="t", Item=old)
    once: dict[str, Any] = {"TableName": "t", "Item": new, "ConditionExpression": "attribute_not_exists(pk)"}
    ways: list[tuple[dict[str, Any], Any]] = [({}, None), ({"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}, old)]
    for more, shown in ways:
        with pytest.raises(ClientError) as refused:
            service.put_item(**once, **more)
        assert refused.value.response.get("Item") == shown


def test_a_fifo_queue_keeps_what_is_deleted_after_its_time(clock: FakeClock) -> None:
    # Given a message of each kind of queue whose receiver took too long
    for fifo in (False, True):
        waiting = queue(clock, fifo=fifo, visibility_s=5)
        waiting.send("x", group="g", once="1")
        [received] = waiting.receive(1)
        clock.advance(seconds=5)
        # When it is deleted, then a standard queue does it, and a FIFO queue refuses: it comes again
        assert waiting.delete(received.handle) is not fifo
        assert len(waiting.receive(1)) == fifo


def test_a_listing_of_more_than_a_page_is_read_to_its_end() -> None:
    # Given one object more than S3 lists in an answer
    storage = S3()
    for number in range(A_PAGE + 1):
        storage.put_object(Bucket="b", Key=f"a/{number:04}", Body=b"")
    # When the hub's own reader lists them, then the last one is among them
    client: Any = storage
    assert len([*Bucket(client, "b").listed("a/")]) == A_PAGE + 1
