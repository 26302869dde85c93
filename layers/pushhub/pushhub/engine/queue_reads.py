"""Looks up the queues of deliveries, without one read for each delivery.

When an outage ends, one queue may have thousands of retries per second. A queue's settings are one item under one key,
of which DynamoDB allows 3,000 read units per second, and with a hundred subscribers a read takes several units. So the
attempts of an execution environment share reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.cache import ExpiringCache
from pushhub.base.shared_reads import SharedReads

if TYPE_CHECKING:
    from collections.abc import Callable

    from pushhub.base.ports import Clock
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.ports import QueueSource

RECENT_MS = 1_000
"""Maximum age of the settings that a retry uses, milliseconds."""

_CAPACITY = 2_000


class QueueReads:
    """Reads queues for the attempts of one environment. Thread-safe.

    Args:
        queues: Reads them.
        clock: Tells how old a read is.
    """

    def __init__(self, queues: QueueSource, clock: Clock) -> None:
        self._queues = queues
        self._recent: ExpiringCache[Queue] = ExpiringCache(clock, ttl_ms=RECENT_MS, capacity=_CAPACITY)
        self._reads: SharedReads[Queue | None] = SharedReads()

    def find(self, project_id: str, name: str, *, is_first: bool, fits: Callable[[Queue | None], bool]) -> Queue | None:
        """A cached queue that fits, otherwise the queue as it is now.

        Args:
            project_id: Its project.
            name: Its name.
            is_first: Whether any cached copy will do; otherwise it is at most :data:`RECENT_MS` old.
            fits: Whether a cached queue can be used. It may be older than the message, so a subscriber missing from it
                must not be treated as deleted.

        Raises:
            Unavailable: It could not be read.
        """
        if is_first:
            queue, is_current = self._shared(project_id, name, fresh=False)[0], False
        elif recent := self._recent.get((project_id, name)):
            queue, is_current = recent, False
        else:
            queue, is_current = self._shared(project_id, name, fresh=True)
        return queue if is_current or fits(queue) else self.current(project_id, name)

    def current(self, project_id: str, name: str) -> Queue | None:
        """A queue as it is now.

        Raises:
            Unavailable: It could not be read.
        """
        return self._read(project_id, name, fresh=True)

    def _shared(self, project_id: str, name: str, *, fresh: bool) -> tuple[Queue | None, bool]:
        """The result of the read in progress, or of one made now; and whether it was made now."""
        key = project_id, name, fresh
        return self._reads.read(key, lambda: self._read(project_id, name, fresh=fresh))

    def _read(self, project_id: str, name: str, *, fresh: bool) -> Queue | None:
        queue = self._queues.queue(project_id, name, fresh=fresh)
        if fresh and queue is not None:
            self._recent.put((project_id, name), queue)
        return queue
