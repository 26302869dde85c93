"""Waiting requests, in memory."""

from __future__ import annotations

import itertools


class FakeWaits:
    """Counts the waiting requests of each project.

    Args:
        places: How many requests of a project may wait.
    """

    def __init__(self, places: int = 10) -> None:
        self.places = places
        self.waiting: dict[str, dict[str, int]] = {}
        self._numbers = itertools.count()

    def enter(self, project_id: str, *, now: int, until: int) -> str | None:
        waiting = self.waiting.setdefault(project_id, {})
        for place in [place for place, ends_at in waiting.items() if ends_at <= now]:
            del waiting[place]
        if len(waiting) >= self.places:
            return None
        place = str(next(self._numbers))
        waiting[place] = until
        return place

    def leave(self, project_id: str, place: str) -> None:
        self.waiting.get(project_id, {}).pop(place, None)
