"""A simulation as the API and the command line return it."""

from __future__ import annotations

import pytest

from pushhub.base.errors import Invalid
from pushhub.engine.forecast import forecast
from pushhub.engine.model.forecast import Forecast, Plan
from pushhub.ironmq.policy_simulation import simulate
from pushhub.ironmq.wire.policies import parse_simulation

OUTAGE = {"outage": [{"end": 600, "endpoint": "refuses"}], "rate": 0.1}


def test_what_is_compared_stands_beside_it() -> None:
    told = simulate(parse_simulation({**OUTAGE, "policy": {"schedule": [60]}}), work=1000).answer()
    assert told["compared"]["with"] == "no_circuit"  # type: ignore[index]
    assert told["compared"]["forecast"]["circuit_opened"] == 0  # type: ignore[index]
    assert simulate(parse_simulation({**OUTAGE, "compare": "nothing"}), work=1000).answer()["compared"] is None


def test_a_comparison_that_takes_too_long_is_left_out_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_a_circuit_only(plan: Plan, *, work: int) -> Forecast:
        if plan.circuit is None:
            raise Invalid("too much")
        return forecast(plan, work=work)

    monkeypatch.setattr("pushhub.ironmq.policy_simulation.forecast", with_a_circuit_only)
    done = simulate(parse_simulation({**OUTAGE, "policy": {"schedule": [60]}}), work=1000)
    assert done.answer()["compared"] is None
    assert any("too much to simulate" in each for each in done.notes)
    # And the same as the main simulation is refused
    with pytest.raises(Invalid):
        simulate(parse_simulation({**OUTAGE, "policy": {"retries": 1}}), work=1000)


def test_a_ramp_of_days_can_be_simulated() -> None:
    """Given more messages than a ramp releases in a day, then their delays are calculated, not refused."""
    asked = {"policy": {"schedule": "svix"}, "rate": 1000, "outage": [{"end": 21_600}], "compare": "nothing"}
    done = simulate(parse_simulation(asked), work=2500)
    assert done.forecast.delivered == done.forecast.accepted == 21_600_000
    assert done.forecast.delays_ms is not None
    # 5,000 a minute
    assert done.forecast.delays_ms[-1] > 3 * 86_400_000 * 0.9
