"""Optimistic concurrency: read, decide, save, and start over when another writer came first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pushhub.base.errors import Conflict, Contended

ROUNDS = 20
"""How often a change is tried again after conflicts before it is left for later."""

T = TypeVar("T")


def until_saved(change: Callable[[], T], *, doing: str) -> T:
    """Retry a change until no other writer interferes.

    Args:
        change: Reads the stored state, changes it and saves it; raises ``Conflict`` when that state has changed since
            it was read. Any other exception is passed on.
        doing: What this is for, worded to precede "failed".

    Returns:
        What the change returned.

    Raises:
        Contended: Others kept changing it.
    """
    for _ in range(ROUNDS):
        try:
            return change()
        except Conflict:
            continue
    raise Contended(doing)


def read_change_save(
    read: Callable[[], T], change: Callable[[T], T | None], save: Callable[[T], object], *, doing: str
) -> T:
    """Read, change and save until no other writer interferes.

    Args:
        read: Reads the stored state.
        change: Returns the new state, or None when there is nothing to change; exceptions are passed on.
        save: Writes the new state on condition that the stored one is still as it was read; raises ``Conflict``
            otherwise.
        doing: What this is for, worded to precede "failed".

    Returns:
        The saved state, or the state that was read if there was nothing to change.

    Raises:
        Contended: Others kept changing it.
    """

    def once() -> T:
        current = read()
        changed = change(current)
        if changed is None:
            return current
        save(changed)
        return changed

    return until_saved(once, doing=doing)
