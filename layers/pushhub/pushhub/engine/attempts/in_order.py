"""Deliveries with the same ordering key, one after the other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.engine.component import Component
from pushhub.engine.model.delivery import DeliveryState, close
from pushhub.engine.model.work import WorkOrder

if TYPE_CHECKING:
    from pushhub.base.ports import Telemetry
    from pushhub.engine.attempts.job import Job
    from pushhub.engine.attempts.ports import Successors
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.keys import DeliveryKey
    from pushhub.engine.model.message import Message
    from pushhub.engine.ports import StoredMessages, WorkQueue


MOST_CANCELLED = 1_000
"""So many cancelled deliveries in a row are looked behind, a read each; then those before them are taken to be over."""


def is_over(messages: StoredMessages, key: DeliveryKey, *, cleared_at: int = 0) -> bool:
    """Whether a delivery holds back none behind it any more: it has ended, or its message is gone.

    One that was cancelled before its turn is over when the one before it is. What was cleared is over at once, though
    it is marked as such only when it would have been tried again.

    Args:
        cleared_at: Until when what its queue accepted was cleared, epoch milliseconds.
    """
    for _ in range(MOST_CANCELLED):
        stored = messages.delivery(key)
        if stored is None:
            message = messages.message(key.message)
            return message is None or message.accepted_at <= cleared_at
        if stored.accepted_at <= cleared_at:
            return True
        if not stored.settled or stored.awaits is None:
            return stored.settled
        key = key._replace(message_id=stored.awaits)
    return True


def cancelled(messages: StoredMessages, delivery: Delivery, message: Message, now: int, reason: str = "") -> Delivery:
    """The delivery whose message its owner deletes. If its turn had not come, those behind it still wait for the one
    before it.

    Args:
        delivery: As stored; not settled.
        message: Its message.
    """
    ended = close(delivery, DeliveryState.CANCELLED, now, reason)
    before = message.ordering.previous.get(delivery.subscriber_id) if message.ordering else None
    if before is None or delivery.begun:
        return ended
    goes_before = messages.delivery(delivery.key._replace(message_id=before))
    awaits = goes_before.awaits if goes_before is not None and goes_before.settled else before
    return ended if awaits is None else replace(ended, behind=before, awaits=awaits)


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
        if not self._waits_behind(key, job.waiting_order, cleared_at=job.queue.cleared_at):
            return False
        self.telemetry.count("DeliveriesInLine")
        return True

    def _waits_behind(self, key: DeliveryKey, order: WorkOrder, *, cleared_at: int = 0) -> bool:
        """Have an order wait behind a delivery, unless that is over; whether it waits."""
        if is_over(self.messages, key, cleared_at=cleared_at):
            return False
        self.successors.wait_behind(key, order)
        over = is_over(self.messages, key, cleared_at=cleared_at)
        if not over or not self.successors.take(key, order, by_itself=True):
            return True
        self.successors.let_go(key)
        return False

    def let_next_go(self, ended: Delivery) -> None:
        """Queue the order that waits behind a delivery that has ended; if it was cancelled before its turn, its own
        order goes on waiting for that first.

        A crash before the wait is forgotten queues it twice, which is harmless.
        """
        if ended.behind is not None:
            before, own = ended.key._replace(message_id=ended.behind), WorkOrder(key=ended.key, queue=ended.queue)
            if self._waits_behind(before, own):
                return
        following = self.successors.behind(ended.key)
        if following is not None and self.successors.take(ended.key, following, by_itself=False):
            self.next_queue.send([(following, 0)])
            self.successors.let_go(ended.key)
