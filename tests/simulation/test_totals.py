"""The simulator's totals over many runs."""

from __future__ import annotations

from collections import Counter

from simulation.promises.judgement import Violation
from simulation.run import Plan, Result
from simulation.strikes import Strike, Wrong
from simulation.totals import Totals
from simulation.weather import Kind


def result(world: str, seed: int, *violations: Violation, **figures: int) -> Result:
    counted = Counter({name.replace("_", " "): count for name, count in figures.items()})
    return Result(Plan(seed, world), list(violations), "f", [], [], 10.0, 1.0, counted)


def test_runs_are_added_up_by_world_and_states_that_were_never_reached_are_named() -> None:
    # Given two runs of one world and one of another, in which a promise was broken
    totals = Totals()
    totals.add(result("ironmq", 1, step_accepted_to_pending=3, fault_crash=2, most_in_flight_PushQueue=7), 2.0)
    totals.add(result("ironmq", 2, step_pending_to_delivered=3, fault_crash=3, most_in_flight_PushQueue=5), 2.0)
    totals.add(result("hub", 1, Violation("copies", "1", "two"), circuit_closed_to_open=1), 1.0)
    # Then each world has its own line, faults are added up, and the busiest moment is that of one run
    lines = list(totals.lines())
    assert lines[:4] == [
        "3 runs, 30 simulated hours in 5 s of CPU, 6.0 a second; promises broken in hub 1",
        "tried:",
        "  ironmq: 2 runs, 20 simulated hours in 4 s of CPU, 5.0 a second; deliveries were pending, delivered",
        "  hub: 1 run, 10 simulated hours in 1 s of CPU, 10.0 a second",
    ]
    assert totals.figures["most in flight PushQueue"] == 7
    # And the totals list the states that were reached, and those that never were
    [reported] = [each for each in lines if "reached" in each]
    assert "5 faults" in reported
    assert "2 of 10 states of deliveries (never retrying, reserved, polling, held, acknowledged" in reported
    assert "by 2 steps" in reported
    assert "2 of 4 states of circuits (never ramping, paused) by 1 steps" in reported


def test_without_a_broken_promise_all_are_kept() -> None:
    totals = Totals()
    totals.add(result("ironmq", 1), 1.0)
    assert next(totals.lines()).endswith("all promises kept")


def test_the_totals_say_how_often_each_fault_was_applied_also_those_that_never_were() -> None:
    totals = Totals()
    totals.add(result("ironmq", 1, fault_crash=2, fault_window=3), 1.0)
    totals.add(result("hub", 1, fault_crash=4), 1.0)
    (line,) = (each for each in totals.lines() if each.startswith("  applied: "))
    counts = dict(each.rsplit(" ", 1) for each in line.removeprefix("  applied: ").split(", "))
    assert counts.keys() == {*Kind}
    assert (counts["crash"], counts["window"], counts["half-open"]) == ("6", "3", "0")


def test_the_totals_say_what_was_excused_for_which_kind_of_fault() -> None:
    totals = Totals()
    counts = {"judged": 1000, "excused asked twice, for crash": 2, "excused too late, for crash": 1}
    totals.add(Result(Plan(1, "hub"), [], "f", [], [], 1.0, 1.0, Counter(counts)), 1.0)
    totals.add(Result(Plan(2, "hub"), [], "f", [], [], 1.0, 1.0, Counter({"excused x, for lost and slow": 1})), 1.0)
    assert "excused: 4 of 1000 facts: crash 3, lost and slow 1" in [*totals.lines()]


def test_the_totals_fit_on_a_screen_and_say_how_sure_they_make_one() -> None:
    # Given a run of a world, and some strikes of a small one
    totals = Totals()
    counted = Counter({f"most to one key in a second: {each}": each for each in range(200)})
    totals.add(Result(Plan(1, "hub"), [], "f", [], [], 1.0, 1.0, counted), 1.0)
    for number in range(99):
        strike = Strike(number, Wrong.LOST)
        totals.add(Result(Plan(1, "small store", strike=strike), [], "f", [], [], 1.0, 1.0), 1.0, 500)
    # Then the totals say which share of the strikes was made, and what the number of runs means
    lines = [*totals.lines()]
    assert "  small store: 99 of 500 strikes of single calls, 99 s of CPU" in lines
    assert "  small store: 401 strikes are left; ten seeds in a row make all of them" in lines
    assert "  with 95 %, fewer than 3.0% of such runs break a promise" in lines
    assert len(lines) < 40
