"""Posting messages to queues by producers: within their quota, and at once to the subscribers of eager queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.engine.first_orders import FirstOrders
    from pushhub.engine.model.message import NewMessage
    from pushhub.engine.quotas import Quotas
    from pushhub.ironmq.intake import QueueIntake


class Post:
    """Accepts messages from producers.

    Args:
        intake: Accepts messages into queues.
        quotas: Bounds what producers post; made when one does.
        first_orders: Sends the first orders of eager queues; made when a producer posts to one.
    """

    def __init__(
        self, *, intake: QueueIntake, quotas: Callable[[], Quotas], first_orders: Callable[[], FirstOrders]
    ) -> None:
        self._intake = intake
        self._quotas = quotas
        self._first_orders = first_orders

    def post(self, project_id: str, queue_name: str, messages: Sequence[NewMessage]) -> list[str]:
        """Accept messages; returns their ids in order. An unknown queue is created as a pull queue.

        Args:
            project_id: Owner of the queue.
            queue_name: A validated name.
            messages: 1..100 messages.

        Raises:
            QuotaExceeded: The project posts more than it may.
            Unavailable: The effect is unknown; the producer has to post again.
        """
        self._quotas().take(project_id, len(messages))
        queue = self._intake.queue(project_id, queue_name)
        push = queue.push
        if push is None or not push.eager:
            accepted = self._intake.posted(queue, messages)
        else:
            orders, subscribers = self._first_orders(), push.subscribers
            accepted = self._intake.posted(queue, messages, lambda composed: orders.marked(composed, subscribers))
            orders.send(accepted)
        self._intake.stored(queue, len(accepted), exact=True)
        return [each.message_id for each in accepted]
