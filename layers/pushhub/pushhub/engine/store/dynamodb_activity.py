"""Activity per project or subscriber and hour on DynamoDB, one item each.

Items expire by TTL once nobody can ask for their hour any more.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, TypeVar

from pushhub.base.times import epoch_ms, iso_time
from pushhub.cloud.table import Table, number, numbers, text
from pushhub.engine.model.activity import Activity, SubscriberActivity

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock


Counts = TypeVar("Counts", Activity, SubscriberActivity)

KEPT_S = 8 * 86_400
"""How long an hour is kept: queries may go back a week."""


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
        self._add(f"ACTIVITY#{project_id}", hour, asdict(activity))

    def activity(self, project_id: str, first: int, last: int) -> dict[int, Activity]:
        return self._told(f"ACTIVITY#{project_id}", first, last, Activity)

    def add_subscriber_activity(
        self, project_id: str, subscriber_id: str, hour: int, activity: SubscriberActivity
    ) -> None:
        self._add(f"ACTIVITY#{project_id}#{subscriber_id}", hour, asdict(activity))

    def subscriber_activity(
        self, project_id: str, subscriber_id: str, first: int, last: int
    ) -> dict[int, SubscriberActivity]:
        return self._told(f"ACTIVITY#{project_id}#{subscriber_id}", first, last, SubscriberActivity)

    def _add(self, partition: str, hour: int, given: dict[str, int]) -> None:
        counts = {name: count for name, count in given.items() if count}
        self._table.update(
            {"pk": text(partition), "sk": text(iso_time(hour))},
            UpdateExpression=f"ADD {', '.join(f'#{each} :{each}' for each in counts)} SET #ttl = :ttl",
            ExpressionAttributeNames={"#ttl": "ttl", **{f"#{each}": each for each in counts}},
            ExpressionAttributeValues={
                ":ttl": number(hour // 1000 + KEPT_S),
                **{f":{name}": number(count) for name, count in counts.items()},
            },
        )

    def _told(self, partition: str, first: int, last: int, kind: type[Counts]) -> dict[int, Counts]:
        items = self._table.items(
            KeyConditionExpression="pk = :pk AND sk BETWEEN :first AND :last",
            ExpressionAttributeValues={
                ":pk": text(partition),
                ":first": text(iso_time(first)),
                ":last": text(iso_time(last)),
            },
        )
        names = tuple(each.name for each in fields(kind))
        return {epoch_ms(item["sk"]["S"]): kind(**{name: numbers(item, name) or 0 for name in names}) for item in items}
