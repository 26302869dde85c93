"""The simulator's own reading of delivery records: a manual try may follow an end."""

from __future__ import annotations

from typing import Any

from simulation.conservation import judged

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
