"""While nothing fails, no message is posted twice, and quotas and tasks are as promised; a hub that is not so is found
out.
"""

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


@pytest.mark.parametrize(
    ("world", "seed"),
    # Some queues of ironmq 1, and an application of webhooks 2, are eager.
    [("ironmq", "1"), ("policies", "1"), ("hub", "1"), ("webhooks", "2"), ("tenants", "1")],
)
def test_no_message_is_posted_twice_in_a_calm_world(world: str, seed: str) -> None:
    run = ran("simulation", "--calm", "--seed", seed, "--world", world, "--hours", "0.25", "--rate", "60")
    assert run.returncode == 0, run.stdout + run.stderr
    assert ", 0 faults, " in run.stdout


def test_quotas_and_tasks_that_are_not_as_promised_are_found_out() -> None:
    names = ["a batch is its burst", "paid for twice", "one turn for all", "keys of tasks in vain"]
    run = ran("simulation.strangers", "--known", ",".join(names))
    assert run.returncode == 0, run.stdout + run.stderr
    assert all(f"| {name}: " in run.stdout for name in names)


def test_a_hub_that_posts_twice_is_found_out() -> None:
    run = ran("simulation.strangers", "--known", "the stream as eager")
    assert run.returncode == 0, run.stdout + run.stderr
    assert any(rule in run.stdout for rule in ("asked twice at once", "asked after its end"))
