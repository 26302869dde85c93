"""The first orders of messages: made in one way, by ingest for eager messages, and by dispatch for all.

What ingest sends itself is for its own hurry only (:mod:`pushhub.engine.model.eager`). If it cannot be sent, the
message is none the worse off than one whose ingest died: the stream's orders come.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.errors import Unavailable
from pushhub.engine.component import Component
from pushhub.engine.model.eager import GOOD_FOR_MS, MOST_ORDERS, eager
from pushhub.engine.model.work import WorkOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.model.message import Message
    from pushhub.engine.model.queue import Subscriber
    from pushhub.engine.ports import WorkQueue

NOT_EAGER_MS = 30_000
"""How long an execution environment leaves all orders to the stream after it could not send some."""


def first_order(message: Message, subscriber_id: str) -> WorkOrder:
    """The order that the stream sends for a delivery.

    Nearly all that are the second ones find their work done, so they carry no message: whoever has to make the attempt
    after all reads it.
    """
    if message.eager is not None and subscriber_id in message.eager.subscriber_ids:
        return WorkOrder(key=message.delivery_key(subscriber_id), queue=message.queue, second=True)
    return WorkOrder.carrying(message, subscriber_id)


class FirstOrders(Component):
    """Sends first orders from where messages are accepted; one for each execution environment."""

    push_queue: Callable[[], WorkQueue]  # For first attempts; made when it is first needed.
    clock: Clock
    telemetry: Telemetry

    def __post_init__(self) -> None:
        self._not_before = 0

    def marked(self, messages: Sequence[Message], subscribers: Sequence[Subscriber]) -> list[Message]:
        """Messages of an eager queue as they are stored; none is eager if there are too many, or if orders could not be
        sent a moment ago.

        Args:
            messages: What a request posts.
            subscribers: Those that each of them is owed to.
        """
        orders = sum(len(each.delivery_subscribers) for each in messages)
        if orders > MOST_ORDERS or self.clock.now() < self._not_before:
            return [*messages]
        return [eager(each, subscribers) for each in messages]

    def send(self, messages: Sequence[Message]) -> None:
        """Send the orders of those messages that are eager, once they are stored. Never fails: others will be sent."""
        orders = [
            replace(WorkOrder.carrying(each, subscriber_id), until=each.accepted_at + GOOD_FOR_MS)
            for each in messages
            if each.eager is not None
            for subscriber_id in each.eager.subscriber_ids
        ]
        if not orders:
            return
        try:
            self.push_queue().send_packed(orders)
        except Unavailable as error:
            self._not_before = self.clock.now() + NOT_EAGER_MS
            self.telemetry.count("CallsFailed")
            self.telemetry.event("first_orders_not_sent", error=str(error), orders=len(orders))
