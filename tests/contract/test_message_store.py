"""What every message store does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.samples import (
    NOW,
    OTHER_PROJECT,
    PROJECT,
    QUEUE_UID,
    first,
    full_message,
    message,
    order,
    tried,
)

from pushhub.base.errors import Conflict
from pushhub.base.verdict import Verdict
from pushhub.engine.model.backoff import FixedDelay
from pushhub.engine.model.delivery import Delivery, DeliveryState, acknowledge, close, opening
from pushhub.engine.model.keys import LISTED, MessageKey
from pushhub.engine.model.message import Message, Ordering
from pushhub.engine.ports import MessageStore, Once


@pytest.mark.parametrize("given", [message(), message(body=b""), message(body=b"\xff\x00"), full_message()])
def test_a_message_is_found_again_with_every_field(message_store: MessageStore, given: Message) -> None:
    message_store.accept([given])
    assert message_store.message(MessageKey(PROJECT, QUEUE_UID, given.message_id)) == given
    assert message_store.message(MessageKey(OTHER_PROJECT, QUEUE_UID, given.message_id)) is None
    assert message_store.message(MessageKey(PROJECT, "another00000", given.message_id)) is None


@pytest.mark.parametrize("count", [1, 2, 26, 100])
def test_accepting_many_stores_all_and_repeating_changes_nothing(message_store: MessageStore, count: int) -> None:
    # Given some messages of one post
    given = [message(body=b"%d" % number) for number in range(count)]
    # When they are accepted twice
    message_store.accept(given)
    message_store.accept(given)
    # Then each is there
    stored = [message_store.message(MessageKey(PROJECT, QUEUE_UID, each.message_id)) for each in given]
    assert stored == given


def test_an_id_that_belongs_to_another_message_is_a_conflict(message_store: MessageStore) -> None:
    given = message()
    message_store.accept([given])
    with pytest.raises(Conflict):
        message_store.accept([replace(given, body=b"another")])
    assert message_store.message(MessageKey(PROJECT, QUEUE_UID, given.message_id)) == given


def test_a_message_of_the_hub_is_made_once_for_its_cause(message_store: MessageStore) -> None:
    # Given a message made for a cause
    given = message(cause="one")
    assert message_store.accept_once(given) is Once.STORED
    # When it is made again for the same cause, then it counts as made, and for another one it does not
    assert message_store.accept_once(replace(given, body=b"later")) is Once.KNOWN
    assert message_store.accept_once(replace(given, cause="two")) is Once.TAKEN
    assert message_store.message(MessageKey(PROJECT, QUEUE_UID, given.message_id)) == given


def test_a_delivery_is_found_again_with_every_field(message_store: MessageStore) -> None:
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


def test_a_message_comes_with_the_deliveries_that_were_tried(message_store: MessageStore) -> None:
    # Given a message for three subscribers of which two were tried, and a neighbour
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


def test_deliveries_of_many_orders_are_read_at_once(message_store: MessageStore) -> None:
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


def test_a_write_needs_the_version_before_it(message_store: MessageStore) -> None:
    # Given a delivery tried once
    given = message()
    once = first(given, Verdict.FAILED)
    message_store.save(once)
    # When another first attempt, or one that skips a version, is saved, then it is told
    with pytest.raises(Conflict):
        message_store.save(replace(once, tries=0))
    with pytest.raises(Conflict):
        message_store.save(replace(tried(once, Verdict.FAILED), version=3))
    assert message_store.delivery(order(given).key) == once
    # When the next one is saved, then it stands and the old one does not come back
    twice = tried(once, Verdict.DELIVERED)
    message_store.save(twice)
    with pytest.raises(Conflict):
        message_store.save(once)
    assert message_store.delivery(order(given).key) == twice


def test_a_later_version_needs_a_stored_one(message_store: MessageStore) -> None:
    with pytest.raises(Conflict):
        message_store.save(replace(first(message(), Verdict.FAILED), version=2))


def test_the_very_same_write_twice_is_harmless(message_store: MessageStore) -> None:
    given = message()
    delivery = first(given, Verdict.FAILED, scheduled=True)
    message_store.save(delivery)
    message_store.save(delivery)
    assert message_store.delivery(order(given).key) == delivery


def test_an_untried_delivery_can_be_scheduled(message_store: MessageStore) -> None:
    # Given a message with a delay of days, whose delivery dispatch schedules
    given = message(due_at=NOW + 86_400_000)
    scheduled = replace(opening(given, given.subscriber_ids[0]), version=1, scheduled=True)
    message_store.save(scheduled)
    # Then it does not count as failing
    assert message_store.unsettled_count(PROJECT, QUEUE_UID) == 0


def test_a_settled_delivery_cannot_be_scheduled(message_store: MessageStore) -> None:
    with pytest.raises(ValueError, match="due time"):
        message_store.save(first(message(), Verdict.DELIVERED, scheduled=True))


def test_unsettled_deliveries_are_those_that_failed_and_wait_then_the_exhausted(message_store: MessageStore) -> None:
    # Given one delivery in each state
    at_once = FixedDelay(retries=0, delay_s=3)
    exhausted = first(message(), Verdict.FAILED, policy=at_once)
    retrying = first(message(), Verdict.FAILED)
    reserved = first(message(), Verdict.RESERVED)
    polling = first(message(), Verdict.POLL)
    left_to_a_person = close(first(message(), Verdict.FAILED, version=0), DeliveryState.HELD, NOW)
    delivered = first(message(), Verdict.DELIVERED)
    expired = close(first(message(), Verdict.FAILED, version=0), DeliveryState.EXPIRED, NOW)
    elsewhere = first(message(queue_uid="another00000"), Verdict.FAILED)
    for each in (exhausted, retrying, reserved, polling, left_to_a_person, delivered, expired, elsewhere):
        message_store.save(each)
    # Then the waiting ones come first, then those given up; the others do not come
    waiting, given_up = [retrying, reserved, polling], [exhausted, left_to_a_person]
    assert message_store.unsettled(PROJECT, QUEUE_UID, limit=10) == (waiting + given_up, None)
    assert message_store.unsettled_count(PROJECT, QUEUE_UID) == 3
    assert message_store.unsettled(OTHER_PROJECT, QUEUE_UID, limit=10) == ([], None)
    # When the waiting ones settle, then they are gone
    message_store.save(tried(retrying, Verdict.DELIVERED))
    message_store.save(tried(polling, Verdict.DELIVERED))
    lapsed = close(reserved, DeliveryState.EXHAUSTED, NOW)
    message_store.save(lapsed)
    assert message_store.unsettled(PROJECT, QUEUE_UID, limit=10) == ([exhausted, lapsed, left_to_a_person], None)
    assert message_store.unsettled_count(PROJECT, QUEUE_UID) == 0


def test_unsettled_deliveries_come_in_pages(message_store: MessageStore) -> None:
    # Given seven waiting deliveries
    waiting = [first(message(), Verdict.FAILED) for _ in range(7)]
    for each in waiting:
        message_store.save(each)
    # When read three at a time
    pages: list[list[Delivery]] = []
    cursor: str | None = None
    while True:
        page, cursor = message_store.unsettled(PROJECT, QUEUE_UID, limit=3, after=cursor)
        pages.append(page)
        if cursor is None:
            break
    # Then the pages join to the whole
    assert pages == [waiting[:3], waiting[3:6], waiting[6:]]
    assert message_store.unsettled_count(PROJECT, QUEUE_UID) == 7


def _due_at(delivery: Delivery) -> int:
    return delivery.due_at or 0


@pytest.mark.parametrize("parts", [1, 4])
def test_every_message_is_in_one_part_with_its_deliveries(message_store: MessageStore, parts: int) -> None:
    # Given messages of which one was tried
    messages = [message(message_id=str(10**18 + number)) for number in range(20)]
    message_store.accept(messages)
    tried = replace(opening(messages[3], messages[3].delivery_subscribers[0]), version=1)
    message_store.save(tried)
    # And one that was deleted
    message_store.delete(messages.pop())
    # When all parts are read
    found = [each for part in range(parts) for each in message_store.outstanding(part, parts)]
    # Then each message is there once, and the one delivery with its message
    assert sorted(each.message_id for each, _ in found) == [each.message_id for each in messages]
    assert [(each.message_id, deliveries) for each, deliveries in found if deliveries] == [
        (messages[3].message_id, [tried])
    ]


def test_a_deleted_message_is_gone_and_its_id_stays_taken(message_store: MessageStore) -> None:
    # Given two messages, one of which the hub made, with a delivery
    kept, gone = full_message(), replace(full_message(), cause="one")
    message_store.accept([kept])
    assert message_store.accept_once(gone) is Once.STORED
    delivery = replace(opening(gone, gone.delivery_subscribers[0]), version=1)
    message_store.save(delivery)
    # When it is deleted, twice
    message_store.delete(gone)
    message_store.delete(gone)
    # Then it is gone with what belongs to it, and the other is there
    assert message_store.message(MessageKey(PROJECT, QUEUE_UID, gone.message_id)) is None
    assert message_store.message_with_deliveries(MessageKey(PROJECT, QUEUE_UID, gone.message_id)) is None
    assert message_store.message(MessageKey(PROJECT, QUEUE_UID, kept.message_id)) == kept
    # And it is not made anew for its cause, nor for another
    assert message_store.accept_once(gone) is Once.KNOWN
    assert message_store.accept_once(replace(gone, cause="another")) is Once.TAKEN
    assert message_store.message(MessageKey(PROJECT, QUEUE_UID, gone.message_id)) is None
    # And nothing comes of deleting what never was
    never = message()
    message_store.delete(never)
    assert message_store.accept_once(replace(never, cause="two")) is Once.STORED
    assert message_store.message(MessageKey(PROJECT, QUEUE_UID, never.message_id)) is not None


def ordered(key: str = "customer #7/ü", **changes: object) -> Message:
    return message(ordering=Ordering(key=key), **changes)


def places(store: MessageStore, *given: Message) -> list[tuple[int, dict[str, str]]]:
    found = [store.message(each.key) for each in given]
    return [(each.ordering.sequence, dict(each.ordering.previous)) for each in found if each and each.ordering]


@pytest.mark.parametrize("together", [True, False])
def test_messages_of_a_key_are_numbered_and_know_who_goes_before_them(
    message_store: MessageStore, together: bool
) -> None:
    # Given three messages of a key, the second for another subscriber as well, the third for that one only
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


def test_a_message_of_a_key_that_is_accepted_again_keeps_its_place(message_store: MessageStore) -> None:
    one, two, three = ordered(), ordered(), ordered()
    message_store.accept([one])
    message_store.accept([one])
    message_store.accept([one, two])
    message_store.accept([three])
    assert [number for number, _ in places(message_store, one, two, three)] == [1, 2, 3]
    # And its id cannot be given to another message
    with pytest.raises(Conflict):
        message_store.accept([replace(one, body=b"another")])


def test_a_message_of_a_key_that_the_hub_makes_is_made_once(message_store: MessageStore) -> None:
    one = ordered(cause="one")
    assert [message_store.accept_once(one) for _ in range(2)] == [Once.STORED, Once.KNOWN]
    assert message_store.accept_once(replace(one, cause="two")) is Once.TAKEN
    two = ordered()
    message_store.accept([two])
    assert [number for number, _ in places(message_store, one, two)] == [1, 2]


def test_more_messages_of_a_key_than_fit_one_step(message_store: MessageStore) -> None:
    given = [ordered() for _ in range(100)]
    message_store.accept(given)
    assert [number for number, _ in places(message_store, *given)] == list(range(1, 101))


def test_what_is_known_of_a_key_is_no_message(message_store: MessageStore) -> None:
    one = ordered()
    message_store.accept([one])
    found = [each for each, _ in message_store.outstanding(0, 1)]
    assert [each.message_id for each in found] == [one.message_id]


def test_what_was_lost_is_put_back_and_what_is_there_stays(message_store: MessageStore) -> None:
    # Given a message that is there with a delivery, and one that is not
    there, lost = message(), message()
    message_store.accept([there])
    newer = tried(first(there, Verdict.FAILED), Verdict.FAILED)
    message_store.save(first(there, Verdict.FAILED))
    message_store.save(newer)
    # When both are put back, a delivery as it stood with its version
    stood = tried(first(lost, Verdict.FAILED), Verdict.FAILED)
    message_store.restore(lost, [stood])
    message_store.restore(there, [first(there, Verdict.FAILED)])
    # Then the one that was lost is as it was, and goes on from there
    assert message_store.message(lost.key) == lost
    assert message_store.delivery(stood.key) == stood
    message_store.save(tried(stood, Verdict.DELIVERED))
    # And the other has not changed
    assert message_store.delivery(newer.key) == newer
    # And a delivery is put back without its message, when that is not known
    alone = first(message(), Verdict.DELIVERED)
    message_store.restore(None, [alone])
    assert message_store.delivery(alone.key) == alone
    assert message_store.message(alone.key.message) is None


def test_messages_that_can_be_listed_are_listed_in_order_without_their_deliveries(message_store: MessageStore) -> None:
    # Given messages of a queue, tried at several subscribers, with one that was deleted and one of another queue
    uid = f"{LISTED}app_1"
    given = [message(queue_uid=uid, subscriber_ids=("a", "b", "c")) for _ in range(130)]
    ids = [each.message_id for each in given]
    message_store.accept([*given, message(queue_uid=f"{uid}2"), message()])
    for each in given:
        for subscriber in each.subscriber_ids:
            message_store.save(tried(opening(each, subscriber), Verdict.FAILED))
    message_store.delete(given.pop(50))
    del ids[50]

    def listed(**span: object) -> list[str]:
        return [each.message_id for each in message_store.listed(PROJECT, uid, **span)]  # type: ignore[arg-type]

    # Then they are listed either way, whole or between two of them, which need not exist
    assert list(message_store.listed(PROJECT, uid)) == given
    assert listed(up=False) == ids[::-1]
    assert listed(above=ids[3], below=ids[100]) == ids[4:100]
    assert listed(above=ids[99], up=False) == ids[:99:-1]
    assert listed(below=str(int(ids[0]) + 1)) == ids[:1]
    assert listed(above=str(int(ids[-1]) - 1), below="9" * 19) == ids[-1:]
    assert listed(above=ids[4], below=ids[4]) == listed(above=ids[5], below=ids[4]) == []
    assert list(message_store.listed(OTHER_PROJECT, uid)) == []


def test_many_messages_are_found_at_once_and_those_that_are_gone_are_missing(message_store: MessageStore) -> None:
    # Given messages of which one was deleted, and one that never was
    here = [message() for _ in range(3)]
    for each in here:
        message_store.accept([each])
    message_store.delete(here[0])
    keys = [each.key for each in [*here, message()]]
    # When they are looked up, one of them twice, then those that are there are found
    assert message_store.messages([*keys, keys[1]]) == {each.key: each for each in here[1:]}
    assert message_store.messages([]) == {}
