"""What may be in an export: every kind of item, read by the code that reads it in the tables, and whose it is.

A folder comes from somewhere else, and anybody may have changed it. So nothing of it is written that the functions
could not read, that is somebody else's, or that is of no kind known here. What is wrong is told with file and line.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from pushhub.base import json_text

from .holdings import moving

if TYPE_CHECKING:
    from pushhub.cloud.table import Item

    from .carried import Folder

_P = "(?P<project>[0-9a-f]{24})"
_INDEXED = ("unsettled_queue", "list_key", "idle_shard", "shard_key")
"""Attributes by which items are found in indexes: they must not put one into somebody else's list."""
_OWNER = re.compile(r"(?:[A-Za-z]+#)?([0-9a-f]{24})(?:#.*)?", re.DOTALL)
_DEEPEST, _LONGEST_NUMBER = 32, 200
_CHUNK = "[0-9]+-[0-9]+#.+"
"""The name of a chunk of the catalogue: its highest and lowest id, by which searches go on."""


class Wrong(Exception):
    """Something in an export is not as an export has it; the text says what."""


Reader = Callable[["Item", str], object]
"""Reads an item of a project as the functions do; raises ``Unreadable``."""


@dataclass(frozen=True, slots=True)
class Reads:
    """What reads items of a kind.

    Attributes:
        pk: Pattern of their partition keys.
        sk: Pattern of their sort keys.
        read: Reads one; None for marks and counters, of which nothing but the attributes' types can be wrong.
    """

    pk: str
    sk: str
    read: Reader | None = None


def _flow(item: Item, project: str) -> object:
    from pushhub.engine.store.dynamodb_subscribers import _decode_flow  # noqa: PLC0415

    del project
    return _decode_flow(item, before=False)


def _values(item: Item, project: str) -> object:
    from pushhub.engine.store.dynamodb_catalogue import message_numbers  # noqa: PLC0415

    del project
    return message_numbers(item, 0)


def _backlog(item: Item, project: str) -> object:
    from pushhub.engine.model.flow import FlowKey  # noqa: PLC0415
    from pushhub.engine.store.dynamodb_subscribers import _decode_place  # noqa: PLC0415

    return _decode_place(item, FlowKey(project, item["pk"]["S"].split("#", 2)[2]))


def _message_or_delivery(item: Item, project: str) -> object:
    from pushhub.engine.store.dynamodb_messages import _DELETED, _decode_either  # noqa: PLC0415

    del project
    return None if _DELETED in item else _opened(_decode_either(item))


def _pull_message(item: Item, project: str) -> object:
    from pushhub.ironmq.store._pull_items import decode_pull_message  # noqa: PLC0415

    del project
    held = decode_pull_message(item)
    _opened(held.message)
    return held


def _opened(stored: object) -> object:
    """What was read: a message whose compressed body nobody can open would be tried until it expires."""
    from pushhub.engine.model.deflated import plain  # noqa: PLC0415
    from pushhub.engine.model.message import Message  # noqa: PLC0415

    if isinstance(stored, Message) and stored.body is not None:
        plain(stored.body)
    return stored


def _queue(item: Item, project: str) -> object:
    from pushhub.engine.store._queue_items import decode_queue  # noqa: PLC0415

    return decode_queue(item, project, item["sk"]["S"].partition("#")[2])


def _by(name: str, *, with_project: bool = False) -> Reader:
    """A function of a store, which takes the item and, if it asks for it, its project."""

    def read(item: Item, project: str) -> object:
        module, _, function = name.partition(":")
        decode = getattr(import_module(f"pushhub.{module}"), function)
        return decode(item, project) if with_project else decode(item)

    return read


_ENGINE, _IRON = "engine.store", "ironmq.store"
_HUB, _NOTES, _HOOKS = "hub.store", "notifications.store", "webhooks.store"

READERS: dict[str, tuple[Reads, ...]] = {
    "ConfigTable": (
        Reads(f"P#{_P}", "PROJECT", _by(f"{_ENGINE}._project_items:decode_project", with_project=True)),
        Reads(f"P#{_P}", "QUEUE#.+", _queue),
        Reads(f"P#{_P}", "TOKEN#.+", _by(f"{_ENGINE}.dynamodb_config:_decode_token")),
        Reads(f"P#{_P}", "SPANS", _by(f"{_ENGINE}._project_items:decode_span_export", with_project=True)),
        Reads(f"P#{_P}", "QUOTA|TOTAL#.+"),
        Reads("T#[0-9a-f]{64}", "TOKEN"),
        Reads("ALERTS", f"{_P}#.+", _by(f"{_IRON}.dynamodb_alerts:_decode")),
    ),
    "MessagesTable": (
        Reads(f"{_P}#.+#.+", "K"),
        Reads(f"{_P}#ROOT#.+", "DESCENDANTS"),
        Reads(f"{_P}#.+#.+", ".+", _message_or_delivery),
    ),
    "ScheduleTable": (
        Reads(f"HEALTH#{_P}#[0-9]+", ".+#.+", _by(f"{_ENGINE}.dynamodb_subscribers:decode_health")),
        Reads(f"FLOW#{_P}#.+", "TURN", _flow),
        Reads(f"LINE#{_P}#.+", ".+", _backlog),
        Reads(f"(WAITING|BEHIND)#{_P}#.+", ".+", _by(f"{_ENGINE}.dynamodb_subscribers:_decode_order")),
        Reads(f"LISTED#{_P}#[0-9]+", _CHUNK, _by(f"{_ENGINE}.dynamodb_catalogue:decode_seen")),
        Reads(f"LEVELS#{_P}", ".+", _by(f"{_ENGINE}.dynamodb_catalogue:_decode_level")),
        Reads(f"VALUES#{_P}#[0-9]+#[0-4]#[0-9]+", _CHUNK, _values),
        Reads(f"(FOUND|ACTIVITY)#{_P}(#.*)?", ".+"),
        Reads("ENDS#[a-z]+", f"[0-9]+#{_P}#.+", _by(f"{_ENGINE}.dynamodb_ends:_decode")),
        Reads("LINES#[0-9]+", f"{_P}#.+", _by(f"{_ENGINE}.dynamodb_subscribers:_decode_tended")),
        Reads("CIRCUITS#[0-9]+", f"{_P}#.+", _by(f"{_ENGINE}.dynamodb_subscribers:_decode_listed")),
        Reads("SLOW", f"[0-9]+#{_P}#.+", _by(f"{_ENGINE}.dynamodb_subscribers:_decode_slow")),
        Reads("[0-9]+#[0-9]+", f"[0-9]+#{_P}#.+", _by(f"{_ENGINE}.dynamodb_schedule:_decode_entry")),
    ),
    "PullTable": (
        Reads(f"{_P}#.+#.+", "M", _pull_message),
        Reads(f"{_P}#.+#.+", "!", _by(f"{_IRON}._pull_items:decode_mark")),
        Reads(f"{_P}#.+#!levels", "LEVELS", _by(f"{_IRON}.dynamodb_alert_levels:decode")),
        Reads(f"{_P}#.+#.+", ".+"),
    ),
    "HubTable": (
        Reads(f"P#{_P}", "MAPPING#.+", _by(f"{_HUB}._items:decode_mapping")),
        Reads(f"P#{_P}", "INTEGRATION#.+", _by(f"{_HUB}._items:decode_integration")),
        Reads(f"P#{_P}", "SCHEDULER#.+", _by(f"{_HUB}.dynamodb_schedulers:decode_scheduler")),
        Reads(f"P#{_P}", ".+"),
        Reads(f"{_P}#M#.+", "ENTRY", _by(f"{_HUB}._items:decode_entry")),
        Reads(f"{_P}#M#.+", "NOTE#.+", _by(f"{_HUB}._items:decode_notification")),
        Reads(f"{_P}#M#.+", "ANSWER#.+", _by(f"{_HUB}._items:decode_answer")),
        Reads(f"{_P}#M#.+", "OPEN", _by(f"{_HUB}._items:decode_open_request")),
        Reads(f"{_P}#.+", ".+"),
    ),
    "BacklogsTable": (
        Reads(f"{_P}#T#[pv]#.+", "HEAD", _by(f"{_NOTES}._items:decode_head")),
        Reads(f"{_P}#T#[pv]#.+", "S#.+", _by(f"{_NOTES}._items:decode_backlog")),
        Reads(f"{_P}#L#[pv]#.+", "[0-9]+", _by(f"{_NOTES}._items:decode_commit")),
        Reads(f"{_P}#R", ".+", _by(f"{_NOTES}._items:decode_subscription")),
        Reads(f"{_P}#K#.+", "K", _by(f"{_NOTES}._items:decode_request")),
        Reads(f"{_P}#.+", ".+"),
    ),
    "WebhooksTable": (
        Reads(f"P#{_P}", "APP#.+", _by(f"{_HOOKS}._items:decode_application")),
        Reads(f"P#{_P}", "TYPE#.+", _by(f"{_HOOKS}._items:decode_event_type")),
        Reads(f"P#{_P}", "CONN#.+", _by(f"{_HOOKS}.dynamodb_connectors:_decoded")),
        Reads(f"P#{_P}", "TASK#.+", _by(f"{_HOOKS}.dynamodb_tasks:_decoded")),
        Reads(f"P#{_P}", ".+"),
        Reads(f"A#{_P}#.+", "EPX?#.+", _by(f"{_HOOKS}._items:decode_endpoint")),
        Reads(f"A#{_P}#.+", "INTEG#.+", _by(f"{_HOOKS}.dynamodb_integrations:_decoded")),
        Reads(f"A#{_P}#.+", "LEASE#.+", _by(f"{_HOOKS}.dynamodb_consumers:decode_consumer")),
        Reads(f"A#{_P}#.+", "READER#.+", _by(f"{_HOOKS}.dynamodb_readers:decode_reader")),
        Reads(f"A#{_P}#.+", "AUTOCONF#.+", _by(f"{_HOOKS}.dynamodb_autoconfigs:_decoded")),
        Reads(f"A#{_P}#.+", "PORTAL#.+", _by(f"{_HOOKS}.dynamodb_portal:_decoded")),
        Reads(f"R#{_P}#.+", "[0-9]+", _by(f"{_HOOKS}.dynamodb_arrivals:decode_turned_away")),
        Reads(f"L#{_P}#.+", "M#.+", _by(f"{_HOOKS}.dynamodb_logs:_decode_message")),
        Reads(f"T#{_P}#.+", "T#.+", _by(f"{_HOOKS}.dynamodb_logs:decode_attempts")),
        Reads(f"(A|I|L|T|TOLD)#{_P}(#.*)?", ".+"),
        Reads(f"FRAME#{_P}(#.*)?", ".+"),
        Reads("(SCHEME-)?ENDS", f"[0-9]+#{_P}#.+", _by(f"{_ENGINE}.dynamodb_ends:_decode")),
        Reads("RUNNING(-TURNS)?", f"{_P}(#.*)?"),
    ),
}
"""By table, the first that fits."""


def typed(value: object, depth: int = 0) -> dict[str, Any]:
    """A typed value of a table as an export writes it, with binary values again.

    Raises:
        Wrong: It is none.
    """
    if depth > _DEEPEST:
        raise Wrong("a value is nested too deeply")
    if not isinstance(value, dict) or len(value) != 1:
        raise Wrong("a value has no type, or several")
    [(kind, content)] = value.items()
    read = _TYPES.get(kind)
    if read is None:
        raise Wrong(f"a value is of no known type: {str(kind)[:20]}")
    return {kind: read(content, depth + 1)}


def _list(content: object, depth: int) -> list[Any]:
    if not isinstance(content, list):
        raise Wrong("a list is none")
    return [typed(each, depth) for each in content]


def _set_of(read: Callable[[object], Any]) -> Callable[[object, int], list[Any]]:
    def several(content: object, depth: int) -> list[Any]:
        del depth
        if not isinstance(content, list) or not content:
            raise Wrong("a set is none")
        return [read(each) for each in content]

    return several


def _flag(content: object, depth: int) -> bool:
    del depth
    if not isinstance(content, bool):
        raise Wrong("a boolean is none")
    return content


def _attributes(given: object, depth: int) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise Wrong("a map is none")
    return {_text(name): typed(each, depth) for name, each in given.items()}


def binary(content: object) -> bytes:
    """Bytes that an export writes in base64."""
    try:
        return base64.b64decode(_text(content), validate=True)
    except (binascii.Error, ValueError) as error:
        raise Wrong("a binary value is not base64") from error


def _text(content: object) -> str:
    if not isinstance(content, str):
        raise Wrong("a text is none")
    try:
        content.encode()
    except UnicodeEncodeError as error:
        raise Wrong("a text has half a surrogate pair") from error
    return content


def _number(content: object) -> str:
    written = _text(content)
    try:
        finite = len(written) <= _LONGEST_NUMBER and Decimal(written).is_finite()
    except InvalidOperation:
        finite = False
    if not finite:
        raise Wrong("a number is none")
    return written


_TYPES: dict[object, Callable[[object, int], Any]] = {
    "S": lambda content, _: _text(content),
    "N": lambda content, _: _number(content),
    "B": lambda content, _: binary(content),
    "BOOL": _flag,
    "NULL": _flag,
    "L": _list,
    "M": _attributes,
    "SS": _set_of(_text),
    "NS": _set_of(_number),
    "BS": _set_of(binary),
}


@dataclass(frozen=True, slots=True)
class ExportedItem:
    """An item of an export.

    Attributes:
        opened: What is sealed in it, by the sealed value.
    """

    item: Item
    opened: dict[bytes, bytes]


def items(folder: Folder, name: str, table: str, project_id: str) -> Iterator[ExportedItem]:
    """The items of a file, each looked at.

    Raises:
        click.ClickException: One is not the project's, or not as the hub writes it: with file and line.
    """
    for number, line in numbered(folder, name, last=True):
        try:
            yield _line(line, table, project_id)
        except Wrong as error:
            raise at(folder, name, number, str(error)) from error


def _line(line: dict[str, Any], table: str, project_id: str) -> ExportedItem:
    given, opened = line.get("item"), line.get("opened", {})
    if not isinstance(given, dict) or not isinstance(opened, dict):
        raise Wrong("it is no item")
    item = _attributes(given, 0)
    for name in ("pk", "sk"):
        if not item.get(name, {}).get("S"):
            raise Wrong(f"an item has no {name}")
    check(table, item, project_id)
    return ExportedItem(item, {binary(sealed): binary(value) for sealed, value in opened.items()})


def check(table: str, item: Item, project_id: str) -> None:
    """Check that an item is the project's, of a kind that an export has, and as the functions read it.

    Raises:
        Wrong: It is not.
    """
    if not moving(table, item, project_id):
        raise Wrong("an item is not the project's")
    pk, sk = item["pk"]["S"], item["sk"]["S"]
    fitting = (each for each in READERS[table] if _fits(each.pk, pk) and _fits(each.sk, sk))
    reads = next(fitting, None)
    if reads is None:
        raise Wrong("an item is of no known kind")
    for name in _INDEXED:
        found = _OWNER.fullmatch(str(item.get(name, {}).get("S", "")))
        if found is not None and found[1] != project_id:
            raise Wrong(f"an item is in somebody else's list: {name}")
    if reads.read is None:
        return
    try:
        value = reads.read(item, project_id)
    except Exception as error:
        # Whatever is wrong with it: a reader that never fails on purpose finds it in its own way.
        raise Wrong("an item cannot be read") from error
    for holder in (value, getattr(value, "key", None), getattr(value, "topic", None)):
        whose = getattr(holder, "project", project_id)
        if whose != project_id:
            raise Wrong("an item names another project as its owner")


def _fits(pattern: str, key: str) -> bool:
    return re.fullmatch(pattern, key, re.DOTALL) is not None


def numbered(folder: Folder, name: str, *, last: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lines of a file of JSON lines, with their numbers from 1.

    Args:
        last: Whether the file ends with a line that says where the next one begins, which is left out.

    Raises:
        click.ClickException: The file is damaged.
    """
    try:
        content = gzip.decompress(folder.read(name))
    except (EOFError, OSError, zlib.error) as error:
        raise click.ClickException(f"{folder.path / name} is damaged: it cannot be unpacked") from error
    lines = content.split(b"\n")
    if lines.pop() != b"":
        raise click.ClickException(f"{folder.path / name} is damaged: its end is missing")
    for number, line in enumerate(lines, 1):
        try:
            found = json_text.read(line)
        except json_text.NotJson as error:
            raise at(folder, name, number, f"it {error}") from error
        if not isinstance(found, dict):
            raise at(folder, name, number, "it is no object")
        if last and number == len(lines):
            if "next" not in found:
                raise at(folder, name, number, "it does not say what comes next")
            return
        yield number, found
    if last:
        raise click.ClickException(f"{folder.path / name} is damaged: its last line is missing")


def record(line: dict[str, Any], project_id: str) -> tuple[str, dict[str, Any]]:
    """The hour and the delivery record of a line.

    Raises:
        Wrong: It is none, or somebody else's.
    """
    hour, found = line.get("hour"), line.get("record")
    if not isinstance(hour, str) or re.fullmatch("[01][0-9]|2[0-3]", hour) is None or not isinstance(found, dict):
        raise Wrong("it is no delivery record")
    if found.get("project") != project_id:
        raise Wrong("a delivery record is not the project's")
    return hour, found


def at(folder: Folder, name: str, number: int, what: str) -> click.ClickException:
    """What is wrong with a line."""
    return click.ClickException(f"{folder.path / name}, line {number}: {what}")
