"""Deliveries with the same ordering key, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.component import Component

if TYPE_CHECKING:
    from pushhub.base.ports import Telemetry
    from pushhub.engine.attempts.job import Job
    from pushhub.engine.attempts.ports import Successors
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.keys import DeliveryKey
    from pushhub.engine.ports import StoredMessages, WorkQueue


class InOrder(Component):
    """Has orders wait behind the delivery before theirs."""

    messages: StoredMessages
    successors: Successors  # Orders that wait for an earlier delivery with the same ordering key.
    next_queue: WorkQueue  # Where such an order goes when its turn comes.
    telemetry: Telemetry

    def must_wait(self, job: Job, delivery: Delivery) -> bool:
        """Whether an earlier delivery with the same ordering key is still in progress.

        If so, the order waits behind it.

        A delivery that ends looks for its successor, and an order that waits checks for the end, so whichever comes
        second finds the other. Where both do, one of them is the first to take the order, and only that one goes on.
        """
        ordering = job.message.ordering
        before = ordering.previous.get(delivery.subscriber_id) if ordering else None
        # Manual tries ignore the order, so one is no proof that the previous delivery has ended.
        if before is None or delivery.tries:
            return False
        key = delivery.key._replace(message_id=before)
        if self._has_ended(key):
            return False
        self.successors.wait_behind(key, job.waiting_order)
        if not self._has_ended(key) or not self.successors.take(key, job.waiting_order, by_itself=True):
            self.telemetry.count("DeliveriesInLine")
            return True
        self.successors.let_go(key)
        return False

    def _has_ended(self, key: DeliveryKey) -> bool:
        """Whether a delivery has ended, or its message is gone."""
        stored = self.messages.delivery(key)
        return stored.settled if stored else self.messages.message(key.message) is None

    def let_next_go(self, ended: DeliveryKey) -> None:
        """Queue the order that waits behind a delivery that has ended.

        A crash before the wait is forgotten queues it twice, which is harmless.
        """
        following = self.successors.behind(ended)
        if following is not None and self.successors.take(ended, following, by_itself=False):
            self.next_queue.send([(following, 0)])
            self.successors.let_go(ended)
