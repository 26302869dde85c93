"""Lists: which part of one is requested, and the resulting page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

DEFAULT_LIMIT = 50
MAX_LIMIT = 250

MOST_LOOKED = 1_000
"""Items read for one page, matching or not."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Which part of a list is requested.

    Attributes:
        limit: Items at most.
        after: Key after which the part begins, in the list's own order; None for the beginning.
        backwards: If set, the part ends before ``after`` instead.
        ascending: The list's own order.
        since: For lists of events: from this time on, epoch milliseconds; None for no bound.
        before: For lists of events: before this time, epoch milliseconds.
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
class KeyRange:
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
        first: Key before which the previous part ends: that of the first item, or of a later one that was examined;
            None for none.
        last: Key after which the next part begins.
        done: Nothing lies further in the direction that was read.
    """

    items: Sequence[T]
    first: str | None
    last: str | None
    done: bool


def span_of(window: Window, *, above: str | None = None, below: str | None = None) -> KeyRange:
    """The keys that a window covers.

    Args:
        window: The requested part. above: An additional lower bound.
        below: An additional upper bound.
    """
    if window.after is not None and window.reads_up:
        above = max(filter(None, (above, window.after)))
    elif window.after is not None:
        below = min(filter(None, (below, window.after)))
    return KeyRange(above=above, below=below, up=window.reads_up)


def page_of(
    found: Iterable[T], window: Window, key: Callable[[T], str], wanted: Callable[[T], bool] = lambda _: True
) -> Page[T]:
    """The page that a window shows, from items read in its span, in the span's direction. Reads one item more than it
    shows.

    If few items match, at most :data:`MOST_LOOKED` are read. Such a page may be short or empty without being the last
    one: its key is that of the item where the next page continues.

    Args:
        found: Items, in the order they are read.
        window: The requested part. key: Returns the key of an item.
        wanted: Tells whether an item is shown.
    """
    looked: list[T] = []
    chosen: list[T] = []
    for each in islice(found, MOST_LOOKED):
        looked.append(each)
        if wanted(each):
            chosen.append(each)
        if len(chosen) > window.limit:
            break
    done = len(chosen) <= window.limit and len(looked) < MOST_LOOKED
    shown = chosen[: window.limit]
    reached = shown[-1:] if done or len(chosen) > window.limit else looked[-1:]
    near, far = (key(each[0]) if each else None for each in (shown[:1], reached))
    if window.backwards:
        shown.reverse()
    first, last = (far, near) if window.backwards else (near, far)
    return Page(items=shown, first=first, last=last, done=done)


def taken(found: Iterable[T], key: Callable[[T], str], span: KeyRange) -> list[T]:
    """Those of the given items whose keys lie within a span, in its direction.

    For lists small enough to be read completely.
    """
    return sorted((each for each in found if span.has(key(each))), key=key, reverse=not span.up)
