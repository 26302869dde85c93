"""Nesting of JSON, found without parsing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.base.nesting import is_deeper


def _depth(text: str) -> int:
    """Deepest nesting of brackets outside strings, one character after the other."""
    depth = deepest = 0
    in_string = escaped = False
    for each in text:
        if in_string:
            in_string, escaped = escaped or each != '"', each == "\\" and not escaped
        elif each == '"':
            in_string = True
        elif each in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif each in "]}":
            depth -= 1
    return deepest


@given(st.recursive(st.text('[]{}"\\a', max_size=6), lambda inner: st.lists(inner, max_size=4)), st.integers(0, 6))
def test_nesting_is_found_without_parsing(value: Any, levels: int) -> None:
    text = json.dumps(value)
    assert is_deeper(text.encode(), levels) == (_depth(text) > levels)


@pytest.mark.parametrize("body", ['[]"' + '\\"' * 500_000, '[]"' + "\\" * 1_000_001, '"' + "[" * 10**6])
def test_a_string_without_an_end_is_read_once(body: str) -> None:
    """A string that was tried again from each of its quotation marks would take hours."""
    assert not is_deeper(body.encode(), 1)


@pytest.mark.parametrize("levels", [1, 7, 15, 16, 17, 99, 100])
@pytest.mark.parametrize("opening", ["[", '{"":', '[{"":'])
def test_whole_documents_are_as_deep_as_they_are(opening: str, levels: int) -> None:
    # Given documents that are well formed, side by side, of about the depth that is allowed
    for times in range(1, 120):
        inner = '"[]"' if opening.endswith(":") else ""
        closing = "".join({"[": "]", "{": "}"}[each] for each in reversed(opening) if each in "[{")
        text = ",".join([opening * times + inner + closing * times] * 3)
        assert is_deeper(f"[{text}]".encode(), levels) == (_depth(f"[{text}]") > levels)
