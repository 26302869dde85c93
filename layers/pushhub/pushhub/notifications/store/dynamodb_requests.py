"""Publish requests that may be repeated, on DynamoDB."""

from __future__ import annotations

from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import TableStore, number
from pushhub.notifications.model.request import REPEATABLE_MS, PublishRequest
from pushhub.notifications.store._items import decode_request, encode_request


class DynamoDBRequestStore(TableStore):
    """Implements :class:`pushhub.notifications.ports.RequestStore`."""

    def note(self, request: PublishRequest, now: int) -> PublishRequest:
        """The table keeps an item for twice as long as it is valid, so none is removed while in use."""
        try:
            self._table.put(
                encode_request(request, now),
                ConditionExpression="attribute_not_exists(pk) OR noted_at <= :before",
                ExpressionAttributeValues={":before": number(now - REPEATABLE_MS)},
            )
        except ConditionRefused as refused:
            return decode_request(refused.stored)
        return request
