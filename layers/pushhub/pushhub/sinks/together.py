"""Sends together what waits together: one call under way for each destination, and what comes meanwhile is the next.

The first of several goes at once, so that nobody waits for company that may not come. Those that come while it is under
way go in one call when it is answered. So messages of one destination leave a process one call after the other, which
keeps the order of message groups, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

PATIENCE = 0.5
"""Part of the time that an attempt has for waiting; it then goes alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one call takes.

    Attributes:
        most: Messages.
        most_bytes: Bytes of all messages.
    """

    most: int
    most_bytes: int


@dataclass(slots=True, eq=False)
class _Place(Generic[T, R]):
    """Somebody who waits to send, or is sending."""

    item: T
    size: int
    turn: threading.Event = field(default_factory=threading.Event)
    batch: list[_Place[T, R]] | None = None  # Set for who is to make the call, for these.
    result: R | None = None
    error: BaseException | None = None


class Together(Generic[T, R]):
    """Collects what is to be sent. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lanes: dict[Hashable, list[_Place[T, R]]] = {}

    def send(
        self,
        lane: Hashable,
        item: T,
        *,
        size: int,
        bounds: Bounds,
        patience_s: float,
        call: Callable[[Sequence[T]], Sequence[R]],
    ) -> R | None:
        """Send something, alone or with others of its lane.

        Args:
            lane: Where it goes.
            size: Bytes that it takes of a call.
            patience_s: How long it may wait for the calls before it.
            call: Sends several, and says what became of each; for one of the several it is called for all.

        Returns:
            What became of it; None if its patience has ended, and nothing was sent.

        Raises:
            BaseException: What ``call`` raised.
        """
        own = _Place[T, R](item, size)
        with self._lock:
            waiting = self._lanes.get(lane)
            if waiting is None:
                self._lanes[lane] = []
                own.batch = [own]
            else:
                waiting.append(own)
        if own.batch is None and not own.turn.wait(patience_s):
            with self._lock:
                if own in self._lanes.get(lane, ()):
                    self._lanes[lane].remove(own)
                    return None
            # Taken along in this very moment.
            own.turn.wait()
        if own.batch is not None:
            self._call(lane, own.batch, bounds, call)
        if own.error is not None:
            raise own.error
        return own.result

    def _call(
        self,
        lane: Hashable,
        batch: list[_Place[T, R]],
        bounds: Bounds,
        call: Callable[[Sequence[T]], Sequence[R]],
    ) -> None:
        try:
            for each, result in zip(batch, call([each.item for each in batch]), strict=True):
                each.result = result
        except BaseException as error:  # noqa: BLE001 (raised by each of them)
            for each in batch:
                each.error = error
        finally:
            self._pass_on(lane, bounds)
            for each in batch[1:]:
                each.turn.set()

    def _pass_on(self, lane: Hashable, bounds: Bounds) -> None:
        """Have the first of those who wait make the next call."""
        with self._lock:
            waiting = self._lanes[lane]
            if not waiting:
                del self._lanes[lane]
                return
            count, size = 1, waiting[0].size
            while count < min(len(waiting), bounds.most) and size + waiting[count].size <= bounds.most_bytes:
                size += waiting[count].size
                count += 1
            first = waiting[0]
            first.batch = waiting[:count]
            del waiting[:count]
            first.turn.set()
