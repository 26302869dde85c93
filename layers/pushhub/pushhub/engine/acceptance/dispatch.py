"""From stored messages to work orders: the consumer of the outbox, which is the stream of the messages table."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pushhub.base.errors import Conflict, Unavailable
from pushhub.engine.acceptance.first_orders import first_order
from pushhub.engine.component import Component
from pushhub.engine.model.backoff import MAX_DELAY_MS
from pushhub.engine.model.deflated import stored_size
from pushhub.engine.model.delivery import opening, schedule
from pushhub.engine.model.work import WorkOrder

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from concurrent.futures import Executor

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.acceptance.order_queues import OrderQueues
    from pushhub.engine.model.keys import DeliveryKey
    from pushhub.engine.model.message import Message
    from pushhub.engine.ports import Deliveries, TotalStore, WorkQueue

ORDERS_BYTES = 16_000_000
"""Approximate number of bytes of orders to build before they are sent. A post of 100 messages to 100 subscribers makes
10,000 orders, which would not fit into the function's memory together. Below this size, all orders of a batch for the
same subscriber can share SQS messages.
"""

LOOKS_AFTER_MS = 50
"""How old an eager message is at least of whose deliveries it is looked up whether ingest's orders have begun them:
before that nearly none has.
"""

MOST_LOOKED_UP = 100
"""Most deliveries that are looked up for a batch, in one call. The second orders of a larger one share SQS messages,
and cost no more than the look.
"""

SCHEDULED_TOGETHER = 1_000
"""Deliveries that are scheduled before more are looked at, two writes each."""

NOT_SCHEDULED_MS = 120_000
"""How long a message holds up those behind it because its delivery cannot be scheduled. Then that waits in a queue
instead, where it costs an order each quarter of an hour.
"""

_ORDER_BYTES = 600
"""Size of an order without body and headers."""


@dataclass
class _Orders:
    """Orders to be sent.

    Attributes:
        packed: Those that may share SQS messages, by queue and delay in seconds.
        later: The others, with their delays, by queue.
    """

    packed: defaultdict[tuple[WorkQueue, int], list[WorkOrder]] = field(default_factory=lambda: defaultdict(list))
    later: defaultdict[WorkQueue, list[tuple[WorkOrder, int]]] = field(default_factory=lambda: defaultdict(list))

    def send(self) -> None:
        """Send them."""
        for (queue, delay_s), orders in self.packed.items():
            queue.send_packed(orders, delay_s)
        for queue, delayed in self.later.items():
            queue.send(delayed)


class Dispatch(Component):
    """Queues the deliveries of messages that have just been stored."""

    totals: TotalStore  # Counts messages per queue.
    # Schedules deliveries that are due later than a queue can delay, and says what ingest's orders have begun.
    deliveries: Deliveries
    queues: OrderQueues  # Which queue each first order goes to.
    executor: Executor  # Schedules side by side.
    clock: Clock
    telemetry: Telemetry

    def run(self, batch: Sequence[Message]) -> None:
        """Queue or schedule every delivery of every message. Safe to repeat: duplicate work orders are harmless.

        Raises:
            Unavailable: Something could not be queued; the whole batch must be retried.
        """
        now = self.clock.now()
        begun = self._begun(batch, now)
        orders = _Orders()
        size = 0
        later: list[tuple[Message, str]] = []
        for message in batch:
            for subscriber_id in message.delivery_subscribers:
                if message.delivery_key(subscriber_id) in begun:
                    continue
                if message.due_at - now > MAX_DELAY_MS:
                    later.append((message, subscriber_id))
                    continue
                order, queue = first_order(message, subscriber_id), self.queues.of(message.queue)
                if order.second and message.eager is not None:
                    orders.packed[queue, message.eager.again_s].append(order)
                elif message.due_at > now and queue is not self.queues.route:
                    orders.later[queue].append((order, -(-(message.due_at - now) // 1000)))
                else:
                    orders.packed[queue, 0].append(order)
                size += _size(message)
                if size >= ORDERS_BYTES:
                    orders.send()
                    orders, size = _Orders(), 0
        orders.send()
        for start in range(0, len(later), SCHEDULED_TOGETHER):
            self._schedule_all(later[start : start + SCHEDULED_TOGETHER])
        self._count(batch)

    def _begun(self, batch: Sequence[Message], now: int) -> Collection[DeliveryKey]:
        """Deliveries that ingest's orders have begun: those need no second ones, which would be void.

        What began a delivery arranges all that follows, and its order stays in its queue until then. A read that is not
        consistent shows nothing that has not happened; for what it does not show, a second order is sent.
        """
        keys = [
            message.delivery_key(subscriber_id)
            for message in batch
            if message.eager is not None and now - message.accepted_at >= LOOKS_AFTER_MS
            for subscriber_id in message.eager.subscriber_ids
        ]
        if not 0 < len(keys) <= MOST_LOOKED_UP:
            return ()
        try:
            seen = self.deliveries.deliveries(keys, consistent=False)
        except Unavailable as error:
            self.telemetry.count("CallsFailed")
            self.telemetry.event("deliveries_not_looked_up", error=str(error), deliveries=len(keys))
            return ()
        return {key for key, stored in seen.items() if stored.begun}

    def _schedule_all(self, later: Sequence[tuple[Message, str]]) -> None:
        """Schedule deliveries side by side. Of many, those that an earlier run of this batch has scheduled are looked
        up, for whatever its time was not enough for: so each run goes on.
        """
        known: Collection[DeliveryKey] = ()
        if len(later) > MOST_LOOKED_UP:
            known = self.deliveries.deliveries([message.delivery_key(each) for message, each in later])
        rest = [each for each in later if each[0].delivery_key(each[1]) not in known]
        away: list[Unavailable] = []

        def is_scheduled(each: tuple[Message, str]) -> bool:
            if away:
                return False
            try:
                self._schedule(*each)
            except Unavailable as error:
                if self.clock.now() - each[0].accepted_at < NOT_SCHEDULED_MS:
                    raise
                away.append(error)
                return False
            return True

        scheduled = self.executor.map(is_scheduled, rest)
        if left := [each for each, done in zip(rest, scheduled, strict=True) if not done]:
            self._queue_instead(left, away[0])

    def _queue_instead(self, left: Sequence[tuple[Message, str]], error: Unavailable) -> None:
        """Deliveries that cannot be scheduled wait in a queue, as often as it takes until they are due."""
        self.telemetry.count("CallsFailed")
        self.telemetry.event("deliveries_not_scheduled", error=str(error), deliveries=len(left))
        orders = _Orders()
        for message, subscriber_id in left:
            order = WorkOrder(key=message.delivery_key(subscriber_id), queue=message.queue)
            orders.later[self.queues.of(message.queue)].append((order, MAX_DELAY_MS // 1000))
        orders.send()

    def _schedule(self, message: Message, subscriber_id: str) -> None:
        first = replace(schedule(opening(message, subscriber_id)), changed_at=self.clock.now(), version=1)
        try:
            self.deliveries.save(first)
        except Conflict:
            return  # scheduled by an earlier run of this batch
        self.telemetry.count("DeliveriesScheduled")

    def _count(self, batch: Sequence[Message]) -> None:
        """The totals are a statistic: an error while counting must not cause the batch to be queued twice."""
        posted = Counter((message.project, message.queue_uid) for message in batch)
        for (project, queue_uid), count in posted.items():
            try:
                self.totals.add_to_total(project, queue_uid, count)
            except Unavailable as error:
                self.telemetry.event("total_not_counted", error=str(error), project=project, count=count)
        self.telemetry.count("MessagesDispatched", len(batch))


def _size(message: Message) -> int:
    """Approximate bytes of one order for a message; a unicast order names all subscribers."""
    targets = 16 * len(message.subscriber_ids) if message.unicast else 0
    headers = sum(len(name) + len(value) for name, value in message.headers.items())
    traced = 0 if message.trace is None else len(message.trace.text)
    return (
        _ORDER_BYTES + targets + headers + traced + (0 if message.body is None else stored_size(message.body) * 4 // 3)
    )
