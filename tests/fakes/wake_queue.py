"""A FIFO queue of wake-ups in memory: one group per subscriber, repeated wake-ups dropped."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.fakes.clock import FakeClock

from pushhub.notifications.ports import ReceivedWake, WakeUp

_DEDUPLICATION_MS = 300_000


@dataclass
class _Stored:
    wake: WakeUp
    handle: str
    visible_at: int


class FakeWakeQueue:
    """Models groups (one message of a group in flight at a time), visibility, and deduplication.

    Args:
        clock: Time.
        visibility_s: Seconds a received message is hidden unless deferred.

    Attributes:
        sent: Every wake-up sent, including dropped ones.
    """

    def __init__(self, clock: FakeClock, *, visibility_s: int = 90) -> None:
        self._clock = clock
        self._visibility_ms = visibility_s * 1000
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._stored: list[_Stored] = []
        self._seen: dict[tuple[str, int], int] = {}
        self.sent: list[WakeUp] = []

    def wake(self, wakes: Sequence[WakeUp]) -> None:
        now = self._clock.now()
        with self._lock:
            for each in wakes:
                self.sent.append(each)
                key = each.subscriber_uid, each.version
                if now - self._seen.get(key, -_DEDUPLICATION_MS) < _DEDUPLICATION_MS:
                    continue
                self._seen[key] = now
                self._stored.append(_Stored(each, f"wake-{next(self._numbers)}", now))

    def defer(self, waits: Mapping[str, int]) -> None:
        with self._lock:
            for stored in self._stored:
                if stored.handle in waits:
                    stored.visible_at = self._clock.now() + waits[stored.handle] * 1000

    def receive(self) -> ReceivedWake | None:
        """Deliver the first visible message of a group that has none in flight."""
        with self._lock:
            now = self._clock.now()
            for stored in self._heads():
                if stored.visible_at <= now:
                    stored.visible_at = now + self._visibility_ms
                    return ReceivedWake(wake=stored.wake, sqs_id=stored.handle, receipt_handle=stored.handle)
            return None

    def delete(self, handle: str) -> None:
        """Delete a message."""
        with self._lock:
            self._stored = [each for each in self._stored if each.handle != handle]

    def next_at(self) -> int | None:
        """When the next message can be received, epoch milliseconds; None when the queue is empty."""
        return min((each.visible_at for each in self._heads()), default=None)

    def _heads(self) -> list[_Stored]:
        """The first message of each group, hidden or not."""
        heads: dict[str, _Stored] = {}
        for stored in self._stored:
            heads.setdefault(stored.wake.subscriber_uid, stored)
        return list(heads.values())

    def __len__(self) -> int:
        return len(self._stored)
