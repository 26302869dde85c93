"""Delivery records that are not as docs/records.md describes them are noticed, by what each says of itself, by what
those of one delivery say one after the other, by what was stored, and by where they are.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from simulation.account import START_MS
from simulation.record_fields import FIELDS, ID, ITSELF, OBJECT, OTHERS, STORED, described, placed, stored
from simulation.truth import Written

from pushhub.base.times import iso_time

UID, MESSAGE, SUBSCRIBER = "u", "1", "s"
POLL = f"{UID}/{MESSAGE}/{SUBSCRIBER}/poll/2"
ACCEPTED_MS = START_MS + 5_000

Record = dict[str, Any]


def at(seconds: int) -> str:
    """So long after the acceptance."""
    return iso_time(ACCEPTED_MS + 1_000 * seconds)


def common(kind: str, number: int, subscriber: str, dialect: str) -> Record:
    return {
        "schema_version": 2,
        "record_id": f"{UID}/{MESSAGE}/{subscriber}/{kind}/{number}",
        "kind": kind,
        "at": at(0),
        "project": "p",
        "queue": "q",
        "queue_uid": UID,
        "message_id": MESSAGE,
        "dialect": dialect,
        "accepted_at": at(0),
        "expires_at": at(3_600),
    }


def accepted(dialect: str = "raw", **more: Any) -> Record:
    owed = {"owed": [f"{MESSAGE}.{SUBSCRIBER}"], "due_at": at(0), "body_size": 3}
    return common("accepted", 1, "-", dialect) | owed | more


def event(kind: str, version: int, state: str, **more: Any) -> Record:
    """What became of a pushed delivery, without an attempt."""
    own = {"delivery_id": f"{MESSAGE}.{SUBSCRIBER}", "subscriber_id": SUBSCRIBER, "state": state}
    return common(kind, version, SUBSCRIBER, "raw") | own | {"version": version, "tries": 1} | more


def attempt(number: int, verdict: str, state: str, **more: Any) -> Record:
    """An attempt of a second, a minute after the one before it."""
    asked = {
        "at": at(60 * number + 1),
        "attempt": number,
        "tries": number,
        "tries_max": 3,
        "subscriber": "name",
        "verdict": verdict,
        "status_code": 200 if verdict == "delivered" else 500,
        "error_class": "",
        "started_at": at(60 * number),
        "finished_at": at(60 * number + 1),
        "duration_ms": 1_000,
        "bytes_out": 3,
        "bytes_in": 0,
        "wait_before_ms": 60_000,
        "scheduled": False,
    }
    due = {"due_at": at(60 * number + 60), "wait_after_ms": 59_000} if state in {"retrying", "reserved"} else {}
    return event("attempt", number, state) | asked | due | more


def pulled(kind: str, count: int, state: str, **more: Any) -> Record:
    own = {"delivery_id": f"{MESSAGE}.line", "subscriber_id": "line", "state": state, "reservations": count}
    return common(kind, count, "line", "pull") | own | more


def notified(number: int, sequence: int, **more: Any) -> Record:
    """A frame that was sent to a consumer."""
    sent = {
        "delivery_id": f"{MESSAGE}.{SUBSCRIBER}",
        "subscriber_id": SUBSCRIBER,
        "subscriber": "name",
        "state": "reserved",
        "due_at": at(3_600),
        "verdict": "reserved",
        "status_code": 200,
        "error_class": "",
        "finished_at": at(1),
        "bytes_out": 3,
        "wait_before_ms": 1_000,
        "order_key": "c",
        "sequence": sequence,
    }
    return common("attempt", number, SUBSCRIBER, "notifications") | sent | more


PUSHED = [accepted(), attempt(1, "failed", "retrying"), attempt(2, "delivered", "delivered")]
PULLED = [
    accepted("pull", owed=[f"{MESSAGE}.line"], reservations=0),
    pulled("reserved", 1, "reserved", due_at=at(60), at=at(1)),
    pulled("released", 1, "pending", at=at(2)),
    pulled("reserved", 2, "reserved", due_at=at(63), at=at(3)),
    pulled("delivered", 2, "delivered", at=at(4)),
]
NOTIFIED = [
    accepted("notifications", sequence=7),
    notified(2, 7, attempt=1),
    common("acknowledged", 1, SUBSCRIBER, "notifications")
    | {"delivery_id": f"{MESSAGE}.{SUBSCRIBER}", "subscriber_id": SUBSCRIBER, "subscriber": "name"}
    | {"state": "acknowledged", "version": 1},
]


def rules(records: Sequence[Mapping[str, Any]]) -> set[str]:
    return {each.rule for each in described(records)}


def changed(records: Sequence[Record], place: int, **other: Any) -> list[Record]:
    """The records, one of which has something else, or lacks what is ``...``."""
    one = {name: each for name, each in (records[place] | other).items() if each is not ...}
    return [*records[:place], one, *records[place + 1 :]]


@pytest.mark.parametrize("records", [PUSHED, PULLED, NOTIFIED, [*PUSHED, *PUSHED]])
def test_records_as_they_are_described_are_left_alone(records: list[Record]) -> None:
    assert [*described(records)] == []


@pytest.mark.parametrize(
    ("records", "rule"),
    [
        # Fields that are missing, that are of other kinds, of another type, or a time written otherwise
        *((changed(PUSHED, 1, **{name: ...}), FIELDS) for name in ("bytes_in", "version", "state", "started_at")),
        *((changed(PUSHED, 0, **{name: ...}), FIELDS) for name in ("owed", "due_at", "body_size")),
        (changed(PUSHED, 1, owed=[]), FIELDS),
        (changed(PUSHED, 2, due_at=at(9)), FIELDS),
        (changed(PUSHED, 1, tries="1"), FIELDS),
        (changed(PUSHED, 1, scheduled=0), FIELDS),
        (changed(PUSHED, 1, at=ACCEPTED_MS), FIELDS),
        (changed(PUSHED, 0, accepted_at="2026-11-22T00:00:00Z"), FIELDS),
        (changed(PULLED, 1, reservations=...), FIELDS),
        (changed(PULLED, 1, version=1), FIELDS),
        (changed(NOTIFIED, 2, version=...), FIELDS),
        (changed(NOTIFIED, 1, tries=1), FIELDS),
        # Ids
        (changed(PUSHED, 1, record_id=f"{UID}/{MESSAGE}/{SUBSCRIBER}/attempt/2"), ID),
        (changed(PUSHED, 0, record_id=f"{UID}/{MESSAGE}/{SUBSCRIBER}/accepted/1"), ID),
        (changed(PULLED, 3, record_id=f"{UID}/{MESSAGE}/line/reserved/3"), ID),
        (changed(NOTIFIED, 2, record_id=f"{UID}/{MESSAGE}/{SUBSCRIBER}/acknowledged/2"), ID),
        # What it says of itself
        (changed(PUSHED, 1, schema_version=1), ITSELF),
        (changed(PUSHED, 1, subscriber_id="t"), ITSELF),
        (changed(PUSHED, 1, due_at=..., wait_after_ms=...), ITSELF),
        (changed(PUSHED, 1, reason="status_410"), ITSELF),
        (changed(PUSHED, 1, verdict="delivered"), ITSELF),
        (changed(PUSHED, 2, status_code=202), ITSELF),
        (changed(PUSHED, 2, status_code=0, error_class="connect"), ITSELF),
        (changed(PUSHED, 1, tries_max=1), ITSELF),
        (changed(PUSHED, 2, verdict="failed", status_code=500, state="exhausted"), ITSELF),
        (changed(PULLED, 1, due_at=at(0)), ITSELF),
        (changed(PULLED, 4, state="expired"), ITSELF),
        # What several say
        (changed(PUSHED, 1, expires_at=at(1)), OTHERS),
        (changed(PUSHED, 1, queue="other"), OTHERS),
        (changed(PUSHED, 2, at=at(0)), OTHERS),
        (changed(PUSHED, 2, tries=1), OTHERS),
        (changed(PUSHED, 1, tries=0), OTHERS),
        (changed(PUSHED, 1, order_key="k", sequence=1), OTHERS),
        (changed(PUSHED, 2, manual=True), OTHERS),
        ([*PUSHED[:2], attempt(2, "delivered", "delivered", kind="poll", record_id=POLL)], OTHERS),
        ([*PUSHED, attempt(3, "failed", "retrying")], OTHERS),
        (changed(PULLED, 1, at=at(60)), OTHERS),
        ([*NOTIFIED, notified(3, 6)], OTHERS),
        ([*NOTIFIED, notified(3, 7)], OTHERS),
    ],
)
def test_other_records_are_noticed(records: list[Record], rule: str) -> None:
    assert rule in rules(records)


def test_records_of_versions_are_those_that_were_stored() -> None:
    # Given what was stored of a delivery
    due = ACCEPTED_MS + 120_000
    history = [
        Written(0, "retrying", settled=False, due_at=due, tries=1, attempts=1, version=1),
        Written(1, "delivered", settled=True, due_at=None, tries=2, attempts=2, version=2),
    ]
    deliveries = {(MESSAGE, SUBSCRIBER): history}
    assert [*stored(PUSHED, deliveries)] == []
    # When a record says something else, or there is one of what was never stored
    for other in (
        changed(PUSHED, 1, due_at=at(121)),
        changed(PUSHED, 2, state="acknowledged"),
        changed(PUSHED, 2, tries=3),
        [*PUSHED, attempt(3, "failed", "exhausted")],
    ):
        assert [each.rule for each in stored(other, deliveries)] == [STORED]
    # What goes by its time to live is written by nobody
    assert [*stored([*PUSHED, event("expired", 3, "expired")], deliveries)] == []


PULSE = {"schema_version": 2, "record_id": f"pulse/MessagesTable/{at(0)}", "kind": "pulse", "at": at(0)}
HOUR = f"dt={at(0)[:10]}/hour={at(0)[11:13]}"
BEFORE = f"{HOUR}/MessagesTable-1-2-1.json.gz"
LINK = {"schema_version": 2, "record_id": f"link/{BEFORE}", "kind": "link", "at": at(0)}


@pytest.mark.parametrize(
    ("name", "lines", "kept"),
    [
        (f"{HOUR}/MessagesTable-3-9-3.json.gz", [*PUSHED[:2], PULSE, LINK], True),
        (f"{HOUR}/MessagesTable-3-9-4.json.gz", [*PUSHED[:2], PULSE, LINK], True),
        (f"{HOUR}/MessagesTable-3-9-2.json.gz", [*PUSHED[:2], PULSE, LINK], False),
        (f"{HOUR}/MessagesTable-3-9-2.json.gz", [LINK, *PUSHED[:2]], False),
        (f"{HOUR}/MessagesTable.json.gz", PUSHED, False),
        ("dt=2026-01-01/hour=01/MessagesTable-3-9-1.json.gz", PUSHED[:1], False),
        (f"{HOUR}/MessagesTable-3-9-1.json.gz", [{**PULSE, "record_id": "pulse"}], False),
        (f"{HOUR}/MessagesTable-3-9-1.json.gz", [PULSE, {**LINK, "record_id": "link/elsewhere"}], False),
        (f"{HOUR}/MessagesTable-3-9-1.json.gz", [{**PUSHED[0], "queue": "https://a.example"}], False),
    ],
)
def test_an_object_has_the_records_of_its_hour_as_many_as_it_says(name: str, lines: list[Record], kept: bool) -> None:
    def packed(*rows: Record) -> bytes:
        return gzip.compress("".join(json.dumps(each) + "\n" for each in rows).encode())

    objects = {("RecordsBucket", f"records/{BEFORE}"): packed(PUSHED[0])}
    objects["RecordsBucket", f"records/{name}"] = packed(*lines)
    objects["RecordsBucket", "records/quarantine/x.json"] = b"{}"
    assert {each.rule for each in placed(objects)} == (set() if kept else {OBJECT})


@pytest.mark.parametrize(("linked", "kept"), [(11, True), (10, False)])
def test_most_objects_name_one_that_was_before(linked: int, kept: bool) -> None:
    objects = {}
    for number in range(20):
        lines = [PUSHED[0], LINK] if number < linked else [PUSHED[0]]
        packed = gzip.compress("".join(json.dumps(each) + "\n" for each in lines).encode())
        objects["RecordsBucket", f"records/{HOUR}/MessagesTable-{number}-{number}-1.json.gz"] = packed
    objects["RecordsBucket", f"records/{BEFORE}"] = gzip.compress((json.dumps(PUSHED[0]) + "\n").encode())
    assert [each.rule for each in placed(objects)] == ([] if kept else [OBJECT])
