"""How records of a stream are handed to a function: some batches side by side, each partition key in its order.

On AWS a stream has as many shards as its table needs, and each as many batches side by side as
``ParallelizationFactor`` says, so that nobody's records wait long for another's. Here there is one shard, and a few
processes on a machine's cores. So those of one owner (what a partition key has before its first ``#``) do not stand
behind another owner's: all that is waiting is known, batches take from each owner in turn, and one batch is kept for
owners that have none.

Nothing here knows MiniStack; :mod:`local.emulator.sources` reads the streams and runs the functions.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

Record = dict[str, Any]

RETRY_S = 1.0
"""How long after a failed run its records come again."""
LOOK_AT = 10
"""Batches of an owner's waiting records that are looked through for some whose partition key is not at work."""


@dataclass(frozen=True)
class _Entry:
    """A record: where it is in the stream, and when it was read."""

    position: int
    record: Record
    read_at: float
    key: str

    @property
    def owner(self) -> str:
        return self.key.partition("#")[0]


@dataclass(frozen=True)
class Batch:
    """What a function is run for; until it is through, its partition keys wait."""

    entries: list[_Entry]

    @property
    def owners(self) -> set[str]:
        """Whose records they are."""
        return {each.owner for each in self.entries}

    @property
    def records(self) -> list[Record]:
        """As the function gets them."""
        return [each.record for each in self.entries]

    def halves(self) -> Iterator[Batch]:
        """Two with half of its partition keys each, or just this one."""
        keys = list(dict.fromkeys(each.key for each in self.entries))
        first = set(keys[: len(keys) // 2])
        for half in (first, set(keys) - first):
            entries = [each for each in self.entries if each.key in half]
            if entries:
                yield Batch(entries)


class Lanes:
    """One mapping's way through a stream.

    Args:
        position: The first record that is not known to be worked on.
        lanes: Batches side by side (``ParallelizationFactor``).
        batch_size: Records in a batch.
        window_s: How long a batch that is not full waits for more.
    """

    def __init__(self, position: int, *, lanes: int, batch_size: int, window_s: float) -> None:
        self._count = lanes
        self._batch_size = batch_size
        self._window_s = window_s
        self._waiting: dict[str, deque[_Entry]] = {}
        self._outstanding: dict[int, None] = {}
        self._keys: set[str] = set()
        self._owners: Counter[str] = Counter()
        self._running = 0
        self._again: list[tuple[float, Batch]] = []
        self.position = position
        """Where to read on."""

    @property
    def checkpoint(self) -> int:
        """All records before this position are worked on. After a restart it is gone on from there."""
        return next(iter(self._outstanding), self.position)

    @property
    def is_idle(self) -> bool:
        """Whether no record waits."""
        return not self._waiting and not self._again

    def read(self, records: Sequence[Record | None], now: float) -> None:
        """Take what follows in the stream; None stands for a record that the mapping's filter leaves out."""
        for record in records:
            if record is not None:
                # The partition key comes first.
                key = next(iter(record["dynamodb"]["Keys"].values()))
                entry = _Entry(self.position, record, now, str(next(iter(key.values()))))
                self._waiting.setdefault(entry.owner, deque()).append(entry)
                self._outstanding[self.position] = None
            self.position += 1

    def ready(self, now: float) -> list[Batch]:
        """Batches to run now."""
        found: list[Batch] = []
        for due_at, batch in list(self._again):
            if due_at <= now and self._running < self._count:
                self._again.remove((due_at, batch))
                self._begin(found, batch)
        while self._running < self._count:
            entries = self._next(now)
            if not entries:
                break
            self._keys.update(each.key for each in entries)
            taken = {each.position for each in entries}
            for owner in {each.owner for each in entries}:
                left = deque(each for each in self._waiting.pop(owner) if each.position not in taken)
                if left:
                    self._waiting[owner] = left
            self._begin(found, Batch(entries))
        return found

    def through(self, batch: Batch, now: float, *, done: bool) -> None:
        """A batch was run; what was not done comes again, half by half: a bad record does not stop the others."""
        self._running -= 1
        self._owners.subtract(each.owner for each in batch.entries)
        if not done:
            self._again += [(now + RETRY_S, half) for half in batch.halves()]
            return
        for entry in batch.entries:
            del self._outstanding[entry.position]
            self._keys.discard(entry.key)

    def next_due(self) -> float | None:
        """When the next batch may be ready; None while nothing waits, or what waits waits for a run to end."""
        if self._running >= self._count:
            return None
        moments = [due_at for due_at, _ in self._again]
        quiet = [entries[0].read_at for owner, entries in self._waiting.items() if not self._owners[owner]]
        return min([*moments, *(read_at + self._window_s for read_at in quiet)], default=None)

    def _begin(self, found: list[Batch], batch: Batch) -> None:
        self._running += 1
        self._owners.update(each.owner for each in batch.entries)
        found.append(batch)

    def _next(self, now: float) -> list[_Entry]:
        """What is next for owners who have nothing at work, or a full batch for those who have; empty if neither."""
        owners = [owner for owner in self._waiting if not self._owners[owner]]
        if self._is_full(owners) or any(self._waiting[each][0].read_at + self._window_s <= now for each in owners):
            quiet = self._taken(owners)
            if quiet and (len(quiet) == self._batch_size or quiet[0].read_at + self._window_s <= now):
                return quiet
        if self._running and self._running + 1 < self._count and self._is_full([*self._waiting]):
            taken = self._taken([*self._waiting])
            if len(taken) == self._batch_size:
                return taken
        return []

    def _is_full(self, owners: Sequence[str]) -> bool:
        """Whether owners have a batch of records, if none of their partition keys is at work. Cheaper than to look."""
        return sum(len(self._waiting[owner]) for owner in owners) >= self._batch_size

    def _taken(self, owners: Sequence[str]) -> list[_Entry]:
        """What may go into a batch: of each owner in turn the oldest, in the order of the stream."""
        turns = deque(self._free(owner) for owner in owners)
        found: list[_Entry] = []
        while turns and len(found) < self._batch_size:
            entries = turns.popleft()
            entry = next(entries, None)
            if entry is not None:
                found.append(entry)
                turns.append(entries)
        return sorted(found, key=lambda each: each.position)

    def _free(self, owner: str) -> Iterator[_Entry]:
        """An owner's records whose partition keys are not at work."""
        entries = islice(self._waiting[owner], LOOK_AT * self._batch_size)
        return (each for each in entries if each.key not in self._keys)
