"""The index of named fields, in memory."""

from __future__ import annotations

from collections.abc import Sequence

from pushhub.engine.model.search import IndexEntry

Place = tuple[str, str, str]
"""Message id, generation of the queue, field."""


class FakeSearchIndex:
    """Implements :class:`pushhub.engine.ports.SearchIndex`."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], dict[Place, IndexEntry]] = {}

    def add(self, entries: Sequence[IndexEntry]) -> None:
        for each in entries:
            self.entries.setdefault(_value(each.project, each.value), {})[_place(each)] = each

    def find(
        self, project_id: str, value: str, limit: int, after: str | None = None
    ) -> tuple[list[IndexEntry], str | None]:
        stored = self.entries.get(_value(project_id, value), {})
        places = sorted((each for each in stored if after is None or "#".join(each) < after), reverse=True)
        shown = places[:limit]
        return [stored[each] for each in shown], "#".join(shown[-1]) if len(places) > limit else None

    def remove(self, entries: Sequence[IndexEntry]) -> None:
        for each in entries:
            self.entries.get(_value(each.project, each.value), {}).pop(_place(each), None)


def _value(project_id: str, value: str) -> tuple[str, str]:
    return project_id, value.strip().casefold()


def _place(entry: IndexEntry) -> Place:
    return entry.message_id, entry.queue_uid, entry.field
