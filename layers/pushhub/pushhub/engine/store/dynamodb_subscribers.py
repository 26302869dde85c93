"""State of subscribers and their backlogs, on DynamoDB. Healthy subscribers have no items."""

from __future__ import annotations

import heapq
import zlib
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING

from pushhub.cloud.table import Item, Table, number, numbers, text
from pushhub.engine.model.circuit import CircuitState, Health, SubscriberKey
from pushhub.engine.model.seats import Seat, Seats
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.ports import Waiting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock
    from pushhub.engine.model.keys import DeliveryKey


LISTS = 4
"""Partitions of the list of subscribers to look after."""

SHARDS = 8
"""Partitions of one subscriber's backlog; one takes 1,000 writes a second."""

NOTED_TO_MS = 60_000
"""Times until which subscribers count as slow are rounded up to this, so that everybody who notes one within that time
writes the same item.
"""

KEPT_S = 31 * 86_400
"""How long an unchanged item is kept: longer than any message lives."""

_COUNTS = ("changed_at", "probe_at", "probes", "ramped", "warnings", "warned_at", "version")


class DynamoDBSubscribers:
    """Implements :class:`pushhub.engine.ports.SubscriberStore`.

    Args:
        client: Low-level DynamoDB client.
        table: Name of the table; keys ``pk`` and ``sk``.
        clock: Decides when items expire.
    """

    def __init__(self, client: DynamoDBClient, table: str, clock: Clock) -> None:
        self._table = Table(client, table, clock)
        self._clock = clock

    def health(self, key: SubscriberKey) -> Health | None:
        item = self._table.get(_health_key(key))
        return _decode_health(item, key) if item else None

    def save(self, health: Health) -> None:
        item = _encode_health(health) | self._time_to_live()
        self._table.put_version(item, read=lambda each: _decode_health(each, health.key))

    def seats(self, key: SubscriberKey) -> Seats | None:
        item = self._table.get(_seats_key(key))
        return _decode_seats(item, key) if item else None

    def save_seats(self, seats: Seats) -> None:
        item = _encode_seats(seats) | self._time_to_live()
        self._table.put_version(item, read=lambda each: _decode_seats(each, seats.key))

    def look_after(self, key: SubscriberKey) -> None:
        self._table.put(_list_key(key) | {"queue": text(key.queue)} | self._time_to_live())

    def looked_after(self) -> Iterator[SubscriberKey]:
        """See the port. Reads lazily."""
        for shard in range(LISTS):
            yield from self._listed_in(shard)

    def looked_after_of(self, project_id: str, limit: int) -> list[SubscriberKey]:
        shards = (self._listed_in(shard, f"{project_id}#") for shard in range(LISTS))
        return list(islice(chain.from_iterable(shards), limit))

    def _listed_in(self, shard: int, prefix: str = "") -> Iterator[SubscriberKey]:
        condition, values = "pk = :pk", {":pk": text(f"CIRCUITS#{shard}")}
        if prefix:
            condition, values[":prefix"] = f"{condition} AND begins_with(sk, :prefix)", text(prefix)
        for item in self._table.items(KeyConditionExpression=condition, ExpressionAttributeValues=values):
            project, queue_uid, subscriber_id = item["sk"]["S"].split("#", 2)
            yield SubscriberKey(
                project=project, queue=item["queue"]["S"], queue_uid=queue_uid, subscriber_id=subscriber_id
            )

    def leave(self, key: SubscriberKey) -> None:
        self._table.delete(_list_key(key))

    def add(self, key: SubscriberKey, order: WorkOrder, now: int) -> None:
        message_id = order.key.message_id
        shard = zlib.crc32(message_id.encode()) % SHARDS
        self._table.put(
            {
                "pk": text(_waiting_partition(key, shard)),
                "sk": text(f"{now:015d}#{message_id}"),
                "order": text(replace(order, message=None).encode()),
            }
            | self._time_to_live()
        )

    def waiting(self, key: SubscriberKey, limit: int) -> list[Waiting]:
        """See the port. Consistent."""
        shards = (self._waiting_in(key, shard, limit) for shard in range(SHARDS))
        return list(islice(heapq.merge(*shards, key=lambda each: each.place.partition("/")[2]), limit))

    def count_waiting(self, key: SubscriberKey, most: int) -> int:
        count = 0
        for shard in range(SHARDS):
            pages = self._table.pages(
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": text(_waiting_partition(key, shard))},
                Select="COUNT",
                Limit=most - count,
            )
            for page in pages:
                count += page["Count"]
                if count >= most:
                    return most
        return count

    def remove(self, key: SubscriberKey, waiting: Sequence[Waiting]) -> None:
        places = [each.place.partition("/") for each in waiting]
        self._table.delete_many(
            [{"pk": text(_waiting_partition(key, int(shard))), "sk": text(sk)} for shard, _, sk in places]
        )

    def _waiting_in(self, key: SubscriberKey, shard: int, limit: int) -> Iterator[Waiting]:
        items = self._table.items(
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": text(_waiting_partition(key, shard))},
            ConsistentRead=True,
            Limit=max(1, limit // SHARDS),
        )
        for item in items:
            yield Waiting(order=WorkOrder.decode(item["order"]["S"]), place=f"{shard}/{item['sk']['S']}")

    def wait_behind(self, before: DeliveryKey, order: WorkOrder) -> None:
        item = _behind_key(before) | {"order": text(replace(order, message=None).encode())}
        self._table.put(item | self._time_to_live())

    def behind(self, ended: DeliveryKey) -> WorkOrder | None:
        item = self._table.get(_behind_key(ended))
        return WorkOrder.decode(item["order"]["S"]) if item else None

    def let_go(self, ended: DeliveryKey) -> None:
        self._table.delete(_behind_key(ended))

    def note_slow(self, keys: Sequence[tuple[str, str, str]], until: int) -> None:
        rounded = -(-until // NOTED_TO_MS) * NOTED_TO_MS
        for key in keys:
            place = {"pk": text("SLOW"), "sk": text(f"{rounded:015d}#{'#'.join(key)}")}
            self._table.put(place | {"ttl": number(rounded // 1000)})

    def slow(self, now: int, limit: int) -> dict[tuple[str, str, str], int]:
        """See the port. One page of one partition: a note per slow subscriber and ten minutes is not much."""
        items = self._table.items(
            KeyConditionExpression="pk = :pk AND sk > :now",
            ExpressionAttributeValues={":pk": text("SLOW"), ":now": text(f"{now:015d}")},
            ScanIndexForward=False,
            Limit=limit,
        )
        found: dict[tuple[str, str, str], int] = {}
        for item in islice(items, limit):
            until, project, queue_uid, subscriber_id = item["sk"]["S"].split("#", 3)
            found.setdefault((project, queue_uid, subscriber_id), int(until))
        return found

    def _time_to_live(self) -> Item:
        return {"ttl": number(self._clock.now() // 1000 + KEPT_S)}


def _name(key: SubscriberKey) -> str:
    return f"{key.project}#{key.queue_uid}#{key.subscriber_id}"


def _health_key(key: SubscriberKey) -> Item:
    return {"pk": text(f"HEALTH#{_name(key)}"), "sk": text("HEALTH")}


def _seats_key(key: SubscriberKey) -> Item:
    return {"pk": text(f"HEALTH#{_name(key)}"), "sk": text("SEATS")}


def _behind_key(before: DeliveryKey) -> Item:
    return {"pk": text(f"BEHIND#{'#'.join(before)}"), "sk": text("BEHIND")}


def _list_key(key: SubscriberKey) -> Item:
    return {"pk": text(f"CIRCUITS#{zlib.crc32(_name(key).encode()) % LISTS}"), "sk": text(_name(key))}


def _waiting_partition(key: SubscriberKey, shard: int) -> str:
    return f"WAITING#{_name(key)}#{shard}"


def _encode_health(health: Health) -> Item:
    item = _health_key(health.key) | {"queue": text(health.key.queue), "state": text(health.state)}
    item |= {name: number(getattr(health, name)) for name in _COUNTS}
    if health.claim:
        item["claim"] = text(health.claim)
    return item if health.failing_since is None else item | {"failing_since": number(health.failing_since)}


def _decode_health(item: Item, key: SubscriberKey) -> Health:
    return Health(
        key=key,
        state=CircuitState(item["state"]["S"]),
        failing_since=numbers(item, "failing_since"),
        claim=item["claim"]["S"] if "claim" in item else "",
        **{name: int(item[name]["N"]) for name in _COUNTS},
    )


def _encode_seats(seats: Seats) -> Item:
    holders = {
        name: {"L": [number(seat.first), number(seat.begins), number(seat.last)]}
        for name, seat in seats.holders.items()
    }
    return _seats_key(seats.key) | {"holders": {"M": holders}, "version": number(seats.version)}


def _decode_seats(item: Item, key: SubscriberKey) -> Seats:
    holders: dict[str, Seat] = {}
    for name, value in item["holders"]["M"].items():
        first, begins, last = (int(each["N"]) for each in value["L"])
        holders[name] = Seat(first=first, begins=begins, last=last)
    return Seats(key=key, holders=holders, version=int(item["version"]["N"]))
