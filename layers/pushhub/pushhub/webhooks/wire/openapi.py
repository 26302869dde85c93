"""Event types in an OpenAPI document: its ``webhooks`` (3.1) or ``x-webhooks``, each with the schema of what it posts.

A schema is extracted with everything it refers to and converted to JSON schema draft 7: what was under ``components``
moves to ``definitions``. Features specific to OpenAPI 3.0 (``nullable``, bounds that are flags) are rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from pushhub.base.errors import Invalid, TooMuchWork
from pushhub.base.steps import MOST_STEPS, Steps
from pushhub.webhooks.model.refusals import Unprocessable
from pushhub.webhooks.wire.fields import Fields, bad_request, parse_body
from pushhub.webhooks.wire.yaml import parse_yaml

MAX_EVENT_TYPES = 1_000
"""Maximum number of event types in one document."""

STEPS = MOST_STEPS
"""Steps for one document: references can make a small document stand for a huge one."""

_PER_STEP = 4
"""Values that need no rewriting and are copied for a step."""

MOST_REFERENCES = 10
"""Maximum number of references followed in a row."""

_SCHEMAS = "#/components/schemas/"
_BOUNDS = ("exclusiveMaximum", "exclusiveMinimum")


def parse_openapi(fields: Fields) -> Mapping[str, Any]:
    """The document of a request: ``spec``, or ``specRaw`` as text, JSON or YAML."""
    given, raw = fields.raw("spec"), fields.optional_text("specRaw", most=2_097_152)
    if raw is not None:
        try:
            given = _parsed(raw)
        except Invalid as error:
            raise fields.refuse(error.message, "specRaw") from error
    where = "specRaw" if raw is not None else "spec"
    if not isinstance(given, dict):
        raise fields.refuse("An OpenAPI document is an object", where)
    return given


def described_event_types(fields: Fields) -> list[dict[str, Any]]:
    """The event types of the document in a request, in the format of requests.

    Raises:
        Refused: Neither ``spec`` nor ``specRaw`` is given, or both are (400).
        Unprocessable: The document cannot be read.
    """
    if (fields.raw("spec") is None) is (fields.raw("specRaw") is None):
        raise bad_request("Give either spec or specRaw")
    try:
        return event_types_of(parse_openapi(fields))
    except Invalid as error:
        raise fields.refuse(error.message, "spec") from error


def _parsed(text: str) -> Any:
    """Parse a document given as text. Text that begins with a brace or bracket is read as JSON, because nobody writes
    YAML like that.
    """
    if not text.lstrip().startswith(("{", "[")):
        return parse_yaml(text)
    try:
        return parse_body(text.encode(errors="surrogatepass"))
    except Unprocessable as error:
        raise Invalid(f"Not a JSON document: {error.problems[0].text}") from error


def event_types_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The event types that a document describes, in the format of API requests.

    Raises:
        Invalid: It describes none, too many, or one that cannot be read.
    """
    webhooks = document.get("webhooks", document.get("x-webhooks"))
    if not isinstance(webhooks, dict) or not webhooks:
        raise Invalid("The document has neither webhooks nor x-webhooks")
    if len(webhooks) > MAX_EVENT_TYPES:
        raise Invalid(f"The document describes more than {MAX_EVENT_TYPES} event types")
    reader = _Reader(document)
    try:
        return [reader.event_type(name, item) for name, item in webhooks.items()]
    except TooMuchWork as error:
        raise Invalid("The document's schemas are too large together") from error


class _Reader:
    """Reads one document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._steps = Steps(STEPS)

    def event_type(self, name: str, item: Any) -> dict[str, Any]:
        """One event type; its name is checked when it is stored."""
        item = self._resolved(item, name)
        operation = self._resolved(next((item[each] for each in ("post", "put", "patch") if each in item), {}), name)
        texts = [each.get(key) for each in (operation, item) for key in ("description", "summary")]
        event_type: dict[str, Any] = {
            "name": name,
            "description": next((each for each in texts if isinstance(each, str) and each), name),
            "deprecated": operation.get("deprecated") is True,
        }
        schema = self._posted(operation, name)
        if schema is not None:
            event_type["schemas"] = {"1": schema}
        for key, extension in (("groupName", "x-svix-group-name"), ("featureFlags", "x-svix-feature-flags")):
            value = operation.get(extension, item.get(extension))
            if value is not None:
                event_type[key] = value
        return event_type

    def _posted(self, operation: Mapping[str, Any], name: str) -> Any:
        """The schema of the request body; None if there is none."""
        body = self._resolved(operation.get("requestBody", {}), name)
        content = body.get("content")
        media = next(iter(_json_media(content)), None) if isinstance(content, dict) else None
        schema = media.get("schema") if isinstance(media, dict) else None
        return None if schema is None else self._closed(schema, name)

    def _resolved(self, value: Any, name: str) -> Mapping[str, Any]:
        """A value, or what it refers to."""
        for _ in range(MOST_REFERENCES):
            if not isinstance(value, dict):
                raise Invalid(f"The description of {name} cannot be read")
            if not isinstance(value.get("$ref"), str):
                return value
            value = self._target(value["$ref"], name)
        raise Invalid(f"The references of {name} cannot be resolved")

    def _target(self, reference: str, name: str) -> Any:
        value: Any = self._document
        if not reference.startswith("#/"):
            raise Invalid(f"{name} refers to another document")
        self._steps.spend_on_text(len(reference))
        for step in reference.split("/")[1:]:
            self._steps.spend()
            value = value.get(_unescaped(step)) if isinstance(value, dict) else None
        return value

    def _closed(self, schema: Any, name: str) -> Any:
        """A schema with everything that it refers to."""
        definitions: dict[str, Any] = {}
        wanted: list[str] = []
        found = self._rewritten(schema, name, wanted)
        while wanted:
            reference = wanted.pop()
            key = _unescaped(reference.removeprefix(_SCHEMAS))
            if key in definitions:
                continue
            target = self._target(reference, name)
            if not isinstance(target, dict | bool):
                raise Invalid(f"{name} refers to a schema that does not exist")
            definitions[key] = self._rewritten(target, name, wanted)
        if not definitions:
            return found
        if not isinstance(found, dict) or definitions.keys() & found.get("definitions", {}).keys():
            raise Invalid(f"The schema of {name} has definitions with the same names as the document")
        return {**found, "definitions": {**found.get("definitions", {}), **definitions}}

    def _rewritten(self, value: Any, name: str, wanted: list[str]) -> Any:
        """A schema converted to draft 7; what it refers to is added to ``wanted``."""
        if not isinstance(value, dict | list):
            return value
        self._steps.spend(3 + len(value) // _PER_STEP)
        if isinstance(value, list):
            return [self._rewritten(each, name, wanted) if isinstance(each, dict | list) else each for each in value]
        written = {
            key: self._rewritten(each, name, wanted) if isinstance(each, dict | list) else each
            for key, each in value.items()
        }
        reference = written.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            token = reference.removeprefix(_SCHEMAS)
            if token == reference or "/" in token:
                raise Invalid(f"{name} refers to something other than components/schemas")
            wanted.append(reference)
            written["$ref"] = f"#/definitions/{token}"
        return _as_draft_7(written)


def _as_draft_7(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without the features that only OpenAPI 3.0 has."""
    if schema.get("nullable") is True and isinstance(schema.get("type"), str):
        schema = {**schema, "type": [schema["type"], "null"]}
    for bound in _BOUNDS:
        if isinstance(schema.get(bound), bool):
            inclusive = "maximum" if bound == "exclusiveMaximum" else "minimum"
            strict = {bound: schema[inclusive]} if schema[bound] and inclusive in schema else {}
            dropped = (bound, inclusive) if strict else (bound,)
            schema = {**{key: value for key, value in schema.items() if key not in dropped}, **strict}
    if "example" in schema and "examples" not in schema and ("type" in schema or "properties" in schema):
        schema = {**schema, "examples": [schema["example"]]}
    return schema


def _json_media(content: Mapping[str, Any]) -> Iterator[Any]:
    """The media types described: JSON first, then any others."""
    is_json = {each: each.partition(";")[0].strip().endswith(("/json", "+json")) for each in content}
    yield from (content[each] for each in content if is_json[each])
    yield from (content[each] for each in content if not is_json[each])


def _unescaped(step: str) -> str:
    return unquote(step).replace("~1", "/").replace("~0", "~")
