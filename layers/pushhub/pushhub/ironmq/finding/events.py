"""Lists what a project accepted in the last days, newest first, whatever became of it: of every protocol, from the
catalogue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.component import Component
from pushhub.engine.model.catalogue import DAY_MS, Seen, days_until
from pushhub.ironmq.finding.lookup import QUEUE, Lookup
from pushhub.ironmq.model.finding import LOOKS_MS, MOST_READ, EventPage, EventQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pushhub.base.ports import Clock
    from pushhub.engine.model.search import Found
    from pushhub.engine.ports import Finder
    from pushhub.engine.records.ports import Catalogue


APPLICATION = "application"
"""What messages of webhooks belong to."""


class Events(Component):
    """Lists messages."""

    catalogue: Callable[[], Catalogue]
    lookup: Lookup
    finders: Callable[[str], Sequence[Finder]]
    clock: Clock

    def run(self, project_id: str, query: EventQuery) -> EventPage:
        """A page of messages. Messages appear in the catalogue within two minutes; those that are gone are left out."""
        began, read = self.clock.now(), 0
        found: list[Found] = []
        for seen in self._listed(project_id, query, began):
            enough = len(found) == query.count or read >= MOST_READ or self.clock.now() - began >= LOOKS_MS
            shown = None if enough else self.lookup.one(project_id, seen) if self._may_be(seen, query) else ()
            if shown is None:
                # This one is looked at again.
                after = f"{seen.accepted_at // DAY_MS}#{int(seen.message_id) + 1}"
                return EventPage(found=found, after=after, looked_back_to=seen.accepted_at)
            read += sum(len(each.content) for each in shown)
            found += (each for each in shown if _is(each, query))
        return EventPage(found=found, after=None, looked_back_to=None)

    def _listed(self, project_id: str, query: EventQuery, now: int) -> Iterator[Seen]:
        day_before, _, before = (query.after or "").partition("#")
        for day in days_until(now):
            too_new = query.until is not None and day * DAY_MS >= query.until
            if too_new or (day_before and day > int(day_before)):
                continue
            if query.since is not None and (day + 1) * DAY_MS <= query.since:
                return
            yield from self.catalogue().listed(project_id, day, before or None)
            before = day_before = ""

    def _may_be(self, seen: Seen, query: EventQuery) -> bool:
        """What can be said without reading a message."""
        if not (query.since or 0) <= seen.accepted_at < (query.until or seen.accepted_at + 1):
            return False
        kind = next((each.kind for each in self.finders(seen.queue)), QUEUE)
        name = seen.queue if kind == QUEUE else seen.queue.partition("/")[2]
        # An application may be meant by its name, which only the message tells.
        named = kind == APPLICATION and not query.of.startswith(("app_", "src_"))
        return query.kind in ("", kind) and (not query.of or kind == "store" or query.of == name or named)


def _is(found: Found, query: EventQuery) -> bool:
    wanted = query.subscriber.casefold()
    ids = [each.subscriber_id for each in found.receivers]
    names = [f"{each.name} {each.url}".casefold() for each in found.receivers]
    states = {each.state for each in found.receivers} | {found.state}
    return (
        query.type in ("", found.type)
        and (query.of in ("", found.of, found.name) or not found.of)
        and (not query.state or query.state in states)
        and (not wanted or query.subscriber in ids or any(wanted in each for each in names))
    )
