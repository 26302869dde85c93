"""Acknowledging a push: the subscriber answered 202, worked, and now says that it is done (IronMQ v3 "Long Running Processes").

The reservation id sent with each push is the capability: who shows it need not have a token (Iron's own conformance server sends
none). Being derived from the message, the subscriber and the attempt, it can be checked while the push is still open and
nothing has been written about that attempt.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from pushhub.base.errors import Conflict, Forbidden, NotFound, Unavailable
from pushhub.base.ids import push_reservation_id
from pushhub.base.ports import Clock
from pushhub.engine.model.delivery import Delivery, acknowledge
from pushhub.engine.model.message import Message
from pushhub.engine.model.queue import Queue
from pushhub.engine.ports import ConfigStore, MessageStore
from pushhub.ironmq.push_messages import PushedMessage, PushMessages
from pushhub.ironmq.wire.messages import Deletion
from pushhub.ironmq.wire.names import is_message_id

__all__ = ["Acknowledge"]

TIMED_OUT = "Reservation has timed out"
CHANGE_ROUNDS = 8
"""How often an acknowledgement is made again on top of an attempt recorded meanwhile before it is given up."""


@dataclass(frozen=True, slots=True)
class _Reserved:
    """What a reservation id turned out to reserve."""

    delivery: Delivery
    subscriber_id: str
    attempt: int


class Acknowledge:
    """Takes acknowledgements.

    Args:
        config: Queues, for acknowledgements without a token.
        messages: Where acknowledged deliveries are written.
        push_messages: Reads messages with their deliveries.
        clock: Time.
    """

    def __init__(
        self, *, config: ConfigStore, messages: MessageStore, push_messages: PushMessages, clock: Clock
    ) -> None:
        self._config = config
        self._messages = messages
        self._push_messages = push_messages
        self._clock = clock

    def check(self, queue: Queue, deletion: Deletion) -> None:
        """Refuse what :meth:`run` would refuse, without acknowledging.

        Raises:
            MessageNotFound: No such message.
            Forbidden: The reservation is wrong, superseded, or timed out.
        """
        self._acknowledged(queue, deletion)

    def run(self, queue: Queue, deletion: Deletion) -> None:
        """Acknowledge a push. Doing it twice is fine.

        Args:
            queue: A push queue.
            deletion: The message, the reservation, and who acknowledges (empty or None: found by the reservation).

        Raises:
            MessageNotFound: No such message.
            Forbidden: The reservation is wrong, superseded, or timed out.
        """
        for _ in range(CHANGE_ROUNDS):
            before, after = self._acknowledged(queue, deletion)
            if after is before:
                return
            try:
                self._messages.save(after)
            except Conflict:
                # The attempt itself was recorded meanwhile.
                continue
            return
        raise Unavailable("acknowledging under contention")

    def run_without_token(self, project_id: str, queue_name: str, deletion: Deletion) -> None:
        """Acknowledge a push by its reservation alone. Every refusal looks the same, so that nothing can be learned from it.

        Raises:
            Forbidden: There is nothing that this reservation reserves.
        """
        queue = self._config.queue(project_id, queue_name, fresh=True)
        if queue is None or not queue.is_push or not is_message_id(deletion.message_id):
            raise Forbidden(TIMED_OUT)
        try:
            self.run(queue, deletion)
        except NotFound as error:
            raise Forbidden(TIMED_OUT) from error

    def _acknowledged(self, queue: Queue, deletion: Deletion) -> tuple[Delivery, Delivery]:
        pushed = self._push_messages.get(queue, deletion.message_id)
        found = _reserved(queue, pushed, deletion)
        if found is None:
            raise Forbidden(TIMED_OUT)
        return found.delivery, acknowledge(found.delivery, found.subscriber_id, found.attempt, self._clock.now())


def _reserved(queue: Queue, pushed: PushedMessage, deletion: Deletion) -> _Reserved | None:
    """The attempt that the reservation id was sent with, among those it could still be."""
    given = (deletion.reservation_id or "").encode()
    found: _Reserved | None = None
    for subscriber_id in _candidates(queue, pushed.message, deletion.subscriber_name):
        delivery = pushed.deliveries["*" if pushed.message.unicast else subscriber_id]
        for attempt in (delivery.attempts + 1, delivery.attempts):
            expected = push_reservation_id(queue.secret, pushed.message.message_id, subscriber_id, attempt)
            if hmac.compare_digest(expected.encode(), given):
                found = _Reserved(delivery, subscriber_id, attempt)
    return found


def _candidates(queue: Queue, message: Message, name: str | None) -> tuple[str, ...]:
    """Ids of the subscribers that may have sent the acknowledgement: those of that name, or any when none was told."""
    if not name:
        return message.subscriber_ids
    named = {each.subscriber_id for each in (queue.push.subscribers if queue.push else ()) if each.name == name}
    return tuple(each for each in message.subscriber_ids if each in named)
