"""Searches, and lists of what was accepted, on the wire."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.base.errors import Invalid
from pushhub.base.numerals import digits
from pushhub.base.times import iso_time
from pushhub.engine.model.catalogue import excerpt
from pushhub.engine.model.search import MAX_VALUE
from pushhub.ironmq.model.finding import PER_PAGE, EventQuery
from pushhub.ironmq.wire.cursors import MAX_CURSOR
from pushhub.web.json import moment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.engine.model.search import Found
    from pushhub.ironmq.model.finding import EventPage, Hit, Hits

_INDEX_CURSOR = re.compile(r"[^~#][^#]*#[^#]*#.*", re.DOTALL)
"""A message's id, its queue's generation and the field."""

_CATALOGUE_CURSOR = re.compile(r"~(values|bodies)#([0-9]{1,6})?#([0-9]{1,20})?", re.ASCII)
"""A step, a day, and an id that is too high."""

_EVENTS_CURSOR = re.compile(r"[0-9]{1,6}#[0-9]{1,20}", re.ASCII)

KINDS = ("queue", "application", "store", "topic")

MAX_NAME = 300
"""Characters of a name, type or state that messages are selected by."""

MOST_EVENTS = 100

DEFAULT_EVENTS = 25

_MEMBERS = (("queue", "queue"), ("application", "application"), ("topic", "topic"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """What somebody looks for.

    Attributes:
        count: How many messages at most, 1..25.
        after: Cursor from the previous answer; None to begin.
    """

    value: str
    count: int
    after: str | None


def parse_search(query: Mapping[str, str]) -> SearchQuery:
    """Read a search.

    Raises:
        Invalid: No value, a value that no message can have, no number, or no cursor.
    """
    count = min(_count(query), PER_PAGE)
    value, after = query.get("value", "").strip(), query.get("after", "")
    if not 0 < len(value) <= MAX_VALUE:
        raise Invalid(f"value must have 1 to {MAX_VALUE} characters")
    if after and (
        len(after) > MAX_CURSOR or not (_INDEX_CURSOR.fullmatch(after) or _CATALOGUE_CURSOR.fullmatch(after))
    ):
        raise Invalid("after must be the cursor of an answer")
    return SearchQuery(value=value, count=count, after=after or None)


def parse_events(query: Mapping[str, str]) -> EventQuery:
    """Read which messages are to be listed.

    Raises:
        Invalid: Something that no message can have, or no cursor.
    """
    count, after = _count(query), query.get("after", "")
    if after and not _EVENTS_CURSOR.fullmatch(after):
        raise Invalid("after must be the cursor of an answer")
    kind = query.get("kind", "")
    if kind and kind not in KINDS:
        raise Invalid(f"kind must be one of {', '.join(KINDS)}")
    for name in ("of", "in_state", "subscriber", "type"):
        if len(query.get(name, "")) > MAX_NAME:
            raise Invalid(f"{name} must have at most {MAX_NAME} characters")
    return EventQuery(
        kind=kind,
        of=query.get("of", ""),
        state=query.get("in_state", ""),
        subscriber=query.get("subscriber", ""),
        type=query.get("type", ""),
        since=_moment(query, "since"),
        until=_moment(query, "until"),
        count=count,
        after=after or None,
    )


def _count(query: Mapping[str, str]) -> int:
    limit = digits(query.get("limit", str(DEFAULT_EVENTS)), 3)
    if limit is None or not 1 <= limit <= MOST_EVENTS:
        raise Invalid(f"limit must be 1 to {MOST_EVENTS}")
    return limit


def _moment(query: Mapping[str, str], name: str) -> int | None:
    return moment(query, name) if query.get(name) else None


def render_hits(hits: Hits) -> dict[str, object]:
    """What a search has found, and where it continues."""
    return {
        "found": [_hit(each) for each in hits.hits],
        "after": hits.after,
        "read_back_to": None if hits.read_back_to is None else iso_time(hits.read_back_to),
    }


def render_events(page: EventPage) -> dict[str, object]:
    """A page of messages."""
    return {
        "events": [_found(each) | {"excerpt": excerpt(each.content.decode(errors="replace"))} for each in page.found],
        "after": page.after,
        "looked_back_to": None if page.looked_back_to is None else iso_time(page.looked_back_to),
    }


def _hit(hit: Hit) -> dict[str, object]:
    return _found(hit.found) | {"field": hit.place.field, "excerpt": hit.place.excerpt}


def _found(found: Found) -> dict[str, object]:
    """A message, with the state of its deliveries."""
    return {
        "kind": found.kind,
        **{name: (found.of or None) if found.kind == kind else None for name, kind in _MEMBERS},
        "application_name": found.name or None,
        "message_id": found.message_id,
        "type": found.type or None,
        "accepted_at": iso_time(found.accepted_at),
        "state": found.shown_state,
        "deliveries": [
            {"subscriber_id": each.subscriber_id, "subscriber_name": each.name, "state": each.state}
            for each in found.receivers
        ],
    }
