"""The index of messages by the values of their fields, on DynamoDB: one small item for each, without the value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.cloud.table import Item, TableStore, number, text
from pushhub.cloud.unreadable import decodes, readable
from pushhub.engine.model.search import IndexEntry, lookup_key

if TYPE_CHECKING:
    from collections.abc import Sequence


class DynamoDBSearchIndex(TableStore):
    """Implements :class:`pushhub.engine.ports.SearchIndex`."""

    def add(self, entries: Sequence[IndexEntry]) -> None:
        self._table.put_many([_encode(each) for each in entries])

    def find(
        self, project_id: str, value: str, limit: int, after: str | None = None
    ) -> tuple[list[IndexEntry], str | None]:
        partition = _partition(project_id, value)
        start = {"ExclusiveStartKey": {"pk": text(partition), "sk": text(after)}} if after else {}
        pages = self._table.pages(
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": text(partition)},
            ScanIndexForward=False,
            ConsistentRead=True,
            Limit=limit,
            **start,
        )
        page = next(pages)
        following = page.get("LastEvaluatedKey")
        found = [*readable(page["Items"], lambda item: _decode(item, project_id, value))]
        return found, following["sk"]["S"] if following else None

    def remove(self, entries: Sequence[IndexEntry]) -> None:
        self._table.delete_many([_key(each) for each in entries])


def _partition(project_id: str, value: str) -> str:
    return f"FOUND#{project_id}#{lookup_key(value)}"


def _key(entry: IndexEntry) -> Item:
    return {
        "pk": text(_partition(entry.project, entry.value)),
        "sk": text(f"{entry.message_id}#{entry.queue_uid}#{entry.field}"),
    }


def _encode(entry: IndexEntry) -> Item:
    return _key(entry) | {"queue": text(entry.queue), "ttl": number(entry.expires_at // 1000)}


@decodes
def _decode(item: Item, project_id: str, value: str) -> IndexEntry:
    message_id, queue_uid, field = item["sk"]["S"].split("#", 2)
    return IndexEntry(
        project=project_id,
        value=value,
        queue=item["queue"]["S"],
        queue_uid=queue_uid,
        message_id=message_id,
        field=field,
        expires_at=int(item["ttl"]["N"]) * 1000,
    )
