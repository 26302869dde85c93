"""How much went on in a project, hour by hour: a statistic for people, counted from delivery records. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pushhub.base.times import epoch_ms
from pushhub.engine.model.record import DeliveryRecord, RecordKind

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
    """

    accepted: int = 0
    delivered: int = 0
    failed: int = 0
    given_up: int = 0

    def __add__(self, other: Activity) -> Activity:
        """What happened in both."""
        return Activity(
            accepted=self.accepted + other.accepted,
            delivered=self.delivered + other.delivered,
            failed=self.failed + other.failed,
            given_up=self.given_up + other.given_up,
        )


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
