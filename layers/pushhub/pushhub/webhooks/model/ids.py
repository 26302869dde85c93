"""Ids of the Svix API: a prefix and 27 characters of base62, a KSUID with a grain of 4 ms.

Sorted as text, they are in order of time.

The 20 bytes of a KSUID: seconds since 2014-05-13 in 32 bits, milliseconds / 4 in one byte, 15 bytes of content. The
content of a message's id is the engine's own id (8 bytes) and a check of it (7 bytes), so neither id has to be stored
with the other. The content of an attempt's id is a hash of the attempt; all others are random.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from enum import StrEnum

from pushhub.base.ids import time_of_message_id

EPOCH_MS = 1_400_000_000_000
"""2014-05-13T16:53:20Z in epoch milliseconds, where KSUIDs begin."""

LAST_MS = EPOCH_MS + ((1 << 32) - 1) * 1000 + 999
"""The last moment that a KSUID can name, in the year 2150."""

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_LENGTH = 27
_CONTENT = 15
_KSUID = re.compile(r"[0-9A-Za-z]{27}")


class IdPrefix(StrEnum):
    """What an id names, by its prefix."""

    ORGANIZATION = "org_"
    APPLICATION = "app_"
    ENDPOINT = "ep_"
    MESSAGE = "msg_"
    ATTEMPT = "atmpt_"
    TASK = "qtask_"
    SOURCE = "src_"
    """An application that takes in what another sender posts."""
    STREAM = "strm_"
    """An application whose events are read in order by its sinks."""
    INTEGRATION = "integ_"
    AUTOCONFIG = "autocfg_"
    CONNECTOR = "trtmpl_"
    """A template of a transformation."""


def is_id(kind: IdPrefix, text: str) -> bool:
    """Whether a text has the form of an id of that kind."""
    return text.startswith(kind) and _KSUID.fullmatch(text, len(kind)) is not None


def is_application(text: str) -> bool:
    """Whether a text has the form of an id of an application, which sources and streams are as well."""
    return any(is_id(each, text) for each in (IdPrefix.APPLICATION, IdPrefix.SOURCE, IdPrefix.STREAM))


def new_id(kind: IdPrefix, now: int) -> str:
    """A new random id."""
    return kind + _ksuid(now, secrets.token_bytes(_CONTENT))


def message_id(engine: str) -> str:
    """The id that clients see of a message with an engine's id (19 decimal digits)."""
    number = int(engine).to_bytes(8)
    return IdPrefix.MESSAGE + _ksuid(time_of_message_id(engine), number + _check(number))


def engine_id(text: str) -> str | None:
    """The engine's id in a message's id; None when no message can have it."""
    if not is_id(IdPrefix.MESSAGE, text):
        return None
    content = _bytes(text[len(IdPrefix.MESSAGE) :])
    if content is None:
        return None
    number = content[5:13]
    engine = f"{int.from_bytes(number):019d}"
    return engine if content[13:] == _check(number) and message_id(engine) == text else None


def attempt_id(message: str, subscriber: str, number: int, started_at: int) -> str:
    """The id of an attempt; deterministic.

    Args:
        number: Which attempt of the delivery it was, from 1.
    """
    digest = hashlib.sha256(f"{message}/{subscriber}/{number}/{started_at}".encode()).digest()
    return IdPrefix.ATTEMPT + _ksuid(started_at, digest[:_CONTENT])


def time_of(text: str) -> int:
    """When an id was made, epoch milliseconds down to 4 ms; 0 for anything that is not a KSUID."""
    content = _bytes(text.rpartition("_")[2])
    if content is None:
        return 0
    return EPOCH_MS + int.from_bytes(content[:4]) * 1000 + content[4] * 4


def first_id(kind: IdPrefix, at: int) -> str:
    """The lowest id that could be made at a moment (epoch milliseconds): lower ids were made earlier."""
    return kind + _ksuid(at, bytes(_CONTENT))


def _check(number: bytes) -> bytes:
    return hashlib.sha256(b"message" + number).digest()[:7]


def _ksuid(at: int, content: bytes) -> str:
    seconds, milliseconds = divmod(min(max(at, EPOCH_MS), LAST_MS) - EPOCH_MS, 1000)
    number = int.from_bytes(seconds.to_bytes(4) + bytes([milliseconds // 4]) + content)
    digits = []
    for _ in range(_LENGTH):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))


def _bytes(ksuid: str) -> bytes | None:
    """The 20 bytes of a KSUID; None for a text that is not one."""
    if _KSUID.fullmatch(ksuid) is None:
        return None
    number = 0
    for digit in ksuid:
        number = number * 62 + _VALUES[digit]
    return number.to_bytes(20) if number < 1 << 160 else None
