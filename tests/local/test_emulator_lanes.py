"""Records of a stream are handed out side by side, each partition key in its order, and nothing is passed over."""

from __future__ import annotations

from typing import Any

from local.emulator.lanes import RETRY_S, Batch, Lanes


def record(key: str, number: int = 0) -> dict[str, Any]:
    return {"dynamodb": {"Keys": {"pk": {"S": key}, "a": {"S": f"{number}"}}, "NewImage": {"number": number}}}


def numbers(batch: Batch) -> list[int]:
    return [each["dynamodb"]["NewImage"]["number"] for each in batch.records]


def lanes(*, side_by_side: int = 1, batch_size: int = 2, window_s: float = 0.0, position: int = 0) -> Lanes:
    return Lanes(position, lanes=side_by_side, batch_size=batch_size, window_s=window_s)


def test_one_lane_hands_out_one_batch_at_a_time_in_order() -> None:
    # Given three records, two of them a batch
    one = lanes()
    one.read([record(f"p#{number}", number) for number in range(3)], now=0)
    # When the first batch runs, then the next is not handed out until it is through
    (first,) = one.ready(0)
    assert numbers(first) == [0, 1]
    assert one.ready(0) == []
    one.through(first, 0, done=True)
    assert [numbers(each) for each in one.ready(0)] == [[2]]


def test_an_owner_does_not_stand_behind_another_ones_backlog() -> None:
    # Given an owner with thousands of records, of which some are at work
    several = lanes(side_by_side=4, batch_size=100)
    several.read([record(f"busy#{each}", each) for each in range(5_000)], now=0)
    batches = several.ready(0)
    assert [len(each.records) for each in batches] == [100, 100, 100]
    assert [each.owners for each in batches] == [{"busy"}] * 3
    # When another one's come, then they are handed out at once
    several.read([record("quiet#0", 7_000), record("busy#7", 7_001), record("quiet#1", 7_002)], now=1)
    (batch,) = several.ready(1)
    assert numbers(batch) == [7_000, 7_002]
    assert batch.owners == {"quiet"}


def test_owners_that_wait_together_share_batches() -> None:
    several = lanes(side_by_side=2, batch_size=10)
    several.read([record(f"busy#{each}", each) for each in range(100)], now=0)
    several.read([record(f"quiet#{each}", 100 + each) for each in range(3)], now=0)
    (batch,) = several.ready(0)
    assert numbers(batch) == [*range(7), 100, 101, 102]


def test_what_comes_while_an_owners_batch_runs_waits_for_it_unless_it_is_a_batch_by_itself() -> None:
    # Given an owner whose batch of one runs
    several = lanes(side_by_side=4, batch_size=10)
    several.read([record("p#0", 0)], now=0)
    (first,) = several.ready(0)
    # When a few more come, then they wait and go together
    several.read([record(f"p#{each}", each) for each in range(1, 5)], now=1)
    assert several.ready(1) == []
    assert several.next_due() is None
    # And when they are as many as a batch takes, they go beside it
    several.read([record(f"p#{each}", each) for each in range(5, 12)], now=2)
    (second,) = several.ready(2)
    assert numbers(second) == [*range(1, 11)]
    several.through(first, 3, done=True)
    several.through(second, 3, done=True)
    assert [numbers(each) for each in several.ready(3)] == [[11]]


def test_records_of_one_partition_key_are_never_at_work_side_by_side() -> None:
    # Given a batch with a partition key
    several = lanes(side_by_side=4, batch_size=3)
    several.read([record("p#a", 0), record("p#b", 1)], now=0)
    (first,) = several.ready(0)
    # When more of it come, and enough of others
    several.read([record("p#a", 2), record("p#c", 3), record("p#d", 4), record("p#e", 5), record("p#a", 6)], now=0)
    # Then others go beside it, and its own behind it in their order
    (second,) = several.ready(0)
    assert numbers(second) == [3, 4, 5]
    several.through(first, 0, done=True)
    several.through(second, 0, done=True)
    assert [numbers(each) for each in several.ready(0)] == [[2, 6]]


def test_a_batch_that_failed_comes_again_half_by_half_and_what_is_good_gets_through() -> None:
    # Given a batch of which one record is bad
    several = lanes(side_by_side=4, batch_size=100)
    several.read([record(f"p#{each}", each) for each in range(40)], now=0)
    now, done = 0.0, set()
    batches = several.ready(now)
    # When it is tried again and again
    for _ in range(10):
        for batch in batches:
            bad = 13 in numbers(batch)
            several.through(batch, now, done=not bad)
            done |= set() if bad else set(numbers(batch))
        assert several.ready(now) == []
        assert several.next_due() == now + RETRY_S
        now += RETRY_S
        batches = several.ready(now)
    # Then all others are through, and it still comes
    assert done == {*range(40)} - {13}
    assert [numbers(each) for each in batches] == [[13]]
    assert several.checkpoint == 13


def test_a_batch_waits_for_its_window_unless_it_is_full() -> None:
    # Given a mapping that waits 2 s for more
    patient = lanes(window_s=2)
    patient.read([record("p#k", 0)], now=5)
    # Then one record waits
    assert patient.ready(6) == []
    assert patient.next_due() == 7
    (late,) = patient.ready(7)
    assert numbers(late) == [0]
    patient.through(late, 7, done=True)
    # And a full batch does not
    patient.read([record("p#k", 1), record("p#k", 2)], now=8)
    assert [numbers(each) for each in patient.ready(8)] == [[1, 2]]


def test_a_restart_goes_on_before_everything_that_was_not_through() -> None:
    # Given a stream of which a first batch runs, and a second one beside it
    several = lanes(side_by_side=4, batch_size=10, position=50)
    several.read([record("p#0", 0)], now=0)
    (first,) = several.ready(0)
    several.read([record(f"q#{each}", each) for each in range(1, 5)], now=0)
    (second,) = several.ready(0)
    # When only the second is through, then a restart begins with the first
    several.through(second, 0, done=True)
    assert several.checkpoint == 50
    # And when that is, behind both
    several.through(first, 0, done=True)
    assert several.checkpoint == several.position == 55


def test_records_that_a_filter_leaves_out_are_passed_over() -> None:
    one = lanes()
    one.read([None, None, record("p#k", 7), None], now=0)
    (only,) = one.ready(0)
    assert numbers(only) == [7]
    assert one.checkpoint == 2
    one.through(only, 0, done=True)
    assert one.checkpoint == 4
