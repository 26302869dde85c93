"""Keys of the hub table, and what its items have in common."""

from __future__ import annotations

import zlib
from typing import Any

from pushhub.base import json_text
from pushhub.cloud.table import Item, text

SHARDS = 16
"""Partitions that each list of a store is spread over: one takes 1,000 writes a second, and a message changes lists
about four times. The number may be raised at any time, because each item stores its own partition, but never lowered.
"""


def store_key(project: str, sort_key: str) -> Item:
    """The key of a setting of a store."""
    return {"pk": text(f"P#{project}"), "sk": text(sort_key)}


def shard_of(key: str) -> int:
    """The shard of a list that an item belongs to, derived from the item's own key."""
    return zlib.crc32(key.encode()) % SHARDS


def json_attribute(value: Any) -> Item:
    """A value as compact JSON."""
    return text(json_text.write(value, ascii_only=True))
