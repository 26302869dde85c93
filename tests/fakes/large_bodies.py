"""Bodies that stay as large as they are: nothing makes them smaller, so they are stored in the bodies bucket."""

from __future__ import annotations

import random
import string

LETTERS = "".join(sorted({*string.printable} - {*string.whitespace, '"', "\\", "%", "{", "}"}))


def large_text(size: int, seed: int = 0) -> str:
    """Text without a pattern, and without anything that JSON escapes."""
    return "".join(random.Random(seed).choices(LETTERS, k=size))


def large_body(size: int, seed: int = 0) -> bytes:
    """The same as bytes."""
    return large_text(size, seed).encode()
