"""A message or an entry of a pull queue that nobody can read: those behind it are handed out all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from mypy_boto3_dynamodb import DynamoDBClient
from tests.cloud import aws_services as aws
from tests.contract.samples import NOW, PROJECT, message
from tests.fakes import FakeClock
from tests.simulation import simulated_services

from pushhub.cloud.table import Item, Table, text
from pushhub.engine.model.keys import MessageKey
from pushhub.ironmq.store._pull_items import message_key, shard_key
from pushhub.ironmq.store.dynamodb_pull import DynamoDBPullStore

LINE = "f0e1d2c3b4a5"
MINUTE = 60_000


@pytest.fixture
def client() -> Iterator[DynamoDBClient]:
    with simulated_services.dynamodb() as tables:
        yield cast(DynamoDBClient, tables)


def without(*names: str) -> Callable[[Item], Item]:
    return lambda item: {name: value for name, value in item.items() if name not in names}


DAMAGES: dict[str, tuple[str, Callable[[Item], Item]]] = {
    "a message without its time": ("message", without("expires_at")),
    "a message without its place": ("message", without("place")),
    "a message with nothing": ("message", lambda item: {name: item[name] for name in ("pk", "sk")}),
    "a message with a text for a number": ("message", lambda item: item | {"accepted_at": text("soon")}),
    "an entry with nothing": ("entry", lambda item: {name: item[name] for name in ("pk", "sk")}),
}


@pytest.mark.parametrize("count", [1, 10])
@pytest.mark.parametrize("damaged", [0, 1, 4])
@pytest.mark.parametrize("what", DAMAGES)
def test_those_behind_it_are_handed_out(client: DynamoDBClient, what: str, damaged: int, count: int) -> None:
    # Given five messages, of which one is damaged
    store, table = DynamoDBPullStore(client, aws.PULL_TABLE, FakeClock()), Table(client, aws.PULL_TABLE, FakeClock())
    given = [message(queue_uid=LINE, subscriber_ids=()) for _ in range(5)]
    store.put(given)
    kind, damage = DAMAGES[what]
    key = message_key(MessageKey(PROJECT, LINE, given[damaged].message_id))
    if kind == "entry":
        key = {"pk": shard_key(PROJECT, LINE, 0), "sk": text(f"0#{given[damaged].message_id}")}
    stored = table.get(key)
    assert stored is not None
    table.put(damage(stored))
    others = [each.message_id for each in given if each is not given[damaged]]
    assert [each.message.message_id for each in store.peek(PROJECT, LINE, count=10, now=NOW)] == others
    # When a consumer takes messages until there are none
    taken: list[str] = []
    while found := store.reserve(PROJECT, LINE, count=count, timeout_ms=MINUTE, now=NOW):
        taken += [each.message.message_id for each in found]
    # Then it gets all others, in their order
    assert taken == others


def test_a_mark_that_cannot_be_read_leads_to_all_parts_of_the_queue(client: DynamoDBClient) -> None:
    # Given a queue whose mark was damaged
    store, table = DynamoDBPullStore(client, aws.PULL_TABLE, FakeClock()), Table(client, aws.PULL_TABLE, FakeClock())
    given = [message(queue_uid=LINE, subscriber_ids=()) for _ in range(400)]
    for each in given:
        store.put([each])
    mark = {"pk": shard_key(PROJECT, LINE, 0), "sk": text("!")}
    assert table.get(mark) is not None
    table.put(mark)
    # When more is posted, and a consumer takes messages until there are none
    other: Any = DynamoDBPullStore(client, aws.PULL_TABLE, FakeClock())
    more = [message(queue_uid=LINE, subscriber_ids=()) for _ in range(300)]
    for each in more:
        other.put([each])
    taken: list[str] = []
    while found := store.reserve(PROJECT, LINE, count=100, timeout_ms=MINUTE, now=NOW):
        taken += [each.message.message_id for each in found]
    # Then it gets all
    assert sorted(taken) == sorted(each.message_id for each in given + more)
