"""The shape of each answer, as the hub's own description of its APIs (``/openapi.json``) has it: its status is one that
its route is described to have, and its body has the described members and no others, each of its kind.

A client that holds answers to their description asks nothing more than others do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from simulation.promises.talks.talk import Talk

IS: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date-time": lambda text: bool(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", text)),
    "uri": lambda text: bool(urlsplit(text).scheme),
}
METHODS = {"get", "put", "post", "patch", "delete"}


def described(talk: Talk) -> Talk:
    """The same client, who holds each answer to the description that the hub gives of itself."""
    return talk.described_by(Shapes(talk.at("").ask("GET", "/openapi.json")).differs)


class Shapes:
    """What an OpenAPI document says of answers.

    Args:
        document: The document.
    """

    def __init__(self, document: Any) -> None:
        self._document = document
        self._routes: dict[int, list[tuple[list[str], Any]]] = {}
        for path, item in document["paths"].items():
            steps = path.split("/")
            self._routes.setdefault(len(steps), []).append((steps, item))

    def operations(self) -> Iterator[tuple[str, str, Any]]:
        """Each operation, with its method and path."""
        for path, item in self._document["paths"].items():
            yield from ((method.upper(), path, each) for method, each in item.items() if method in METHODS)

    def differs(self, method: str, path: str, status: int, body: object) -> str:
        """How an answer differs from its description; empty if it does not, or if there is none."""
        operation = self.operation(method, path.partition("?")[0])
        if operation is None:
            return ""
        answer = operation["responses"].get(str(status))
        if answer is None:
            return f"the status {status} is not described"
        content = answer.get("content", {})
        if "application/json" not in content:
            return "" if content or body in ({}, None) else "no body is described"
        return self.unlike(content["application/json"]["schema"], body)

    def operation(self, method: str, path: str) -> Any:
        """The operation of a path: that of the most literal route; None if there is none. Paths of the hub protocol
        that end in ``.json`` answer with bare lists (docs/hub-protocol.md), and are not described.
        """
        if path.startswith("/api/stores/") and path.endswith(".json"):
            return None
        steps = path.split("/")
        fitting = [
            (sum(each.startswith("{") for each in route), item)
            for route, item in self._routes.get(len(steps), ())
            if all(one == other or one.startswith("{") for one, other in zip(route, steps, strict=True))
            and method.lower() in item
        ]
        return min(fitting, key=lambda each: each[0])[1][method.lower()] if fitting else None

    def unlike(self, schema: Mapping[str, Any], value: Any, where: str = "") -> str:
        """How a value differs from a schema; empty if it does not."""
        if "$ref" in schema:
            return self.unlike(self.resolved(schema), value, where)
        for word in ("anyOf", "oneOf"):
            if word in schema and all(self.unlike(each, value, where) for each in schema[word]):
                return f"{where} is {value!r}, none of {word}"
        kinds = schema.get("type", ())
        if kinds and not any(IS[kind](value) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
            return f"{where} is {str(value)[:80]!r}, no {kinds}"
        if "enum" in schema and value not in schema["enum"]:
            return f"{where} is {value!r}, none of {schema['enum']}"
        if isinstance(value, str):
            return _unlike_text(schema, value, where)
        if isinstance(value, dict):
            return self._unlike_object(schema, value, where)
        if isinstance(value, list):
            wrong = not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
            items = (self.unlike(schema.get("items", {}), each, f"{where}[{n}]") for n, each in enumerate(value))
            return f"{where} has {len(value)} items" if wrong else next(filter(None, items), "")
        if isinstance(value, int | float) and not isinstance(value, bool):
            beside = not schema.get("minimum", value) <= value <= schema.get("maximum", value)
            return f"{where} is {value}" if beside else ""
        return ""

    def resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """A schema, or the one that it refers to."""
        found: Any = schema
        while "$ref" in found:
            steps, found = found["$ref"].removeprefix("#/").split("/"), self._document
            for each in steps:
                found = found[each]
        return found  # type: ignore[no-any-return]

    def _unlike_object(self, schema: Mapping[str, Any], value: Mapping[str, Any], where: str) -> str:
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        missing = next((each for each in schema.get("required", ()) if each not in value), None)
        if missing is not None:
            return f"{where}.{missing} is missing"
        for name, each in value.items():
            inner = properties.get(name, others)
            if inner is False:
                return f"{where}.{name} is not described"
            if inner is not True and (difference := self.unlike(inner, each, f"{where}.{name}")):
                return difference
        return ""


def _unlike_text(schema: Mapping[str, Any], value: str, where: str) -> str:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        return f"{where} has {len(value)} characters"
    if "pattern" in schema and not _pattern(schema["pattern"]).search(value):
        return f"{where} is {value!r}, not {schema['pattern']}"
    if not FORMATS.get(schema.get("format", ""), bool)(value) and "format" in schema:
        return f"{where} is {value!r}, no {schema['format']}"
    return ""


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


__all__ = ["IS", "Shapes", "described"]
