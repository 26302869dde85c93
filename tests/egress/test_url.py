"""Which URLs lead to the same listener."""

from __future__ import annotations

import pytest

from pushhub.egress.url import InvalidTarget, is_same_place


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
