"""What the parts of the simulated account see of it, so that none of them has to know the account."""

from __future__ import annotations

from typing import Protocol

from simulation.scheduler import Scheduler
from simulation.weather import Weather


class Conditions(Protocol):
    """The time, the weather and the trace of a run.

    Attributes:
        asked: Requests to endpoints so far.
    """

    seed: str
    scheduler: Scheduler
    weather: Weather
    asked: int

    def note(self, line: str) -> None:
        """Tell what happened."""
