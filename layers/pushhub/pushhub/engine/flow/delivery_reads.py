"""How runs read deliveries: together with the messages that their orders do not carry, and with the notes of changes,
without which no attempt on a new message begins.

The notes have to be read after the message was accepted (:mod:`pushhub.engine.projects.copies`), so of a message that
comes alone both are always read. One call in place of two, one after the other, saves what AWS takes to answer, and a
fifth of the CPU of a run for one message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.ids import time_of_message_id
from pushhub.engine.component import Component

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.engine.flow.ports import AttemptReads
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.keys import DeliveryKey, MessageKey
    from pushhub.engine.model.received import ReadTogether
    from pushhub.engine.ports import Deliveries
    from pushhub.engine.projects.copies import Changes


class DeliveryReads(Component):
    """Reads deliveries for runs."""

    messages: Deliveries
    together: AttemptReads
    changes: Changes  # Take notes that are read here.

    def read(self, keys: Sequence[DeliveryKey], messages: Sequence[MessageKey] = ()) -> ReadTogether:
        """Many stored deliveries and some messages at once, read consistently; untried ones, and messages that are
        gone, are missing.
        """
        newest = max(time_of_message_id(each.message_id) for each in keys)
        if self.changes.suffice(newest):
            return self.together.read(keys, messages)
        return self.changes.read_beside(lambda: self.together.read_with_notes(keys, messages))

    def glance(self, keys: Sequence[DeliveryKey]) -> dict[DeliveryKey, Delivery]:
        """The same at half the price, as they were seconds ago."""
        return self.messages.deliveries(keys, consistent=False)
