"""What the model of notifications finds, and what it leaves alone, in a few lines of what consumers saw."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from simulation.promises.judgement import SECOND, Fault, Faults, Judgement
from simulation.promises.notifications import WINDOW, Connection, Frame, Notifications

ENDS = 2_000 * SECOND
CONNECTIONS = [Connection("a", 0, 100 * SECOND), Connection("b", 200 * SECOND, 900 * SECOND)]


def came(at: int, position: int = 1, on: str = "a", acknowledged: int | None = None, content: str = "") -> Frame:
    noted = None if acknowledged is None else (acknowledged + 1) * SECOND
    heard = None if acknowledged is None else acknowledged * SECOND
    return Frame(at * SECOND, on, position, (0, position), content or f"n{position}", heard, noted)


def judged(
    *frames: Frame,
    faults: Faults | None = None,
    shared: bool = False,
    connections: Sequence[Connection] = CONNECTIONS,
) -> Judgement:
    judgement = Judgement()
    contents = {(0, number): f"n{number}" for number in range(1, 2_000)}
    Notifications(judgement, faults or Faults(), ends=ENDS).judge(contents, frames, connections, shared=shared)
    return judgement


def rules(*frames: Frame) -> list[str]:
    return [each.rule for each in judged(*frames).violations]


@pytest.mark.parametrize(
    ("frames", "rule"),
    [
        ([came(1, acknowledged=2), came(3, 2, acknowledged=5)], ""),
        # What was not acknowledged comes again, before what is new.
        ([came(1), came(201, on="b", acknowledged=210), came(202, 2, on="b", acknowledged=211)], ""),
        ([came(1)], "not sent again"),
        ([came(1), came(500, on="b", acknowledged=510)], "not sent again"),
        ([came(1, 2), came(201, 1, on="b", acknowledged=204), came(202, 2, on="b", acknowledged=205)], ""),
        (
            [came(1), came(201, 2, on="b", acknowledged=204), came(202, on="b", acknowledged=205)],
            "sent again out of order",
        ),
        ([came(1, acknowledged=2), came(201, on="b", acknowledged=205)], "sent after its acknowledgement"),
        ([came(1, acknowledged=2, content="n")], "other bytes than were published"),
        ([came(1, 5_000, acknowledged=2)], "sent and never published"),
        ([came(1, acknowledged=9), came(5, acknowledged=9)], "twice on one connection"),
        ([came(201, number, on="b", acknowledged=890) for number in range(1, WINDOW + 1)], ""),
        ([came(201, number, on="b", acknowledged=890) for number in range(1, WINDOW + 2)], "more than its window"),
    ],
)
def test_a_subscriber_is_sent_what_it_is_owed(frames: list[Frame], rule: str) -> None:
    assert rule in rules(*frames) if rule else rules(*frames) == []


@pytest.mark.parametrize(
    ("again_at", "shared", "kept"), [(909, True, True), (911, True, False), (189, False, True), (191, False, False)]
)
def test_another_consumer_gets_it_once_a_vanished_one_is_known_to_be_gone(
    again_at: int, shared: bool, kept: bool
) -> None:
    # Given a consumer that vanishes after 100 s without a word, and another one that is connected all the time
    connections = [Connection("a", 0, 100 * SECOND, vanished=True), Connection("b", 1 * SECOND, ENDS)]
    frames = [came(99), came(again_at, on="b", acknowledged=again_at + 1)]
    # Then it gets what the first did not acknowledge within twelve minutes and ninety seconds; a consumer that comes
    # back itself, within ninety seconds
    found = judged(*frames, shared=shared, connections=connections).violations
    assert [each.rule for each in found] == ([] if kept else ["not sent again"])


def test_only_a_fault_of_what_sends_and_hears_excuses() -> None:
    faults = Faults()
    faults.struck(Fault("crash", "storm-1", 3 * SECOND, 3 * SECOND), 3 * SECOND, [""])
    again = [came(1, acknowledged=2), came(201, on="b", acknowledged=205)]
    assert judged(*again, faults=faults).violations == []
    assert judged(*again).violations != []


def test_it_comes_twice_on_a_connection_only_where_a_fault_struck_between() -> None:
    faults = Faults()
    faults.struck(Fault("crash", "storm-1", 4 * SECOND, 4 * SECOND), 4 * SECOND, [""])
    # Given a fault between two frames of one notification, then they are excused, and counted
    between = judged(came(1, acknowledged=9), came(5, acknowledged=9), faults=faults)
    assert between.violations == []
    assert between.excused == {"twice on one connection, for crash": 1}
    # And none excuses what came again long after it
    after = judged(came(30, acknowledged=49), came(40, acknowledged=49), faults=faults)
    assert [each.rule for each in after.violations] == ["twice on one connection"]
