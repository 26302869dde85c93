"""Calls of our own that failed: counted and logged in one way, wherever an order goes on all the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pushhub.base.errors import Unavailable
    from pushhub.base.ports import Telemetry


@dataclass(frozen=True, slots=True)
class FailedCalls:
    """Where failed calls are told."""

    telemetry: Telemetry

    def tell(self, event: str, error: Unavailable, **fields: object) -> None:
        """A call failed, with unknown effect; what it was for is tried again."""
        self.telemetry.count("CallsFailed")
        self.telemetry.event(event, error=str(error), **fields)
