"""The catalogue on DynamoDB: for each chunk, an item that lists its messages, and items with the digests of their
values.

========  ============================================  ===========================================
item      pk                                            sk
========  ============================================  ===========================================
messages  ``LISTED#{project}#{day}``                    ``{highest id}-{lowest id}#{batch}``
values    ``VALUES#{project}#{day}#{level}#{bucket}``   the same
levels    ``LEVELS#{project}``                          ``{day}#{level}#{all or crowded}``
========  ============================================  ===========================================

A chunk's values are spread over 1, 4, 16, 64 or 256 items by their digest (levels 0 to 4), so that each item is about
one KB, which is a write unit, and a search reads a small part of a day that was busy.

The items ``levels`` say which levels the chunks of a day have, of all and of those that are crowded. So a search makes
one query for these, and one for each level that is there, instead of one for each that could be. An environment writes
each of them once, as it remembers which it has written: that costs next to nothing.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from typing import TYPE_CHECKING

from pushhub.base import json_text
from pushhub.cloud.table import Item, TableStore, number, text
from pushhub.cloud.unreadable import decodes, paired, readable
from pushhub.engine.model.catalogue import (
    COMMON,
    DAY_MS,
    KEPT_DAYS,
    Chunk,
    Day,
    Seen,
    digest,
    is_crowded,
    merged,
    names_of,
    read_names,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock

LEVELS = 5
"""Of spreading: a chunk's values are in 4 to the power of its level items."""

LEAST_BYTES = 900
"""An item has so many bytes on average, or its chunk goes to a lower level."""

POSTING = 5
"""Bytes of a value: the last three of its digest, and its message's number in two."""

MOST_REMEMBERED = 20_000
"""Of the items that tell the levels, an environment remembers so many, which are some MB; then it begins anew."""

_ALL, _CROWDED = "all", "crowded"


MOST_UNPACKED = 4_000_000
"""Bytes of the longest list of a chunk: a thousand messages with the longest names. An item that unpacks to more is
nothing that a store has written.
"""


class DynamoDBCatalogue(TableStore):
    """Implements :class:`pushhub.engine.records.ports.Catalogue`."""

    def __init__(self, client: DynamoDBClient, table: str, clock: Clock) -> None:
        super().__init__(client, table, clock)
        self._written_levels: set[tuple[str, str]] = set()

    def add(self, chunks: Sequence[Chunk]) -> None:
        items = {(each["pk"]["S"], each["sk"]["S"]): each for chunk in chunks for each in _levels_items(chunk)}
        new = {key: item for key, item in items.items() if key not in self._written_levels}
        self._table.put_many([*new.values(), *(item for each in chunks for item in _items(each))])
        if len(self._written_levels) >= MOST_REMEMBERED:
            self._written_levels.clear()
        self._written_levels.update(new)

    def days(self, project_id: str) -> Sequence[Day]:
        found = self._table.items(
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": text(_levels_key(project_id))},
            ProjectionExpression="sk",
        )
        return _days(readable(found, _decode_level))

    def listed(self, project_id: str, day: int, before: str | None = None) -> Iterator[Seen]:
        found = self._table.items(
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": text(_list_key(project_id, day))},
            ScanIndexForward=False,
            Limit=4,
        )
        lists = paired((item for item in found if _begins(item["sk"]["S"], before)), decode_seen)
        return merged(((_highest(item["sk"]["S"]), reversed(seen)) for item, seen in lists if seen is not None), before)

    def with_value(self, project_id: str, day: Day, value: str, before: str | None = None) -> Iterator[Seen]:
        wanted = digest(project_id, value)
        numbers: dict[str, set[int]] = {}
        for level in day.levels_of(value):
            partition = _values_key(project_id, day.number, level, _bucket(wanted, level))
            items = self._table.items(
                KeyConditionExpression="pk = :pk", ExpressionAttributeValues={":pk": text(partition)}
            )
            begun = (item for item in items if _begins(item["sk"]["S"], before))
            for item, found in paired(begun, lambda each: message_numbers(each, wanted)):
                if found:
                    numbers.setdefault(item["sk"]["S"], set()).update(found)
        lists = (
            (_highest(name), self._of_chunk(project_id, day.number, name, numbers[name])) for name in _newest(numbers)
        )
        return merged(lists, before)

    def _of_chunk(self, project_id: str, day: int, name: str, numbers: set[int]) -> Iterator[Seen]:
        item = self._table.get({"pk": text(_list_key(project_id, day)), "sk": text(name)})
        seen = next(readable([item] if item else [], decode_seen), ())
        if COMMON in numbers:
            return reversed(seen)
        return (seen[each] for each in sorted(numbers, reverse=True) if each < len(seen))


def _levels_items(chunk: Chunk) -> Iterator[Item]:
    for which in (_ALL, _CROWDED) if is_crowded(chunk) else (_ALL,):
        yield {
            "pk": text(_levels_key(chunk.project)),
            "sk": text(f"{chunk.day}#{_level(chunk)}#{which}"),
            "ttl": _ttl(chunk.day),
        }


@decodes
def _decode_level(item: Item) -> tuple[int, int, str]:
    """A day, a level that its chunks have, and which of them: all or crowded."""
    day, level, which = item["sk"]["S"].split("#")
    if int(level) not in range(LEVELS) or which not in (_ALL, _CROWDED):
        raise ValueError("no store writes such levels")
    return int(day), int(level), which


def _days(levels: Iterable[tuple[int, int, str]]) -> Sequence[Day]:
    found: dict[int, dict[str, list[int]]] = {}
    for day, level, which in levels:
        found.setdefault(day, {_ALL: [], _CROWDED: []})[which].append(level)
    return [Day(number=each, levels=found[each][_ALL], crowded=found[each][_CROWDED]) for each in sorted(found)[::-1]]


def _level(chunk: Chunk) -> int:
    size = len(chunk.postings) * POSTING
    return max((each for each in range(LEVELS) if size >= LEAST_BYTES << 2 * each), default=0)


def _ttl(day: int) -> Item:
    return number((day + KEPT_DAYS + 2) * (DAY_MS // 1000))


def _items(chunk: Chunk) -> Iterator[Item]:
    ttl = _ttl(chunk.day)
    listed = encode_seen(chunk.seen)
    yield {"pk": text(_list_key(chunk.project, chunk.day)), "sk": text(chunk.name), "ttl": ttl, **listed}
    level = _level(chunk)
    buckets: dict[int, bytearray] = defaultdict(bytearray)
    for value, place in chunk.postings:
        buckets[_bucket(value, level)] += (value & 0xFFFFFF).to_bytes(3) + place.to_bytes(2)
    for bucket, values in buckets.items():
        yield {
            "pk": text(_values_key(chunk.project, chunk.day, level, bucket)),
            "sk": text(chunk.name),
            "v": {"B": bytes(values)},
            "ttl": ttl,
        }


def encode_seen(seen: Sequence[Seen]) -> Item:
    """The messages of a chunk as attributes."""
    return {"m": {"B": zlib.compress(json_text.write(names_of(seen)).encode(), 9)}}


@decodes
def decode_seen(item: Item) -> Sequence[Seen]:
    """The messages of a chunk from its item."""
    unpacking = zlib.decompressobj()
    unpacked = unpacking.decompress(bytes(item["m"]["B"]), MOST_UNPACKED)
    if not unpacking.eof:
        raise ValueError("a chunk is larger than any that is written")
    return read_names(json_text.stored(unpacked))


@decodes
def message_numbers(item: Item, wanted: int) -> set[int]:
    """The numbers of the messages with a digest."""
    values, sought = bytes(item["v"]["B"]), (wanted & 0xFFFFFF).to_bytes(3)
    found: set[int] = set()
    at = values.find(sought)
    while at >= 0:
        if at % POSTING == 0:
            found.add(int.from_bytes(values[at + 3 : at + POSTING]))
        at = values.find(sought, at + 1)
    return found


def _bucket(value: int, level: int) -> int:
    return value >> (32 - 2 * level) if level else 0


def _list_key(project: str, day: int) -> str:
    return f"LISTED#{project}#{day}"


def _values_key(project: str, day: int, level: int, bucket: int) -> str:
    return f"VALUES#{project}#{day}#{level}#{bucket}"


def _levels_key(project: str) -> str:
    return f"LEVELS#{project}"


def _highest(name: str) -> str:
    return name.partition("-")[0]


def _begins(name: str, before: str | None) -> bool:
    """Whether a chunk has messages with ids below that."""
    lowest = name.partition("#")[0].rpartition("-")[2]
    return before is None or lowest < before


def _newest(names: dict[str, set[int]]) -> list[str]:
    return sorted(names, reverse=True)
