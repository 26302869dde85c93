"""Places of consumers on DynamoDB: ``PLACE#{consumer}`` in their application's partition."""

from __future__ import annotations

from pushhub.cloud.table import Item, TableStore, text
from pushhub.webhooks.store._items import app_pk, key


class DynamoDBPlaces(TableStore):
    """Implements :class:`pushhub.webhooks.messages.poller.Places`."""

    def place(self, project_id: str, app_id: str, consumer: str) -> str | None:
        item = self._table.get(_key(project_id, app_id, consumer))
        return item["place"]["S"] if item else None

    def put_place(self, project_id: str, app_id: str, consumer: str, place: str) -> None:
        self._table.put(_key(project_id, app_id, consumer) | {"place": text(place)})


def _key(project_id: str, app_id: str, consumer: str) -> Item:
    return key(app_pk(project_id, app_id), f"PLACE#{consumer}")
