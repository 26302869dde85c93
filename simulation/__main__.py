"""``make simulate``: runs of one world, one seed after another.

The first run that breaks a promise is shrunk, and its trace printed. Of small worlds, each seed strikes a tenth of all
calls in all ways (:mod:`simulation.windows`).
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from simulation import windows
from simulation.run import SMALL_WORLDS, WORLDS, Plan, Result, simulate
from simulation.strikes import Strike
from simulation.template import stack
from simulation.totals import Totals, applied

SHOWN_LINES = 60
"""Maximum number of lines of a trace that are printed."""

SHOWN_VIOLATIONS = 10

MOST_RUNS = 40
"""Maximum number of runs made to shrink one."""


def main(arguments: Sequence[str]) -> int:
    """Make the runs that the command line asks for; returns 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, one after the other")
    parser.add_argument("--hours", type=float, default=6.0, help="hours of traffic and faults in each run")
    parser.add_argument("--world", choices=[*WORLDS, *SMALL_WORLDS, "all"], default="all")
    parser.add_argument("--rate", type=float, default=12.0, help="posts an hour of each producer")
    parser.add_argument(
        "--only", default="", help="storms and producers that take part, by name, with commas between; all if empty"
    )
    parser.add_argument("--calm", action="store_true", help="no storms: only endpoints and owners do what they do")
    parser.add_argument("--strike", default="", help="of a small world, the one call to strike, as a run has named it")
    parser.add_argument("--minutes", type=float, default=0, help="begin no run after so many minutes; 0 for no end")
    parser.add_argument("--go-on", action="store_true", help="name runs that break a promise, and go on with the next")
    given = parser.parse_args(arguments)
    only = frozenset(given.only.split(",")) if given.only else None
    worlds = [*WORLDS, *SMALL_WORLDS] if given.world == "all" else [given.world]
    totals, began = Totals(), time.monotonic()
    # A run makes much garbage and keeps little: what is loaded already is not looked through for it each time.
    stack()
    gc.collect()
    gc.freeze()
    for seed, world in product(range(given.seed, given.seed + given.seeds), worlds):
        if given.minutes and time.monotonic() - began > given.minutes * 60:
            break
        if world in SMALL_WORLDS:
            chosen = [Strike.read(given.strike)] if given.strike else windows.turn(world, seed)
            if not _struck(totals, world, seed, chosen, go_on=given.go_on):
                return 1
            continue
        worked = time.process_time()
        result = simulate(Plan(seed, world, given.hours, given.rate, only, given.calm), progress=_print_report)
        print(f"{_summary(result)}\n  {applied(result.figures)}", flush=True)
        if result.violations and not given.go_on:
            _explain(result)
            return 1
        _tell(result)
        totals.add(result, time.process_time() - worked)
    print("\n".join(totals.lines()))
    return 1 if totals.broken else 0


def _struck(totals: Totals, world: str, seed: int, chosen: Sequence[Strike], *, go_on: bool) -> bool:
    """Strike calls of a small world; returns whether to go on."""
    worked, runs = time.process_time(), 0
    every = sum(1 for _ in windows.strikes(world))
    for result in windows.struck(world, chosen):
        now = time.process_time()
        totals.add(result, now - worked, every)
        worked, runs = now, runs + 1
        if result.violations:
            _tell_strike(result)
            if not go_on:
                return False
    print(f"{world} seed {seed}: {runs} of {every} strikes", flush=True)
    return True


def _tell_strike(result: Result) -> None:
    """Print what was broken, and the end of the trace."""
    plan = result.plan
    assert plan.strike is not None
    print(f"{plan.world}, strike {plan.strike}: {windows.calls(plan.world)[plan.strike.call]}")
    _tell(result)
    again = simulate(plan, keep_lines=True)
    for at, line in again.about(again.violations[0])[-SHOWN_LINES:]:
        print(f"  {at / 1_000_000:14.6f} s  {line}")
    print(f'again:\n  python -m simulation --world "{plan.world}" --strike "{plan.strike}"', flush=True)


def _print_report(line: str) -> None:
    print(f"  {line}", flush=True)


def _summary(result: Result) -> str:
    plan, figures = result.plan, result.figures
    return (
        f"{plan.world} seed {plan.seed}: {figures['messages']} messages, {figures['deliveries']} deliveries, "
        f"{sum(count for name, count in figures.items() if name.startswith('fault '))} faults, "
        f"{result.simulated_hours:.0f} h in {result.seconds:.1f} s, {len(result.violations)} promises broken, "
        f"{result.fingerprint}"
    )


def _tell(result: Result) -> None:
    """Print what was broken."""
    for each in result.violations[:SHOWN_VIOLATIONS]:
        print(f"  {each}")


def _explain(result: Result) -> None:
    """Print what was broken, find a smaller run that also breaks a promise, and print its trace."""
    _tell(result)
    print("looking for a smaller run that breaks a promise too ...", flush=True)
    small = shrunk(result)
    plan = small.plan
    print(f"left of {len(result.parts)} storms and producers: {', '.join(sorted(plan.only or ()))}")
    for storm in small.storms:
        print(f"  {storm}")
    about = small.violations[0]
    print(f"  {about}")
    for at, line in small.about(about)[-SHOWN_LINES:]:
        print(f"  {at / 1_000_000:14.6f} s  {line}")
    print("again:")
    if not plan.calm:
        print(f"  make simulate SEED={plan.seed} WORLD={plan.world} HOURS={plan.hours:g} RATE={plan.rate:g}")
    print(
        f"  make simulate SEED={plan.seed} WORLD={plan.world} HOURS={plan.hours:g} RATE={plan.rate:g} "
        f"ONLY={','.join(sorted(plan.only or ()))}"
    )


def shrunk(result: Result) -> Result:
    """A run with as few storms and producers as can be found, with its trace.

    Half of what remains is left out at a time, then a quarter, and so on down to single ones: a run that also fails
    without a part does not need it.
    """
    rules = {each.rule for each in result.violations}
    parts, runs, best = [*result.parts], 0, result
    size = max(1, len(parts) // 2)
    while runs < MOST_RUNS:
        at = 0
        while at < len(parts) and runs < MOST_RUNS:
            rest = [*parts[:at], *parts[at + size :]]
            tried = simulate(replace(result.plan, only=frozenset(rest)))
            runs += 1
            if any(each.rule in rules for each in tried.violations):
                parts, best = rest, tried
            else:
                at += size
        if size == 1:
            break
        size //= 2
    return simulate(replace(best.plan, only=frozenset(parts)), keep_lines=True)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Otherwise the order of sets of strings would differ from process to process, and no run could be repeated.
        again = [sys.executable, "-m", "simulation", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})  # noqa: S606 (this very program)
    sys.exit(main(sys.argv[1:]))
