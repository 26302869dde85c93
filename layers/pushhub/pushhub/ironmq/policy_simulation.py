"""The use case of the policy simulator: a request read, its plan tried, and another one beside it.

For the queue API and the command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.base.errors import Invalid
from pushhub.engine.forecast import forecast
from pushhub.ironmq.wire.policies import (
    MAX_WINDOWS,
    SimulationRequest,
    notes,
    parse_replay,
    parse_simulation,
    render_forecast,
    render_history,
    render_plan,
    request_of,
)

if TYPE_CHECKING:
    from pushhub.engine.history import History
    from pushhub.engine.model.forecast import Forecast
    from pushhub.engine.subscriber_history import SubscriberHistory
    from pushhub.web.json import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What was asked for, and what came of it.

    Attributes:
        asked: The request.
        forecast: Of its plan.
        compared: Of the plan beside it; None if there is none, or it would take too much work.
        replayed: The subscriber's history that the outage was taken from; None if it was not.
    """

    asked: SimulationRequest
    forecast: Forecast
    compared: Forecast | None
    replayed: History | None = None

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
            "replayed": None if self.replayed is None else render_history(self.replayed),
            "notes": self.notes,
        }


def replayed(histories: SubscriberHistory, project_id: str, fields: Fields) -> tuple[Fields, History | None]:
    """A request with a subscriber's history for its outage and traffic, where it asks for one, and that history.

    What the request itself says counts for more.

    Raises:
        Invalid: It cannot be read.
        NotFound: Nothing is known of the subscriber.
    """
    asked = parse_replay(fields)
    if asked is None:
        return fields, None
    told = histories.told(
        project_id, asked.queue, asked.subscriber, since=asked.since, until=asked.until, most_windows=MAX_WINDOWS
    )
    own = {name: value for name, value in fields.items() if value is not None}
    return request_of(told) | own, told


def simulate(fields: Fields, *, work: int, replayed: History | None = None) -> Simulation:
    """Simulate what a request asks for.

    Args:
        fields: The request.
        replayed: Where the outage was taken from, to be told.
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
    return Simulation(asked=asked, forecast=found, compared=compared, replayed=replayed)
