"""What the hub protocol adds to a delivery's life: polls, postponements, being held and resumed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.base.errors import Forbidden
from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.model.backoff import Exponential
from pushhub.engine.model.delivery import (
    Delivery,
    DeliveryState,
    Step,
    after_attempt,
    close,
    merge_attempt,
    next_step,
    opening,
    resume,
)
from pushhub.engine.model.message import Message

START = 1_795_000_000_000
FOREVER = START + 10**12
POLICY = Exponential(base_s=30, cap_s=3600, holds=True)
ONCE = Exponential(base_s=30, cap_s=3600, max_attempts=1, holds=True)
URL = "https://acme.example/status/1"


def a_delivery(**changes: object) -> Delivery:
    message = Message(
        project="p" * 24,
        queue="hub/x",
        queue_uid="x",
        message_id="1911850762384703488",
        body=b"{}",
        body_size=2,
        accepted_at=START,
        due_at=START,
        expires_at=FOREVER,
        subscriber_ids=("s",),
    )
    return replace(opening(message, "s"), **changes)  # type: ignore[arg-type]


def an_answer(finished_at: int, status: int = 200) -> Answer:
    return Answer(status_code=status, message="", started_at=finished_at - 10, finished_at=finished_at)


def after(
    delivery: Delivery,
    verdict: Verdict,
    *,
    at: int = START + 1000,
    wait_s: int = 0,
    update_url: str | None = None,
    policy: Exponential = POLICY,
) -> Delivery:
    return after_attempt(
        delivery,
        an_answer(at),
        verdict,
        policy=policy,
        reserve_ms=wait_s * 1000,
        jitter=0.0,
        update_url=update_url,
    )


def test_an_asynchronous_answer_is_polled_after_its_delay_and_not_before() -> None:
    polling = after(a_delivery(), Verdict.POLL, wait_s=6000, update_url=URL)
    assert polling.state is DeliveryState.POLLING
    assert polling.update_url == URL
    assert polling.last is not None
    assert not polling.last.poll
    assert next_step(polling, POLICY, START + 1000 + 5_999_999).step is Step.WAIT
    assert next_step(polling, POLICY, START + 1000 + 6_000_000).step is Step.ATTEMPT


def test_a_failed_poll_backs_off_and_polls_again() -> None:
    polling = after(a_delivery(), Verdict.POLL, wait_s=10, update_url=URL)
    first = after(polling, Verdict.FAILED, at=START + 20_000)
    second = after(first, Verdict.FAILED, at=START + 60_000)
    assert first.state is DeliveryState.RETRYING
    assert (first.update_url, second.update_url) == (URL, URL)
    assert first.due_at == START + 50_000
    assert second.due_at == START + 120_000
    assert second.last is not None
    assert second.last.poll


def test_failures_before_an_asynchronous_answer_do_not_count_afterwards() -> None:
    failed = replace(a_delivery(), tries=7, attempts=7, state=DeliveryState.RETRYING, version=7)
    polling = after(failed, Verdict.POLL, wait_s=1, update_url=URL)
    assert polling.tries == 0
    assert polling.attempts == 8
    assert after(polling, Verdict.FAILED, at=START + 9000).due_at == START + 9000 + 30_000


def test_a_poll_may_move_on_to_another_address_and_end_in_success() -> None:
    polling = after(a_delivery(), Verdict.POLL, wait_s=1, update_url=URL)
    moved = after(polling, Verdict.POLL, wait_s=2, update_url=URL + "/b")
    done = after(moved, Verdict.DELIVERED)
    assert moved.update_url == URL + "/b"
    assert done.state is DeliveryState.DELIVERED
    assert done.settled


def test_postponing_is_no_failure_and_costs_no_try() -> None:
    failed = after(a_delivery(), Verdict.FAILED)
    postponed = after(failed, Verdict.POSTPONED, at=START + 40_000, wait_s=120)
    assert postponed.state is DeliveryState.PENDING
    assert postponed.due_at == START + 160_000
    assert postponed.tries == failed.tries == 1
    assert after(postponed, Verdict.FAILED, at=START + 200_000).due_at == START + 260_000


def test_without_retries_the_first_failure_parks_until_a_person_resumes() -> None:
    held = after(a_delivery(), Verdict.FAILED, policy=ONCE)
    assert held.state is DeliveryState.HELD
    assert held.due_at is None
    assert not held.settled
    assert held.settled_at is None
    assert next_step(held, ONCE, FOREVER - 1).step is Step.NOTHING

    resumed = resume(held, START + 5000)
    assert resumed.state is DeliveryState.RETRYING
    assert resumed.scheduled
    assert resumed.version == held.version + 1
    assert next_step(resumed, ONCE, START + 5000).step is Step.ATTEMPT
    assert after(resumed, Verdict.FAILED, policy=ONCE).state is DeliveryState.HELD
    assert after(resumed, Verdict.DELIVERED, policy=ONCE).state is DeliveryState.DELIVERED


def test_a_waiting_delivery_resumed_keeps_what_it_counted() -> None:
    failed = after(after(a_delivery(), Verdict.FAILED), Verdict.FAILED)
    resumed = resume(failed, START + 2000)
    assert (resumed.state, resumed.tries, resumed.due_at) == (DeliveryState.RETRYING, 2, START + 2000)
    polling = resume(after(a_delivery(), Verdict.POLL, wait_s=99, update_url=URL), START + 2000)
    assert (polling.state, polling.update_url, polling.due_at) == (DeliveryState.POLLING, URL, START + 2000)


def test_a_settled_delivery_is_not_resumed() -> None:
    with pytest.raises(Forbidden):
        resume(after(a_delivery(), Verdict.DELIVERED), START)


def test_a_limit_lowered_while_waiting_parks_and_does_not_exhaust() -> None:
    failed = replace(after(a_delivery(), Verdict.FAILED), tries=5, due_at=START)
    seen = next_step(failed, Exponential(base_s=1, cap_s=1, max_attempts=3, holds=True), START)
    assert (seen.step, seen.closes_as) == (Step.CLOSE, DeliveryState.HELD)
    held = close(failed, DeliveryState.HELD, START)
    assert (held.settled, held.settled_at) == (False, None)


def test_an_archived_delivery_stays_so_when_a_late_answer_comes() -> None:
    begun = after(a_delivery(), Verdict.FAILED)
    archived = close(begun, DeliveryState.CANCELLED, START)
    assert merge_attempt(archived, begun, an_answer(START), Verdict.DELIVERED) is None


@given(
    verdicts=st.lists(st.sampled_from([Verdict.FAILED, Verdict.POLL, Verdict.POSTPONED]), min_size=1, max_size=40),
    jitter=st.floats(0, 1),
)
def test_waits_of_consecutive_failures_grow_strictly_up_to_the_cap(verdicts: list[Verdict], jitter: float) -> None:
    delivery, at, last_wait = a_delivery(), START, 0
    for verdict in verdicts:
        delivery = after_attempt(
            delivery,
            an_answer(at),
            verdict,
            policy=POLICY,
            reserve_ms=7000,
            jitter=jitter,
            update_url=URL if verdict is Verdict.POLL else None,
        )
        assert delivery.due_at is not None
        wait = delivery.due_at - at
        if verdict is Verdict.FAILED:
            assert wait > last_wait or wait == 3_600_000
            last_wait = wait
        else:
            assert wait == 7000
            last_wait = 0 if verdict is Verdict.POLL else last_wait
        assert next_step(delivery, POLICY, delivery.due_at - 1).step is Step.WAIT
        at = delivery.due_at
