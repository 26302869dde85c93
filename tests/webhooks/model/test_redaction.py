"""Which parts the paths withhold, and which payloads are withheld whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.webhooks.model.redaction import MAX_VALUES, WITHHELD, Redaction, is_path

R = WITHHELD
PAYLOAD = {"user": {"email": "e", "name": "n"}, "items": [{"card": 1, "sku": 2}, {"card": [3]}], "email": None}


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("user.email", {**PAYLOAD, "user": {"email": R, "name": "n"}}),
        ("user", {**PAYLOAD, "user": R}),
        ("items.*.card", {**PAYLOAD, "items": [{"card": R, "sku": 2}, {"card": R}]}),
        ("items.1", {**PAYLOAD, "items": [{"card": 1, "sku": 2}, R]}),
        ("**.email", {**PAYLOAD, "user": {"email": R, "name": "n"}, "email": R}),
        ("**.*.card", {**PAYLOAD, "items": [{"card": R, "sku": 2}, {"card": R}]}),
        ("**.**.card", {**PAYLOAD, "items": [{"card": R, "sku": 2}, {"card": R}]}),
        ("*", dict.fromkeys(PAYLOAD, R)),
        ("nothing.here", PAYLOAD),
        ("user.email.deeper", PAYLOAD),
    ],
)
def test_a_path_withholds_what_lies_there(path: str, shown: dict[str, Any]) -> None:
    assert Redaction(payload=(path,)).of_payload(PAYLOAD) == shown
    assert Redaction(answers=(path,)).of_answer(json.dumps(PAYLOAD)) == json.dumps(shown, separators=(",", ":"))


def test_without_paths_everything_stays_as_it_is() -> None:
    assert Redaction(answers=("a",)).of_payload(PAYLOAD) == PAYLOAD
    assert Redaction(payload=("a",)).of_answer('{"a": 1,  "a":2}') == '{"a": 1,  "a":2}'


@pytest.mark.parametrize(
    "answer",
    ["plain text", '{"cut": "of', '"text"', "17", "[" * 5000 + "]" * 5000, "\ufeff{}", json.dumps([0] * MAX_VALUES)],
)
def test_an_answer_that_paths_cannot_be_applied_to_is_withheld(answer: str) -> None:
    assert Redaction(answers=("a",)).of_answer(answer) == WITHHELD


def test_of_a_member_that_is_there_twice_nothing_stays() -> None:
    assert Redaction(answers=("a.b",)).of_answer('{"a": {"b": "secret"}, "a": 1}') == '{"a":1}'
    assert Redaction(answers=("a",)).of_answer("") == ""


def test_a_payload_that_paths_cannot_be_applied_to_is_withheld() -> None:
    redaction = Redaction(payload=("**.a",))
    assert redaction.of_payload({"rawPayload": "secret"}) == {"rawPayload": WITHHELD}
    deep: Any = {}
    for _ in range(2000):
        deep = {"b": deep}
    assert redaction.of_payload(deep) == {WITHHELD: True}
    assert redaction.of_payload({"b": [0] * MAX_VALUES}) == {WITHHELD: True}


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "**", "a.**", "x" * 201, ".".join("abcdefghijk")])
def test_what_is_no_path(text: str) -> None:
    assert not is_path(text)


VALUES = st.recursive(
    st.none() | st.integers() | st.just("secret"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3))
def test_a_name_at_any_depth_is_found_wherever_it_is(payload: dict[str, Any]) -> None:
    def leaks(value: Any, *, named: bool = False) -> bool:
        if isinstance(value, dict):
            return any(leaks(each, named=name == "a") for name, each in value.items())
        if isinstance(value, list):
            return any(map(leaks, value))
        return named and value != WITHHELD

    assert not leaks(Redaction(payload=("**.a",)).of_payload(payload))
