"""Which ``PushMaximumConcurrency`` leaves room for ingest in an account with so many concurrent runs.

The parameter bounds what queues start; what requests, streams and clocks start takes the rest. A test holds the numbers
to the template's.
"""

from __future__ import annotations

BOUNDED = {2: 14, 4: 26, 8: 60, 16: 117, 25: 180, 50: 355, 100: 605, 200: 1105, 400: 2105, 1000: 5105}
"""Concurrent runs of all functions that queues start, by ``PushMaximumConcurrency``: five queues of push and poll,
errors and notify."""
DEFAULT = 50
SHARE = (2, 3)
"""How much of an account's concurrency they may take: a third stays for requests, streams and clocks."""


def fits(runs: int, most: int) -> bool:
    """Whether a ``PushMaximumConcurrency`` fits an account with so many concurrent runs."""
    part, whole = SHARE
    return BOUNDED[runs] * whole <= most * part


def fitting(most: int) -> int | None:
    """The largest ``PushMaximumConcurrency`` up to the default that fits an account; None if none does."""
    return max((runs for runs in BOUNDED if runs <= DEFAULT and fits(runs, most)), default=None)


def advice(most: int) -> str:
    """What to deploy with in an account with this many concurrent runs; empty if the defaults fit."""
    runs = fitting(most)
    if runs == DEFAULT:
        return ""
    ask = "ask for more (Service Quotas, Concurrent executions)"
    smallest = min(BOUNDED)
    if runs is None:
        return (
            f"{ask}; until then PushMaximumConcurrency={smallest} LongPolls=1, and while {most} functions run, "
            f"producers are refused (503): what queues start may take {BOUNDED[smallest]}"
        )
    return f"{ask}, or deploy with PushMaximumConcurrency={runs}: the default would leave nothing for producers"
