"""Single steps of the delivery state machine, with the IronMQ v3 rule each one follows."""

from __future__ import annotations

import pytest
from tests.contract.samples import message

from pushhub.base.errors import Forbidden
from pushhub.base.verdict import Answer, Verdict, iron_verdict
from pushhub.engine.model.backoff import FixedDelay
from pushhub.engine.model.delivery import (
    Delivery,
    DeliveryState,
    Step,
    acknowledge,
    after_attempt,
    close,
    merge_attempt,
    next_step,
    opening,
    retries_remaining,
)

START = 1_795_000_000_000
POLICY = FixedDelay(retries=2, delay_s=60)


def a_delivery(subscribers: tuple[str, ...] = ("s0",), *, unicast: bool = False, message_id: str = "0") -> Delivery:
    ids = {"project": "p", "queue": "q", "queue_uid": "u", "message_id": message_id}
    of = message(**ids, body=b"x", subscriber_ids=subscribers, unicast=unicast)
    return opening(of, "*" if unicast else subscribers[0])


def after(delivery: Delivery, status: int, at: int = START, policy: FixedDelay = POLICY) -> Delivery:
    answer = Answer(status_code=status, message=str(status), started_at=at, finished_at=at + 100)
    return after_attempt(
        delivery, answer, iron_verdict(answer), policy=policy, reserve_ms=policy.delay_s * 1000, jitter=0
    )


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (200, Verdict.DELIVERED),
        (201, Verdict.DELIVERED),
        (204, Verdict.DELIVERED),
        (299, Verdict.DELIVERED),
        (202, Verdict.RESERVED),
        (301, Verdict.FAILED),
        (304, Verdict.FAILED),
        (404, Verdict.FAILED),
        (500, Verdict.FAILED),
        (0, Verdict.FAILED),
        (100, Verdict.FAILED),
    ],
)
def test_a_status_is_read_as_ironmq_reads_it(status: int, verdict: Verdict) -> None:
    assert iron_verdict(Answer(status_code=status, message="", started_at=0, finished_at=0)) is verdict


def test_a_2xx_that_could_not_be_read_is_a_failure() -> None:
    answer = Answer(status_code=200, message="", error_class="bad_response", started_at=0, finished_at=0)
    assert iron_verdict(answer) is Verdict.FAILED


def test_retries_are_spaced_from_the_end_of_the_try_and_then_exhausted() -> None:
    # Given a delivery that fails each time
    first = after(a_delivery(), 500)
    assert (first.state, first.due_at) == (DeliveryState.RETRYING, START + 100 + 60_000)
    assert retries_remaining(first, POLICY) == 2
    # When its retries are used up
    second = after(first, 500)
    assert retries_remaining(second, POLICY) == 1
    third = after(second, 500)
    # Then it is exhausted after the first try and two retries
    assert (third.state, third.tries, third.due_at) == (DeliveryState.EXHAUSTED, 3, None)
    assert retries_remaining(third, POLICY) == 0


def test_unicast_asks_the_next_subscriber_at_once_and_counts_a_round_as_one_try() -> None:
    # Given three subscribers of a unicast queue, the first two failing
    delivery = a_delivery(("a", "b", "c"), unicast=True)
    one = after(delivery, 500)
    assert (one.target, one.tries, one.due_at) == ("b", 0, START + 100)
    two = after(one, 500)
    assert (two.target, two.tries) == ("c", 0)
    # When the third accepts, it is delivered in the first try
    done = after(two, 200)
    assert (done.state, done.tries, done.attempts) == (DeliveryState.DELIVERED, 1, 3)
    # When it fails too, the whole round is retried after the delay
    failed = after(two, 500)
    assert (failed.target, failed.tries, failed.due_at) == ("a", 1, START + 100 + 60_000)


def test_a_202_stops_the_round_and_reserves_for_the_retry_delay() -> None:
    reserved = after(a_delivery(("a", "b"), unicast=True), 202)
    assert (reserved.state, reserved.tries, reserved.due_at) == (DeliveryState.RESERVED, 1, START + 100 + 60_000)
    assert next_step(reserved, POLICY, START + 60_099).step is Step.WAIT
    assert next_step(reserved, POLICY, START + 60_100).step is Step.ATTEMPT


def test_an_unacknowledged_202_on_the_last_try_is_exhausted_when_it_lapses() -> None:
    last = after(after(after(a_delivery(), 500), 500), 202)
    seen = next_step(last, POLICY, last.due_at or 0)
    assert (seen.step, seen.closes_as) == (Step.CLOSE, DeliveryState.EXHAUSTED)


@pytest.mark.parametrize("state", [DeliveryState.EXPIRED, DeliveryState.CANCELLED, DeliveryState.EXHAUSTED])
@pytest.mark.parametrize("attempt", [1, 2])
def test_what_is_settled_otherwise_cannot_be_acknowledged(state: DeliveryState, attempt: int) -> None:
    settled = close(after(a_delivery(), 202), state, START + 1000)
    with pytest.raises(Forbidden):
        acknowledge(settled, "s0", attempt, START + 2000)


def test_success_of_a_duplicate_attempt_still_counts_and_its_failure_does_not() -> None:
    begun = a_delivery()
    stored = after(begun, 500)
    success = Answer(status_code=200, message="OK", started_at=START, finished_at=START + 300)
    folded = merge_attempt(stored, begun, success, Verdict.DELIVERED)
    assert folded is not None
    assert (folded.state, folded.tries) == (DeliveryState.DELIVERED, 1)
    assert merge_attempt(stored, begun, success, Verdict.FAILED) is None
    assert merge_attempt(folded, begun, success, Verdict.DELIVERED) is None


def test_it_expires_when_its_time_is_over_even_while_waiting_longer() -> None:
    waiting = after(a_delivery(), 500, policy=FixedDelay(retries=100, delay_s=86_400))
    far = START + 604_800_000
    assert next_step(waiting, POLICY, far - 86_400_000).step is Step.ATTEMPT
    patient = close_to_expiry(waiting, far)
    assert next_step(patient, POLICY, far - 1).step is Step.WAIT
    assert next_step(patient, POLICY, far - 1).wait_ms == 1
    assert next_step(patient, POLICY, far).closes_as is DeliveryState.EXPIRED


def close_to_expiry(delivery: Delivery, far: int) -> Delivery:
    """One more failure just before the expiry, with a wait that reaches beyond it."""
    return after(delivery, 500, at=far - 1000, policy=FixedDelay(retries=100, delay_s=86_400))
