"""Searches on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.base.errors import Invalid
from pushhub.engine.model.search import MAX_VALUE, Found
from pushhub.ironmq.wire.cursors import MAX_CURSOR
from pushhub.ironmq.wire.statuses import asked_as

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.ironmq.model.found import FoundMessage

_PARTS = 3
"""A cursor names a message's id, its queue's generation and the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """What somebody looks for.

    Attributes:
        after: Cursor from the previous answer; None to begin.
    """

    value: str
    after: str | None


def parse_search(query: Mapping[str, str]) -> SearchQuery:
    """Read a search.

    Raises:
        Invalid: No value, a value that no message can have, or no cursor.
    """
    value, after = query.get("value", "").strip(), query.get("after", "")
    if not 0 < len(value) <= MAX_VALUE:
        raise Invalid(f"value must have 1 to {MAX_VALUE} characters")
    if after and (len(after) > MAX_CURSOR or after.count("#") < _PARTS - 1):
        raise Invalid("after must be the cursor of an answer")
    return SearchQuery(value=value, after=after or None)


def render_found(found: FoundMessage | Found) -> dict[str, object]:
    """A message that was found, with the state of its deliveries."""
    if isinstance(found, Found):
        return {
            "kind": found.kind,
            "queue": None,
            "application": found.of or None,
            "message_id": found.message_id,
            "field": found.field,
            "deliveries": [{"subscriber_name": name, "state": state} for name, state in found.states],
        }
    queue = found.queue
    return {
        "kind": "queue",
        "queue": queue.name,
        "application": None,
        "message_id": found.message_id,
        "field": found.field,
        "deliveries": [
            {"subscriber_name": asked_as(queue, each.targets[each.cursor], each)[0], "state": each.state.value}
            for each in found.deliveries.values()
        ],
    }
