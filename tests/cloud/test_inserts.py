"""Items that arrive at the same time are written in one call, and each is written or its writer is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError
from mypy_boto3_dynamodb import DynamoDBClient
from simulation.dynamodb import DynamoDB, Schema
from simulation.scheduler import Scheduler, VirtualExecutor
from tests.cloud import aws_services as aws
from tests.cloud.aws_services import client_error
from tests.fakes import FakeClock

from pushhub.base.errors import Conflict, Unavailable
from pushhub.cloud.inserts import Inserts
from pushhub.cloud.table import WRITES_PER_CALL, Item, Table, number, text

CALL_US = 5_000


class Slow:
    """The model of DynamoDB with calls that take time, during which others run, and that may fail."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._model = DynamoDB([Schema("table")], now_ms=lambda: scheduler.now // 1_000)
        self.calls: list[tuple[str, int]] = []
        self.failing: dict[str, ClientError] = {}

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        def call(**parameters: Any) -> Any:
            self.calls.append((operation, len(parameters.get("Statements", [None]))))
            self._scheduler.sleep(CALL_US)
            if operation in self.failing:
                raise self.failing[operation]
            return getattr(self._model, operation)(**parameters)

        return call

    def stored(self) -> list[str]:
        return sorted(each["sk"]["S"] for each in self._model.scan(TableName="table")["Items"])


class Writers:
    """Threads that write an item each, in virtual time."""

    def __init__(self) -> None:
        self.scheduler = Scheduler("inserts")
        self.client = Slow(self.scheduler)
        self.table = Table(cast(DynamoDBClient, self.client), "table", FakeClock())
        self._inserts = Inserts(self.table, VirtualExecutor(self.scheduler, 1, lambda work: work()))
        self.outcomes: dict[str, str] = {}

    def write(self, name: str, at_us: int, **more: Any) -> None:
        item: Item = {"pk": text("p"), "sk": text(name), "version": number(1), **more}

        def put() -> None:
            try:
                self._inserts.put(item, lambda: self.table.put_version(item))
            except (Conflict, Unavailable) as error:
                self.outcomes[name] = type(error).__name__
            else:
                self.outcomes[name] = "written"

        self.scheduler.spawn(put, after=at_us)

    def run(self) -> None:
        self.scheduler.run(until=self.scheduler.now + 10_000_000)


@pytest.fixture
def writers() -> Writers:
    return Writers()


def test_an_item_that_nobody_else_writes_beside_is_written_by_itself(writers: Writers) -> None:
    # Given items that come one after the other, When they are written, Then each is a plain call
    for number_ in range(3):
        writers.write(f"i{number_}", number_ * 2 * CALL_US)
    writers.run()
    assert writers.client.calls == [("put_item", 1)] * 3
    assert writers.outcomes == {"i0": "written", "i1": "written", "i2": "written"}


def test_items_that_come_meanwhile_go_together_at_most_as_many_as_fit(writers: Writers) -> None:
    # Given sixty items that come at the same time
    names = [f"i{number_:02d}" for number_ in range(60)]
    for name in names:
        writers.write(name, 0)
    # When they are written
    writers.run()
    # Then all are stored, in a few calls
    assert writers.client.stored() == names
    assert set(writers.outcomes.values()) == {"written"}
    assert sum(count for _, count in writers.client.calls) == 60
    assert max(count for _, count in writers.client.calls) == WRITES_PER_CALL
    assert len(writers.client.calls) <= 5


def test_an_item_that_is_there_already_is_a_conflict_for_its_writer_alone(writers: Writers) -> None:
    # Given an item that somebody else has stored with different content
    writers.write("i3", 0, said=text("by another"))
    writers.run()
    # When it and others are written together
    for number_ in range(6):
        writers.write(f"i{number_}", CALL_US)
    writers.run()
    # Then its writer is told, and the others are stored
    assert writers.outcomes.pop("i3") == "Conflict"
    assert set(writers.outcomes.values()) == {"written"}
    assert len(writers.client.stored()) == 6


def test_a_call_that_is_made_twice_counts_as_written(writers: Writers) -> None:
    # Given items, one of which was stored by this very call when the client made it the first time
    writers.write("i1", 0)
    writers.run()
    writers.outcomes.clear()
    for number_ in range(3):
        writers.write(f"i{number_}", CALL_US)
    writers.run()
    # Then its writer sees its own item
    assert writers.outcomes == {"i0": "written", "i1": "written", "i2": "written"}


def test_items_whose_call_failed_are_written_one_by_one(writers: Writers) -> None:
    # Given a service that rejects statements now
    writers.client.failing["batch_execute_statement"] = client_error("ThrottlingException")
    for number_ in range(5):
        writers.write(f"i{number_}", 0)
    writers.run()
    # Then all are stored all the same
    assert set(writers.outcomes.values()) == {"written"}
    assert len(writers.client.stored()) == 5


def test_every_writer_is_told_when_nothing_can_be_written(writers: Writers) -> None:
    for operation in ("batch_execute_statement", "put_item"):
        writers.client.failing[operation] = client_error("InternalServerError")
    for number_ in range(5):
        writers.write(f"i{number_}", 0)
    writers.run()
    assert list(writers.outcomes.values()) == ["Unavailable"] * 5
    # And later ones are written again
    writers.client.failing.clear()
    writers.write("later", 1)
    writers.run()
    assert writers.outcomes["later"] == "written"


def test_the_service_takes_the_statements(writers: Writers) -> None:
    # Given moto's service, When items are inserted, Then they are stored unchanged
    with aws.dynamodb() as client:
        table = Table(client, aws.CONFIG_TABLE, FakeClock())
        item: Item = {"pk": text("it's"), "sk": text("s"), "n": number(7), "m": {"M": {"a": {"L": [text("x")]}}}}
        assert table.insert_many([item, {**item, "sk": text("t"), "b": {"BOOL": True}}]) == [True, True]
        assert table.get({"pk": text("it's"), "sk": text("s")}) == item
