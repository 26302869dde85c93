"""Payloads against schemas and filters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings, target
from hypothesis import strategies as st
from tests.fakes.effort import effort

from pushhub.base.errors import TooMuchWork
from pushhub.base.steps import MOST_STEPS, Steps
from pushhub.webhooks.model.event_type import EventType
from pushhub.webhooks.model.json_schema import enforceable, schema_problem, violation
from pushhub.webhooks.model.payload_filter import Operator, PayloadFilter

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from([0.5, 1.0, 2.5])
    | st.sampled_from(["", "a", "bb"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["array", "boolean", "integer", "null", "number", "object", "string"])
PLAIN: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "const": VALUES,
        "minimum": st.integers(-3, 3),
        "exclusiveMaximum": st.integers(-3, 3),
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "minLength": st.integers(0, 2),
        "maxItems": st.integers(0, 2),
        "minProperties": st.integers(0, 2),
        "uniqueItems": st.booleans(),
        "required": st.lists(st.sampled_from(["a", "b"]), unique=True, max_size=2),
    },
)
SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | PLAIN,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
            "additionalProperties": inner,
            "propertyNames": inner,
            "items": inner | st.lists(inner, min_size=1, max_size=2),
            "additionalItems": inner,
            "contains": inner,
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "dependencies": st.dictionaries(st.sampled_from(["a", "b"]), inner | st.just(["c"]), max_size=1),
        },
    ),
    max_leaves=5,
)


@settings(max_examples=100, deadline=None)
@given(SCHEMAS, VALUES)
def test_a_payload_is_judged_as_another_implementation_judges_it(schema: Any, value: Any) -> None:
    assert schema_problem(schema) is None
    expected = jsonschema_rs.Draft7Validator(schema).is_valid(value)
    assert (violation(schema, value) is None) == expected


def test_references_within_the_schema_are_followed() -> None:
    schema = {"definitions": {"a/b": {"type": "string"}}, "properties": {"x": {"$ref": "#/definitions/a~1b"}}}
    assert violation(schema, {"x": "y"}) is None
    assert violation(schema, {"x": 1}) == "payload.x is not of type string"
    tree = {"properties": {"next": {"$ref": "#"}}, "required": ["v"]}
    assert violation(tree, {"v": 1, "next": {"v": 2}}) is None
    assert violation(tree, {"v": 1, "next": {}}) == "payload.next lacks v"
    assert violation({"$ref": "https://elsewhere.example/"}, {}) is None


def test_a_schema_that_never_ends_or_grows_is_a_violation_after_so_many_steps() -> None:
    bomb: dict[str, Any] = {"definitions": {"d0": {"type": "object"}}, "$ref": "#/definitions/d40"}
    for number in range(1, 41):
        below = {"$ref": f"#/definitions/d{number - 1}"}
        bomb["definitions"][f"d{number}"] = {"allOf": [below, below]}
    for schema in ({"$ref": "#"}, bomb):
        assert violation(schema, {}) == "the schema is too complex for this payload"


PAYLOAD = {"order": {"status": "paid", "total": 20, "gift": True, "items": [{"sku": "a"}]}}


@pytest.mark.parametrize(
    ("path", "operator", "value", "passes"),
    [
        ("order.status", "eq", "paid", True),
        ("order.status", "eq", "new", False),
        ("order.status", "ne", "new", True),
        ("order.none", "ne", "new", True),
        ("order.none", "eq", None, False),
        ("order.status", "in", ["new", "paid"], True),
        ("order.status", "in", [], False),
        ("order.gift", "in", [1, "true"], False),
        ("order.gift", "in", [False, True], True),
        ("order.items.0.sku", "eq", "a", True),
        ("order.items.1.sku", "exists", False, True),
        ("order.items.0000000009.sku", "exists", False, True),
        ("order.items.x", "exists", True, False),
        ("order.status", "prefix", "pa", True),
        ("order.total", "prefix", "2", False),
        ("order.total", "gt", 19.5, True),
        ("order.total", "lt", 20, False),
        ("order.gift", "gt", 0, False),
        ("order.gift", "eq", 1, False),
        ("order.gift", "eq", True, True),
    ],
)
def test_a_filter_compares_one_value(path: str, operator: str, value: Any, passes: bool) -> None:
    filtered = PayloadFilter(path=path, operator=Operator(operator), value=value)
    assert filtered.lets_through(PAYLOAD) is passes


LONG = int("9" * 4299)
NAMES = [str(number) for number in range(40_000)]
OFTEN = [{"$ref": "#/definitions/a"}] * 10_000
HOSTILE: Mapping[str, tuple[Any, Any]] = {
    "many values allowed": ({"items": {"enum": list(range(40_000))}}, [-1] * 20),
    "as many in different places": ({"allOf": [{"enum": list(range(40_000))} for _ in range(9)]}, 7),
    "a long value compared often": ({"definitions": {"a": {"const": 1}}, "anyOf": OFTEN}, [["x" * 900_000]]),
    "numbers with one hash": (
        {"uniqueItems": True, "items": {"$ref": "#"}},
        [[n * (2**61 - 1)] for n in range(40_000)],
    ),
    "fractions of long numbers": ({"items": {"multipleOf": 1e-300}}, [LONG] * 230),
    "long numbers nobody reads": ({"definitions": {"a": {"minimum": LONG}}, "anyOf": OFTEN}, 1),
    "many names required": ({"items": {"required": NAMES}}, [dict.fromkeys(NAMES)] * 50),
    "many dependencies": ({"items": {"dependencies": {str(n): ["a"] for n in range(20_000)}}}, [{}] * 10_000),
    "a long reference": ({"items": {"$ref": "#/" + "a/" * 100_000}}, [1] * 30_000),
    "long names": (
        {"additionalProperties": {"additionalProperties": {"type": "null"}}},
        {"x" * 500_000: dict.fromkeys(NAMES)},
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_schema_ends_within_the_budget(case: str) -> None:
    schema, payload = HOSTILE[case]
    steps = Steps()
    # The work that Python does is limited as well, not only the count.
    done = effort(lambda: violation(schema, payload, steps))
    assert steps.spent <= MOST_STEPS
    assert done <= MOST_INSTRUCTIONS * (1 + steps.spent)


NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | st.just(LONG)
SCALARS = NUMBERS | st.text(max_size=3) | st.booleans() | st.none()
DATA: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=8)
        | st.dictionaries(st.sampled_from("abcdefgh"), inner, max_size=8)
        | st.tuples(inner, st.integers(1, 300)).map(lambda drawn: [drawn[0]] * drawn[1])
    ),
    max_leaves=12,
)
BRANCHES = ["allOf", "anyOf", "oneOf"]
ANY_SCHEMA: st.SearchStrategy[Any] = st.recursive(
    st.booleans()
    | st.just({"$ref": "#"})
    | st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES,
            "enum": st.lists(DATA, max_size=8),
            "const": DATA,
            "minimum": NUMBERS,
            "multipleOf": NUMBERS.map(abs).filter(bool),
            "maxLength": st.integers(0, 3),
            "uniqueItems": st.booleans(),
            "required": st.lists(st.text(max_size=2), unique=True, max_size=30),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            **{name: st.lists(inner, min_size=1, max_size=6) for name in BRANCHES},
            **dict.fromkeys(("items", "additionalProperties", "contains", "not", "if", "then", "else"), inner),
            "propertyNames": inner,
            "properties": st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
            "dependencies": st.dictionaries(st.sampled_from("abcd"), inner | st.just(["a", "x"]), max_size=4),
            "uniqueItems": st.just(True),
        },
    ),
    max_leaves=12,
)

MOST_INSTRUCTIONS = 120
"""Instructions of Python for one step, at most."""


@settings(max_examples=60, deadline=None)
@given(ANY_SCHEMA, DATA)
def test_a_search_for_the_most_work_finds_none_that_is_not_counted(schema: Any, payload: Any) -> None:
    # Given a search for schemas and payloads that take the most steps, or the most work for each of them
    few = 1_500
    assert schema_problem(schema) is None
    steps = Steps(few)
    done = effort(lambda: violation(schema, payload, steps))
    target(float(steps.spent), label="steps")
    target(done / (1 + steps.spent), label="work for a step")
    # Then the budget is never exceeded, and no step is more work than a step may be
    assert steps.spent <= few
    assert done <= MOST_INSTRUCTIONS * (3 + steps.spent)


def test_a_schema_that_is_too_large_to_be_checked_is_refused() -> None:
    large: dict[str, Any] = {"properties": {str(number): {} for number in range(MOST_STEPS)}}
    for check in (schema_problem, enforceable):
        with pytest.raises(TooMuchWork):
            check(large)


@pytest.mark.parametrize(
    ("versions", "newest"),
    [(["1", "2", "10"], "10"), (["9" * 5_000, "2"], "2"), (["a", "b"], "b"), (["a", "0"], "a"), ([], None)],
)
def test_the_newest_version_of_a_schema_is_found_whatever_versions_are_called(
    versions: list[str], newest: str | None
) -> None:
    schemas = {version: {"title": version} for version in versions}
    event_type = EventType(project="p", name="a", description="", schemas=schemas, created_at=0, updated_at=0)
    assert event_type.schema == (None if newest is None else {"title": newest})


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["order", "items", "0", "sku", "", "0" * 12]), min_size=1, max_size=100).map(".".join),
    st.sampled_from(Operator),
    st.lists(st.sampled_from(["a", 1, None, True]), max_size=50),
)
def test_a_filter_pays_for_its_path_and_its_values(path: str, operator: Operator, values: list[Any]) -> None:
    each: Any = {Operator.ONE_OF: values, Operator.EXISTS: True, Operator.BEGINS_WITH: "a"}.get(operator, 1)
    steps = Steps()
    filtered = PayloadFilter(path=path, operator=operator, value=each)
    done = effort(lambda: filtered.lets_through(PAYLOAD, steps))
    target(done / steps.spent, label="work for a step")
    assert done <= MOST_INSTRUCTIONS * (1 + steps.spent)
    with pytest.raises(TooMuchWork):
        filtered.lets_through(PAYLOAD, Steps(0))
