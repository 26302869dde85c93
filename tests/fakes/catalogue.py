"""The catalogue, in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pushhub.engine.model.catalogue import COMMON, Chunk, Day, Seen, digest, is_crowded


class FakeCatalogue:
    """Implements :class:`pushhub.engine.records.ports.Catalogue`."""

    def __init__(self) -> None:
        self.chunks: dict[tuple[str, int, str], Chunk] = {}

    def add(self, chunks: Sequence[Chunk]) -> None:
        for each in chunks:
            self.chunks[each.project, each.day, each.name] = each

    def listed(self, project_id: str, day: int, before: str | None = None) -> Iterator[Seen]:
        return self._newest([s for each in self._of(project_id, day) for s in each.seen], before)

    def days(self, project_id: str) -> Sequence[Day]:
        """See the port. All chunks are at one level."""
        crowded: dict[int, bool] = {}
        for each in self.chunks.values():
            if each.project == project_id:
                crowded[each.day] = crowded.get(each.day, False) or is_crowded(each)
        return [
            Day(number=each, levels=(0,), crowded=(0,) if crowded[each] else ())
            for each in sorted(crowded, reverse=True)
        ]

    def with_value(self, project_id: str, day: Day, value: str, before: str | None = None) -> Iterator[Seen]:
        if not day.levels_of(value):
            return iter(())
        wanted = digest(project_id, value)
        found: list[Seen] = []
        for each in self._of(project_id, day.number):
            places = [place for value, place in each.postings if value == wanted]
            found += each.seen if COMMON in places else [each.seen[place] for place in places]
        return self._newest(found, before)

    def _of(self, project_id: str, day: int) -> list[Chunk]:
        return [each for key, each in self.chunks.items() if key[:2] == (project_id, day)]

    @staticmethod
    def _newest(found: list[Seen], before: str | None) -> Iterator[Seen]:
        kept = {(each.message_id, each.queue_uid): each for each in found if before is None or each.message_id < before}
        yield from (kept[key] for key in sorted(kept, reverse=True))
