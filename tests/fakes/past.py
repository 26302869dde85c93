"""Searches of the past in memory: all records, and whose each search is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pushhub.base.errors import Invalid, Unavailable
from pushhub.engine.model.past import PastPage, PastQuery, PastState, event


class FakePastRecords:
    """Implements the port; shows one event a page.

    Attributes:
        records: The records of all projects.
        running: How many looks find the search still running.
        down: Whether it cannot be reached.
    """

    def __init__(self) -> None:
        self.records: list[Mapping[str, Any]] = []
        self.running = 0
        self.down = False

    def check(self) -> None:
        pass

    def start(self, query: PastQuery, search_id: str) -> str:
        self._reached()
        return f"run-{query.project}-{search_id}"

    def look(self, query: PastQuery, run: str, after: str | None) -> PastPage:
        assert run.startswith(f"run-{query.project}-")
        self._reached()
        if self.running:
            self.running -= 1
            return PastPage(state=PastState.RUNNING, scanned_bytes=10)
        found = [event(each) for each in self.records if query.wants(each)]
        found.sort(key=lambda each: each.at, reverse=True)
        if after and not after.isdigit():
            raise Invalid("after must be the cursor of an answer")
        place = int(after or 0)
        following = str(place + 1) if place + 1 < len(found) else None
        return PastPage(
            state=PastState.DONE,
            events=found[place : place + 1],
            after=following,
            scanned_bytes=20,
            hours_left=0,
        )

    def _reached(self) -> None:
        if self.down:
            raise Unavailable("athena:StartQueryExecution", "EndpointConnectionError")


class FakePastSearches:
    """Implements the port."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[PastQuery, str]] = {}
        self._counts: dict[tuple[str, int], int] = {}

    def put(self, project_id: str, search_id: str, query: PastQuery, run: str, now: int) -> None:
        del now
        self._known[project_id, search_id] = query, run

    def get(self, project_id: str, search_id: str) -> tuple[PastQuery, str] | None:
        return self._known.get((project_id, search_id))

    def count(self, project_id: str, hour: int) -> int:
        self._counts[project_id, hour] = self._counts.get((project_id, hour), 0) + 1
        return self._counts[project_id, hour]
