"""How much fits into one API response, and in which form.

A Lambda function may return at most 6 MB (6,291,556 bytes), and its return value is JSON itself: the text of an HTTP
body is escaped a second time in it, non-ASCII characters as six bytes each. As base64, the body always takes four bytes
for every three.
"""

from __future__ import annotations

from pushhub.base.json_text import write

ANSWER_BYTES = 6_200_000
"""Bytes that the body of one answer may take in either form; the rest is for its headers."""

_AROUND = 1_000
"""Bytes kept for what is around the parts of an answer and between a hundred of them."""


def as_text(json_text: str) -> int:
    """Bytes that a body takes as text."""
    return len(write(json_text, ascii_only=True))


def as_base64(json_text: str) -> int:
    """Bytes that a body takes as base64."""
    return -(-len(json_text.encode()) // 3) * 4


def fits(json_text: str) -> bool:
    """Whether a body fits into a response in either form."""
    return as_text(json_text) <= ANSWER_BYTES or as_base64(json_text) <= ANSWER_BYTES


class ResponseBudget:
    """The remaining size of a response while parts are added to it."""

    def __init__(self) -> None:
        self._as_text = self._as_base64 = _AROUND

    def may_take(self, body_size: int) -> bool:
        """Whether a message with a body of that many bytes could fit; called before the body is read."""
        return min(self._as_text, self._as_base64) + body_size < ANSWER_BYTES

    def takes(self, json_text: str) -> bool:
        """Whether one more part fits; if so, it is counted."""
        text, base64 = self._as_text + as_text(json_text), self._as_base64 + as_base64(json_text)
        if min(text, base64) > ANSWER_BYTES:
            return False
        self._as_text, self._as_base64 = text, base64
        return True

    def close(self) -> None:
        """Accept no more parts: a part too large for an ordinary response takes a whole compressed one."""
        self._as_text = self._as_base64 = ANSWER_BYTES
