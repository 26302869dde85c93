"""How records of a stream are handed to a function, as AWS does it: side by side, each partition key in its order.

Nothing here knows MiniStack; :mod:`local.emulator_sources` reads the streams and runs the functions.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import Any

Record = dict[str, Any]

RETRY_S = 1.0
"""How long after a failed run its batch comes again."""
AHEAD = 4
"""Batches that a lane may have before nothing more is read: others must not run far ahead of one that fails."""


@dataclass
class _Lane:
    """Records of some partition keys, worked on one batch after the other.

    Attributes:
        waiting: Position in the stream, record, and when it was read; oldest first.
        running: How many of those, from the first on, are with a function.
        not_before: When the next may be handed out, after a failure; from then on without those of other lanes.
    """

    waiting: deque[tuple[int, Record, float]] = field(default_factory=deque)
    running: int = 0
    not_before: float | None = None


@dataclass(frozen=True)
class Batch:
    """What a function is run for.

    Attributes:
        records: In the order of the stream.
        lanes: Where they are from; these are busy until the batch is through.
    """

    records: list[Record]
    lanes: list[_Lane]


class Lanes:
    """One mapping's way through a stream.

    A batch has records of all lanes that are not busy: while there is little to do many run side by side, and under
    load a few hold as much as they may.

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

    def ready(self, now: float) -> list[Batch]:
        """Batches to run now."""
        idle = self._idle()
        found = [self._batch([lane]) for lane in idle if lane.not_before is not None and lane.not_before <= now]
        while (together := [lane for lane in self._idle() if lane.not_before is None]) and self._due(together) <= now:
            found.append(self._batch(together))
        return found

    def through(self, batch: Batch, now: float, *, done: bool) -> None:
        """A batch was run; what was not done comes again, lane by lane."""
        for lane in batch.lanes:
            if done:
                for _ in range(lane.running):
                    lane.waiting.popleft()
            lane.not_before = None if done else now + RETRY_S
            lane.running = 0

    def next_due(self) -> float | None:
        """When the next batch is ready; None while nothing waits."""
        idle = self._idle()
        moments = [lane.not_before for lane in idle if lane.not_before is not None]
        together = [lane for lane in idle if lane.not_before is None]
        return min([*moments, self._due(together)] if together else moments, default=None)

    def _idle(self) -> list[_Lane]:
        return [lane for lane in self._lanes if lane.waiting and not lane.running]

    def _due(self, lanes: list[_Lane]) -> float:
        full = sum(len(lane.waiting) for lane in lanes) >= self._batch_size
        return min(lane.waiting[0][2] for lane in lanes) + (0.0 if full else self._window_s)

    def _batch(self, lanes: list[_Lane]) -> Batch:
        """The oldest records of these lanes."""
        oldest = sorted(
            (
                (position, record, lane)
                for lane in lanes
                for position, record, _ in islice(lane.waiting, self._batch_size)
            ),
            key=itemgetter(0),
        )[: self._batch_size]
        for _, _, lane in oldest:
            lane.running += 1
        return Batch([record for _, record, _ in oldest], [lane for lane in lanes if lane.running])
