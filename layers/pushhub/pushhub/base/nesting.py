"""How deep JSON is nested, found without parsing it."""

from __future__ import annotations

from itertools import accumulate
from typing import Final

_NO_BRACKETS = bytes(each for each in range(256) if each not in b'"[]{}')
_LEVELS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_PASSES: Final = 8
"""How often pairs are taken off from inside, before brackets are counted one by one: few documents need more."""


def is_deeper(body: bytes, levels: int) -> bool:
    """Whether brackets are nested deeper than that. Checked without parsing, as the parser itself would recurse that
    deep.

    Args:
        body: JSON, or anything else; the time it takes grows only with its length.
        levels: Levels that are allowed.
    """
    if body.count(b"[") + body.count(b"{") <= levels:
        return False
    # Only functions written in C, and none that may start again within a string.
    without_escapes = body.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _NO_BRACKETS)
    # The end of a string and the beginning of the next one, or a string without brackets: what is left is in or out of
    # strings as before.
    brackets = without_escapes.replace(b'""', b"")
    if b'"' in brackets:
        brackets = b"".join(brackets.split(b'"')[::2])
    rest = brackets
    for _ in range(min(_PASSES, levels // 2)):
        # A pass takes off two levels at most.
        rest = rest.replace(b"[]", b"").replace(b"{}", b"")
        if not rest:
            return False
    return max(accumulate(map(_LEVELS.__getitem__, brackets)), default=0) > levels
