"""Changing what others change too: read, decide, save, and once more when somebody came in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pushhub.base.errors import Conflict, Unavailable

ROUNDS = 20
"""How often a change is made again on top of others before it is left for later."""

T = TypeVar("T")


def until_saved(change: Callable[[], T], *, doing: str) -> T:
    """Make a change until no other writer comes in between.

    Args:
        change: Reads what is stored now, changes and saves it; raises ``Conflict`` when it was not as it was read any
            more. What else it raises ends the matter.
        doing: What this is for, in words that follow "unavailable".

    Returns:
        What the change returned.

    Raises:
        Unavailable: There was no end of others' changes.
    """
    for _ in range(ROUNDS):
        try:
            return change()
        except Conflict:
            continue
    raise Unavailable(doing)


def read_change_save(
    read: Callable[[], T], change: Callable[[T], T | None], save: Callable[[T], object], *, doing: str
) -> T:
    """Read, change and save until no other writer comes in between.

    Args:
        read: What is stored now.
        change: Makes of it what it is to be, or None when it is that already; what it raises ends the matter.
        save: Writes it under the condition that it is as it was read; raises ``Conflict`` otherwise.
        doing: What this is for, in words that follow "unavailable".

    Returns:
        What was saved, or what was read when there was nothing to change.

    Raises:
        Unavailable: There was no end of others' changes.
    """

    def once() -> T:
        current = read()
        changed = change(current)
        if changed is None:
            return current
        save(changed)
        return changed

    return until_saved(once, doing=doing)
