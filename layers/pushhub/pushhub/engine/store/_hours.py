"""Counts by hour on DynamoDB: one item per partition and hour, which expires by TTL after a week."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.times import epoch_ms, iso_time
from pushhub.cloud.table import Item, Table, number, text

if TYPE_CHECKING:
    from collections.abc import Mapping

KEPT_S = 8 * 86_400
"""How long an hour is kept: queries may go back a week."""

_AT_ONCE = 100
"""Counts per write, because an expression is limited to 4 KB."""


def hour_key(partition: str, hour: int) -> Item:
    """The key of what was counted of something in an hour (its start, epoch milliseconds)."""
    return {"pk": text(partition), "sk": text(iso_time(hour))}


def add_to_hour(table: Table, partition: str, hour: int, counts: Mapping[str, int], also: Item | None = None) -> None:
    """Add counts to those of an hour.

    Args:
        table: Keys ``pk`` and ``sk``, time to live ``ttl``.
        partition: What is counted.
        counts: By attribute; those that are zero are left out.
        also: Further attributes to set.
    """
    set_values = {"ttl": number(hour // 1000 + KEPT_S)} | (also or {})
    found = [(name, number(count)) for name, count in counts.items() if count]
    for first in range(0, len(found), _AT_ONCE):
        added = dict(found[first : first + _AT_ONCE])
        places = {name: f"c{place}" for place, name in enumerate([*added, *set_values])}
        table.update(
            hour_key(partition, hour),
            UpdateExpression=f"ADD {', '.join(f'#{places[name]} :{places[name]}' for name in added)} "
            f"SET {', '.join(f'#{places[name]} = :{places[name]}' for name in set_values)}",
            ExpressionAttributeNames={f"#{place}": name for name, place in places.items()},
            ExpressionAttributeValues={f":{places[name]}": value for name, value in (added | set_values).items()},
        )


def hours(table: Table, partition: str, first: int, last: int) -> dict[int, Item]:
    """What was counted in each hour, by its start, from ``first`` to ``last`` (epoch milliseconds, both included)."""
    items = table.items(
        KeyConditionExpression="pk = :pk AND sk BETWEEN :first AND :last",
        ExpressionAttributeValues={
            ":pk": text(partition),
            ":first": text(iso_time(first)),
            ":last": text(iso_time(last)),
        },
    )
    return {epoch_ms(item["sk"]["S"]): item for item in items}
