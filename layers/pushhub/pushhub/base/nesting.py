"""How deep JSON is nested, found without parsing it."""

from __future__ import annotations

from itertools import accumulate

_NO_BRACKETS = bytes(each for each in range(256) if each not in b'"[]{}')
_LEVELS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


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
    brackets = b"".join(without_escapes.split(b'"')[::2])
    return max(accumulate(map(_LEVELS.__getitem__, brackets)), default=0) > levels
