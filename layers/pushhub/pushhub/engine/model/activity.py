"""How much a project and its subscribers did, hour by hour. Pure.

Statistics for people, counted from delivery records.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pushhub.base.times import epoch_ms
from pushhub.engine.model.record import DeliveryRecord, RecordKind

if TYPE_CHECKING:
    from collections.abc import Mapping

HOUR_MS = 3_600_000

_ENDED_WELL = frozenset({RecordKind.DELIVERED, RecordKind.ACKNOWLEDGED})
_ATTEMPTED = frozenset({RecordKind.ATTEMPT, RecordKind.POLL})
_GIVEN_UP = frozenset({RecordKind.EXHAUSTED, RecordKind.EXPIRED})

BOUNDS_MS = tuple(round(5 * 2 ** (step / 4)) for step in range(65))
"""Upper bounds of the classes in which durations are counted, milliseconds: from 5 ms to 328 s, each some 1.2 times the
one before, so that a percentile is exact to a fifth.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What happened in a period of time.

    Attributes:
        attempts: Requests made to subscribers.
        accepted: Messages accepted, including those that the hub derived from other messages.
        delivered: Deliveries that a subscriber accepted. One that is accepted again counts again.
        given_up: Deliveries that ended undelivered: out of tries, or expired.
        unattributed: Attempts not counted for the subscriber they were made to (:func:`busiest`).
        took: Number of attempts by class of their duration (index into :data:`BOUNDS_MS`); longer ones are in the last.
    """

    attempts: int = 0
    accepted: int = 0
    delivered: int = 0
    failed: int = 0
    given_up: int = 0
    unattributed: int = 0
    took: Mapping[int, int] = field(default_factory=dict)

    def __add__(self, other: Activity) -> Activity:
        """Both periods together."""
        return Activity(
            attempts=self.attempts + other.attempts,
            accepted=self.accepted + other.accepted,
            delivered=self.delivered + other.delivered,
            failed=self.failed + other.failed,
            given_up=self.given_up + other.given_up,
            unattributed=self.unattributed + other.unattributed,
            took=_together(self.took, other.took),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriberActivity:
    """What happened at a subscriber in a period of time.

    Attributes:
        delivered: Deliveries that it accepted, by its answer or by a later acknowledgement.
        given_up: Deliveries to it that ended undelivered.
        took_ms: Total milliseconds of all attempts.
        took: Number of attempts by class of their duration, as in :class:`Activity`.
    """

    attempts: int = 0
    delivered: int = 0
    failed: int = 0
    given_up: int = 0
    took_ms: int = 0
    took: Mapping[int, int] = field(default_factory=dict)

    def __add__(self, other: SubscriberActivity) -> SubscriberActivity:
        """Both periods together."""
        return SubscriberActivity(
            attempts=self.attempts + other.attempts,
            delivered=self.delivered + other.delivered,
            failed=self.failed + other.failed,
            given_up=self.given_up + other.given_up,
            took_ms=self.took_ms + other.took_ms,
            took=_together(self.took, other.took),
        )


def percentile_ms(took: Mapping[int, int], percent: int) -> int | None:
    """The duration that so many percent of the attempts did not exceed, milliseconds; None without attempts.

    Args:
        took: Number of attempts by class of their duration.
        percent: 1 to 99.
    """
    rank = sum(took.values()) * percent / 100
    before = 0
    for place, count in sorted(took.items()):
        if before + count >= rank:
            lower = BOUNDS_MS[place - 1] if place else 0
            return round(lower + (BOUNDS_MS[place] - lower) * (rank - before) / count)
        before += count
    return None


def _together(some: Mapping[int, int], more: Mapping[int, int]) -> Mapping[int, int]:
    if not some or not more:
        return some or more
    return {place: some.get(place, 0) + more.get(place, 0) for place in some.keys() | more.keys()}


def _class_of(record: DeliveryRecord) -> Mapping[int, int]:
    if record.kind not in _ATTEMPTED or record.duration_ms is None:
        return {}
    return {min(bisect_left(BOUNDS_MS, record.duration_ms), len(BOUNDS_MS) - 1): 1}


ATTEMPTS_A_WRITE = 20
"""Counting a subscriber costs a write; a large batch gets one such write per this many attempts."""

FREE_WRITES = 8
"""This many subscribers of a batch are always counted."""


def hour_of(record: DeliveryRecord) -> int:
    """Start of a record's hour, epoch milliseconds."""
    at = epoch_ms(record.at)
    return at - at % HOUR_MS


def activity_of(record: DeliveryRecord) -> Activity:
    """What one delivery record adds to the project's figures."""
    asked = record.kind in _ATTEMPTED
    return Activity(
        attempts=int(asked),
        # A delivery added after its message was accepted has an acceptance record of its own, marked as manual.
        accepted=int(record.kind is RecordKind.ACCEPTED and not record.manual),
        delivered=int(record.kind in _ENDED_WELL or (asked and record.verdict == "delivered")),
        failed=int(asked and record.verdict == "failed"),
        # An attempt of what has expired was under way then: a record before it has counted that.
        given_up=int(record.kind in _GIVEN_UP or (asked and record.state == RecordKind.EXHAUSTED)),
        took=_class_of(record),
    )


def subscriber_activity_of(record: DeliveryRecord) -> SubscriberActivity:
    """What one delivery record adds to its subscriber's figures."""
    activity = activity_of(record)
    return SubscriberActivity(
        attempts=activity.attempts,
        delivered=activity.delivered,
        failed=activity.failed,
        given_up=activity.given_up,
        took_ms=record.duration_ms or 0,
        took=activity.took,
    )


def busiest(counts: Mapping[str, SubscriberActivity]) -> tuple[Mapping[str, SubscriberActivity], int]:
    """The subscribers whose activity is worth a write each, busiest first, and the number of attempts left out.

    Args:
        counts: What happened at each subscriber, by subscriber id.
    """
    total = sum(each.attempts for each in counts.values())
    most = max(FREE_WRITES, total // ATTEMPTS_A_WRITE)
    ordered = sorted(counts.items(), key=lambda item: (-item[1].attempts, item[0]))
    return dict(ordered[:most]), sum(each.attempts for _, each in ordered[most:])
