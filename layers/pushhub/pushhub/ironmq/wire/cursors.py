"""Cursors in lists of deliveries."""

from __future__ import annotations

from pushhub.base.errors import Invalid

MAX_LOOKED_AT = 100
"""Maximum number of deliveries that one request looks at."""

MAX_CURSOR = 200


def parse_cursor(text: str | None) -> str | None:
    """A cursor from an earlier answer; None when absent or empty."""
    if text is not None and (len(text) > MAX_CURSOR or not text.isascii()):
        raise Invalid("after must be the cursor of an answer")
    return text or None
