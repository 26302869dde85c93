"""Telemetry that remembers."""

from __future__ import annotations

from collections import Counter


class FakeTelemetry:
    """Keeps every event and count.

    Attributes:
        events: (name, fields) in order.
        counts: Sum per metric.
    """

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, object]]] = []
        self.counts: Counter[str] = Counter()

    def event(self, name: str, /, **fields: object) -> None:
        self.events.append((name, fields))

    def count(self, metric: str, value: int = 1) -> None:
        self.counts[metric] += value

    def named(self, name: str) -> list[dict[str, object]]:
        """The fields of every event of that name."""
        return [fields for each, fields in self.events if each == name]
