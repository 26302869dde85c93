"""Single calls of small worlds go wrong one after the other, and the hub keeps its promises each time; a hub that does
two things in the wrong order, or misses what another run has done, is found out.
"""

from __future__ import annotations

import os
from itertools import pairwise

import pytest
from simulation.run import SMALL_WORLDS, Plan, Scene, played, simulate
from simulation.strikes import ALL, Strike, Wrong

from simulation import windows

DRAWN = int(os.environ.get("SIMULATED_FROM", "2026112400"))
"""Draws the strikes."""

SOME = 4
PUSHES = "small pushes"


def calls_of(scene: Scene) -> list[tuple[str, str]]:
    """The numbered calls, by environment and operation."""
    assert scene.account.chosen is not None
    return [(each.environment, each.operation) for each in scene.account.chosen.calls]


def first(operation: str) -> int:
    """The number of the first call of an operation."""
    return next(place for place, each in enumerate(windows.calls(PUSHES)) if each.operation == operation)


@pytest.mark.parametrize("world", SMALL_WORLDS)
def test_promises_are_kept_whichever_call_goes_wrong(world: str) -> None:
    # Given a small world, when single calls of it go wrong or wait, which a seed draws
    results = [*windows.struck(world, windows.sample(world, DRAWN, SOME))]
    # Then every promise is kept each time
    assert len(results) == SOME
    for each in results:
        assert each.violations == [], each.plan.strike


@pytest.mark.parametrize("world", SMALL_WORLDS)
def test_promises_are_kept_where_every_read_may_show_the_past(world: str) -> None:
    # Given reads that are always up to a second old, unless they ask for more
    result = simulate(windows.plan(world, past=True))
    # Then nothing else is excused, and every promise is kept
    assert result.violations == []
    assert not any(name.startswith("excused ") for name in result.figures)


def test_ten_seeds_in_a_row_make_all_strikes_once() -> None:
    every = [str(each) for each in windows.strikes(PUSHES)]
    turns = [str(each) for seed in range(7, 17) for each in windows.turn(PUSHES, seed)]
    assert len(every) == len({*every})
    assert sorted(turns) == sorted(every)
    assert [str(Strike.read(each)) for each in every] == every


def test_every_call_from_another_line_is_struck_also_late_in_a_world() -> None:
    # Given messages that wait for longer than a queue delays, and runs of wake that find nothing before they are due
    calls, sent = windows.calls("small schedule"), "send_message_batch"
    woken = [number for number, each in enumerate(calls) if (each.environment, each.operation) == ("wake-1", sent)]
    struck = {each.call for each in windows.strikes("small schedule")}
    # Then what queues them is struck, and so is the call before it and the one after it that writes
    writes = [number for number, each in enumerate(calls) if each.operation not in windows.READS]
    place = writes.index(woken[0])
    assert {*writes[place - 1 : place + 2]} <= struck


def test_what_makes_no_calls_itself_is_struck_where_its_package_does() -> None:
    # Given a function that only computes what is written, and one that no small world's run passes through
    pure = windows.near(PUSHES, ["pushhub.engine.attempts.completed_attempt:_asked_try"], 10)
    # Then calls of the package around it are struck
    calls = windows.calls(PUSHES)
    assert len(pure) == 10
    assert any("pushhub.engine.attempts.deliver" in calls[each.call].through for each in pure)
    assert windows.near(PUSHES, ["pushhub.notifications.log:Log"], 10) == []


def test_an_environment_that_dies_after_a_call_makes_no_other() -> None:
    # Given a run of push, when it dies after its first write
    number = first("put_item")
    struck = windows.calls(PUSHES)[number]
    with played(windows.plan(PUSHES, Strike(number, Wrong.DIES_AFTER))) as scene:
        # Then that environment makes no further call, and another one does its work
        after = [name for name, _ in calls_of(scene)[number + 1 :]]
        assert struck.environment not in after
        assert any(name.startswith(struck.environment.partition("-")[0]) for name in after)
        assert scene.account.weather.struck["crash"] == 1


def test_a_call_waits_until_so_many_calls_of_others_were_made() -> None:
    # Given the first orders, when they wait for three calls, or for all that others do
    number = first("send_message_batch")
    own = windows.calls(PUSHES)[number].environment
    counts = {}
    for others in (0, 3, ALL):
        with played(windows.plan(PUSHES, Strike(number, None, others) if others else None)) as scene:
            calls = calls_of(scene)
            following = next(place for place in range(number + 1, len(calls)) if calls[place][0] == own)
            counts[others] = following - number - 1
    # Then so many come first
    assert counts[3] >= 3
    assert counts[ALL] > counts[3]


def test_a_strike_excuses_no_more_than_itself() -> None:
    # Given a call that takes effect twice
    number = first("send_message_batch")
    result = simulate(windows.plan(PUSHES, Strike(number, Wrong.REPEATED)))
    # Then little is excused, by that very fault
    excused = {name: count for name, count in result.figures.items() if name.startswith("excused ")}
    assert sum(excused.values()) <= SMALL_WORLDS[PUSHES].most_excused
    assert all(name.endswith(" repeated") for name in excused)


def test_small_worlds_are_the_same_each_time() -> None:
    plan: Plan = windows.plan(PUSHES, Strike(20, Wrong.LATE))
    assert all(one == other for one, other in pairwise(simulate(plan).fingerprint for _ in range(2)))
