"""A run depends on its seed alone: identical when repeated, even in another process; different with another seed."""

from __future__ import annotations

from simulation.run import WORLDS, Plan, simulate
from tests.simulation.commands import python

FINGERPRINTS = """
from simulation.run import WORLDS, Plan, simulate
for world in WORLDS:
    print(world, simulate(Plan(1, world, 0.05, talk=False)).fingerprint)
"""


def fingerprints() -> list[str]:
    """Each world and the fingerprint of its run, made in a separate process."""
    run = python("-c", FINGERPRINTS)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_the_same_seed_is_the_same_run() -> None:
    # When each world is run in two processes with one seed, then everything happened at the same moments
    first, second = fingerprints(), fingerprints()
    assert len(first) == len(WORLDS)
    assert first == second


def test_another_seed_is_another_run() -> None:
    one, other = (simulate(Plan(seed, "gates", 0.1, talk=False)) for seed in (1, 2))
    assert one.fingerprint != other.fingerprint
