"""Shared reads: when several threads want the same thing at the same time, one of them reads it for all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

V = TypeVar("V")


class SharedReads(Generic[V]):
    """Shares reads in progress, by key. Thread-safe.

    A cache alone does not prevent a rush on a store: when an entry expires, or in a new process, a hundred threads may
    miss it together.
    """

    def __init__(self) -> None:
        self._in_progress: dict[Hashable, Future[V]] = {}
        self._lock = threading.Lock()

    def read(self, key: Hashable, make: Callable[[], V]) -> tuple[V, bool]:
        """The result of the read in progress, or of one made now; and whether it was made now.

        Args:
            key: What is read.
            make: Reads it.

        Raises:
            Exception: Whatever the read raised, in every thread that waited for it.
        """
        with self._lock:
            others = self._in_progress.get(key)
            if others is None:
                own = self._in_progress[key] = Future()
        if others is not None:
            return others.result(), False
        try:
            result = make()
        except BaseException as error:
            self._end(key)
            own.set_exception(error)
            raise
        self._end(key)
        own.set_result(result)
        return result, True

    def _end(self, key: Hashable) -> None:
        with self._lock:
            del self._in_progress[key]
