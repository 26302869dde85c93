"""The lists of applications: their messages, and the attempts made at their endpoints.

The items are removed by the table's time to live.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

from pushhub.base import json_text
from pushhub.base.conflicts import until_saved
from pushhub.base.credentials import masked_url
from pushhub.base.errors import Conflict
from pushhub.base.gates import Proof
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.documents import Document
from pushhub.cloud.table import Item, TableStore, number, text
from pushhub.cloud.unreadable import decodes, paired, readable
from pushhub.webhooks.model.attempt import LoggedAttempt
from pushhub.webhooks.model.ids import IdPrefix, first_id, time_of
from pushhub.webhooks.model.message import ListedMessage, MessageFields
from pushhub.webhooks.model.page import KeyRange
from pushhub.webhooks.store._items import between, doc, key

_FIELDS = Document(MessageFields)
_LOGGED = Document(LoggedAttempt, {"Proof": Document(Proof).kind})

_MESSAGE, _EVENT, _LATE, _ATTEMPT = "M#", "E#", "N#", "T#"

_PAGE = 100
"""Items that one call of a list reads."""

MOST_PAGES = 10
"""Pages of a megabyte that are read for the attempts of one message."""

_COMPRESSED_FROM = 500
"""Characters of an answer from which it is kept compressed."""

_GROUP = "group"
"""Attribute of an item that holds several attempts, compressed."""

SPREAD_MS = 2_000
"""How far apart the start times of attempts in one item may be, milliseconds: readers look that much beyond their
span.
"""

_GROUP_SIZE = 200_000
"""Characters of one item before compression, about; an item of the table ends at 400 KB."""

_ATTEMPT_SIZE = 1_000
"""Characters of an attempt besides its answer, about."""


class DynamoDBWebhooksLogs(TableStore):
    """Implements :class:`pushhub.webhooks.messages.ports.MessageLog` and ``AttemptLog``."""

    def list_message(self, message: ListedMessage) -> None:
        value = _FIELDS.encode(message.fields)
        value["at"] = [message.accepted_at, message.ends_at, message.listed_until]
        if message.expunged:
            value["gone"] = True
        item = key(_app_pk(message.project, message.app_id), _MESSAGE + message.engine_id)
        condition = {} if message.expunged else {"ConditionExpression": "attribute_not_exists(pk)"}
        with suppress(ConditionRefused):
            self._table.put(item | {"doc": doc(value)} | _ttl(message.listed_until), **condition)

    def listed(self, project_id: str, app_id: str, engine_id: str) -> ListedMessage | None:
        item = self._table.get(key(_app_pk(project_id, app_id), _MESSAGE + engine_id))
        return _decode_message(item) if item else None

    def messages(self, project_id: str, app_id: str, span: KeyRange) -> Iterator[ListedMessage]:
        if span.empty:
            return iter(())
        items = self._table.items(Limit=_PAGE, **between(_app_pk(project_id, app_id), _MESSAGE, span))
        return (each for each in readable(items, _decode_message) if span.has(each.engine_id))

    def note_late(self, message: ListedMessage, position: str) -> None:
        item = key(_app_pk(message.project, message.app_id), _LATE + position)
        self._table.put(item | {"id": text(message.engine_id)} | _ttl(message.listed_until))

    def late(self, project_id: str, app_id: str, span: KeyRange) -> Iterator[tuple[str, str]]:
        if span.empty:
            return iter(())
        items = self._table.items(Limit=_PAGE, **between(_app_pk(project_id, app_id), _LATE, span))
        found = ((item["sk"]["S"].removeprefix(_LATE), item["id"]["S"]) for item in items)
        return (each for each in found if span.has(each[0]))

    def claim_event(self, project_id: str, app_id: str, event_id: str, engine_id: str, *, until: int) -> str:
        item = key(_app_pk(project_id, app_id), _EVENT + event_id) | {"id": text(engine_id)} | _ttl(until)
        try:
            self._table.put(item, ConditionExpression="attribute_not_exists(pk)")
        except ConditionRefused as refused:
            owner: str = refused.stored["id"]["S"]
            return owner
        return engine_id

    def message_of_event(self, project_id: str, app_id: str, event_id: str) -> str | None:
        item = self._table.get(key(_app_pk(project_id, app_id), _EVENT + event_id))
        return item["id"]["S"] if item else None

    def log_attempts(self, attempts: Sequence[LoggedAttempt]) -> None:
        for group in _groups(attempts):
            self._table.put(attempts_item(group))

    def change_attempt(self, attempt: LoggedAttempt) -> None:
        until_saved(lambda: self._change(attempt), doing="changing an attempt under contention")

    def _change(self, changed: LoggedAttempt) -> None:
        pk = _endpoint_pk(changed.project, changed.endpoint_id)
        span = KeyRange(above=first_id(IdPrefix.ATTEMPT, changed.started_at), below=_last_of_group(changed.attempt_id))
        for item, logged in paired(self._table.items(**between(pk, _ATTEMPT, span)), decode_attempts):
            if logged is None or all(each.attempt_id != changed.attempt_id for each in logged):
                continue
            rest = [changed if each.attempt_id == changed.attempt_id else each for each in logged]
            before = "packed" if _GROUP not in item else _GROUP
            condition: dict[str, Any] = {}
            if before in item:
                condition = {
                    "ConditionExpression": "#before = :before",
                    "ExpressionAttributeNames": {"#before": before},
                    "ExpressionAttributeValues": {":before": item[before]},
                }
            try:
                self._table.put(attempts_item(rest), **condition)
            except ConditionRefused as refused:
                raise Conflict("the attempts logged with it changed") from refused
            return

    def attempts(
        self, project_id: str, endpoint_id: str, span: KeyRange, *, engine_id: str | None = None
    ) -> Iterator[LoggedAttempt]:
        if span.empty:
            return
        below = None if span.below is None else _last_of_group(span.below)
        query = between(_endpoint_pk(project_id, endpoint_id), _ATTEMPT, replace(span, below=below))
        pages: Iterator[Any]
        if engine_id is not None:
            query["FilterExpression"] = "#message = :message OR attribute_exists(#group)"
            query["ExpressionAttributeNames"] = {"#message": "message", "#group": _GROUP}
            query["ExpressionAttributeValues"][":message"] = text(engine_id)
            pages = islice(self._table.pages(**query), MOST_PAGES)
        else:
            pages = self._table.pages(Limit=_PAGE, **query)
        items = (item for page in pages for item in page["Items"])
        for each in _in_order(items, up=span.up):
            if span.has(each.attempt_id) and engine_id in (None, each.engine_id):
                yield each


def _groups(attempts: Sequence[LoggedAttempt]) -> Iterator[list[LoggedAttempt]]:
    """Attempts in the order of their ids, in groups that fit an item and whose ids are no further apart than a reader
    looks.
    """
    group: list[LoggedAttempt] = []
    size = 0
    for each in sorted(attempts, key=lambda each: each.attempt_id):
        # As it is stored: a letter may take twelve, of which compression saves half.
        taken = len(json_text.write(each.response, ascii_only=True))
        if group and (each.started_at - group[0].started_at > SPREAD_MS or size + taken > _GROUP_SIZE):
            yield group
            group, size = [], 0
        group.append(each)
        size += taken + _ATTEMPT_SIZE
    if group:
        yield group


def _last_of_group(attempt_id: str) -> str:
    """An upper bound for the ids of groups that may contain an attempt."""
    return first_id(IdPrefix.ATTEMPT, time_of(attempt_id) + SPREAD_MS + 8)


def _in_order(items: Iterator[Item], *, up: bool) -> Iterator[LoggedAttempt]:
    """The attempts of several items in order. Each item has the id of its last attempt; its other attempts are up to
    :data:`SPREAD_MS` older.
    """
    waiting: list[LoggedAttempt] = []
    for logged in readable(items, decode_attempts):
        last = logged[-1].attempt_id
        # Nothing still to come sorts before this.
        bound = first_id(IdPrefix.ATTEMPT, time_of(last) - SPREAD_MS - 4) if up else last
        ready = [each for each in waiting if (each.attempt_id < bound if up else each.attempt_id > bound)]
        if ready:
            waiting = [each for each in waiting if each not in ready]
            yield from _sorted(ready, up=up)
        waiting += logged
    yield from _sorted(waiting, up=up)


def _sorted(attempts: Sequence[LoggedAttempt], *, up: bool) -> list[LoggedAttempt]:
    return sorted(attempts, key=lambda each: each.attempt_id, reverse=not up)


def attempts_item(attempts: Sequence[LoggedAttempt]) -> Item:
    """The item of some attempts at one endpoint, in the order of their ids."""
    last = attempts[-1]
    item = key(_endpoint_pk(last.project, last.endpoint_id), _ATTEMPT + last.attempt_id)
    item |= _ttl(max(each.listed_until for each in attempts))
    if len(attempts) > 1:
        values = [[each.engine_id, each.listed_until, _attempt_value(each), each.response] for each in attempts]
        return item | {_GROUP: {"B": _packed(json_text.write(values, ascii_only=True))}}
    item |= {"message": text(last.engine_id), "doc": doc(_attempt_value(last))}
    if len(last.response) >= _COMPRESSED_FROM:
        item["packed"] = {"B": _packed(last.response)}
    elif last.response:
        item["response"] = text(last.response)
    return item


def _attempt_value(attempt: LoggedAttempt) -> dict[str, Any]:
    return _LOGGED.encode(replace(attempt, url=masked_url(attempt.url)))


def _app_pk(project_id: str, app_id: str) -> str:
    return f"L#{project_id}#{app_id}"


def _endpoint_pk(project_id: str, endpoint_id: str) -> str:
    return f"T#{project_id}#{endpoint_id}"


def _ttl(until: int) -> Item:
    return {"ttl": number(until // 1000)}


@decodes
def _decode_message(item: Item) -> ListedMessage:
    value = json_text.stored(item["doc"]["S"])
    _, project, app_id = item["pk"]["S"].split("#")
    accepted_at, ends_at, listed_until = value["at"]
    return ListedMessage(
        project=project,
        app_id=app_id,
        engine_id=item["sk"]["S"].removeprefix(_MESSAGE),
        fields=_FIELDS.decode(value),
        accepted_at=accepted_at,
        ends_at=ends_at,
        listed_until=listed_until,
        expunged=value.get("gone", False),
    )


@decodes
def decode_attempts(item: Item) -> list[LoggedAttempt]:
    """The attempts of an item, in the order of their ids."""
    _, project, endpoint_id = item["pk"]["S"].split("#")
    if _GROUP in item:
        entries = json_text.stored(_unpacked(item[_GROUP]))
    else:
        response = _unpacked(item["packed"]) if "packed" in item else item.get("response", {"S": ""})["S"]
        entries = [[item["message"]["S"], int(item["ttl"]["N"]) * 1000, json_text.stored(item["doc"]["S"]), response]]
    if not entries:
        raise ValueError("nobody writes an item without attempts")
    return [
        _LOGGED.decode(
            value,
            project=project,
            endpoint_id=endpoint_id,
            engine_id=engine_id,
            response=response,
            listed_until=listed_until,
        )
        for engine_id, listed_until, value, response in entries
    ]


def _packed(content: str) -> bytes:
    return zlib.compress(content.encode(errors="replace"))


def _unpacked(attribute: dict[str, Any]) -> str:
    packed = attribute["B"]
    return zlib.decompress(base64.b64decode(packed) if isinstance(packed, str) else bytes(packed)).decode()
