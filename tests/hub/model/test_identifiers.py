"""Which messages count as duplicates for a mapping."""

from __future__ import annotations

from typing import Any

from pushhub.hub.model.identifiers import identity_of

BY_NUMBER = {"order_number": "payload.order.number", "status": "payload.order.status"}


def message(**order: Any) -> dict[str, Any]:
    return {"message": "order:new", "message_id": "5" * 24, "payload": {"order": order}}


def test_the_same_values_are_the_same_message_whatever_else_differs() -> None:
    first = identity_of(BY_NUMBER, message(number="R1", status="complete", total=1))
    again = identity_of(dict(reversed(BY_NUMBER.items())), message(number="R1", status="complete", total=2))
    other = identity_of(BY_NUMBER, message(number="R1", status="canceled"))
    assert first is not None
    assert first == again
    assert first != other


def test_values_do_not_run_into_one_another() -> None:
    ends = identity_of(BY_NUMBER, message(number="R1", status="2"))
    begins = identity_of(BY_NUMBER, message(number="R12", status=""))
    assert ends != begins


def test_a_star_takes_all_values_into_the_identity() -> None:
    by_sku = {"skus": "payload.order.items.*.sku"}
    one = identity_of(by_sku, message(items=[{"sku": "A"}, {"sku": "B"}]))
    assert one is not None
    assert one != identity_of(by_sku, message(items=[{"sku": "AB"}]))


def test_without_identifiers_or_values_there_is_no_identity() -> None:
    assert identity_of({}, message(number="R1")) is None
    assert identity_of(BY_NUMBER, message()) is None
    assert identity_of(BY_NUMBER, message(number=None, status="")) is None
    assert identity_of(BY_NUMBER, message(number="R1")) is not None
