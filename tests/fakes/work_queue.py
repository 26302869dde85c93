"""An SQS standard queue in memory, driven by a fake clock."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tests.fakes.clock import FakeClock

from pushhub.engine.model.received import Received
from pushhub.engine.model.work import WorkOrder, decode_pack, pack

_MAX_DELAY_S = 900
_MAX_HIDDEN_MS = 43_200_000
_MAX_BYTES = 1_048_576
_RETENTION_MS = 14 * 86_400_000


@dataclass
class _Stored:
    sqs_id: str
    text: str
    sent_at: int
    visible_at: int
    receive_count: int = 0
    received_at: int = 0
    handle: str = ""


class FakeWorkQueue:
    """Models delays, visibility, receive counts, retention, dead-lettering, and (on demand) duplicates.

    Orders travel as text, as they do through SQS. A stale receipt handle changes nothing.

    Args:
        clock: Time.
        name: The queue's name.
        visibility_s: Seconds a received message is hidden unless deferred.
        max_receive_count: Receives after which a message goes to ``dead`` instead; None for never.

    Attributes:
        sent: Every order sent with its delay in seconds, for assertions.
        dead: Orders that were received too often.
    """

    def __init__(
        self,
        clock: FakeClock,
        *,
        name: str = "queue",
        visibility_s: int = 1200,
        max_receive_count: int | None = None,
    ) -> None:
        self.name = name
        self._clock = clock
        self._visibility_ms = visibility_s * 1000
        self._max_receive_count = max_receive_count
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._stored: dict[str, _Stored] = {}
        self._received: dict[str, _Stored] = {}
        self.sent: list[tuple[WorkOrder, int]] = []
        self.dead: list[WorkOrder] = []

    def send(self, orders: Sequence[tuple[WorkOrder, int]]) -> None:
        texts = [(order.encode(), delay_s) for order, delay_s in orders]
        for text, delay_s in texts:
            if not 0 <= delay_s <= _MAX_DELAY_S or len(text.encode()) > _MAX_BYTES:
                raise ValueError(f"SQS refuses a delay of {delay_s} s or {len(text)} characters")
        with self._lock:
            now = self._clock.now()
            for text, delay_s in texts:
                self._add(text, sent_at=now, visible_at=now + delay_s * 1000)
            self.sent.extend(orders)

    def send_packed(self, orders: Sequence[WorkOrder], delay_s: int = 0) -> None:
        if not 0 <= delay_s <= _MAX_DELAY_S:
            raise ValueError(f"SQS refuses a delay of {delay_s} s")
        with self._lock:
            now = self._clock.now()
            for _, text in pack(orders):
                self._add(text, sent_at=now, visible_at=now + delay_s * 1000)
            self.sent.extend((order, delay_s) for order in orders)

    def defer(self, waits: Iterable[tuple[str, int]]) -> set[str]:
        """A message not in flight, or hidden for more than twelve hours in all, is refused."""
        with self._lock:
            return {handle for handle, seconds in waits if not self._defer(handle, seconds)}

    def receive(self, wait_s: int = 0, *, limit: int = 10) -> list[Received]:
        """Delivers those that have been visible longest first."""
        if not self._stored:
            return []
        with self._lock:
            now = self._clock.now()
            self._drop_old(now)
            visible = sorted((each for each in self._stored.values() if each.visible_at <= now), key=_by_visibility)
            received: list[Received] = []
            for each in visible:
                if len({each.sqs_id for each in received}) == limit:
                    break
                if self._max_receive_count is not None and each.receive_count >= self._max_receive_count:
                    self.dead.extend(decode_pack(each.text))
                    del self._stored[each.sqs_id]
                    continue
                received += self._hand_out(each, now)
            return received

    def delete(self, handles: Sequence[str]) -> None:
        """A stale or unknown handle is accepted and does nothing."""
        with self._lock:
            for stored in map(self._current, handles):
                if stored is not None:
                    del self._stored[stored.sqs_id]

    def duplicate(self, handle: str, *, after_s: float = 0) -> None:
        """Let SQS deliver a received message once more, even if it is in flight or was deleted.

        Args:
            handle: Handle of any receive that ever happened.
            after_s: Seconds from now until the copy can be received.
        """
        with self._lock:
            original = self._received[handle]
            again = self._add(
                original.text, sent_at=original.sent_at, visible_at=self._clock.now() + round(after_s * 1000)
            )
            again.receive_count = original.receive_count

    def purge(self) -> None:
        """Remove every message, in flight or not."""
        with self._lock:
            self._stored.clear()

    def next_at(self) -> int | None:
        """When the next message can be received (epoch milliseconds, may be past), or None when the queue is empty."""
        if not self._stored:
            return None
        self._drop_old(self._clock.now())
        return min((each.visible_at for each in self._stored.values()), default=None)

    def orders(self) -> list[WorkOrder]:
        """Every order in the queue: visible, delayed or in flight; for assertions."""
        return [order for each in self._stored.values() for order in decode_pack(each.text)]

    def __len__(self) -> int:
        return len(self._stored)

    def _add(self, text: str, *, sent_at: int, visible_at: int) -> _Stored:
        sqs_id = f"sqs-{next(self._numbers)}"
        stored = _Stored(sqs_id=sqs_id, text=text, sent_at=sent_at, visible_at=visible_at)
        self._stored[sqs_id] = stored
        return stored

    def _hand_out(self, stored: _Stored, now: int) -> list[Received]:
        stored.receive_count += 1
        stored.handle = f"{stored.sqs_id}/{stored.receive_count}"
        stored.received_at, stored.visible_at = now, now + self._visibility_ms
        self._received[stored.handle] = replace(stored)
        return [
            Received(
                order=order,
                sqs_id=stored.sqs_id,
                receipt_handle=stored.handle,
                received_at=now,
                receive_count=stored.receive_count,
                sent_at=stored.sent_at,
            )
            for order in decode_pack(stored.text)
        ]

    def _current(self, handle: str) -> _Stored | None:
        stored = self._stored.get(handle.partition("/")[0])
        return stored if stored is not None and stored.handle == handle else None

    def _defer(self, handle: str, seconds: int) -> bool:
        stored, now = self._current(handle), self._clock.now()
        if stored is None or stored.visible_at <= now:
            return False
        until = now + seconds * 1000
        if seconds < 0 or until - stored.received_at >= _MAX_HIDDEN_MS:
            return False
        stored.visible_at = until
        return True

    def _drop_old(self, now: int) -> None:
        for each in [each for each in self._stored.values() if each.sent_at + _RETENTION_MS <= now]:
            del self._stored[each.sqs_id]


def _by_visibility(stored: _Stored) -> tuple[int, int]:
    return stored.visible_at, int(stored.sqs_id.partition("-")[2])
