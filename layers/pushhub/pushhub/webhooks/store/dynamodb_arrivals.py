"""What came to sources and was not accepted, counted by day: an item for each source and day, kept for 90 days."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base import json_text
from pushhub.cloud.table import Item, TableStore, number, text
from pushhub.cloud.unreadable import decodes, readable
from pushhub.webhooks.model.arrival import Turned, TurnedAway
from pushhub.webhooks.store._items import doc, key

if TYPE_CHECKING:
    from collections.abc import Sequence

_KEPT_DAYS = 90
_DAY_S = 86_400
_COUNT = "n_"


class DynamoDBArrivalCounts(TableStore):
    """Implements :class:`pushhub.webhooks.sources.arrivals.ArrivalCounts`."""

    def count(self, project_id: str, source_id: str, day: int, turned: Turned) -> None:
        last = {"why": turned.why, "at": turned.at, "address": turned.address, "agent": turned.agent}
        self._table.update(
            key(_pk(project_id, source_id), f"{day:06d}"),
            UpdateExpression="ADD #count :one SET #last = :last, #ttl = :ttl",
            ExpressionAttributeNames={"#count": _COUNT + turned.why, "#last": "doc", "#ttl": "ttl"},
            ExpressionAttributeValues={
                ":one": number(1),
                ":last": doc(last),
                ":ttl": number((day + _KEPT_DAYS + 1) * _DAY_S),
            },
        )

    def counts(self, project_id: str, source_id: str, since: int) -> Sequence[TurnedAway]:
        found = self._table.items(
            KeyConditionExpression="pk = :pk AND sk >= :since",
            ExpressionAttributeValues={":pk": text(_pk(project_id, source_id)), ":since": text(f"{since:06d}")},
            ScanIndexForward=False,
            ConsistentRead=True,
        )
        return [*readable(found, decode_turned_away)]


@decodes
def decode_turned_away(item: Item) -> TurnedAway:
    """What was turned away in a day, from its item."""
    counted = {name.removeprefix(_COUNT): value for name, value in item.items() if name.startswith(_COUNT)}
    return TurnedAway(
        day=int(item["sk"]["S"]),
        counts={name: int(value["N"]) for name, value in counted.items()},
        last=Turned(**json_text.stored(item["doc"]["S"])),
    )


def _pk(project_id: str, source_id: str) -> str:
    return f"R#{project_id}#{source_id}"
