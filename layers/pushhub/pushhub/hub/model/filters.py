"""Filters of a mapping: which messages of a type a service wants (hub protocol v5, "Mapping basics").

Operators: ``eq neq`` compare as text, ``gt lt`` as floating-point numbers. ``begin contains end`` look for a literal
substring. ``present`` means not null, not "" and not "null"; ``empty`` is the opposite. ``match`` treats the value as a
regular expression.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pushhub.base.errors import HubError, Invalid
from pushhub.hub.model.paths import values_at

MAX_PATTERN = 500
"""Longest regular expression accepted, in characters."""

MAX_PATTERN = 500
"""Longest regular expression accepted, in characters."""

Matches = Callable[[str, Sequence[str]], Sequence[bool]]
"""Says for each of some texts whether a regular expression is found in it; may raise :class:`PatternTimeout`."""


class PatternTimeout(HubError):
    """A regular expression took too long, so it is unknown whether the message passes.

    Args:
        pattern: The expression.
    """

    def __init__(self, pattern: str) -> None:
        super().__init__(f"The pattern {pattern} took too long")
        self.pattern = pattern


class Operator(StrEnum):
    """How a value found in the message is compared with the filter's value."""

    EQ = "eq"
    NEQ = "neq"
    GT = "gt"
    LT = "lt"
    BEGIN = "begin"
    CONTAINS = "contains"
    END = "end"
    PRESENT = "present"
    EMPTY = "empty"
    MATCH = "match"


class MatchRule(StrEnum):
    """Whether all values found must match, or any one of them."""

    ALL = "all"
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """One condition on a message.

    Attributes:
        path: Dotted path into the message (``message``, ``payload.order.status``).
        operator: The comparison.
        value: The text to compare with; unused by ``present`` and ``empty``.
        match_rule: How several values found are combined.
    """

    path: str
    operator: Operator
    value: str = ""
    match_rule: MatchRule = MatchRule.ALL

    def accepts(self, message: dict[str, Any], matches: Matches) -> bool:
        """Whether the message matches. A path that leads nowhere matches ``neq`` and ``empty`` only.

        Args:
            message: The message as sent to services: ``message``, ``message_id``, ``payload`` and so on.
            matches: Runs the expression of ``match``, which is untrusted and must not block the hub.

        Raises:
            PatternTimeout: See there.
        """
        values = values_at(message, self.path)
        if not values:
            return self.operator in (Operator.NEQ, Operator.EMPTY)
        if self.operator is Operator.MATCH:
            fits = matches(self.value, [text_of(value) for value in values])
        else:
            fits = [self._fits(value) for value in values]
        return any(fits) if self.match_rule is MatchRule.ANY else all(fits)

    def _fits(self, value: Any) -> bool:
        text = text_of(value)
        match self.operator:
            case Operator.PRESENT | Operator.EMPTY:
                fits = _is_present(value) is (self.operator is Operator.PRESENT)
            case Operator.EQ | Operator.NEQ:
                fits = (text == self.value) is (self.operator is Operator.EQ)
            case Operator.BEGIN:
                fits = text.startswith(self.value)
            case Operator.CONTAINS:
                fits = self.value in text
            case Operator.END:
                fits = text.endswith(self.value)
            case _:
                fits = self._compares(text)
        return fits

    def _compares(self, text: str) -> bool:
        try:
            left, right = float(text), float(self.value)
        except ValueError:
            return False
        return left > right if self.operator is Operator.GT else left < right


def passes(filters: Iterable[Filter], message: dict[str, Any], matches: Matches) -> bool:
    """Whether a message passes every one of the filters.

    Raises:
        PatternTimeout: See there.
    """
    return all(each.accepts(message, matches) for each in filters)


def text_of(value: Any) -> str:
    """A JSON value as the text that filters and identifiers compare: strings as they are, null as "",
    others as JSON.
    """
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True)


def _is_present(value: Any) -> bool:
    return value is not None and value not in ("", "null")


def check_pattern(pattern: str) -> None:
    """Check that a pattern can be used in ``match``.

    Raises:
        Invalid: It cannot.
    """
    if len(pattern) > MAX_PATTERN:
        raise Invalid(f"is longer than {MAX_PATTERN} characters")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise Invalid("is not a regular expression") from error
