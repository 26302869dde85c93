"""From stored messages to work orders: the reading end of the outbox that the messages table's stream is."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.errors import Conflict, Unavailable
from pushhub.engine.model.backoff import MAX_DELAY_MS
from pushhub.engine.model.delivery import opening, schedule
from pushhub.engine.model.work import WorkOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.model.message import Message
    from pushhub.engine.ports import Deliveries, TotalStore, WorkQueue

ORDERS_BYTES = 16_000_000
"""About how many bytes of orders are made before they are sent: a post of 100 messages to 100 subscribers makes 10,000
orders, which together would not fit into the function's memory. Below it, all orders of a batch for the same subscriber
can share SQS messages.
"""

_ORDER_BYTES = 600
"""Bytes of an order apart from its body and headers."""


class Dispatch:
    """Queues the deliveries of messages that were just stored.

    Args:
        totals: Counts messages per queue.
        deliveries: Schedules deliveries that are due later than a queue can delay.
        push_queue: For first attempts.
        route_queue: For what the hub works on itself, so that it never stands behind attempts that wait for an answer.
        internal: Whether the hub itself works on the messages of a queue, by its name.
        telemetry: Metrics.
    """

    def __init__(
        self,
        *,
        totals: TotalStore,
        deliveries: Deliveries,
        push_queue: WorkQueue,
        route_queue: WorkQueue,
        internal: Callable[[str], bool],
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._totals = totals
        self._deliveries = deliveries
        self._push_queue = push_queue
        self._route_queue = route_queue
        self._internal = internal
        self._clock = clock
        self._telemetry = telemetry

    def run(self, batch: Sequence[Message]) -> None:
        """Queue or schedule every delivery of every message. Safe to repeat: work orders are harmless duplicates.

        Raises:
            Unavailable: Something could not be queued; the whole batch must come again.
        """
        now = self._clock.now()
        at_once: list[WorkOrder] = []
        to_route: list[WorkOrder] = []
        later: list[tuple[WorkOrder, int]] = []
        size = 0
        for message in batch:
            for subscriber_id in message.delivery_subscribers:
                if message.due_at - now > MAX_DELAY_MS:
                    self._schedule(message, subscriber_id)
                    continue
                order = WorkOrder.carrying(message, subscriber_id)
                if self._internal(message.queue):
                    to_route.append(order)
                elif message.due_at > now:
                    later.append((order, -(-(message.due_at - now) // 1000)))
                else:
                    at_once.append(order)
                size += _size(message)
                if size >= ORDERS_BYTES:
                    self._send(at_once, to_route, later)
                    at_once, to_route, later, size = [], [], [], 0
        self._send(at_once, to_route, later)
        self._count(batch)

    def _send(
        self, at_once: Sequence[WorkOrder], to_route: Sequence[WorkOrder], later: Sequence[tuple[WorkOrder, int]]
    ) -> None:
        if to_route:
            self._route_queue.send_packed(to_route)
        if at_once:
            self._push_queue.send_packed(at_once)
        if later:
            self._push_queue.send(later)

    def _schedule(self, message: Message, subscriber_id: str) -> None:
        first = replace(schedule(opening(message, subscriber_id)), version=1)
        try:
            self._deliveries.save(first)
        except Conflict:
            return  # scheduled by an earlier run of this batch
        self._telemetry.count("DeliveriesScheduled")

    def _count(self, batch: Sequence[Message]) -> None:
        """The totals are a statistic: failing to count must not queue the batch twice."""
        posted = Counter((message.project, message.queue_uid) for message in batch)
        for (project, queue_uid), count in posted.items():
            try:
                self._totals.add_to_total(project, queue_uid, count)
            except Unavailable as error:
                self._telemetry.event("total_not_counted", error=str(error), project=project, count=count)
        self._telemetry.count("MessagesDispatched", len(batch))


def _size(message: Message) -> int:
    """About how many bytes one order of a message takes; a unicast order names all subscribers."""
    targets = 16 * len(message.subscriber_ids) if message.unicast else 0
    headers = sum(len(name) + len(value) for name, value in message.headers.items())
    return _ORDER_BYTES + targets + headers + (0 if message.body is None else len(message.body) * 4 // 3)
