"""Idempotency keys on DynamoDB: one item each, removed by the table's time to live."""

from __future__ import annotations

import json

from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.documents import Document
from pushhub.cloud.table import Item, TableStore, number, text
from pushhub.webhooks.ports import KeptAnswer, KeyBusy
from pushhub.webhooks.store._items import doc, key

_ANSWER = Document(KeptAnswer)


class DynamoDBIdempotencyKeys(TableStore):
    """Implements :class:`pushhub.webhooks.ports.IdempotencyKeys`."""

    def begin(self, project_id: str, digest: str, *, now: int, locked_ms: int) -> KeptAnswer | None:
        stored = self._note(_key(project_id, digest), now, until=now + locked_ms)
        if stored is None:
            return None
        if "doc" not in stored:
            raise KeyBusy
        answer: KeptAnswer = _ANSWER.decode(json.loads(stored["doc"]["S"]))
        return answer

    def keep(self, project_id: str, digest: str, answer: KeptAnswer, *, until: int) -> None:
        self._table.put(_key(project_id, digest) | {"doc": doc(_ANSWER.encode(answer))} | _ends(until))

    def release(self, project_id: str, digest: str) -> None:
        self._table.delete(_key(project_id, digest))

    def note_id(self, project_id: str, digest: str, made: str, *, now: int, until: int) -> str:
        stored = self._note(_key(project_id, digest) | {"message": text(made)}, now, until=until)
        first: str = stored["message"]["S"] if stored else made
        return first

    def _note(self, item: Item, now: int, *, until: int) -> Item | None:
        """Write an item, unless there is one that is still valid, which is then returned."""
        try:
            self._table.put(
                item | _ends(until),
                ConditionExpression="attribute_not_exists(pk) OR ends_at <= :now",
                ExpressionAttributeValues={":now": number(now)},
            )
        except ConditionRefused as refused:
            return refused.stored
        return None


def _key(project_id: str, digest: str) -> Item:
    return key(f"I#{project_id}#{digest}", "KEY")


def _ends(until: int) -> Item:
    return {"ends_at": number(until), "ttl": number(until // 1000 + 3600)}
