"""Records of a stream are handed out side by side, each partition key in its order, and nothing is passed over."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from local.emulator_lanes import AHEAD, RETRY_S, Batch, Lanes


def record(key: str, number: int = 0) -> dict[str, Any]:
    return {"dynamodb": {"Keys": {"pk": {"S": key}, "sk": {"S": f"{number}"}}, "NewImage": {"number": number}}}


def numbers(batch: Batch) -> list[int]:
    return [each["dynamodb"]["NewImage"]["number"] for each in batch.records]


def lanes(*, side_by_side: int = 1, batch_size: int = 2, window_s: float = 0.0, position: int = 0) -> Lanes:
    return Lanes(position, lanes=side_by_side, batch_size=batch_size, window_s=window_s)


def test_a_lane_hands_out_one_batch_at_a_time_in_order() -> None:
    # Given a lane that has read three records, two of them a batch
    one = lanes()
    one.read([record("k", number) for number in range(3)], now=0)
    # When its first batch runs, then the next is not handed out until it is through
    (first,) = one.ready(0)
    assert numbers(first) == [0, 1]
    assert one.ready(0) == []
    one.through(first, 0, done=True)
    assert [numbers(each) for each in one.ready(0)] == [[2]]


def test_a_batch_has_what_all_idle_lanes_have_in_the_order_of_the_stream() -> None:
    several = lanes(side_by_side=4, batch_size=100)
    several.read([record(f"k{each}", each) for each in range(40)], now=0)
    assert [numbers(each) for each in several.ready(0)] == [list(range(40))]


def test_a_partition_key_waits_for_its_batch_and_others_go_on_beside_it() -> None:
    # Given a batch of one record that runs
    several = lanes(side_by_side=4, batch_size=100)
    several.read([record("k0", 0)], now=0)
    (first,) = several.ready(0)
    # When further records come, of that key and of others
    several.read([record("k0", 100), *(record(f"k{each}", each) for each in range(1, 40))], now=1)
    (second,) = several.ready(1)
    # Then those of other lanes are handed out beside it
    assert 20 < len(second.records) < 40
    assert 100 not in numbers(second)
    # And that of the same key behind it
    several.through(first, 2, done=True)
    (third,) = several.ready(2)
    assert numbers(third)[0] == 100
    assert sorted(numbers(first) + numbers(second) + numbers(third)) == [*range(40), 100]


def test_a_full_batch_leaves_the_other_lanes_theirs() -> None:
    several = lanes(side_by_side=4, batch_size=2)
    several.read([record(f"k{each}", each) for each in range(12)], now=0)
    batches = several.ready(0)
    assert len(batches) > 1
    assert numbers(batches[0]) == [0, 1]
    for earlier, later in pairwise(batches):
        assert not {id(each) for each in earlier.lanes} & {id(each) for each in later.lanes}


def test_a_batch_that_failed_comes_again_after_a_moment_lane_by_lane() -> None:
    # Given a batch of several lanes
    several = lanes(side_by_side=4, batch_size=100)
    several.read([record(f"k{each}", each) for each in range(40)], now=0)
    (whole,) = several.ready(0)
    # When it fails
    several.through(whole, 10, done=False)
    # Then nothing is handed out for a moment, and then each lane's by itself
    assert several.ready(10) == []
    assert several.next_due() == 10 + RETRY_S
    batches = several.ready(10 + RETRY_S)
    assert len(batches) == 4
    assert sorted(number for each in batches for number in numbers(each)) == list(range(40))
    # And those that are done go together again, whatever becomes of the one that is not
    for each in batches[1:]:
        several.through(each, 20, done=True)
    several.through(batches[0], 20, done=False)
    several.read([record(f"k{each}", each) for each in range(40)], now=20)
    (together,) = several.ready(20)
    assert len(together.lanes) == 3


def test_a_batch_waits_for_its_window_unless_it_is_full() -> None:
    # Given a mapping that waits 2 s for more
    patient = lanes(window_s=2)
    patient.read([record("k", 0)], now=5)
    # Then one record waits
    assert patient.ready(6) == []
    assert patient.next_due() == 7
    (late,) = patient.ready(7)
    assert numbers(late) == [0]
    patient.through(late, 7, done=True)
    # And a full batch does not
    patient.read([record("k", 1), record("k", 2)], now=8)
    assert [numbers(each) for each in patient.ready(8)] == [[1, 2]]


def test_a_restart_goes_on_before_everything_that_was_not_through() -> None:
    # Given lanes that have read on while their first batch runs
    several = lanes(side_by_side=4, batch_size=100, position=50)
    several.read([record("k0", 0)], now=0)
    (first,) = several.ready(0)
    several.read([record(f"k{each}", each) for each in range(1, 20)], now=0)
    (second,) = several.ready(0)
    # When only the second is through, then a restart begins with the first
    several.through(second, 0, done=True)
    assert several.checkpoint == 50
    # And when that is, with what has waited behind it
    several.through(first, 0, done=True)
    (third,) = several.ready(0)
    assert several.checkpoint == 50 + numbers(third)[0]
    several.through(third, 0, done=True)
    assert several.checkpoint == several.position == 70


def test_records_that_a_filter_leaves_out_are_passed_over() -> None:
    one = lanes()
    one.read([None, None, record("k", 7), None], now=0)
    (only,) = one.ready(0)
    assert numbers(only) == [7]
    assert one.checkpoint == 2
    one.through(only, 0, done=True)
    assert one.checkpoint == 4


@pytest.mark.parametrize("side_by_side", [1, 3])
def test_nothing_more_is_read_while_a_lane_has_enough(side_by_side: int) -> None:
    full = lanes(side_by_side=side_by_side, batch_size=2)
    assert full.room == AHEAD * 2
    full.read([record("k", number) for number in range(AHEAD * 2)], now=0)
    assert full.room == 0
