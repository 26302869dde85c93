"""Which URLs lead to the same listener."""

from __future__ import annotations

import pytest

from pushhub.egress.url import InvalidTarget, is_same_place, leads_below


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("https://a.example/x?y", "https://a.example"),
        ("https://A.example./", "https://a.example"),
        ("http://a.example/", "https://a.example"),
        ("https://bücher.example/", "https://xn--bcher-kva.example"),
        ("http://localhost:8377/x", "http://127.0.0.1:8377"),
        ("http://a.localhost:8377", "http://127.0.0.1:8377"),
        ("http://127.8.9.10:8377", "http://127.0.0.1:8377"),
        ("http://[::1]:8377", "http://127.0.0.1:8377"),
        ("http://[::ffff:127.0.0.1]:8377", "http://127.0.0.1:8377"),
        ("http://0.0.0.0:8377", "http://127.0.0.1:8377"),
    ],
)
def test_spellings_of_one_place(url: str, other: str) -> None:
    assert is_same_place(url, other)
    assert is_same_place(other, url)


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("https://b.example", "https://a.example"),
        ("https://a.example:8443", "https://a.example"),
        ("http://127.0.0.1:9", "http://127.0.0.1:8377"),
        ("http://192.168.0.1:8377", "http://127.0.0.1:8377"),
        ("https://notlocalhost", "https://localhost"),
    ],
)
def test_different_places(url: str, other: str) -> None:
    assert not is_same_place(url, other)


def test_what_is_no_target_is_no_place() -> None:
    with pytest.raises(InvalidTarget):
        is_same_place("http://127.1/", "http://127.0.0.1")


@pytest.mark.parametrize(
    ("url", "below"),
    [
        ("https://a.example/in/p/s/token", True),
        ("https://A.example.:443/in/p/s/token/?a=b#c", True),
        ("https://user@a.example/in/p/%73/token", True),
        ("https://a.example//in/./q/../p/s", True),
        ("http://a.example/in/p/s/token", True),
        ("https://b.example/in/p/s/token", False),
        ("https://a.example:8443/in/p/s/token", False),
        ("https://a.example/in/p/sources", False),
        ("https://a.example/in/p", False),
        ("https://a.example/elsewhere?/in/p/s", False),
    ],
)
def test_a_place_below_another_is_known_however_it_is_spelled(url: str, below: bool) -> None:
    assert leads_below(url, "https://a.example/in/p/s") is below
