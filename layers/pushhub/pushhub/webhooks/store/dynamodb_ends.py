"""What is to be told of certificates' ends, on DynamoDB: a list for the whole hub, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pushhub.cloud.table import Item, TableStore, text
from pushhub.webhooks.certificate_ends import EndNote
from pushhub.webhooks.store._items import key

if TYPE_CHECKING:
    pass

_PK = "ENDS"


class DynamoDBEndNotes(TableStore):
    """Implements :class:`pushhub.webhooks.certificate_ends.EndNotes`."""

    def note_end(self, note: EndNote) -> None:
        """See the port."""
        self._table.put(_key(note))

    def due_ends(self, now: int) -> Iterator[EndNote]:
        """See the port."""
        found = self._table.items(
            KeyConditionExpression="pk = :pk AND sk < :now",
            ExpressionAttributeValues={":pk": text(_PK), ":now": text(f"{now + 1:015d}")},
            ConsistentRead=True,
        )
        for item in found:
            at, project, app_id, endpoint_id, digest = item["sk"]["S"].split("#")
            yield EndNote(int(at), project, app_id, endpoint_id, digest)

    def forget_end(self, note: EndNote) -> None:
        """See the port."""
        self._table.delete(_key(note))


def _key(note: EndNote) -> Item:
    return key(_PK, f"{note.at:015d}#{note.project}#{note.app_id}#{note.endpoint_id}#{note.digest}")
