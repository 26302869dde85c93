"""Combines new items that threads write at the same time into one DynamoDB call.

A call costs a millisecond of CPU, whatever it writes. Nothing is delayed to build a batch: an item that arrives while
no write is in progress is written by itself; those that arrive during a write go together once a thread is free.
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
    """Items of one call; its future holds, for each item, whether it was written."""

    items: list[Item] = field(default_factory=list)
    written: Future[list[bool]] | None = None


class Inserts:
    """Inserts items that do not exist yet. Thread-safe.

    Args:
        executor: Makes the calls for several items; the fewer threads it has, the larger the batches.
    """

    def __init__(self, table: Table, executor: Executor) -> None:
        self._table = table
        self._executor = executor
        self._lock = threading.Lock()
        self._under_way = 0
        self._open: _Group | None = None

    def put(self, item: Item, alone: Callable[[], None]) -> None:
        """Write an item; returns when it is written.

        Args:
            alone: Writes the item by itself, and handles an existing one. Called when no other write is in progress,
                and for an item that a batch did not write, for whatever reason.
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
        """The group that an item joins, and its index there. Called with the lock held."""
        group = self._open
        if group is None or len(group.items) == WRITES_PER_CALL:
            begun = group = self._open = _Group()
            group.written = self._executor.submit(lambda: self._write(begun))
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
            # The single write that follows finds out why, or succeeds.
            return [False] * len(group.items)
        finally:
            self._ended()

    def _ended(self) -> None:
        with self._lock:
            self._under_way -= 1
