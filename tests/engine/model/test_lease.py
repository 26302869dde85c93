"""What a lease says of itself; what a run does with leases is in test_run.py."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.contract.samples import message

from pushhub.engine.model.flow import PART_PER_S, FlowKey, Limits, Pace, Terms
from pushhub.engine.model.lease import KEPT, Lease
from pushhub.engine.model.received import Loaded, Received
from pushhub.engine.model.work import WorkOrder

TWO_PARTS = Limits(rate_per_s=PART_PER_S + 1)


def a_lease(limits: Limits, *, part: int = 0) -> Lease:
    return Lease(
        key=FlowKey.of_subscriber("p", "u", "s", part),
        addressee=("p", "u", "s"),
        queue="orders",
        terms=Terms(limits=limits, longest_ms=10_000),
        pace=Pace(limits.of_a_part, 0),
        until=10**6,
        woken_at=0,
        looks_at=0,
    )


def loaded() -> Loaded:
    order = WorkOrder.carrying(message(subscriber_ids=("s",)), "s")
    return Loaded(Received(order=order, sqs_id="1", receipt_handle="h", received_at=0), None)


def test_an_order_may_wait_in_the_memory_of_a_lease() -> None:
    assert a_lease(Limits(concurrency=1)).accepts


@pytest.mark.parametrize("happens", [Lease.close, Lease.lose, Lease.note_backlog, Lease.expect_backlog])
def test_no_order_waits_where_nothing_begins_or_older_ones_are_in_the_backlog(happens: Callable[[Lease], None]) -> None:
    # Given a lease, when one thing alone speaks against it
    lease = a_lease(Limits(concurrency=1))
    happens(lease)

    # Then no further order waits in its memory
    assert not lease.accepts


def test_no_order_waits_for_a_part_that_the_rate_has_no_more() -> None:
    # Given the second part of a rate, when the rate has only one
    lease = a_lease(TWO_PARTS, part=1)
    assert lease.accepts
    lease.change(Terms(limits=Limits(rate_per_s=1), longest_ms=10_000), 0)

    # Then no further order waits in its memory
    assert not lease.accepts


def test_only_so_many_orders_wait_in_memory() -> None:
    # Given as many orders as a lease keeps for one attempt at a time
    lease = a_lease(Limits(concurrency=1))
    for _ in range(KEPT - 1):
        lease.add(loaded())
    assert lease.accepts
    lease.add(loaded())

    # Then there is no place for another
    assert not lease.accepts
