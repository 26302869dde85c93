"""JSON as text: read strictly, written so that it can be read again, split into lines at one character only."""

from __future__ import annotations

import gzip
import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.base.errors import TooMuchWork
from pushhub.base.json_text import (
    MAX_DEPTH,
    Fault,
    NameTwice,
    NotJson,
    Unread,
    Verbatim,
    lines,
    members,
    members_of_each,
    object_of,
    read,
    read_words,
    split,
    unpacked,
    write,
)
from pushhub.base.steps import Steps

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    # Halves of surrogate pairs have no UTF-8; st.text() makes none.
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.booleans(), st.booleans())
def test_what_is_written_is_read_again(value: Any, spaced: bool, ascii_only: bool) -> None:
    text = write(value, spaced=spaced, ascii_only=ascii_only)
    assert read(text) == read(text.encode(), last_wins=True) == value


@given(st.binary() | st.text().map(str.encode) | VALUES.map(lambda each: json.dumps(each).encode()))
def test_whatever_is_read_can_be_written_as_json(content: bytes) -> None:
    try:
        value = read(content, last_wins=True)
    except NotJson:
        return
    assert read(write(value).encode()) == value


@pytest.mark.parametrize(
    ("content", "fault", "place"),
    [
        (b"", Fault.NOT_JSON, "line 1, column 1"),
        (b'{"a": 1,\n "b": tru}', Fault.NOT_JSON, "line 2, column 7"),
        (b"[1 2]", Fault.NOT_JSON, "line 1, column 4"),
        (b'["\xff"]', Fault.NOT_UNICODE, "byte 3"),
        (b'["\xed\xa0\x80"]', Fault.NOT_UNICODE, "byte 3"),
        (b"[NaN]", Fault.NO_NUMBER, ""),
        (b"[-Infinity]", Fault.NO_NUMBER, ""),
        (b"[1e999]", Fault.NO_NUMBER, ""),
        (b"[-1E+400]", Fault.NO_NUMBER, ""),
        (b"[" + b"9" * 400 + b".5]", Fault.NO_NUMBER, ""),
        (b"[" + b"9" * 5000 + b"]", Fault.NO_NUMBER, ""),
        (b'{"a":\n"x\\ud800"}', Fault.HALF_PAIR, "line 2, column 3"),
        (b'["\\uDC00"]', Fault.HALF_PAIR, "line 1, column 3"),
        (b'["\\ud800\\ud800\\udc00"]', Fault.HALF_PAIR, "line 1, column 3"),
        (b'["\\\\\\ud83d"]', Fault.HALF_PAIR, "line 1, column 5"),
        (b'{"\\udfff": 1}', Fault.HALF_PAIR, "line 1, column 3"),
        ('["\ud800"]', Fault.HALF_PAIR, "line 1, column 3"),
        (b"[" * 101 + b"]" * 101, Fault.TOO_DEEP, ""),
        (b'{"a":' * 100_000, Fault.TOO_DEEP, ""),
        (b'{"a":{"b":1,"b":2}}', Fault.NAME_TWICE, ""),
        (b'{"a":1,"\\u0061":2}', Fault.NAME_TWICE, ""),
    ],
)
def test_what_is_not_read_says_what_is_wrong_and_where(content: bytes | str, fault: Fault, place: str) -> None:
    with pytest.raises(NotJson) as refused:
        read(content)
    assert (refused.value.fault, refused.value.place) == (fault, place)


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"\xef\xbb\xbf{}", {}),
        (b'["\\ud83d\\ude00", "\\\\ud800", "\\u0000"]', ["😀", "\\ud800", "\0"]),
        (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, None),
        (b"[1e308, -0, 123456789012345678901234567890]", [1e308, 0, 123456789012345678901234567890]),
    ],
)
def test_what_is_odd_and_no_fault_is_read(content: bytes, value: Any) -> None:
    found = read(content)
    assert value is None or found == value


def test_of_members_with_the_same_name_the_last_counts_where_that_is_wanted() -> None:
    with pytest.raises(NameTwice):
        read(b'{"a": 1, "a": 2}')
    assert read(b'{"a": 1, "a": 2}', last_wins=True) == {"a": 2}
    assert members('{"a": 1, "a": 2.0}') == {"a": "2.0"}


def test_numbers_can_be_kept_as_they_were_written_which_costs_steps() -> None:
    steps = Steps()
    body = b'{"a": [1.10, 1e5, -0, 17, {"b": "\\u00e9"}], "n": 123456789012345678901234567890}'
    assert json.loads(write(read(body, exact=True, spend=steps.spend)), parse_float=str, parse_int=str) == json.loads(
        body, parse_float=str, parse_int=str
    )
    assert steps.spent > 0
    with pytest.raises(TooMuchWork):
        read(b"[" + b"1.5," * 20 + b"1]", exact=True, spend=Steps(30).spend)
    for refused in (b'{"a": 1, "a": 2}', b"[1e999]"):
        with pytest.raises(NotJson):
            read(refused, exact=True)
    assert read_words(b'{"a": [0.10, 12]}') == {"a": ["0.10", "12"]}
    with pytest.raises(NotJson):
        read_words(b'{"a": "\\ud800"}')


def test_verbatim_json_stands_in_what_is_written_as_it_is_wherever_it_is() -> None:
    value = {"a": Verbatim("1.0"), "b": [Verbatim('{"c" :1e2}'), "ü", {"d": Verbatim("-0")}]}
    assert write(value, spaced=True) == '{"a": 1.0, "b": [{"c" :1e2}, "ü", {"d": -0}]}'
    assert write({"a": 1.0}) == '{"a":1.0}'
    # A string that looks like a placeholder stays a string
    assert json.loads(write({"a": Verbatim("7"), "b": "0" * 32 + "0", "c": '"1"'})) == {
        "a": 7,
        "b": "0" * 33,
        "c": '"1"',
    }
    odd: list[dict[str, object]] = [{"a": set()}, {"a": Verbatim("1"), "b": set()}]
    for part in odd:
        with pytest.raises(TypeError, match="set is not JSON"):
            write(part)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_what_json_does_not_have_is_not_written(value: Any) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write(value)


@given(st.dictionaries(st.text(), VALUES, max_size=5), st.booleans())
def test_the_parts_of_a_text_are_the_text(value: dict[str, Any], spaced: bool) -> None:
    text = write(value, spaced=spaced)
    found = members(f" \n{text}\t")
    assert {name: read(each) for name, each in found.items()} == value
    assert read(object_of(found)) == value


def test_the_parts_of_a_text_are_as_they_were_written() -> None:
    assert members('{ "a" : 19.90 , "\\u0062": {"x" :1}\n}') == {"a": "19.90", "b": '{"x" :1}'}
    assert members_of_each('[ {"a": 1.0 } ,\n{"b":"}]"}, { }]') == [{"a": "1.0"}, {"b": '"}]"'}, {}]
    assert (members("{ }"), members_of_each("[ ]")) == ({}, [])


@given(st.lists(st.dictionaries(st.text(), VALUES, max_size=5), max_size=5), st.booleans(), st.booleans())
def test_the_members_of_each_object_are_those_of_it_alone(
    value: list[dict[str, Any]], spaced: bool, ascii_only: bool
) -> None:
    text = f"\n{write(value, spaced=spaced, ascii_only=ascii_only)} "
    assert members_of_each(text) == [members(write(each, spaced=spaced, ascii_only=ascii_only)) for each in value]
    assert [{name: read(own) for name, own in each.items()} for each in members_of_each(text)] == value


BREAKS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""What Unicode or Python calls the end of a line, and JSON does not."""


def test_lines_end_at_one_character_and_what_cannot_be_read_is_named_and_passed_over() -> None:
    # Given names with all other line breaks, and lines that nobody can read
    odd = {"queue": f"orders{BREAKS}new"}
    content = b"\n".join(
        [json.dumps(odd, ensure_ascii=False).encode(), b"{", b"", b"[1]", b'{"a":"\\ud800"}', b'{"b":2}', b""]
    )
    # When they are read
    unread: list[Unread] = []
    found = [*lines(content, unread.append)]
    # Then those behind are read, and each that was not is named
    assert found == [odd, {"b": 2}]
    assert [each.line for each in unread] == [2, 4, 5]
    assert str(unread[1]) == "line 4 is JSON but not an object"
    assert len(split(content)) == 5
    assert [*lines(content, unread.append, naming=b'"b"')] == [{"b": 2}]


@pytest.mark.parametrize("kept", [0.3, 0.9, 1.0])
def test_a_packed_file_is_read_as_far_as_it_can_be(kept: float) -> None:
    text = b"".join(b'{"n": %d, "x": "%d"}\n' % (n, n * 7919 % 1009) for n in range(2_000))
    packed = gzip.compress(text)
    content = packed[: int(len(packed) * kept)]
    unread: list[Unread] = []
    found = [*lines(content, unread.append)]
    assert found == [{"n": n, "x": str(n * 7919 % 1009)} for n in range(len(found))]
    assert len(found) > 2_000 * kept - 300
    assert unread == ([] if kept == 1.0 else [Unread(0, "ends too early: only its beginning is read")])


def test_nothing_is_read_of_a_packed_file_that_is_damaged() -> None:
    packed = bytearray(gzip.compress(b'{"n": 1}\n' * 50_000))
    packed[len(packed) // 2] ^= 0xFF
    unread: list[Unread] = []
    assert not [*lines(bytes(packed), unread.append)]
    assert unread == [Unread(0, "is damaged: nothing of it is read")]
    assert unpacked(b"plain") == (b"plain", "")


def test_other_mappings_and_indented_text_are_written_too() -> None:
    value = MappingProxyType({"a": MappingProxyType({"b": Verbatim("19.90")})})
    assert write(value) == '{"a":{"b":19.90}}'
    assert write(MappingProxyType({"ü": [1]}), indent=1) == '{\n "ü": [\n  1\n ]\n}'
    with pytest.raises(TypeError):
        write({"a": object()})
