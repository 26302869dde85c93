"""The use case of the policy simulator: a request read, its plan tried, and another one beside it.

For the queue API and the command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.base.errors import Invalid
from pushhub.engine.forecast import forecast
from pushhub.ironmq.wire.policies import SimulationRequest, notes, parse_simulation, render_forecast, render_plan

if TYPE_CHECKING:
    from pushhub.engine.model.forecast import Forecast
    from pushhub.web.json import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What was asked for, and what came of it.

    Attributes:
        asked: The request.
        forecast: Of its plan.
        compared: Of the plan beside it; None if there is none, or it would take too much work.
    """

    asked: SimulationRequest
    forecast: Forecast
    compared: Forecast | None

    @property
    def notes(self) -> list[str]:
        """What a reader has to know."""
        lacking = self.asked.compared is not None and self.compared is None
        return notes(self.forecast) + (["What it was to be compared with takes too much work to simulate."] * lacking)

    def answer(self) -> dict[str, object]:
        """As JSON."""
        compared = None
        if self.compared is not None:
            compared = {"with": self.asked.compared_with, "forecast": render_forecast(self.compared)}
        return {
            "plan": render_plan(self.asked.plan),
            "forecast": render_forecast(self.forecast),
            "compared": compared,
            "notes": self.notes,
        }


def simulate(fields: Fields, *, work: int) -> Simulation:
    """Simulate what a request asks for.

    Args:
        fields: The request.
        work: What each of the two runs may take, see :func:`pushhub.engine.forecast.forecast`.

    Raises:
        Invalid: It cannot be read, or takes too much work.
    """
    asked = parse_simulation(fields)
    found = forecast(asked.plan, work=work)
    compared = None
    if asked.compared is not None:
        try:
            compared = forecast(asked.compared, work=work)
        except Invalid:
            compared = None
    return Simulation(asked=asked, forecast=found, compared=compared)
