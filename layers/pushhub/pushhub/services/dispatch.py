"""From stored messages to work orders: the reading end of the outbox that the messages table's stream is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pushhub.domain.backoff import MAX_DELAY_MS
from pushhub.domain.delivery import opening, park
from pushhub.domain.errors import Conflict, Unavailable
from pushhub.domain.message import Message
from pushhub.domain.work import WorkOrder
from pushhub.ports import Clock, ConfigStore, MessageStore, Telemetry, WorkQueue

__all__ = ["Dispatch"]


class Dispatch:
    """Queues the deliveries of messages that were just stored.

    Args:
        config: Counts messages per queue.
        messages: Parks deliveries that are due later than a queue can delay.
        push_queue: Where first attempts are queued.
        clock: Time.
        telemetry: Metrics.
    """

    def __init__(
        self,
        *,
        config: ConfigStore,
        messages: MessageStore,
        push_queue: WorkQueue,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._config = config
        self._messages = messages
        self._push_queue = push_queue
        self._clock = clock
        self._telemetry = telemetry

    def run(self, batch: Sequence[Message]) -> None:
        """Queue or park every delivery of every message. Safe to repeat: work orders are harmless duplicates.

        Raises:
            Unavailable: Something could not be queued; the whole batch must come again.
        """
        now = self._clock.now()
        at_once: list[WorkOrder] = []
        later: list[tuple[WorkOrder, int]] = []
        for message in batch:
            for subscriber_id in message.delivery_subscribers:
                if message.due_at - now > MAX_DELAY_MS:
                    self._park(message, subscriber_id)
                    continue
                order = WorkOrder(message=message, subscriber_id=subscriber_id)
                if message.due_at > now:
                    later.append((order, -(-(message.due_at - now) // 1000)))
                else:
                    at_once.append(order)
        if at_once:
            self._push_queue.send_packed(at_once)
        if later:
            self._push_queue.send(later)
        self._count(batch)

    def _park(self, message: Message, subscriber_id: str) -> None:
        first = replace(park(opening(message, subscriber_id)), version=1)
        try:
            self._messages.save(first)
        except Conflict:
            return  # parked by an earlier run of this batch
        self._telemetry.count("DeliveriesParked")

    def _count(self, batch: Sequence[Message]) -> None:
        """The totals are a statistic: failing to count must not queue the batch twice."""
        posted = Counter((message.project, message.queue_uid) for message in batch)
        for (project, queue_uid), count in posted.items():
            try:
                self._config.add_to_total(project, queue_uid, count)
            except Unavailable as error:
                self._telemetry.event("total_not_counted", error=str(error), project=project, count=count)
        self._telemetry.count("MessagesDispatched", len(batch))
