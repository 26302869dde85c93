"""Which HTTP headers an owner may add to pushes: per message (``push_headers``) and per subscriber.

IronMQ v3, "Push Headers Restrictions": five per message, names of 1..64 bytes, values of 1..1024 bytes. Of the hub's
own headers only ``User-Agent`` and ``Content-Type`` may be set ("Push Queue Headers"); others are refused by name.
Further rules keep requests well-formed: names are tokens (RFC 9110 5.6.2), values contain no control characters, and
headers that frame the message or belong to the connection are left to the sender.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pushhub.base.errors import Invalid
from pushhub.base.numerals import digits
from pushhub.engine.model.message import HOPS_HEADER, MAX_HOPS, Message, hops_said

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_PUSH_HEADERS = 5
MAX_PUSH_HEADER_NAME_BYTES = 64
MAX_PUSH_HEADER_VALUE_BYTES = 1024
WEBHOOK_PREFIX = "x-subscribers-"
"""Prefix of a push header's name in a webhook request (IronMQ v3)."""

DESCENDANTS_HEADER = "Pushhub-Descendants"
"""Sent with each push: how many messages may derive from it in this hub."""

MAX_ALLOWANCE_DIGITS = 9

_HUB_NAMES = frozenset(
    {
        HOPS_HEADER.lower(),
        DESCENDANTS_HEADER.lower(),
        "iron-message-id",
        "iron-reservation-id",
        "iron-subscriber-name",
        "iron-subscriber-message-url",
    }
)
_CONNECTION_NAMES = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile("[\t\x20-\x7e\xa0-\xff]*")


def check_header_value(value: str, what: str) -> str:
    """The value, if it is valid in a header: Latin-1 without control characters, no leading or trailing white space."""
    if _VALUE.fullmatch(value) is None:
        raise Invalid(f"{what} must be Latin-1 text without control characters")
    if value != value.strip():
        raise Invalid(f"{what} must not begin or end with white space")
    return value


def _check_name(name: str, what: str) -> str:
    if not name:
        raise Invalid(f"{what} name must not be empty")
    if _TOKEN.fullmatch(name) is None:
        raise Invalid(f"{what} name holds characters that are not allowed")
    if _is_reserved(name):
        raise Invalid(f"{what} {name} cannot be set")
    return name


def _is_reserved(name: str) -> bool:
    return name.lower() in _HUB_NAMES or name.lower() in _CONNECTION_NAMES


def _check_push_header(name: str, value: object) -> str:
    _check_name(name, "Push header")
    if len(name) > MAX_PUSH_HEADER_NAME_BYTES:
        raise Invalid(f"Push header name is longer than {MAX_PUSH_HEADER_NAME_BYTES} bytes")
    if not isinstance(value, str):
        raise Invalid("Push header value must be a string")
    if not value:
        raise Invalid("Push header value must not be empty")
    if len(value.encode()) > MAX_PUSH_HEADER_VALUE_BYTES:
        raise Invalid(f"Push header value is longer than {MAX_PUSH_HEADER_VALUE_BYTES} bytes")
    return check_header_value(value, "Push header value")


def push_headers_of(given: Mapping[str, object] | None) -> dict[str, str]:
    """The ``push_headers`` of a posted message.

    Raises:
        Invalid: A restriction is violated.
    """
    given = given or {}
    if len(given) > MAX_PUSH_HEADERS:
        raise Invalid(f"A message can have at most {MAX_PUSH_HEADERS} push headers")
    headers = {name: _check_push_header(name, value) for name, value in given.items()}
    _refuse_duplicates(headers, "Push header")
    return headers


def subscriber_headers_of(given: Mapping[str, object] | None) -> dict[str, str]:
    """The ``headers`` of a subscriber.

    Raises:
        Invalid: A name or value is not valid in a header, or the header is the hub's own or the connection's.
    """
    headers: dict[str, str] = {}
    for name, value in (given or {}).items():
        _check_name(name, "Subscriber header")
        if not isinstance(value, str):
            raise Invalid("Subscriber header value must be a string")
        headers[name] = check_header_value(value, "Subscriber header value")
    _refuse_duplicates(headers, "Subscriber header")
    return headers


def _refuse_duplicates(headers: Mapping[str, str], what: str) -> None:
    if len({name.lower() for name in headers}) != len(headers):
        raise Invalid(f"{what} names must differ by more than case")


def webhook_push_headers(request_headers: Mapping[str, str]) -> dict[str, str]:
    """Push headers of a webhook request: ``X-Subscribers-NAME: value``.

    Reserved names are refused, as in a post. Those that break another rule are ignored (IronMQ v3).

    Args:
        request_headers: Names in lower case.

    Raises:
        Invalid: A name is the hub's own or the connection's.
    """
    headers: dict[str, str] = {}
    for prefixed, value in request_headers.items():
        if not prefixed.startswith(WEBHOOK_PREFIX):
            continue
        name = prefixed.removeprefix(WEBHOOK_PREFIX)
        if _is_reserved(name):
            raise Invalid(f"Push header {name} cannot be set")
        if len(headers) == MAX_PUSH_HEADERS:
            continue
        try:
            headers[name] = _check_push_header(name, value)
        except Invalid:
            continue
    return headers


def trail_headers(message: Message, allowance: int) -> dict[str, str]:
    """What a push tells a subscriber that is a queue, here or on another hub: how many queues the message has passed,
    and how many messages may derive from it.
    """
    return {HOPS_HEADER: str(message.hops + 1), DESCENDANTS_HEADER: str(allowance)}


def webhook_trail(request_headers: Mapping[str, str]) -> tuple[int, int | None]:
    """How many queues a request's message has passed, and how many messages may derive from it (None: no extra limit).

    Without these headers, it is a new message. Forging them can only shorten its way.

    Args:
        request_headers: Names in lower case.

    Raises:
        Invalid: It has passed too many queues.
    """
    hops = hops_said(request_headers.get(HOPS_HEADER.lower(), ""))
    allowance = digits(request_headers.get(DESCENDANTS_HEADER.lower(), ""), MAX_ALLOWANCE_DIGITS)
    if hops > MAX_HOPS or allowance == 0:
        raise Invalid("Message has passed too many queues; taken for a loop")
    return hops, None if allowance is None else allowance - 1
