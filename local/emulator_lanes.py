"""How records of a stream are handed to a function, as AWS does it: side by side, each partition key in its order.

Nothing here knows MiniStack; :mod:`local.emulator_sources` reads the streams and runs the functions.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

Record = dict[str, Any]

RETRY_S = 1.0
"""How long after a failed run its batch comes again."""
AHEAD = 4
"""Batches that a lane may have before nothing more is read: others must not run far ahead of one that fails."""


@dataclass
class _Lane:
    """Records that are handed out one batch after the other.

    Attributes:
        waiting: Position in the stream, record, and when it was read; oldest first.
        running: How many of those, from the first on, are with a function.
        not_before: When the next batch may be handed out, after a failure.
    """

    waiting: deque[tuple[int, Record, float]] = field(default_factory=deque)
    running: int = 0
    not_before: float = 0.0


class Lanes:
    """One mapping's way through a stream.

    Args:
        position: The first record that is not known to be worked on.
        lanes: Batches side by side (``ParallelizationFactor``).
        batch_size: Records in a batch.
        window_s: How long a batch that is not full waits for more.
    """

    def __init__(self, position: int, *, lanes: int, batch_size: int, window_s: float) -> None:
        self._lanes = [_Lane() for _ in range(lanes)]
        self._batch_size = batch_size
        self._window_s = window_s
        self.position = position
        """Where to read on."""

    @property
    def room(self) -> int:
        """How many more records may be read."""
        return max(0, AHEAD * self._batch_size - max(len(lane.waiting) for lane in self._lanes))

    @property
    def checkpoint(self) -> int:
        """All records before this position are worked on. After a restart it is gone on from there."""
        return min((lane.waiting[0][0] for lane in self._lanes if lane.waiting), default=self.position)

    def read(self, records: Sequence[Record | None], now: float) -> None:
        """Take what follows in the stream; None stands for a record that the mapping's filter leaves out."""
        for record in records:
            if record is not None:
                key = repr(sorted(record["dynamodb"]["Keys"].items())[:1])
                lane = self._lanes[zlib.crc32(key.encode()) % len(self._lanes)]
                lane.waiting.append((self.position, record, now))
            self.position += 1

    def ready(self, now: float) -> dict[int, list[Record]]:
        """Batches to run now, by their lanes. Each lane is busy until its batch is :meth:`through`."""
        found: dict[int, list[Record]] = {}
        for number, lane in enumerate(self._lanes):
            if lane.waiting and not lane.running and self._due(lane) <= now:
                lane.running = min(len(lane.waiting), self._batch_size)
                found[number] = [record for _, record, _ in islice(lane.waiting, lane.running)]
        return found

    def through(self, number: int, now: float, *, done: bool) -> None:
        """A lane's batch was run; what was not done comes again, whole."""
        lane = self._lanes[number]
        if done:
            for _ in range(lane.running):
                lane.waiting.popleft()
        else:
            lane.not_before = now + RETRY_S
        lane.running = 0

    def next_due(self) -> float | None:
        """When the next batch is ready; None while nothing waits."""
        idle = [self._due(lane) for lane in self._lanes if lane.waiting and not lane.running]
        return min(idle, default=None)

    def _due(self, lane: _Lane) -> float:
        full = len(lane.waiting) >= self._batch_size
        return max(lane.not_before, lane.waiting[0][2] + (0.0 if full else self._window_s))
