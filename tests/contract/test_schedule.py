"""The schedule: each entry is found once, in order of time, and a shard is read by one run at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.samples import NOW, first, message, tried
from tests.fakes import FakeClock

from pushhub.base.errors import Conflict
from pushhub.base.verdict import Verdict
from pushhub.engine.model.delivery import Delivery
from pushhub.engine.model.schedule import ScheduleEntry
from pushhub.engine.waiting.ports import Schedule

LATER = 600_000


def failed(due_at: int, **changes: object) -> Delivery:
    """A delivery that failed and waits."""
    return first(message(), Verdict.FAILED, due_at=due_at, **changes)


def read(schedule: Schedule, now: int, limit: int = 100) -> list[ScheduleEntry]:
    """All due entries, shard by shard; the positions are moved behind them."""
    found: list[ScheduleEntry] = []
    for position in schedule.positions():
        while True:
            entries, behind = schedule.due(position, now, limit)
            schedule.move(position, behind)
            found += entries
            position = behind  # noqa: PLW2901 (the next look starts there)
            if not entries:
                break
    return found


def ids(entries: list[ScheduleEntry]) -> list[str]:
    return sorted(each.key.message_id for each in entries)


def test_what_is_entered_is_due_from_its_millisecond_on_and_once(schedule: Schedule) -> None:
    # Given waits that end at three moments, two of them in one minute
    waits = [failed(NOW + LATER + second * 1000) for second in (0, 1, 90)]
    for each in waits:
        schedule.enter(each)
    # Then each is found when its time has come, and not again
    assert read(schedule, NOW + LATER - 1) == []
    assert ids(read(schedule, NOW + LATER)) == [waits[0].message_id]
    assert ids(read(schedule, NOW + LATER + 1000)) == [waits[1].message_id]
    assert ids(read(schedule, NOW + 2 * LATER)) == [waits[2].message_id]
    assert read(schedule, NOW + 3 * LATER) == []


def test_an_entry_says_which_delivery_in_which_version(schedule: Schedule) -> None:
    polled = failed(NOW + LATER, update_url="https://a.example/1", version=7)
    schedule.enter(polled)
    [entry] = read(schedule, NOW + LATER)
    assert (entry.key, entry.order.version) == (polled.key, 7)
    assert (entry.queue, entry.wakes_at, entry.polls) == (polled.queue, NOW + LATER, True)


def test_entering_twice_is_entering_once(schedule: Schedule) -> None:
    waits = failed(NOW + LATER)
    schedule.enter(waits)
    schedule.enter(waits)
    assert len(read(schedule, NOW + LATER)) == 1
    # But another version is a different wait
    schedule.enter(tried(waits, Verdict.FAILED, due_at=NOW + 2 * LATER))
    assert [each.version for each in read(schedule, NOW + 2 * LATER)] == [waits.version + 1]


def test_what_is_due_soon_waits_for_a_minute_that_nobody_reads_yet(schedule: Schedule, clock: FakeClock) -> None:
    # Given a shard read up to this moment, and a wait that ends now
    assert read(schedule, clock.now()) == []
    schedule.enter(failed(NOW))
    # Then it is found within three minutes
    assert read(schedule, NOW + 60_000) == []
    assert len(read(schedule, NOW + 180_000)) == 1


def test_a_message_that_expires_sooner_wakes_then(schedule: Schedule) -> None:
    schedule.enter(first(message(expires_at=NOW + LATER), Verdict.FAILED, due_at=NOW + 24 * LATER))
    assert [each.wakes_at for each in read(schedule, NOW + LATER)] == [NOW + LATER]


def test_a_reservation_wakes_when_it_lapses_though_its_message_expires_sooner(schedule: Schedule) -> None:
    reserved = first(message(expires_at=NOW + LATER), Verdict.RESERVED, due_at=NOW + 2 * LATER)
    schedule.enter(reserved)
    assert [each.wakes_at for each in read(schedule, NOW + 3 * LATER)] == [NOW + 2 * LATER]


def test_a_limit_is_kept_and_nothing_left_out(schedule: Schedule) -> None:
    # Given many waits that end within ten minutes
    waits = [failed(NOW + LATER + number * 6_000) for number in range(100)]
    for each in waits:
        schedule.enter(each)
    # When each look returns at most three, then all are found
    [position, *_] = schedule.positions()
    entries, _ = schedule.due(position, NOW + 2 * LATER, 3)
    assert len(entries) <= 3
    assert [each.wakes_at for each in entries] == sorted(each.wakes_at for each in entries)
    assert ids(read(schedule, NOW + 2 * LATER, limit=3)) == sorted(each.message_id for each in waits)


def test_a_wake_that_stood_still_for_hours_finds_what_it_missed(schedule: Schedule) -> None:
    schedule.enter(failed(NOW + LATER))
    assert read(schedule, NOW) == []
    assert len(read(schedule, NOW + 30 * LATER)) == 1


def test_where_reading_begins_is_kept_though_nothing_was_read(schedule: Schedule, clock: FakeClock) -> None:
    # Given a first run that only asked where to begin, and a wait
    begun = schedule.positions()
    wait = failed(NOW + LATER)
    schedule.enter(wait)
    # When the next run comes hours later
    clock.advance(seconds=5 * 3600)
    # Then it begins where the first one would have
    assert schedule.positions() == begun
    assert ids(read(schedule, clock.now())) == [wait.message_id]


def test_one_of_two_runs_takes_a_shard(schedule: Schedule) -> None:
    # Given two runs that read the same position of a shard
    position = schedule.positions()[1]
    taken = replace(position, taken_until=NOW + 55_000)
    schedule.move(position, taken)
    # When the other one tries to take it, too
    with pytest.raises(Conflict):
        schedule.move(position, replace(position, taken_until=NOW + 56_000))
    # Then it belongs to the first one, whose call may be repeated
    schedule.move(position, taken)
    assert schedule.positions()[1] == taken


def test_what_has_no_time_cannot_be_scheduled(schedule: Schedule) -> None:
    with pytest.raises(ValueError, match="due time"):
        schedule.enter(first(message(), Verdict.DELIVERED))
