"""JSON schemas (draft 7): whether a schema is valid, and whether a payload matches one.

Pure, and bounded in time for any schema and any payload: each loop spends from one budget (docs/decisions/security.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any
from urllib.parse import unquote

from pushhub.base.errors import Invalid, TooMuchWork
from pushhub.base.numerals import digits
from pushhub.base.patterns import MAX_INSTRUCTIONS, Pattern
from pushhub.base.steps import Steps

_TYPES = {"array", "boolean", "integer", "null", "number", "object", "string"}


def _is_schema(value: Any) -> bool:
    return isinstance(value, bool | dict)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: float) -> bool:
    return isinstance(value, int) or value.is_integer()


def _is_count(value: Any) -> bool:
    return _is_number(value) and _is_whole(value) and value >= 0


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


def schema_problem(schema: Any, steps: Steps | None = None) -> str | None:
    """Why a value is not a JSON schema of draft 7; None when it is one.

    Args:
        schema: A JSON value whose nesting is shallow enough for recursion.
        steps: Spent for what the schema contains; None for a budget of its own.

    Raises:
        TooMuchWork: The schema is too large to be checked.
    """
    steps = steps or Steps()
    if isinstance(schema, bool):
        return None
    if not isinstance(schema, dict):
        return "a schema must be an object or a boolean"
    steps.spend()
    for keyword, value in schema.items():
        steps.spend(1 + (_size(value) if keyword == "dependencies" else _size(value) // _PER_STEP))
        if keyword in _FORMS and not _FORMS[keyword](value):
            return f"the value of {keyword} has the wrong form"
        for inner in _inner(keyword, value):
            problem = schema_problem(inner, steps)
            if problem is not None:
                return problem
    return None


def _size(value: Any) -> int:
    return len(value) if isinstance(value, dict | list) else 0


def _inner(keyword: str, value: Any) -> Iterable[Any]:
    """The schemas in the value of a keyword."""
    if keyword in ("definitions", "properties", "patternProperties"):
        return value.values()  # type: ignore[no-any-return]
    if keyword == "dependencies":
        return [each for each in value.values() if _is_schema(each)]
    if keyword in ("allOf", "anyOf", "oneOf") or (keyword == "items" and isinstance(value, list)):
        return value  # type: ignore[no-any-return]
    single = {"additionalItems", "contains", "additionalProperties", "propertyNames", "if", "then", "else", "not"}
    return [value] if keyword in single or keyword == "items" else []


MOST_DEPTH = 100

_VISIT = 3
"""Steps for one schema on one value, without what is counted separately."""

_PER_STEP = 8
"""How many names are looked up for a step."""

_KEYS_PER_STEP = 3
"""How many of the texts and whole numbers that a schema allows are read for a step."""

_COMPILED = 200
"""Steps for making a regular expression of its text."""

_ANNOTATIONS = frozenset({"$schema", "$id", "$comment", "title", "description", "examples", "definitions"})
_MOST_BITS = 256
_LISTED = 10
_SHOWN = 100
"""How many missing properties a violation lists, and how many characters of a name it shows."""


MAX_PATTERNS = 2_000
"""Longest regular expressions of an enforced schema together, in characters."""

_LATER_DRAFTS = ("https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema")
_DRAFTS = ("http://json-schema.org/draft-07/schema", "http://json-schema.org/draft-06/schema")
_OF_LATER_DRAFTS = frozenset(
    {
        *("$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef", "$vocabulary"),
        *("dependentRequired", "dependentSchemas", "maxContains", "minContains", "prefixItems"),
        *("unevaluatedItems", "unevaluatedProperties"),
    }
)
"""Keywords that restrict values in later drafts, and mean nothing in draft 7."""


def enforceable(schema: Any, steps: Steps | None = None) -> str | None:
    """Why a valid schema cannot be enforced; None when it can.

    What would be checked otherwise than its owner means it is refused by name: keywords of later drafts, references
    that cannot be followed, and regular expressions that RE2 lacks (:mod:`pushhub.base.patterns`).

    Args:
        steps: As in :func:`schema_problem`.

    Raises:
        TooMuchWork: The schema is too large to be checked.
    """
    return _Enforceable(schema, steps or Steps()).problem(schema)


class _Enforceable:
    """What makes a schema impossible to enforce, in all its parts and whatever its references lead to."""

    def __init__(self, root: Any, steps: Steps) -> None:
        self._root = root
        self._steps = steps
        self._later = False
        self._seen: set[int] = set()
        self._patterns: set[str] = set()
        self._length = self._instructions = 0

    def problem(self, schema: Any) -> str | None:
        if not isinstance(schema, dict) or id(schema) in self._seen:
            return None
        self._seen.add(id(schema))
        self._steps.spend()
        problem = self._draft(schema) or self._reference(schema)
        if problem is not None:
            return problem
        for keyword, value in schema.items():
            if keyword in _OF_LATER_DRAFTS:
                return f"{keyword} cannot be enforced"
            self._steps.spend(1 + _size(value) // _PER_STEP)
            patterns = [value] if keyword == "pattern" else value if keyword == "patternProperties" else []
            inner = value.values() if keyword == "$defs" and isinstance(value, dict) else _inner(keyword, value)
            for problem in (*map(self._pattern, patterns), *map(self.problem, inner)):
                if problem is not None:
                    return problem
        return None

    def _draft(self, schema: Mapping[str, Any]) -> str | None:
        said = (
            str(schema.get("$schema", _DRAFTS[0]))
            .removesuffix("#")
            .replace("https://json-schema.org/draft-", "http://json-schema.org/draft-")
        )
        if said not in (*_DRAFTS, *_LATER_DRAFTS):
            return f"$schema {said[:_SHOWN]} is not known"
        self._later = self._later or said in _LATER_DRAFTS
        if "$id" in schema and schema is not self._root and "$ref" not in schema:
            return "$id cannot be enforced within a schema"
        if self._later and isinstance(schema.get("items"), list):
            return "items cannot be a list in this draft"
        return None

    def _reference(self, schema: Mapping[str, Any]) -> str | None:
        if "$ref" not in schema:
            return None
        reference = schema["$ref"]
        if self._later and schema.keys() & _FORMS.keys() - {"$ref", *_ANNOTATIONS}:
            return "$ref cannot be enforced beside other keywords"
        self._steps.spend_on_text(len(reference))
        target = referenced(self._root, reference, self._steps)
        if target is None:
            return f"$ref {reference[:_SHOWN]} cannot be followed"
        return self.problem(target)

    def _pattern(self, text: str) -> str | None:
        if text in self._patterns:
            return None
        self._patterns.add(text)
        self._length += len(text)
        if self._length > MAX_PATTERNS:
            return f"its patterns are longer than {MAX_PATTERNS} characters together"
        self._steps.spend(_COMPILED)
        try:
            self._instructions += Pattern(text).instructions
        except Invalid as error:
            return f"the pattern {text[:_SHOWN]} {error.message}"
        if self._instructions > MAX_INSTRUCTIONS:
            return f"its patterns have more than {MAX_INSTRUCTIONS} instructions together"
        return None


def referenced(root: Any, reference: str, steps: Steps) -> Any:
    """The schema in a document that a reference leads to; None if it leads nowhere, or out of the document."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    target = root
    for step in reference.split("/")[1:]:
        steps.spend()
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        index = digits(name, 5)
        if isinstance(target, list) and index is not None and index < len(target):
            target = target[index]
        elif isinstance(target, dict) and name in target:
            target = target[name]
        else:
            return None
    return target if _is_schema(target) else None


TOO_COMPLEX = "the schema is too complex for this payload"


def violation(schema: Any, value: Any, steps: Steps | None = None) -> str | None:
    """How a value violates a valid and enforceable schema; None when it does not.

    Formats, default values and contents are annotations; regular expressions are RE2's. A schema that takes too many
    steps is reported as a violation: references and lists of values can make a small schema stand for a huge one.

    Args:
        steps: Spent by the comparisons; None for a budget of its own.
    """
    check = _Check(schema, steps or Steps())
    try:
        problem = check.problem(schema, value, 0)
    except Invalid:
        return TOO_COMPLEX
    return None if problem is None else f"{check.place} {problem}"


class _Check:
    """One value against one schema."""

    def __init__(self, root: Any, steps: Steps) -> None:
        self._root = root
        self._steps = steps
        self._targets: dict[str, Any] = {}
        self._keys: dict[tuple[int, str], frozenset[str]] = {}
        self._patterns: dict[str, Pattern] = {}
        # Filled from the end when a violation is found: most comparisons need no text of where they are.
        self._place: list[str] = []

    @property
    def place(self) -> str:
        """Where the violation is that was found."""
        return ".".join(["payload", *reversed(self._place)])

    def problem(self, schema: Any, value: Any, depth: int) -> str | None:
        """The first violation found."""
        self._steps.spend(_VISIT)
        if depth > MOST_DEPTH:
            raise TooMuchWork
        if isinstance(schema, bool):
            return None if schema else "is not allowed"
        if "$ref" in schema:
            return self.problem(self._target(schema["$ref"]), value, depth + 1)
        return (
            self._simple(schema, value)
            or self._combined(schema, value, depth)
            or (self._array(schema, value, depth) if isinstance(value, list) else None)
            or (self._object(schema, value, depth) if isinstance(value, dict) else None)
        )

    def _fits(self, schema: Any, value: Any, depth: int) -> bool:
        fits = self.problem(schema, value, depth + 1) is None
        self._place.clear()
        return fits

    def _within(self, name: str, schema: Any, value: Any, depth: int) -> str | None:
        """The first violation found in a member or item."""
        problem = self.problem(schema, value, depth + 1)
        if problem is not None:
            self._place.append(name[:_SHOWN])
        return problem

    def _target(self, reference: str) -> Any:
        """The schema that a reference within the document leads to; one that leads nowhere allows everything."""
        if reference not in self._targets:
            self._steps.spend_on_text(len(reference))
            found = referenced(self._root, reference, self._steps)
            self._targets[reference] = True if found is None else found
        return self._targets[reference]

    def _matches(self, pattern: str, text: str) -> bool:
        if pattern not in self._patterns:
            self._steps.spend(_COMPILED)
            self._patterns[pattern] = Pattern(pattern)
        return self._patterns[pattern].found_in(text, self._steps, most=None)

    def _combined(self, schema: Mapping[str, Any], value: Any, depth: int) -> str | None:
        for each in schema.get("allOf", ()):
            problem = self.problem(each, value, depth + 1)
            if problem is not None:
                return problem
        if "anyOf" in schema and not any(self._fits(each, value, depth) for each in schema["anyOf"]):
            return "matches none of anyOf"
        if "oneOf" in schema and sum(self._fits(each, value, depth) for each in schema["oneOf"]) != 1:
            return "does not match exactly one of oneOf"
        if "not" in schema and self._fits(schema["not"], value, depth):
            return "matches a schema that it must not match"
        if "if" in schema:
            branch = "then" if self._fits(schema["if"], value, depth) else "else"
            return self.problem(schema.get(branch, True), value, depth + 1)
        return None

    def _array(self, schema: Mapping[str, Any], value: list[Any], depth: int) -> str | None:
        items = schema.get("items", True)
        listed = items if isinstance(items, list) else []
        rest = schema.get("additionalItems", True) if isinstance(items, list) else items
        # Most arrays are not restricted in what comes last.
        checked = value if rest is not True else value[: len(listed)]
        for index, each in enumerate(checked):
            problem = self._within(str(index), listed[index] if index < len(listed) else rest, each, depth)
            if problem is not None:
                return problem
        if "contains" in schema and not any(self._fits(schema["contains"], each, depth) for each in value):
            return "does not contain a required item"
        return None

    def _object(self, schema: Mapping[str, Any], value: Mapping[str, Any], depth: int) -> str | None:
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        self._steps.spend(len(value) // _PER_STEP)
        patterned = schema.get("patternProperties")
        for name, each in value.items():
            inner = properties.get(name, others)
            problem = None
            if patterned:
                problem, matched = self._patterned(patterned, name, each, depth)
                inner = properties.get(name, True) if matched else inner
            if problem is None and inner is not True:
                problem = self._within(name, inner, each, depth)
            if problem is not None:
                return problem
            if "propertyNames" in schema and not self._fits(schema["propertyNames"], name, depth):
                return "has a property name that is not allowed"
        dependencies = schema.get("dependencies", {})
        self._steps.spend(len(dependencies) // _PER_STEP)
        for name, needs in dependencies.items():
            if name not in value:
                continue
            if isinstance(needs, list):
                self._steps.spend(1 + len(needs) // _PER_STEP)
                if not all(each in value for each in needs):
                    return f"lacks properties that {name[:_SHOWN]} requires"
            else:
                problem = self.problem(needs, value, depth + 1)
                if problem is not None:
                    return problem
        return None

    def _patterned(self, patterned: Mapping[str, Any], name: str, value: Any, depth: int) -> tuple[str | None, bool]:
        """The first violation by patterns of names, and whether any of them matches the name."""
        matched = [inner for pattern, inner in patterned.items() if self._matches(pattern, name)]
        for inner in matched:
            problem = self._within(name, inner, value, depth)
            if problem is not None:
                return problem, True
        return None, bool(matched)

    def _simple(self, schema: Mapping[str, Any], value: Any) -> str | None:
        """Violations of a value by itself."""
        types = schema.get("type")
        if types is not None and not any(_is_a(value, each) for each in ([types] if isinstance(types, str) else types)):
            return f"is not of type {types if isinstance(types, str) else ' or '.join(types)}"
        if "enum" in schema and self._key(value) not in self._keys_of(schema, "enum", schema["enum"]):
            return "is not one of the allowed values"
        if "const" in schema and self._key(value) not in self._keys_of(schema, "const", [schema["const"]]):
            return "is not the required value"
        return self._number(schema, value) if _is_number(value) else self._sized(schema, value)

    def _keys_of(self, schema: Mapping[str, Any], keyword: str, values: list[Any]) -> frozenset[str]:
        """The keys of the values that a schema allows, made once."""
        place = (id(schema), keyword)
        if place not in self._keys:
            # Long lists are of texts and whole numbers, which cost less than other values.
            self._steps.spend(1 + len(values) // _KEYS_PER_STEP)
            self._keys[place] = frozenset(
                f"{len(each)}:{each}" if type(each) is str else f"{each:#x}" if type(each) is int else self._key(each)
                for each in values
            )
        return self._keys[place]

    def _key(self, value: Any) -> str:
        """A text, the same for values that are equal in JSON: 1 and 1.0 are, 1 and true are not.

        Texts and not the values themselves, because somebody can choose numbers whose hashes are all the same.
        """
        if isinstance(value, str):
            text = f"{len(value)}:{value}"
        elif isinstance(value, list):
            text = "[" + ",".join(map(self._key, value)) + "]"
        elif isinstance(value, dict):
            text = "{" + ",".join(f"{self._key(name)}{self._key(value[name])}" for name in sorted(value)) + "}"
        elif _is_number(value) and _is_whole(value):
            # Hexadecimal: the decimal digits of a long number take time that grows with their square.
            text = f"{int(value):#x}"
        else:
            text = repr(value)
        self._steps.spend_on_text(len(text))
        return text

    def _sized(self, schema: Mapping[str, Any], value: Any) -> str | None:
        """Violations in the contents of a text, a list or an object."""
        for kind, least, most in (
            (str, "minLength", "maxLength"),
            (list, "minItems", "maxItems"),
            (dict, "minProperties", "maxProperties"),
        ):
            if isinstance(value, kind) and len(value) < schema.get(least, 0):
                return f"has fewer than {_shown(schema[least])}"
            if isinstance(value, kind) and most in schema and len(value) > schema[most]:
                return f"has more than {_shown(schema[most])}"
        if isinstance(value, str) and "pattern" in schema and not self._matches(schema["pattern"], value):
            return f"does not match the pattern {schema['pattern'][:_SHOWN]}"
        if isinstance(value, dict) and "required" in schema:
            required = schema["required"]
            self._steps.spend(len(required) // _PER_STEP)
            missing = [each for each in required if each not in value]
            if missing:
                more = ["..."] if len(missing) > _LISTED else []
                return f"lacks {', '.join([*(each[:_SHOWN] for each in missing[:_LISTED]), *more])}"
        if isinstance(value, list) and schema.get("uniqueItems") and len(set(map(self._key, value))) < len(value):
            return "has an item twice"
        return None

    def _number(self, schema: Mapping[str, Any], value: float) -> str | None:
        if "minimum" in schema and value < schema["minimum"]:
            return f"is less than {_shown(schema['minimum'])}"
        if "maximum" in schema and value > schema["maximum"]:
            return f"is greater than {_shown(schema['maximum'])}"
        if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
            return f"is not greater than {_shown(schema['exclusiveMinimum'])}"
        if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
            return f"is not less than {_shown(schema['exclusiveMaximum'])}"
        if "multipleOf" in schema and self._remainder(value, schema["multipleOf"]):
            return f"is not a multiple of {_shown(schema['multipleOf'])}"
        return None

    def _remainder(self, value: float, of: float) -> int | Fraction:
        bits = sum(each.bit_length() for each in (value, of) if isinstance(each, int))
        if isinstance(value, int) and isinstance(of, int):
            self._steps.spend(1 + bits // 64)
            return value % of
        # Computed in decimal: 0.3 is a multiple of 0.1. Common factors of long numbers take long to find.
        self._steps.spend(30 + bits // 8)
        one, other = (Fraction(each if isinstance(each, int) else str(each)) for each in (value, of))
        return one % other


def _shown(number: float) -> str:
    """A number for people. Writing a long one takes long, and a violation may be one of many that nobody reads."""
    is_long = isinstance(number, int) and number.bit_length() > _MOST_BITS
    return "a number of very many digits" if is_long else str(number)


def _is_a(value: Any, kind: str) -> bool:
    match kind:
        case "integer":
            return _is_number(value) and _is_whole(value)
        case "number":
            return _is_number(value)
        case "null":
            return value is None
        case _:
            named: type = {"array": list, "boolean": bool, "object": dict, "string": str}[kind]
            return isinstance(value, named)
