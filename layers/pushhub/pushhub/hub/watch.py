"""Keeps the hub's log in step with the deliveries of its internal queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.component import Component
from pushhub.hub.model.log import log_entry

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.message import Message
    from pushhub.hub.ports import WriteEntries


class HubWatch(Component):
    """Implements :class:`pushhub.engine.ports.Watcher`."""

    log: WriteEntries
    clock: Clock

    def seen(self, message: Message, delivery: Delivery) -> None:
        """Write the entry of a message. A delivery with an older or the same version changes nothing."""
        if delivery.version > 0:
            self.log.put(log_entry(message, delivery, self.clock.now()))
