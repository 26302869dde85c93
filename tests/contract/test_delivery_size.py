"""What a delivery remembers of its answers does not make its writes dearer: a write unit is a KB."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contract.samples import message

from pushhub.base.errors import Unreadable
from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.model.backoff import FixedDelay
from pushhub.engine.model.delivery import Delivery, after_attempt, opening
from pushhub.engine.store._delivery_items import decode_delivery, encode_delivery

AT = 1_795_000_000_000


def size_of(value: dict[str, Any]) -> int:
    """Bytes of an attribute, as DynamoDB counts them."""
    ((kind, found),) = value.items()
    if kind == "M":
        return 3 + sum(1 + len(name) + size_of(each) for name, each in found.items())
    if kind == "L":
        return 3 + sum(1 + size_of(each) for each in found)
    return {"S": lambda: len(found.encode()), "N": lambda: len(found) // 2 + 2}.get(kind, lambda: 1)()


def units(delivery: Delivery) -> int:
    return -(-sum(len(name) + size_of(each) for name, each in encode_delivery(delivery).items()) // 1024)


def tried(times: int, body: str, verdict: Verdict = Verdict.FAILED) -> Delivery:
    ids = {"project": "5c1f0a9e2b7d4c3f8a6e1d20", "queue": "orders", "queue_uid": "0123456789abcdef"}
    delivery = opening(message(**ids, message_id="1" + "0" * 18, subscriber_ids=("s-01234567",)), "s-01234567")
    for each in range(times):
        at = AT + 60_000 * each
        answer = Answer(
            status_code=503 if verdict is Verdict.FAILED else 200,
            message="Service Unavailable",
            body=(f"{each} {body}" if body else "").encode(),
            started_at=at,
            finished_at=at + 100,
            bytes_out=300,
            bytes_in=300,
        )
        delivery = after_attempt(
            delivery,
            answer,
            verdict,
            policy=FixedDelay(retries=100, delay_s=60),
            reserve_ms=0,
            jitter=0,
            subscriber="shop",
            url="https://shop.example.com/hooks/orders",
        )
    return delivery


@pytest.mark.parametrize("times", range(1, 12))
def test_answers_cost_no_further_write_unit(times: int) -> None:
    with_answers = tried(times, "x" * 4000)
    assert units(with_answers) == units(tried(times, "")) == 1
    assert decode_delivery(encode_delivery(with_answers)) == with_answers


def test_a_delivery_that_arrives_at_once_keeps_its_answer_for_nothing() -> None:
    arrived = tried(1, "x" * 4000, Verdict.DELIVERED)
    assert arrived.last is not None
    assert len(arrived.last.answer) == 300
    assert units(arrived) == 1


def test_however_many_are_made_answers_cost_one_write_unit_at_most() -> None:
    for times in range(12, 80):
        assert units(tried(times, "x" * 4000)) - units(tried(times, "")) <= 1


@pytest.mark.parametrize("times", ["9" * 12, "-1", "0"])
def test_more_answers_than_there_can_be_attempts_are_not_read(times: str) -> None:
    # Given an item of a few bytes that says that one answer came very often, as an import could bring it
    item = encode_delivery(tried(2, "down"))
    item["answers"]["L"][1] = {"N": times}
    # Then it is unreadable, and takes neither time nor memory
    with pytest.raises(Unreadable):
        decode_delivery(item)
