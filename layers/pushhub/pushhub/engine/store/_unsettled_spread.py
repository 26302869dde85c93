"""Over how many partitions of the index ``unsettled`` a queue's deliveries are spread (docs/decisions/retries.md).

One is enough for most queues, and each list or count of failing deliveries reads them all. When an environment sees
several deliveries of a queue fail within seconds, it leaves a mark and uses eight for them from then on; when it sees
many, another mark and 32. Readers look for the marks first. Each stays for as long as any delivery that was stored
under it, so no entry is ever outside of what is read.
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
from pushhub.engine.store._delivery_items import (
    FEW_SHARDS,
    MANY_SHARDS,
    SOME_SHARDS,
    is_unsettled,
    kept_until_s,
)
from pushhub.engine.store._keys import APART, APART_KIND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.base.ports import Clock
    from pushhub.engine.model.delivery import Delivery

SEVERAL, BURST, BURST_WITHIN_MS = 2, 20, 10_000
"""If more than so many deliveries of one queue fail within this many milliseconds, they are spread over eight
partitions, and if more than so many, over 32. With a thousand environments the one key has then had some 2,000 writes,
once, and each of the eight some 2,500. A queue that fails more slowly makes at most 200 writes a second.
"""

_STEPS = ((MANY_SHARDS, BURST), (SOME_SHARDS, SEVERAL))
"""Partitions, and how many must have failed for them."""

_AHEAD_S = 86_400
"""How much longer than asked for a mark is kept, so that it is not moved for each message."""

_REMEMBERED_MS = 3_600_000
_QUEUES = 2_000

_Queue = tuple[str, str]
_Spread = tuple[str, str, int]
"""A queue, and over how many partitions it is spread."""


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
            return FEW_SHARDS
        queue, kept_s = (delivery.project, delivery.queue_uid), kept_until_s(delivery)
        failing = self._count(queue)
        for shards, burst in _STEPS:
            if kept_s <= self._marked_s((*queue, shards), kept_s, marks=failing > burst):
                return shards
        return FEW_SHARDS

    def shards_of(self, project: str, queue_uids: Sequence[str]) -> list[int]:
        """How many partitions entries of queues of a project may be in."""
        marks = [_mark_key(project, uid, shards) for uid in dict.fromkeys(queue_uids) for shards, _ in _STEPS]
        marked = {each["pk"]["S"] for each in self._table.get_many(marks)}

        def shards_of(queue_uid: str) -> int:
            there = (each for each, _ in _STEPS if _mark_key(project, queue_uid, each)["pk"]["S"] in marked)
            return next(there, FEW_SHARDS)

        return [shards_of(each) for each in queue_uids]

    def _count(self, queue: _Queue) -> int:
        """Count a failing delivery; how many that makes."""
        window = self._clock.now() // BURST_WITHIN_MS
        with self._lock:
            if window != self._window:
                self._window = window
                self._failing.clear()
            self._failing[queue] += 1
            return self._failing[queue]

    def _marked_s(self, spread: _Spread, kept_s: int, *, marks: bool) -> int:
        """Until when a mark is known to be there; if it is missing and asked for, it is left.

        Without a mark, fewer partitions will do as well.
        """
        marked_s = self._marked_until_s.get(spread) or 0
        if marks and marked_s < kept_s:
            with suppress(Unavailable):
                marked_s, _ = self._marking.read(spread, lambda: self._mark(spread, kept_s + _AHEAD_S))
        return marked_s

    def _mark(self, spread: _Spread, until_s: int) -> int:
        """Tell readers that entries of a queue may be in so many partitions at least until a given time; returns the
        actual time.
        """
        try:
            self._table.put(
                _mark_key(*spread) | {"kind": text(APART_KIND), "ttl": number(until_s)},
                ConditionExpression="attribute_not_exists(pk) OR #ttl < :until",
                ExpressionAttributeNames={"#ttl": "ttl"},
                ExpressionAttributeValues={":until": number(until_s)},
            )
        except ConditionRefused as refused:
            until_s = int(refused.stored["ttl"]["N"])
        self._marked_until_s.put(spread, until_s)
        return until_s


def _mark_key(project: str, queue_uid: str, shards: int) -> Item:
    return {"pk": text(f"{project}#{queue_uid}#U{shards}"), "sk": text(APART)}
