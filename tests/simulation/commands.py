"""The simulator as a command, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What Python says, in which sets have the order that the simulator's runs have."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "layers/pushhub:.", "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )


def found(*names: str) -> str:
    """What ``make sabotage`` says of known defects, all of which it must find."""
    run = python("-m", "simulation.strangers", "--known", ",".join(names), "--processes", "1")
    assert run.returncode == 0, run.stdout + run.stderr
    assert all(f"| {name}: " in run.stdout for name in names), run.stdout
    return run.stdout
