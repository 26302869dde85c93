"""The rules for receivers with limits, on logs made by hand: each is broken by what it forbids, and by nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from simulation.promises.flow import Asked, Flow, Limit, Waiting
from simulation.promises.judgement import SECOND, Fault, Faults, Judgement
from simulation.promises.push import FOREVER

RATE, PLACES = Limit(rate_per_s=1), Limit(at_once=2)
MINUTES = 5


def one_each(seconds: float, lasts_s: float = 0.1, until_s: float = MINUTES * 60, first_s: float = 10) -> list[Asked]:
    """A request each so many seconds."""
    times = [first_s + place * seconds for place in range(int((until_s - first_s) / seconds))]
    return [Asked(round(at * SECOND), round((at + lasts_s) * SECOND), f"{at}") for at in times]


def waiting_for(log: Sequence[Asked]) -> list[Waiting]:
    """All messages were there from the beginning."""
    return [Waiting(each.message_id, 0) for each in log]


def broken(
    limit: Limit,
    log: Sequence[Asked],
    *,
    faults: Faults | None = None,
    waiting: Iterable[Waiting] | None = None,
    clocks_s: float = 0,
    disturbed: Sequence[tuple[int, int]] = (),
) -> set[str]:
    judgement = Judgement()
    waits = waiting_for(log) if waiting is None else waiting
    in_time = sorted(log, key=lambda each: each.at)
    flow = Flow(judgement, faults or Faults(), clocks_s=clocks_s)
    flow.judge("r", limit, in_time, waits, disturbed=disturbed)
    assert judgement.judged
    return {each.rule for each in judgement.violations}


def two_places(until_s: float = MINUTES * 60) -> list[Asked]:
    """Two places in use all the time, each for five seconds."""
    return [*one_each(5, 4.9, until_s), *one_each(5, 4.9, until_s, first_s=12)]


def test_what_is_as_promised_breaks_nothing() -> None:
    assert broken(RATE, one_each(1)) == set()
    assert broken(Limit(rate_per_s=0.1), one_each(10)) == set()
    assert broken(PLACES, two_places()) == set()
    # Nor does somebody for whom nothing waits
    assert broken(RATE, one_each(30), waiting=[]) == set()
    late = [Waiting(each.message_id, each.at - SECOND) for each in one_each(30)]
    assert broken(RATE, one_each(30), waiting=late) == set()


@pytest.mark.parametrize(("kind", "felt"), [("stopped", 480), ("outage", 180)])
def test_what_was_handed_out_in_vain_comes_back_later(kind: str, felt: int) -> None:
    # Given two messages that come a minute after one another, long after a storm of a minute
    faults = Faults()
    faults.everywhere(Fault(kind, "storm", 0, 60 * SECOND))
    begins = 60 + felt
    few = [Asked(each * SECOND, each * SECOND + 1, f"{each}") for each in (begins - 20, begins + 40)]
    waiting = [*waiting_for(few), *waiting_for(few)]
    # Then it explains what is slow for so long and no longer
    assert broken(RATE, few, faults=faults, waiting=waiting) == {"slower than its rate"}
    soon = [Asked(each.at - 60 * SECOND, each.ended - 60 * SECOND, each.message_id) for each in few]
    assert broken(RATE, soon, faults=faults, waiting=waiting) == set()


def test_what_no_function_could_do_is_done_later() -> None:
    # Given half an hour in which functions could not run, one in which they failed, and one long after
    faults = Faults()
    for kind, begins_s, ends_s in (("outage", 0, 1_800), ("crowded", 900, 2_700), ("stopped", 9_000, 9_900)):
        faults.everywhere(Fault(kind, kind, begins_s * SECOND, ends_s * SECOND))
    # Then what was due in the second is done eight minutes after its end, and nothing else is late
    late = {due_s: faults.over(due_s * SECOND) // SECOND - due_s for due_s in (60, 899, 900, 2_699, 4_000, 9_500)}
    assert late == {60: 0, 899: 0, 900: 2_280, 2_699: 481, 4_000: 0, 9_500: 880}


def test_more_than_the_limits_is_seen() -> None:
    assert broken(PLACES, [*two_places(), Asked(63 * SECOND, 64 * SECOND, "third")]) == {"too many at a time"}
    open_ones = [Asked(place * SECOND, FOREVER, str(place)) for place in range(3)]
    assert broken(PLACES, open_ones) >= {"too many at a time"}
    together = [Asked(60 * SECOND + place, 61 * SECOND, f"x{place}") for place in range(4)]
    assert broken(RATE, [*one_each(1), *together]) == {"too often"}
    # But not where clocks differ, nor a second's burst and what took unequally long
    assert broken(RATE, [*one_each(1), *together], clocks_s=3) == set()
    assert broken(RATE, [*one_each(1), *together[:2]]) == set()


def test_less_than_the_rate_is_seen_while_something_waits() -> None:
    # A mark that is moved twice: half of the rate
    assert broken(RATE, one_each(2)) == {"slower than its rate"}
    # A gap of five seconds where a turn passes on
    gap = [each for each in one_each(1) if not 100 * SECOND <= each.at < 105 * SECOND]
    assert broken(RATE, gap) == {"slower than its rate"}
    # But not once it has failed, which is remembered, nor where its owner does something
    failed = Asked(9 * SECOND, 10 * SECOND, "failed", fine=False)
    assert broken(RATE, [*one_each(2), failed]) == set()
    assert broken(RATE, gap, disturbed=[(0, SECOND)]) == set()


def test_a_place_that_is_left_free_is_seen_while_something_waits() -> None:
    # A place that was never given back
    assert broken(PLACES, one_each(5, 4.9)) == {"places left free"}
    # But for as long as an answer takes when a turn passes on, and where answers are short
    passes_on = [each for each in two_places() if not 100 * SECOND <= each.at < 104 * SECOND]
    assert broken(PLACES, passes_on) == set()
    assert broken(PLACES, one_each(1, 0.1)) == set()


@pytest.mark.parametrize(("kind", "excused"), [("crash", False), ("outage", True)])
@pytest.mark.parametrize("limit", [RATE, PLACES])
def test_nobody_who_goes_on_is_seen_whoever_died(limit: Limit, kind: str, excused: bool) -> None:
    log = one_each(1, 0.9) if limit is RATE else two_places()
    died = 50
    gap = [each for each in log if not died * SECOND <= each.at < (died + 245) * SECOND]
    faults = Faults()
    faults.struck(Fault(kind, "f", died * SECOND, died * SECOND), died * SECOND, [""])
    # Faults explain what is slow for three minutes, and not that nobody goes on after two, if somebody died
    found = broken(limit, gap, faults=faults)
    assert ("nobody went on" in found) != excused
