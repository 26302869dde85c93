"""Schedulers of stores on DynamoDB. Separate from the other settings because the ticking function needs nothing
else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from itertools import islice
from typing import Any, TypeVar

from pushhub.base import json_text
from pushhub.cloud.table import Item, TableStore, number, text
from pushhub.cloud.unreadable import decodes, readable
from pushhub.hub.model.schedule import Scheduler
from pushhub.hub.store._keys import SHARDS, json_attribute, shard_of, store_key

_SCHEDULER = "SCHEDULER#"

LITTLE = 20
"""Entries of the index up to which all of it is read instead of each part of the list of schedulers."""

REMEMBERED_MS = 1_800_000
"""How long it is not looked again whether the index holds little."""

T = TypeVar("T")


class DynamoDBSchedulers(TableStore):
    """Implements :class:`pushhub.hub.ports.Schedulers` and :class:`pushhub.hub.ports.TickingSchedulers`."""

    _holds_much_until = 0

    def scheduler(self, project_id: str, scheduler_id: str) -> Scheduler | None:
        return self.one(project_id, _SCHEDULER + scheduler_id, decode_scheduler)

    def schedulers(self, project_id: str) -> list[Scheduler]:
        return [*readable(self.all(project_id, _SCHEDULER), decode_scheduler)]

    def put_scheduler(self, scheduler: Scheduler) -> Scheduler:
        raised = replace(scheduler, version=scheduler.version + 1)
        key = store_key(scheduler.project, _SCHEDULER + scheduler.scheduler_id)
        self._table.put_version(key | encode_scheduler(raised))
        return raised

    def delete_scheduler(self, project_id: str, scheduler_id: str) -> bool:
        return self._table.delete(store_key(project_id, _SCHEDULER + scheduler_id)) is not None

    def due_schedulers(self, now: int, limit: int) -> list[Scheduler]:
        found = readable(self._all_due(now, limit), decode_scheduler)
        return sorted(found, key=lambda each: each.next_at)[:limit]

    def _all_due(self, now: int, limit: int) -> Iterator[Item]:
        few = self._few(now)
        bound = f"{now + 1:015d}"
        if few is not None:
            parts = {tick_key(shard) for shard in range(SHARDS)}
            yield from (each for each in few if each["list_key"]["S"] in parts and each["list_place"]["S"] < bound)
            return
        for shard in range(SHARDS):
            items = self._table.items(
                IndexName="listed",
                KeyConditionExpression="list_key = :key AND list_place < :bound",
                ExpressionAttributeValues={":key": text(tick_key(shard)), ":bound": text(bound)},
                Limit=limit,
            )
            yield from islice(items, limit)

    def _few(self, now: int) -> list[Item] | None:
        """All entries of the index, if they are few; one read says then of every part that nothing is due, for a
        sixteenth of what it takes to ask each. None if they are many: messages of stores are in it, too.
        """
        if now < self._holds_much_until:
            return None
        items, more = next(self._table.scanned(consistent=False, IndexName="listed", Limit=LITTLE))
        if more:
            self._holds_much_until = now + REMEMBERED_MS
            return None
        return items

    def one(self, project_id: str, sort_key: str, decode: Callable[[Item], T]) -> T | None:
        """A setting of a store by its sort key, or None."""
        item = self._table.get(store_key(project_id, sort_key))
        return decode(item) if item else None

    def all(self, project_id: str, prefix: str) -> Iterator[Item]:
        """The settings of a store whose sort keys begin alike, read consistently."""
        for page in self.pages(project_id, prefix):
            yield from page["Items"]

    def pages(self, project_id: str, prefix: str) -> Iterator[Any]:
        """The same page by page, read lazily."""
        key = store_key(project_id, prefix)
        return self._table.pages(
            KeyConditionExpression="pk = :pk AND begins_with(sk, :prefix)",
            ExpressionAttributeValues={":pk": key["pk"], ":prefix": key["sk"]},
            ConsistentRead=True,
        )


def tick_key(shard: int) -> str:
    """One partition of the list of all schedulers."""
    return f"TICK#{shard}"


def encode_scheduler(scheduler: Scheduler) -> Item:
    """All attributes but the key, with its place among all schedulers."""
    return {
        "doc": json_attribute(asdict(scheduler)),
        "version": number(scheduler.version),
        "list_key": text(tick_key(shard_of(scheduler.scheduler_id))),
        "list_place": text(f"{scheduler.next_at:015d}#{scheduler.project}#{scheduler.scheduler_id}"),
    }


@decodes
def decode_scheduler(item: Item) -> Scheduler:
    """The scheduler from its item."""
    return Scheduler(**json_text.stored(item["doc"]["S"]))
