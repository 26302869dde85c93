"""Requeues work that fell out of the queues: the table is the truth, and everything else that says "look at this
delivery" can be lost.

A stream keeps records for 24 hours, a queue messages for 14 days, and a queue can be purged by mistake. Each hour one
part of the table is read, so that every message is checked once a day (docs/decisions/acceptance.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.errors import Unreadable
from pushhub.engine.attempts.in_order import is_over
from pushhub.engine.attempts.ports import Healths
from pushhub.engine.component import Component
from pushhub.engine.flow.ports import Backlogs
from pushhub.engine.model.circuit import CircuitState, SubscriberKey
from pushhub.engine.model.flow import FlowKey
from pushhub.engine.model.message import Message, kept_until
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.ports import Deliveries, Messages, WorkQueue
from pushhub.engine.waiting.ports import Outstanding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.acceptance.order_queues import OrderQueues
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.waiting.ports import Schedule

GRACE_MS = 3_600_000
"""How overdue a delivery must be before its order counts as lost: more than a busy hub ever lags behind.

A second order is harmless.
"""

DAY_MS = 86_400_000
"""Deliveries are kept this long after their message expires, and each message is swept once in that time."""

MARGIN_MS = 20_000
"""Time kept free at the end of an invocation."""

BATCH = 500
"""Orders sent at a time."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A delivery that gets an order.

    Attributes:
        queue: Where that goes.
        tried: Whether it was attempted before.
    """

    queue: WorkQueue
    order: WorkOrder
    tried: bool = False


class _Stored(Outstanding, Messages, Deliveries, Protocol):
    """Messages and deliveries."""


class _Subscribers(Healths, Backlogs, Protocol):
    """What is known of subscribers."""


class Sweep(Component):
    """Requeues lost work."""

    messages: _Stored  # Messages and deliveries, one by one and by parts of the table.
    schedule: Schedule  # Holds waits that are too long for a queue.
    # Say whose deliveries wait on purpose, for a circuit, a pause or a lease, and are not lost.
    subscribers: _Subscribers
    push_queue: WorkQueue  # For deliveries that were never tried.
    queues: OrderQueues  # For all others.
    clock: Clock
    telemetry: Telemetry  # Told of each lost delivery.

    def run(self, part: int, parts: int, remaining_ms: Callable[[], int], *, schedule_lost: bool = False) -> int:
        """Check one part of the table.

        Args:
            part: Number of the part, from 0.
            remaining_ms: Milliseconds this invocation has left; a sweep that runs out of time is counted as
                ``SweepsUnfinished``.
            schedule_lost: The schedule's table was lost, or is new. So is whatever waited there: scheduled deliveries
                are entered again, and everything else that is due gets an order now, as nobody knows any more what
                waited for its subscriber, for its turn, or behind another message.

        Returns:
            Number of deliveries queued or scheduled again.

        Raises:
            Unavailable: A read or write failed; the next day's sweep makes up for it.
        """
        self._left_alone: dict[SubscriberKey, bool] = {}
        found: list[_Found] = []
        swept = 0
        for message, deliveries in self.messages.outstanding(part, parts):
            if remaining_ms() < MARGIN_MS:
                self.telemetry.count("SweepsUnfinished")
                break
            try:
                found += self._due(message, deliveries) if schedule_lost else self._lost(message, deliveries)
                if schedule_lost:
                    swept += self._reschedule(deliveries)
            except Unreadable:
                # It is told where it is read. Every other message is swept.
                self.telemetry.event("message_not_swept", project=message.project, message_id=message.message_id)
            if len(found) >= BATCH:
                swept += self._queue(found)
                found = []
        return swept + self._queue(found)

    def _reschedule(self, deliveries: Sequence[Delivery]) -> int:
        waiting = [each for each in deliveries if each.scheduled and each.due_at is not None]
        for each in waiting:
            self.schedule.enter(each)
        return len(waiting)

    def _lost(self, message: Message, deliveries: Sequence[Delivery]) -> Iterator[_Found]:
        """The deliveries of a message that are long overdue and unchanged, and wait nowhere."""
        for found in self._overdue(message, deliveries, self.clock.now() - GRACE_MS):
            order = found.order
            if order.manual or not self._waits_elsewhere(message, order.key.subscriber_id, tried=found.tried):
                yield found

    def _due(self, message: Message, deliveries: Sequence[Delivery]) -> Iterator[_Found]:
        """The deliveries of a message that are due, wherever they waited but in the schedule. Some have an order
        already; a second one is harmless, and whoever has to wait is made to wait again.
        """
        scheduled = {each.subscriber_id for each in deliveries if each.scheduled}
        for found in self._overdue(message, deliveries, self.clock.now() + 1):
            if found.order.manual or found.order.key.subscriber_id not in scheduled:
                yield found

    def _overdue(self, message: Message, deliveries: Sequence[Delivery], before: int) -> Iterator[_Found]:
        """The deliveries of a message that were due before a moment, or whose time is over."""
        now = self.clock.now()
        stored = {each.subscriber_id: each for each in deliveries}
        for subscriber_id in dict.fromkeys((*message.delivery_subscribers, *stored)):
            order = WorkOrder(key=message.delivery_key(subscriber_id), queue=message.queue)
            delivery = stored.get(subscriber_id)
            if delivery is None:
                # The TTL may remove an ended delivery before its message, and such a delivery must not start again. So
                # untried deliveries have to be found before that, and at the message's expiry without delay: each
                # message is checked once a day.
                late = message.due_at < before or message.expires_at <= now
                if late and now < kept_until(message.due_at, message.expires_at):
                    queue = self.queues.of(message.queue)
                    yield _Found(self.push_queue if queue is self.queues.usual else queue, order)
                continue
            if delivery.asked_at is not None and delivery.asked_at < before:
                yield _Found(self.queues.of(message.queue), replace(order, manual=True))
            if delivery.wakes_at is not None and delivery.wakes_at < before:
                queue = self.queues.of(message.queue, polls=delivery.update_url is not None)
                yield _Found(queue, order, tried=delivery.attempts > 0)

    def _waits_elsewhere(self, message: Message, subscriber_id: str, *, tried: bool = False) -> bool:
        """Whether an unexpired delivery waits in its subscriber's backlog or line, or behind another with the same
        ordering key; neither is lost.
        """
        if self.clock.now() >= message.expires_at:
            return False
        subscriber = SubscriberKey(
            project=message.project, queue=message.queue, queue_uid=message.queue_uid, subscriber_id=subscriber_id
        )
        if subscriber not in self._left_alone:
            health = self.subscribers.health(subscriber)
            flow = FlowKey.of_subscriber(message.project, message.queue_uid, subscriber_id)
            troubled = health is not None and health.state is not CircuitState.CLOSED
            self._left_alone[subscriber] = troubled or bool(self.subscribers.backlog(flow, 1))
        if self._left_alone[subscriber]:
            return True
        before = message.ordering.previous.get(subscriber_id) if message.ordering else None
        if before is None or tried:
            return False
        return not is_over(self.messages, message.delivery_key(subscriber_id)._replace(message_id=before))

    def _queue(self, found: Sequence[_Found]) -> int:
        for queue in (self.push_queue, *self.queues.all):
            orders = [(each.order, 0) for each in found if each.queue is queue]
            if orders:
                queue.send(orders)
        for each in found:
            self.telemetry.event("delivery_swept", **each.order.identity, to=each.queue.name)
        if found:
            self.telemetry.count("DeliveriesSwept", len(found))
        return len(found)
