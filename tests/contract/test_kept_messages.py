"""How every store of messages lists all of them, and restores lost ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import pytest
from tests.contract.samples import (
    first,
    message,
    tried,
)

from pushhub.base.verdict import Verdict
from pushhub.engine.model.delivery import opening
from pushhub.engine.ports import MessageSink, StoredMessages
from pushhub.engine.records.ports import Restored
from pushhub.engine.waiting.ports import Outstanding


class Kept(MessageSink, StoredMessages, Outstanding, Restored, Protocol):
    """Accepts messages, lists all that it has, and restores lost ones."""


@pytest.mark.parametrize("parts", [1, 4])
def test_every_message_is_in_one_part_with_its_deliveries(message_store: Kept, parts: int) -> None:
    # Given messages, one of which was attempted
    messages = [message(message_id=str(10**18 + number)) for number in range(20)]
    message_store.accept(messages)
    tried = replace(opening(messages[3], messages[3].delivery_subscribers[0]), version=1)
    message_store.save(tried)
    # And one that was deleted
    message_store.delete(messages.pop())
    # When all parts are read
    found = [each for part in range(parts) for each in message_store.outstanding(part, parts)]
    # Then each message is listed once, and the one delivery with its message
    assert sorted(each.message_id for each, _ in found) == [each.message_id for each in messages]
    assert [(each.message_id, deliveries) for each, deliveries in found if deliveries] == [
        (messages[3].message_id, [tried])
    ]


def test_what_was_lost_is_put_back_and_what_is_there_stays(message_store: Kept) -> None:
    # Given a message that exists, with a delivery, and one that is lost
    there, lost = message(), message()
    message_store.accept([there])
    newer = tried(first(there, Verdict.FAILED), Verdict.FAILED)
    message_store.save(first(there, Verdict.FAILED))
    message_store.save(newer)
    # When both are restored, with a delivery in its former state and version
    stood = tried(first(lost, Verdict.FAILED), Verdict.FAILED)
    message_store.restore(lost, [stood])
    message_store.restore(there, [first(there, Verdict.FAILED)])
    # Then the lost one is as it was, and continues from there
    assert message_store.message(lost.key) == lost
    assert message_store.delivery(stood.key) == stood
    message_store.save(tried(stood, Verdict.DELIVERED))
    # And the other has not changed
    assert message_store.delivery(newer.key) == newer
    # And a delivery is restored without its message if that is unknown
    alone = first(message(), Verdict.DELIVERED)
    message_store.restore(None, [alone])
    assert message_store.delivery(alone.key) == alone
    assert message_store.message(alone.key.message) is None
