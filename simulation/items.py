"""Items of a table as they are kept and counted: packed, because a run may have millions of them, and measured by their
size.
"""

from __future__ import annotations

import marshal
import math
from collections.abc import Mapping
from typing import Any


def pack(item: dict[str, Any]) -> bytes:
    """An item in few bytes: a tenth of what it takes as dictionaries, and nothing for the garbage collector."""
    try:
        return marshal.dumps(item)
    except ValueError:
        return marshal.dumps(_bare(item))


def _bare(value: Any) -> Any:
    """A value of plain types only, as a service keeps it: members of an enumeration are strings there."""
    if isinstance(value, Mapping):
        return {_bare(name): _bare(each) for name, each in value.items()}
    if isinstance(value, str):
        return str(value)
    return [_bare(each) for each in value] if isinstance(value, list | tuple) else value


def unpack(packed: bytes) -> dict[str, Any]:
    """What was packed, made anew: nobody changes what is stored by changing what he was given."""
    item: dict[str, Any] = marshal.loads(packed)  # noqa: S302 (packed by this process)
    return item


def item_bytes(item: Mapping[str, Any]) -> int:
    """Size of an item as DynamoDB bills it (DynamoDB guide, "item sizes and formats")."""
    size = 0
    for name, value in item.items():
        [(kind, content)] = value.items()
        # Most of a run's items are read and measured again and again, and nearly all of them is ASCII.
        size += len(name) if name.isascii() else len(name.encode())
        size += len(content) if kind == "S" and content.isascii() else _value_bytes(kind, content)
    return size


def _value_bytes(kind: str, content: Any) -> int:
    if kind == "S":
        return len(content.encode(errors="surrogatepass"))
    if kind == "B":
        return len(content)
    if kind == "N":
        return math.ceil(len(content.strip("-0.")) / 2) + 1
    if kind == "M":
        return 3 + len(content) + item_bytes(content)
    if kind in ("SS", "NS"):
        return 3 + sum(_value_bytes(kind[0], each) for each in content)
    if kind == "L":
        return 3 + sum(1 + _value_bytes(*inner) for each in content for inner in each.items())
    return 1


class Pace:
    """How much arrives at each key, and the most that arrived at one key within one second.

    Attributes:
        total: Sum over all keys.
        most: The most for one key within a second.
        key: That key.
        at: That second, since the epoch.
    """

    __slots__ = ("_second", "_within", "at", "key", "most", "total")

    def __init__(self) -> None:
        self.total = self.most = 0.0
        self.key = ""
        self.at = self._second = 0
        self._within: dict[str, float] = {}

    def within(self, key: str, now_ms: int) -> float:
        """How much has arrived at a key within this second; time only moves forward."""
        second = now_ms // 1000
        if second != self._second:
            self._second = second
            self._within.clear()
        return self._within.get(key, 0)

    def add(self, key: str, now_ms: int, count: float = 1) -> None:
        """Count something that arrives at a key now."""
        here = self._within[key] = self.within(key, now_ms) + count
        self.total += count
        if here > self.most:
            self.most, self.key, self.at = here, key, self._second
