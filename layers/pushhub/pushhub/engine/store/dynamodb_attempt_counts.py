"""Counts of attempts per subscriber and hour on DynamoDB, one item each; they expire by TTL after a week."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.cloud.table import Item, TableStore, number, numbers
from pushhub.cloud.unreadable import decodes
from pushhub.engine.model.attempt_counts import OUTCOMES, AttemptCounts, CountedSubscriber
from pushhub.engine.store._hours import add_to_hour, hours

if TYPE_CHECKING:
    pass


class DynamoDBAttemptCounts(TableStore):
    """Implements :class:`pushhub.engine.ports.AttemptCountStore`."""

    def add_attempts(self, subscriber: CountedSubscriber, hour: int, counts: AttemptCounts) -> None:
        counted = {f"{outcome}_{minute}": count for (minute, outcome), count in counts.minutes.items()}
        counted |= {"good_ms": counts.good_ms, "failed_ms": counts.failed_ms}
        add_to_hour(self._table, _partition(subscriber), hour, counted, {"life_ms": number(counts.life_ms)})

    def attempts(self, subscriber: CountedSubscriber, first: int, last: int) -> dict[int, AttemptCounts]:
        found = hours(self._table, _partition(subscriber), first, last)
        return {hour: _decode(item) for hour, item in found.items()}


def _partition(subscriber: CountedSubscriber) -> str:
    # The name comes last because it may contain anything; the ids never contain the separator.
    return f"ATTEMPTS#{subscriber.project}#{subscriber.subscriber_id}#{subscriber.queue}"


@decodes
def _decode(item: Item) -> AttemptCounts:
    minutes: dict[tuple[int, str], int] = {}
    for name in item:
        outcome, _, minute = name.rpartition("_")
        if outcome in OUTCOMES and minute.isdecimal():
            minutes[int(minute), outcome] = numbers(item, name) or 0
    return AttemptCounts(
        minutes=minutes,
        good_ms=numbers(item, "good_ms") or 0,
        failed_ms=numbers(item, "failed_ms") or 0,
        life_ms=numbers(item, "life_ms") or 0,
    )
