"""From stored messages to work orders: the consumer of the outbox, which is the stream of the messages table."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.errors import Conflict, Unavailable
from pushhub.engine.first_orders import first_order
from pushhub.engine.model.backoff import MAX_DELAY_MS
from pushhub.engine.model.delivery import opening, schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.model.message import Message
    from pushhub.engine.model.work import WorkOrder
    from pushhub.engine.ports import Deliveries, TotalStore, WorkQueue

ORDERS_BYTES = 16_000_000
"""Approximate number of bytes of orders to build before they are sent. A post of 100 messages to 100 subscribers makes
10,000 orders, which would not fit into the function's memory together. Below this size, all orders of a batch for the
same subscriber can share SQS messages.
"""

_ORDER_BYTES = 600
"""Size of an order without body and headers."""


class Dispatch:
    """Queues the deliveries of messages that have just been stored.

    Args:
        totals: Counts messages per queue.
        deliveries: Schedules deliveries that are due later than a queue can delay.
        push_queue: For first attempts.
        route_queue: For work the hub does itself, so that it never queues behind attempts that wait for an answer.
        internal: Whether the hub itself handles the messages of a queue, by queue name.
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
        """Queue or schedule every delivery of every message. Safe to repeat: duplicate work orders are harmless.

        Raises:
            Unavailable: Something could not be queued; the whole batch must be retried.
        """
        now = self._clock.now()
        at_once: list[WorkOrder] = []
        to_route: list[WorkOrder] = []
        later: list[tuple[WorkOrder, int]] = []
        again: dict[int, list[WorkOrder]] = {}
        size = 0
        for message in batch:
            for subscriber_id in message.delivery_subscribers:
                if message.due_at - now > MAX_DELAY_MS:
                    self._schedule(message, subscriber_id)
                    continue
                order = first_order(message, subscriber_id)
                if self._internal(message.queue):
                    to_route.append(order)
                elif order.second and message.eager is not None:
                    again.setdefault(message.eager.again_s, []).append(order)
                elif message.due_at > now:
                    later.append((order, -(-(message.due_at - now) // 1000)))
                else:
                    at_once.append(order)
                size += _size(message)
                if size >= ORDERS_BYTES:
                    self._send(at_once, to_route, later, again)
                    at_once, to_route, later, again, size = [], [], [], {}, 0
        self._send(at_once, to_route, later, again)
        self._count(batch)

    def _send(
        self,
        at_once: Sequence[WorkOrder],
        to_route: Sequence[WorkOrder],
        later: Sequence[tuple[WorkOrder, int]],
        again: Mapping[int, Sequence[WorkOrder]],
    ) -> None:
        if to_route:
            self._route_queue.send_packed(to_route)
        if at_once:
            self._push_queue.send_packed(at_once)
        if later:
            self._push_queue.send(later)
        for delay_s, orders in again.items():
            self._push_queue.send_packed(orders, delay_s)

    def _schedule(self, message: Message, subscriber_id: str) -> None:
        first = replace(schedule(opening(message, subscriber_id)), changed_at=self._clock.now(), version=1)
        try:
            self._deliveries.save(first)
        except Conflict:
            return  # scheduled by an earlier run of this batch
        self._telemetry.count("DeliveriesScheduled")

    def _count(self, batch: Sequence[Message]) -> None:
        """The totals are a statistic: an error while counting must not cause the batch to be queued twice."""
        posted = Counter((message.project, message.queue_uid) for message in batch)
        for (project, queue_uid), count in posted.items():
            try:
                self._totals.add_to_total(project, queue_uid, count)
            except Unavailable as error:
                self._telemetry.event("total_not_counted", error=str(error), project=project, count=count)
        self._telemetry.count("MessagesDispatched", len(batch))


def _size(message: Message) -> int:
    """Approximate bytes of one order for a message; a unicast order names all subscribers."""
    targets = 16 * len(message.subscriber_ids) if message.unicast else 0
    headers = sum(len(name) + len(value) for name, value in message.headers.items())
    traced = 0 if message.trace is None else len(message.trace.text)
    return _ORDER_BYTES + targets + headers + traced + (0 if message.body is None else len(message.body) * 4 // 3)
