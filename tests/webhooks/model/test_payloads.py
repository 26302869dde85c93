"""Payloads against schemas and filters."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


@settings(max_examples=300, deadline=None)
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


def test_regular_expressions_are_not_enforced_and_it_is_said() -> None:
    assert enforceable({"properties": {"a": {"pattern": "(a+)+$"}}}) == "pattern cannot be enforced"
    assert enforceable({"items": [{}], "patternProperties": {}}) == "patternProperties cannot be enforced"
    assert enforceable({"properties": {"a": {"type": "string"}}}) is None


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
        ("order.items.0.sku", "eq", "a", True),
        ("order.items.1.sku", "exists", False, True),
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
