"""What becomes of a delivery that was given up, because its tries or its message's time ran out: a message in the queue's error queue."""

from __future__ import annotations

from pushhub.base.errors import MessageNotFound
from pushhub.base.ports import Telemetry
from pushhub.engine.bodies import body_of
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.message import MAX_HOPS, Message, NewMessage
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.ports import BodyStore, QueueSource, StoredMessages
from pushhub.ironmq.post import Post
from pushhub.ironmq.wire.error_queue import error_message_body

CAUSE = "exhausted/"
"""What the causes of error messages begin with."""

GIVEN_UP = frozenset({DeliveryState.EXHAUSTED, DeliveryState.EXPIRED})


class ErrorQueuePost:
    """Posts exhausted deliveries to their error queues: one message per failed subscriber, in unicast one per message.

    Args:
        messages: Messages and deliveries.
        bodies: Claim-checked bodies.
        post: Posts to the error queue, once per delivery however often it is asked.
    """

    def __init__(
        self,
        *,
        config: QueueSource,
        messages: StoredMessages,
        bodies: BodyStore,
        post: Post,
        telemetry: Telemetry,
    ) -> None:
        self._config = config
        self._messages = messages
        self._bodies = bodies
        self._post = post
        self._telemetry = telemetry

    def run(self, order: WorkOrder) -> None:
        """Handle one exhausted delivery. Safe to repeat.

        Raises:
            Unavailable: Try again later.
        """
        # What is remembered may be older than the message, and an error message skipped for that would be lost.
        queue = self._config.queue(order.key.project, order.queue, fresh=True)
        if queue is None or queue.push is None or queue.uid != order.key.queue_uid:
            self._skip(order, "queue_deleted")
            return
        if not queue.push.error_queue:
            self._skip(order, "no_error_queue")
            return
        delivery = self._messages.delivery(order.key)
        if delivery is None or delivery.state not in GIVEN_UP or delivery.settled_at is None:
            self._skip(order, "not_given_up")
            return
        message = self._messages.message(order.key.message)
        if message is None:
            self._skip(order, "message_gone")
            return
        allowance = message.allowance(delivery.subscriber_id)
        if _is_error_message(message) and (message.hops >= MAX_HOPS or allowance < 1):
            # An error about what was cut off is posted already; another one about that would never end.
            self._skip(order, "too_many_hops")
            return
        message_id = self._post.post_caused(
            queue.project,
            queue.push.error_queue,
            NewMessage(
                body=error_message_body(queue, message, self._body(message), delivery),
                hops=message.hops + 1,
                descendants=max(0, allowance - 1),
            ),
            cause=f"{CAUSE}{queue.uid}/{delivery.delivery_id}",
            at=delivery.settled_at,
        )
        self._telemetry.count("ErrorMessagesPosted")
        self._telemetry.event(
            "error_message_posted",
            project=queue.project,
            queue=queue.name,
            message_id=message.message_id,
            delivery_id=delivery.delivery_id,
            error_queue=queue.push.error_queue,
            error_message_id=message_id,
        )

    def _body(self, message: Message) -> bytes | None:
        try:
            return body_of(message, self._bodies)
        except MessageNotFound:
            return None

    def _skip(self, order: WorkOrder, reason: str) -> None:
        """Nothing to post; the exhausted delivery stays in sight in the index of unsettled deliveries."""
        self._telemetry.event(
            "error_message_skipped",
            **order.identity,
            reason=reason,
        )


def _is_error_message(message: Message) -> bool:
    return message.cause is not None and message.cause.startswith(CAUSE)
