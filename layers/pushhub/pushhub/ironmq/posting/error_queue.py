"""Error queues: a delivery that was given up, because it ran out of tries or its message expired, becomes a message in
its queue's error queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.errors import MessageNotFound, Unavailable, Unreadable
from pushhub.engine.bodies import body_of
from pushhub.engine.component import Component
from pushhub.engine.model.delivery import Delivery, DeliveryState
from pushhub.engine.model.message import MAX_HOPS, Message, NewMessage
from pushhub.ironmq.posting.intake import Caused, QueueIntake
from pushhub.ironmq.wire.error_queue import error_message_body

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Executor

    from pushhub.base.ports import Telemetry
    from pushhub.engine.model.keys import DeliveryKey
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.model.work import WorkOrder
    from pushhub.engine.ports import BodyStore, QueueSource, StoredMessages

CAUSE = "exhausted/"
"""Prefix of the causes of error messages."""

GIVEN_UP = frozenset({DeliveryState.EXHAUSTED, DeliveryState.EXPIRED})


TOGETHER_BYTES = 40_000_000
"""Bytes of bodies held in memory at a time for error messages: ten of the largest."""


class ErrorQueuePost(Component):
    """Posts exhausted deliveries to their error queues: one message per failed subscriber; in unicast, one per message.

    An outage exhausts many deliveries of a few queues, so the data shared by a queue's deliveries is read and counted
    once per batch.
    """

    config: QueueSource
    messages: StoredMessages
    bodies: BodyStore
    intake: QueueIntake  # Posts to the error queue, only once per delivery however often it is called.
    telemetry: Telemetry
    executor: Executor  # Reads bodies and writes messages in parallel.

    def run(self, orders: Sequence[WorkOrder]) -> dict[DeliveryKey, Exception]:
        """Handle exhausted deliveries; returns those that failed, and why. Safe to repeat."""
        queues: dict[tuple[str, str, str], dict[DeliveryKey, WorkOrder]] = {}
        for order in orders:
            queues.setdefault((order.key.project, order.queue, order.key.queue_uid), {})[order.key] = order
        failed: dict[DeliveryKey, Exception] = {}
        for together in queues.values():
            failed |= self._tried([*together.values()])
        return failed

    def _tried(self, orders: Sequence[WorkOrder]) -> dict[DeliveryKey, Exception]:
        """Handle deliveries of one queue; one of which nothing can be read keeps no other waiting."""
        try:
            return self._of_one_queue(orders)
        except Unreadable as error:
            if len(orders) == 1:
                return {orders[0].key: error}
            failed: dict[DeliveryKey, Exception] = {}
            for each in orders:
                failed |= self._tried([each])
            return failed
        except Unavailable as error:
            return dict.fromkeys((each.key for each in orders), error)

    def _of_one_queue(self, orders: Sequence[WorkOrder]) -> dict[DeliveryKey, Exception]:
        first = orders[0]
        # A cached queue may be older than the message, and an error message skipped because of that would be lost.
        queue = self.config.queue(first.key.project, first.queue, fresh=True)
        if queue is None or queue.push is None or queue.uid != first.key.queue_uid:
            self._skip(orders, "queue_deleted")
            return {}
        if not queue.push.error_queue:
            self._skip(orders, "no_error_queue")
            return {}
        failed: dict[DeliveryKey, Exception] = {}
        for together in _by_size(self._owed(orders)):
            failed |= self._posted(queue, queue.push.error_queue, together)
        return failed

    def _owed(self, orders: Sequence[WorkOrder]) -> Iterator[tuple[Message, Delivery]]:
        """Deliveries that need an error message."""
        deliveries = self.messages.deliveries([each.key for each in orders])
        messages = self.messages.messages([each.key.message for each in orders])
        for order in orders:
            delivery, message = deliveries.get(order.key), messages.get(order.key.message)
            if delivery is None or delivery.state not in GIVEN_UP or delivery.settled_at is None:
                self._skip([order], "not_given_up")
            elif message is None:
                self._skip([order], "message_gone")
            elif _is_error_message(message) and (
                message.hops >= MAX_HOPS or message.allowance(delivery.subscriber_id) < 1
            ):
                # This is itself an error message about a chain that was cut off; reporting it as well would never end.
                self._skip([order], "too_many_hops")
            else:
                yield message, delivery

    def _posted(
        self, queue: Queue, error_queue: str, owed: Sequence[tuple[Message, Delivery]]
    ) -> dict[DeliveryKey, Exception]:
        """Post error messages; returns the deliveries that failed, and why."""
        failed: dict[DeliveryKey, Exception] = {}
        posts: list[tuple[Message, Delivery, Caused]] = []
        composed = self.executor.map(lambda each: self._composed(queue, *each), owed)
        for (message, delivery), caused in zip(owed, composed, strict=True):
            if isinstance(caused, Caused):
                posts.append((message, delivery, caused))
            else:
                failed[delivery.key] = caused
        if not posts:
            return failed
        outcomes = self.intake.post_all_caused(
            queue.project, error_queue, [each for _, _, each in posts], self.executor
        )
        for (message, delivery, _), posted in zip(posts, outcomes, strict=True):
            if isinstance(posted, Exception):
                failed[delivery.key] = posted
                continue
            self.telemetry.count("ErrorMessagesPosted")
            self.telemetry.event(
                "error_message_posted",
                project=queue.project,
                queue=queue.name,
                message_id=message.message_id,
                delivery_id=delivery.delivery_id,
                error_queue=error_queue,
                error_message_id=posted,
            )
        return failed

    def _composed(self, queue: Queue, message: Message, delivery: Delivery) -> Caused | Exception:
        try:
            allowance = message.allowance(delivery.subscriber_id)
            return Caused(
                message=NewMessage(
                    body=error_message_body(queue, message, self._body(message), delivery),
                    hops=message.hops + 1,
                    descendants=max(0, allowance - 1),
                    trace=message.trace,
                ),
                cause=f"{CAUSE}{queue.uid}/{delivery.delivery_id}",
                at=delivery.settled_at or 0,
            )
        except Exception as error:  # noqa: BLE001 (the caller is told; it must not touch the others)
            return error

    def _body(self, message: Message) -> bytes | None:
        try:
            return body_of(message, self.bodies)
        except MessageNotFound:
            return None

    def _skip(self, orders: Sequence[WorkOrder], reason: str) -> None:
        """Nothing to post; exhausted deliveries remain visible in the index of unsettled deliveries."""
        for order in orders:
            self.telemetry.event("error_message_skipped", **order.identity, reason=reason)


def _by_size(owed: Iterable[tuple[Message, Delivery]]) -> Iterator[list[tuple[Message, Delivery]]]:
    """Groups of deliveries whose bodies fit into memory together."""
    together: list[tuple[Message, Delivery]] = []
    size = 0
    for message, delivery in owed:
        if together and size + message.body_size > TOGETHER_BYTES:
            yield together
            together, size = [], 0
        together.append((message, delivery))
        size += message.body_size
    if together:
        yield together


def _is_error_message(message: Message) -> bool:
    return message.cause is not None and message.cause.startswith(CAUSE)
