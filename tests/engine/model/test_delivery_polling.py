"""What the hub protocol adds to a delivery's life: polls, postponements, being held and resumed."""

from __future__ import annotations

from dataclasses import replace

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


def test_an_archived_delivery_stays_so_when_a_late_answer_comes() -> None:
    begun = after(a_delivery(), Verdict.FAILED)
    archived = close(begun, DeliveryState.CANCELLED, START)
    late = merge_attempt(archived, begun, an_answer(START), Verdict.DELIVERED)
    assert late is not None
    assert (late.state, late.attempts) == (DeliveryState.CANCELLED, begun.attempts + 1)
