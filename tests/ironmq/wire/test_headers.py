"""Header rules: whatever they accept can be sent in an HTTP request."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.base.errors import Invalid
from pushhub.ironmq.wire.headers import push_headers_of, subscriber_headers_of, webhook_push_headers

NAMES = st.one_of(st.text(max_size=70), st.sampled_from(["X-A", "Host", "content-type", "Iron-Message-Id", "x" * 65]))
VALUES = st.one_of(st.text(max_size=30), st.none(), st.integers(), st.just("v" * 1025), st.just("a\r\nb"))
RESERVED = {
    *("iron-message-id", "iron-reservation-id", "iron-subscriber-name", "iron-subscriber-message-url"),
    *("pushhub-hops", "pushhub-descendants"),
    *("connection", "content-length", "expect", "host", "keep-alive", "proxy-authenticate", "proxy-authorization"),
    *("proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
}
"""What the hub sends itself, or the connection."""


def assert_can_travel(headers: dict[str, str]) -> None:
    for name, value in headers.items():
        assert re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name)
        assert not re.search("[\x00-\x08\x0a-\x1f\x7f]", value)
        assert value == value.strip()
        value.encode("latin-1")
        assert name.lower() not in RESERVED


@given(st.dictionaries(NAMES, VALUES, max_size=7))
def test_headers_let_through_can_travel(given_headers: dict[str, object]) -> None:
    for read in (push_headers_of, subscriber_headers_of):
        try:
            headers = read(given_headers)
        except Invalid:
            continue
        assert headers == given_headers
        assert_can_travel(headers)


@given(st.dictionaries(NAMES.map(lambda name: f"x-subscribers-{name.lower()}"), st.text(max_size=30), max_size=9))
def test_webhooks_fail_over_reserved_headers_alone(request_headers: dict[str, str]) -> None:
    reserved = {f"x-subscribers-{name}" for name in RESERVED} & request_headers.keys()
    if reserved:
        with pytest.raises(Invalid, match=r"Push header [a-z-]+ cannot be set"):
            webhook_push_headers(request_headers)
    headers = webhook_push_headers({name: value for name, value in request_headers.items() if name not in reserved})
    assert len(headers) <= 5
    assert_can_travel(headers)
    # and what they accept, a post would accept, too
    assert push_headers_of(headers) == headers


@pytest.mark.parametrize("name", [*sorted(RESERVED), "Iron-Message-Id", "iron-RESERVATION-id", "Host"])
def test_reserved_headers_are_refused_by_name_wherever_they_are_set(name: str) -> None:
    with pytest.raises(Invalid, match=f"Push header {name} cannot be set"):
        push_headers_of({name: "v"})
    with pytest.raises(Invalid, match=f"Subscriber header {name} cannot be set"):
        subscriber_headers_of({name: "v"})


def test_the_limits_are_exact() -> None:
    assert push_headers_of({"X" * 64: "v" * 1024})
    # bytes count, not characters
    for headers in ({"X": "é" * 513}, {"X" * 65: "v"}, {"X": "v" * 1025}):
        with pytest.raises(Invalid, match="longer than"):
            push_headers_of(headers)
