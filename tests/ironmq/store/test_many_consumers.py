"""Several consumers of one pull queue: what they cost each other, with all their calls to DynamoDB interleaved in virtual time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from mypy_boto3_dynamodb import DynamoDBClient
from tests.cloud import aws_services as aws
from tests.cloud.turns import Turns
from tests.contract.samples import PROJECT, message

from pushhub.ironmq.store.dynamodb_pull import DynamoDBLineStore

LINE = "f0e1d2c3b4a5"
HOUR = 3_600_000
WRITES_A_MESSAGE = 1.5


@dataclass
class Consumed:
    """What several consumers did with a queue."""

    handed_out: list[list[str]] = field(default_factory=list)
    writes: int = 0
    longest_ms: int = 0

    @property
    def times(self) -> Counter[str]:
        """How often each message was handed out."""
        return Counter(message_id for answer in self.handed_out for message_id in answer)


def consume(client: DynamoDBClient, *, consumers: int, at_a_time: int, messages: int, seed: int) -> Consumed:
    """Post messages and let consumers, each an execution environment of its own, reserve and delete them until none is left."""
    turns = Turns(seed)
    given = [
        message(
            queue_uid=LINE,
            subscriber_ids=(),
            accepted_at=turns.now(),
            due_at=turns.now(),
            expires_at=turns.now() + HOUR,
        )
        for _ in range(messages)
    ]
    DynamoDBLineStore(client, aws.LINES_TABLE, turns).put(given)
    slow = cast(DynamoDBClient, turns.client(client))
    seen = Consumed()

    def consumer() -> None:
        store = DynamoDBLineStore(slow, aws.LINES_TABLE, turns, threads=1)
        while len(seen.times) < messages and turns.now() < given[0].accepted_at + HOUR // 2:
            began = turns.now()
            held = store.reserve(PROJECT, LINE, count=at_a_time, timeout_ms=HOUR, now=turns.now())
            seen.longest_ms = max(seen.longest_ms, turns.now() - began)
            seen.handed_out.append([each.message.message_id for each in held])
            for each in held:
                key: Any = {"pk": {"S": f"{PROJECT}#{LINE}"}, "sk": {"S": each.message.message_id}}
                slow.delete_item(TableName=aws.LINES_TABLE, Key=key)
            if not held:
                turns.sleep(0.1)

    turns.run([consumer] * consumers)
    seen.writes = turns.calls["update_item"]
    return seen


@pytest.mark.parametrize(("at_a_time", "messages", "seed"), [(10, 400, 1), (1, 60, 2), (100, 250, 3)])
def test_sixteen_consumers_get_every_message_once_at_little_more_than_a_write_each(
    at_a_time: int, messages: int, seed: int
) -> None:
    # Given a queue that sixteen consumers reserve from at the same time
    with aws.dynamodb() as client:
        seen = consume(client, consumers=16, at_a_time=at_a_time, messages=messages, seed=seed)
    # Then each message was handed out, and once
    assert set(seen.times.values()) == {1}
    assert len(seen.times) == messages
    # And reserving took few writes in vain, and no call took long
    assert seen.writes <= WRITES_A_MESSAGE * messages
    assert seen.longest_ms < 2_000


def test_a_consumer_alone_gets_strict_order_at_one_write_a_message() -> None:
    # Given a queue that one consumer reserves from
    with aws.dynamodb() as client:
        seen = consume(client, consumers=1, at_a_time=10, messages=100, seed=3)
    # Then it gets the messages in the order they were posted, in full answers
    order = [message_id for answer in seen.handed_out for message_id in answer]
    assert order == sorted(order)
    assert [len(answer) for answer in seen.handed_out] == [10] * 10
    assert seen.writes == 100
