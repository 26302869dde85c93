"""What one run has in hand: one order for each delivery, and when its SQS message may go."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.samples import message

from pushhub.engine.model.actions import States
from pushhub.engine.model.delivery import Delivery, opening
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.ledger import Ledger
from pushhub.engine.model.received import Received
from pushhub.engine.model.work import WorkOrder

MESSAGE = message(message_id="1", subscriber_ids=("s",))
ORDER = WorkOrder.carrying(MESSAGE, "s")


def an_order(sqs_id: str = "sqs", *, receives: int = 1, **changes: object) -> Received:
    order: WorkOrder = replace(ORDER, **changes)  # type: ignore[arg-type]
    return Received(order=order, sqs_id=sqs_id, receipt_handle=f"h-{sqs_id}", received_at=0, receive_count=receives)


def stored(version: int = 3) -> dict[DeliveryKey, Delivery]:
    return {ORDER.key: replace(opening(MESSAGE, "s"), version=version)}


def admitted(ledger: Ledger, *batch: Received, version: int | None = None) -> list[Received]:
    """Take a batch in hand; returns what has to wait."""
    return ledger.admit(batch, States(stored(version) if version else {}, {}, {}, 0), set())


@pytest.mark.parametrize(
    ("version", "receives", "taken"), [(3, 1, True), (2, 1, False), (4, 1, False), (2, 2, True), (None, 1, True)]
)
def test_an_order_for_a_delivery_as_it_no_longer_is_is_void_unless_it_may_have_changed_it(
    version: int | None, receives: int, taken: bool
) -> None:
    ledger = Ledger([])
    assert admitted(ledger, an_order(version=version, receives=receives), version=3) == []
    assert bool(ledger.waiting) is taken


def test_an_order_of_a_delivery_that_was_never_stored_is_not_void() -> None:
    ledger = Ledger([])
    admitted(ledger, an_order(version=3))
    assert len(ledger.waiting) == 1


def test_a_void_order_leaves_another_one_of_the_same_delivery() -> None:
    ledger = Ledger([])
    admitted(ledger, an_order(version=2), an_order(version=3), version=3)
    assert [each.received.order.version for each in ledger.waiting] == [3]


def test_the_automatic_order_goes_before_the_one_that_a_person_asked_for_which_waits() -> None:
    ledger, manual, automatic = Ledger([]), an_order("a", manual=True), an_order("b")
    assert admitted(ledger, manual, automatic) == [manual]
    assert [each.received for each in ledger.waiting] == [automatic]


@pytest.mark.parametrize(("in_hand", "meanwhile"), [(True, False), (True, True), (False, True)])
def test_another_order_waits_if_either_is_what_a_person_asked_for(in_hand: bool, meanwhile: bool) -> None:
    ledger = Ledger([])
    admitted(ledger, an_order("a", manual=in_hand))
    later = an_order("b", manual=meanwhile)
    assert admitted(ledger, later) == [later]
    assert ledger.release(ORDER.key) is None


def test_another_automatic_order_is_kept_beside_the_first_and_of_several_the_one_for_any_state() -> None:
    ledger = Ledger([])
    admitted(ledger, an_order("a"))
    for sqs_id, version in (("b", None), ("c", 7)):
        assert admitted(ledger, an_order(sqs_id, version=version)) == []
    duplicate = ledger.release(ORDER.key)
    assert duplicate is not None
    assert duplicate.sqs_id == "b"


def test_another_order_waits_while_the_one_in_hand_is_only_in_a_backlog() -> None:
    ledger, other = Ledger([]), an_order("b")
    admitted(ledger, an_order("a"))
    assert ledger.admit([other], States({}, {}, {}, 0), {ORDER.key}) == [other]


def test_a_message_that_the_run_received_is_over_once_all_its_orders_are_done() -> None:
    # Given two orders that share a message, and a duplicate of the first in another one
    ledger = Ledger([])
    second = WorkOrder.carrying(replace(MESSAGE, message_id="2"), "s")
    batch = [an_order("a"), replace(an_order("a"), order=second), an_order("b")]
    ledger.receive(batch)
    admitted(ledger, *batch)
    # Then the message ends with both, and the other one with its delivery
    ledger.settle(batch[:1])
    assert ledger.pop_finished() == {}
    ledger.release(ORDER.key)
    assert ledger.pop_finished() == {"b": "h-b"}
    ledger.settle(batch[1:2])
    assert ledger.pop_finished() == {"a": "h-a"}
    assert ledger.pop_finished() == {}
