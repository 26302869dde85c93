"""What reads deliveries, messages and notes of changes together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.cloud import aws_services as aws
from tests.contract.samples import first, message, order
from tests.fakes import FakeClock
from tests.fakes.attempt_reads import FakeAttemptReads
from tests.fakes.config_store import FakeConfigStore
from tests.fakes.message_store import FakeMessageStore
from tests.fakes.schedule import FakeSchedule

from pushhub.base.verdict import Verdict
from pushhub.engine.flow.ports import AttemptReads
from pushhub.engine.model.keys import LISTED
from pushhub.engine.projects.ports import ChangeNoteStore
from pushhub.engine.store.dynamodb_attempt_reads import DynamoDBAttemptReads
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore
from pushhub.engine.store.dynamodb_messages import DynamoDBMessageStore
from pushhub.engine.stores import MessageStore


class Stores(NamedTuple):
    """One that reads all, and those that write it."""

    together: AttemptReads
    messages: MessageStore
    notes: ChangeNoteStore


@pytest.fixture(params=["fake", "dynamodb"])
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    clock = FakeClock()
    schedule = FakeSchedule(clock)
    if request.param == "fake":
        messages, notes = FakeMessageStore(schedule), FakeConfigStore(clock)
        yield Stores(FakeAttemptReads(messages, notes), messages, notes)
        return
    with aws.dynamodb() as client:
        yield Stores(
            DynamoDBAttemptReads(client, aws.MESSAGES_TABLE, clock, aws.CONFIG_TABLE),
            DynamoDBMessageStore(client, aws.MESSAGES_TABLE, clock, lambda: schedule),
            DynamoDBConfigStore(client, aws.CONFIG_TABLE, clock),
        )


@pytest.mark.parametrize("queue_uid", ["u", f"{LISTED}u"])
def test_all_is_what_its_own_store_says(stores: Stores, queue_uid: str) -> None:
    # Given nothing, then nothing is found
    untried, posted, deleted = (message(queue_uid=queue_uid) for _ in range(3))
    tried = first(posted, Verdict.FAILED)
    keys = [order(untried).key, tried.key, tried.key]
    wanted = [posted.key, posted.key, deleted.key, untried.key]
    assert stores.together.read(keys, wanted) == ({}, {})
    assert stores.together.read_with_notes(keys, wanted) == (({}, {}), {})
    # Given a delivery, messages, of which one was deleted, and notes of two slots
    stores.messages.save(tried)
    stores.messages.accept([posted, deleted])
    stores.messages.delete(deleted)
    stores.notes.note_change(7, 1_000)
    stores.notes.note_change(255, 2_000)
    # Then all that is there is found, and of messages what is asked for
    read = ({tried.key: tried}, {posted.key: posted})
    assert stores.together.read(keys, wanted) == read
    assert stores.together.read_with_notes(keys, wanted) == (read, {7: 1_000, 255: 2_000})
    assert stores.together.read(keys, []) == ({tried.key: tried}, {})
