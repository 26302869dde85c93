"""Where a sink is, and what becomes of that."""

from __future__ import annotations

from pushhub.webhooks.model.reading import LEASE_MS, Reader

NOW = 1_800_000_000_000


def test_the_position_moves_when_a_batch_is_written_and_not_before() -> None:
    begun = Reader(position="1").begun("5", NOW)
    assert (begun.position, begun.planned, begun.waits_ms(NOW)) == ("1", "5", LEASE_MS)
    assert begun.waits_ms(NOW + LEASE_MS) == 0
    assert begun.written() == Reader(position="5")


def test_a_batch_that_fails_is_tried_again_as_it_was_each_time_after_twice_as_long() -> None:
    reader, waits = Reader(position="1"), list[int]()
    for _ in range(12):
        reader = reader.begun("5", NOW).failed("no", NOW)
        waits.append(reader.waits_ms(NOW))
    assert waits == [5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 640_000, *[900_000] * 4]
    assert (reader.position, reader.planned, reader.reason) == ("1", "5", "no")
    assert reader.failed("slow", NOW, asked_ms=2_000_000).waits_ms(NOW) == 2_000_000
    assert reader.due_now().waits_ms(NOW) == 0
    assert reader.begun("5", NOW).written() == Reader(position="5")


def test_a_batch_that_is_left_out_leaves_nothing_of_its_failure() -> None:
    failed = Reader(position="1").begun("5", NOW).failed("no", NOW)
    assert failed.without_batch("5") == Reader(position="5")


def test_a_position_never_goes_back() -> None:
    assert Reader(position="5").moved("1") == Reader(position="5")
    assert Reader(position="1").begun("5", NOW).released().waits_ms(NOW) == 0
