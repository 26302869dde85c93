"""Bodies of messages: no two are equal, and each says in its first and last bytes which it is, so that another's is
noticed, and one that was cut.
"""

from __future__ import annotations

import json
from random import Random

SIZES = (40, 40, 40, 300, 300, 9_000)
"""Bytes, about; the last ones lie in objects of their own."""

CLAIM_CHECKED = 230_000
"""What no SQS message and no item of a table could hold."""


def text_body(random: Random, name: str, *, size: int = 0, large: float = 0.004) -> str:
    """A body: plain text, JSON, one full of control characters, or of signs beyond the basic plane.

    Args:
        random: Decides.
        name: What no other body is called.
        size: Bytes, about; any size if 0.
        large: How often it is larger than what a queue or a table holds.
    """
    size = CLAIM_CHECKED if random.random() < large else size or random.choice(SIZES)
    kind = random.randrange(4)
    filling = random.randbytes(min(size, 64)).hex()
    if kind == 0:
        middle = filling * (size // len(filling) + 1)
    elif kind == 1:
        return json.dumps({"name": name, "list": [1.5, None, True, {"é": filling}] * (size // 200 + 1), "end": name})
    elif kind == 2:
        middle = "".join(map(chr, range(1, 32))) * (size // 31 + 1) + '"\\\x7f\u2028' + filling
    else:
        middle = ("🦊👩‍👩‍👧" + filling[:8]) * (size // 30 + 1)
    return f"{name} {middle} {name}"


def bytes_body(random: Random, name: str) -> bytes:
    """A body that is not text."""
    return name.encode() + b"\x00\xff\xfe" + random.randbytes(random.choice(SIZES)) + b"\xc3 " + name.encode()


__all__ = ["bytes_body", "text_body"]
