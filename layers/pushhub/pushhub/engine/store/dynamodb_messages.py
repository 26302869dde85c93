"""The message store on DynamoDB: one table for the messages of push queues and their deliveries. Its stream is the
outbox.
"""

from __future__ import annotations

import heapq
import math
from contextlib import suppress
from dataclasses import replace
from itertools import groupby, islice
from typing import TYPE_CHECKING

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Conflict, Unavailable
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.inserts import Inserts
from pushhub.cloud.table import Item, Table, WritesRefused, number, text
from pushhub.cloud.unreadable import decodes, paired, readable
from pushhub.engine.model.delivery import Delivery, DeliveryState
from pushhub.engine.model.message import Message, Ordering
from pushhub.engine.model.received import ReadTogether
from pushhub.engine.ports import Once
from pushhub.engine.store._delivery_items import (
    GIVEN_UP,
    WAITING,
    decode_delivery,
    encode_delivery,
    unsettled_partitions,
)
from pushhub.engine.store._keys import (
    APART,
    APART_KIND,
    LISTED_PARTS,
    delivery_key,
    key_of,
    listed_query,
    message_key,
    of_one_message,
    together,
)
from pushhub.engine.store._message_items import decode_fields, encode_fields
from pushhub.engine.store._unsettled_spread import UnsettledSpread
from pushhub.engine.store.dynamodb_pulses import is_pulse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Executor

    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock
    from pushhub.engine.model.keys import DeliveryKey, MessageKey
    from pushhub.engine.waiting.ports import Schedule

ORDER_KEPT_S = 400 * 86_400
"""Seconds that an ordering key is remembered after its last message; then its numbers start again."""

IN_ONE_STEP, BYTES_IN_ONE_STEP = 50, 3_500_000
"""Messages of an ordering key stored in one transaction, and about how many bytes of them: it is limited to 100 items
and 4 MB, of which the state of the key may take a tenth.
"""

RESTORED = "restored"
"""Attribute of an item that was lost and restored; that it is written so must produce neither records nor orders."""

_MESSAGE = "message"
"""The ``kind`` of a message's item."""

LISTED_PAGE = 50
"""Items that one list call reads at most in each part of a queue, including deliveries."""

COUNTS_MS = 8_000
"""After this time, the number of waiting deliveries is what was counted by then: a partition of the index gives 3,000
read units a second, and a million entries are some 18,000.
"""

LEAST_ENTRIES = 20
"""Entries of the unsettled index that one call reads at least in each partition: fewer cost as much."""

_DELETED = "deleted"
"""Marks what remains of a deleted message: its keys, its times, and its cause."""


@decodes
def decode_message(image: Item) -> Message:
    """The message in a table item, or in an image from the table's stream (``kind`` is ``message``)."""
    key = key_of(image)
    return decode_fields(image, project=key.project, queue_uid=key.queue_uid, message_id=key.message_id)


@decodes
def _decode_either(item: Item) -> Message | Delivery:
    return decode_message(item) if item["kind"]["S"] == _MESSAGE else decode_delivery(item)


def deliveries_and_messages(items: Iterable[Item]) -> ReadTogether:
    """What items of deliveries and messages say; messages that were deleted are left out."""
    read = ReadTogether({}, {})
    for item in items:
        if _DELETED in item:
            continue
        found = _decode_either(item)
        if isinstance(found, Message):
            read.messages[found.key] = found
        else:
            read.deliveries[found.key] = found
    return read


class DynamoDBMessageStore:
    """Implements :class:`pushhub.engine.stores.MessageStore`.

    Args:
        table: Name of the messages table (index ``unsettled``, keys only).
        schedule: Makes the schedule on first use: not every function that reads deliveries schedules them.
        executor: Writes first outcomes of deliveries in batches; without it, each is a call of its own.
    """

    def __init__(
        self,
        client: DynamoDBClient,
        table: str,
        clock: Clock,
        schedule: Callable[[], Schedule],
        executor: Executor | None = None,
    ) -> None:
        self._table = Table(client, table, clock)
        self._clock = clock
        self._schedule = schedule
        self._spread = UnsettledSpread(self._table, clock)
        self._inserts = Inserts(self._table, executor) if executor else None

    def accept(self, messages: Sequence[Message]) -> None:
        """Messages are immutable and their ids unique, so writing one again changes nothing."""
        unordered = [each for each in messages if each.ordering is None]
        for of_one_key in _by_order_key(messages):
            self._accept_in_order(of_one_key)
        if len(messages) != 1:
            self._table.put_many([_encode_message(each) for each in unordered])
            return
        if not unordered:
            return
        stored = self._insert(messages[0])
        if stored is not None and stored != messages[0]:
            raise Conflict(f"message id {messages[0].message_id} is taken")

    def accept_once(self, message: Message) -> Once:
        stored: Message | None
        if message.ordering is None:
            stored = self._insert(message)
        else:
            stored = None if self._placed([message]) else self._stored([message])[0]
        if stored is None:
            return Once.STORED
        return Once.KNOWN if stored.cause == message.cause else Once.TAKEN

    def message(self, key: MessageKey) -> Message | None:
        item = self._table.get(message_key(key))
        return decode_message(item) if item and _DELETED not in item else None

    def messages(self, keys: Sequence[MessageKey]) -> dict[MessageKey, Message]:
        items = self._table.get_many([message_key(each) for each in dict.fromkeys(keys)])
        return {each.key: each for each in (decode_message(item) for item in items if _DELETED not in item)}

    def message_with_deliveries(self, key: MessageKey) -> tuple[Message, list[Delivery]] | None:
        message: Message | None = None
        deliveries: list[Delivery] = []
        for item in self._table.items(**of_one_message(key)):
            if _DELETED in item:
                return None
            if item["kind"]["S"] == _MESSAGE:
                message = decode_message(item)
            else:
                deliveries.append(decode_delivery(item))
        return (message, deliveries) if message else None

    def listed(
        self,
        project_id: str,
        queue_uid: str,
        *,
        above: str | None = None,
        below: str | None = None,
        up: bool = True,
        wanted: int | None = None,
    ) -> Iterator[Message]:
        if above is not None and below is not None and above >= below:
            return iter(())
        queries = (
            listed_query(project_id, queue_uid, part, above=above, below=below, up=up) for part in range(LISTED_PARTS)
        )
        # What a part has by chance, and deliveries beside messages
        page = LISTED_PAGE if wanted is None else min(LISTED_PAGE, 2 + 4 * wanted // LISTED_PARTS)
        parts = (readable(self._kept(query, page), decode_message) for query in queries)
        return heapq.merge(*parts, key=lambda message: message.message_id, reverse=not up)

    def _kept(self, query: Item, page: int) -> Iterator[Item]:
        return (item for item in self._table.items(Limit=page, **query) if _DELETED not in item)

    def delete(self, message: Message) -> None:
        left = _encode_message(replace(message, body=None, body_ref=None, headers={})) | {_DELETED: {"BOOL": True}}
        with suppress(ConditionRefused):
            self._table.put(left, ConditionExpression="attribute_exists(pk)")

    def restore(self, message: Message | None, deliveries: Sequence[Delivery]) -> None:
        mark = {RESTORED: {"BOOL": True}}
        for each in deliveries:
            older = {
                "ConditionExpression": "attribute_not_exists(pk) OR #version < :version",
                "ExpressionAttributeNames": {"#version": "version"},
                "ExpressionAttributeValues": {":version": number(each.version)},
            }
            with suppress(ConditionRefused):
                self._table.put(encode_delivery(each) | mark, **older)
        if message is not None:
            with suppress(ConditionRefused):
                self._table.put(_encode_message(message) | mark, ConditionExpression="attribute_not_exists(pk)")

    def deliveries(self, keys: Sequence[DeliveryKey], *, consistent: bool = True) -> dict[DeliveryKey, Delivery]:
        items = self._table.get_many([delivery_key(each) for each in dict.fromkeys(keys)], consistent=consistent)
        return {each.key: each for each in map(decode_delivery, items)}

    def delivery(self, key: DeliveryKey) -> Delivery | None:
        item = self._table.get(delivery_key(key))
        return decode_delivery(item) if item else None

    def save(self, delivery: Delivery) -> None:
        """The schedule entry is written first: a crash after it leaves an entry for a version that never existed, which
        is void.
        """
        if delivery.scheduled:
            self._schedule().enter(delivery)
        item = encode_delivery(delivery, self._spread.shards_for(delivery))

        def alone() -> None:
            self._table.put_version(item, read=decode_delivery)

        if self._inserts and delivery.version == 1:
            self._inserts.put(item, alone)
        else:
            alone()

    def unsettled(
        self, project_id: str, queue_uid: str, *, limit: int, after: str | None = None
    ) -> tuple[list[Delivery], str | None]:
        """The index gives the candidates, the table their current state."""
        entries = list(islice(self._unsettled_entries(project_id, queue_uid, after or "", limit + 1), limit + 1))
        page = entries[:limit]
        items = self._table.get_many([{"pk": entry["pk"], "sk": entry["sk"]} for entry in page])
        listed = (item for item in items if "unsettled_key" in item)
        found = {item["unsettled_key"]["S"]: each for item, each in paired(listed, decode_delivery) if each}
        cursor = page[-1]["unsettled_key"]["S"] if len(entries) > limit else None
        return [found[key] for key in sorted(found)], cursor

    def given_up(
        self, project_id: str, queue_uid: str, *, limit: int, after: str | None = None
    ) -> tuple[list[Delivery], str | None]:
        found, cursor = self.unsettled(project_id, queue_uid, limit=limit, after=max(after or "", GIVEN_UP))
        # Some may have been tried since the index was read.
        return [each for each in found if each.state in (DeliveryState.EXHAUSTED, DeliveryState.HELD)], cursor

    def retried(self, project_id: str, queue_uid: str, *, limit: int) -> list[tuple[str, str]]:
        found: dict[str, None] = {}
        for partition in self._unsettled_partitions(project_id, queue_uid):
            for page in self._waiting_pages(partition, ProjectionExpression="unsettled_key"):
                # One that is moving to another partition is in both.
                found |= dict.fromkeys(each["unsettled_key"]["S"].removeprefix(WAITING) for each in page["Items"])
                if len(found) >= limit:
                    return _pairs(found)[:limit]
        return _pairs(found)

    def unsettled_counts(self, project_id: str, queue_uids: Sequence[str]) -> list[int]:
        """One read for the marks of fifty queues, and one for each partition."""
        spread = zip(queue_uids, self._spread.shards_of(project_id, queue_uids), strict=True)
        ends_at = self._clock.now() + COUNTS_MS
        return [
            sum(
                self._waiting_in(partition, ends_at)
                for partition in unsettled_partitions(project_id, queue_uid, shards)
            )
            for queue_uid, shards in spread
        ]

    def _waiting_in(self, partition: str, ends_at: int) -> int:
        count = 0
        try:
            for page in self._waiting_pages(partition, Select="COUNT"):
                count += page["Count"]
                if self._clock.now() >= ends_at:
                    break
        except Unavailable as error:
            if not (count and error.throttled):
                raise
        return count

    def _waiting_pages(self, partition: str, **more: str) -> Iterator[Item]:
        return self._table.pages(
            IndexName="unsettled",
            KeyConditionExpression="unsettled_queue = :partition AND begins_with(unsettled_key, :waiting)",
            ExpressionAttributeValues={":partition": text(partition), ":waiting": text(WAITING)},
            **more,
        )

    def outstanding(self, part: int, parts: int) -> Iterator[tuple[Message, list[Delivery]]]:
        """A scan returns items of one partition key together and ordered by sort key, so a message and its deliveries
        are adjacent.
        """
        items = self._table.scan(consistent=False, Segment=part, TotalSegments=parts)
        for _, group in groupby(items, key=together):
            message: Message | None = None
            deliveries: list[Delivery] = []
            kept = (each for each in group if not (_DELETED in each or each["sk"]["S"] == APART or is_pulse(each)))
            for found in readable(kept, _decode_either):
                if isinstance(found, Message):
                    message = found
                else:
                    deliveries.append(found)
            if message is not None:
                yield message, deliveries

    def _accept_in_order(self, messages: Sequence[Message]) -> None:
        """Store messages of one ordering key, skipping those already stored."""
        if self._placed(messages):
            return
        stored = self._stored(messages)
        for given, found in zip(messages, stored, strict=True):
            if found is not None and replace(found, ordering=given.ordering) != given:
                raise Conflict(f"message id {given.message_id} is taken")
        rest = [given for given, found in zip(messages, stored, strict=True) if found is None]
        if rest:
            self._accept_in_order(rest)

    def _stored(self, messages: Sequence[Message]) -> list[Message | None]:
        found = [self._table.get(message_key(each.key)) for each in messages]
        return [decode_message(each) if each else None for each in found]

    def _placed(self, messages: Sequence[Message]) -> bool:
        """Number messages of one ordering key and store them all together; False when one of them is already stored.

        One transaction covers the messages and the state of the key, so no number goes to a message that does not
        exist.
        """

        def once() -> bool:
            key = _order_key(messages[0])
            item = self._table.get(key)
            known = item or {"sequence": number(0), "last": {"M": {}}}
            placed, after = _in_their_places(messages, known)
            condition: Item = {"ConditionExpression": "attribute_not_exists(pk)"}
            if item:
                condition = {
                    "ConditionExpression": "#sequence = :before",
                    "ExpressionAttributeNames": {"#sequence": "sequence"},
                    "ExpressionAttributeValues": {":before": item["sequence"]},
                }
            puts = [
                {"Item": _encode_message(each), "ConditionExpression": "attribute_not_exists(pk)"} for each in placed
            ]
            try:
                self._table.write_together(
                    [("Put", {"Item": key | after, **condition}), *(("Put", each) for each in puts)]
                )
            except WritesRefused as refused:
                if any(refused.conditions[1:]):
                    return False
                raise Conflict(f"the ordering key of {messages[0].message_id} has a newer message") from refused
            return True

        return until_saved(once, doing="giving a message its place in its order")

    def _insert(self, message: Message) -> Message | None:
        """Write a message unless its id is taken; if so, return the stored one."""
        try:
            self._table.put(_encode_message(message), ConditionExpression="attribute_not_exists(pk)")
        except ConditionRefused as refused:
            return decode_message(refused.stored)
        return None

    def _unsettled_entries(self, project_id: str, queue_uid: str, after: str, page: int) -> Iterator[Item]:
        """Entries of all partitions, merged in key order; one for a delivery that is moving to another partition."""
        partitions = self._unsettled_partitions(project_id, queue_uid)
        limit = max(LEAST_ENTRIES, math.ceil(page / len(partitions)))
        entries = heapq.merge(*(self._unsettled_in(each, after, limit) for each in partitions), key=_unsettled_key)
        return (next(same) for _, same in groupby(entries, key=_unsettled_key))

    def _unsettled_partitions(self, project_id: str, queue_uid: str) -> Sequence[str]:
        (shards,) = self._spread.shards_of(project_id, [queue_uid])
        return unsettled_partitions(project_id, queue_uid, shards)

    def _unsettled_in(self, partition: str, after: str, page: int) -> Iterator[Item]:
        return self._table.items(
            IndexName="unsettled",
            KeyConditionExpression="unsettled_queue = :partition AND unsettled_key > :after",
            ExpressionAttributeValues={
                ":partition": text(partition),
                # A key value may not be empty; every key sorts after this one.
                ":after": text(after or "0"),
            },
            Limit=page,
        )


def _unsettled_key(entry: Item) -> str:
    return str(entry["unsettled_key"]["S"])


def _by_order_key(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Messages that have an ordering key, grouped by it, in chunks that fit a transaction."""
    groups: dict[str, list[Message]] = {}
    for message in messages:
        if message.ordering is not None:
            groups.setdefault(message.ordering.key, []).append(message)
    for group in groups.values():
        step: list[Message] = []
        size = 0
        for message in group:
            most = _most_bytes(message)
            if step and (len(step) == IN_ONE_STEP or size + most > BYTES_IN_ONE_STEP):
                yield step
                step, size = [], 0
            step.append(message)
            size += most
        yield step


def _most_bytes(message: Message) -> int:
    """The most that a message's item takes: each subscriber is named twice, with the message before it."""
    headers = sum(len(name) + 4 * len(value) for name, value in message.headers.items())
    subscribers = sum(2 * len(each) + len(message.message_id) + 4 for each in message.subscriber_ids)
    body = message.body_size if message.body_ref is None else 0
    return 4_096 + body + headers + subscribers


def _order_key(message: Message) -> Item:
    """The item key for the state of a message's ordering key."""
    name = message.ordering.key if message.ordering else ""
    return {"pk": text(f"{message.project}#{message.queue_uid}#{APART}#{name}"), "sk": text(APART)}


def _in_their_places(messages: Sequence[Message], known: Item) -> tuple[list[Message], Item]:
    """Numbered messages of one ordering key, and the state of the key after them."""
    sequence = int(known["sequence"]["N"])
    last = {subscriber: str(each["S"]) for subscriber, each in known["last"]["M"].items()}
    placed: list[Message] = []
    for message in messages:
        sequence += 1
        owed = message.delivery_subscribers
        before = {each: last[each] for each in owed if each in last}
        last |= dict.fromkeys(owed, message.message_id)
        key = message.ordering.key if message.ordering else ""
        placed.append(replace(message, ordering=Ordering(key=key, sequence=sequence, previous=before)))
    until = max(each.expires_at for each in messages) // 1000 + ORDER_KEPT_S
    after = {
        "kind": text(APART_KIND),
        "sequence": number(sequence),
        "last": {"M": {subscriber: text(each) for subscriber, each in last.items()}},
        "ttl": number(until),
    }
    return placed, after


def _encode_message(message: Message) -> Item:
    return message_key(message.key) | {"kind": text(_MESSAGE)} | encode_fields(message)


def _pairs(entries: Iterable[str]) -> list[tuple[str, str]]:
    """Message and subscriber of entries of the unsettled index, without their prefix."""
    return [(message_id, subscriber_id) for message_id, _, subscriber_id in (each.partition("#") for each in entries)]
