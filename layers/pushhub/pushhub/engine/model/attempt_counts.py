"""Outcomes of the attempts at a subscriber, minute by minute, counted from delivery records while it fails. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pushhub.base.times import epoch_ms
from pushhub.engine.model.activity import HOUR_MS
from pushhub.engine.model.record import DeliveryRecord, RecordKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MINUTE_MS = 60_000

GOOD, FIRST, TIMEOUT, REFUSED = "good", "first", "timeout", "refused"

_TOLD_APART = frozenset({410, 429, 500, 502, 503, 504})
"""Statuses counted one by one. Others are counted by their hundred, to keep the number of counters small."""

OUTCOMES = (GOOD, FIRST, TIMEOUT, REFUSED, "300", "400", *map(str, sorted(_TOLD_APART)))
"""What is counted: successful attempts, first attempts of messages, and failures by cause."""


class CountedSubscriber(NamedTuple):
    """A subscriber whose attempts are counted."""

    project: str
    queue: str
    subscriber_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptCounts:
    """The attempts at one subscriber that began within one hour.

    Attributes:
        minutes: Counts by minute of the hour (0..59) and one of :data:`OUTCOMES`.
        good_ms: Total milliseconds of the attempts that succeeded.
        failed_ms: Total milliseconds of the attempts that failed.
        life_ms: Lifetime of a message, from its acceptance.
    """

    minutes: Mapping[tuple[int, str], int] = field(default_factory=dict)
    good_ms: int = 0
    failed_ms: int = 0
    life_ms: int = 0

    def __add__(self, other: AttemptCounts) -> AttemptCounts:
        """Both together."""
        return AttemptCounts(
            minutes=Counter(self.minutes) + Counter(other.minutes),
            good_ms=self.good_ms + other.good_ms,
            failed_ms=self.failed_ms + other.failed_ms,
            life_ms=max(self.life_ms, other.life_ms),
        )

    def count(self, *outcomes: str) -> int:
        """How many attempts had one of the given outcomes."""
        return sum(count for (_, outcome), count in self.minutes.items() if outcome in outcomes)

    @property
    def failed(self) -> int:
        """How many attempts failed."""
        return sum(self.minutes.values()) - self.count(GOOD, FIRST)


def counts_of(records: Iterable[DeliveryRecord]) -> dict[tuple[CountedSubscriber, int], AttemptCounts]:
    """Counts the attempts in some records, by subscriber and hour (its start, epoch milliseconds).

    Manual tries are left out, and so are messages that consumers pull.
    """
    found: dict[tuple[CountedSubscriber, int], AttemptCounts] = {}
    for each in records:
        if each.kind is not RecordKind.ATTEMPT or each.manual or each.dialect == "notifications":
            continue
        if each.subscriber_id is None or each.started_at is None:
            continue
        started_at = epoch_ms(each.started_at)
        hour = started_at - started_at % HOUR_MS
        minute, took_ms = (started_at - hour) // MINUTE_MS, each.duration_ms or 0
        failed = each.verdict == "failed"
        minutes = Counter({(minute, outcome_of(each) if failed else GOOD): 1})
        if each.attempt == 1:
            minutes[minute, FIRST] = 1
        key = CountedSubscriber(each.project, each.queue, each.subscriber_id), hour
        found[key] = found.get(key, AttemptCounts()) + AttemptCounts(
            minutes=minutes,
            good_ms=0 if failed else took_ms,
            failed_ms=took_ms if failed else 0,
            life_ms=epoch_ms(each.expires_at) - epoch_ms(each.accepted_at),
        )
    return found


def outcome_of(record: DeliveryRecord) -> str:
    """What a failed attempt counts as."""
    status = record.status_code or 0
    if record.error_class == "timeout":
        return TIMEOUT
    if record.error_class or not 300 <= status <= 599:
        return REFUSED
    if status in _TOLD_APART:
        return str(status)
    return str(status // 100 * 100)
