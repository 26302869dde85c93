"""Object ids of the hub protocol: 24 hex characters, as BSON ObjectIds look (4 bytes seconds, 8 bytes unique).

A hub message has one identity in two forms: the decimal id of :mod:`pushhub.base.ids` internally, the object id on the
wire. The object id is the creation time in seconds followed by the decimal id as 64 bits, so each can be computed from
the other without a lookup.
"""

from __future__ import annotations

import hashlib
import re
import secrets

from pushhub.base.ids import EPOCH_MS, SEQUENCE_BITS, WORKER_BITS

_OBJECT_ID = re.compile(r"[0-9a-f]{24}\Z")
_LOW_BITS = WORKER_BITS + SEQUENCE_BITS
_FIRST_MS = 10**18 >> _LOW_BITS


def is_object_id(text: str) -> bool:
    """Whether ``text`` has the form of an object id (24 lower-case hex characters)."""
    return _OBJECT_ID.match(text) is not None


def message_time(message_id: str) -> int:
    """Epoch milliseconds in a decimal message id."""
    return (int(message_id) >> _LOW_BITS) - _FIRST_MS + EPOCH_MS


def to_object_id(message_id: str) -> str:
    """The object id of a message.

    Args:
        message_id: Decimal, as :mod:`pushhub.base.ids` makes them.
    """
    seconds = message_time(message_id) // 1000
    return f"{seconds & 0xFFFFFFFF:08x}{int(message_id):016x}"


def from_object_id(object_id: str) -> str | None:
    """The decimal message id behind an object id, or None when it cannot belong to one of our messages."""
    if not is_object_id(object_id):
        return None
    message_id = str(int(object_id[8:], 16))
    return message_id if int(message_id) < 1 << 63 and to_object_id(message_id) == object_id else None


def new_object_id(now_ms: int) -> str:
    """A fresh object id for a mapping, scheduler or integration."""
    return f"{now_ms // 1000 & 0xFFFFFFFF:08x}{secrets.token_hex(8)}"


def derived_object_id(*parts: str) -> str:
    """The object id of something identified by its name (a parameter, a notification): always the same.

    Args:
        parts: The parts of its name, the project first.
    """
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:24]
