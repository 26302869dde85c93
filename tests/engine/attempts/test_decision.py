"""What an order does with its delivery now, decided without a clock or a store."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.samples import message

from pushhub.engine.attempts import decision
from pushhub.engine.attempts.decision import (
    CLOCK_SKEW_MS,
    MANUAL_HEAD_START_MS,
    Ask,
    Decision,
    End,
    Leave,
    Progress,
    Skip,
    begin,
    decide,
)
from pushhub.engine.attempts.job import EARLY_MS, Job
from pushhub.engine.model.delivery import Delivery, DeliveryState, Step, ask_for_try, opening
from pushhub.engine.model.flow import Limits
from pushhub.engine.model.following import Follow, Following
from pushhub.engine.model.message import Message
from pushhub.engine.model.queue import PushSettings, Queue, QueueType, Subscriber
from pushhub.engine.model.received import Received
from pushhub.engine.model.work import WorkOrder

NOW = 1_000_000_000
HOUR_MS = 3_600_000
BEGUN = Progress(had_automatic_tries=True)
AGAIN = Progress(had_automatic_tries=True, changed=True, attempted=True)


def a_message(**more: object) -> Message:
    fields: dict[str, object] = {
        **{"project": "p", "queue": "q", "queue_uid": "u", "message_id": "7", "body": b"x"},
        **{"accepted_at": NOW - 1000, "expires_at": NOW + HOUR_MS, "subscriber_ids": ("a",)},
    }
    return message(**fields | more)


def a_subscriber(**more: object) -> Subscriber:
    fields: dict[str, object] = {"subscriber_id": "a", "name": "A", "url": "https://a.example", "timeout_s": 10}
    return Subscriber(**fields | more)  # type: ignore[arg-type]


def a_queue(*subscribers: Subscriber, **more: object) -> Queue:
    fields: dict[str, object] = {
        **{"project": "p", "name": "q", "uid": "u", "pull_uid": "v", "type": QueueType.MULTICAST},
        **{"secret": "s", "created_at": 0},
    }
    push = PushSettings(subscribers=subscribers or (a_subscriber(),), retries=2, retries_delay=60)
    return Queue(**fields | {"push": push} | more)  # type: ignore[arg-type]


def a_job(*subscribers: Subscriber, manual: bool = False) -> Job:
    queue, sent = a_queue(*subscribers), a_message()
    assert queue.push is not None
    order = WorkOrder(key=opening(sent, "a").key, queue="q", manual=manual)
    received = Received(order=order, sqs_id="s", receipt_handle="h", received_at=NOW)
    return Job(received=received, message=sent, queue=queue, push=queue.push, terms=None, looked_up_at=NOW)


def a_delivery(**more: object) -> Delivery:
    fields: dict[str, object] = {"due_at": NOW}
    return replace(opening(a_message(), "a"), **fields | more)  # type: ignore[arg-type]


def decided(job: Job, delivery: Delivery, progress: Progress = BEGUN, *, remaining_ms: int = HOUR_MS) -> Decision:
    return decide(job, delivery, progress, now=NOW, remaining_ms=remaining_ms)


def test_a_delivery_that_is_due_is_attempted() -> None:
    found = decided(a_job(), a_delivery())
    assert isinstance(found, Ask)
    assert (found.subscriber.subscriber_id, found.step, found.terms) == ("a", Step.ATTEMPT, None)


def test_a_subscriber_with_limits_is_asked_under_their_terms() -> None:
    found = decided(a_job(a_subscriber(limits=Limits(rate_per_s=1))), a_delivery())
    assert isinstance(found, Ask)
    assert found.terms is not None
    assert found.terms.limits == Limits(rate_per_s=1)


def test_one_that_is_not_due_is_looked_at_again_then() -> None:
    later = a_delivery(due_at=NOW + 700)
    assert decided(a_job(), later) == Leave(following=Following(Follow.LATER, NOW + 700), tell=True)


@pytest.mark.parametrize(
    ("early_ms", "following"),
    [
        (CLOCK_SKEW_MS, Following(Follow.LATER, NOW + CLOCK_SKEW_MS)),
        (CLOCK_SKEW_MS + 1, Following(Follow.NOTHING)),
    ],
)
def test_one_that_is_scheduled_is_left_to_the_schedule_unless_it_is_about_to_be_due(
    early_ms: int, following: Following
) -> None:
    waits = a_delivery(due_at=NOW + early_ms, scheduled=True)
    assert decided(a_job(), waits) == Leave(following=following, tell=True)


@pytest.mark.parametrize(
    ("ended", "follow"),
    [(DeliveryState.DELIVERED, Follow.NOTHING), (DeliveryState.EXHAUSTED, Follow.ERROR)],
)
def test_of_one_that_has_ended_nothing_is_left_but_to_tell(ended: DeliveryState, follow: Follow) -> None:
    over = replace(a_delivery(), state=ended, due_at=None)
    assert decided(a_job(), over) == Leave(following=Following(follow), tell=True)


def test_one_that_has_expired_ends() -> None:
    assert decided(a_job(), a_delivery(expires_at=NOW)) == End(state=DeliveryState.EXPIRED)


def test_one_that_has_used_up_its_tries_ends() -> None:
    assert decided(a_job(), a_delivery(tries=3)) == End(state=DeliveryState.EXHAUSTED)


@pytest.mark.parametrize(
    ("subscriber", "reason"),
    [(a_subscriber(subscriber_id="b"), "subscriber_removed"), (a_subscriber(disabled=True), "subscriber_disabled")],
)
def test_a_subscriber_that_is_gone_is_skipped(subscriber: Subscriber, reason: str) -> None:
    found = decided(a_job(subscriber), a_delivery())
    assert isinstance(found, Skip)
    assert (found.reason, found.asked_for) == (reason, False)


def test_no_attempt_begins_that_may_outlast_the_run() -> None:
    found = decided(a_job(), a_delivery(), remaining_ms=14_999)
    assert isinstance(found, Leave)
    assert (found.following.follow, found.following.outlasts(14_999)) == (Follow.LATER, True)
    assert isinstance(decided(a_job(), a_delivery(), remaining_ms=15_000), Ask)
    # And a postponed poll stays a poll
    polled = decided(a_job(), a_delivery(update_url="https://a.example/status"), remaining_ms=0)
    assert isinstance(polled, Leave)
    assert polled.following.follow is Follow.POLL


def test_a_lease_is_for_one_attempt() -> None:
    again = replace(AGAIN, leased=True)
    assert decided(a_job(), a_delivery(), again) == Leave(following=Following(Follow.LATER, NOW))


def test_a_try_that_a_person_asked_for_is_left_to_its_own_order() -> None:
    asked = ask_for_try(a_delivery(), NOW + 1 - MANUAL_HEAD_START_MS)
    # Given another order of the delivery, then it waits a minute for the one that was sent with the request
    assert decided(a_job(), asked) == Leave(following=Following(Follow.LATER, NOW + 1))
    assert isinstance(decided(a_job(), ask_for_try(a_delivery(), NOW - MANUAL_HEAD_START_MS)), Ask)
    # And that one makes it
    found = decided(a_job(manual=True), asked)
    assert isinstance(found, Ask)
    assert found.step is Step.ASKED_TRY


def test_an_order_for_such_a_try_does_nothing_else() -> None:
    assert decided(a_job(manual=True), a_delivery()) == Leave(following=Following(Follow.NOTHING))


def test_after_an_attempt_the_schedule_brings_a_long_wait_back() -> None:
    waits = a_delivery(scheduled=True, attempts=1)
    assert decided(a_job(), waits, AGAIN) == Leave(following=Following(Follow.NOTHING))


@pytest.mark.parametrize(
    ("wait_ms", "attempts", "late_ms"),
    [
        (EARLY_MS + 1, 1, 15_000),
        (2_900, 1, 15_000),  # a queue whose retries wait for the 3 s that are the least
        (EARLY_MS, 1, 0),  # clocks differ
        (EARLY_MS + 1, 0, 0),  # a message that was posted with a delay
    ],
)
def test_an_order_that_comes_early_stays_behind_the_one_that_made_the_last_attempt(
    wait_ms: int, attempts: int, late_ms: int
) -> None:
    # Given a delivery that waits for its next try
    waits = a_delivery(attempts=attempts, due_at=NOW + wait_ms)
    # Then an order that did not make its last attempt comes after that try, not with it
    behind = decided(a_job(), waits)
    assert isinstance(behind, Leave)
    assert behind.following.due_at == NOW + wait_ms + late_ms
    # And the one that made it is on time
    assert decided(a_job(), waits, AGAIN) == Leave(following=Following(Follow.LATER, NOW + wait_ms), tell=True)


@pytest.mark.parametrize(
    ("queue", "reason"),
    [
        (None, "queue_deleted"),
        (a_queue(push=None, type=QueueType.PULL), "queue_deleted"),
        (a_queue(uid="another"), "queue_deleted"),
        (a_queue(cleared_at=NOW - 1000), "queue_cleared"),
    ],
)
def test_a_message_whose_queue_is_gone_is_owed_to_nobody(queue: Queue | None, reason: str) -> None:
    received = a_job().received
    assert begin(received, a_message(), queue, looked_up_at=NOW) == End(state=DeliveryState.CANCELLED, reason=reason)
    # And one that was cleared before it came has it
    assert isinstance(begin(received, a_message(), a_queue(cleared_at=NOW - 1001), looked_up_at=NOW), Job)


def test_what_is_decided_reads_no_clock_and_no_store() -> None:
    # Given the module that decides, then it imports rules and values only
    tree = ast.parse(Path(decision.__file__).read_text(encoding="utf-8"))
    found = {each.module or "" for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
    own = {each for each in found if each.startswith("pushhub.")} - {"pushhub.engine.attempts.job"}
    assert own
    assert all(each.startswith("pushhub.engine.model.") for each in own)
