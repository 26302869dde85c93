"""Searches of the past: what is looked for in delivery records, and what an event of a record shows. Pure."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pushhub.base.times import iso_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DAY_MS = 86_400_000
HOUR_MS = 3_600_000

MOST_DAYS = 31
"""The longest time that one search may look through."""

MOST_FOUND = 1_000
"""A query finds so many events, the newest."""

MOST_AN_HOUR = 60
"""Searches that a project may start in an hour: each may cost as much as the limit on its bytes allows."""

MAX_WANTED = 300
"""Bytes of a name or an id that is looked for."""


class PastState(StrEnum):
    """How far a search is."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PastQuery:
    """What is looked for. An empty text stands for anything.

    Attributes:
        project: Owner of the records.
        since: Begin, epoch milliseconds.
        until: End, epoch milliseconds, not included.
        message_id: The engine's id of a message.
        queue: Name of its queue, also of an internal one.
        subscriber: Name or id of a subscriber.
        state: State of the delivery after the event.
    """

    project: str
    since: int
    until: int
    message_id: str = ""
    queue: str = ""
    subscriber: str = ""
    state: str = ""

    @property
    def days(self) -> tuple[str, str]:
        """The first and the last day of records that are read, ``2026-11-21``."""
        return iso_time(self.since)[:10], iso_time(self.until - 1)[:10]

    @property
    def hours(self) -> Sequence[str]:
        """The hours of records that are read, the newest first: ``2026-11-21T05``."""
        first, last = self.since // HOUR_MS, (self.until - 1) // HOUR_MS
        return [iso_time(each * HOUR_MS)[:13] for each in range(last, first - 1, -1)]

    def wants(self, record: Mapping[str, Any]) -> bool:
        """Whether a record is one of those looked for."""
        return (
            record.get("project") == self.project
            and iso_time(self.since) <= str(record.get("at")) < iso_time(self.until)
            and self.message_id in ("", record.get("message_id"))
            and self.queue in ("", record.get("queue"))
            and self.subscriber in ("", record.get("subscriber"), record.get("subscriber_id"))
            and self.state in ("", record.get("state"))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PastEvent:
    """An event in the life of a message, as its delivery record tells it (``docs/records.md``); None where that has no
    such field.
    """

    at: str
    kind: str
    queue: str
    message_id: str
    subscriber_id: str | None = None
    subscriber: str | None = None
    state: str | None = None
    reason: str | None = None
    attempt: int | None = None
    status_code: int | None = None
    error_class: str | None = None
    duration_ms: int | None = None


COLUMNS = tuple(each.name for each in fields(PastEvent))
"""The fields of a record that a search shows."""


def event(record: Mapping[str, Any]) -> PastEvent:
    """What a record tells."""
    return PastEvent(**{name: record.get(name) for name in COLUMNS})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastPage:
    """What a look at a search shows.

    Attributes:
        state: How far it is.
        events: What was found, without what earlier looks have shown.
        after: Where the next look continues; None for the beginning, or when there is no more.
        scanned_bytes: How much was read until now.
        hours_left: Hours of records that are still to be read; None if unknown.
        reason: Why it failed; empty otherwise.
    """

    state: PastState
    events: Sequence[PastEvent] = ()
    after: str | None = None
    scanned_bytes: int = 0
    hours_left: int | None = None
    reason: str = ""
