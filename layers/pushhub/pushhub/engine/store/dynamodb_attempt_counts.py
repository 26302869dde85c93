"""Counts of attempts per subscriber and hour on DynamoDB, one item each; they expire by TTL after a week."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.times import epoch_ms, iso_time
from pushhub.cloud.table import Item, Table, number, numbers, text
from pushhub.engine.model.attempt_counts import OUTCOMES, AttemptCounts, CountedSubscriber

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock


KEPT_S = 8 * 86_400
"""How long an hour is kept: queries may go back a week."""

_AT_ONCE = 100
"""Counts per write, because an expression is limited to 4 KB."""


class DynamoDBAttemptCounts:
    """Implements :class:`pushhub.engine.ports.AttemptCountStore`.

    Args:
        client: Low-level DynamoDB client.
        table: Name of the table; keys ``pk`` and ``sk``, time to live ``ttl``.
        clock: Waits between rounds.
    """

    def __init__(self, client: DynamoDBClient, table: str, clock: Clock) -> None:
        self._table = Table(client, table, clock)

    def add_attempts(self, subscriber: CountedSubscriber, hour: int, counts: AttemptCounts) -> None:
        counted = {f"{outcome}_{minute}": count for (minute, outcome), count in counts.minutes.items()}
        counted |= {"good_ms": counts.good_ms, "failed_ms": counts.failed_ms}
        for some in _some(counted):
            names = {f"#c{place}": name for place, name in enumerate(some)}
            values = {f":c{place}": number(count) for place, count in enumerate(some.values())}
            self._table.update(
                {"pk": text(_partition(subscriber)), "sk": text(iso_time(hour))},
                UpdateExpression=f"ADD {', '.join(f'#c{place} :c{place}' for place in range(len(some)))} "
                "SET #ttl = :ttl, life_ms = :life",
                ExpressionAttributeNames={"#ttl": "ttl", **names},
                ExpressionAttributeValues={
                    ":ttl": number(hour // 1000 + KEPT_S),
                    ":life": number(counts.life_ms),
                    **values,
                },
            )

    def attempts(self, subscriber: CountedSubscriber, first: int, last: int) -> dict[int, AttemptCounts]:
        items = self._table.items(
            KeyConditionExpression="pk = :pk AND sk BETWEEN :first AND :last",
            ExpressionAttributeValues={
                ":pk": text(_partition(subscriber)),
                ":first": text(iso_time(first)),
                ":last": text(iso_time(last)),
            },
        )
        return {epoch_ms(item["sk"]["S"]): _decode(item) for item in items}


def _partition(subscriber: CountedSubscriber) -> str:
    # The name comes last because it may contain anything; the ids never contain the separator.
    return f"ATTEMPTS#{subscriber.project}#{subscriber.subscriber_id}#{subscriber.queue}"


def _some(counted: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """The counts in chunks, without zeros."""
    found = [(name, count) for name, count in counted.items() if count]
    for first in range(0, len(found), _AT_ONCE):
        yield dict(found[first : first + _AT_ONCE])


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
