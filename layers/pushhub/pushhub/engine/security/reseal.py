"""Seals with the first key whatever is stored sealed with another one.

Every item is written under the condition that it has not changed since it was read, so this can run beside everything
else, be interrupted, and be repeated until nothing is left.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pushhub.base.errors import Conflict, Unavailable
from pushhub.engine.component import Component

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True, slots=True)
class SealedItem:
    """An item that holds what opens something.

    Attributes:
        name: For people: its kind and id.
        sealed: Its encrypted values.
        write: Writes it anew, everything in it encrypted with the first key. Raises ``Conflict`` if it has changed
            since it was read, and ``Unavailable``.
        damaged: Whether the item cannot be read: what it holds is unknown.
    """

    name: str
    project: str
    sealed: tuple[bytes, ...]
    write: Callable[[], None] = field(repr=False)
    damaged: bool = False


def damaged_item(pk: str, sk: str) -> SealedItem:
    """An item that cannot be read, told of with those that failed: the key that seals it must not be removed."""
    return SealedItem(f"item {pk} {sk}", "", (), lambda: None, damaged=True)


class KnowsKeys(Protocol):
    """Says with which key a value was sealed."""

    def kms_key_of(self, project_id: str, sealed: bytes) -> str:
        """ARN of the key."""


@dataclass(slots=True)
class Resealed:
    """What was found and done.

    Attributes:
        items: Items that hold something.
        written: Items that were, or in a dry run would be, written anew.
        keys: How many values were found sealed with each key.
        changed: Items that changed meanwhile; run again.
        failed: Items that could not be opened or written, with the reason.
    """

    items: int = 0
    written: int = 0
    keys: Counter[str] = field(default_factory=Counter)
    changed: list[str] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)


class Reseal(Component):
    """Seals what is stored."""

    vault: KnowsKeys  # Knows which key sealed a value.
    first: str  # ARN of the key that seals from now on.

    def run(self, items: Iterable[SealedItem], *, dry: bool) -> Resealed:
        """Seal items.

        Args:
            items: All items that hold something.
            dry: Whether only to say what would be done.
        """
        done = Resealed()
        for item in items:
            done.items += 1
            if item.damaged:
                done.failed.append((item.name, "It cannot be read"))
                continue
            try:
                self._one(item, done, dry=dry)
            except Conflict:
                done.changed.append(item.name)
            except Unavailable as error:
                done.failed.append((item.name, str(error)))
        return done

    def _one(self, item: SealedItem, done: Resealed, *, dry: bool) -> None:
        keys = [self.vault.kms_key_of(item.project, each) for each in item.sealed]
        done.keys.update(keys)
        if set(keys) <= {self.first}:
            return
        if not dry:
            item.write()
        done.written += 1
