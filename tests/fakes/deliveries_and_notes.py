"""Deliveries and notes of changes, from two fakes; a fault of either strikes both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pushhub.engine.model.delivery import Delivery
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.ports import Deliveries
from pushhub.engine.projects.ports import ChangeNoteStore


class FakeDeliveriesAndNotes:
    """Implements :class:`pushhub.engine.flow.ports.DeliveriesAndNotes`."""

    def __init__(self, messages: Deliveries, config: ChangeNoteStore) -> None:
        self.messages = messages
        self.config = config

    def deliveries_and_notes(
        self, keys: Sequence[DeliveryKey]
    ) -> tuple[dict[DeliveryKey, Delivery], Mapping[int, int]]:
        return self.messages.deliveries(keys), self.config.noted_changes()
