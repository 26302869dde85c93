"""A small in-memory cache with expiring entries."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from pushhub.base.ports import Clock

V = TypeVar("V")


class ExpiringCache(Generic[V]):
    """Keeps values for a while; when full, evicts the least recently used. Thread-safe.

    Args:
        clock: Determines when entries expire.
        ttl_ms: Lifetime of an entry in milliseconds.
        capacity: The most that all entries may weigh; one weighs 1 unless it is said.
    """

    def __init__(self, clock: Clock, *, ttl_ms: int, capacity: int) -> None:
        self._clock = clock
        self._ttl_ms = ttl_ms
        self._capacity = capacity
        self._entries: OrderedDict[Hashable, tuple[int, V, int]] = OrderedDict()
        self._weight = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> V | None:
        """The value, or None when there is none or it has expired."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            ends_at, value, _ = entry
            if ends_at <= self._clock.now():
                self._remove(key)
                return None
            self._entries.move_to_end(key)
            return value

    def put(self, key: Hashable, value: V, *, weight: int = 1) -> None:
        """Store a value; its lifetime starts now. One that weighs more than all may is not kept."""
        with self._lock:
            self._remove(key)
            self._entries[key] = (self._clock.now() + self._ttl_ms, value, weight)
            self._weight += weight
            while self._weight > self._capacity:
                self._remove(next(iter(self._entries)))

    def drop(self, key: Hashable) -> None:
        """Forget a value."""
        with self._lock:
            self._remove(key)

    def _remove(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        self._weight -= entry[2] if entry else 0
