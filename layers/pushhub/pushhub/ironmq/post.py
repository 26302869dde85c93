"""Posting messages to queues by producers: within their quota, and at once to the subscribers of eager queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.component import Component

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.engine.acceptance.first_orders import FirstOrders
    from pushhub.engine.model.message import NewMessage
    from pushhub.engine.projects.quotas import Quotas
    from pushhub.ironmq.intake import QueueIntake


class Post(Component):
    """Accepts messages from producers."""

    intake: QueueIntake
    quotas: Callable[[], Quotas]  # Bounds what producers post; made when one does.
    # Sends the first orders of eager queues; made when a producer posts to one.
    first_orders: Callable[[], FirstOrders]

    def post(self, project_id: str, queue_name: str, messages: Sequence[NewMessage]) -> list[str]:
        """Accept messages; returns their ids in order. An unknown queue is created as a pull queue.

        Args:
            queue_name: A validated name.
            messages: 1..100 messages.

        Raises:
            QuotaExceeded: The project posts more than it may.
            Unavailable: The effect is unknown; the producer has to post again.
        """
        self.quotas().take(project_id, len(messages))
        queue = self.intake.queue(project_id, queue_name)
        push = queue.push
        if push is None or not push.eager:
            accepted = self.intake.posted(queue, messages)
        else:
            orders, subscribers = self.first_orders(), push.subscribers
            accepted = self.intake.posted(queue, messages, lambda composed: orders.marked(composed, subscribers))
            orders.send(accepted)
        self.intake.stored(queue, len(accepted), began=accepted[0].accepted_at, exact=True)
        return [each.message_id for each in accepted]
