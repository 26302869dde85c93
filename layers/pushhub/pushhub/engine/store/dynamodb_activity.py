"""Activity by project and hour on DynamoDB: an item each, which goes by itself once nobody asks for its hour any
more.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from pushhub.base.ports import Clock
from pushhub.base.times import epoch_ms, iso_time
from pushhub.cloud.table import Item, Table, number, numbers, text
from pushhub.engine.model.activity import Activity

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


KEPT_S = 8 * 86_400
"""How long an hour is kept: a week may be asked for."""

_COUNTS = tuple(asdict(Activity()))


class DynamoDBActivity:
    """Implements :class:`pushhub.engine.ports.ActivityStore`.

    Args:
        client: Low-level DynamoDB client.
        table: Name of the table; keys ``pk`` and ``sk``, time to live ``ttl``.
        clock: Waits between rounds.
    """

    def __init__(self, client: DynamoDBClient, table: str, clock: Clock) -> None:
        self._table = Table(client, table, clock)

    def add_activity(self, project_id: str, hour: int, activity: Activity) -> None:
        counts = {name: count for name, count in asdict(activity).items() if count}
        self._table.update(
            {"pk": text(_partition(project_id)), "sk": text(iso_time(hour))},
            UpdateExpression=f"ADD {', '.join(f'#{each} :{each}' for each in counts)} SET #ttl = :ttl",
            ExpressionAttributeNames={"#ttl": "ttl", **{f"#{each}": each for each in counts}},
            ExpressionAttributeValues={
                ":ttl": number(hour // 1000 + KEPT_S),
                **{f":{name}": number(count) for name, count in counts.items()},
            },
        )

    def activity(self, project_id: str, first: int, last: int) -> dict[int, Activity]:
        items = self._table.items(
            KeyConditionExpression="pk = :pk AND sk BETWEEN :first AND :last",
            ExpressionAttributeValues={
                ":pk": text(_partition(project_id)),
                ":first": text(iso_time(first)),
                ":last": text(iso_time(last)),
            },
        )
        return {epoch_ms(item["sk"]["S"]): _decode(item) for item in items}


def _partition(project_id: str) -> str:
    return f"ACTIVITY#{project_id}"


def _decode(item: Item) -> Activity:
    return Activity(**{name: numbers(item, name) or 0 for name in _COUNTS})
