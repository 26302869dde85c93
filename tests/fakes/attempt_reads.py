"""Deliveries, messages and notes of changes, from two fakes; a fault of either strikes all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pushhub.engine.model.keys import DeliveryKey, MessageKey
from pushhub.engine.model.received import ReadTogether
from pushhub.engine.ports import StoredMessages
from pushhub.engine.projects.ports import ChangeNoteStore


class FakeAttemptReads:
    """Implements :class:`pushhub.engine.flow.ports.AttemptReads`."""

    def __init__(self, messages: StoredMessages, config: ChangeNoteStore) -> None:
        self.messages = messages
        self.config = config

    def read(self, deliveries: Sequence[DeliveryKey], messages: Sequence[MessageKey]) -> ReadTogether:
        found = self.messages.messages(messages) if messages else {}
        return ReadTogether(self.messages.deliveries(deliveries), found)

    def read_with_notes(
        self, deliveries: Sequence[DeliveryKey], messages: Sequence[MessageKey]
    ) -> tuple[ReadTogether, Mapping[int, int]]:
        return self.read(deliveries, messages), self.config.noted_changes()
