"""How many descendants accepted messages have, on DynamoDB: one item per message that has any, in its own partition."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import Item, Table, number, text

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock

KEPT_S = 30 * 86_400
"""Seconds a count is kept after the last descendant; for a message of last month, counting starts again."""


class DynamoDBDescendants:
    """Implements :class:`pushhub.engine.ports.Descendants`.

    Args:
        table: Name of a table with the attribute ``ttl``.
        most: Maximum number of descendants of one accepted message.
    """

    def __init__(self, client: DynamoDBClient, table: str, clock: Clock, *, most: int) -> None:
        self._table = Table(client, table, clock)
        self._clock = clock
        self._most = most

    def spend(self, project_id: str, root_id: str, *, cause: str, count: int) -> bool:
        if count > self._most:
            return False
        key: Item = {"pk": text(f"{project_id}#ROOT#{root_id}"), "sk": text("DESCENDANTS")}
        # Short, because a message may have a thousand causes; even then, a collision has a chance of one in 10^13.
        short = hashlib.sha256(cause.encode()).hexdigest()[:16]
        try:
            self._table.update(
                key,
                UpdateExpression="SET #ttl = :ttl ADD used :count, causes :causes",
                ConditionExpression="attribute_not_exists(pk) OR (used <= :room AND NOT contains(causes, :cause))",
                ExpressionAttributeNames={"#ttl": "ttl"},
                ExpressionAttributeValues={
                    ":ttl": number(self._clock.now() // 1000 + KEPT_S),
                    ":count": number(count),
                    ":causes": {"SS": [short]},
                    ":cause": text(short),
                    ":room": number(self._most - count),
                },
            )
        except ConditionRefused as refused:
            return short in refused.stored["causes"]["SS"]
        return True
