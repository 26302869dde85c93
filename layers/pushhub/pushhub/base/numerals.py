"""Numbers that strangers write as text: in forms, headers, queries, and in JSON as strings.

Python's own ``int`` and ``float`` read more than is meant: digits of other scripts, underscores, ``nan`` and
``infinity``, and as many digits as somebody cares to send.
"""

from __future__ import annotations

import re
from typing import Final

MOST_DIGITS: Final = 18
"""Digits of a whole number: those of SQL's ``bigint``, which all that reads it further on can hold."""

_DIGITS = re.compile(r"[0-9]+")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_FRACTION = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_MOST_CHARACTERS = 400


def whole(text: str, *, digits: int = MOST_DIGITS) -> int:
    """A whole number; white space around it counts for nothing.

    Args:
        digits: At most so many.

    Raises:
        ValueError: It is none, or too long.
    """
    bare = text.strip(" \t\r\n")
    if not _WHOLE.fullmatch(bare) or len(bare.lstrip("+-")) > digits:
        raise ValueError(f"{text[:40]!r} is not a whole number of at most {digits} digits")
    return int(bare)


def digits(text: str, most: int) -> int | None:
    """A whole number of ASCII digits and nothing else; None for anything else, or more digits than ``most``.

    ``str.isdigit`` would also take digits of other scripts, and some characters that ``int`` refuses.
    """
    return int(text) if len(text) <= most and _DIGITS.fullmatch(text) else None


def fraction(text: str) -> float:
    """A number, with or without a fraction; white space around it counts for nothing.

    Raises:
        ValueError: It is none, or too large.
    """
    bare = text.strip(" \t\r\n")
    if len(bare) > _MOST_CHARACTERS or not _FRACTION.fullmatch(bare):
        raise ValueError(f"{text[:40]!r} is not a number")
    number = float(bare)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:40]!r} is too large")
    return number
