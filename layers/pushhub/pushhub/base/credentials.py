"""Which settings of a destination open something, and how they are hidden from those who may only see them.

The user information of a URL (``https://user:password@host``, ``ironmq://project:token@host``) and the values of all
headers do, except for a few headers that only say what is sent. Hidden, they read ``********``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

from pushhub.base.json_text import write

MASK = "********"
"""Stands for a value that is never shown again; sent back, it means the stored value."""

USER = ""
"""The name of a URL's user information among the hidden values; no header has it."""

_HARMLESS = frozenset({"accept", "accept-charset", "accept-language", "content-language", "content-type", "user-agent"})

_NAMES_OF_SECRETS = re.compile("(?i)auth|cookie|credential|key|pass|pwd|secret|session|signature|token")

_LEAST_HIDDEN = 6
"""Shorter values would hide ordinary words."""

_SCHEME = re.compile(rb"(?i)\b(bearer|basic|oauth)\s+[A-Za-z0-9._~+/=\\-]{6,}")

# Internal queues put their protocol before the URL of the subscriber.
_URL = re.compile(r"((?:[A-Za-z][A-Za-z0-9+.-]*:)?[A-Za-z][A-Za-z0-9+.-]*://)(?:([^/?#]*)@)?([^/?#]*)")

_OWN_PORTS = {"http": ":80", "https": ":443"}


def masked_url(url: str) -> str:
    """The URL with its user information hidden, if it has any."""
    return with_user(url, MASK) if user_of(url) is not None else url


def user_of(url: str) -> str | None:
    """The user information of a URL, as it is written there; None when it has none."""
    parts = _URL.match(url)
    return parts[2] if parts else None


def with_user(url: str, user: str) -> str:
    """A URL that has user information, with another one."""
    parts = _URL.match(url)
    return f"{parts[1]}{user}@{url[parts.start(3) :]}" if parts else url


def place_of(url: str) -> str:
    """Scheme, host and port of a URL, to which its user information belongs; the scheme's own port is left out."""
    parts = _URL.match(url)
    if parts is None:
        return ""
    scheme, separator, host = f"{parts[1]}{parts[3]}".lower().rpartition("://")
    return f"{scheme}{separator}{host.removesuffix(_OWN_PORTS.get(scheme.rpartition(':')[2], ''))}"


def opens(header: str) -> bool:
    """Whether the value of a header may open something."""
    return header.lower() not in _HARMLESS


def named_like_a_secret(name: str) -> bool:
    """Whether the name of a value says that it opens something."""
    return _NAMES_OF_SECRETS.search(name) is not None


def masked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers as they may be shown."""
    return {name: MASK if value and opens(name) else value for name, value in headers.items()}


def hidden_in(url: str, headers: Mapping[str, str]) -> dict[str, str]:
    """What opens something, by the name of its header, or :data:`USER`; without what is hidden already."""
    found = {name: value for name, value in headers.items() if value not in ("", MASK) and opens(name)}
    user = user_of(url)
    return found if user in (None, MASK) else {USER: str(user), **found}


def without_credentials(body: bytes, url: str, headers: Mapping[str, str]) -> bytes:
    """The body of an answer, in which what opened its receiver is hidden wherever it says that again, as services that
    echo a request do.

    Args:
        url: What was asked.
        headers: What was sent.
    """
    # Also without the scheme before it, and the password alone.
    parts = {part for each in hidden_in(url, headers).values() for part in (each, *each.split(), *each.split(":"))}
    for part in sorted(parts, key=len, reverse=True):
        if len(part) >= _LEAST_HIDDEN and part != MASK:
            for written in {part, unquote(part), part.replace("/", "\\/"), write(part)[1:-1]}:
                body = body.replace(written.encode(errors="replace"), MASK.encode())
    return _SCHEME.sub(rb"\1 " + MASK.encode(), body)


def revealed(url: str, headers: Mapping[str, str], hidden: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """URL and headers with their hidden values."""
    shown = {name: hidden.get(name, value) if value == MASK else value for name, value in headers.items()}
    return with_user(url, hidden[USER]) if user_of(url) == MASK and USER in hidden else url, shown
