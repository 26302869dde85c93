"""Records of a stream are handed out side by side, each partition key in its order, and nothing is passed over."""

from __future__ import annotations

from typing import Any

import pytest
from local.emulator_lanes import AHEAD, RETRY_S, Lanes


def record(key: str, number: int = 0) -> dict[str, Any]:
    return {"dynamodb": {"Keys": {"pk": {"S": key}, "sk": {"S": f"{number}"}}, "NewImage": {"number": number}}}


def numbers(batch: list[dict[str, Any]]) -> list[int]:
    return [each["dynamodb"]["NewImage"]["number"] for each in batch]


def lanes(*, side_by_side: int = 1, batch_size: int = 2, window_s: float = 0.0, position: int = 0) -> Lanes:
    return Lanes(position, lanes=side_by_side, batch_size=batch_size, window_s=window_s)


def test_a_lane_hands_out_one_batch_at_a_time_in_order() -> None:
    # Given a lane that has read three records, two of them a batch
    one = lanes()
    one.read([record("k", number) for number in range(3)], now=0)
    # When its first batch runs, then the next is not handed out until it is through
    assert numbers(one.ready(0)[0]) == [0, 1]
    assert one.ready(0) == {}
    one.through(0, 0, done=True)
    assert numbers(one.ready(0)[0]) == [2]


def test_records_of_a_partition_key_stay_in_one_lane_and_others_go_on_beside_it() -> None:
    # Given several lanes and two records of each of many keys
    several = lanes(side_by_side=4, batch_size=100)
    several.read([record(f"k{each % 40}", each) for each in range(80)], now=0)
    # When their batches are handed out side by side
    batches = several.ready(0)
    # Then there is more than one, and both records of a key are in the same, in their order
    assert len(batches) == 4
    assert sorted(number for batch in batches.values() for number in numbers(batch)) == list(range(80))
    for batch in batches.values():
        found = numbers(batch)
        assert found == sorted(found)
        assert {each % 40 for each in found if each < 40} == {each % 40 for each in found if each >= 40}


def test_a_batch_that_failed_comes_again_whole_after_a_moment() -> None:
    one = lanes()
    one.read([record("k", number) for number in range(3)], now=0)
    one.ready(0)
    # When it fails
    one.through(0, 10, done=False)
    # Then nothing is handed out for a moment, and then the same
    assert one.ready(10) == {}
    assert one.next_due() == 10 + RETRY_S
    assert numbers(one.ready(10 + RETRY_S)[0]) == [0, 1]


def test_a_batch_waits_for_its_window_unless_it_is_full() -> None:
    # Given a mapping that waits 2 s for more
    patient = lanes(window_s=2)
    patient.read([record("k", 0)], now=5)
    # Then one record waits
    assert patient.ready(6) == {}
    assert patient.next_due() == 7
    assert numbers(patient.ready(7)[0]) == [0]
    patient.through(0, 7, done=True)
    # And a full batch does not
    patient.read([record("k", 1), record("k", 2)], now=8)
    assert numbers(patient.ready(8)[0]) == [1, 2]


def test_a_restart_goes_on_before_everything_that_was_not_through() -> None:
    # Given two lanes, of which one is through with what it had
    two = lanes(side_by_side=2, batch_size=100, position=50)
    two.read([record(f"k{each}", each) for each in range(20)], now=0)
    batches = two.ready(0)
    assert two.checkpoint == 50
    two.through(0, 0, done=True)
    # Then a restart begins with the first record of the other
    assert two.checkpoint == 50 + numbers(batches[1])[0]
    two.through(1, 0, done=True)
    assert two.checkpoint == two.position == 70


def test_records_that_a_filter_leaves_out_are_passed_over() -> None:
    one = lanes()
    one.read([None, None, record("k", 7), None], now=0)
    assert numbers(one.ready(0)[0]) == [7]
    assert one.checkpoint == 2
    one.through(0, 0, done=True)
    assert one.checkpoint == 4


@pytest.mark.parametrize("side_by_side", [1, 3])
def test_nothing_more_is_read_while_a_lane_has_enough(side_by_side: int) -> None:
    full = lanes(side_by_side=side_by_side, batch_size=2)
    assert full.room == AHEAD * 2
    full.read([record("k", number) for number in range(AHEAD * 2)], now=0)
    assert full.room == 0
