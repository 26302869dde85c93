"""What every store of messages does with ordering keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import pytest
from tests.contract.samples import (
    message,
)

from pushhub.base.errors import Conflict
from pushhub.engine.model.message import Message, Ordering
from pushhub.engine.ports import MessageSink, Once, StoredMessages
from pushhub.engine.waiting.ports import Outstanding


class Accepting(MessageSink, StoredMessages, Protocol):
    """Accepts messages, and returns them."""


class Kept(MessageSink, Outstanding, Protocol):
    """Accepts messages, and lists what it has."""


def ordered(key: str = "customer #7/ü", **changes: object) -> Message:
    return message(ordering=Ordering(key=key), **changes)


def places(store: Accepting, *given: Message) -> list[tuple[int, dict[str, str]]]:
    found = [store.message(each.key) for each in given]
    return [(each.ordering.sequence, dict(each.ordering.previous)) for each in found if each and each.ordering]


@pytest.mark.parametrize("together", [True, False])
def test_messages_of_a_key_are_numbered_and_know_who_goes_before_them(message_store: Accepting, together: bool) -> None:
    # Given three messages of a key, the second for another subscriber, too, and the third for that one only
    one = ordered(subscriber_ids=("a",))
    two = ordered(subscriber_ids=("a", "b"))
    three = ordered(subscriber_ids=("b",))
    other = ordered("another")
    for posted in [[one, two, other, three]] if together else [[one], [two], [other], [three]]:
        message_store.accept(posted)
    # Then each is numbered within its key, and knows the one before it at each subscriber
    assert places(message_store, one, two, three) == [
        (1, {}),
        (2, {"a": one.message_id}),
        (3, {"b": two.message_id}),
    ]
    assert places(message_store, other) == [(1, {})]
    assert message_store.message(one.key) == replace(one, ordering=Ordering(key="customer #7/ü", sequence=1))


def test_a_message_of_a_key_that_is_accepted_again_keeps_its_place(message_store: Accepting) -> None:
    one, two, three = ordered(), ordered(), ordered()
    message_store.accept([one])
    message_store.accept([one])
    message_store.accept([one, two])
    message_store.accept([three])
    assert [number for number, _ in places(message_store, one, two, three)] == [1, 2, 3]
    # And its id cannot be given to another message
    with pytest.raises(Conflict):
        message_store.accept([replace(one, body=b"another")])


def test_a_message_of_a_key_that_the_hub_makes_is_made_once(message_store: Accepting) -> None:
    one = ordered(cause="one")
    assert [message_store.accept_once(one) for _ in range(2)] == [Once.STORED, Once.KNOWN]
    assert message_store.accept_once(replace(one, cause="two")) is Once.TAKEN
    two = ordered()
    message_store.accept([two])
    assert [number for number, _ in places(message_store, one, two)] == [1, 2]


def test_more_messages_of_a_key_than_fit_one_step(message_store: Accepting) -> None:
    given = [ordered() for _ in range(100)]
    message_store.accept(given)
    assert [number for number, _ in places(message_store, *given)] == list(range(1, 101))


def test_what_is_known_of_a_key_is_no_message(message_store: Kept) -> None:
    one = ordered()
    message_store.accept([one])
    found = [each for each, _ in message_store.outstanding(0, 1)]
    assert [each.message_id for each in found] == [one.message_id]
