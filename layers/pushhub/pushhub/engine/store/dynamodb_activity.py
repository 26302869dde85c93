"""Activity per project or subscriber and hour on DynamoDB, one item each.

Items expire by TTL once nobody can ask for their hour any more.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, TypeVar

from pushhub.cloud.table import Item, TableStore, numbers
from pushhub.cloud.unreadable import decodes, paired
from pushhub.engine.model.activity import Activity, SubscriberActivity
from pushhub.engine.store._hours import add_to_hour, hour_key, hours

if TYPE_CHECKING:
    from collections.abc import Sequence

Counts = TypeVar("Counts", Activity, SubscriberActivity)

_TOOK = "t"
"""Prefix of the attributes that count attempts by the class of their duration: short, so that an item stays below 1 KB,
which is one write unit.
"""


class DynamoDBActivity(TableStore):
    """Implements :class:`pushhub.engine.records.ports.ActivityStore`."""

    def add_activity(self, project_id: str, hour: int, activity: Activity) -> None:
        add_to_hour(self._table, f"ACTIVITY#{project_id}", hour, _counts(activity))

    def activity(self, project_id: str, first: int, last: int) -> dict[int, Activity]:
        return self._hours(f"ACTIVITY#{project_id}", first, last, Activity)

    def add_subscriber_activity(
        self, project_id: str, subscriber_id: str, hour: int, activity: SubscriberActivity
    ) -> None:
        add_to_hour(self._table, f"ACTIVITY#{project_id}#{subscriber_id}", hour, _counts(activity))

    def subscriber_activity(
        self, project_id: str, subscriber_id: str, first: int, last: int
    ) -> dict[int, SubscriberActivity]:
        return self._hours(f"ACTIVITY#{project_id}#{subscriber_id}", first, last, SubscriberActivity)

    def activity_at(
        self, project_id: str, subscriber_ids: Sequence[str], hours: Sequence[int]
    ) -> dict[str, SubscriberActivity]:
        subscribers = {f"ACTIVITY#{project_id}#{each}": each for each in subscriber_ids}
        keys = [hour_key(partition, hour) for partition in subscribers for hour in hours]
        found: dict[str, SubscriberActivity] = {}
        items = self._table.get_many(keys, consistent=False)
        for item, activity in paired(items, lambda each: _decode(each, SubscriberActivity)):
            if activity is None:
                continue
            subscriber_id = subscribers[item["pk"]["S"]]
            found[subscriber_id] = found.get(subscriber_id, SubscriberActivity()) + activity
        return found

    def _hours(self, partition: str, first: int, last: int, kind: type[Counts]) -> dict[int, Counts]:
        found = hours(self._table, partition, first, last)
        counted = zip(found, paired(found.values(), lambda each: _decode(each, kind)), strict=True)
        return {hour: counts for hour, (_, counts) in counted if counts is not None}


def _counts(activity: Activity | SubscriberActivity) -> dict[str, int]:
    counts = asdict(activity)
    took: dict[int, int] = counts.pop("took")
    return counts | {f"{_TOOK}{place}": count for place, count in took.items()}


@decodes
def _decode(item: Item, kind: type[Counts]) -> Counts:
    counts = {each.name: numbers(item, each.name) or 0 for each in fields(kind) if each.name != "took"}
    places = (name.removeprefix(_TOOK) for name in item if name.startswith(_TOOK))
    took = {int(place): numbers(item, f"{_TOOK}{place}") or 0 for place in places if place.isdecimal()}
    return kind(**counts, took=took)
