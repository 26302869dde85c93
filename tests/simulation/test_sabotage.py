"""A simulator that finds nothing proves nothing: a reintroduced defect is found, by the rule it breaks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_what_the_hub_makes_twice_is_found() -> None:
    # Given the hub with new ids each time the same message is made
    run = subprocess.run(
        [sys.executable, "-m", "simulation.sabotage", "--only", "ids are drawn", "--most", "5"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "layers/pushhub:."},
        capture_output=True,
        text=True,
        check=False,
    )
    # Then a run of the simulator reports copies that exist twice
    assert run.returncode == 0, run.stdout + run.stderr
    [found_by] = [line.split(" | ")[-1] for line in run.stdout.splitlines() if "ids are drawn" in line]
    assert "copies" in found_by
