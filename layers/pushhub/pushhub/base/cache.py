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
        capacity: Maximum number of entries.
    """

    def __init__(self, clock: Clock, *, ttl_ms: int, capacity: int) -> None:
        self._clock = clock
        self._ttl_ms = ttl_ms
        self._capacity = capacity
        self._entries: OrderedDict[Hashable, tuple[int, V]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> V | None:
        """The value, or None when there is none or it has expired."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            ends_at, value = entry
            if ends_at <= self._clock.now():
                del self._entries[key]
                return None
            self._entries.move_to_end(key)
            return value

    def put(self, key: Hashable, value: V) -> None:
        """Store a value; its lifetime starts now."""
        with self._lock:
            self._entries[key] = (self._clock.now() + self._ttl_ms, value)
            self._entries.move_to_end(key)
            if len(self._entries) > self._capacity:
                self._entries.popitem(last=False)

    def drop(self, key: Hashable) -> None:
        """Forget a value."""
        with self._lock:
            self._entries.pop(key, None)
