"""What every store of messages does."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import pytest
from tests.contract.samples import (
    OTHER_PROJECT,
    PROJECT,
    QUEUE_UID,
    first,
    full_message,
    message,
    tried,
)

from pushhub.base.errors import Conflict
from pushhub.base.verdict import Verdict
from pushhub.engine.model.delivery import opening
from pushhub.engine.model.keys import LISTED, MessageKey
from pushhub.engine.model.message import Message
from pushhub.engine.ports import MessageSink, Once, StoredMessages


class Accepting(MessageSink, StoredMessages, Protocol):
    """Accepts messages, and returns them."""


@pytest.mark.parametrize("given", [message(), message(body=b""), message(body=b"\xff\x00"), full_message()])
def test_a_message_is_found_again_with_every_field(message_store: Accepting, given: Message) -> None:
    message_store.accept([given])
    assert message_store.message(MessageKey(PROJECT, QUEUE_UID, given.message_id)) == given
    assert message_store.message(MessageKey(OTHER_PROJECT, QUEUE_UID, given.message_id)) is None
    assert message_store.message(MessageKey(PROJECT, "another00000", given.message_id)) is None


@pytest.mark.parametrize("count", [1, 2, 26, 100])
def test_accepting_many_stores_all_and_repeating_changes_nothing(message_store: Accepting, count: int) -> None:
    # Given some messages of one post
    given = [message(body=b"%d" % number) for number in range(count)]
    # When they are accepted twice
    message_store.accept(given)
    message_store.accept(given)
    # Then each is there
    stored = [message_store.message(MessageKey(PROJECT, QUEUE_UID, each.message_id)) for each in given]
    assert stored == given


def test_an_id_that_belongs_to_another_message_is_a_conflict(message_store: Accepting) -> None:
    given = message()
    message_store.accept([given])
    with pytest.raises(Conflict):
        message_store.accept([replace(given, body=b"another")])
    assert message_store.message(MessageKey(PROJECT, QUEUE_UID, given.message_id)) == given


def test_a_message_of_the_hub_is_made_once_for_its_cause(message_store: Accepting) -> None:
    # Given a message made by the hub for a cause
    given = message(cause="one")
    assert message_store.accept_once(given) is Once.STORED
    # When it is made again for the same cause, then it is known, and for another cause its id is taken
    assert message_store.accept_once(replace(given, body=b"later")) is Once.KNOWN
    assert message_store.accept_once(replace(given, cause="two")) is Once.TAKEN
    assert message_store.message(MessageKey(PROJECT, QUEUE_UID, given.message_id)) == given


def test_a_message_comes_with_the_deliveries_that_were_tried(message_store: Accepting) -> None:
    # Given a message for three subscribers, two of which were tried, and another message
    given = message(subscriber_ids=("a", "b", "c"))
    neighbour = message()
    message_store.accept([given, neighbour])
    tried_ones = [tried(opening(given, each), Verdict.FAILED) for each in ("c", "a")]
    for each in (*tried_ones, first(neighbour, Verdict.DELIVERED)):
        message_store.save(each)
    # Then it comes with those two
    found = message_store.message_with_deliveries(MessageKey(PROJECT, QUEUE_UID, given.message_id))
    assert found is not None
    assert found[0] == given
    assert sorted(found[1], key=lambda each: each.subscriber_id) == tried_ones[::-1]
    assert message_store.message_with_deliveries(MessageKey(PROJECT, QUEUE_UID, "1")) is None


def test_a_deleted_message_is_gone_and_its_id_stays_taken(message_store: Accepting) -> None:
    # Given two messages, one of which the hub made, with a delivery
    kept, gone = full_message(), replace(full_message(), cause="one")
    message_store.accept([kept])
    assert message_store.accept_once(gone) is Once.STORED
    delivery = replace(opening(gone, gone.delivery_subscribers[0]), version=1)
    message_store.save(delivery)
    # When it is deleted, twice
    message_store.delete(gone)
    message_store.delete(gone)
    # Then it is gone with its deliveries, and the other is still there
    assert message_store.message(MessageKey(PROJECT, QUEUE_UID, gone.message_id)) is None
    assert message_store.message_with_deliveries(MessageKey(PROJECT, QUEUE_UID, gone.message_id)) is None
    assert message_store.message(MessageKey(PROJECT, QUEUE_UID, kept.message_id)) == kept
    # And it is not made again for its cause, nor for another one
    assert message_store.accept_once(gone) is Once.KNOWN
    assert message_store.accept_once(replace(gone, cause="another")) is Once.TAKEN
    assert message_store.message(MessageKey(PROJECT, QUEUE_UID, gone.message_id)) is None
    # And deleting one that never existed does nothing
    never = message()
    message_store.delete(never)
    assert message_store.accept_once(replace(never, cause="two")) is Once.STORED
    assert message_store.message(MessageKey(PROJECT, QUEUE_UID, never.message_id)) is not None


def test_messages_that_can_be_listed_are_listed_in_order_without_their_deliveries(message_store: Accepting) -> None:
    # Given messages of a queue, the first ones tried at several subscribers, one that was deleted, and one of another
    # queue
    uid = f"{LISTED}app_1"
    given = [message(queue_uid=uid, subscriber_ids=("a", "b", "c")) for _ in range(130)]
    ids = [each.message_id for each in given]
    message_store.accept([*given, message(queue_uid=f"{uid}2"), message()])
    for each in given[:20]:
        for subscriber in each.subscriber_ids:
            message_store.save(tried(opening(each, subscriber), Verdict.FAILED))
    message_store.delete(given.pop(50))
    del ids[50]

    def listed(**span: object) -> list[str]:
        return [each.message_id for each in message_store.listed(PROJECT, uid, **span)]  # type: ignore[arg-type]

    # Then they are listed in both directions, completely or between two ids, which need not exist
    assert list(message_store.listed(PROJECT, uid)) == given
    assert listed(up=False) == ids[::-1]
    assert listed(wanted=1) == ids
    assert listed(above=ids[3], below=ids[100]) == ids[4:100]
    assert listed(above=ids[99], up=False) == ids[:99:-1]
    assert listed(below=str(int(ids[0]) + 1)) == ids[:1]
    assert listed(above=str(int(ids[-1]) - 1), below="9" * 19) == ids[-1:]
    assert listed(above=ids[4], below=ids[4]) == listed(above=ids[5], below=ids[4]) == []
    assert list(message_store.listed(OTHER_PROJECT, uid)) == []


def test_many_messages_are_found_at_once_and_those_that_are_gone_are_missing(message_store: Accepting) -> None:
    # Given messages of which one was deleted, and one that never was
    here = [message() for _ in range(3)]
    for each in here:
        message_store.accept([each])
    message_store.delete(here[0])
    keys = [each.key for each in [*here, message()]]
    # When they are looked up, one of them twice, then those that are there are found
    assert message_store.messages([*keys, keys[1]]) == {each.key: each for each in here[1:]}
    assert message_store.messages([]) == {}
