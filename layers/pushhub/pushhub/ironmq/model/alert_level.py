"""What the alerts of a pull queue know of its size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertLevel:
    """How many of an alert's triggers a size has reached (:func:`pushhub.ironmq.queues.size_alerts.reached`).

    Attributes:
        reached: The number of triggers.
        at: Since when, epoch milliseconds.
    """

    reached: int
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertLevels:
    """The levels of a generation of a pull queue's messages.

    Attributes:
        levels: By id of the alert; one that is missing has not been looked at.
        version: Rises with each write; 0 when nothing is stored.
    """

    project: str
    pull_uid: str
    levels: Mapping[str, AlertLevel] = field(default_factory=dict)
    version: int = 0


__all__ = ["AlertLevel", "AlertLevels"]
