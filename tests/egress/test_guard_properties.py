"""Properties of the guard over all addresses, with the standard library's own judgement as the oracle."""

from __future__ import annotations

import ipaddress
import socket

from hypothesis import example, given
from hypothesis import strategies as st

from pushhub.egress.guard import AllowedTargets, address_refusal, refusal
from pushhub.egress.lookup import NameLookup
from pushhub.egress.url import InvalidTarget, IPAddress, parse_target

V4 = st.ip_addresses(v=4)
V6 = st.ip_addresses(v=6)
ADDRESSES: st.SearchStrategy[IPAddress] = st.one_of(V4, V6)
EVERYTHING = AllowedTargets.parse(["0.0.0.0/0", "::/0"])
# Ranges that the guard refuses although the standard library calls them global: translation, relays, special purposes.
STRICTER = [
    ipaddress.ip_network(text)
    for text in [
        "192.0.0.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.175.48.0/24",
        "64:ff9b::/96",
        "2001::/23",
        "2002::/16",
        "2620:4f:8000::/48",
        "3fff::/20",
    ]
]


def never() -> NameLookup:
    def resolve(name: str) -> list[str]:
        raise AssertionError(f"{name} was looked up")

    return NameLookup(resolve)


@given(ADDRESSES)
@example(ipaddress.ip_address("224.0.0.1"))
@example(ipaddress.ip_address("ff02::1"))
@example(ipaddress.ip_address("::ffff:10.0.0.1"))
@example(ipaddress.ip_address("fec0::1"))
def test_nothing_passes_that_the_standard_library_does_not_call_global_unicast(address: IPAddress) -> None:
    if address_refusal(address, 80) is None:
        plain = address.ipv4_mapped or address if isinstance(address, ipaddress.IPv6Address) else address
        assert plain.is_global
        assert not plain.is_multicast
        assert not plain.is_reserved
        assert not plain.is_loopback
        assert not plain.is_link_local
        assert not plain.is_private


@given(ADDRESSES)
def test_what_the_standard_library_calls_global_unicast_passes_but_for_named_ranges(address: IPAddress) -> None:
    plain = address.ipv4_mapped or address if isinstance(address, ipaddress.IPv6Address) else address
    ordinary = plain.is_global and not plain.is_multicast and not plain.is_reserved
    if plain.version == 6:
        ordinary = ordinary and plain in ipaddress.ip_network("2000::/3")
    if ordinary and not any(plain in network for network in STRICTER):
        assert address_refusal(address, 80) is None


@given(V4)
def test_every_wrapping_of_a_forbidden_ipv4_address_is_forbidden(address: ipaddress.IPv4Address) -> None:
    if address_refusal(address, 80) is not None:
        number = int(address)
        for wrapped in (
            ipaddress.IPv6Address(0xFFFF << 32 | number),
            ipaddress.IPv6Address(number),
            ipaddress.IPv6Address(0x64FF9B << 96 | number),
            ipaddress.IPv6Address(0x2002 << 112 | number << 80),
            ipaddress.IPv6Address(0x20010000 << 96 | (number ^ 0xFFFFFFFF)),
        ):
            assert address_refusal(wrapped, 80) is not None


@given(st.integers(0, 2**16 - 1).map(lambda low: ipaddress.IPv4Address(0xA9FE0000 + low)))
def test_no_allow_list_opens_link_local_addresses(address: ipaddress.IPv4Address) -> None:
    assert address_refusal(address, 80, "", EVERYTHING) is not None


@given(
    V4,
    st.sampled_from(["{0}", "0x{0:x}", "0{0:o}", "{1}.{4}", "0x{1:x}.0{2:o}.{3}", "{1}.{2}.{5}", "{1}.{2}.{3}.0{6:o}"]),
)
def test_whatever_the_c_library_reads_as_a_forbidden_address_is_refused(
    address: ipaddress.IPv4Address, form: str
) -> None:
    # Given an address written in one of the forms that inet_aton understands
    number, parts = int(address), address.packed
    host = form.format(number, parts[0], parts[1], parts[2], number & 0xFFFFFF, number & 0xFFFF, parts[3])
    try:
        read = ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return
    # When the address it stands for is forbidden, then so is the URL, without any lookup
    if address_refusal(read, 80) is not None:
        assert refusal(f"http://{host}/", lookup=never()) is not None


@given(st.text(max_size=40))
@example("127.0.0.1")
@example("[::1]")
@example("a@b")
def test_a_url_is_either_refused_or_leads_to_one_plain_host(authority: str) -> None:
    try:
        target = parse_target(f"http://{authority}")
    except InvalidTarget:
        return
    # Then the text on the wire is plain ASCII without separators that could be read differently
    assert target.host.isascii()
    assert not set(target.host) & set("/\\@?#%[] \t\r\n")
    assert target.path.isascii()
    assert target.path.startswith("/")
    assert not set(target.path) & set(" \t\r\n\\")
    assert 1 <= target.port <= 65535
    assert (target.address is None) or str(target.address) == target.host
