"""Name lookups: bounded in time and number, one per name at a time."""

from __future__ import annotations

import ipaddress
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pushhub.base.errors import Unavailable
from pushhub.egress.lookup import LookupFailed, NameLookup, system_resolve


class SlowResolver:
    """Answers only once released."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.names: list[str] = []

    def __call__(self, name: str) -> list[str]:
        self.names.append(name)
        assert self.released.wait(90)
        return ["192.0.2.1"]


def test_the_system_resolver_knows_this_machine() -> None:
    assert set(system_resolve("localhost")) <= {"127.0.0.1", "::1"}


def test_an_unknown_name_and_a_name_without_addresses_fail() -> None:
    def unknown(name: str) -> list[str]:
        raise OSError(-2, "Name or service not known")

    with pytest.raises(LookupFailed, match="Name or service not known"):
        NameLookup(unknown).addresses("a.example", 30)
    with pytest.raises(LookupFailed, match="no address"):
        NameLookup(lambda name: []).addresses("a.example", 30)
    with pytest.raises(LookupFailed, match="ValueError"):
        NameLookup(lambda name: ["not an address"]).addresses("a.example", 30)


def test_a_lookup_that_does_not_end_is_given_up_in_time() -> None:
    # Given a resolver that hangs
    resolver = SlowResolver()
    lookup = NameLookup(resolver)
    # When a name is looked up with a limit of a tenth of a second
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        lookup.addresses("slow.example", 0.1)
    # Then the caller returns at once, and the late answer serves the next caller
    assert time.monotonic() - started < 20
    resolver.released.set()
    assert lookup.addresses("slow.example", 30) == (ipaddress.ip_address("192.0.2.1"),)


def test_callers_of_one_name_share_one_lookup() -> None:
    resolver = SlowResolver()
    lookup = NameLookup(resolver)
    begun = threading.Barrier(9)

    def ask(_: int) -> object:
        begun.wait(90)
        return lookup.addresses("slow.example", 90)

    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(ask, number) for number in range(8)]
        begun.wait(90)
        while not resolver.names:
            time.sleep(0.01)
        time.sleep(0.5)
        resolver.released.set()
        assert {future.result() for future in waiting} == {(ipaddress.ip_address("192.0.2.1"),)}
    assert resolver.names == ["slow.example"]


def test_too_many_lookups_at_once_are_our_fault_not_the_name_s() -> None:
    # Given two lookups that hang, and room for two
    resolver = SlowResolver()
    lookup = NameLookup(resolver, limit=2)
    for name in ("a.example", "b.example"):
        with pytest.raises(TimeoutError):
            lookup.addresses(name, 0.01)
    # Then a third is not started
    with pytest.raises(Unavailable):
        lookup.addresses("c.example", 1)
    # And once they end there is room again
    resolver.released.set()
    lookup.addresses("a.example", 30)
    lookup.addresses("b.example", 30)
    lookup.addresses("c.example", 1)
