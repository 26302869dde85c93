"""Acknowledging a push: the subscriber answered 202, did its work, and now reports that it is done (IronMQ v3 "Long
Running Processes").

The reservation id sent with each push is a capability: whoever presents it needs no token (Iron's own conformance
server sends none). It is derived from the message, the subscriber and the attempt, so it can be checked while the push
is still in progress and nothing has been written about that attempt.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.base.conflicts import until_saved
from pushhub.base.credentials import masked_url
from pushhub.base.errors import Forbidden, MessageNotFound
from pushhub.base.ids import push_reservation_id
from pushhub.engine.component import Component
from pushhub.engine.model.delivery import Delivery, acknowledge
from pushhub.ironmq.wire.names import is_message_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from pushhub.base.ports import Clock
    from pushhub.engine.attempts.resend import Resend
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.ports import Deliveries, QueueSource
    from pushhub.ironmq.pushing.push_messages import PushedMessage, PushMessages
    from pushhub.ironmq.wire.messages import Deletion

TIMED_OUT = "Reservation has timed out"


@dataclass(frozen=True, slots=True)
class _Reserved:
    """What a reservation id reserves."""

    delivery: Delivery
    subscriber_id: str
    attempt: int


class Acknowledge(Component):
    """Accepts acknowledgements. Methods raise ``MessageNotFound`` for what is not there."""

    config: QueueSource  # Queues, for acknowledgements without a token.
    messages: Deliveries  # Where acknowledged deliveries are written.
    push_messages: PushMessages  # Reads messages with their deliveries.
    resend: Callable[[], Resend]  # Makes what lets the next message of an ordering key go, on first use.
    clock: Clock

    def check(self, queue: Queue, deletion: Deletion) -> None:
        """Raise whatever :meth:`run` would raise, without acknowledging.

        Raises:
            Forbidden: The reservation is wrong, superseded, or timed out.
        """
        self._acknowledged(queue, deletion)

    def run(self, queue: Queue, deletion: Deletion) -> None:
        """Acknowledge a push. Doing it twice is fine.

        Args:
            queue: A push queue.
            deletion: The message, the reservation, and the subscriber's name (empty or None: found by the reservation).

        Raises:
            Forbidden: The reservation is wrong, superseded, or timed out.
        """

        def once() -> Delivery:
            before, after = self._acknowledged(queue, deletion)
            if after is not before:
                self.messages.save(after)
            return after

        # The attempt itself may be recorded at the same time.
        acknowledged = until_saved(once, doing="acknowledging under contention")
        if acknowledged.order_key is not None:
            self.resend().let_next_go([acknowledged])

    def run_without_token(self, project_id: str, queue_name: str, deletion: Deletion) -> None:
        """Acknowledge a push by its reservation alone. An unknown queue is reported like an unknown message.

        Raises:
            Forbidden: The reservation is wrong, superseded, or timed out.
        """
        queue = self.config.queue(project_id, queue_name, fresh=True)
        if queue is None or not queue.is_push or not is_message_id(deletion.message_id):
            raise MessageNotFound
        self.run(queue, deletion)

    def _acknowledged(self, queue: Queue, deletion: Deletion) -> tuple[Delivery, Delivery]:
        # A reservation may outlast the message.
        pushed = self.push_messages.statuses(queue, deletion.message_id)
        found = _reserved(queue, pushed, deletion)
        if found is None:
            raise Forbidden(TIMED_OUT)
        subscriber = queue.push.subscriber(found.subscriber_id) if queue.push else None
        acknowledged = acknowledge(
            found.delivery,
            found.subscriber_id,
            found.attempt,
            self.clock.now(),
            name=subscriber.name if subscriber else None,
            url=masked_url(subscriber.url) if subscriber else None,
        )
        return found.delivery, acknowledged


def _reserved(queue: Queue, pushed: PushedMessage, deletion: Deletion) -> _Reserved | None:
    """The attempt that the reservation id was sent with, among those still possible."""
    given = (deletion.reservation_id or "").encode()
    found: _Reserved | None = None
    for subscriber_id in pushed.message.subscriber_ids:
        delivery = pushed.deliveries["*" if pushed.message.unicast else subscriber_id]
        if not _may_be_called(deletion.subscriber_name, queue, delivery, subscriber_id):
            continue
        for attempt in (delivery.attempts + 1, delivery.attempts):
            expected = push_reservation_id(queue.secret, pushed.message.message_id, subscriber_id, attempt)
            if hmac.compare_digest(expected.encode(), given):
                found = _Reserved(delivery, subscriber_id, attempt)
    return found


def _may_be_called(name: str | None, queue: Queue, delivery: Delivery, subscriber_id: str) -> bool:
    """Whether a subscriber has that name, or had it when it was asked.

    Always True when no name is given, or none is known any more.

    Several subscribers may share a name: the reservation tells them apart.
    """
    if not name:
        return True
    subscriber = queue.push.subscriber(subscriber_id) if queue.push else None
    asked = delivery.status(subscriber_id).name
    return name in (asked, subscriber.name if subscriber else None) or (subscriber is None and asked is None)
