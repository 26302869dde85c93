"""Redaction of payloads when they are shown, and of answers before they are stored. Pure.

A path is names and indexes separated by dots; ``*`` stands for any one of them, ``**`` for any number. There are no
regular expressions, so the cost of a rule is bounded by the size of the document. If a rule cannot be applied,
everything is withheld.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WITHHELD = "[redacted]"
"""Replaces a withheld value."""

MAX_PATHS = 20
MAX_PATH_LENGTH = 200
MAX_SEGMENTS = 10
MAX_VALUES = 100_000
"""A document with more values is withheld completely."""

_Place = tuple[Sequence[str], int]
"""A path, and how much of it has matched so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """What is withheld.

    Attributes:
        payload: Paths in payloads.
        answers: Paths in the answers of endpoints.
    """

    payload: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()

    def of_payload(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """A payload as it may be shown. If there are paths and it is not a JSON object (shown as ``rawPayload``), it is
        withheld completely.
        """
        if not self.payload:
            return dict(payload)
        if payload.keys() == {"rawPayload"}:
            return {"rawPayload": WITHHELD}
        try:
            shown: dict[str, Any] = _Walk(self.payload).value(payload)
        except (_TooMuch, RecursionError):
            return {WITHHELD: True}
        return shown

    def of_answer(self, body: str) -> str:
        """An answer's body as it may be stored. If there are paths and it is neither a JSON object nor an array, it is
        withheld completely.
        """
        if not self.answers or not body:
            return body
        try:
            answer = json.loads(body)
            if isinstance(answer, dict | list):
                # Serialized again even if nothing was found: if a member occurs twice, the original text would contain
                # both.
                return json.dumps(_Walk(self.answers).value(answer), ensure_ascii=False, separators=(",", ":"))
        except (_TooMuch, ValueError, RecursionError):
            pass
        return WITHHELD


class _TooMuch(Exception):
    """The document has more values than are examined."""


class _Walk:
    """One pass over a document.

    Args:
        paths: The paths to withhold.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._places: list[_Place] = [(path.split("."), 0) for path in paths]
        self._values = 0

    def value(self, value: Any) -> Any:
        """The document without what is withheld."""
        return self._within(value, self._places)

    def _within(self, value: Any, places: Collection[_Place]) -> Any:
        self._values += 1
        if self._values > MAX_VALUES:
            raise _TooMuch
        if not places:
            return value
        if isinstance(value, Mapping):
            return {name: self._member(name, each, places) for name, each in value.items()}
        if isinstance(value, list):
            return [self._member(str(index), each, places) for index, each in enumerate(value)]
        return value

    def _member(self, name: str, value: Any, places: Collection[_Place]) -> Any:
        following = {(id(path), at): (path, at) for place in places for path, at in _steps(place, name)}
        if any(at == len(path) for path, at in following.values()):
            return WITHHELD
        return self._within(value, following.values())


def _steps(place: _Place, name: str) -> Iterator[_Place]:
    """The places in a path after one more name; none if the name does not match."""
    path, at = place
    if path[at] == "**":
        yield path, at
        yield from _steps((path, at + 1), name)
    elif path[at] in ("*", name):
        yield path, at + 1


def is_path(text: str) -> bool:
    """Whether a text is a path; it does not end in ``**``."""
    segments = text.split(".")
    return len(text) <= MAX_PATH_LENGTH and len(segments) <= MAX_SEGMENTS and all(segments) and segments[-1] != "**"
