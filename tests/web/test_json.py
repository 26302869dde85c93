"""Reading JSON strictly: any bytes either become an object or are refused; nothing else can happen."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.base.errors import Invalid
from pushhub.web.json import (
    boolean,
    integer,
    listed,
    number_in_query,
    parse_object,
    section,
    text,
)

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(10**30), max_value=10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.sampled_from(
        ["pull", "multicast", "fixed", "asc", "http://a.example", "ironmq:///x", "ironworker://a:b@c/d", "", "1"]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=6)),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=8)


@given(st.one_of(st.binary(), st.text().map(str.encode), OBJECTS.map(lambda value: json.dumps(value).encode())))
def test_any_bytes_are_an_object_or_refused(body: bytes) -> None:
    try:
        fields = parse_object(body)
    except Invalid:
        return
    # An accepted value equals that of Python's own reader
    assert fields == (json.loads(body) if body else {})
    json.dumps(fields, ensure_ascii=False).encode()


@given(OBJECTS)
def test_every_object_of_sound_text_is_read_as_it_is(value: dict[str, Any]) -> None:
    assert parse_object(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize(
    ("value", "read"),
    [(5, 5), (None, None), (0, None), (1, 1), (10, 10)],
)
def test_numbers(value: Any, read: int | None) -> None:
    assert integer({"n": value}, "n", least=1, most=10) == read
    assert integer({}, "n", least=1, most=10) is None


@pytest.mark.parametrize("value", [11, -1, "5", 5.0, True, [], {}, 10**30])
def test_numbers_refused(value: Any) -> None:
    with pytest.raises(Invalid):
        integer({"n": value}, "n", least=1, most=10)


def test_zero_can_be_meant() -> None:
    assert integer({"n": 0}, "n", least=0, most=10, zero_is_unset=False) == 0


def test_other_types() -> None:
    fields = {"text": "x", "flag": True, "object": {"a": 1}, "array": [1], "null": None}
    assert (text(fields, "text"), text(fields, "null"), text(fields, "none")) == ("x", None, None)
    assert (boolean(fields, "flag"), boolean(fields, "null")) == (True, False)
    assert (section(fields, "object"), section(fields, "null")) == ({"a": 1}, None)
    assert (listed(fields, "array"), listed(fields, "null")) == ([1], None)
    for read, name in ((text, "flag"), (boolean, "text"), (section, "array"), (listed, "object")):
        with pytest.raises(Invalid, match=name):
            read(fields, name)


@pytest.mark.parametrize(("query", "read"), [({}, 7), ({"n": ""}, 7), ({"n": "0"}, 7), ({"n": "012"}, 12)])
def test_numbers_in_queries(query: dict[str, str], read: int) -> None:
    assert number_in_query(query, "n", default=7) == read
