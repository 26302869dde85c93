"""The log of the hub protocol on DynamoDB: message states, answers, notifications."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import Item, TableStore, text, texts
from pushhub.cloud.unreadable import paired, readable
from pushhub.hub.store._items import (
    OPTIONAL_OF_ENTRY,
    decode_answer,
    decode_entry,
    decode_notification,
    decode_open_request,
    encode_answer,
    encode_entry,
    encode_notification,
    encode_open_request,
    list_key,
    log_key,
    note_list_key,
    note_place,
)
from pushhub.hub.store._keys import SHARDS

if TYPE_CHECKING:
    from pushhub.hub.model.log import LoggedMessage, LogList, OpenRequest, RecordedAnswer
    from pushhub.hub.model.notice import Notice


_ENTRY = "ENTRY"
_ANSWER = "ANSWER#"
_NOTE = "NOTE#"
_OPEN = "OPEN"

COUNT_PAGES = 5
"""Pages of a megabyte counted per partition of a list; some ten thousand messages each."""

PAGE = 250
"""Entries read per call and partition: a page of the admin client needs few of many partitions."""

_ONCE = frozenset({"logged_at", "first_attempt", "list_key", "list_place"})
"""Attributes of a notification that its first occurrence sets for good."""


class DynamoDBHubLog(TableStore):
    """Implements :class:`pushhub.hub.ports.HubLog`."""

    def put(self, entry: LoggedMessage) -> None:
        """Attributes the new version does not have are removed."""
        item = encode_entry(entry)
        gone = [name for name in OPTIONAL_OF_ENTRY if name not in item]
        names = {f"#{name}": name for name in [*item, *gone]}
        update = "SET " + ", ".join(f"#{name} = :{name}" for name in item)
        if gone:
            update += " REMOVE " + ", ".join(f"#{name}" for name in gone)
        try:
            self._table.update(
                log_key(entry.project, entry.message_id, _ENTRY),
                UpdateExpression=update,
                ConditionExpression="attribute_not_exists(#version) OR #version < :version",
                ExpressionAttributeNames=names,
                ExpressionAttributeValues={f":{name}": value for name, value in item.items()},
            )
        except ConditionRefused:
            return  # this version or a later one is stored

    def add_children(self, project_id: str, message_id: str, children: Sequence[str]) -> None:
        self._table.update(
            log_key(project_id, message_id, _ENTRY),
            UpdateExpression="SET children = :children",
            ExpressionAttributeValues={":children": texts(children)},
        )

    def entry(self, project_id: str, message_id: str) -> LoggedMessage | None:
        item = self._table.get(log_key(project_id, message_id, _ENTRY))
        return decode_entry(item) if item and "version" in item else None

    def entries(self, project_id: str, message_ids: Sequence[str]) -> list[LoggedMessage]:
        keys = [log_key(project_id, each, _ENTRY) for each in dict.fromkeys(message_ids)]
        items = (each for each in self._table.get_many(keys) if "version" in each)
        found = {each.message_id: each for each in readable(items, decode_entry)}
        return [found[each] for each in message_ids if each in found]

    def listed(
        self, project_id: str, listings: Sequence[LogList], *, before: str | None, after: str | None, limit: int
    ) -> list[LoggedMessage]:
        low, high = after or "0", before or "9" * 19
        partitions = [
            self._newest_first(list_key(project_id, listing, shard), low, high, limit)
            for listing in listings
            for shard in range(SHARDS)
        ]
        merged = heapq.merge(*partitions, key=_place, reverse=True)
        # BETWEEN includes its bounds, the port excludes them.
        inside = (each for each in merged if low < _place(each) < high)
        return [*islice(readable(inside, decode_entry), limit)]

    def count(self, project_id: str, listing: LogList) -> int:
        counted = 0
        for shard in range(SHARDS):
            pages = self._table.pages(
                IndexName="listed",
                Select="COUNT",
                KeyConditionExpression="list_key = :key",
                ExpressionAttributeValues={":key": text(list_key(project_id, listing, shard))},
            )
            counted += sum(page["Count"] for page in islice(pages, COUNT_PAGES))
        return counted

    def record(self, project_id: str, message_id: str, answer: RecordedAnswer) -> RecordedAnswer:
        key = log_key(project_id, message_id, _answer_place(answer.attempt))
        try:
            self._table.put(key | encode_answer(answer), ConditionExpression="attribute_not_exists(pk)")
        except ConditionRefused as refused:
            return decode_answer(refused.stored)
        return answer

    def answer(self, project_id: str, message_id: str, attempt: int) -> RecordedAnswer | None:
        item = self._table.get(log_key(project_id, message_id, _answer_place(attempt)))
        return decode_answer(item) if item else None

    def last_answer(self, project_id: str, message_id: str) -> RecordedAnswer | None:
        items = self._about(project_id, message_id, _ANSWER, ScanIndexForward=False, Limit=1)
        item = next(items, None)
        return decode_answer(item) if item else None

    def note_open(self, project_id: str, message_id: str, request: OpenRequest) -> None:
        self._table.put(log_key(project_id, message_id, _OPEN) | encode_open_request(request))

    def open_requests(self, project_id: str, message_ids: Sequence[str]) -> dict[str, OpenRequest]:
        keys = [log_key(project_id, each, _OPEN) for each in dict.fromkeys(message_ids)]
        found = paired(self._table.get_many(keys), decode_open_request)
        return {item["pk"]["S"].rpartition("#")[2]: request for item, request in found if request}

    def count_notification(self, notification: Notice) -> Notice:
        """One conditional write, so that two duplicates cannot both count the same attempt."""
        item = encode_notification(notification)
        settings = [
            f"#{name} = if_not_exists(#{name}, :{name})" if name in _ONCE else f"#{name} = :{name}"
            for name in item
            if name != "occurrences"
        ]
        update = ", ".join([*settings, "#occurrences = if_not_exists(#occurrences, :zero) + :occurrences"])
        try:
            stored = self._table.update(
                log_key(notification.project, notification.message_id, _NOTE + notification.notification_id),
                UpdateExpression=f"SET {update}",
                ConditionExpression="attribute_not_exists(#attempt) OR #attempt < :attempt",
                ExpressionAttributeNames={f"#{name}": name for name in item},
                ExpressionAttributeValues={f":{name}": value for name, value in item.items()} | {":zero": {"N": "0"}},
            )
        except ConditionRefused as refused:
            stored = refused.stored
        return decode_notification(stored)

    def notifications_of(self, project_id: str, message_id: str) -> list[Notice]:
        found = readable(self._about(project_id, message_id, _NOTE), decode_notification)
        return sorted(found, key=lambda each: (each.logged_at, each.notification_id))

    def notifications(
        self, project_id: str, *, start_at: int | None = None, end_at: int | None = None
    ) -> Iterator[Notice]:
        # Places begin with the time, so none of that moment sorts below the bare number.
        low, high = note_place(start_at or 0), "9" if end_at is None else note_place(end_at)
        keys = [note_list_key(project_id, shard) for shard in range(SHARDS)]
        partitions = [self._newest_first(key, low, high, PAGE) for key in keys]
        return readable(heapq.merge(*partitions, key=_place, reverse=True), decode_notification)

    def _about(self, project_id: str, message_id: str, prefix: str, **options: object) -> Iterator[Item]:
        key = log_key(project_id, message_id, prefix)
        return self._table.items(
            KeyConditionExpression="pk = :pk AND begins_with(sk, :prefix)",
            ExpressionAttributeValues={":pk": key["pk"], ":prefix": key["sk"]},
            ConsistentRead=True,
            **options,
        )

    def _newest_first(self, partition: str, low: str, high: str, page: int) -> Iterator[Item]:
        if low > high:
            # The period ends before it begins: DynamoDB rejects such a BETWEEN.
            return iter(())
        return self._table.items(
            IndexName="listed",
            KeyConditionExpression="list_key = :key AND list_place BETWEEN :low AND :high",
            ExpressionAttributeValues={":key": text(partition), ":low": text(low), ":high": text(high)},
            ScanIndexForward=False,
            Limit=min(page, PAGE),
        )


def _place(item: Item) -> str:
    place: str = item["list_place"]["S"]
    return place


def _answer_place(attempt: int) -> str:
    return f"{_ANSWER}{attempt:08d}"
