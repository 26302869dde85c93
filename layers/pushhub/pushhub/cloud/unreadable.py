"""Items that cannot be read, because a person, a tool or an earlier fault wrote them: they are counted and named, and
stop nobody else's run. They stay where they are, for somebody to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from pushhub.base.errors import HubError, Unreadable

if TYPE_CHECKING:
    from pushhub.cloud.table import Item

Decoded = TypeVar("Decoded")
More = ParamSpec("More")

LONGEST_KEY = 200
"""How much of a key is told, in characters."""


def decodes(read: Callable[Concatenate[Item, More], Decoded]) -> Callable[Concatenate[Item, More], Decoded]:
    """Makes of a function that reads an item one that raises ``Unreadable`` for what it cannot read, whatever is wrong
    with it. Whoever works for several projects treats that like any other failure for one of them.
    """

    @wraps(read)
    def checked(item: Item, /, *more: More.args, **named: More.kwargs) -> Decoded:
        try:
            return read(item, *more, **named)
        except HubError:
            raise
        except Exception as error:
            _tell(item, error)
            raise Unreadable from error

    return checked


def readable(items: Iterable[Item], decode: Callable[[Item], Decoded]) -> Iterator[Decoded]:
    """What items say, one after the other, without those that cannot be read: for lists that many projects share.

    Args:
        decode: Reads an item; made by :func:`decodes`.

    Raises:
        HubError: Items could not be fetched.
    """
    for _, found in paired(items, decode):
        if found is not None:
            yield found


def paired(items: Iterable[Item], decode: Callable[[Item], Decoded]) -> Iterator[tuple[Item, Decoded | None]]:
    """Items with what they say; None for one that cannot be read. See :func:`readable`."""
    for item in items:
        try:
            found: Decoded | None = decode(item)
        except Unreadable:
            found = None
        yield item, found


def tell_of_object(key: str, error: Exception) -> None:
    """Count and name an object of a bucket that cannot be read."""
    _tell({"pk": {"S": key}}, error)


def _tell(item: Item, error: Exception) -> None:
    # Only an item that nobody can read makes it worth while.
    from pushhub.cloud.observability import telemetry  # noqa: PLC0415

    keys = {name: str(item.get(name, {}).get("S", ""))[:LONGEST_KEY] for name in ("pk", "sk")}
    telemetry.count("ItemsUnreadable")
    telemetry.event("item_unreadable", error=type(error).__name__, **keys)
