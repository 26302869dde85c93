"""A run is made of its seed alone: the same twice, also in another process, and another for another seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from simulation.run import WORLDS

ROOT = Path(__file__).parents[2]


def fingerprint(seed: int, world: str) -> str:
    """What a run in a process of its own leaves."""
    run = subprocess.run(
        [sys.executable, "-m", "simulation", "--seed", str(seed), "--world", world, "--hours", "1"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "layers/pushhub:.", "PYTHONHASHSEED": str(seed + 1)},
        capture_output=True,
        text=True,
        check=True,
    )
    [summary] = [line for line in run.stdout.splitlines() if line.startswith(f"{world} seed")]
    return summary.rpartition(" ")[2]


@pytest.mark.parametrize("world", WORLDS)
def test_the_same_seed_is_the_same_run(world: str) -> None:
    # When a seed is run twice, and another one
    first, second, other = fingerprint(1, world), fingerprint(1, world), fingerprint(2, world)
    # Then everything in the first two happened at the same moments, and in the third it did not
    assert first == second != other
