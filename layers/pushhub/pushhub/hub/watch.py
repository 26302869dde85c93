"""Keeps the hub's log in step with the deliveries of its internal queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.hub.model.log import log_entry

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.message import Message
    from pushhub.hub.ports import WriteEntries


class HubWatch:
    """Implements :class:`pushhub.engine.ports.Watcher`."""

    def __init__(self, *, log: WriteEntries, clock: Clock) -> None:
        self._log = log
        self._clock = clock

    def seen(self, message: Message, delivery: Delivery) -> None:
        """Write the entry of a message. A delivery with an older or the same version changes nothing."""
        if delivery.version > 0:
            self._log.put(log_entry(message, delivery, self._clock.now()))
