"""Searching the notifications of a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pushhub.hub.model.notice import Notice
    from pushhub.hub.ports import Notices

PER_PAGE = 25
"""Notifications on a page."""

LOOKED_AT = 10_000
"""Notifications that one listing looks at, the newest of its period first; a shorter period shows the older ones."""

LOOKED_AT_CHARACTERS = 8_000_000
"""Of what they say: one may have 24,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeQuery:
    """A search for notifications.

    Attributes:
        level: Only notifications of that level.
        reference_type: Only those that refer to that kind of object.
        reference_token: Only those that refer to that object.
        start_at: Only those first reported at or after this time, epoch milliseconds.
        end_at: Only those first reported before this time, epoch milliseconds.
        page: From 1.
    """

    level: str | None = None
    reference_type: str | None = None
    reference_token: str | None = None
    start_at: int | None = None
    end_at: int | None = None
    page: int = 1

    def wants(self, notification: Notice) -> bool:
        """Whether a notification from the period matches."""
        extra = notification.extra
        return (
            self.level in (None, notification.level.value)
            and self.reference_type in (None, extra.get("reference_type"))
            and self.reference_token in (None, extra.get("reference_token"))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticePage:
    """One page of notifications.

    Attributes:
        page: Its number, from 1.
        pages: How many there are.
        notifications: Newest first.
    """

    page: int
    pages: int
    notifications: Sequence[Notice]


class HubNotices:
    """Finds notifications."""

    def __init__(self, log: Notices) -> None:
        self._log = log

    def page(self, project_id: str, query: NoticeQuery) -> NoticePage:
        """A page of matching notifications."""
        listed = self._log.notifications(project_id, start_at=query.start_at, end_at=query.end_at)
        found = [each for each in _looked_at(listed) if query.wants(each)]
        start = (query.page - 1) * PER_PAGE
        return NoticePage(
            page=query.page,
            pages=max(1, -(-len(found) // PER_PAGE)),
            notifications=found[start : start + PER_PAGE],
        )


def _looked_at(listed: Iterable[Notice]) -> Iterator[Notice]:
    characters = 0
    for each in islice(listed, LOOKED_AT):
        yield each
        characters += len(each.description) + len(str(each.extra))
        if characters >= LOOKED_AT_CHARACTERS:
            return
