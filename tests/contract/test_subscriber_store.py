"""What every store of subscribers does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT, QUEUE_UID, SUBSCRIBER, full_message, message, order

from pushhub.base.errors import Conflict
from pushhub.engine.model.circuit import Circuit, Health, SubscriberKey, failed, succeeded
from pushhub.engine.model.flow import FlowKey, LeaseState, Limits, Terms
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.stores import SubscriberStore

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
        subscriber_store.look_after(each, NOW)
    assert {*subscriber_store.looked_after()} == {KEY, *OTHERS}
    # One that was listed again meanwhile stays
    subscriber_store.leave(KEY, NOW)
    assert {*subscriber_store.looked_after()} == {KEY, *OTHERS}
    subscriber_store.leave(KEY, NOW + 1)
    subscriber_store.leave(KEY, NOW + 1)
    assert {*subscriber_store.looked_after()} == {*OTHERS}
    assert len([*subscriber_store.looked_after()]) == 3


def test_orders_wait_in_their_order_without_their_bodies(subscriber_store: SubscriberStore) -> None:
    # Given forty orders of one subscriber, and some of others
    orders = [order(message(), SUBSCRIBER) for _ in range(40)]
    for number, each in enumerate(orders):
        subscriber_store.add(KEY, each, NOW + number)
    for other in OTHERS:
        subscriber_store.add(other, order(message(project=other.project)), NOW)
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


FLOW = FlowKey.of_subscriber(PROJECT, QUEUE_UID, SUBSCRIBER)
OTHER_FLOWS = (FLOW._replace(project=OTHER_PROJECT), FLOW._replace(name=f"{FLOW.name}2"))
TERMS = Terms(limits=Limits(rate_per_s=20 / 3, concurrency=7), longest_ms=15_000)
SLOWER = Terms(limits=Limits(rate_per_s=0.1), longest_ms=9_000)


def test_one_has_the_turn_until_it_is_given_back_or_over(subscriber_store: SubscriberStore) -> None:
    store = subscriber_store
    # Given a turn that nobody ever had
    assert store.flow(FLOW) is None
    assert store.take_lease(FLOW, "a", TERMS, now=NOW, until=NOW + 100) == LeaseState(terms=TERMS)
    assert store.flow(FLOW) == LeaseState(terms=TERMS, until=NOW + 100, places=1)
    # Then nobody else gets it before its time is over, nor after it was extended
    assert store.take_lease(FLOW, "b", TERMS, now=NOW + 99, until=NOW + 999) is None
    extended = store.take_lease(FLOW, "a", TERMS, now=NOW + 50, until=NOW + 200)
    assert extended == LeaseState(terms=TERMS, until=NOW + 100, places=1)
    assert store.take_lease(FLOW, "b", TERMS, now=NOW + 100, until=NOW + 999) is None
    # And who gets it when it is over is told that it was not given back
    assert store.take_lease(FLOW, "b", SLOWER, now=NOW + 200, until=NOW + 300) == LeaseState(
        terms=SLOWER, until=NOW + 200, places=1
    )
    # When the former one gives it back, then that is void
    store.give_back(FLOW, "a", mark=5, places=6)
    assert store.take_lease(FLOW, "c", TERMS, now=NOW + 201, until=NOW + 999) is None
    # When its holder does, twice, then anybody gets it, and the state
    for _ in range(2):
        store.give_back(FLOW, "b", mark=NOW + 7, places=3, woken_at=NOW + 9)
    left = LeaseState(terms=SLOWER, mark=NOW + 7, places=3, woken_at=NOW + 9)
    assert store.flow(FLOW) == left
    assert store.take_lease(FLOW, "c", SLOWER, now=NOW + 202, until=NOW + 999) == left
    store.give_back(FLOW, "c", mark=NOW + 8, places=1)
    assert store.flow(FLOW) == replace(left, mark=NOW + 8, places=1)
    assert [store.flow(each) for each in OTHER_FLOWS] == [None, None]


def test_only_one_call_is_on_its_way(subscriber_store: SubscriberStore) -> None:
    assert not subscriber_store.note_wake_up(FLOW, NOW, NOW + 5)
    subscriber_store.take_lease(FLOW, "a", TERMS, now=NOW, until=NOW + 100)
    assert subscriber_store.note_wake_up(FLOW, NOW, NOW + 5)
    assert not subscriber_store.note_wake_up(FLOW, NOW + 4, NOW + 9)
    assert subscriber_store.note_wake_up(FLOW, NOW + 5, NOW + 9)
    state = subscriber_store.flow(FLOW)
    assert state is not None
    assert state.woken_at == NOW + 9


def test_orders_stand_in_line_in_their_order_until_they_step_out(subscriber_store: SubscriberStore) -> None:
    store = subscriber_store
    # Given places of one, of many, and of another line
    orders = [replace(order(message(), SUBSCRIBER), manual=number % 7 == 3) for number in range(130)]
    bare = [replace(each, message=None) for each in orders]
    store.add_to_backlog(FLOW, orders[:1], NOW)
    store.add_to_backlog(FLOW, orders[1:101], NOW + 1)
    store.add_to_backlog(FLOW, orders[101:], NOW + 2)
    for other in OTHER_FLOWS:
        store.add_to_backlog(
            other, [replace(each, key=each.key._replace(project=other.project)) for each in orders[:2]], NOW
        )
    # Then they are found in their order, without their messages
    found = store.backlog(FLOW, 9)
    assert [each for place in found for each in place.orders] == bare
    assert store.backlog(FLOW, 2) == found[:2]
    # When some leave, twice, then the rest keeps its place
    for _ in range(2):
        store.remove_from_backlog(FLOW, found[0].place, ())
        store.remove_from_backlog(FLOW, found[1].place, found[1].orders[90:])
    rest = store.backlog(FLOW, 9)
    assert [each.place for each in rest] == [each.place for each in found[1:]]
    assert [each for place in rest for each in place.orders] == bare[91:]
    assert [len(store.backlog(each, 9)) for each in OTHER_FLOWS] == [1, 1]


def test_those_that_stand_aside_are_out_of_reach_until_their_time(subscriber_store: SubscriberStore) -> None:
    store = subscriber_store
    orders = [replace(order(message(), SUBSCRIBER), message=None) for _ in range(3)]
    # Given orders that stand aside, and one that steps into line later, by a clock that is ahead
    place = store.set_aside(FLOW, orders[:2], NOW + 100)
    store.add_to_backlog(FLOW, orders[2:], NOW + 5_000)
    # Then only that one is within reach before their time, and they are behind it afterwards
    assert [each.orders for each in store.backlog(FLOW, 9, now=NOW + 99)] == [(orders[2],)]
    assert [each.orders for each in store.backlog(FLOW, 9, now=NOW + 101)] == [(orders[2],), tuple(orders[:2])]
    assert [each.place for each in store.backlog(FLOW, 9)][1:] == [place]
    # And they leave like others
    store.remove_from_backlog(FLOW, place, orders[:1])
    assert [each.orders for each in store.backlog(FLOW, 9)][1:] == [tuple(orders[:1])]
    store.remove_from_backlog(FLOW, place, ())
    assert len(store.backlog(FLOW, 9)) == 1


def test_lines_are_tended_until_they_are_taken_off_the_list(subscriber_store: SubscriberStore) -> None:
    for number, each in enumerate((FLOW, *OTHER_FLOWS)):
        subscriber_store.list_backlog(each, NOW + number)
    assert {*subscriber_store.listed_backlogs()} == {(FLOW, NOW), (OTHER_FLOWS[0], NOW + 1), (OTHER_FLOWS[1], NOW + 2)}
    # When one was entered again since, then it stays
    subscriber_store.list_backlog(FLOW, NOW + 9)
    subscriber_store.unlist_backlog(FLOW, NOW)
    for _ in range(2):
        subscriber_store.unlist_backlog(OTHER_FLOWS[0], NOW + 1)
    assert {*subscriber_store.listed_backlogs()} == {(FLOW, NOW + 9), (OTHER_FLOWS[1], NOW + 2)}


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


@pytest.mark.parametrize("by_itself", [True, False])
def test_an_order_that_waits_goes_on_by_itself_or_is_sent_on_and_not_both(
    subscriber_store: SubscriberStore, by_itself: bool
) -> None:
    before, following = order(message()), order(message())
    assert not subscriber_store.take(before.key, following, by_itself=by_itself)
    subscriber_store.wait_behind(before.key, following)
    # When both want it to go on, then the first does, however often it asks
    assert subscriber_store.take(before.key, following, by_itself=by_itself)
    assert not subscriber_store.take(before.key, following, by_itself=not by_itself)
    assert subscriber_store.take(before.key, following, by_itself=by_itself)
    found = subscriber_store.behind(before.key)
    assert found is not None
    assert found.key == following.key
    # And what waits there anew is not taken
    subscriber_store.let_go(before.key)
    assert not subscriber_store.take(before.key, following, by_itself=by_itself)
    subscriber_store.wait_behind(before.key, following)
    assert subscriber_store.take(before.key, following, by_itself=not by_itself)


def test_one_project_is_told_of_the_health_of_its_own(subscriber_store: SubscriberStore) -> None:
    healths = {key: an_open_one(key) for key in (KEY, *OTHERS)}
    for each in healths.values():
        subscriber_store.save(each)
    of_project = {key: each for key, each in healths.items() if key.project == PROJECT}
    assert {each.key: each for each in subscriber_store.healths_of(PROJECT)} == of_project
    assert [*subscriber_store.healths_of(PROJECT[:-1])] == []
    # And many are read at once, those that never failed being missing
    missing = replace(KEY, subscriber_id="c1c2c3c4c5c6")
    assert subscriber_store.healths([*of_project, missing, KEY]) == of_project
    assert subscriber_store.healths([]) == {}


def test_the_messages_that_wait_are_told_so_far(subscriber_store: SubscriberStore) -> None:
    waiting = [order(message(message_id=f"1{number:018d}")) for number in range(12)]
    for number, each in enumerate(waiting):
        subscriber_store.add(KEY, each, NOW + number)
    # One that came to wait again is told once
    subscriber_store.add(KEY, waiting[0], NOW + 99)
    subscriber_store.add(OTHERS[0], order(message(project=OTHERS[0].project)), NOW)
    ids = [each.key.message_id for each in waiting]
    assert sorted(subscriber_store.waiting_ids(KEY, 1_000)) == ids
    assert {*subscriber_store.waiting_ids(KEY, 5)} < {*ids}
    assert len(subscriber_store.waiting_ids(KEY, 5)) == 5
    assert subscriber_store.waiting_ids(OTHERS[1], 5) == []


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
