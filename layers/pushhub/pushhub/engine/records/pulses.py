"""Sends pulses through the streams of the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.errors import Unavailable
from pushhub.engine.component import Component
from pushhub.engine.model.pulse import pulse_time

if TYPE_CHECKING:
    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.records.ports import PulseStore


class SendPulses(Component):
    """Sends one pulse in each five minutes through each stream; to be run every minute."""

    store: PulseStore  # Where they go.
    clock: Clock  # Says which five minutes these are.
    telemetry: Telemetry  # Told when a pulse could not be sent.

    def __post_init__(self) -> None:
        self._sent: int | None = None

    def run(self) -> None:
        """Send a pulse unless this environment has done so already. Another environment's is the same item, and writing
        it again changes nothing. If it fails, the next minute tries again: nothing waits for a pulse.
        """
        at = pulse_time(self.clock.now())
        if at == self._sent:
            return
        try:
            self.store.send(at)
        except Unavailable as error:
            self.telemetry.event("pulse_not_sent", error=str(error))
        else:
            self._sent = at
