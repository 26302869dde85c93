"""The official tests of JSON Schema: whatever is enforced is judged right, and what is not is refused by its name.

The files are those of json-schema-org/JSON-Schema-Test-Suite at 44401e0 (2026-08-22), without the optional ones: one
for each draft.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pushhub.webhooks.model.json_schema import enforceable, schema_problem, violation

SUITE = Path(__file__).parent / "json_schema_suite"


def cases_of(draft: str) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Each test with its name and its schema."""
    for file, cases in json.loads((SUITE / f"{draft}.json").read_text(encoding="utf-8")).items():
        for case in cases:
            for each in case["tests"]:
                yield f"{file}: {case['description']}: {each['description']}", case["schema"], each


@pytest.mark.parametrize(("draft", "count", "least"), [("draft7", 927, 868), ("draft2020-12", 1_299, 823)])
def test_every_test_is_judged_right_or_its_schema_refused(draft: str, count: int, least: int) -> None:
    every = list(cases_of(draft))
    assert len(every) == count
    # When a schema can be enforced, then each of its values is judged as the suite says
    judged = [each for each in every if schema_problem(each[1]) is None and enforceable(each[1]) is None]
    wrong = [name for name, schema, each in judged if (violation(schema, each["data"]) is None) != each["valid"]]
    assert wrong == []
    assert len(judged) >= least


def test_what_is_refused_of_draft_7_are_references_to_names_and_out_of_the_document() -> None:
    refused = {name.partition(":")[0] for name, schema, _ in cases_of("draft7") if enforceable(schema) is not None}
    assert refused == {"definitions", "ref", "refRemote"}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"properties": {"a": {"pattern": "^(?=b)"}}}, "the pattern ^(?=b) uses a lookahead, which RE2 does not have"),
        ({"patternProperties": {"(": {}}}, "the pattern ( is not a regular expression: missing ): ("),
        ({"anyOf": [{"pattern": "a" * 400 + str(each)} for each in range(6)]}, "its patterns are longer than 2000"),
        ({"anyOf": [{"pattern": f"{each}a{{1000}}"} for each in range(5)]}, "its patterns have more than 4000"),
        ({"definitions": {"a": {"unevaluatedProperties": False}}}, "unevaluatedProperties cannot be enforced"),
        ({"x": {"pattern": "("}, "$ref": "#/x"}, "the pattern ( is not"),
        ({"$defs": {"a": {"prefixItems": []}}}, "prefixItems cannot be enforced"),
        ({"$ref": "https://elsewhere.example/"}, "$ref https://elsewhere.example/ cannot be followed"),
        ({"$ref": "#/definitions/none"}, "$ref #/definitions/none cannot be followed"),
        ({"properties": {"a": {"$id": "b"}}}, "$id cannot be enforced within a schema"),
        ({"$schema": "https://example.com/own"}, "$schema https://example.com/own is not known"),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "items": [{}]}, "items cannot be a list"),
        (
            {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$ref": "#/$defs/a",
                "minLength": 1,
                "$defs": {},
            },
            "$ref cannot be enforced beside other keywords",
        ),
    ],
)
def test_what_would_be_checked_otherwise_than_meant_is_refused_by_name(schema: Any, why: str) -> None:
    assert schema_problem(schema) is None
    problem = enforceable(schema)
    assert problem is not None
    assert problem.startswith(why)


@pytest.mark.parametrize(
    "draft", ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]
)
def test_what_drafts_share_is_enforced(draft: str) -> None:
    schema: dict[str, Any] = {"$schema": draft, "$id": "https://a.example/", "$defs": {"a": {"pattern": "^[a-z]+$"}}}
    schema |= {"properties": {"b": {"$ref": "#/$defs/a"}}, "patternProperties": {"^x-": {"type": "integer"}}}
    schema |= {"additionalProperties": False}
    assert enforceable(schema) is None
    assert violation(schema, {"b": "c", "x-d": 1}) is None
    assert violation(schema, {"b": "C"}) == "payload.b does not match the pattern ^[a-z]+$"
    assert violation(schema, {"x-d": "1"}) == "payload.x-d is not of type integer"
    assert violation(schema, {"y": 1}) == "payload.y is not allowed"


def test_a_pattern_looks_at_the_whole_text_and_is_paid_for() -> None:
    assert violation({"pattern": "^a*$"}, "a" * 20_000 + "b") == "payload does not match the pattern ^a*$"
    # What the search could take at worst is more than there is
    assert (
        violation({"pattern": "((a{0,10}){0,10}){0,10}b"}, "a" * 10_000) == "the schema is too complex for this payload"
    )


def test_a_pattern_that_cannot_be_used_and_was_never_checked_is_a_violation() -> None:
    assert violation({"pattern": "(?=a)"}, "a") == "the schema is too complex for this payload"
