"""Redaction of payloads when they are shown, and of answers before they are stored. Pure.

A path is names and indexes separated by dots; ``*`` stands for any one of them, ``**`` for any number. A member whose
name contains dots is read in both ways, as one name and as several, and is withheld if either matches.

All paths are followed together, in one pass over the document: how far each has matched is a bit in one number, so the
work for a value does not depend on the paths. The steps are counted, and what cannot be examined is withheld
(docs/decisions/security.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

from pushhub.base.errors import TooMuchWork
from pushhub.base.json_text import NotJson, read, write
from pushhub.base.steps import Steps

WITHHELD = "[redacted]"
"""Replaces a withheld value."""

TOO_COSTLY = {WITHHELD: "too costly to redact here"}
"""Shown for a payload with more values than are examined: alone, or together with the others of its list."""

MAX_PATHS = 20
MAX_PATH_LENGTH = 200
MAX_SEGMENTS = 10
MAX_DEPTH = 100
"""Documents that are nested deeper are withheld completely."""

_CONTAINERS = (dict, list)
_PER_STEP = 4
"""Items of a list that are looked at for a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """What is withheld.

    Attributes:
        payload: Paths in payloads.
        answers: Paths in the answers of endpoints.
    """

    payload: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()

    def of_payload(self, payload: Mapping[str, Any], steps: Steps | None = None) -> Mapping[str, Any]:
        """A payload as it may be shown. If there are paths and it is not a JSON object (shown as ``rawPayload``), it is
        withheld completely.

        Args:
            steps: Spent by the examination; None for a budget of its own.
        """
        if not self.payload:
            return payload
        if payload.keys() == {"rawPayload"}:
            return {"rawPayload": WITHHELD}
        try:
            shown: Mapping[str, Any] = _Walk(_rules(self.payload), steps or Steps()).value(payload)
        except TooMuchWork:
            return TOO_COSTLY
        return shown

    def covers(self, path: str) -> bool:
        """Whether the value at a path of names separated by dots is withheld, or at a name with these dots."""
        nested: Mapping[str, Any] | str = ""
        for name in reversed(path.split(".")):
            nested = {name: nested}
        return any(self.of_payload(each) != each for each in (nested, {path: ""}) if isinstance(each, dict))

    def of_answer(self, body: str) -> str:
        """An answer's body as it may be stored. If there are paths and it is neither a JSON object nor an array, it is
        withheld completely.
        """
        if not self.answers or not body:
            return body
        steps = Steps()
        try:
            answer = read(body, last_wins=True, exact=True, spend=steps.spend)
            if isinstance(answer, dict | list):
                # Serialized again even if nothing was found: if a member occurs twice, the original text would contain
                # both.
                shown = _Walk(_rules(self.answers), steps).value(answer)
                return write(shown)
        except (TooMuchWork, NotJson):
            pass
        return WITHHELD


class _Rules:
    """Paths as one machine: each part of each path, and the end of each, is a bit. A state is the set of the parts that
    the next name may match.

    Attributes:
        start: The state at the root.
        ends: The bits that say that a path has matched.
        indexes: The indexes of lists that a path names.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._names: dict[str, int] = {}
        self._stars = self._any_number = self.start = self.ends = 0
        bit = 1
        for path in paths:
            self.start |= bit
            # "**" twice in a row means the same as once.
            for part in (
                each for name, group in groupby(path.split(".")) for each in ([name] if name == "**" else group)
            ):
                if part == "**":
                    self._any_number |= bit
                elif part == "*":
                    self._stars |= bit
                else:
                    self._names[part] = self._names.get(part, 0) | bit
                bit <<= 1
            self.ends |= bit
            bit <<= 1
        self.start = self._opened(self.start)
        self.indexes = frozenset(int(name) for name in self._names if name.isascii() and name.isdigit())

    def _opened(self, state: int) -> int:
        """A state with what follows each ``**`` in it, which may stand for nothing."""
        return state | (state & self._any_number) << 1

    def after(self, state: int, name: str) -> int:
        """The state after a name or an index."""
        whole = self._next(state, self._names.get(name, 0) | self._stars)
        return whole | self._after_parts(state, name) if "." in name else whole

    def after_other(self, state: int) -> int:
        """The state after any name that no path contains."""
        return self._next(state, self._stars)

    def _next(self, state: int, matching: int) -> int:
        return self._opened((state & matching) << 1 | state & self._any_number)

    def _after_parts(self, state: int, name: str) -> int:
        """The state after the parts of a name with dots. One ``*`` may stand for several of them, as it does for the
        whole name; if a path ends before the last part, it has matched all that is below.
        """
        within = 0
        for part in name.split("."):
            within |= state & self._stars
            state = self._next(state, self._names.get(part, 0)) | self._opened(within << 1)
            if state & self.ends:
                return state
        return state


@lru_cache(maxsize=64)
def _rules(paths: tuple[str, ...]) -> _Rules:
    return _Rules(paths)


class _Walk:
    """One pass over a document."""

    def __init__(self, rules: _Rules, steps: Steps) -> None:
        self._rules = rules
        self._steps = steps
        self._known: dict[tuple[int, str], int] = {}

    def value(self, value: Any) -> Any:
        """The document, an object or an array, without what is withheld."""
        return self._within(value, self._rules.start, 0)

    def _within(self, value: Any, state: int, depth: int) -> Any:
        if not state:
            return value
        if depth > MAX_DEPTH:
            raise TooMuchWork
        if isinstance(value, list):
            return self._list(value, state, depth)
        self._steps.spend(1 + len(value))
        return {name: self._shown(each, self._after(state, name), depth) for name, each in value.items()}

    def _list(self, value: list[Any], state: int, depth: int) -> list[Any]:
        others = self._rules.after_other(state)
        if self._rules.indexes:
            self._steps.spend(1 + len(value))
            named = {index: self._after(state, str(index)) for index in self._rules.indexes if index < len(value)}
            return [self._shown(each, named.get(index, others), depth) for index, each in enumerate(value)]
        self._steps.spend(1 + len(value) // _PER_STEP)
        if others & self._rules.ends:
            return [WITHHELD] * len(value)
        return [self._within(each, others, depth + 1) if isinstance(each, _CONTAINERS) else each for each in value]

    def _shown(self, value: Any, state: int, depth: int) -> Any:
        if state & self._rules.ends:
            return WITHHELD
        return self._within(value, state, depth + 1) if isinstance(value, _CONTAINERS) else value

    def _after(self, state: int, name: str) -> int:
        known = self._known.get((state, name))
        if known is None:
            self._steps.spend(1 + name.count("."))
            known = self._known[state, name] = self._rules.after(state, name)
        return known


def is_path(text: str) -> bool:
    """Whether a text is a path; it does not end in ``**``."""
    segments = text.split(".")
    return len(text) <= MAX_PATH_LENGTH and len(segments) <= MAX_SEGMENTS and all(segments) and segments[-1] != "**"
