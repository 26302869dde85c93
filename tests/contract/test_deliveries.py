"""What every store of deliveries does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.samples import (
    NOW,
    first,
    full_message,
    message,
    order,
    tried,
)

from pushhub.base.errors import Conflict
from pushhub.base.verdict import Verdict
from pushhub.engine.model.delivery import DeliveryState, acknowledge, close, opening
from pushhub.engine.ports import Deliveries


def test_a_delivery_is_found_again_with_every_field(message_store: Deliveries) -> None:
    # Given a unicast delivery in the middle of a round
    given = full_message()
    begun = tried(opening(given, "*"), Verdict.FAILED)
    assert begun.cursor == 1
    # When each state of it is stored in turn, then each is found
    polling = replace(tried(begun, Verdict.POLL), update_url="https://a.example/jobs/1?ü", scheduled=True)
    reserved = replace(tried(polling, Verdict.RESERVED), scheduled=False)
    acknowledged = acknowledge(reserved, reserved.target, 3, NOW + 5)
    assert reserved.last is not None
    assert reserved.last.poll
    cancelled = close(acknowledged, DeliveryState.CANCELLED, NOW + 6, "ümlaut")
    for state in (begun, polling, reserved, acknowledged, cancelled):
        message_store.save(state)
        assert message_store.delivery(order(given).key) == state
        assert message_store.deliveries([order(given).key]) == {state.key: state}


def test_deliveries_of_many_orders_are_read_at_once(message_store: Deliveries) -> None:
    # Given 120 orders, every second one tried, and one of them twice in the batch
    messages = [message() for _ in range(120)]
    # And a message of another queue with the id of one of them
    messages.append(replace(messages[0], queue_uid="dddddddddddd"))
    tried_ones = [first(each, Verdict.FAILED) for each in messages[::2]]
    stored = {each.key: each for each in tried_ones}
    for each in tried_ones:
        message_store.save(each)
    assert len(stored) == 61
    # Then the tried ones are found, and nothing else
    assert message_store.deliveries([order(each).key for each in [*messages, messages[0]]]) == stored
    assert message_store.deliveries([]) == {}


def test_a_write_needs_the_version_before_it(message_store: Deliveries) -> None:
    # Given a delivery tried once
    given = message()
    once = first(given, Verdict.FAILED)
    message_store.save(once)
    # When another first attempt, or one that skips a version, is saved, then that is a conflict
    with pytest.raises(Conflict):
        message_store.save(replace(once, tries=0))
    with pytest.raises(Conflict):
        message_store.save(replace(tried(once, Verdict.FAILED), version=3))
    assert message_store.delivery(order(given).key) == once
    # When the next one is saved, then it stays and the old one does not return
    twice = tried(once, Verdict.DELIVERED)
    message_store.save(twice)
    with pytest.raises(Conflict):
        message_store.save(once)
    assert message_store.delivery(order(given).key) == twice


def test_a_later_version_needs_a_stored_one(message_store: Deliveries) -> None:
    with pytest.raises(Conflict):
        message_store.save(replace(first(message(), Verdict.FAILED), version=2))


def test_the_very_same_write_twice_is_harmless(message_store: Deliveries) -> None:
    given = message()
    delivery = first(given, Verdict.FAILED, scheduled=True)
    message_store.save(delivery)
    message_store.save(delivery)
    assert message_store.delivery(order(given).key) == delivery


def test_a_settled_delivery_cannot_be_scheduled(message_store: Deliveries) -> None:
    with pytest.raises(ValueError, match="due time"):
        message_store.save(first(message(), Verdict.DELIVERED, scheduled=True))
