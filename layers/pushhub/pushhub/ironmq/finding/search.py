"""Finds messages by what is in them (docs/ironmq.md#finding-messages): by the fields that their owners have named, at
once, and by any other value from the catalogue, which has it within two minutes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.component import Component
from pushhub.engine.model.catalogue import DAY_MS, KEPT_DAYS, LEFT_OUT, Place, excerpt, place_of, sought
from pushhub.engine.model.deflated import plain
from pushhub.engine.model.search import field_values
from pushhub.ironmq.model.finding import LOOKS_MS, MOST_READ, PER_PAGE, Hit, Hits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.base.ports import Clock
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.model.search import Found
    from pushhub.engine.ports import SearchIndex, StoredMessages
    from pushhub.engine.records.ports import Catalogue
    from pushhub.ironmq.finding.lookup import Lookup

MOST_NAMED = 500
"""So many of those that have the value in a named field are not shown again."""


class Search(Component):
    """Finds messages."""

    index: Callable[[], SearchIndex]  # The index; made on first use.
    catalogue: Callable[[], Catalogue]
    messages: StoredMessages
    lookup: Lookup
    clock: Clock

    def run(self, project_id: str, value: str, after: str | None, count: int = PER_PAGE) -> Hits:
        """The messages with a value, and where the next page begins: first those that have it in a named field, then
        those that have it anywhere, each newest first; last, those that it is found in only by reading them.

        Those that were deleted, cleared or have expired are left out. Their entries stay until they expire: an entry is
        written before its message, so one without a message may be new.
        """
        hits: list[Hit] = []
        if after is None or not after.startswith(CONTINUED):
            entries, following = self.index().find(project_id, value, count, after)
            hits = [
                Hit(found=each, place=Place(field=each.field, excerpt=_around(each, value)))
                for each in self.lookup.each(entries)
            ]
            if following is not None:
                return Hits(hits=hits, after=following)
            after = f"{CONTINUED}{_STEPS[0]}##"
        return self._anywhere(project_id, value, after, hits, count)

    def _anywhere(self, project_id: str, value: str, after: str, hits: list[Hit], count: int = PER_PAGE) -> Hits:
        entries, _ = self.index().find(project_id, value, MOST_NAMED)
        named = {(each.queue_uid, each.message_id) for each in entries}
        began = self.clock.now()
        catalogue = self.catalogue()
        days = [each for each in catalogue.days(project_id) if each.number >= began // DAY_MS - KEPT_DAYS]
        step, day_before, before = after.removeprefix(CONTINUED).split("#")
        asked = read = 0
        for each_step in _STEPS[_STEPS.index(step) :]:
            key = sought(value) if each_step == _STEPS[0] else LEFT_OUT
            for day in days:
                if (day_before and day.number > int(day_before)) or not day.levels_of(key):
                    continue
                if day.number != int(day_before or day.number):
                    before = ""  # The day to continue with is gone meanwhile.
                if asked and self.clock.now() - began >= LOOKS_MS:
                    reading = (day.number + 1) * DAY_MS if each_step != _STEPS[0] else None
                    following = f"{CONTINUED}{each_step}#{day.number}#{before}"
                    return Hits(hits=hits, after=following, read_back_to=reading)
                asked += 1
                for seen in catalogue.with_value(project_id, day, key, before or None):
                    enough = len(hits) >= count or read >= MOST_READ or self.clock.now() - began >= LOOKS_MS
                    looked_at = (seen.queue_uid, seen.message_id) in named
                    shown = None if enough else () if looked_at else self.lookup.one(project_id, seen)
                    if shown is None:
                        # This one is looked at again.
                        following = f"{CONTINUED}{each_step}#{day.number}#{int(seen.message_id) + 1}"
                        reading = seen.accepted_at if each_step != _STEPS[0] else None
                        return Hits(hits=hits, after=following, read_back_to=reading)
                    for found in shown:
                        read += len(found.content)
                        if place := place_of(value, found.content):
                            hits.append(Hit(found=found, place=place))
                before = day_before = ""
            before = day_before = ""
        return Hits(hits=hits, after=None)

    def values(self, queue: Queue, deliveries: Sequence[Delivery]) -> dict[str, dict[str, str]]:
        """The values of a queue's named fields in messages, by id; large bodies are not read for this."""
        if not queue.search_fields:
            return {}
        keys = {each.key.message for each in deliveries}
        stored = self.messages.messages([*keys])
        return {
            key.message_id: field_values(queue.search_fields, plain(message.body or b""), message.headers)
            for key, message in stored.items()
        }


CONTINUED = "~"
"""Begins a cursor of the catalogue: its step, the day, and an id that is too high."""

_STEPS = ("values", "bodies")
"""Messages by the values that the catalogue has of them, and those that have more, which are read."""


def _around(found: Found, value: str) -> str:
    return excerpt(found.content.decode(errors="replace"), value.strip().casefold())
