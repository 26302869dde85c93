"""The events of a stream in their order, late ones at a later place."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from pushhub.base.errors import MessageNotFound
from pushhub.base.ids import first_message_id
from pushhub.engine.bodies import body_of
from pushhub.engine.component import Component
from pushhub.engine.model.keys import MessageKey
from pushhub.webhooks.messages.listing import SETTLED_MS
from pushhub.webhooks.model.endpoint import selects
from pushhub.webhooks.model.internal_queues import queue_uid
from pushhub.webhooks.model.message import MessageFields
from pushhub.webhooks.model.page import KeyRange

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pushhub.base.ports import Clock
    from pushhub.engine.model.message import Message
    from pushhub.engine.ports import BodyStore
    from pushhub.webhooks.messages.listing import EngineMessages
    from pushhub.webhooks.messages.ports import MessageLog
    from pushhub.webhooks.model.endpoint import Endpoint


class StreamLog(Component):
    """Reads streams."""

    messages: EngineMessages
    lines: MessageLog
    bodies: BodyStore
    clock: Clock

    def settled(self) -> str:
        """Lower than every id at which something may still appear."""
        return first_message_id(self.clock.now() - SETTLED_MS)

    def events(self, sink: Endpoint, above: str, wanted: int) -> Iterator[tuple[str, Message | None]]:
        """The events behind a place that are settled, each with its own place; None for one that the sink does not
        select, or that is gone.

        Args:
            above: The place.
            wanted: How many are wanted; more are read if these are not enough.
        """
        span = KeyRange(above=above, below=self.settled())
        uid = queue_uid(sink.app_id)
        listed = (
            (each.message_id, each)
            for each in self.messages.listed(sink.project, uid, above=span.above, below=span.below, wanted=wanted)
        )
        late = (
            (place, self.messages.message(MessageKey(sink.project, uid, engine)))
            for place, engine in self.lines.late(sink.project, sink.app_id, span)
        )
        for place, message in heapq.merge(listed, late, key=lambda each: each[0]):
            yield place, message if message is not None and _selected(sink, message) else None

    def body(self, message: Message) -> bytes | None:
        """The payload of an event, or None if it is gone."""
        try:
            return body_of(message, self.bodies)
        except MessageNotFound:
            return None


def _selected(sink: Endpoint, message: Message) -> bool:
    fields = MessageFields.of(message)
    return selects(sink, fields.event_type, fields.channels)
