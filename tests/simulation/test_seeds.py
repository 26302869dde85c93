"""The hub keeps its promises in every world (docs/decisions/proving.md)."""

from __future__ import annotations

import os

import pytest
from simulation.run import WORLDS
from tests.simulation.commands import python

SEEDS = int(os.environ.get("SIMULATED_SEEDS", "1"))
FIRST = int(os.environ.get("SIMULATED_FROM", "2026112400"))
"""The first seed; a failed run is repeated with the number it prints."""


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_all_promises_are_kept(seed: int, world: str) -> None:
    # Given a world of half an hour, with as many storms as an hour has
    run = python("-m", "simulation", "--seed", str(seed), "--world", world, "--hours", "0.5")
    # Then everything in it ended as promised; if not, the output says how to reproduce it
    assert run.returncode == 0, run.stdout + run.stderr
    assert "all promises kept" in run.stdout
