"""How long counts of descendants are kept."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.fakes.clock import FakeClock

from pushhub.engine.store.dynamodb_descendants import DynamoDBDescendants

DAY_S = 86_400


def test_a_count_is_kept_for_thirty_days_after_the_last_descendant() -> None:
    # Given a table
    asked: list[dict[str, Any]] = []

    def update_item(**update: Any) -> dict[str, Any]:
        asked.append(update)
        return {"Attributes": {}}

    clock = FakeClock()
    client: Any = SimpleNamespace(update_item=update_item)
    descendants = DynamoDBDescendants(client, "t", clock, most=10)
    # When a message has a descendant, and another one later
    descendants.spend("p", "1", cause="a", count=1)
    clock.advance(seconds=20 * DAY_S)
    descendants.spend("p", "1", cause="b", count=1)
    # Then its count ends thirty days after each
    ends = [int(each["ExpressionAttributeValues"][":ttl"]["N"]) for each in asked]
    now_s = clock.now() // 1000
    assert ends == [now_s + 10 * DAY_S, now_s + 30 * DAY_S]
