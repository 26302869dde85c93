"""Filters of a mapping: which messages of a type a service wants (hub protocol v5, "Mapping basics").

Operators: ``eq neq`` compare as text, ``gt lt`` as floating-point numbers. ``begin contains end`` look for a literal
substring. ``present`` means not null, not "" and not "null"; ``empty`` is the opposite. ``match`` treats the value as a
regular expression (:mod:`pushhub.base.patterns`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pushhub.base.json_text import write
from pushhub.base.numerals import fraction
from pushhub.base.patterns import Pattern
from pushhub.base.steps import Steps
from pushhub.hub.model.paths import values_at

PATTERN_STEPS = 100_000
"""Steps for all regular expressions of a mapping on one message: 0.1 s of CPU in the worst case."""

_VALUES_PER_STEP = 2
"""Values that are written as JSON for a step."""


class FilterOperator(StrEnum):
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
    operator: FilterOperator
    value: str = ""
    match_rule: MatchRule = MatchRule.ALL

    def accepts(self, message: dict[str, Any]) -> bool:
        """Whether the message matches; see :func:`passes`."""
        return passes((self,), message)

    def values(self, message: dict[str, Any], steps: Steps) -> list[str]:
        """The texts of the values that the path leads to."""
        return [counted_text(each, steps) for each in values_at(message, self.path, steps)]

    def combined(self, fits: Sequence[bool]) -> bool:
        """Whether the message matches, if these values do. Without any it matches ``neq`` and ``empty`` only."""
        if not fits:
            return self.operator in (FilterOperator.NEQ, FilterOperator.EMPTY)
        return any(fits) if self.match_rule is MatchRule.ANY else all(fits)

    def fits(self, text: str) -> bool:
        """Whether a value matches, by any operator but ``match``."""
        match self.operator:
            case FilterOperator.PRESENT | FilterOperator.EMPTY:
                fits = (text not in ("", "null")) is (self.operator is FilterOperator.PRESENT)
            case FilterOperator.EQ | FilterOperator.NEQ:
                fits = (text == self.value) is (self.operator is FilterOperator.EQ)
            case FilterOperator.BEGIN:
                fits = text.startswith(self.value)
            case FilterOperator.CONTAINS:
                fits = self.value in text
            case FilterOperator.END:
                fits = text.endswith(self.value)
            case _:
                fits = self._compares(text)
        return fits

    def _compares(self, text: str) -> bool:
        try:
            left, right = fraction(text), fraction(self.value)
        except ValueError:
            return False
        return left > right if self.operator is FilterOperator.GT else left < right


def passes(filters: Sequence[Filter], message: dict[str, Any], steps: Steps | None = None) -> bool:
    """Whether a message passes every one of the filters.

    Args:
        message: The message as sent to services: ``message``, ``message_id``, ``payload`` and so on.
        steps: Spent by the comparisons; None for a budget of its own. Regular expressions have :data:`PATTERN_STEPS`
            besides, and are looked at last.

    Raises:
        TooMuchWork: The steps are used up.
        Invalid: A regular expression cannot be used.
    """
    steps = steps or Steps()
    for each in filters:
        if each.operator is FilterOperator.MATCH:
            continue
        if not each.combined([each.fits(text) for text in each.values(message, steps)]):
            return False
    patterns = [(each, each.values(message, steps)) for each in filters if each.operator is FilterOperator.MATCH]
    return all(texts for _, texts in patterns) and _all_match(patterns)


def _all_match(patterns: Sequence[tuple[Filter, Sequence[str]]]) -> bool:
    """Whether the regular expressions fit the values."""
    steps = Steps(PATTERN_STEPS)
    for each, texts in patterns:
        pattern = Pattern(each.value)
        if not each.combined([pattern.found_in(text, steps) for text in texts]):
            return False
    return True


def counted_text(value: Any, steps: Steps) -> str:
    """A value as :func:`text_of` writes it."""
    steps.spend(2)
    if isinstance(value, dict | list):
        _spend_on_values(value, steps)
    text = text_of(value)
    # How long it is, is known only now; no value is longer than its message.
    steps.spend_on_text(len(text))
    return text


def _spend_on_values(value: Any, steps: Steps) -> None:
    """Spend the steps for writing a value as JSON, before that is done."""
    inner = [value]
    while inner:
        each = inner.pop()
        steps.spend(1 + len(each) // _VALUES_PER_STEP)
        values = each.values() if isinstance(each, dict) else each
        inner += [one for one in values if isinstance(one, dict | list)]


def text_of(value: Any) -> str:
    """A JSON value as the text that filters and identifiers compare: strings as they are, null as "",
    others as JSON.
    """
    if value is None:
        return ""
    return value if isinstance(value, str) else write(value, sort_keys=True)
