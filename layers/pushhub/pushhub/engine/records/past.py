"""Searches a project's past in the delivery records.

The records of all projects lie together: see docs/decisions/interfaces.md.
"""

from __future__ import annotations

import re
import secrets
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.errors import NotFound, SearchUnavailable, TryLater, Unavailable
from pushhub.engine.component import Component
from pushhub.engine.model.past import HOUR_MS, MOST_AN_HOUR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pushhub.base.ports import Clock
    from pushhub.engine.model.past import PastPage, PastQuery
    from pushhub.engine.protocol import OwnIds
    from pushhub.engine.records.ports import PastRecords, PastSearchStore

_SEARCH_ID = re.compile(r"[0-9a-f]{32}")


class PastSearches(Component):
    """Starts searches, and shows what they have found."""

    records: PastRecords  # Looks through delivery records.
    store: PastSearchStore  # Remembers whose each search is.
    # How protocols name the messages of their internal queues, by the queue's name.
    own_ids: Callable[[str], Iterable[OwnIds]]
    all_own_ids: Callable[[], Iterable[OwnIds]]  # The same of every protocol.
    clock: Clock

    def now(self) -> int:
        """Epoch milliseconds."""
        return self.clock.now()

    def start(self, query: PastQuery) -> str:
        """Start a search; its id.

        Raises:
            NotFound: This hub searches no records.
            TryLater: The project has started too many in this hour.
            SearchUnavailable: What searches cannot be reached.
        """
        self.records.check()
        now = self.clock.now()
        hour = now // HOUR_MS * HOUR_MS
        if self.store.count(query.project, hour) > MOST_AN_HOUR:
            raise TryLater(
                f"A project may search its past {MOST_AN_HOUR} times an hour",
                retry_after_s=(hour + HOUR_MS - now) // 1000 + 1,
            )
        engine_ids = (each.to_engine(query.message_id) for each in self.all_own_ids())
        wanted = replace(query, message_id=next(filter(None, engine_ids), query.message_id))
        search_id = secrets.token_hex(16)
        # Started first: a search that nobody remembers is read by nobody.
        with _searching():
            run = self.records.start(wanted, search_id)
        self.store.put(query.project, search_id, wanted, run, now)
        return search_id

    def look(self, project_id: str, search_id: str, after: str | None) -> PastPage:
        """What a search has found.

        Args:
            project_id: The project that asks.
            after: From the previous look; None to begin.

        Raises:
            NotFound: The project has started no such search, or not within the last day.
            Invalid: ``after`` is not from this search.
            SearchUnavailable: What searches cannot be reached.
        """
        known = self.store.get(project_id, search_id) if _SEARCH_ID.fullmatch(search_id) else None
        if known is None:
            raise NotFound("Search not found")
        query, run = known
        with _searching():
            return self.records.look(query, run, after)

    def shown(self, queue: str, message_id: str) -> tuple[str, str | None, str]:
        """A message as clients know it: what it belongs to (``queue``, ``application``, ``store``), the id of that in
        its protocol, and its own id there.
        """
        return as_clients_know(self.own_ids(queue), queue, message_id)


@contextmanager
def _searching() -> Iterator[None]:
    """Tell apart the failures of what searches from those of the hub's own tables."""
    try:
        yield
    except Unavailable as error:
        raise SearchUnavailable(error.operation, error.reason) from error


def as_clients_know(own_ids: Iterable[OwnIds], queue: str, message_id: str) -> tuple[str, str | None, str]:
    """See :meth:`PastSearches.shown`.

    Args:
        own_ids: How the queue's protocol names its messages; empty if as the engine does.
    """
    for each in own_ids:
        of = queue.partition("/")[2] if each.has_owner else ""
        return each.kind, of or None, each.from_engine(message_id)
    return "queue", None, message_id
