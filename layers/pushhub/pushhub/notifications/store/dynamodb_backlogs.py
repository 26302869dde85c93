"""Backlogs and connections on DynamoDB."""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import islice
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Conflict
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import Item, TableStore, number, text
from pushhub.cloud.unreadable import readable
from pushhub.notifications.store._items import (
    backlog_key,
    connection_key,
    decode_backlog,
    decode_connection,
    encode_backlog,
    encode_connection,
    topic_key,
)

if TYPE_CHECKING:
    from pushhub.notifications.model.backlog import Backlog
    from pushhub.notifications.model.topic import Topic
    from pushhub.notifications.ports import Connection

IDLE_SHARDS = 8
"""Partitions of the index of connections to be checked: one takes 1,000 writes a second, and a check is two."""


def _idle_shards() -> list[str]:
    """The names of the shards. The first keeps the name from when there was only one."""
    return ["connections", *(f"connections#{number}" for number in range(1, IDLE_SHARDS))]


class DynamoDBBacklogStore(TableStore):
    """Implements :class:`pushhub.notifications.ports.BacklogStore`."""

    def backlog(self, topic: Topic, subscriber: str) -> Backlog | None:
        item = self._table.get(backlog_key(topic, subscriber))
        return decode_backlog(item) if item else None

    def backlogs(self, topic: Topic) -> list[Backlog]:
        items = self._table.items(
            KeyConditionExpression="pk = :topic AND begins_with(sk, :prefix)",
            ExpressionAttributeValues={":topic": text(topic_key(topic)), ":prefix": text("S#")},
            ConsistentRead=True,
        )
        return [*readable(items, decode_backlog)]

    def save(self, backlog: Backlog) -> None:
        self._table.put_version(encode_backlog(backlog), read=decode_backlog, same=("uid",))

    def delete(self, backlog: Backlog) -> None:
        try:
            self._table.delete(
                backlog_key(backlog.topic, backlog.subscriber),
                ConditionExpression="uid = :uid AND #version = :version",
                ExpressionAttributeNames={"#version": "version"},
                ExpressionAttributeValues={":uid": text(backlog.uid), ":version": number(backlog.version)},
            )
        except ConditionRefused as refused:
            if refused.stored and decode_backlog(refused.stored).uid == backlog.uid:
                raise Conflict("the backlog has changed") from refused


class DynamoDBConnectionStore(TableStore):
    """Implements :class:`pushhub.notifications.ports.ConnectionStore`."""

    def open(self, connection: Connection, *, check_at: int) -> None:
        shard = _idle_shards()[zlib.crc32(connection.connection_id.encode()) % IDLE_SHARDS]
        idle = {"idle_shard": text(shard), "check_at": number(check_at)}
        self._table.put(encode_connection(connection) | idle)

    def connections(self, connection_ids: Sequence[str]) -> dict[str, Connection]:
        if len(connection_ids) == 1:
            item = self._table.get(connection_key(connection_ids[0]))
            items = [item] if item else []
        else:
            items = self._table.get_many([connection_key(each) for each in connection_ids])
        return {each.connection_id: each for each in readable(items, decode_connection)}

    def acknowledge(self, connection_id: str, positions: Set[int], *, shared: bool) -> Connection | None:
        return self._change(
            connection_id,
            UpdateExpression="ADD acknowledged :positions",
            ConditionExpression="attribute_exists(pk) AND #shared = :shared",
            ExpressionAttributeNames={"#shared": "shared"},
            ExpressionAttributeValues={":positions": _numbers(positions), ":shared": {"BOOL": shared}},
        )

    def stall(self, connection_id: str, *, stalled: bool) -> Connection | None:
        if not stalled:
            return self._change(
                connection_id, UpdateExpression="REMOVE stalled", ConditionExpression="attribute_exists(pk)"
            )
        return self._change(
            connection_id,
            UpdateExpression="SET stalled = :true",
            ConditionExpression="attribute_exists(pk)",
            ExpressionAttributeValues={":true": {"BOOL": True}},
        )

    def leave(self, connection_id: str) -> None:
        self._change(
            connection_id,
            UpdateExpression="SET leaving = :true",
            ConditionExpression="attribute_exists(pk)",
            ExpressionAttributeValues={":true": {"BOOL": True}},
        )

    def everyone(self) -> Iterator[Connection]:
        """Reads a page of the index, then the connections it names.

        Each minute it starts with another partition, for callers that do not have time for all. Where nobody is
        connected, one read of the whole index says so, for an eighth of what it takes to ask each partition.
        """
        found, more = next(self._table.scanned(consistent=False, IndexName="idle", Limit=1))
        if not (found or more):
            return
        shards = _idle_shards()
        first = self._clock.now() // 60_000 % IDLE_SHARDS
        for shard in shards[first:] + shards[:first]:
            pages = self._table.pages(
                IndexName="idle",
                KeyConditionExpression="idle_shard = :shard",
                ExpressionAttributeValues={":shard": text(shard)},
            )
            for page in pages:
                keys = [{name: each[name] for name in ("pk", "sk")} for each in page["Items"]]
                yield from readable(self._table.get_many(keys), decode_connection)

    def forget(self, connection_id: str, positions: Iterable[int]) -> None:
        self._change(
            connection_id,
            UpdateExpression="DELETE acknowledged :positions",
            ConditionExpression="attribute_exists(pk)",
            ExpressionAttributeValues={":positions": _numbers(positions)},
        )

    def close(self, connection_id: str) -> Connection | None:
        item = self._table.delete(connection_key(connection_id))
        return decode_connection(item) if item else None

    def idle(self, now: int, limit: int) -> list[str]:
        due = heapq.merge(*(self._idle_in(each, now, limit) for each in _idle_shards()), key=_check_at)
        return [each["pk"]["S"].removeprefix("C#") for each in islice(due, limit)]

    def _idle_in(self, shard: str, now: int, limit: int) -> Iterator[Item]:
        return self._table.items(
            IndexName="idle",
            KeyConditionExpression="idle_shard = :shard AND check_at <= :now",
            ExpressionAttributeValues={":shard": text(shard), ":now": number(now)},
            Limit=-(-limit // IDLE_SHARDS),
        )

    def check_again(self, connection_id: str, check_at: int) -> None:
        self._change(
            connection_id,
            UpdateExpression="SET check_at = :check_at",
            ConditionExpression="attribute_exists(pk)",
            ExpressionAttributeValues={":check_at": number(check_at)},
        )

    def _change(self, connection_id: str, **update: Any) -> Connection | None:
        try:
            return decode_connection(self._table.update(connection_key(connection_id), **update))
        except ConditionRefused:
            return None


def _check_at(item: Item) -> int:
    return int(item["check_at"]["N"])


def _numbers(positions: Iterable[int]) -> Item:
    return {"NS": [str(each) for each in positions]}
