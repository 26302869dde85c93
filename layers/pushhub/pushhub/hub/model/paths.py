"""Dotted paths into a message, as filters and identifiers use them (``payload.order.shipments.*.items.*.sku``)."""

from __future__ import annotations

from typing import Any

from pushhub.base.numerals import digits
from pushhub.base.steps import Steps

MAX_VALUES = 10_000
"""Values one path yields at most; a star within a star could yield very many from a large message."""


def values_at(document: Any, path: str, steps: Steps | None = None) -> list[Any]:
    """Every value a path leads to, in document order; empty when it leads nowhere.

    ``*`` walks all elements of an array (and all values of an object); a number picks one element of an array. Missing
    keys lead nowhere, a JSON null at the end is a value.

    Args:
        path: Keys separated by dots.
        steps: Spent for the values that are walked; None for a budget of its own.

    Raises:
        TooMuchWork: The steps are used up.
    """
    steps = steps or Steps()
    found = [document]
    for key in path.split("."):
        step: list[Any] = []
        steps.spend(1 + len(found))
        for value in found:
            step += _children(value, key)
            if len(step) > MAX_VALUES:
                step = step[:MAX_VALUES]
                break
        found = step
        if not found:
            break
    return found


def _children(value: Any, key: str) -> list[Any]:
    if isinstance(value, dict):
        if key in value:
            return [value[key]]
        return list(value.values()) if key == "*" else []
    if isinstance(value, list):
        if key == "*":
            return value
        index = digits(key, 9)
        if index is not None and index < len(value):
            return [value[index]]
    return []
