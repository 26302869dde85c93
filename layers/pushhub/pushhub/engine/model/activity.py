"""How much a project and its subscribers did, hour by hour. Pure.

Statistics for people, counted from delivery records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.base.times import epoch_ms
from pushhub.engine.model.record import DeliveryRecord, RecordKind

if TYPE_CHECKING:
    from collections.abc import Mapping

HOUR_MS = 3_600_000

_ENDED_WELL = frozenset({RecordKind.DELIVERED, RecordKind.ACKNOWLEDGED})
_GIVEN_UP = frozenset({RecordKind.EXHAUSTED, RecordKind.EXPIRED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What happened in a period of time.

    Attributes:
        accepted: Messages accepted, including those that the hub derived from other messages.
        delivered: Deliveries that a subscriber accepted. One that is accepted again counts again.
        failed: Attempts that failed.
        given_up: Deliveries that ended undelivered: out of tries, or expired.
        unattributed: Attempts not counted for the subscriber they were made to (:func:`busiest`).
    """

    accepted: int = 0
    delivered: int = 0
    failed: int = 0
    given_up: int = 0
    unattributed: int = 0

    def __add__(self, other: Activity) -> Activity:
        """Both periods together."""
        return Activity(
            accepted=self.accepted + other.accepted,
            delivered=self.delivered + other.delivered,
            failed=self.failed + other.failed,
            given_up=self.given_up + other.given_up,
            unattributed=self.unattributed + other.unattributed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriberActivity:
    """What happened at a subscriber in a period of time.

    Attributes:
        attempts: Requests made to it.
        delivered: Deliveries that it accepted, by its answer or by a later acknowledgement.
        failed: Attempts that failed.
        took_ms: Total milliseconds of all attempts.
    """

    attempts: int = 0
    delivered: int = 0
    failed: int = 0
    took_ms: int = 0

    def __add__(self, other: SubscriberActivity) -> SubscriberActivity:
        """Both periods together."""
        return SubscriberActivity(
            attempts=self.attempts + other.attempts,
            delivered=self.delivered + other.delivered,
            failed=self.failed + other.failed,
            took_ms=self.took_ms + other.took_ms,
        )


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
    asked = record.kind in (RecordKind.ATTEMPT, RecordKind.POLL)
    return Activity(
        # A delivery added after its message was accepted has an acceptance record of its own, marked as manual.
        accepted=int(record.kind is RecordKind.ACCEPTED and not record.manual),
        delivered=int(record.kind in _ENDED_WELL or (asked and record.verdict == "delivered")),
        failed=int(asked and record.verdict == "failed"),
        given_up=int(record.kind in _GIVEN_UP or (asked and record.state in _GIVEN_UP)),
    )


def subscriber_activity_of(record: DeliveryRecord) -> SubscriberActivity:
    """What one delivery record adds to its subscriber's figures."""
    asked = record.kind in (RecordKind.ATTEMPT, RecordKind.POLL)
    activity = activity_of(record)
    return SubscriberActivity(
        attempts=int(asked), delivered=activity.delivered, failed=activity.failed, took_ms=record.duration_ms or 0
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
