"""Manual tries: a person may have a delivery tried that failed, waits, arrived, or was never owed.

The request is one write, then one order in the retry queue. It is confirmed only when both are done; until then it has
to be repeated, which leads to a second try only if the first has begun. The sweep finds whatever a crash leaves behind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Conflict
from pushhub.engine.component import Component
from pushhub.engine.model.delivery import Delivery, added, ask_for_try, opening
from pushhub.engine.model.work import WorkOrder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pushhub.base.ports import Clock
    from pushhub.engine.model.message import Message
    from pushhub.engine.ports import Deliveries, WorkQueue


class Resend(Component):
    """Has deliveries tried at a person's request."""

    deliveries: Deliveries
    retry_queue: WorkQueue  # Where the tries are queued.
    clock: Clock

    def ask(self, message: Message, subscriber_id: str) -> Delivery:
        """Request one immediate try, whatever happened to the delivery so far.

        Success ends its automatic tries, failure leaves them unchanged.

        Args:
            message: The message, as stored.
            subscriber_id: A subscriber of its queue; the message need not have been owed to it. The try is not made if
                it is disabled or removed.

        Returns:
            The delivery as stored.

        Raises:
            Forbidden: It expired, was cancelled, or is not owed to a single subscriber.
            Unavailable: The effect is unknown; ask again.
        """
        order = _order(message, subscriber_id, manual=True)

        def once() -> Delivery:
            stored = self.deliveries.delivery(order.key)
            wanted = ask_for_try(stored or _untried(message, subscriber_id), self.clock.now())
            self.deliveries.save(wanted)
            return wanted

        wanted = until_saved(once, doing="asking for a try under contention")
        self.retry_queue.send([(order, 0)])
        return wanted

    def add(self, message: Message, subscriber_id: str) -> Delivery:
        """Owe a message to one more subscriber from now on, with all automatic tries.

        Args:
            message: The message, as stored.
            subscriber_id: A subscriber of its queue.

        Returns:
            The delivery as stored; one that already exists is left alone.

        Raises:
            Unavailable: The effect is unknown; add it again.
        """
        order = _order(message, subscriber_id)
        stored = self.deliveries.delivery(order.key)
        if subscriber_id in message.delivery_subscribers:
            return stored or opening(message, subscriber_id)
        if stored is None:
            stored = replace(added(message, subscriber_id, due_at=self.clock.now()), version=1)
            if not self._saved(stored):
                return self.deliveries.delivery(order.key) or stored
        if not stored.attempts:
            self.retry_queue.send([(order, 0)])
        return stored

    def let_next_go(self, ended: Iterable[Delivery]) -> None:
        """Let messages go on that wait behind deliveries of their ordering key which ended without an attempt.

        If a crash prevents it, they go on when the next automatic try would have been due.

        Args:
            ended: Deliveries as stored. Those without an ordering key are left out.

        Raises:
            Unavailable: Some may go on later; call again.
        """
        orders = [
            (WorkOrder(key=each.key, queue=each.queue), 0)
            for each in ended
            if each.order_key is not None and each.settled
        ]
        if orders:
            self.retry_queue.send(orders)

    def _saved(self, delivery: Delivery) -> bool:
        try:
            self.deliveries.save(delivery)
        except Conflict:
            return False
        return True


def _untried(message: Message, subscriber_id: str) -> Delivery:
    """A delivery that is not stored: its first try is still to come, or it was never owed."""
    if subscriber_id in message.delivery_subscribers:
        return opening(message, subscriber_id)
    return added(message, subscriber_id, due_at=None)


def _order(message: Message, subscriber_id: str, *, manual: bool = False) -> WorkOrder:
    return WorkOrder(key=message.delivery_key(subscriber_id), queue=message.queue, manual=manual)
