"""How much went on in a project, and at its subscribers, hour by hour. Pure.

A statistic for people, counted from delivery records.
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
    """What happened in some time.

    Attributes:
        accepted: Messages accepted, those that the hub made of others included.
        delivered: Deliveries that a subscriber took, again each time it took one again.
        failed: Attempts that failed.
        given_up: Deliveries that ended unsent: their tries were used up, or their time was over.
        unattributed: Attempts that are not counted for the subscribers they were made at (:func:`busiest`).
    """

    accepted: int = 0
    delivered: int = 0
    failed: int = 0
    given_up: int = 0
    unattributed: int = 0

    def __add__(self, other: Activity) -> Activity:
        """What happened in both."""
        return Activity(
            accepted=self.accepted + other.accepted,
            delivered=self.delivered + other.delivered,
            failed=self.failed + other.failed,
            given_up=self.given_up + other.given_up,
            unattributed=self.unattributed + other.unattributed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriberActivity:
    """What happened at a subscriber in some time.

    Attributes:
        attempts: Requests made to it.
        delivered: Deliveries that it took, at once or by an acknowledgement.
        failed: Attempts that failed.
        took_ms: Milliseconds that all attempts took together.
    """

    attempts: int = 0
    delivered: int = 0
    failed: int = 0
    took_ms: int = 0

    def __add__(self, other: SubscriberActivity) -> SubscriberActivity:
        """What happened in both."""
        return SubscriberActivity(
            attempts=self.attempts + other.attempts,
            delivered=self.delivered + other.delivered,
            failed=self.failed + other.failed,
            took_ms=self.took_ms + other.took_ms,
        )


ATTEMPTS_A_WRITE = 20
"""To count a subscriber's attempts is a write, which so many attempts pay for together, where there are many."""

FREE_WRITES = 8
"""So many subscribers of a batch are counted in any case."""


def hour_of(record: DeliveryRecord) -> int:
    """When the hour of a record began, epoch milliseconds."""
    at = epoch_ms(record.at)
    return at - at % HOUR_MS


def activity_of(record: DeliveryRecord) -> Activity:
    """What one delivery record adds."""
    asked = record.kind in (RecordKind.ATTEMPT, RecordKind.POLL)
    return Activity(
        # What is owed since later than its message was accepted has a record of acceptance of its own, marked as
        # manual.
        accepted=int(record.kind is RecordKind.ACCEPTED and not record.manual),
        delivered=int(record.kind in _ENDED_WELL or (asked and record.verdict == "delivered")),
        failed=int(asked and record.verdict == "failed"),
        given_up=int(record.kind in _GIVEN_UP or (asked and record.state in _GIVEN_UP)),
    )


def subscriber_activity_of(record: DeliveryRecord) -> SubscriberActivity:
    """What one delivery record adds to its subscriber."""
    asked = record.kind in (RecordKind.ATTEMPT, RecordKind.POLL)
    activity = activity_of(record)
    return SubscriberActivity(
        attempts=int(asked), delivered=activity.delivered, failed=activity.failed, took_ms=record.duration_ms or 0
    )


def busiest(counts: Mapping[str, SubscriberActivity]) -> tuple[Mapping[str, SubscriberActivity], int]:
    """The subscribers whose activity is worth a write each, busy ones first, and how many attempts are left out.

    Args:
        counts: What happened at each subscriber, by its id.
    """
    total = sum(each.attempts for each in counts.values())
    most = max(FREE_WRITES, total // ATTEMPTS_A_WRITE)
    ordered = sorted(counts.items(), key=lambda item: (-item[1].attempts, item[0]))
    return dict(ordered[:most]), sum(each.attempts for _, each in ordered[most:])
