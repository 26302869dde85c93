"""Delivery records that cannot be read: a command goes on behind them, names the first ones, and says how many."""

from __future__ import annotations

from ..hub import HubOptions

NAMED = 100
"""How many are named."""


class PassedOver:
    """Told of each record, line or object that is passed over."""

    def __init__(self, hub: HubOptions) -> None:
        self._hub = hub
        self.count = 0

    def __call__(self, what: str) -> None:
        """One more."""
        self.count += 1
        if self.count <= NAMED:
            self._hub.note(f"passed over: {what}")

    def summed_up(self) -> None:
        """Say how many there were, if any."""
        if self.count:
            self._hub.note(f"{self.count} in all could not be read; docs/operations.md says what to do about them")
