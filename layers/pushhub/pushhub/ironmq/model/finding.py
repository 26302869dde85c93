"""What is looked for in what was accepted, and what is found. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.engine.model.catalogue import Place
    from pushhub.engine.model.search import Found


LOOKS_MS = 1_200
"""After this time a request answers with what it has found, and says where the next one continues."""

PER_PAGE = 25
"""Messages that one request finds at most."""

MOST_READ = 8_000_000
"""After so many bytes of messages, too: a partition of a table gives 12 MB a second, to all who read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A message with the value that was looked for."""

    found: Found
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """What one request has found.

    Attributes:
        after: Where the next one continues; None at the end.
        read_back_to: While messages are read that have more values than the catalogue takes: how far back that went,
            epoch milliseconds; None otherwise.
    """

    hits: Sequence[Hit]
    after: str | None
    read_back_to: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuery:
    """Which messages are listed. An empty text stands for anything.

    Attributes:
        kind: What they belong to: ``queue``, ``application``, ``store`` or ``topic``.
        of: The name or id of that.
        state: Of the delivery to some receiver.
        subscriber: Id of a receiver, or a part of its name or URL.
        type: Their type, in protocols that have types.
        since: Begin, epoch milliseconds; None for all that is kept.
        until: End, epoch milliseconds, not included; None for now.
        count: How many at most, 1..100.
        after: Cursor from the previous page; None to begin.
    """

    kind: str = ""
    of: str = ""
    state: str = ""
    subscriber: str = ""
    type: str = ""
    since: int | None = None
    until: int | None = None
    count: int = 25
    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    """Messages, newest first.

    Attributes:
        after: Where the next page begins; None at the end.
        looked_back_to: How far back this page has looked, epoch milliseconds; None if to the end.
    """

    found: Sequence[Found]
    after: str | None
    looked_back_to: int | None
