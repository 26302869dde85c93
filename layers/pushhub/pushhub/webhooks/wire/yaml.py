"""The YAML of OpenAPI documents (3.1, section 4.3): the values that JSON has, written as YAML 1.2.

PyYAML reads the text; the meaning of its events is decided here: words such as ``yes`` and dates are strings, and
aliases are refused, as they can make a small document expand to a huge one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pushhub.base.errors import Invalid, TooMuchWork
from pushhub.base.json_text import MAX_DEPTH
from pushhub.base.numerals import fraction
from pushhub.base.steps import Steps

MOST_CHARACTERS = 500_000
"""Longest document accepted."""

_EVENT_STEPS = 2
"""Steps for an event of the parser, the one written in C: the layer is built for its processor."""

_HALVES = re.compile("[\ud800-\udfff]")
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE, _FALSE = frozenset({"true", "True", "TRUE"}), frozenset({"false", "False", "FALSE"})
_WHOLE = re.compile(r"[-+]?[0-9]{1,300}|0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300}")
_FRACTION = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


def parse_yaml(text: str) -> Any:
    """The value of a document.

    Raises:
        Invalid: It is not YAML, too long, nested too deeply, several documents, or has values that JSON cannot express.
    """
    import yaml  # noqa: PLC0415 (nothing else needs it)

    if len(text) > MOST_CHARACTERS:
        raise Invalid(f"YAML of more than {MOST_CHARACTERS} characters must be converted to JSON first")
    try:
        return _Document(_paid(yaml.parse(text, Loader=yaml.CLoader), Steps()), yaml).value()
    except TooMuchWork as error:
        raise Invalid("The YAML is too large here and must be converted to JSON first") from error
    except yaml.MarkedYAMLError as error:
        place = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise Invalid(f"Not YAML{place}: {error.problem}") from error
    except yaml.YAMLError as error:
        raise Invalid("Not YAML") from error


def _paid(events: Iterator[Any], steps: Steps) -> Iterator[Any]:
    """The events, each paid for."""
    for event in events:
        steps.spend(_EVENT_STEPS)
        yield event


class _Document:
    """Builds a value from events.

    Args:
        yaml: PyYAML, which only the function that needs it imports.
    """

    def __init__(self, events: Iterator[Any], yaml: Any) -> None:
        self._events = events
        self._yaml = yaml
        self._depth = 0

    def value(self) -> Any:
        """The value of the only document."""
        starts = (self._yaml.StreamStartEvent, self._yaml.DocumentStartEvent)
        event = next(self._events)
        while isinstance(event, starts):
            event = next(self._events)
        if isinstance(event, self._yaml.StreamEndEvent):
            return None
        found = self._of(event)
        # What follows are its end and the stream's end.
        if not isinstance((next(self._events), next(self._events))[1], self._yaml.StreamEndEvent):
            raise Invalid("A single YAML document is expected")
        return found

    def _of(self, event: Any) -> Any:
        if isinstance(event, self._yaml.AliasEvent):
            raise Invalid(f"Line {event.start_mark.line + 1}: YAML aliases are not allowed")
        if event.tag is not None:
            raise Invalid(f"Line {event.start_mark.line + 1}: YAML tags are not allowed")
        if isinstance(event, self._yaml.ScalarEvent):
            text = _checked(event)
            return _scalar(text) if event.implicit[0] else text
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Invalid(f"YAML is nested deeper than {MAX_DEPTH} levels")
        is_list = isinstance(event, self._yaml.SequenceStartEvent)
        found = list(self._items()) if is_list else self._members()
        self._depth -= 1
        return found

    def _items(self) -> Iterator[Any]:
        for event in self._events:
            if isinstance(event, self._yaml.SequenceEndEvent):
                return
            yield self._of(event)

    def _members(self) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for event in self._events:
            if isinstance(event, self._yaml.MappingEndEvent):
                break
            if not isinstance(event, self._yaml.ScalarEvent):
                raise Invalid(f"Line {event.start_mark.line + 1}: a key must be a string")
            key = _checked(event)
            if key in members:
                raise Invalid(f"Line {event.start_mark.line + 1}: the key {key[:100]} is given twice")
            members[key] = self._of(next(self._events))
        return members


def _checked(event: Any) -> str:
    """The text of a scalar.

    An escape can produce half a surrogate pair, which no JSON answer could contain, so that is refused.
    """
    text: str = event.value
    if _HALVES.search(text):
        raise Invalid(f"Line {event.start_mark.line + 1}: a string holds half a surrogate pair")
    return text


def _scalar(text: str) -> Any:
    """The value of a scalar without quotes: YAML's core schema, except numbers that JSON does not have."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _WHOLE.fullmatch(text):
        return int(text, 0 if text[:2] in ("0o", "0x") else 10)
    if _FRACTION.fullmatch(text):
        try:
            return fraction(text)
        except ValueError as error:
            raise Invalid(f"The number {text[:100]} is too large") from error
    return text
