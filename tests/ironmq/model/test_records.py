"""Each change of a message in a pull queue makes the record that docs/records.md promises, and only that one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pushhub.base.times import iso_time
from pushhub.engine.model.message import Message
from pushhub.engine.model.record import DeliveryRecord, RecordKind
from pushhub.ironmq.model.records import PullItem, record_of_pull

ACCEPTED = 1_795_000_000_123
DAY = 86_400_000
MESSAGE = Message(
    project="p",
    queue="orders",
    queue_uid="u1",
    message_id="6112035678239908289",
    body=b"secret body",
    body_size=11,
    accepted_at=ACCEPTED,
    due_at=ACCEPTED,
    expires_at=ACCEPTED + 7 * DAY,
)


WAITING = PullItem(message=MESSAGE)
HELD = replace(WAITING, reserved_count=1, reservation_id="r1", reserved_until=ACCEPTED + 60_000)


def the_pull_record(
    before: PullItem | None, after: PullItem | None, changed_at: int = ACCEPTED + 1_000
) -> DeliveryRecord:
    record = record_of_pull(before, after, changed_at)
    assert record is not None
    return record


def test_a_message_put_into_a_pull_queue_owes_one_delivery_to_whoever_consumes_it() -> None:
    record = the_pull_record(None, WAITING)
    assert (record.kind, record.dialect, record.owed) == ("accepted", "pull", ("6112035678239908289.line",))
    assert record.reservations == 0


def test_a_dead_letter_starts_with_the_reservations_it_had() -> None:
    assert the_pull_record(None, replace(WAITING, reserved_count=5)).reservations == 5


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (WAITING, HELD, ("reserved", "reserved", 1, iso_time(ACCEPTED + 60_000))),
        (HELD, replace(HELD, reserved_count=2, reservation_id="r2"), ("reserved", "reserved", 2, None)),
        (HELD, replace(WAITING, reserved_count=1), ("released", "pending", 1, None)),
    ],
    ids=["reserve", "touch", "release"],
)
def test_reserving_touching_and_releasing(
    before: PullItem, after: PullItem, expected: tuple[str, str, int, str | None]
) -> None:
    record = the_pull_record(before, after)
    kind, state, count, due_at = expected
    assert (record.kind, record.state, record.reservations) == (kind, state, count)
    assert record.record_id == f"u1/6112035678239908289/line/{kind}/{count}"
    assert due_at in (None, record.due_at)


@pytest.mark.parametrize(
    ("last", "removed_at", "kind"),
    [
        (HELD, ACCEPTED + 1_000, RecordKind.DELIVERED),
        (replace(HELD, leaving="exhausted"), ACCEPTED + 1_000, RecordKind.EXHAUSTED),
        (WAITING, ACCEPTED + 8 * DAY, RecordKind.EXPIRED),
        (WAITING, ACCEPTED + 1_000, RecordKind.CANCELLED),
        (HELD, ACCEPTED + 61_000, RecordKind.CANCELLED),
    ],
    ids=["by its consumer", "to the dead letters", "out of time", "while free", "after its reservation ended"],
)
def test_how_a_message_left_its_queue(last: PullItem, removed_at: int, kind: RecordKind) -> None:
    record = the_pull_record(last, None, removed_at)
    assert (record.kind, record.state) == (kind, kind.value)


def test_an_item_written_again_unchanged_is_no_event() -> None:
    assert record_of_pull(HELD, HELD, ACCEPTED) is None
    assert record_of_pull(None, None, ACCEPTED) is None
