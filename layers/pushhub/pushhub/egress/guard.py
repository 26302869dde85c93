"""Which addresses the hub may connect to: public ones, and those an operator allows in addition.

Subscriber URLs come from tenants, so they must not lead into the network the hub runs in (server-side request forgery).
The rule applies to addresses, never to names: a name is resolved once, all of its addresses must pass, and the
connection goes to an address that passed (:mod:`pushhub.egress.connection`).

Sources: IANA special-purpose address registries (RFC 6890 and later), for ranges that ``ipaddress.is_global`` calls
global although they are not hosts on the internet: multicast, 6to4, Teredo, NAT64, ORCHID, site-local.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pushhub.base.errors import Unavailable
from pushhub.egress.lookup import LookupFailed, NameLookup
from pushhub.egress.url import InvalidTarget, IPAddress, UrlParts, parse_target

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _networks(**kinds: str) -> list[tuple[_Network, str]]:
    return [
        (ipaddress.ip_network(network), kind.replace("_", " "))
        for kind, listed in kinds.items()
        for network in listed.split()
    ]


_DENIED = _networks(
    loopback="127.0.0.0/8 ::1/128",
    unspecified="0.0.0.0/8 ::/128",
    private="10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7",
    shared="100.64.0.0/10",
    link_local="169.254.0.0/16 fe80::/10",
    site_local="fec0::/10",
    multicast="224.0.0.0/4 ff00::/8",
    documentation="192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20",
    benchmarking="198.18.0.0/15 2001:2::/48",
    NAT64="64:ff9b::/96 64:ff9b:1::/48",
    Teredo="2001::/32",
    ORCHID="2001:10::/28 2001:20::/28",
    # 2001::/23 is reserved for protocols; the named ranges above are part of it.
    special_purpose="192.0.0.0/24 192.31.196.0/24 192.52.193.0/24 192.175.48.0/24 2001::/23 2620:4f:8000::/48",
    relay="192.88.99.0/24 2002::/16",
    reserved="240.0.0.0/4",
)
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
# No allow-list can open these: instance metadata and credentials (AWS uses link-local addresses and fd00:ec2::/32), and
# address forms that embed another address, which the allow-list would not be checked against.
_NEVER = _networks(
    link_local="169.254.0.0/16 fe80::/10",
    metadata="fd00:ec2::/32",
    NAT64="64:ff9b::/96 64:ff9b:1::/48",
    Teredo="2001::/32",
    relay="2002::/16",
)
_REGISTRATION_LOOKUP_S = 5.0


class TargetRefused(Exception):
    """The guard refuses a request to this target; the text says why, and may be shown to the tenant."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry of an allow-list: a network or a host name, on one port or (0) on every port."""

    networks: tuple[_Network, ...]
    name: str
    port: int

    def covers(self, address: IPAddress, port: int, host: str) -> bool:
        if self.port not in (0, port):
            return False
        if self.name:
            # Whoever controls the DNS of an allowed name must not be able to point it at the hub itself.
            return self.name == host and (self.name == "localhost" or not _within(address, _LOOPBACK))
        return _within(address, self.networks)


@dataclass(frozen=True, slots=True)
class AllowedTargets:
    """Targets that are allowed although they are not public.

    Attributes:
        texts: The entries as written: ``loopback`` (127.0.0.0/8 and ::1), an address, a network (``10.0.0.0/8``), or a
            host name; each with ``:port`` or for every port. IPv6 with a port needs brackets. A name allows the private
            addresses it resolves to, but loopback addresses only if it is ``localhost``. An entry that starts with
            ``!`` stays closed whatever the others allow (``loopback,!loopback:4577``).
        entries: The entries in the form used for matching.
        closed: Those with ``!``.
    """

    texts: tuple[str, ...]
    entries: tuple[_Entry, ...]
    closed: tuple[_Entry, ...] = ()

    @classmethod
    def parse(cls, texts: Sequence[str]) -> AllowedTargets:
        """Read an allow-list.

        Raises:
            ValueError: An entry has none of these forms.
        """
        return _parse_allowed(tuple(texts))

    def cover(self, address: IPAddress, port: int, host: str) -> bool:
        """Whether an entry matches this address, or the host name it was resolved from."""
        return any(entry.covers(address, port, host) for entry in self.entries)

    def close(self, address: IPAddress, port: int, host: str) -> bool:
        """Whether an entry keeps this address closed."""
        return any(entry.covers(address, port, host) for entry in self.closed)


def refusal(url: str, allowed_targets: Sequence[str] = (), *, lookup: NameLookup | None = None) -> str | None:
    """Why a URL may not be the target of a push, or None when it may; to be called before a URL is stored.

    A name that cannot be resolved now is accepted: it may be resolvable later, and each request is checked again.

    Args:
        allowed_targets: See :class:`AllowedTargets`.
        lookup: How names are resolved.

    Raises:
        ValueError: ``allowed_targets`` contains an entry that cannot be parsed.
    """
    allowed = AllowedTargets.parse(allowed_targets)
    try:
        checked_addresses(parse_target(url), allowed, lookup or _LOOKUP, _REGISTRATION_LOOKUP_S)
    except (InvalidTarget, TargetRefused) as error:
        return str(error)
    except (LookupFailed, TimeoutError, Unavailable):
        return None
    return None


def unusable(url: str) -> str | None:
    """Why nothing could ever be sent to a URL, whatever its host resolves to and whatever an operator allows; None if
    something could.

    The one check of a URL's form in all dialects: what the sender cannot call is not registered. Looks up nothing.
    """
    try:
        target = parse_target(url)
    except InvalidTarget as error:
        return str(error)
    kind = _kind(_unwrapped(target.address), _NEVER) if target.address is not None else None
    return f"{target.host} is a {kind} address, which is not allowed" if kind else None


def checked_addresses(
    target: UrlParts, allowed: AllowedTargets, lookup: NameLookup, timeout_s: float
) -> tuple[IPAddress, ...]:
    """The addresses of a target, resolved once, provided that all of them are allowed.

    Raises:
        TargetRefused: At least one is not allowed.
        LookupFailed: The name has no address.
        TimeoutError: The name was not resolved in time.
        Unavailable: No lookup could be made.
    """
    found = (target.address,) if target.address else lookup.addresses(target.lookup_name, timeout_s)
    addresses = tuple(_unwrapped(address) for address in found)
    for address in addresses:
        if allowed.close(address, target.port, target.host):
            raise TargetRefused(f"{target.host}:{target.port} is not open to subscribers")
        kind = address_refusal(address, target.port, target.host, allowed)
        if kind:
            # The resolved address is not reported: that would let tenants read the DNS of the hub's network.
            verb = "is" if target.address else "resolves to"
            raise TargetRefused(f"{target.host} {verb} a {kind} address, which is not allowed")
    return addresses


def address_refusal(address: IPAddress, port: int, host: str = "", allowed: AllowedTargets | None = None) -> str | None:
    """The kind of forbidden address this is, or None when it is allowed.

    Args:
        address: Where the connection would go.
        port: The port there.
        host: The name it was resolved from; only matters for allow-lists.
        allowed: Targets allowed although they are not public.
    """
    address = _unwrapped(address)
    if _is_runtime_api(address, port):
        return "Lambda Runtime API"
    never = _kind(address, _NEVER)
    if never:
        return never
    kind = _kind(address, _DENIED)
    if kind is None and address.version == 6 and address not in _GLOBAL_UNICAST:
        kind = "reserved"
    if kind and allowed is not None and allowed.cover(address, port, host):
        return None
    return kind


def _unwrapped(address: IPAddress) -> IPAddress:
    """The IPv4 address inside ``::ffff:a.b.c.d``, because that is what the system connects to."""
    if isinstance(address, ipaddress.IPv6Address):
        return address.ipv4_mapped or address
    return address


def _within(address: IPAddress, networks: Sequence[_Network]) -> bool:
    return any(address in network for network in networks)


def _kind(address: IPAddress, networks: Sequence[tuple[_Network, str]]) -> str | None:
    return next((kind for network, kind in networks if address in network), None)


def _is_runtime_api(address: IPAddress, port: int) -> bool:
    """Whether this reaches the Lambda Runtime API, which hands out other invocations and accepts their results.

    It listens on the machine itself, which on Linux can also be reached as 0.0.0.0, so its port is closed on all of
    those.
    """
    runtime_host, _, runtime_port = os.environ.get("AWS_LAMBDA_RUNTIME_API", "").rpartition(":")
    if runtime_port != str(port):
        return False
    return address.is_loopback or address.is_unspecified or str(address) == runtime_host.strip("[]")


_CLOSED = "!"
_BRACKETED_ENTRY = re.compile(r"\[([^\[\]]+)\](?::([0-9]+))?")
_PLAIN_ENTRY = re.compile(r"([^:\[\]]+)(?::([0-9]+))?")


@lru_cache(maxsize=256)
def _parse_allowed(texts: tuple[str, ...]) -> AllowedTargets:
    return AllowedTargets(
        texts,
        tuple(_parse_entry(text) for text in texts if not text.startswith(_CLOSED)),
        tuple(_parse_entry(text.removeprefix(_CLOSED)) for text in texts if text.startswith(_CLOSED)),
    )


def _parse_entry(text: str) -> _Entry:
    match = _BRACKETED_ENTRY.fullmatch(text) or _PLAIN_ENTRY.fullmatch(text)
    # Without brackets, more than one colon means an IPv6 address or network.
    place, digits = (match[1], match[2]) if match else (text, None)
    port = int(digits) if digits else 0
    if place == "loopback":
        return _Entry(_LOOPBACK, "", port)
    try:
        return _Entry((ipaddress.ip_network(place, strict=False),), "", port)
    except ValueError:
        pass
    try:
        target = parse_target(f"http://{place}/")
    except InvalidTarget as error:
        raise ValueError(f"not an allowed target: {text!r}") from error
    if port > 65535 or target.path != "/" or target.authorization:
        raise ValueError(f"not an allowed target: {text!r}")
    return _Entry((), target.host, port)


_LOOKUP = NameLookup()
