"""Idempotency keys on DynamoDB: one item each, removed by the table's time to live."""

from __future__ import annotations

from pushhub.base import json_text
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.documents import Document
from pushhub.cloud.table import Item, TableStore, number, text
from pushhub.webhooks.messages.ports import KeyBusy, KeyReused
from pushhub.webhooks.ports import KeptAnswer, RequestKey
from pushhub.webhooks.store._items import doc, key

_ANSWER = Document(KeptAnswer)


class DynamoDBIdempotencyKeys(TableStore):
    """Implements :class:`pushhub.webhooks.messages.ports.IdempotencyKeys`."""

    def begin(self, project_id: str, request: RequestKey, *, now: int, locked_ms: int) -> KeptAnswer | None:
        stored = self._note(request, _key(project_id, request), now, until=now + locked_ms)
        if stored is None:
            return None
        if "doc" not in stored:
            raise KeyBusy
        answer: KeptAnswer = _ANSWER.decode(json_text.stored(stored["doc"]["S"]))
        return answer

    def keep(self, project_id: str, request: RequestKey, answer: KeptAnswer, *, until: int) -> None:
        self._table.put(_key(project_id, request) | {"doc": doc(_ANSWER.encode(answer))} | _ends(until))

    def release(self, project_id: str, request: RequestKey) -> None:
        self._table.delete(key(f"I#{project_id}#{request.digest}", "KEY"))

    def note_id(self, project_id: str, request: RequestKey, new_id: str, *, now: int, until: int) -> str:
        stored = self._note(request, _key(project_id, request) | {"message": text(new_id)}, now, until=until)
        first: str = stored["message"]["S"] if stored else new_id
        return first

    def _note(self, request: RequestKey, item: Item, now: int, *, until: int) -> Item | None:
        """Write an item, unless there is one that is still valid, which is then returned."""
        try:
            self._table.put(
                item | _ends(until),
                ConditionExpression="attribute_not_exists(pk) OR ends_at <= :now",
                ExpressionAttributeValues={":now": number(now)},
            )
        except ConditionRefused as refused:
            if refused.stored and refused.stored["content"]["S"] != request.content:
                raise KeyReused from refused
            return refused.stored
        return None


def _key(project_id: str, request: RequestKey) -> Item:
    return key(f"I#{project_id}#{request.digest}", "KEY") | {"content": text(request.content)}


def _ends(until: int) -> Item:
    return {"ends_at": number(until), "ttl": number(until // 1000 + 3600)}
