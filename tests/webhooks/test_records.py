"""What the records of webhooks say; the report's own tests judge the same records (``tests/glue/test_webhooks.py``)."""

from __future__ import annotations

from collections import Counter

from tests.webhooks.lived import live

from pushhub.engine.model.record import RecordKind


def test_two_days_of_webhooks_are_accounted_for_delivery_by_delivery_and_key_by_key() -> None:
    # Given two days of webhooks, everything in them that becomes a record
    lived = live()
    deliveries = lived.world.messages.all_deliveries()
    assert len(lived.world.messages.all_messages()) == 60
    # Then deliveries are recorded with the message, or when they were added
    accepted = [each for each in lived.records if each.kind == RecordKind.ACCEPTED]
    owed = Counter(delivery for each in accepted for delivery in each.owed or ())
    assert set(owed) >= {each.delivery_id for each in deliveries if not each.added}
    # And each delivery ended as its last record says
    last = {each.delivery_id: each for each in lived.records if each.delivery_id}
    assert {each: last[each].state for each in owed} == {each.delivery_id: each.state.value for each in deliveries}
    states = Counter(each.state.value for each in deliveries)
    assert {"delivered", "cancelled", "expired"} <= set(states), states
    # And attempts name their ordering keys; each endpoint got the messages of a key in order
    delivered = [each for each in lived.records if each.order_key and each.verdict == "delivered" and not each.manual]
    ways = {(each.subscriber, each.order_key) for each in delivered}
    assert len(ways) == 6
    for way in ways:
        sequences = [each.sequence or 0 for each in delivered if (each.subscriber, each.order_key) == way]
        assert sequences == sorted(sequences)
        assert len(sequences) >= 9
