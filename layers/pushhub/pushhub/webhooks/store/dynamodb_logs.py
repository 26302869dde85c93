"""What applications list: their messages, and the attempts made at their endpoints. Items that the table's time to live takes away."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pushhub.base.ports import Clock
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import Item, Table, number, text
from pushhub.webhooks.model.attempt import LoggedAttempt
from pushhub.webhooks.model.message import ListedMessage, MessageFields
from pushhub.webhooks.model.page import Span
from pushhub.webhooks.store._items import between, doc, key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_MESSAGE, _EVENT, _ATTEMPT = "M#", "E#", "T#"

_PAGE = 100
"""Items that one call of a list reads."""

_COMPRESSED_FROM = 500
"""Characters of an answer from which it is kept compressed."""


class DynamoDBWebhooksLogs:
    """Implements :class:`pushhub.webhooks.ports.MessageLog` and ``AttemptLog``.

    Args:
        client: Low-level DynamoDB client.
        table: Name of the webhooks table.
        clock: Waits between rounds of a batch.
    """

    def __init__(self, client: DynamoDBClient, table: str, clock: Clock) -> None:
        self._table = Table(client, table, clock)

    def list_message(self, message: ListedMessage) -> None:
        """See the port."""
        fields = message.fields
        value = {
            "type": fields.event_type,
            "channels": fields.channels,
            "tags": fields.tags,
            "event": fields.event_id,
            "content": fields.content_type,
            "deliver": fields.deliver_at,
            "at": [message.accepted_at, message.ends_at, message.listed_until],
            "gone": message.expunged,
        }
        item = key(_app_pk(message.project, message.app_id), _MESSAGE + message.engine_id)
        self._table.put(item | {"doc": _short(value)} | _ttl(message.listed_until))

    def listed(self, project_id: str, app_id: str, engine_id: str) -> ListedMessage | None:
        """See the port."""
        item = self._table.get(key(_app_pk(project_id, app_id), _MESSAGE + engine_id))
        return _message(item) if item else None

    def messages(self, project_id: str, app_id: str, span: Span) -> Iterator[ListedMessage]:
        """See the port."""
        if span.empty:
            return iter(())
        items = self._table.items(Limit=_PAGE, **between(_app_pk(project_id, app_id), _MESSAGE, span))
        return (each for each in map(_message, items) if span.has(each.engine_id))

    def claim_event(self, project_id: str, app_id: str, event_id: str, engine_id: str, *, until: int) -> str:
        """See the port."""
        item = key(_app_pk(project_id, app_id), _EVENT + event_id) | {"id": text(engine_id)} | _ttl(until)
        try:
            self._table.put(item, ConditionExpression="attribute_not_exists(pk)")
        except ConditionRefused as refused:
            owner: str = refused.stored["id"]["S"]
            return owner
        return engine_id

    def message_of_event(self, project_id: str, app_id: str, event_id: str) -> str | None:
        """See the port."""
        item = self._table.get(key(_app_pk(project_id, app_id), _EVENT + event_id))
        return item["id"]["S"] if item else None

    def log_attempt(self, attempt: LoggedAttempt) -> None:
        """See the port."""
        value = {
            "app": attempt.app_id,
            "url": attempt.url,
            "manual": attempt.manual,
            "n": attempt.number,
            "code": attempt.status_code,
            "ok": attempt.success,
            "ms": attempt.duration_ms,
            "at": attempt.started_at,
            "type": attempt.event_type,
            "channels": attempt.channels,
            "tags": attempt.tags,
        }
        item = key(_endpoint_pk(attempt.project, attempt.endpoint_id), _ATTEMPT + attempt.attempt_id)
        item |= {"message": text(attempt.engine_id), "doc": _short(value)} | _ttl(attempt.listed_until)
        if len(attempt.response) >= _COMPRESSED_FROM:
            item["packed"] = {"B": zlib.compress(attempt.response.encode(errors="replace"))}
        elif attempt.response:
            item["response"] = text(attempt.response)
        self._table.put(item)

    def attempts(
        self, project_id: str, endpoint_id: str, span: Span, *, engine_id: str | None = None
    ) -> Iterator[LoggedAttempt]:
        """See the port."""
        if span.empty:
            return iter(())
        query = between(_endpoint_pk(project_id, endpoint_id), _ATTEMPT, span)
        if engine_id is not None:
            query["FilterExpression"] = "#message = :message"
            query["ExpressionAttributeNames"] = {"#message": "message"}
            query["ExpressionAttributeValues"][":message"] = text(engine_id)
        else:
            query["Limit"] = _PAGE
        return (each for each in map(_attempt, self._table.items(**query)) if span.has(each.attempt_id))


def _app_pk(project_id: str, app_id: str) -> str:
    return f"L#{project_id}#{app_id}"


def _endpoint_pk(project_id: str, endpoint_id: str) -> str:
    return f"T#{project_id}#{endpoint_id}"


def _short(value: dict[str, Any]) -> dict[str, str]:
    return doc({name: each for name, each in value.items() if each})


def _ttl(until: int) -> Item:
    return {"ttl": number(until // 1000)}


def _message(item: Item) -> ListedMessage:
    value = json.loads(item["doc"]["S"])
    _, project, app_id = item["pk"]["S"].split("#")
    accepted_at, ends_at, listed_until = value["at"]
    return ListedMessage(
        project=project,
        app_id=app_id,
        engine_id=item["sk"]["S"].removeprefix(_MESSAGE),
        fields=MessageFields(
            event_type=value["type"],
            channels=tuple(value.get("channels", ())),
            tags=tuple(value.get("tags", ())),
            event_id=value.get("event"),
            content_type=value.get("content"),
            deliver_at=value.get("deliver"),
        ),
        accepted_at=accepted_at,
        ends_at=ends_at,
        listed_until=listed_until,
        expunged=value.get("gone", False),
    )


def _attempt(item: Item) -> LoggedAttempt:
    value = json.loads(item["doc"]["S"])
    _, project, endpoint_id = item["pk"]["S"].split("#")
    return LoggedAttempt(
        project=project,
        app_id=value["app"],
        endpoint_id=endpoint_id,
        engine_id=item["message"]["S"],
        number=value["n"],
        manual=value.get("manual", False),
        url=value["url"],
        status_code=value.get("code", 0),
        success=value.get("ok", False),
        response=_response(item),
        duration_ms=value.get("ms", 0),
        started_at=value["at"],
        event_type=value["type"],
        channels=tuple(value.get("channels", ())),
        tags=tuple(value.get("tags", ())),
        listed_until=int(item["ttl"]["N"]) * 1000,
    )


def _response(item: Item) -> str:
    if "packed" in item:
        packed = item["packed"]["B"]
        return zlib.decompress(base64.b64decode(packed) if isinstance(packed, str) else bytes(packed)).decode()
    return str(item["response"]["S"]) if "response" in item else ""
