"""What is to be told of the ends of certificates and signature schemes, on DynamoDB: a list of each for the whole hub,
in the order of time.
"""

from __future__ import annotations

from collections.abc import Iterator

from pushhub.cloud.table import Item, TableStore, text
from pushhub.webhooks.certificate_ends import EndNote
from pushhub.webhooks.store._items import key


class DynamoDBEndNotes(TableStore):
    """Implements :class:`pushhub.webhooks.certificate_ends.EndNotes`."""

    _kind = "ENDS"

    def note_end(self, note: EndNote) -> None:
        """See the port."""
        self._table.put(self._key(note))

    def due_ends(self, now: int) -> Iterator[EndNote]:
        """See the port."""
        found = self._table.items(
            KeyConditionExpression="pk = :pk AND sk < :now",
            ExpressionAttributeValues={":pk": text(self._kind), ":now": text(f"{now + 1:015d}")},
            ConsistentRead=True,
        )
        for item in found:
            at, project, app_id, endpoint_id, digest = item["sk"]["S"].split("#")
            yield EndNote(int(at), project, app_id, endpoint_id, digest)

    def forget_end(self, note: EndNote) -> None:
        """See the port."""
        self._table.delete(self._key(note))

    def _key(self, note: EndNote) -> Item:
        return key(self._kind, f"{note.at:015d}#{note.project}#{note.app_id}#{note.endpoint_id}#{note.digest}")


class DynamoDBSchemeEndNotes(DynamoDBEndNotes):
    """The same of signature schemes."""

    _kind = "SCHEME-ENDS"
