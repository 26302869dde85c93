"""Schedulers of stores on DynamoDB. Separate from the other settings because the ticking function needs nothing
else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from pushhub.cloud.table import Item, TableStore, text
from pushhub.cloud.unreadable import readable
from pushhub.hub.store._keys import SHARDS, store_key
from pushhub.hub.store._scheduler_items import decode_scheduler, encode_scheduler, tick_key

if TYPE_CHECKING:
    from pushhub.hub.model.schedule import Scheduler

_SCHEDULER = "SCHEDULER#"

T = TypeVar("T")


class DynamoDBSchedulers(TableStore):
    """Implements :class:`pushhub.hub.ports.Schedulers` and :class:`pushhub.hub.ports.TickingSchedulers`."""

    def scheduler(self, project_id: str, scheduler_id: str) -> Scheduler | None:
        return self.one(project_id, _SCHEDULER + scheduler_id, decode_scheduler)

    def schedulers(self, project_id: str) -> list[Scheduler]:
        return [decode_scheduler(each) for each in self.all(project_id, _SCHEDULER)]

    def put_scheduler(self, scheduler: Scheduler) -> Scheduler:
        raised = replace(scheduler, version=scheduler.version + 1)
        key = store_key(scheduler.project, _SCHEDULER + scheduler.scheduler_id)
        self._table.put_version(key | encode_scheduler(raised))
        return raised

    def delete_scheduler(self, project_id: str, scheduler_id: str) -> bool:
        return self._table.delete(store_key(project_id, _SCHEDULER + scheduler_id)) is not None

    def due_schedulers(self, now: int, limit: int) -> list[Scheduler]:
        found: list[Scheduler] = []
        for shard in range(SHARDS):
            items = self._table.items(
                IndexName="listed",
                KeyConditionExpression="list_key = :key AND list_place < :bound",
                ExpressionAttributeValues={":key": text(tick_key(shard)), ":bound": text(f"{now + 1:015d}")},
                Limit=limit,
            )
            found += readable(islice(items, limit), decode_scheduler)
        return sorted(found, key=lambda each: each.next_at)[:limit]

    def one(self, project_id: str, sort_key: str, decode: Callable[[Item], T]) -> T | None:
        """A setting of a store by its sort key, or None."""
        item = self._table.get(store_key(project_id, sort_key))
        return decode(item) if item else None

    def all(self, project_id: str, prefix: str) -> Iterator[Item]:
        """The settings of a store whose sort keys begin alike, read consistently."""
        key = store_key(project_id, prefix)
        return self._table.items(
            KeyConditionExpression="pk = :pk AND begins_with(sk, :prefix)",
            ExpressionAttributeValues={":pk": key["pk"], ":prefix": key["sk"]},
            ConsistentRead=True,
        )
