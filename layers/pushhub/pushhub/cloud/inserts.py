"""New items that threads write at the same time go to DynamoDB in one call.

A call costs a millisecond of CPU, whatever it writes. Nobody waits for others: an item that comes while no write is
under way is written by itself; those that come while one is, go together when there is a thread for them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field

from pushhub.base.errors import Unavailable
from pushhub.cloud.table import WRITES_PER_CALL, Item, Table


@dataclass
class _Group:
    """Items of one call; its future says of each whether it was written."""

    items: list[Item] = field(default_factory=list)
    written: Future[list[bool]] | None = None


class Inserts:
    """Writes items that are not there yet. Safe to share between threads.

    Args:
        table: Where to.
        executor: Makes the calls for several items; the fewer threads it has, the more go together.
    """

    def __init__(self, table: Table, executor: Executor) -> None:
        self._table = table
        self._executor = executor
        self._lock = threading.Lock()
        self._under_way = 0
        self._open: _Group | None = None

    def put(self, item: Item, alone: Callable[[], None]) -> None:
        """Write an item, in the end.

        Args:
            item: The item.
            alone: Writes it by itself, and knows what it means that there is one already. Called when nobody else
                writes, and for an item that was not written with others, for whatever reason.
        """
        with self._lock:
            group, index = self._joined(item) if self._under_way else (None, 0)
            if group is None:
                self._under_way += 1
        if group is None:
            try:
                alone()
            finally:
                self._ended()
        elif group.written is None or not group.written.result()[index]:
            alone()

    def _joined(self, item: Item) -> tuple[_Group, int]:
        """The group that an item goes with, and its place there. Called under the lock."""
        group = self._open
        if group is None or len(group.items) == WRITES_PER_CALL:
            made = group = self._open = _Group()
            group.written = self._executor.submit(lambda: self._write(made))
        group.items.append(item)
        return group, len(group.items) - 1

    def _write(self, group: _Group) -> list[bool]:
        with self._lock:
            self._under_way += 1
            if self._open is group:
                self._open = None
        try:
            return self._table.insert_many(group.items)
        except Unavailable:
            # Who tries alone learns why, or succeeds.
            return [False] * len(group.items)
        finally:
            self._ended()

    def _ended(self) -> None:
        with self._lock:
            self._under_way -= 1
