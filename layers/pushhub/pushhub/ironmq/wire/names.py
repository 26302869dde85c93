"""Names of queues and the shape of ids, as they appear in IronMQ v3 paths and bodies."""

from __future__ import annotations

import re

from pushhub.base.errors import Invalid

MAX_QUEUE_NAME_BYTES = 255
"""Longest queue name in bytes of UTF-8."""

_MESSAGE_ID = re.compile(r"[0-9]{1,19}")
_UNUSABLE = re.compile("[\x00-\x1f\x7f-\x9f/?%\ufffd\ud800-\udfff]")


def check_queue_name(name: str, what: str = "Queue name") -> str:
    """The name, if valid for a queue: anything except ``/``, ``?``, ``%`` and control characters (clients use spaces,
    ``:``, ``+``, ``=``).

    An HTTP API of AWS decodes paths twice, and cuts them at an escaped question mark: whoever deletes ``a?b`` there
    would delete ``a`` (docs/testing.md). The replacement character is refused too, because gateways put it in place of
    bytes that are not UTF-8.

    Args:
        name: Decoded.
        what: How errors refer to it.
    """
    if not name:
        raise Invalid(f"{what} must not be empty")
    if _UNUSABLE.search(name):
        raise Invalid(f"{what} must not contain a slash, a question mark, a percent sign or control characters")
    if len(name.encode()) > MAX_QUEUE_NAME_BYTES:
        raise Invalid(f"{what} is longer than {MAX_QUEUE_NAME_BYTES} bytes")
    return name


def is_message_id(text: str) -> bool:
    """Whether a message could have this id."""
    return _MESSAGE_ID.fullmatch(text) is not None
