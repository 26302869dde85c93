"""Attempts go by copies of what owners have set, and a change is in force a second after its answer
(docs/decisions/acceptance.md).

A read of its queue for each attempt would cost more than the attempt's own write, and all reads of a queue come to one
key. So an execution environment keeps copies for half a minute. Whoever changes something first notes that, in one item
for the whole hub, and each environment that makes attempts reads these notes every half a second. For a minute after a
note, copies of what it is about are kept for as long as the notes only. The note comes first, so it makes no difference
where a change is cut off.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from pushhub.base.cache import ExpiringCache
from pushhub.base.shared_reads import SharedReads

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.base.ports import Clock
    from pushhub.engine.model.project import Project
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.ports import ProjectStore, QueueStore, SpanExports
    from pushhub.engine.projects.ports import ChangeNoteStore

SLOTS = 256
"""Queues share this many notes, by a hash of their names: the item fits into one read unit."""

NOTES_MS = 500
"""How long an environment goes by the notes that it has read, milliseconds from before the read."""

KEPT_MS = 30_000
"""How long a copy may be used while no change is noted, milliseconds from before it was read."""

NOTED_MS = 60_000
"""How long a note lasts, milliseconds. A change may take as long as API Gateway waits, 30 s; then all copies that were
made before the note must have become too old; and clocks may differ by two seconds.
"""

NOTED_AGAIN_MS = 15_000
"""After how long a further change is noted again by the environment that made the note, milliseconds."""

PROJECT = ""
"""Stands for the project itself where a queue is named."""

_CAPACITY = 5_000

V = TypeVar("V")
W = TypeVar("W")


def slot_of(project_id: str, queue: str) -> int:
    """The slot for the changes of a queue."""
    return zlib.crc32(f"{project_id}/{queue}".encode()) % SLOTS


class ChangeNotes:
    """Notes changes before they are made. Thread-safe."""

    def __init__(self, store: ChangeNoteStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._noted: ExpiringCache[int] = ExpiringCache(clock, ttl_ms=NOTED_AGAIN_MS, capacity=SLOTS)

    def note(self, project_id: str, queue: str) -> None:
        """Note that a queue, or something that its attempts go by, is about to be changed within 30 seconds.

        Args:
            queue: Its name; a protocol's internal queue stands for the settings that it is derived from.

        Raises:
            Unavailable: The change must not be made.
        """
        slot = slot_of(project_id, queue)
        if self._noted.get(slot) is None:
            until = self._clock.now() + NOTED_MS
            self._store.note_change(slot, until)
            self._noted.put(slot, until)


@dataclass(frozen=True, slots=True)
class _Notes:
    until: Mapping[int, int]
    read_at: int


class Changes:
    """The notes, as one environment has read them. Thread-safe."""

    def __init__(self, store: ChangeNoteStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._notes: _Notes | None = None
        self._reads: SharedReads[_Notes] = SharedReads()

    def noted(self, project_id: str, queue: str, since: int) -> bool:
        """Whether a change of a queue may just have been made, or may be about to be made.

        Args:
            since: Notes read before this time (epoch milliseconds) are not enough.
        """
        notes = self._notes
        if notes is None or not self._is_fresh(notes, since):
            notes, is_own = self._reads.read("notes", self._read)
            if not is_own and not self._is_fresh(notes, since):
                notes = self._read()
        return notes.until.get(slot_of(project_id, queue), 0) > self._clock.now()

    def suffice(self, since: int) -> bool:
        """Whether the notes that were read last are good for what was accepted at a time, epoch milliseconds."""
        return self._notes is not None and self._is_fresh(self._notes, since)

    def read_beside(self, read: Callable[[], tuple[W, Mapping[int, int]]]) -> W:
        """Take the notes from a read of something else.

        Args:
            read: Reads that, and the notes.
        """
        read_at = self._clock.now()
        found, until = read()
        self._notes = _Notes(until, read_at)
        return found

    def _is_fresh(self, notes: _Notes, since: int) -> bool:
        return notes.read_at > since and 0 <= self._clock.now() - notes.read_at < NOTES_MS

    def _read(self) -> _Notes:
        read_at = self._clock.now()
        notes = self._notes = _Notes(self._store.noted_changes(), read_at)
        return notes


@dataclass(frozen=True, slots=True)
class _Copy(Generic[V]):
    value: V
    read_at: int
    lasts: bool


class Copies(Generic[V]):
    """Copies of things of one kind. Threads that miss the same one together share a read. Thread-safe."""

    def __init__(self, changes: Changes, clock: Clock) -> None:
        self._changes = changes
        self._clock = clock
        self._copies: ExpiringCache[_Copy[V | None]] = ExpiringCache(clock, ttl_ms=KEPT_MS, capacity=_CAPACITY)
        self._reads: SharedReads[_Copy[V | None]] = SharedReads()

    def find(
        self, project_id: str, queue: str, read: Callable[[], V | None], *, since: int, key: Hashable = ""
    ) -> V | None:
        """What is stored, with every change that was made before the given time or half a second ago.

        None may be older: whoever would end something for it has to read for itself.

        Args:
            queue: The queue under whose name its changes are noted.
            read: Reads it.
            since: Epoch milliseconds.
            key: What it is, within the queue.
        """
        noted = self._changes.noted(project_id, queue, since)
        key = project_id, queue, key
        copy = self._copies.get(key)
        if copy is None or not self._is_good(copy, since, noted=noted):
            copy, is_own = self._reads.read(key, lambda: self._read(key, read, lasts=not noted))
            if not is_own and not self._is_good(copy, since, noted=noted):
                copy = self._read(key, read, lasts=not noted)
        return copy.value

    def _is_good(self, copy: _Copy[V | None], since: int, *, noted: bool) -> bool:
        age = self._clock.now() - copy.read_at
        if copy.lasts and not noted:
            return 0 <= age < KEPT_MS
        return copy.read_at > since and 0 <= age < NOTES_MS

    def _read(self, key: Hashable, read: Callable[[], V | None], *, lasts: bool) -> _Copy[V | None]:
        read_at = self._clock.now()
        copy = _Copy(read(), read_at, lasts)
        if copy.value is None:
            self._copies.drop(key)
        else:
            self._copies.put(key, copy)
        return copy


class CopiedProjects:
    """Implements :class:`pushhub.engine.attempts.ports.AttemptProjects`. Changes of a project are noted under the
    empty name.

    Args:
        exports: Where they export spans to.
    """

    def __init__(self, projects: ProjectStore, exports: SpanExports, changes: Changes, clock: Clock) -> None:
        self._projects = projects
        self._exports = exports
        self._copies: Copies[Project] = Copies(changes, clock)

    def is_suspended(self, project_id: str, *, since: int) -> bool:
        """See the port."""
        project = self._copies.find(
            project_id, PROJECT, lambda: self._projects.project(project_id, within_ms=0), since=since
        )
        return project is not None and project.suspended

    def exports_spans(self, project_id: str) -> bool:
        """See the port."""
        export = self._exports.span_export(project_id)
        return export is not None and export.on


class CopiedQueues:
    """Implements :class:`pushhub.engine.ports.AttemptQueues` for the queues of owners."""

    def __init__(self, config: QueueStore, changes: Changes, clock: Clock) -> None:
        self._config = config
        self._copies: Copies[Queue] = Copies(changes, clock)

    def queue(self, project_id: str, name: str, *, since: int | None = None) -> Queue | None:
        """See the port."""
        if since is None:
            return self._current(project_id, name)
        return self._copies.find(project_id, name, lambda: self._current(project_id, name), since=since)

    def _current(self, project_id: str, name: str) -> Queue | None:
        return self._config.queue(project_id, name, fresh=True)
