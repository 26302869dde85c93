"""The simulator's own reading of delivery records: a manual try may follow an end, times agree with each other, and
what is recorded of an attempt is what the endpoint saw.
"""

from __future__ import annotations

from typing import Any

import pytest
from simulation.account import START_MS
from simulation.conservation import judged
from simulation.endpoints import Asked
from simulation.promises.judgement import SECOND
from simulation.recorded import compared

from pushhub.base.times import iso_time

UID, DELIVERY = "u", "1.s"


def record(number: int, kind: str, state: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "record_id": str(number),
        "kind": kind,
        "queue_uid": UID,
        "delivery_id": DELIVERY,
        "state": state,
        "dialect": "webhooks",
        "at": f"2026-11-22T00:00:0{number}Z",
        "version": number,
        **more,
    }


def accepted(**more: Any) -> dict[str, Any]:
    return {"record_id": "a", "kind": "accepted", "queue_uid": UID, "owed": [DELIVERY], **more}


def test_what_was_given_up_may_arrive_by_hand() -> None:
    # Given an exhausted delivery that a person retried
    lives = [
        record(1, "attempt", "exhausted", attempt=1),
        record(2, "rescheduled", "exhausted", manual=True),
        record(3, "attempt", "delivered", attempt=2, manual=True),
    ]
    # Then it arrived, and ended once
    assert judged([accepted(), *lives]) == ({(UID, DELIVERY): "delivered"}, [])
    # And if it was not a manual try, it ended twice
    lives[2]["manual"] = False
    assert [each.rule for each in judged([accepted(), *lives])[1]] == ["ended twice"]


def test_what_is_owed_since_later_begins_with_its_record_of_acceptance() -> None:
    # Given a message that a person sent to a subscriber it was not owed to, and its only try
    tried = record(2, "attempt", "delivered", attempt=1, manual=True)
    assert judged([accepted(manual=True, version=1), tried])[1] == []
    # Then a version is missing if that acceptance is not recorded as the first one
    assert [each.rule for each in judged([accepted(), tried])[1]] == ["record missing"]


ACCEPTED_MS = START_MS + 5_000


def attempt(number: int, began_ms: int, **more: Any) -> dict[str, Any]:
    """An attempt of two seconds, a minute after the previous one or ten seconds after the acceptance."""
    began = ACCEPTED_MS + began_ms
    return {
        **record(number, "attempt", "retrying", attempt=number),
        "message_id": "1",
        "accepted_at": iso_time(ACCEPTED_MS),
        "at": iso_time(began + 2_000),
        "started_at": iso_time(began),
        "finished_at": iso_time(began + 2_000),
        "due_at": iso_time(began + 62_000),
        "duration_ms": 2_000,
        "wait_before_ms": 10_000 if number == 1 else 60_000,
        "wait_after_ms": 60_000,
        "status_code": 500,
        "error_class": "",
        "bytes_out": 3,
        "bytes_in": 2,
        **more,
    }


def test_times_of_attempts_agree_with_each_other() -> None:
    # Given two attempts, the second a minute after the first
    lives = [attempt(1, 10_000), attempt(2, 72_000)]
    assert judged([accepted(), *lives])[1] == []
    # When any of their times says something else, then it is noticed
    for name in ("duration_ms", "wait_before_ms", "wait_after_ms"):
        for place in (0, 1):
            wrong = [{**each, name: each[name] + 1} if number == place else each for number, each in enumerate(lives)]
            assert [each.rule for each in judged([accepted(), *wrong])[1]] == [
                "an attempt is recorded with other times"
            ], (name, place)


@pytest.mark.parametrize(
    ("answer", "rules"),
    [
        ({"status_code": 0, "error_class": "connect"}, []),
        ({"status_code": 0}, ["an answer and an error"]),
        ({"error_class": "connect"}, ["an answer and an error"]),
        ({"status_code": 200, "error_class": "too_large", "dialect": "hub"}, []),
    ],
)
def test_an_attempt_has_an_answer_or_an_error(answer: dict[str, Any], rules: list[str]) -> None:
    assert [each.rule for each in judged([accepted(), attempt(1, 10_000, **answer)])[1]] == rules


@pytest.mark.parametrize(
    ("recorded", "rules"),
    [
        ({}, []),
        ({"bytes_out": 2}, ["a request is recorded with other bytes"]),
        ({"bytes_in": 3}, ["a request is recorded with other bytes"]),
        ({"status_code": 501}, ["a request is recorded that was never made"]),
        ({"started_at": iso_time(ACCEPTED_MS + 60_000)}, ["a request is recorded that was never made"]),
        ({"status_code": 0, "error_class": "connect"}, ["a request is recorded that was never made"]),
        # For want of a token nothing is sent
        ({"status_code": 0, "error_class": "oauth"}, []),
        # Signatures, tokens and spans that its request had, and others
        ({"signed_by": ["standard-webhooks", "stripe"]}, ["a request is recorded with other proofs"]),
        ({"signed_by": ["stripe"]}, ["a request is recorded with other proofs"]),
        ({"token_client": "c"}, ["a request is recorded with other proofs"]),
        ({"trace_id": "t", "span_id": "s"}, []),
        ({"trace_id": "t", "span_id": "u"}, ["a request is recorded with other proofs"]),
        # Nothing is known of what no endpoint was asked for
        ({"message_id": "2"}, []),
    ],
)
def test_what_is_recorded_of_an_attempt_is_what_the_endpoint_saw(recorded: dict[str, Any], rules: list[str]) -> None:
    # Given a request that an endpoint answered with 500
    headers = {"webhook-signature": "v1,x", "traceparent": "00-t-s-01"}
    seen = Asked(15 * SECOND, headers, b"abc", "1", "push-1", status=500, answered_at=17 * SECOND, said=b"no")
    # Then a record that tells of another one is noticed
    assert [each.rule for each in compared([attempt(1, 10_000, **recorded)], [seen])] == rules


@pytest.mark.parametrize(("size", "rules"), [(3, []), (4, ["a message is recorded with another size"])])
def test_a_message_is_as_large_as_what_came(size: int, rules: list[str]) -> None:
    # Given a request of three bytes
    seen = Asked(15 * SECOND, {}, b"abc", "1", "push-1", status=200, answered_at=17 * SECOND)
    # Then its message has as many
    assert [each.rule for each in compared([accepted(message_id="1", dialect="raw", body_size=size)], [seen])] == rules
