"""What holds for every listing: its pages together are the whole, however many are on one; a filter shows what it
chooses of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from simulation.promises.talks.talk import Talk

MOST_PAGES = 200
"""Pages after which a listing is taken for one that does not end."""

Page = tuple[Sequence[Any], Any]
"""The rows of a page, and what the next one is asked for with; None if it is the last."""


def by_pages(
    talk: Talk, about: str, expected: object, page: Callable[[int, Any], Page], *, sizes: Iterable[int] = (1, 2, 3)
) -> None:
    """A listing page by page is the whole, and no page has more than it may.

    Args:
        about: What is listed.
        expected: All of its rows, see :func:`simulation.promises.talks.talk.differs`.
        page: Asks for a page of so many rows, first with None and then with what the page before it said.
        sizes: How many rows may be on a page.
    """
    for size in sizes:
        rows: list[Any] = []
        following: Any = None
        for _ in range(MOST_PAGES):
            some, following = page(size, following)
            talk.is_so(f"a page of {size} of {about}", True, len(some) <= size)
            rows += some
            if following is None:
                break
        talk.is_so(f"the last page of {size} of {about}", None, following)
        talk.is_so(f"{about}, {size} on a page", expected, rows)


def chosen(
    talk: Talk, about: str, whole: Sequence[Any], ask: Callable[[], Sequence[Any]], by: Callable[[Any], bool]
) -> None:
    """What a filter shows is what it chooses of the whole, in the same order; and it chooses some, and not all."""
    expected = [each for each in whole if by(each)]
    talk.is_so(f"{about} chooses", True, 0 < len(expected) < len(whole))
    talk.is_so(about, expected, ask())


__all__ = ["Page", "by_pages", "chosen"]
