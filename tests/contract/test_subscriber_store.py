"""What every store of subscribers does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT, QUEUE_UID, SUBSCRIBER, full_message, message, order

from pushhub.base.errors import Conflict
from pushhub.engine.model.circuit import Circuit, Health, SubscriberKey, failed, succeeded
from pushhub.engine.model.seats import Seats
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.ports import SubscriberStore

KEY = SubscriberKey(project=PROJECT, queue="webhooks/ä", queue_uid=QUEUE_UID, subscriber_id=SUBSCRIBER)
OTHERS = (
    replace(KEY, project=OTHER_PROJECT),
    replace(KEY, queue_uid="another00000"),
    replace(KEY, subscriber_id="b1b2b3b4b5b6"),
)


def an_open_one(key: SubscriberKey = KEY) -> Health:
    return failed(Health(key=key), Circuit(), NOW, tripped=True, probe=False)


def test_a_health_is_found_again_with_every_field(subscriber_store: SubscriberStore) -> None:
    assert subscriber_store.health(KEY) is None
    opened = replace(an_open_one(), probes=3, ramped=2, warnings=1, warned_at=NOW + 5)
    for each in (opened, succeeded(opened, NOW + 9)):
        subscriber_store.save(each)
        assert subscriber_store.health(KEY) == each
    assert [subscriber_store.health(each) for each in OTHERS] == [None] * 3


def test_of_two_who_change_a_health_one_is_told(subscriber_store: SubscriberStore) -> None:
    # Given a health written by one
    subscriber_store.save(an_open_one())
    # When another one also writes it for the first time, then that is a conflict; repeating the same write is not
    with pytest.raises(Conflict):
        subscriber_store.save(replace(an_open_one(), probes=1))
    subscriber_store.save(an_open_one())
    # And the same holds for later versions
    later = succeeded(an_open_one(), NOW + 1)
    subscriber_store.save(later)
    with pytest.raises(Conflict):
        subscriber_store.save(replace(later, changed_at=NOW + 2))
    assert subscriber_store.health(KEY) == later


def test_who_is_looked_after_is_listed_until_it_leaves(subscriber_store: SubscriberStore) -> None:
    for each in (KEY, *OTHERS, KEY):
        subscriber_store.look_after(each)
    assert {*subscriber_store.looked_after()} == {KEY, *OTHERS}
    subscriber_store.leave(KEY)
    subscriber_store.leave(KEY)
    assert {*subscriber_store.looked_after()} == {*OTHERS}
    assert len([*subscriber_store.looked_after()]) == 3


def test_orders_wait_in_their_order_without_their_bodies(subscriber_store: SubscriberStore) -> None:
    # Given forty orders of one subscriber, and some of others
    orders = [order(message(), SUBSCRIBER) for _ in range(40)]
    for number, each in enumerate(orders):
        subscriber_store.add(KEY, each, NOW + number)
    for other in OTHERS:
        subscriber_store.add(other, order(message()), NOW)
    # Then they are listed by how long they have waited, as many as requested
    found = subscriber_store.waiting(KEY, 100)
    assert [each.order.key for each in found] == [each.key for each in orders]
    assert [each.order.key for each in subscriber_store.waiting(KEY, 7)] == [each.key for each in orders[:7]]
    assert {each.order.message for each in found} == {None}
    assert len(subscriber_store.waiting(OTHERS[0], 9)) == 1
    # When some are removed, twice, then the others stay
    subscriber_store.remove(KEY, found[:33])
    subscriber_store.remove(KEY, found[:33])
    assert [each.order.key for each in subscriber_store.waiting(KEY, 100)] == [each.key for each in orders[33:]]


def test_an_order_that_waits_again_is_not_removed_with_its_former_place(subscriber_store: SubscriberStore) -> None:
    given = order(full_message(unicast=False))
    subscriber_store.add(KEY, given, NOW)
    subscriber_store.add(KEY, given, NOW)
    [first] = subscriber_store.waiting(KEY, 9)
    subscriber_store.add(KEY, given, NOW + 1)
    subscriber_store.remove(KEY, [first])
    [again] = subscriber_store.waiting(KEY, 9)
    assert again.order.key == given.key
    assert isinstance(again.order, WorkOrder)


def test_seats_are_found_again_and_of_two_who_take_one_the_later_is_told(subscriber_store: SubscriberStore) -> None:
    assert subscriber_store.seats(KEY) is None
    first = Seats(key=KEY).with_seat("a", 7, outlasts=3)
    subscriber_store.save_seats(first)
    subscriber_store.save_seats(first)
    with pytest.raises(Conflict):
        subscriber_store.save_seats(Seats(key=KEY).with_seat("b", 7, outlasts=0))
    both = first.with_seat("b", 7, outlasts=3)
    subscriber_store.save_seats(both)
    assert subscriber_store.seats(KEY) == both
    assert subscriber_store.seats(OTHERS[0]) is None


def test_who_waits_behind_a_delivery_is_found_until_it_is_let_go(subscriber_store: SubscriberStore) -> None:
    before, following = order(message()), order(message())
    assert subscriber_store.behind(before.key) is None
    subscriber_store.wait_behind(before.key, following)
    subscriber_store.wait_behind(before.key, following)
    found = subscriber_store.behind(before.key)
    assert found is not None
    assert (found.key, found.message) == (following.key, None)
    assert subscriber_store.behind(following.key) is None
    subscriber_store.let_go(before.key)
    subscriber_store.let_go(before.key)
    assert subscriber_store.behind(before.key) is None


def test_one_project_is_told_of_its_own_that_are_looked_after(subscriber_store: SubscriberStore) -> None:
    for each in (KEY, *OTHERS):
        subscriber_store.look_after(each)
    assert {*subscriber_store.looked_after_of(PROJECT, 10)} == {KEY, OTHERS[1], OTHERS[2]}
    assert len(subscriber_store.looked_after_of(PROJECT, 2)) == 2
    assert subscriber_store.looked_after_of(PROJECT[:-1], 10) == []


def test_what_waits_is_counted_so_far(subscriber_store: SubscriberStore) -> None:
    for number in range(12):
        subscriber_store.add(KEY, order(message()), NOW + number)
    subscriber_store.add(OTHERS[0], order(message()), NOW)
    assert subscriber_store.count_waiting(KEY, 1_000) == 12
    assert subscriber_store.count_waiting(KEY, 5) == 5
    assert subscriber_store.count_waiting(OTHERS[1], 5) == 0


def test_who_is_slow_is_listed_until_its_time_is_over(subscriber_store: SubscriberStore) -> None:
    # Given three subscribers noted as slow, one of them twice
    keys = [(PROJECT, QUEUE_UID, str(number)) for number in range(3)]
    assert subscriber_store.slow(NOW, 10) == {}
    subscriber_store.note_slow(keys[:2], NOW + 120_000)
    subscriber_store.note_slow(keys[1:], NOW + 600_000)
    # Then all are listed, at least until the given time
    listed = subscriber_store.slow(NOW, 10)
    assert {*listed} == {*keys}
    assert all(listed[key] >= NOW + 600_000 for key in keys[1:])
    # And if there are too many, those noted last
    assert {*subscriber_store.slow(NOW, 2)} == {*keys[1:]}
    # And none after its time
    assert {*subscriber_store.slow(NOW + 300_000, 10)} == {*keys[1:]}
    assert subscriber_store.slow(NOW + 900_000, 10) == {}
