"""Filters on a message's payload: an endpoint that has some gets only messages that pass all of them.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pushhub.base.steps import Steps

_MISSING = object()
_MOST_DIGITS = 9
_PER_STEP = 2
"""Parts of a path that are followed, or values that are compared, for a step."""


class Operator(StrEnum):
    """How a value in the payload is compared."""

    EQUALS = "eq"
    DIFFERS = "ne"
    ONE_OF = "in"
    EXISTS = "exists"
    """The filter's value tells whether the value must exist."""
    BEGINS_WITH = "prefix"
    GREATER = "gt"
    LESS = "lt"


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadFilter:
    """A filter.

    Attributes:
        path: Where the value is, names and indexes separated by dots: ``order.items.0.sku``.
    """

    path: str
    operator: Operator
    value: Any

    def lets_through(self, payload: Mapping[str, Any], steps: Steps | None = None) -> bool:
        """Whether a payload passes. A missing value only satisfies "differs" and "does not exist".

        Args:
            steps: Spent by the comparison; None for a budget of its own.

        Raises:
            TooMuchWork: The steps are used up.
        """
        values = len(self.value) if isinstance(self.value, list) else 1
        (steps or Steps()).spend(1 + (self.path.count(".") + values) // _PER_STEP)
        found = _found(payload, self.path)
        if self.operator is Operator.EXISTS:
            return (found is not _MISSING) is self.value
        return _COMPARISONS[self.operator](found, self.value)


def lets_through(filters: Sequence[PayloadFilter], payload: Mapping[str, Any], steps: Steps | None = None) -> bool:
    """Whether a payload passes all of some filters; see :meth:`PayloadFilter.lets_through`."""
    return all(each.lets_through(payload, steps) for each in filters)


def _found(payload: Any, path: str) -> Any:
    value: Any = payload
    for name in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(name, _MISSING)
        elif isinstance(value, list) and _is_index(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return _MISSING
    return value


def _is_index(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= _MOST_DIGITS


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(one: Any, other: Any) -> bool:
    """Equality as in JSON: true is not 1."""
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


_COMPARISONS: Mapping[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQUALS: _same,
    Operator.DIFFERS: lambda found, value: not _same(found, value),
    Operator.ONE_OF: lambda found, value: any(_same(found, each) for each in value),
    Operator.BEGINS_WITH: lambda found, value: isinstance(found, str) and found.startswith(value),
    Operator.GREATER: lambda found, value: _is_number(found) and found > value,
    Operator.LESS: lambda found, value: _is_number(found) and found < value,
}
