"""Lists: which part of one is asked for, and the part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

__all__ = ["DEFAULT_LIMIT", "MAX_LIMIT", "Page", "Span", "Window", "page_of", "span_of", "taken"]

DEFAULT_LIMIT = 50
MAX_LIMIT = 250

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Which part of a list is asked for.

    Attributes:
        limit: Items at most.
        after: Key behind which the part begins, in the list's own order; None for its beginning.
        backwards: Then the part is what ends before ``after`` instead.
        ascending: The list's own order.
        since: Of lists of what happened: from this moment on, epoch milliseconds; None for no bound.
        before: Of the same: before this moment.
    """

    limit: int = DEFAULT_LIMIT
    after: str | None = None
    backwards: bool = False
    ascending: bool = True
    since: int | None = None
    before: int | None = None

    @property
    def reads_up(self) -> bool:
        """Whether items are read from lower to higher keys: in the list's order, or against it on the way back."""
        return self.ascending is not self.backwards


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Keys to read: greater than ``above`` and less than ``below``, upwards or downwards.

    Attributes:
        above: None for no bound.
        below: None for no bound.
        up: From lower to higher keys.
    """

    above: str | None = None
    below: str | None = None
    up: bool = True

    @property
    def empty(self) -> bool:
        """Whether no key can lie within."""
        return self.above is not None and self.below is not None and self.above >= self.below

    def has(self, key: str) -> bool:
        """Whether a key lies within."""
        return (self.above is None or key > self.above) and (self.below is None or key < self.below)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """A part of a list.

    Attributes:
        items: In the list's own order.
        first: Key of the first item, None without any.
        last: Key of the last.
        done: Nothing lies further in the direction that was read.
    """

    items: Sequence[T]
    first: str | None
    last: str | None
    done: bool


def span_of(window: Window, *, above: str | None = None, below: str | None = None) -> Span:
    """The keys that a window is about.

    Args:
        window: What is asked for.
        above: A lower bound besides.
        below: An upper bound besides.
    """
    if window.after is not None and window.reads_up:
        above = max(filter(None, (above, window.after)))
    elif window.after is not None:
        below = min(filter(None, (below, window.after)))
    return Span(above=above, below=below, up=window.reads_up)


def page_of(found: Iterable[T], window: Window, key: Callable[[T], str]) -> Page[T]:
    """The page that a window shows of items read in its span, in the span's direction; reads one more than it shows.

    Args:
        found: Items as they are read.
        window: What is asked for.
        key: Of an item.
    """
    read = list(islice(found, window.limit + 1))
    items = read[: window.limit]
    if window.backwards:
        items.reverse()
    return Page(
        items=items,
        first=key(items[0]) if items else None,
        last=key(items[-1]) if items else None,
        done=len(read) <= window.limit,
    )


def taken(found: Iterable[T], key: Callable[[T], str], span: Span) -> list[T]:
    """Of some items those whose keys lie within a span, in its direction; for lists that are small enough to be read whole."""
    return sorted((each for each in found if span.has(key(each))), key=key, reverse=not span.up)
