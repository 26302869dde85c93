"""While nothing fails, no message is posted twice, and quotas and tasks are as promised."""

from __future__ import annotations

from tests.simulation.commands import python

CALM = """
from simulation.run import Plan, simulate
# Some queues of ironmq 1, and an application of webhooks 2, are eager.
for world, seed in (("ironmq", 1), ("policies", 1), ("hub", 1), ("webhooks", 2), ("tenants", 1)):
    result = simulate(Plan(seed, world, 0.1, 90 if world == "webhooks" else 30, calm=True, talk=False))
    assert result.figures["deliveries"] + result.figures["judged"] > 100, result.figures
    assert not any(name.startswith("fault ") for name in result.figures), result.figures
    assert result.violations == [], [str(each) for each in result.violations]
"""


def test_no_message_is_posted_twice_in_calm_worlds() -> None:
    run = python("-c", CALM)
    assert run.returncode == 0, run.stdout + run.stderr
