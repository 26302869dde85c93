"""Which parts the paths withhold, and which payloads are withheld whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings, target
from hypothesis import strategies as st
from tests.fakes.effort import effort

from pushhub.base.errors import TooMuchWork
from pushhub.base.json_text import read
from pushhub.base.steps import MOST_STEPS, Steps
from pushhub.webhooks.model.redaction import TOO_COSTLY, WITHHELD, Redaction, is_path

R = WITHHELD
PAYLOAD = {"user": {"email": "e", "name": "n"}, "items": [{"card": 1, "sku": 2}, {"card": [3]}], "email": None}


@pytest.mark.parametrize(
    ("path", "covered"),
    [
        ("user.email", True),
        ("user.email.host", True),
        ("user.name", False),
        ("user", False),
        ("email", False),
        ("any.thing.token", True),
        ("list.0.card", True),
        ("a.b", True),
    ],
)
def test_a_field_is_covered_if_its_value_is_withheld_however_its_dots_are_read(path: str, covered: bool) -> None:
    redaction = Redaction(payload=("user.email", "**.token", "list.*.card", "*.b"))
    assert redaction.covers(path) is covered
    assert not Redaction().covers(path)


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
    [
        "plain text",
        '{"cut": "of',
        '"text"',
        "17",
        "[" * 5000 + "]" * 5000,
        json.dumps(dict.fromkeys(map(str, range(MOST_STEPS)))),
    ],
)
def test_an_answer_that_paths_cannot_be_applied_to_is_withheld(answer: str) -> None:
    assert Redaction(answers=("a",)).of_answer(answer) == WITHHELD


def test_of_a_member_that_is_there_twice_nothing_stays() -> None:
    assert Redaction(answers=("a.b",)).of_answer('{"a": {"b": "secret"}, "a": 1}') == '{"a":1}'
    assert Redaction(answers=("a",)).of_answer('{"a": 1, "b": 19.90}') == '{"a":"[redacted]","b":19.90}'
    assert Redaction(answers=("b",)).of_answer('{"a": "\\ud800"}') == WITHHELD
    assert Redaction(answers=("a",)).of_answer("") == ""


def test_a_payload_that_paths_cannot_be_applied_to_is_withheld() -> None:
    redaction = Redaction(payload=("**.a",))
    assert redaction.of_payload({"rawPayload": "secret"}) == {"rawPayload": WITHHELD}
    deep: Any = {}
    for _ in range(2000):
        deep = {"b": deep}
    assert redaction.of_payload(deep) == TOO_COSTLY
    assert redaction.of_payload({"b": [{}] * MOST_STEPS}) == TOO_COSTLY


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


@pytest.mark.parametrize(
    ("path", "payload", "shown"),
    [
        ("user.email", {"user.email": "e", "user": {"email": "e"}}, {"user.email": R, "user": {"email": R}}),
        ("user", {"user.email": "e", "users.email": "n"}, {"user.email": R, "users.email": "n"}),
        ("a.*.c", {"a.b.c": 1, "a": {"b.c": 1}, "a.b": {"d": 1}}, {"a.b.c": R, "a": {"b.c": R}, "a.b": {"d": 1}}),
        ("*.c", {"a.b.c": 1, "a.b": {"c": 1, "d": 1}, "c": 1}, {"a.b.c": R, "a.b": {"c": R, "d": 1}, "c": 1}),
        ("**.email", {"x": {"user.email": 1, "email.": 1, "y": 1}}, {"x": {"user.email": R, "email.": R, "y": 1}}),
        ("items.0", {"items.0": 1, "items.1": 1}, {"items.0": R, "items.1": 1}),
    ],
)
def test_a_name_with_dots_is_withheld_in_both_readings(
    path: str, payload: dict[str, Any], shown: dict[str, Any]
) -> None:
    assert Redaction(payload=(path,)).of_payload(payload) == shown


def _readings(name: str) -> Iterator[list[str]]:
    """Every way to read a name: cut at any of its dots."""
    parts = name.split(".")
    for cuts in product((".", None), repeat=len(parts) - 1):
        read = [parts[0]]
        for cut, part in zip(cuts, parts[1:], strict=True):
            read = [*read, part] if cut is None else [*read[:-1], f"{read[-1]}.{part}"]
        yield read


def _matches(path: list[str], names: list[str]) -> bool:
    if not path or not names:
        return not path
    if path[0] == "**":
        return _matches(path[1:], names) or _matches(path, names[1:])
    return path[0] in ("*", names[0]) and _matches(path[1:], names[1:])


def _expected(value: Any, paths: list[list[str]], above: tuple[str, ...] = ()) -> Any:
    """Redaction as it is described, for one value after the other and one path after the other."""
    readings = [[name for read in each for name in read] for each in product(*map(_readings, above))]
    if above and any(_matches(path, names) for path in paths for names in readings):
        return WITHHELD
    if isinstance(value, dict):
        return {name: _expected(each, paths, (*above, name)) for name, each in value.items()}
    if isinstance(value, list):
        return [_expected(each, paths, (*above, str(index))) for index, each in enumerate(value)]
    return value


DOTTED = st.sampled_from(["a", "b", "1", "a.b", "b.a.b", "a.", "b.1", "c"])
DOCUMENTS = st.recursive(
    st.integers(0, 9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(DOTTED, inner, max_size=3),
    max_leaves=8,
)
PATHS = st.lists(st.sampled_from(["a", "b", "0", "1", "*", "**"]), min_size=1, max_size=4).map(".".join).filter(is_path)


@given(st.dictionaries(DOTTED, DOCUMENTS, max_size=3), st.lists(PATHS, min_size=1, max_size=4))
def test_all_paths_together_withhold_what_each_of_them_does(payload: dict[str, Any], paths: list[str]) -> None:
    expected = _expected(payload, [path.split(".") for path in paths])
    assert Redaction(payload=tuple(paths)).of_payload(payload) == expected
    answer = Redaction(answers=tuple(paths)).of_answer(json.dumps(payload))
    assert json.loads(answer) == expected


@given(st.lists(PATHS, min_size=1, max_size=20), st.integers(1, 40), st.integers(0, 9))
def test_the_work_for_a_value_does_not_depend_on_the_paths(paths: list[str], wide: int, deep: int) -> None:
    payload: Any = {"a": 1}
    for _ in range(deep):
        payload = {"a": payload, "b": [payload] * 2}
    payload = {str(number): payload for number in range(wide)} if deep < 4 else payload
    few, many = Steps(10**9), Steps(10**9)
    Redaction(payload=("**.nothing.0",)).of_payload(payload, few)
    Redaction(payload=tuple(paths)).of_payload(payload, many)
    # A name is looked up once for each state, and there are few of both; nothing else depends on the paths.
    assert many.spent <= few.spent + 1_000


LARGE: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([1, 1.5, "x", None]),
    lambda inner: (
        st.dictionaries(DOTTED | st.just("." * 40), inner, max_size=6)
        | st.tuples(inner, st.integers(1, 200)).map(lambda drawn: [drawn[0]] * drawn[1])
    ),
    max_leaves=10,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(DOTTED, LARGE, max_size=4), st.lists(PATHS, min_size=1, max_size=20))
def test_a_search_for_the_most_work_finds_none_that_is_not_counted(payload: dict[str, Any], paths: list[str]) -> None:
    # Given a search for payloads and paths that take the most steps, or the most work for each of them
    few, body = 2_000, json.dumps(payload).encode()
    steps = Steps(few)

    def work() -> None:
        with suppress(TooMuchWork):
            Redaction(payload=tuple(paths)).of_payload(read(body, exact=True, spend=steps.spend), steps)

    done = effort(work)
    target(float(steps.spent), label="steps")
    target(done / (1 + steps.spent), label="work for a step")
    # Then the budget is never exceeded, and no step is more work than a step may be; the paths are prepared once
    assert steps.spent <= few
    assert done <= 120 * (3 + steps.spent) + 3_000 * len(paths)
