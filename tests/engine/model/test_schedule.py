"""How far a shard of the schedule was read."""

from __future__ import annotations

from pushhub.engine.model.schedule import Position


def test_another_place_in_the_shard_leaves_who_reads_it() -> None:
    before = Position(shard=3, minute=7, after="a", taken_until=99)
    assert before.at(8, "b") == Position(shard=3, minute=8, after="b", taken_until=99)
