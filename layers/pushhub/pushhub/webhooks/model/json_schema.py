"""JSON schemas (draft 7), as far as event types need them: whether one is valid. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["schema_problem"]

_TYPES = {"array", "boolean", "integer", "null", "number", "object", "string"}


def _is_schema(value: Any) -> bool:
    return isinstance(value, bool | dict)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value == int(value) and value >= 0


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value) and len(set(value)) == len(value)


def _is_type(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and _is_texts(value) and set(value) <= _TYPES
    return isinstance(value, str) and value in _TYPES


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_schemas(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_schema(each) for each in value)


def _is_schemas_by_name(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_schema(each) for each in value.values())


_FORMS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("$id", "$schema", "$ref", "$comment", "title", "description", "format", "pattern"), _is_text),
    **dict.fromkeys(("contentMediaType", "contentEncoding"), _is_text),
    **dict.fromkeys(("readOnly", "writeOnly", "uniqueItems"), _is_flag),
    **dict.fromkeys(("examples", "enum"), _is_list),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"), _is_number),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), _is_count),
    **dict.fromkeys(("additionalItems", "contains", "additionalProperties", "propertyNames"), _is_schema),
    **dict.fromkeys(("if", "then", "else", "not"), _is_schema),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), _is_schemas),
    **dict.fromkeys(("definitions", "properties", "patternProperties"), _is_schemas_by_name),
    "items": lambda value: _is_schema(value) or _is_schemas(value),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "required": _is_texts,
    "type": _is_type,
    "dependencies": lambda value: (
        isinstance(value, dict) and all(_is_schema(each) or _is_texts(each) for each in value.values())
    ),
}
"""The form that the value of each keyword must have."""


def schema_problem(schema: Any) -> str | None:
    """What makes a value no JSON schema of draft 7; None when it is one.

    Args:
        schema: A JSON value, nested not too deep for recursion.
    """
    if isinstance(schema, bool):
        return None
    if not isinstance(schema, dict):
        return "a schema is an object or a boolean"
    for keyword, value in schema.items():
        if keyword in _FORMS and not _FORMS[keyword](value):
            return f"the value of {keyword} has the wrong form"
        for inner in _inner(keyword, value):
            problem = schema_problem(inner)
            if problem is not None:
                return problem
    return None


def _inner(keyword: str, value: Any) -> list[Any]:
    """The schemas in the value of a keyword."""
    if keyword in ("definitions", "properties", "patternProperties"):
        return list(value.values())
    if keyword == "dependencies":
        return [each for each in value.values() if _is_schema(each)]
    if keyword in ("allOf", "anyOf", "oneOf"):
        return list(value)
    if keyword == "items" and isinstance(value, list):
        return value
    single = {"additionalItems", "contains", "additionalProperties", "propertyNames", "if", "then", "else", "not"}
    return [value] if keyword in single or keyword == "items" else []
