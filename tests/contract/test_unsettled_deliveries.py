"""What every list of unsettled deliveries does."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from tests.contract.samples import (
    NOW,
    OTHER_PROJECT,
    PROJECT,
    QUEUE_UID,
    first,
    message,
    tried,
)

from pushhub.base.verdict import Verdict
from pushhub.engine.attempts.ports import Unsettled
from pushhub.engine.model.backoff import FixedDelay
from pushhub.engine.model.delivery import Delivery, DeliveryState, close, opening
from pushhub.engine.ports import Deliveries


class Failing(Deliveries, Unsettled, Protocol):
    """Deliveries, and the list of unsettled ones."""


def test_an_untried_delivery_can_be_scheduled(message_store: Failing) -> None:
    # Given a message with a delay of days, whose delivery is scheduled by dispatch
    given = message(due_at=NOW + 86_400_000)
    scheduled = replace(opening(given, given.subscriber_ids[0]), version=1, scheduled=True)
    message_store.save(scheduled)
    # Then it does not count as failing
    assert message_store.unsettled_counts(PROJECT, [QUEUE_UID]) == [0]


def test_unsettled_deliveries_are_those_that_failed_and_wait_then_the_exhausted(message_store: Failing) -> None:
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
    # Then the waiting ones come first, then those given up; the others are not listed
    waiting, given_up = [retrying, reserved, polling], [exhausted, left_to_a_person]
    assert message_store.unsettled(PROJECT, QUEUE_UID, limit=10) == (waiting + given_up, None)
    assert message_store.unsettled_counts(PROJECT, [QUEUE_UID]) == [3]
    assert message_store.unsettled(OTHER_PROJECT, QUEUE_UID, limit=10) == ([], None)
    # And those given up can be listed by themselves, in pages
    assert message_store.given_up(PROJECT, QUEUE_UID, limit=10) == (given_up, None)
    page, cursor = message_store.given_up(PROJECT, QUEUE_UID, limit=1)
    assert (page, message_store.given_up(PROJECT, QUEUE_UID, limit=1, after=cursor)) == (
        given_up[:1],
        (given_up[1:], None),
    )
    # When the waiting ones are settled, then they are no longer listed
    message_store.save(tried(retrying, Verdict.DELIVERED))
    message_store.save(tried(polling, Verdict.DELIVERED))
    lapsed = close(reserved, DeliveryState.EXHAUSTED, NOW)
    message_store.save(lapsed)
    assert message_store.unsettled(PROJECT, QUEUE_UID, limit=10) == ([exhausted, lapsed, left_to_a_person], None)
    assert message_store.unsettled_counts(PROJECT, [QUEUE_UID]) == [0]


def test_unsettled_deliveries_come_in_pages(message_store: Failing) -> None:
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
    # Then the pages together are the whole list
    assert pages == [waiting[:3], waiting[3:6], waiting[6:]]
    assert message_store.unsettled_counts(PROJECT, [QUEUE_UID]) == [7]


def test_many_that_fail_within_seconds_are_one_list_in_pages(message_store: Failing) -> None:
    # Given more deliveries than a store may care to keep in one place
    waiting = [first(message(), Verdict.FAILED) for _ in range(45)]
    for each in waiting:
        message_store.save(each)
    # When read in pages while some of them arrive
    page, cursor = message_store.unsettled(PROJECT, QUEUE_UID, limit=20)
    message_store.save(tried(waiting[30], Verdict.DELIVERED))
    rest, end = message_store.unsettled(PROJECT, QUEUE_UID, limit=30, after=cursor)
    # Then the others come, oldest first, and are counted
    assert (page + rest, end) == (waiting[:30] + waiting[31:], None)
    assert message_store.unsettled_counts(PROJECT, [QUEUE_UID]) == [44]
