"""W3C Trace Context: what is read of a request, and what is kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.engine.model.trace import KEPT_STATE, Trace

ID, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED = f"00-{ID}-{PARENT}-01"


def state_of(text: str) -> str:
    trace = Trace.of({"traceparent": SAMPLED, "tracestate": text})
    assert trace is not None
    return trace.state


@pytest.mark.parametrize(
    ("given_value", "kept"),
    [
        (SAMPLED, SAMPLED),
        (f"00-{ID}-{PARENT}-00", f"00-{ID}-{PARENT}-00"),
        (f"00-{ID}-{PARENT}-03", f"00-{ID}-{PARENT}-03"),
        (f"  {SAMPLED}\t", SAMPLED),
        # Flags that are not known are not passed on
        (f"00-{ID}-{PARENT}-ff", f"00-{ID}-{PARENT}-03"),
        # Of later versions what is known of this one
        (f"cc-{ID}-{PARENT}-01", SAMPLED),
        (f"cc-{ID}-{PARENT}-01-what-the-future-brings", SAMPLED),
    ],
)
def test_a_valid_parent_is_kept(given_value: str, kept: str) -> None:
    trace = Trace.of({"traceparent": given_value})
    assert trace is not None
    assert trace.headers == {"traceparent": kept}


@pytest.mark.parametrize(
    "given_value",
    [
        "",
        SAMPLED.upper(),
        f"ff-{ID}-{PARENT}-01",
        f"00-{ID}-{PARENT}-01-more",
        f"cc-{ID}-{PARENT}-01.more",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{ID}-{'0' * 16}-01",
        f"00-{ID[:-1]}-{PARENT}-01",
        f"00-{ID}0-{PARENT}-01",
        f"0-{ID}-{PARENT}-01",
        f"00-{ID}-{PARENT}-1",
        f"00-{ID}-{PARENT}",
        f"00-{ID[:-1]}\u0663-{PARENT}-01",
        # The header was sent twice
        f"{SAMPLED},{SAMPLED}",
    ],
)
def test_what_is_not_valid_is_dropped_and_its_state_too(given_value: str) -> None:
    assert Trace.of({"traceparent": given_value, "tracestate": "a=1"}) is None


def test_a_state_without_a_parent_is_dropped() -> None:
    assert Trace.of({"tracestate": "a=1"}) is None


@pytest.mark.parametrize(
    ("given_state", "kept"),
    [
        ("congo=t61rcWkgMzE,rojo=00f067aa0ba902b7", "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"),
        ("a=1 ,\tb=2,,", "a=1,b=2"),
        ("fw529a3039@dt=FfAB=".rstrip("="), "fw529a3039@dt=FfAB"),
        ("1@a=x,0a-_*/@b-_*/=y", "1@a=x,0a-_*/@b-_*/=y"),
        # One member that is not valid, or twice there, and none is kept
        ("a=1,A=2", ""),
        ("a=1,a=2", ""),
        ("a=1,b", ""),
        ("a=1,b=\r\nX-Evil: 1", ""),
        ("a=ü", ""),
        ("a=1=2", ""),
        (",".join(f"k{number}=v" for number in range(33)), ""),
    ],
)
def test_the_state_keeps_its_members_in_order(given_state: str, kept: str) -> None:
    assert state_of(given_state) == kept


def test_long_members_go_first_then_the_last_ones() -> None:
    # Given more than is kept, with one long member in front
    short = [f"k{number}={'v' * 40}" for number in range(12)]
    kept = state_of(",".join([f"long={'x' * 200}", *short]))
    assert len(kept) <= KEPT_STATE
    assert kept == ",".join(short[: len(kept.split(","))])
    assert len(kept) > KEPT_STATE - 50


@given(
    st.from_regex(rf"00-{ID}-[0-9a-f]{{16}}-0[01]", fullmatch=True),
    st.lists(st.from_regex(r"[a-z][a-z0-9_]{0,9}=[!-+\--<>-~]{1,20}", fullmatch=True), max_size=9),
)
def test_what_is_stored_is_read_again(parent: str, members: list[str]) -> None:
    trace = Trace.of({"traceparent": parent, "tracestate": ",".join(members)})
    if trace is not None:
        assert Trace.read(trace.text) == trace
        assert Trace.of(trace.headers) == trace


@given(st.text(), st.text())
def test_nothing_that_a_stranger_sends_is_an_error_or_breaks_a_header(parent: str, state: str) -> None:
    for headers in ({"traceparent": parent, "tracestate": state}, {"traceparent": SAMPLED, "tracestate": state}):
        trace = Trace.of(headers)
        if trace is not None:
            assert all(value.isascii() and value.isprintable() for value in trace.headers.values())
