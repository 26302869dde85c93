"""Each change of stored state makes the record that docs/records.md promises, and only that one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pushhub.base.times import iso_time
from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.model.backoff import Exponential, FixedDelay
from pushhub.engine.model.delivery import (
    Delivery,
    DeliveryState,
    acknowledge,
    added,
    after_attempt,
    ask_for_try,
    close,
    merge_attempt,
    opening,
    resume,
    schedule,
    without_asked_try,
)
from pushhub.engine.model.message import BodyRef, Message, Ordering
from pushhub.engine.model.record import DeliveryRecord, RecordKind
from pushhub.engine.model.records import record_of_acceptance, record_of_delivery

ACCEPTED = 1_795_000_000_123
DAY = 86_400_000
POLICY = FixedDelay(retries=3, delay_s=60)


def a_message(*, unicast: bool = False, subscribers: tuple[str, ...] = ("s0", "s1")) -> Message:
    return Message(
        project="p",
        queue="orders",
        queue_uid="u1",
        message_id="6112035678239908289",
        body=b"secret body",
        body_size=11,
        headers={"Authorization": "Bearer secret"},
        accepted_at=ACCEPTED,
        due_at=ACCEPTED + 5_000,
        expires_at=ACCEPTED + 7 * DAY,
        subscriber_ids=subscribers,
        unicast=unicast,
    )


def an_answer(status: int, at: int, error_class: str = "") -> Answer:
    return Answer(
        status_code=status,
        message="",
        error_class=error_class,
        started_at=at,
        finished_at=at + 250,
        bytes_out=11,
        bytes_in=2,
    )


def attempted(before: Delivery, status: int, verdict: Verdict, at: int = ACCEPTED + 6_000) -> Delivery:
    answer = an_answer(status, at)
    return after_attempt(
        before, answer, verdict, policy=POLICY, reserve_ms=60_000, jitter=0, subscriber="erp", dialect="raw"
    )


def the_record(before: Delivery | None, after: Delivery | None, changed_at: int = ACCEPTED + 9_000) -> DeliveryRecord:
    record = record_of_delivery(before, after, changed_at)
    assert record is not None
    return record


def test_acceptance_names_every_delivery_owed_and_no_secret() -> None:
    # When a message for two subscribers was stored
    record = record_of_acceptance(a_message())
    # Then its record says to whom it is owed, and when it is due
    assert record.as_fields() == {
        "schema_version": 2,
        "record_id": "u1/6112035678239908289/-/accepted/1",
        "kind": "accepted",
        "at": "2026-11-18T11:06:40.123Z",
        "project": "p",
        "queue": "orders",
        "queue_uid": "u1",
        "message_id": "6112035678239908289",
        "dialect": "raw",
        "accepted_at": "2026-11-18T11:06:40.123Z",
        "expires_at": "2026-11-25T11:06:40.123Z",
        "body_size": 11,
        "owed": ("6112035678239908289.s0", "6112035678239908289.s1"),
        "due_at": "2026-11-18T11:06:45.123Z",
    }
    assert "secret" not in json.dumps(record.as_fields())


def test_unicast_owes_one_delivery_to_anyone() -> None:
    assert record_of_acceptance(a_message(unicast=True)).owed == ("6112035678239908289.*",)


def test_the_first_attempt_tells_the_whole_exchange() -> None:
    # Given an untried delivery
    opened = opening(a_message(), "s0")
    # When its first attempt failed and was written
    failed = attempted(opened, 503, Verdict.FAILED)
    record = the_record(None, failed)
    # Then the record holds what docs/records.md lists for an attempt
    fields = record.as_fields()
    assert fields == fields | {
        "record_id": "u1/6112035678239908289/s0/attempt/1",
        "kind": "attempt",
        "at": iso_time(ACCEPTED + 6_250),
        "delivery_id": "6112035678239908289.s0",
        "subscriber_id": "s0",
        "subscriber": "erp",
        "state": "retrying",
        "scheduled": False,
        "version": 1,
        "attempt": 1,
        "tries": 1,
        "tries_max": 4,
        "verdict": "failed",
        "status_code": 503,
        "error_class": "",
        "duration_ms": 250,
        "bytes_out": 11,
        "bytes_in": 2,
        "wait_before_ms": 6_000,
        "wait_after_ms": 60_000,
        "due_at": iso_time(ACCEPTED + 66_250),
    }


def test_the_settling_attempt_says_so_and_has_nothing_due() -> None:
    record = the_record(None, attempted(opening(a_message(), "s0"), 200, Verdict.DELIVERED))
    assert (record.kind, record.state, record.due_at, record.wait_after_ms) == ("attempt", "delivered", None, None)


def test_a_policy_without_end_leaves_the_maximum_out() -> None:
    answer = an_answer(500, ACCEPTED)
    endless = Exponential(base_s=1, cap_s=60)
    after = after_attempt(opening(a_message(), "s0"), answer, Verdict.FAILED, policy=endless, reserve_ms=0, jitter=0)
    assert "tries_max" not in the_record(None, after).as_fields()


def test_unicast_attempts_name_who_was_asked_under_the_one_delivery() -> None:
    opened = opening(a_message(unicast=True), "*")
    record = the_record(None, attempted(opened, 500, Verdict.FAILED))
    assert record.delivery_id == "6112035678239908289.*"
    assert record.subscriber_id in ("s0", "s1")
    assert record.record_id == "u1/6112035678239908289/*/attempt/1"


def test_acknowledgement_names_the_attempt_it_belongs_to() -> None:
    # Given a delivery reserved by a 202
    reserved = attempted(opening(a_message(), "s0"), 202, Verdict.RESERVED)
    # When its subscriber acknowledges
    record = the_record(reserved, acknowledge(reserved, "s0", 1, ACCEPTED + 20_000))
    # Then
    assert (record.kind, record.state, record.attempt, record.version) == ("acknowledged", "acknowledged", 1, 2)
    assert record.at == iso_time(ACCEPTED + 20_000)


def test_an_acknowledgement_before_the_answer_is_followed_by_its_attempt() -> None:
    # Given an acknowledgement that came while the first attempt was still open
    opened = opening(a_message(), "s0")
    acknowledged = acknowledge(opened, "s0", 1, ACCEPTED + 6_100)
    # When the attempt's answer is merged
    folded = merge_attempt(acknowledged, opened, an_answer(202, ACCEPTED + 6_000), Verdict.RESERVED)
    # Then it is an attempt of an acknowledged delivery
    record = the_record(acknowledged, folded)
    assert (record.kind, record.attempt, record.state, record.version) == ("attempt", 1, "acknowledged", 2)


def test_a_duplicates_success_is_a_delivery_without_a_new_attempt() -> None:
    opened = opening(a_message(), "s0")
    failed = attempted(opened, 500, Verdict.FAILED)
    record = the_record(failed, merge_attempt(failed, opened, an_answer(200, ACCEPTED + 6_000), Verdict.DELIVERED))
    assert (record.kind, record.state, record.attempt) == ("delivered", "delivered", None)


@pytest.mark.parametrize("state", ["exhausted", "expired", "cancelled"])
def test_settling_without_an_attempt_is_a_record_of_its_own(state: str) -> None:
    failed = attempted(opening(a_message(), "s0"), 500, Verdict.FAILED)
    record = the_record(failed, close(failed, DeliveryState(state), ACCEPTED + DAY))
    assert (record.kind, record.state, record.at) == (state, state, iso_time(ACCEPTED + DAY))


def test_a_delivery_scheduled_before_its_first_attempt_is_rescheduled_at_the_time_of_the_write() -> None:
    delayed = replace(schedule(opening(a_message(), "s0")), version=1)
    record = the_record(None, delayed, changed_at=ACCEPTED + 900)
    assert (record.kind, record.state, record.scheduled, record.version) == ("rescheduled", "pending", True, 1)
    assert (record.at, record.due_at) == (iso_time(ACCEPTED + 900), iso_time(ACCEPTED + 5_000))


def test_a_delivery_left_to_a_person_and_tried_again_keeps_its_versions_without_gaps() -> None:
    failed = attempted(opening(a_message(), "s0"), 500, Verdict.FAILED)
    left = close(failed, DeliveryState.HELD, ACCEPTED + 7_000)
    resumed = resume(left, ACCEPTED + 8_000)
    records = [the_record(None, failed), the_record(failed, left), the_record(left, resumed)]
    assert [(each.kind, each.state, each.version) for each in records] == [
        ("attempt", "retrying", 1),
        ("rescheduled", "held", 2),
        ("rescheduled", "retrying", 3),
    ]


def test_leaving_the_due_index_is_no_event() -> None:
    scheduled = schedule(attempted(opening(a_message(), "s0"), 500, Verdict.FAILED))
    assert record_of_delivery(scheduled, replace(scheduled, scheduled=False), ACCEPTED) is None


def test_a_poll_is_told_apart_from_an_attempt() -> None:
    asked = attempted(opening(a_message(), "s0"), 200, Verdict.POLL)
    polling = replace(asked, update_url="https://example.com/job/1?token=secret")
    record = the_record(polling, attempted(polling, 200, Verdict.DELIVERED, at=ACCEPTED + 70_000))
    assert (record.kind, record.attempt, record.state) == ("poll", 2, "delivered")
    assert "secret" not in json.dumps(record.as_fields())


def test_removal_by_age_expires_what_was_not_settled_and_says_nothing_of_the_rest() -> None:
    failed = attempted(opening(a_message(), "s0"), 500, Verdict.FAILED)
    delivered = attempted(opening(a_message(), "s0"), 200, Verdict.DELIVERED)
    record = the_record(failed, None, changed_at=ACCEPTED + 9 * DAY)
    assert (record.kind, record.version, record.at) == ("expired", 2, iso_time(ACCEPTED + 9 * DAY))
    assert record_of_delivery(delivered, None, ACCEPTED + 9 * DAY) is None
    assert record_of_delivery(None, None, ACCEPTED) is None


def test_acceptance_tells_where_a_large_body_lies_and_its_place_in_an_order() -> None:
    message = replace(
        a_message(),
        body=None,
        body_ref=BodyRef(key="bodies/p/1", offset=7, length=11),
        ordering=Ordering(key="k", sequence=5),
    )
    record = record_of_acceptance(message)
    assert (record.body_ref, record.sequence) == ("bodies/p/1@7", 5)
    assert record_of_acceptance(a_message()).body_ref is None


def test_a_try_that_a_person_asked_for_is_marked_and_only_that() -> None:
    # Given a delivery in order that failed once
    ordered = replace(opening(a_message(), "s0"), order_key="k", sequence=5)
    failed = attempted(ordered, 500, Verdict.FAILED)
    attempt = the_record(None, failed)
    assert (attempt.manual, attempt.order_key, attempt.sequence, attempt.at) == (
        None,
        "k",
        5,
        iso_time(ACCEPTED + 6_250),
    )
    assert (attempt.started_at, attempt.finished_at) == (iso_time(ACCEPTED + 6_000), iso_time(ACCEPTED + 6_250))
    # When a person asks for a try, and it cannot be made
    asked = ask_for_try(failed, ACCEPTED + 8_000)
    request = the_record(failed, asked)
    dropped = the_record(asked, without_asked_try(asked, ACCEPTED + 8_500, "subscriber_removed"))
    # Then both say so, and a change of another kind does not
    assert (request.kind, request.manual, request.scheduled) == ("rescheduled", True, False)
    assert (dropped.kind, dropped.manual) == ("rescheduled", True)
    assert the_record(failed, resume(failed, ACCEPTED + 8_000)).manual is None
    assert the_record(failed, close(failed, DeliveryState.HELD, ACCEPTED + 8_000)).manual is None
    # And of one that was never tried
    unasked = replace(schedule(opening(a_message(), "s0")), version=1)
    assert the_record(None, unasked).manual is None
    assert the_record(None, ask_for_try(opening(a_message(), "s0"), ACCEPTED)).manual is True
    # And the try itself
    assert failed.last is not None
    tried = replace(asked, attempts=2, last=replace(failed.last, number=2, manual=True), asked_at=None, version=3)
    assert the_record(asked, tried).manual is True


def test_what_is_owed_since_later_is_an_acceptance_of_that_one_delivery() -> None:
    # Given a message that is now owed to one more subscriber
    record = the_record(None, replace(added(a_message(), "s9", due_at=ACCEPTED + 7_000), version=1))
    # Then
    assert record.as_fields() == {
        "schema_version": 2,
        "record_id": "u1/6112035678239908289/s9/accepted/1",
        "kind": "accepted",
        "at": iso_time(ACCEPTED + 9_000),
        "project": "p",
        "queue": "orders",
        "queue_uid": "u1",
        "message_id": "6112035678239908289",
        "dialect": "raw",
        "accepted_at": iso_time(ACCEPTED),
        "expires_at": iso_time(ACCEPTED + 7 * DAY),
        "owed": ("6112035678239908289.s9",),
        "due_at": iso_time(ACCEPTED + 7_000),
        "version": 1,
        "manual": True,
    }
    # And one that gets a try by hand and nothing else is due at once: its record would be missed
    asked = ask_for_try(added(a_message(), "s9", due_at=None), ACCEPTED + 8_000)
    assert the_record(None, asked).due_at == iso_time(ACCEPTED + 8_000)
    # And its next change is none
    first = replace(added(a_message(), "s9", due_at=ACCEPTED), version=1)
    assert the_record(first, attempted(first, 200, Verdict.DELIVERED)).kind == "attempt"


def test_a_settled_delivery_that_changes_without_an_attempt_was_rescheduled() -> None:
    # Given an exhausted delivery that a person wants retried
    failed = close(
        attempted(opening(a_message(), "s0"), 500, Verdict.FAILED), DeliveryState.EXHAUSTED, ACCEPTED + 7_000
    )
    record = the_record(failed, ask_for_try(failed, ACCEPTED + 8_000), changed_at=ACCEPTED + 8_100)
    assert (record.kind, record.at, record.version) == ("rescheduled", iso_time(ACCEPTED + 8_100), 3)
    # And one whose end has no time of its own gets the time of the write
    ended = replace(failed, settled_at=None)
    assert the_record(None, replace(ended, last=None, attempts=0)).at == iso_time(ACCEPTED + 9_000)


def test_an_event_without_an_attempt_names_the_subscriber_owed_and_what_it_was_last_sent() -> None:
    failed = attempted(opening(a_message(), "s0"), 500, Verdict.FAILED)
    assert failed.last is not None
    failed = replace(failed, last=replace(failed.last, dialect="hub"))
    record = the_record(failed, resume(failed, ACCEPTED + 8_000))
    assert (record.subscriber_id, record.dialect) == ("s0", "hub")
    never = the_record(None, replace(schedule(opening(replace(a_message(), queue="hub/x"), "s0")), version=1))
    assert never.dialect == "hub"


def test_the_reason_of_an_end_is_in_its_record() -> None:
    failed = attempted(opening(a_message(), "s0"), 500, Verdict.FAILED)
    assert (
        the_record(failed, close(failed, DeliveryState.CANCELLED, ACCEPTED, "queue_deleted")).reason == "queue_deleted"
    )
    assert "reason" not in the_record(None, failed).as_fields()


def test_every_field_is_documented_and_every_kind_too() -> None:
    # Given the documented record format
    contract = (Path(__file__).parents[3] / "docs" / "records.md").read_text()
    # Then it names every field and every kind that can be written
    named = {word.strip(" `") for line in contract.splitlines() for word in line.split("|")[1:2]}
    listed = {each.strip() for word in named for each in word.split(",")}
    assert set(DeliveryRecord.__slots__) <= listed
    assert {kind.value for kind in RecordKind} <= listed
