"""While nothing fails, no message is posted twice; and a hub that does so is found out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def ran(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "layers/pushhub:."},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("world", ["ironmq", "policies", "hub", "webhooks"])
def test_no_message_is_posted_twice_in_a_calm_world(world: str) -> None:
    run = ran("simulation", "--calm", "--seed", "1", "--world", world, "--hours", "0.25", "--rate", "60")
    assert run.returncode == 0, run.stdout + run.stderr
    assert ", 0 faults, " in run.stdout


def test_a_hub_that_posts_twice_is_found_out() -> None:
    run = ran("simulation.sabotage", "--only", "both go on", "--most", "2")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "asked twice while nothing failed" in run.stdout
