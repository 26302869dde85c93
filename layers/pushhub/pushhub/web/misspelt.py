"""Names of settings that are probably misspelt, or stand a level too high. All protocols ignore members that they do
not know, as clients send back what they were shown and must not break; but a setting with a letter too few would then
be lost without a word.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from pushhub.base import json_text

if TYPE_CHECKING:
    from pushhub.web.description import ApiDescription, Schema

MAX_EXAMINED_BYTES: Final = 65_536
"""Bytes of a request that is looked at."""

MOST_WARNINGS: Final = 5
"""A body that is full of unknown names gets no more than this."""

MOST_COMPARED: Final = 50
"""Unknown names that are compared with all known ones: a body can hold thousands."""

NEAR: Final = 0.75
"""How alike two names must be, 0 to 1 (:class:`difflib.SequenceMatcher`): a letter or two apart, no less."""

_DEEPEST: Final = 6
"""How deep settings lie in each other at most."""

_NAME = re.compile("[A-Za-z0-9_.-]{1,64}")
_REFERENCE: Final = "#/components/schemas/"


class Misspelt:
    """Looks for such names in requests to one API.

    Args:
        described: Gives the API's description, which is made only when it is needed.
    """

    def __init__(self, described: Callable[[], ApiDescription]) -> None:
        self._described = described

    def __call__(self, route: str, content: bytes) -> list[str]:
        """A sentence for each member of a request's body that nobody reads, and whose name is nearly that of one that
        is read and was not given.

        Args:
            route: The route's name.
            content: The body; what is no JSON, or larger than settings are, has none.
        """
        if len(content) > MAX_EXAMINED_BYTES:
            return []
        description = self._described()
        schema = description.routes[route].request
        try:
            body = json_text.read(content, last_wins=True)
        except json_text.NotJson:
            return []
        warnings = _Look(description.schemas).found(body, schema or {})
        return list(islice(dict.fromkeys(warnings), MOST_WARNINGS))


class _Look:
    """One look at a body, which stops after so many unknown names."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas
        self._left = MOST_COMPARED

    def found(self, body: Any, schema: Schema, depth: int = _DEEPEST) -> Iterator[str]:
        """What is told of a value with that schema and of what is inside it."""
        if depth == 0:
            return
        shapes = list(_shapes(schema, self._schemas))
        if isinstance(body, list):
            items = {"anyOf": [each["items"] for each in shapes if "items" in each]}
            for given in body:
                yield from self.found(given, items, depth - 1)
        elif isinstance(body, dict) and not any(each.get("additionalProperties") for each in shapes):
            known: dict[str, list[Schema]] = {}
            for each in shapes:
                for name, inside in each.get("properties", {}).items():
                    known.setdefault(name, []).append(inside)
            absent = [name for name in known if name not in body]
            for name, given in body.items():
                if name in known:
                    yield from self.found(given, {"anyOf": known[name]}, depth - 1)
                elif meant := self._meant(name, absent):
                    yield f"{name} is not read: did you mean {meant}?"
                elif place := self._place(name, body, known):
                    yield f"{name} is not read here: it belongs into {place}"

    def _meant(self, name: str, absent: list[str]) -> str:
        """The known name that is nearly the same; empty if there is none."""
        if not self._left or not _NAME.fullmatch(name):
            return ""
        self._left -= 1
        return "".join(difflib.get_close_matches(name, absent, n=1, cutoff=NEAR))

    def _place(self, name: str, body: Mapping[str, Any], known: Mapping[str, list[Schema]]) -> str:
        """The known object that has such a member, which was not given there; empty if there is none."""
        if not self._left or not _NAME.fullmatch(name):
            return ""
        for each, schemas in known.items():
            inside = body.get(each, {})
            if isinstance(inside, dict) and name not in inside:
                shapes = _shapes({"anyOf": schemas}, self._schemas)
                if any(name in shape.get("properties", {}) for shape in shapes):
                    return each
        return ""


def _shapes(schema: Schema, schemas: Mapping[str, Schema], depth: int = _DEEPEST) -> Iterator[Schema]:
    """The schemas of which one or all apply, without references."""
    if depth == 0:
        return
    reference = schema.get("$ref")
    if isinstance(reference, str):
        yield from _shapes(schemas.get(reference.removeprefix(_REFERENCE), {}), schemas, depth - 1)
    yield schema
    for several in ("anyOf", "oneOf", "allOf"):
        for each in schema.get(several, ()):
            yield from _shapes(each, schemas, depth - 1)
