"""The use case of the policy simulator: simulates the plan of a request, and another one for comparison.

Used by the queue API and the command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.base.errors import Invalid
from pushhub.engine.forecast import forecast
from pushhub.ironmq.wire.policies import SimulationRequest, notes, render_forecast, render_history, render_plan

if TYPE_CHECKING:
    from pushhub.engine.history import History
    from pushhub.engine.model.forecast import Forecast


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """A simulation request and its results.

    Attributes:
        compared: The forecast of the other plan; None if there is none, or it would take too much work.
        replayed: The subscriber's history that the outage was taken from; None if it was not.
    """

    asked: SimulationRequest
    forecast: Forecast
    compared: Forecast | None
    replayed: History | None = None

    @property
    def notes(self) -> list[str]:
        """Notes that a reader of the result needs."""
        lacking = self.asked.compared is not None and self.compared is None
        return notes(self.forecast) + (["The comparison was left out: it is too much to simulate."] * lacking)

    def answer(self) -> dict[str, object]:
        """The result as JSON."""
        compared = None
        if self.compared is not None:
            compared = {"with": self.asked.compared_with, "forecast": render_forecast(self.compared)}
        return {
            "plan": render_plan(self.asked.plan),
            "forecast": render_forecast(self.forecast),
            "compared": compared,
            "replayed": None if self.replayed is None else render_history(self.replayed),
            "notes": self.notes,
        }


def simulate(asked: SimulationRequest, *, work: int, replayed: History | None = None) -> Simulation:
    """Run the simulation that a request asks for.

    Args:
        replayed: The history that the outage was taken from, for the answer.
        work: Work budget, see :func:`pushhub.engine.forecast.forecast`; a comparison shares it.

    Raises:
        Invalid: It takes too much work.
    """
    work = work if asked.compared is None else work // 2
    found = forecast(asked.plan, work=work)
    compared = None
    if asked.compared is not None:
        try:
            compared = forecast(asked.compared, work=work)
        except Invalid:
            compared = None
    return Simulation(asked=asked, forecast=found, compared=compared, replayed=replayed)
