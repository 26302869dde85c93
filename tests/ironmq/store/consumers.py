"""Consumers of one pull queue whose calls to DynamoDB take turns in virtual time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import cast

from mypy_boto3_dynamodb import DynamoDBClient
from tests.cloud import aws_services as aws
from tests.cloud.turns import Turns
from tests.contract.samples import PROJECT, message

from pushhub.base.ids import MessageIds
from pushhub.ironmq.store.dynamodb_pull import DynamoDBPullStore

LINE = "f0e1d2c3b4a5"
HOUR = 3_600_000


@dataclass
class Consumed:
    """What consumers did with a queue.

    Attributes:
        handed_out: Ids of the messages in each answer.
        writes: Conditional writes made to reserve them.
        longest_ms: How long the slowest reservation took.
        took_ms: Time until the last message was handed out.
    """

    handed_out: list[list[str]] = field(default_factory=list)
    writes: int = 0
    longest_ms: int = 0
    took_ms: int = 0

    @property
    def times(self) -> Counter[str]:
        """How often each message was handed out."""
        return Counter(message_id for answer in self.handed_out for message_id in answer)


def consume(
    client: DynamoDBClient,
    *,
    consumers: int,
    at_a_time: int,
    messages: int,
    seed: int,
    store_of: type[DynamoDBPullStore] = DynamoDBPullStore,
) -> Consumed:
    """Post messages; let consumers, each an execution environment of its own,
    reserve and delete them until none is left.

    A consumer makes its calls one after the other, so what it has seen is staler than that of one that reserves with
    several threads.
    """
    turns = Turns(seed)
    now = turns.now()
    ids = MessageIds(7)
    given = [
        message(
            message_id=ids.next(now),
            queue_uid=LINE,
            subscriber_ids=(),
            accepted_at=now,
            due_at=now,
            expires_at=now + HOUR,
        )
        for _ in range(messages)
    ]
    DynamoDBPullStore(client, aws.PULL_TABLE, turns).put(given)
    slow = cast(DynamoDBClient, turns.client(client))
    seen = Consumed()

    def consumer() -> None:
        store = store_of(slow, aws.PULL_TABLE, turns, threads=1)
        while len(seen.times) < messages and turns.now() < now + HOUR // 2:
            began = turns.now()
            held = store.reserve(PROJECT, LINE, count=at_a_time, timeout_ms=HOUR, now=turns.now())
            seen.longest_ms = max(seen.longest_ms, turns.now() - began)
            if held:
                seen.took_ms = turns.now() - now
            seen.handed_out.append([each.message.message_id for each in held])
            for each in held:
                store.delete(each.message.key, reservation_id=each.reservation_id, now=turns.now())
            if not held:
                turns.sleep(0.1)

    turns.run([consumer] * consumers)
    seen.writes = turns.calls["update_item"]
    return seen
