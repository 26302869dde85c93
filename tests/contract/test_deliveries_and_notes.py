"""What reads deliveries and notes of changes together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.cloud import aws_services as aws
from tests.contract.samples import first, message, order
from tests.fakes import FakeClock
from tests.fakes.config_store import FakeConfigStore
from tests.fakes.deliveries_and_notes import FakeDeliveriesAndNotes
from tests.fakes.message_store import FakeMessageStore
from tests.fakes.schedule import FakeSchedule

from pushhub.base.verdict import Verdict
from pushhub.engine.flow.ports import DeliveriesAndNotes
from pushhub.engine.ports import Deliveries
from pushhub.engine.projects.ports import ChangeNoteStore
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore
from pushhub.engine.store.dynamodb_deliveries_and_notes import DynamoDBDeliveriesAndNotes
from pushhub.engine.store.dynamodb_messages import DynamoDBMessageStore


class Stores(NamedTuple):
    """One that reads both, and those that write either."""

    both: DeliveriesAndNotes
    messages: Deliveries
    notes: ChangeNoteStore


@pytest.fixture(params=["fake", "dynamodb"])
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    clock = FakeClock()
    schedule = FakeSchedule(clock)
    if request.param == "fake":
        messages, notes = FakeMessageStore(schedule), FakeConfigStore(clock)
        yield Stores(FakeDeliveriesAndNotes(messages, notes), messages, notes)
        return
    with aws.dynamodb() as client:
        yield Stores(
            DynamoDBDeliveriesAndNotes(client, aws.MESSAGES_TABLE, clock, aws.CONFIG_TABLE),
            DynamoDBMessageStore(client, aws.MESSAGES_TABLE, clock, lambda: schedule),
            DynamoDBConfigStore(client, aws.CONFIG_TABLE, clock),
        )


def test_both_are_what_their_own_stores_say(stores: Stores) -> None:
    # Given nothing, then neither is found
    untried, tried = message(), first(message(), Verdict.FAILED)
    keys = [order(untried).key, tried.key, tried.key]
    assert stores.both.deliveries_and_notes(keys) == ({}, {})
    # Given a delivery, and notes of two slots
    stores.messages.save(tried)
    stores.notes.note_change(7, 1_000)
    stores.notes.note_change(255, 2_000)
    # Then all are found
    assert stores.both.deliveries_and_notes(keys) == ({tried.key: tried}, {7: 1_000, 255: 2_000})
