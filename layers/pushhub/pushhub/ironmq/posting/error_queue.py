"""Error queues: a delivery that was given up, because it ran out of tries or its message expired, becomes a message in
its queue's error queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.errors import MessageNotFound, Overdue, Unavailable, Unreadable
from pushhub.base.ids import derived_message_id
from pushhub.engine.bodies import body_of
from pushhub.engine.component import Component
from pushhub.engine.model.delivery import Delivery, DeliveryState
from pushhub.engine.model.keys import MessageKey
from pushhub.engine.model.message import MAX_HOPS, Message, NewMessage
from pushhub.ironmq.posting.intake import Caused, QueueIntake
from pushhub.ironmq.wire.error_queue import error_message_body

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from concurrent.futures import Executor

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.model.keys import DeliveryKey
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.model.work import WorkOrder
    from pushhub.engine.ports import BodyStore, QueueSource, StoredMessages
    from pushhub.ironmq.ports import PulledMessages

CAUSE = "exhausted/"
"""Prefix of the causes of error messages."""

GIVEN_UP = frozenset({DeliveryState.EXHAUSTED, DeliveryState.EXPIRED})


TOGETHER_BYTES = 16_000_000
"""Bytes of bodies held in memory at a time for error messages: four of the largest."""

MARGIN_MS = 12_000
"""When no more time than this is left, no further bodies are read, milliseconds."""


class ErrorQueuePost(Component):
    """Posts exhausted deliveries to their error queues: one message per failed subscriber; in unicast, one per message.

    An outage exhausts many deliveries of a few queues, so the data shared by a queue's deliveries is read and counted
    once per batch.
    """

    config: QueueSource
    messages: StoredMessages
    pull: PulledMessages  # Shows which error messages are there already.
    bodies: BodyStore
    intake: QueueIntake  # Posts to the error queue, only once per delivery however often it is called.
    clock: Clock
    telemetry: Telemetry
    executor: Executor  # Reads bodies and writes messages in parallel.

    def run(
        self,
        orders: Sequence[WorkOrder],
        *,
        repeated: Collection[DeliveryKey] = (),
        remaining_ms: Callable[[], int] | None = None,
    ) -> dict[DeliveryKey, Exception]:
        """Handle exhausted deliveries; returns those that failed, and why, also those for which there was no time. Safe
        to repeat.

        Args:
            repeated: Those that an earlier run may have posted: what it did is not done again, so that each run goes
                on, however large the messages are.
            remaining_ms: Milliseconds that the run has left; None for no end.
        """
        queues: dict[tuple[str, str, str], dict[DeliveryKey, WorkOrder]] = {}
        for order in orders:
            queues.setdefault((order.key.project, order.queue, order.key.queue_uid), {})[order.key] = order
        failed: dict[DeliveryKey, Exception] = {}
        for together in queues.values():
            failed |= self._tried([*together.values()], repeated, remaining_ms)
        return failed

    def _tried(
        self, orders: Sequence[WorkOrder], repeated: Collection[DeliveryKey], remaining_ms: Callable[[], int] | None
    ) -> dict[DeliveryKey, Exception]:
        """Handle deliveries of one queue; one of which nothing can be read keeps no other waiting."""
        try:
            return self._of_one_queue(orders, repeated, remaining_ms)
        except Unreadable as error:
            if len(orders) == 1:
                return {orders[0].key: error}
            failed: dict[DeliveryKey, Exception] = {}
            for each in orders:
                failed |= self._tried([each], repeated, remaining_ms)
            return failed
        except Unavailable as error:
            return dict.fromkeys((each.key for each in orders), error)

    def _of_one_queue(
        self, orders: Sequence[WorkOrder], repeated: Collection[DeliveryKey], remaining_ms: Callable[[], int] | None
    ) -> dict[DeliveryKey, Exception]:
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
        owed = [*self._owed(orders)]
        if any(each.key in repeated for _, each in owed):
            owed = self._not_there(queue, queue.push.error_queue, owed, repeated)
        for together in _by_size(owed):
            if remaining_ms is not None and remaining_ms() <= MARGIN_MS:
                failed |= dict.fromkeys((each.key for _, each in together), Overdue("posting error messages"))
            else:
                failed |= self._posted(queue, queue.push.error_queue, together)
        return failed

    def _not_there(
        self,
        queue: Queue,
        error_queue: str,
        owed: Sequence[tuple[Message, Delivery]],
        repeated: Collection[DeliveryKey],
    ) -> list[tuple[Message, Delivery]]:
        """Deliveries whose error message is not in its queue yet."""
        target = self.intake.queue(queue.project, error_queue)

        def is_there(each: tuple[Message, Delivery]) -> bool:
            _, delivery = each
            if delivery.key not in repeated:
                return False
            cause = _cause(queue, delivery)
            message_id = derived_message_id(delivery.settled_at or 0, cause, 0)
            if target.is_push:
                key = MessageKey(target.project, target.uid, message_id)
                stored = self.messages.messages([key]).get(key)
            else:
                held = self.pull.get(MessageKey(target.project, target.pull_uid, message_id), self.clock.now())
                stored = held.message if held else None
            return stored is not None and stored.cause == cause

        there = self.executor.map(is_there, owed)
        return [each for each, is_known in zip(owed, there, strict=True) if not is_known]

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
                cause=_cause(queue, delivery),
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


def _cause(queue: Queue, delivery: Delivery) -> str:
    return f"{CAUSE}{queue.uid}/{delivery.delivery_id}"


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
