"""What is to be told of the ends of certificates and signature schemes, on DynamoDB: lists for the whole hub, in the
order of time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from pushhub.cloud.table import Item, TableStore, text
from pushhub.cloud.unreadable import decodes, readable
from pushhub.engine.ends import EndNote

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock

CERTIFICATES, SCHEMES = "ENDS", "SCHEME-ENDS"
"""Partitions of the lists in the table of webhooks: of client certificates, and of signature schemes."""


def of_protocol(name: str) -> str:
    """Partition of the list of a protocol's client certificates, in the table of the schedule."""
    return f"{CERTIFICATES}#{name}"


class DynamoDBEndNotes(TableStore):
    """Implements :class:`pushhub.engine.ends.EndNotes`.

    Args:
        partition: Which list.
    """

    def __init__(self, client: DynamoDBClient, table: str, clock: Clock, partition: str = CERTIFICATES) -> None:
        super().__init__(client, table, clock)
        self._pk = partition

    def note_end(self, note: EndNote) -> None:
        self._table.put(self._key(note))

    def due_ends(self, now: int) -> Iterator[EndNote]:
        found = self._table.items(
            KeyConditionExpression="pk = :pk AND sk < :now",
            ExpressionAttributeValues={":pk": text(self._pk), ":now": text(f"{now + 1:015d}")},
            ConsistentRead=True,
        )
        yield from readable(found, _decode)

    def forget_end(self, note: EndNote) -> None:
        self._table.delete(self._key(note))

    def _key(self, note: EndNote) -> Item:
        place = f"{note.at:015d}#{note.project}#{quote(note.group, safe='')}#{note.subscriber_id}#{note.digest}"
        return {"pk": text(self._pk), "sk": text(place)}


@decodes
def _decode(item: Item) -> EndNote:
    at, project, group, subscriber_id, digest = item["sk"]["S"].split("#")
    return EndNote(int(at), project, unquote(group), subscriber_id, digest)
