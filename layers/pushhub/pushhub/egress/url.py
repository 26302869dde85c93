"""Parses a subscriber's URL, once and strictly.

Every known trick for reaching a forbidden host with an innocent-looking URL exploits a difference between two parsers:
one that checks and one that connects. Here there is only one: its result is what is checked, resolved, connected to,
and named in ``Host`` and the TLS handshake. Anything ambiguous is refused.
"""

from __future__ import annotations

import base64
import ipaddress
import posixpath
import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, unquote_to_bytes

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_DEFAULT_PORTS = {"http": 80, "https": 443}
_URL = re.compile(r"(https?)://([^/?#]*)([^#]*)", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BRACKETED = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::([0-9]*))?")
_NAMED = re.compile(r"([^:]+)(?::([0-9]*))?")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
# RFC 3986 reserved characters and "%" (existing escapes stay as they are); everything else outside the unreserved set
# is escaped.
_PATH_SAFE = "%:/?#[]@!$&'()*+,;=~"


class InvalidTarget(ValueError):
    """The URL cannot be a target; the text says why, without userinfo, path or query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlParts:
    """The parts of a URL.

    Attributes:
        scheme: ``http`` or ``https``.
        host: ASCII, lower case, no brackets, no trailing dot: for ``Host``, the TLS handshake and messages.
        lookup_name: The name to resolve: ``host``, with the URL's trailing dot if there was one (it keeps search
            domains out).
        address: The address if the host is one, else None.
        port: 1..65535.
        path: Path and query as they go on the wire.
        authorization: Value of ``Authorization`` made from the URL's userinfo, or empty.
    """

    scheme: str
    host: str
    lookup_name: str
    address: IPAddress | None
    port: int
    path: str
    authorization: str


@lru_cache(maxsize=1024)
def parse_target(url: str) -> UrlParts:
    """Parse an ``http`` or ``https`` URL.

    Raises:
        InvalidTarget: It is not such a URL, or it is ambiguous.
    """
    if _CONTROL.search(url) or url != url.strip():
        raise InvalidTarget("The URL contains control characters or surrounding spaces")
    match = _URL.fullmatch(url.partition("#")[0])
    if match is None:
        raise InvalidTarget("The URL must start with http:// or https://")
    scheme, authority, path = match[1].lower(), match[2], match[3]
    if "\\" in authority:
        raise InvalidTarget("The URL contains a backslash before its path")
    userinfo, at, place = authority.rpartition("@")
    if "@" in userinfo:
        raise InvalidTarget("The URL contains more than one @ before its path")
    host, lookup_name, address, port = _place(place)
    try:
        path = quote(path if path.startswith("/") else f"/{path}", safe=_PATH_SAFE)
        authorization = _basic(userinfo) if at else ""
    except UnicodeEncodeError as error:
        raise InvalidTarget("The URL is not valid Unicode") from error
    return UrlParts(
        scheme=scheme,
        host=host,
        lookup_name=lookup_name,
        address=address,
        port=port or _DEFAULT_PORTS[scheme],
        path=path,
        authorization=authorization,
    )


def wire_url(url: str) -> str:
    """A URL as its receiver sees it: escaped, without user information, fragment and default port.

    Raises:
        InvalidTarget: It is no target.
    """
    target = parse_target(url)
    host = f"[{target.host}]" if ":" in target.host else target.host
    port = "" if target.port == _DEFAULT_PORTS[target.scheme] else f":{target.port}"
    return f"{target.scheme}://{host}{port}{target.path}"


def is_same_place(url: str, other: str) -> bool:
    """Whether two URLs lead to the same host and port.

    All names of the loopback interface are one, and so are the default ports of ``http`` and ``https``.

    Raises:
        InvalidTarget: One is no target.
    """
    return _listener(parse_target(url)) == _listener(parse_target(other))


def leads_below(url: str, other: str) -> bool:
    """Whether a URL leads to the same host and port as another one and to a path below its, however it is spelled.

    Raises:
        InvalidTarget: One is no target.
    """
    return is_same_place(url, other) and f"{_plain_path(url)}/".startswith(f"{_plain_path(other)}/")


def _plain_path(url: str) -> str:
    """A path without escapes, dots, and slashes at its end or after one another."""
    path = unquote_to_bytes(parse_target(url).path.partition("?")[0]).decode(errors="replace")
    return "/" + posixpath.normpath(path).strip("/")


def _listener(target: UrlParts) -> tuple[str, int]:
    port = 0 if target.port in _DEFAULT_PORTS.values() else target.port
    return ("localhost" if _is_loopback(target) else target.host), port


def _is_loopback(target: UrlParts) -> bool:
    if target.address is None:
        return target.host == "localhost" or target.host.endswith(".localhost")
    mapped = target.address.ipv4_mapped if target.address.version == 6 else None
    address = mapped or target.address
    # Linux connects 0.0.0.0 and :: to itself.
    return address.is_loopback or address.is_unspecified


def _place(place: str) -> tuple[str, str, IPAddress | None, int]:
    """Host, name to look up, address if it is one, and port (0: the scheme's default)."""
    if place.startswith("["):
        match = _BRACKETED.fullmatch(place)
        if match is None:
            raise InvalidTarget("The URL's IPv6 address is not valid")
        try:
            address = ipaddress.IPv6Address(match[1])
        except ValueError as error:
            raise InvalidTarget("The URL's IPv6 address is not valid") from error
        return str(address), str(address), address, _port(match[2])
    match = _NAMED.fullmatch(place)
    if match is None:
        raise InvalidTarget("The URL's host or port is not valid")
    name = _ascii(match[1]).lower()
    host = name.removesuffix(".")
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise InvalidTarget("The URL's host is not a valid name")
    if not _NUMERIC_LABEL.fullmatch(labels[-1]):
        return host, name, None, _port(match[2])
    # 2130706433, 0x7f.1, 0177.0.0.1, 127.1, "127.0.0.1.": C libraries read these as addresses, other parsers as names.
    try:
        return name, name, ipaddress.IPv4Address(name), _port(match[2])
    except ValueError as error:
        raise InvalidTarget("The URL's IPv4 address must be four decimal numbers") from error


def _port(digits: str | None) -> int:
    if not digits:
        return 0
    if len(digits) > 5 or not 1 <= int(digits) <= 65535:
        raise InvalidTarget("The URL's port must be 1..65535")
    return int(digits)


def _ascii(name: str) -> str:
    if name.isascii():
        return name
    import idna  # noqa: PLC0415 - its tables cost start-up time and few hosts need them

    try:
        return idna.encode(name, uts46=True, std3_rules=True).decode("ascii")
    except idna.IDNAError as error:
        raise InvalidTarget("The URL's host is not a valid international name") from error


def _basic(userinfo: str) -> str:
    user, _, password = userinfo.partition(":")
    credentials = unquote_to_bytes(user) + b":" + unquote_to_bytes(password)
    return "Basic " + base64.b64encode(credentials).decode("ascii")
