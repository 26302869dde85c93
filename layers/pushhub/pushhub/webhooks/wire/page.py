"""Lists on the wire: ``limit``, ``iterator`` and ``order`` of a query, and ``{"data", "iterator", "prevIterator",
"done"}``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from pushhub.base.numerals import digits
from pushhub.webhooks.model.ids import IdPrefix, is_id
from pushhub.webhooks.model.page import DEFAULT_LIMIT, MAX_LIMIT, Page, Window
from pushhub.webhooks.model.refusals import unprocessable
from pushhub.webhooks.wire.fields import NAME, bad_request, moment_in_query

DAY_MS, HOUR_MS = 86_400_000, 3_600_000
LISTED_DAYS = 90
"""How far back lists of events go."""

BACKWARDS, ONWARDS = "-", "="
"""What an iterator begins with if it leads backwards, and if it leads onwards from a name that begins like that."""

T = TypeVar("T")


def parse_window(query: Mapping[str, str], *, kind: IdPrefix | None, ascending: bool, ordered: bool = True) -> Window:
    """Which part of a list a query asks for.

    Args:
        kind: What the list's keys identify; None for names.
        ascending: The list's order unless the query says otherwise.
        ordered: Whether the query may say otherwise.

    Raises:
        Refused: A limit that is not a number, or an unknown order (400).
        Unprocessable: A limit out of bounds, or an iterator that cannot come from this list (422).
    """
    order = query.get("order", "")
    if order not in ("", "ascending", "descending"):
        raise bad_request("order must be ascending or descending")
    if order and ordered:
        ascending = order == "ascending"
    iterator = query.get("iterator", "")
    backwards = iterator.startswith(BACKWARDS)
    after = iterator[1:] if backwards or iterator.startswith(ONWARDS) else iterator
    if iterator and not _is_key(after, kind):
        raise unprocessable("The iterator does not belong to this list", "query", "iterator")
    return Window(limit=parse_limit(query), after=after or None, backwards=backwards, ascending=ascending)


def parse_times(query: Mapping[str, str], window: Window, now: int) -> Window:
    """Which part of a list of events, newest first, a query asks for, and for which time.

    A list goes back 90 days from its end. If only the beginning is given, it shows the oldest items from there on.

    Args:
        query: Query of the request: ``before``, ``after``.
    """
    before, since = moment_in_query(query, "before"), moment_in_query(query, "after")
    if since is not None and before is None and window.after is None:
        window = replace(window, backwards=True)
    end = min(each for each in (before, now + HOUR_MS) if each is not None)
    return replace(window, since=max(since or 0, end - LISTED_DAYS * DAY_MS), before=before)


def _is_key(text: str, kind: IdPrefix | None) -> bool:
    return NAME.fullmatch(text) is not None if kind is None else is_id(kind, text)


def _onwards(key: str | None) -> str | None:
    """The iterator of the page after a key; a name may itself begin like an iterator that leads backwards."""
    return ONWARDS + key if key is not None and key.startswith(BACKWARDS) else key


def parse_limit(query: Mapping[str, str]) -> int:
    """How many items a query asks for."""
    given = query.get("limit", "")
    if not given:
        return DEFAULT_LIMIT
    if not (given.isascii() and given.isdigit()):
        raise bad_request("limit must be a whole number")
    limit = digits(given, 9)
    if limit is None or not 1 <= limit <= MAX_LIMIT:
        raise unprocessable(f"The limit must be from 1 to {MAX_LIMIT}", "query", "limit")
    return limit


def page_view(page: Page[T], view: Callable[[T], Mapping[str, object]]) -> dict[str, object]:
    """A page as clients read it."""
    shown: dict[str, object] = {
        "data": [view(each) for each in page.items],
        "iterator": _onwards(page.last),
        "done": page.done,
    }
    if page.first is not None:
        shown["prevIterator"] = BACKWARDS + page.first
    return shown
