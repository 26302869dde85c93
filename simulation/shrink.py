"""Finds a smaller run that breaks a promise, too: storms and producers are left out as long as it still does."""

from __future__ import annotations

from dataclasses import replace

from simulation.run import Result, simulate

MOST_RUNS = 40
"""Maximum number of runs made to shrink one."""


def shrunk(result: Result, *, most_runs: int = MOST_RUNS) -> Result:
    """A run with as few storms and producers as can be found, with its trace.

    Half of what remains is left out at a time, then a quarter, and so on down to single ones: a run that also fails
    without a part does not need it.

    Args:
        result: A run that broke a promise.
        most_runs: Maximum number of runs to make.
    """
    rules = {each.rule for each in result.violations}
    parts, runs, best = [*result.parts], 0, result
    size = max(1, len(parts) // 2)
    while runs < most_runs:
        at = 0
        while at < len(parts) and runs < most_runs:
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
