"""JSON schemas (draft 7): whether a schema is valid, and whether a payload matches one.

Pure, and bounded in time for any schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

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
    """Why a value is not a JSON schema of draft 7; None when it is one.

    Args:
        schema: A JSON value whose nesting is shallow enough for recursion.
    """
    if isinstance(schema, bool):
        return None
    if not isinstance(schema, dict):
        return "a schema must be an object or a boolean"
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


MOST_STEPS = 20_000
"""How many comparisons one payload may take: references can make a small schema stand for a huge one."""

MOST_DEPTH = 100


def enforceable(schema: Any) -> str | None:
    """Why a valid schema cannot be enforced; None when it can.

    Regular expressions are untrusted, and Python's have no time limit, but a payload must be checked within
    milliseconds.
    """
    if isinstance(schema, dict):
        for keyword, value in schema.items():
            if keyword in ("pattern", "patternProperties"):
                return f"{keyword} cannot be enforced"
            for inner in _inner(keyword, value):
                problem = enforceable(inner)
                if problem is not None:
                    return problem
    return None


def violation(schema: Any, value: Any) -> str | None:
    """How a value violates a valid and enforceable schema; None when it does not.

    Formats, default values and contents are annotations. A schema that takes too many steps is reported as a violation.
    """
    try:
        return _Check(schema).problem(schema, value, "payload", 0)
    except _TooMuch:
        return "the schema is too complex for this payload"


class _TooMuch(Exception):
    """Too many steps, or too deep."""


class _Check:
    """One value against one schema.

    Args:
        root: The schema that references are relative to.
    """

    def __init__(self, root: Any) -> None:
        self._root = root
        self._steps = 0

    def problem(self, schema: Any, value: Any, place: str, depth: int) -> str | None:
        """The first violation found."""
        self._steps += 1
        if self._steps > MOST_STEPS or depth > MOST_DEPTH:
            raise _TooMuch
        if isinstance(schema, bool):
            return None if schema else f"{place} is not allowed"
        if "$ref" in schema:
            return self.problem(self._target(schema["$ref"]), value, place, depth + 1)
        wrong = _simple(schema, value)
        if wrong is not None:
            return f"{place} {wrong}"
        return (
            self._combined(schema, value, place, depth)
            or (self._array(schema, value, place, depth) if isinstance(value, list) else None)
            or (self._object(schema, value, place, depth) if isinstance(value, dict) else None)
        )

    def _fits(self, schema: Any, value: Any, depth: int) -> bool:
        return self.problem(schema, value, "", depth + 1) is None

    def _target(self, reference: str) -> Any:
        """The schema that a reference within the document leads to; one that leads nowhere allows everything."""
        if reference != "#" and not reference.startswith("#/"):
            return True
        target = self._root
        for step in reference.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, dict) or name not in target:
                return True
            target = target[name]
        return target if _is_schema(target) else True

    def _combined(self, schema: Mapping[str, Any], value: Any, place: str, depth: int) -> str | None:
        for each in schema.get("allOf", ()):
            problem = self.problem(each, value, place, depth + 1)
            if problem is not None:
                return problem
        if "anyOf" in schema and not any(self._fits(each, value, depth) for each in schema["anyOf"]):
            return f"{place} matches none of anyOf"
        if "oneOf" in schema and sum(self._fits(each, value, depth) for each in schema["oneOf"]) != 1:
            return f"{place} does not match exactly one of oneOf"
        if "not" in schema and self._fits(schema["not"], value, depth):
            return f"{place} matches a schema that it must not match"
        if "if" in schema:
            branch = "then" if self._fits(schema["if"], value, depth) else "else"
            return self.problem(schema.get(branch, True), value, place, depth + 1)
        return None

    def _array(self, schema: Mapping[str, Any], value: list[Any], place: str, depth: int) -> str | None:
        items = schema.get("items", True)
        listed = items if isinstance(items, list) else []
        rest = schema.get("additionalItems", True) if isinstance(items, list) else items
        for index, each in enumerate(value):
            inner = listed[index] if index < len(listed) else rest
            problem = self.problem(inner, each, f"{place}.{index}", depth + 1)
            if problem is not None:
                return problem
        if "contains" in schema and not any(self._fits(schema["contains"], each, depth) for each in value):
            return f"{place} does not contain a required item"
        return None

    def _object(self, schema: Mapping[str, Any], value: Mapping[str, Any], place: str, depth: int) -> str | None:
        properties = schema.get("properties", {})
        for name, each in value.items():
            inner = properties[name] if name in properties else schema.get("additionalProperties", True)
            problem = self.problem(inner, each, f"{place}.{name}", depth + 1)
            if problem is not None:
                return problem
            if "propertyNames" in schema and not self._fits(schema["propertyNames"], name, depth):
                return f"{place} has a property name that is not allowed"
        for name, needs in schema.get("dependencies", {}).items():
            if name not in value:
                continue
            if isinstance(needs, list) and not set(needs) <= value.keys():
                return f"{place} lacks properties that {name} requires"
            if not isinstance(needs, list):
                problem = self.problem(needs, value, place, depth + 1)
                if problem is not None:
                    return problem
        return None


def _simple(schema: Mapping[str, Any], value: Any) -> str | None:
    """Violations of a value by itself."""
    types = schema.get("type")
    if types is not None and not any(_is_a(value, each) for each in ([types] if isinstance(types, str) else types)):
        return f"is not of type {types if isinstance(types, str) else ' or '.join(types)}"
    if "enum" in schema and not any(_equal(value, each) for each in schema["enum"]):
        return "is not one of the allowed values"
    if "const" in schema and not _equal(value, schema["const"]):
        return "is not the required value"
    return _number(schema, value) if _is_number(value) else _sized(schema, value)


def _sized(schema: Mapping[str, Any], value: Any) -> str | None:
    """Violations in the contents of a text, a list or an object."""
    for kind, least, most in (
        (str, "minLength", "maxLength"),
        (list, "minItems", "maxItems"),
        (dict, "minProperties", "maxProperties"),
    ):
        if isinstance(value, kind) and len(value) < schema.get(least, 0):
            return f"has fewer than {schema[least]}"
        if isinstance(value, kind) and most in schema and len(value) > schema[most]:
            return f"has more than {schema[most]}"
    missing = [each for each in schema.get("required", ()) if each not in value] if isinstance(value, dict) else []
    if missing:
        return f"lacks {', '.join(missing)}"
    repeated = isinstance(value, list) and len({_canonical(each) for each in value}) < len(value)
    return "has an item twice" if repeated and schema.get("uniqueItems") else None


def _number(schema: Mapping[str, Any], value: float) -> str | None:
    if "minimum" in schema and value < schema["minimum"]:
        return f"is less than {schema['minimum']}"
    if "maximum" in schema and value > schema["maximum"]:
        return f"is greater than {schema['maximum']}"
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        return f"is not greater than {schema['exclusiveMinimum']}"
    if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
        return f"is not less than {schema['exclusiveMaximum']}"
    # Computed in decimal: 0.3 is a multiple of 0.1.
    if "multipleOf" in schema and Fraction(str(value)) % Fraction(str(schema["multipleOf"])):
        return f"is not a multiple of {schema['multipleOf']}"
    return None


def _is_a(value: Any, kind: str) -> bool:
    match kind:
        case "integer":
            return _is_number(value) and value == int(value)
        case "number":
            return _is_number(value)
        case "null":
            return value is None
        case _:
            named: type = {"array": list, "boolean": bool, "object": dict, "string": str}[kind]
            return isinstance(value, named)


def _equal(one: Any, other: Any) -> bool:
    return _canonical(one) == _canonical(other)


def _canonical(value: Any) -> str:
    """A canonical text, the same for values that are equal in JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, float) and value == int(value):
        value = int(value)
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_canonical(value[name])}" for name in sorted(value)) + "}"
    return json.dumps(value)
