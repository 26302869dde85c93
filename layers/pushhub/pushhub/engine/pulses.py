"""Sends pulses through the streams of the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.errors import Unavailable
from pushhub.engine.model.pulse import pulse_time

if TYPE_CHECKING:
    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.ports import PulseStore


class SendPulses:
    """Sends one pulse in each five minutes through each stream; to be run every minute.

    Args:
        store: Where they go.
        clock: Says which five minutes these are.
        telemetry: Told when a pulse could not be sent.
    """

    def __init__(self, *, store: PulseStore, clock: Clock, telemetry: Telemetry) -> None:
        self._store = store
        self._clock = clock
        self._telemetry = telemetry
        self._sent: int | None = None

    def run(self) -> None:
        """Send a pulse unless this environment has done so already. Another environment's is the same item, and writing
        it again changes nothing. If it fails, the next minute tries again: nothing waits for a pulse.
        """
        at = pulse_time(self._clock.now())
        if at == self._sent:
            return
        try:
            self._store.send(at)
        except Unavailable as error:
            self._telemetry.event("pulse_not_sent", error=str(error))
        else:
            self._sent = at
