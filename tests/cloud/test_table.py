"""Batches that DynamoDB leaves undone, pages, and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from mypy_boto3_dynamodb import DynamoDBClient
from tests.cloud import aws_services as aws
from tests.cloud.aws_services import Intercepted
from tests.fakes import FakeClock

from pushhub.base.errors import Contended, Unavailable
from pushhub.cloud.table import Item, Table, WritesRefused, text

Answer = Callable[[Callable[..., Any], dict[str, Any]], Any]


class Bench:
    """A table behind a client that can be made to fail."""

    def __init__(self, client: DynamoDBClient) -> None:
        self.client = Intercepted(client)
        self.clock = FakeClock(jitter=1.0)
        self.table = Table(cast(DynamoDBClient, self.client), aws.CONFIG_TABLE, self.clock)


@pytest.fixture
def bench() -> Iterator[Bench]:
    with aws.dynamodb() as client:
        yield Bench(client)


def items(count: int) -> list[Item]:
    return [{"pk": text("p"), "sk": text(f"{number:03d}")} for number in range(count)]


def writes_only(done: int) -> Answer:
    """The service writes the first entries of a batch and leaves the rest."""

    def answer(real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
        (entries,) = parameters["RequestItems"].values()
        if done:
            real(RequestItems={aws.CONFIG_TABLE: entries[:done]})
        return {"UnprocessedItems": {aws.CONFIG_TABLE: entries[done:]}}

    return answer


def reads_only(done: int) -> Answer:
    """The service reads the first keys of a batch and leaves the rest."""

    def answer(real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
        (wanted,) = parameters["RequestItems"].values()
        keys = wanted["Keys"]
        found = real(RequestItems={aws.CONFIG_TABLE: {**wanted, "Keys": keys[:done]}})
        return {**found, "UnprocessedKeys": {aws.CONFIG_TABLE: {**wanted, "Keys": keys[done:]}}}

    return answer


def test_what_a_batch_write_leaves_is_written_in_further_rounds(bench: Bench) -> None:
    # Given a service that first writes 20, then 3 of a batch
    bench.client.next("batch_write_item", writes_only(20))
    bench.client.next("batch_write_item", writes_only(3))
    # When 30 items are written
    bench.table.put_many(items(30))
    # Then all are stored, only the rest was sent again, and the waits grew
    assert len(list(bench.table.items(**everything()))) == 30
    sizes = [len(call["RequestItems"][aws.CONFIG_TABLE]) for _, call in bench.client.calls if "RequestItems" in call]
    assert sizes == [25, 5, 2, 5]
    assert bench.clock.slept == [0.05, 0.1]


def test_a_batch_write_that_stays_undone_is_unavailable(bench: Bench) -> None:
    for _ in range(5):
        bench.client.next("batch_write_item", writes_only(0))
    with pytest.raises(Unavailable, match="BatchWriteItem"):
        bench.table.put_many(items(2))
    assert bench.client.count("batch_write_item") == 5
    assert sum(bench.clock.slept) < 1


def test_what_a_batch_read_leaves_is_read_in_further_rounds(bench: Bench) -> None:
    # Given 130 items and a service that first reads 60 of a hundred
    bench.table.put_many(items(130))
    bench.client.next("batch_get_item", reads_only(60))
    # When all are read, then all are found
    found = bench.table.get_many(items(130))
    assert sorted(each["sk"]["S"] for each in found) == [each["sk"]["S"] for each in items(130)]
    assert bench.client.count("batch_get_item") == 3


def test_a_batch_read_that_stays_undone_is_unavailable(bench: Bench) -> None:
    for _ in range(5):
        bench.client.next("batch_get_item", reads_only(1))
    with pytest.raises(Unavailable, match="BatchGetItem"):
        bench.table.get_many(items(20))


def leaves(*tables: str) -> Answer:
    """The service reads none of the keys of some tables, and leaves those."""

    def answer(real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
        wanted = parameters["RequestItems"]
        found = real(RequestItems={name: each for name, each in wanted.items() if name not in tables})
        return {**found, "UnprocessedKeys": {name: wanted[name] for name in tables}}

    return answer


def test_an_item_of_another_table_is_read_beside_many(bench: Bench) -> None:
    # Given 130 items, one of another table, and a service that first leaves the other one
    bench.table.put_many(items(130))
    other = items(1)[0] | {"name": text("x")}
    bench.client.put_item(TableName=aws.MESSAGES_TABLE, Item=other)
    bench.client.next("batch_get_item", leaves(aws.MESSAGES_TABLE))
    # When all are read, then all are found, in a round more than calls are needed for so many
    beside, found = bench.table.get_many_beside(aws.MESSAGES_TABLE, items(1)[0], items(130))
    assert beside == other
    assert sorted(each["sk"]["S"] for each in found) == [each["sk"]["S"] for each in items(130)]
    assert bench.client.count("batch_get_item") == 3
    # And one that is not there is none
    assert bench.table.get_many_beside(aws.MESSAGES_TABLE, items(2)[1], items(1)) == (None, items(1))


@pytest.mark.parametrize("left", [aws.MESSAGES_TABLE, aws.CONFIG_TABLE])
def test_one_of_two_tables_that_stays_unread_is_unavailable(bench: Bench, left: str) -> None:
    for _ in range(5):
        bench.client.next("batch_get_item", leaves(left))
    with pytest.raises(Unavailable, match="BatchGetItem"):
        bench.table.get_many_beside(aws.MESSAGES_TABLE, items(1)[0], items(2))


def test_every_batch_read_is_consistent(bench: Bench) -> None:
    bench.table.get_many(items(101))
    reads = [call["RequestItems"][aws.CONFIG_TABLE] for _, call in bench.client.calls]
    assert [read["ConsistentRead"] for read in reads] == [True, True]


def test_pages_are_read_only_as_far_as_asked_for(bench: Bench) -> None:
    # Given ten items in pages of three
    bench.table.put_many(items(10))
    found = bench.table.items(**everything(), Limit=3)
    # When four are taken, then two pages were read
    assert [next(found)["sk"]["S"] for _ in range(4)] == ["000", "001", "002", "003"]
    assert bench.client.count("query") == 2
    assert len(list(found)) == 6


@pytest.mark.parametrize("failure", [aws.fails, aws.times_out])
@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("get_item", lambda table: table.get(items(1)[0])),
        ("put_item", lambda table: table.put(items(1)[0])),
        ("update_item", lambda table: table.update(items(1)[0], UpdateExpression="REMOVE a")),
        ("delete_item", lambda table: table.delete(items(1)[0])),
        ("query", lambda table: list(table.items(**everything()))),
        ("batch_get_item", lambda table: table.get_many(items(1))),
        ("batch_write_item", lambda table: table.put_many(items(1))),
        ("transact_write_items", lambda table: table.write_together([put("000")])),
    ],
)
def test_what_goes_wrong_is_unavailable_with_its_cause(
    bench: Bench, failure: Answer, operation: str, call: Callable[[Table], object]
) -> None:
    # Given a service that fails, or does not answer
    bench.client.next(operation, failure)
    # When it is called, then the error names the operation and keeps the cause
    with pytest.raises(Unavailable) as raised:
        call(bench.table)
    assert raised.value.operation == "dynamodb:" + operation.title().replace("_", "")
    assert isinstance(raised.value.__cause__, ClientError | ReadTimeoutError)


def put(sort_key: str) -> tuple[str, dict[str, Any]]:
    return "Put", {"Item": {"pk": text("p"), "sk": text(sort_key)}, "ConditionExpression": "attribute_not_exists(pk)"}


def test_writes_that_belong_together_are_all_made_or_none(bench: Bench) -> None:
    # Given an item that is there already
    bench.table.write_together([put("000"), put("001")])
    # When one of several writes is refused, then the error says which, and none was made
    with pytest.raises(WritesRefused) as refused:
        bench.table.write_together([put("002"), put("001")])
    assert refused.value.conditions == (False, True)
    assert [each["sk"]["S"] for each in bench.table.items(**everything())] == ["000", "001"]


def cancelled(*codes: str) -> Answer:
    def answer(_: Callable[..., Any], __: dict[str, Any]) -> Any:
        reasons = [{"Code": code} for code in codes]
        error: Any = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": reasons}
        raise ClientError(error, "TransactWriteItems")

    return answer


def test_writes_that_meet_others_are_made_again_under_the_same_token(bench: Bench) -> None:
    # Given a service that is busy with one of the items, twice
    bench.client.next("transact_write_items", cancelled("None", "TransactionConflict"))
    bench.client.next("transact_write_items", cancelled("ThrottlingError", "None"))
    # When they are written, then they are stored in the end, and DynamoDB can tell that it was one request
    bench.table.write_together([put("000"), put("001")])
    assert len(list(bench.table.items(**everything()))) == 2
    tokens = {call["ClientRequestToken"] for _, call in bench.client.calls if "ClientRequestToken" in call}
    assert (bench.client.count("transact_write_items"), len(tokens)) == (3, 1)


@pytest.mark.parametrize(
    ("code", "throttled", "contended"),
    [("TransactionConflict", False, True), ("ThrottlingError", True, False)],
)
def test_writes_that_meet_others_for_too_long_are_unavailable(
    bench: Bench, code: str, throttled: bool, contended: bool
) -> None:
    for _ in range(5):
        bench.client.next("transact_write_items", cancelled(code, "None"))
    with pytest.raises(Unavailable, match="TransactWriteItems") as raised:
        bench.table.write_together([put("000"), put("001")])
    assert (raised.value.throttled, isinstance(raised.value, Contended)) == (throttled, contended)


def everything() -> dict[str, Any]:
    return {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": text("p")}}
