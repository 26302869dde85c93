"""Posts go by copies of push queues, and owners' changes wait until there are none.

A post must go by the queue as it is: a message owed to subscribers that were replaced before it was posted, or put into
a queue that was cleared or deleted before, would be accepted and lost. But a read for each post costs a fifth of what
storing it costs, and all of them come to one key. So an execution environment keeps a copy for a moment, and a change
is made in two steps. The first notes in the queue that it may not be copied; the second, once the last copy is too old
to be used, makes the change. Whatever fails in between, no post goes by a copy from before a change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pushhub.base.cache import ExpiringCache
from pushhub.engine.projects.copies import ChangeNotes

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.ports import QueueStore
    from pushhub.engine.projects.ports import QueuesAndNotes

KEPT_MS = 200
"""How long posts go by a copy, milliseconds from before it was read."""

QUIET_S = 0.3
"""How long a change waits after its note, seconds: by then no copy is used."""

UNCOPIED_MS = 60_000
"""How long a queue may not be copied after a note: changes of the next half minute need not wait again."""

CLOCKS_OFF_MS = 2_000
"""By how much the clocks of two environments may differ."""

CHANGE_MS = 30_000
"""How long a change may take: as long as API Gateway waits, after which the function that makes it is stopped."""

TRUSTED_MS = CLOCKS_OFF_MS + round(QUIET_S * 1000), UNCOPIED_MS - CLOCKS_OFF_MS - CHANGE_MS
"""Ages of a note between which nobody has a copy, nor will have one before a change that begins now is made."""

_CAPACITY = 2_000


@dataclass(frozen=True, slots=True)
class _Copy:
    queue: Queue
    read_at: int


class QueueCopies:
    """Reads the queues of posts. Thread-safe."""

    def __init__(self, config: QueueStore, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._copies: ExpiringCache[_Copy] = ExpiringCache(clock, ttl_ms=KEPT_MS, capacity=_CAPACITY)

    def queue(self, project_id: str, name: str) -> Queue | None:
        """A queue with everything that was changed before this call; None when there is none."""
        now = self._clock.now()
        copy = self._copies.get((project_id, name))
        if copy is not None and 0 <= now - copy.read_at < KEPT_MS:
            return copy.queue
        queue = self._config.queue(project_id, name, fresh=True)
        if queue is not None and queue.is_push and queue.uncopied_until <= now:
            self._copies.put((project_id, name), _Copy(queue, now))
        return queue


def uncopied_from_now(queue: Queue, now: int) -> Queue:
    """A queue made ``now`` (epoch milliseconds): nobody has a copy, so changes of it need not wait at first."""
    return replace(queue, uncopied_until=now - TRUSTED_MS[0] + UNCOPIED_MS) if queue.is_push else queue


class QuietQueues:
    """Waits until no post goes by a copy of a queue that is about to be changed, and notes the change for attempts.
    Thread-safe.
    """

    def __init__(self, config: QueuesAndNotes, clock: Clock) -> None:
        self._config = config
        self._notes = ChangeNotes(config, clock)
        self._clock = clock
        self._waited: tuple[str, int] | None = None  # the generation and note that were waited for last

    def quiet(self, queue: Queue) -> Queue:
        """A queue as stored now, of which no post has a copy. Pull queues are never copied.

        Args:
            queue: As stored.

        Raises:
            Conflict: It has changed meanwhile.
            Unavailable: The note could not be made.
        """
        if not queue.is_push:
            return queue
        self._notes.note(queue.project, queue.name)
        now = self._clock.now()
        age = now - (queue.uncopied_until - UNCOPIED_MS)
        first, last = TRUSTED_MS
        noted = -CLOCKS_OFF_MS <= age < last
        if noted and (age >= first or self._waited == (queue.uid, queue.uncopied_until)):
            return queue
        if not noted:
            queue = self._config.update_queue(replace(queue, uncopied_until=now + UNCOPIED_MS))
        self._clock.sleep(QUIET_S)
        self._waited = queue.uid, queue.uncopied_until
        return queue

    def save(self, stored: Queue, changed: Queue) -> Queue:
        """Save a change once no post goes by a copy of the queue; returns the queue as stored now.

        Args:
            stored: The queue as stored.
            changed: The queue as it is to be.

        Raises:
            Conflict: It has changed meanwhile.
        """
        quiet = self.quiet(stored)
        return self._config.update_queue(replace(changed, version=quiet.version, uncopied_until=quiet.uncopied_until))
