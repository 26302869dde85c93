"""Over how many partitions of the index ``unsettled`` a queue's deliveries are spread (docs/decisions/retries.md).

Eight are enough for most queues, and each list of failing deliveries reads them all. When an environment sees many
deliveries of a queue fail within seconds, it leaves a mark and uses 32 for them from then on. Readers look for the mark
first. It stays for as long as any delivery that was stored under it, so no entry is ever outside of what is read.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from pushhub.base.cache import ExpiringCache
from pushhub.base.errors import Unavailable
from pushhub.base.shared_reads import SharedReads
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import Item, Table, number, text
from pushhub.engine.store._delivery_items import MANY_SHARDS, UNSETTLED_SHARDS, is_unsettled, kept_until_s
from pushhub.engine.store._keys import APART, APART_KIND

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.model.delivery import Delivery

BURST, BURST_WITHIN_MS = 20, 10_000
"""If more than this many deliveries of one queue fail within this many milliseconds, they are spread further. With a
thousand environments the eight keys have then had some 2,500 writes each, once.
"""

_AHEAD_S = 86_400
"""How much longer than asked for a mark is kept, so that it is not moved for each message."""

_REMEMBERED_MS = 3_600_000
_QUEUES = 2_000

_Queue = tuple[str, str]


class UnsettledSpread:
    """The partitions that deliveries of queues are written to, and read from. Thread-safe.

    Args:
        clock: Shows how many fail within a time.
    """

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._lock = threading.Lock()
        self._window = 0
        self._failing: Counter[_Queue] = Counter()
        self._marked_until_s: ExpiringCache[int] = ExpiringCache(clock, ttl_ms=_REMEMBERED_MS, capacity=_QUEUES)
        self._marking: SharedReads[int] = SharedReads()

    def shards_for(self, delivery: Delivery) -> int:
        """How many partitions a delivery's entry is to be placed in one of."""
        if not is_unsettled(delivery):
            return UNSETTLED_SHARDS
        queue, kept_s = (delivery.project, delivery.queue_uid), kept_until_s(delivery)
        marked_s = self._marked_until_s.get(queue) or 0
        if self._bursts(queue) and marked_s < kept_s:
            # Without a mark, fewer partitions will do as well.
            with suppress(Unavailable):
                marked_s, _ = self._marking.read(queue, lambda: self._mark(queue, kept_s + _AHEAD_S))
        return MANY_SHARDS if kept_s <= marked_s else UNSETTLED_SHARDS

    def shards_of(self, project: str, queue_uid: str) -> int:
        """How many partitions entries of a queue may be in."""
        return UNSETTLED_SHARDS if self._table.get(_mark_key(project, queue_uid)) is None else MANY_SHARDS

    def _bursts(self, queue: _Queue) -> bool:
        """Count a failing delivery; whether that makes many."""
        window = self._clock.now() // BURST_WITHIN_MS
        with self._lock:
            if window != self._window:
                self._window = window
                self._failing.clear()
            self._failing[queue] += 1
            return self._failing[queue] > BURST

    def _mark(self, queue: _Queue, until_s: int) -> int:
        """Tell readers that entries of a queue may be in all partitions at least until a given time; returns the actual
        time.
        """
        try:
            self._table.put(
                _mark_key(*queue) | {"kind": text(APART_KIND), "ttl": number(until_s)},
                ConditionExpression="attribute_not_exists(pk) OR #ttl < :until",
                ExpressionAttributeNames={"#ttl": "ttl"},
                ExpressionAttributeValues={":until": number(until_s)},
            )
        except ConditionRefused as refused:
            until_s = int(refused.stored["ttl"]["N"])
        self._marked_until_s.put(queue, until_s)
        return until_s


def _mark_key(project: str, queue_uid: str) -> Item:
    return {"pk": text(f"{project}#{queue_uid}#U"), "sk": text(APART)}
