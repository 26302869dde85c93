"""A work order as received from its queue, or read from its subscriber's backlog. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pushhub.engine.model.eager import FRESH_MS, GOOD_FOR_MS

if TYPE_CHECKING:
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.keys import DeliveryKey, MessageKey
    from pushhub.engine.model.message import Message
    from pushhub.engine.model.work import WorkOrder

GOOD_MS = 500
"""How long a message that was read may be sent, milliseconds, as its owner may delete it meanwhile. What was deleted is
not sent a second later; so half a second is left until the request is made.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A work order as received from SQS.

    Attributes:
        order: What to look at.
        sqs_id: SQS message id, used to report batch item failures; orders from one pack share it.
        receipt_handle: For changing its visibility.
        received_at: When SQS delivered it, epoch milliseconds.
        receive_count: How often SQS has delivered it so far.
        sent_at: When it was sent, epoch milliseconds; None when unknown.
        place: For an order read from its subscriber's backlog: its place there. ``sqs_id`` and ``receipt_handle`` then
            name no SQS message.
    """

    order: WorkOrder
    sqs_id: str
    receipt_handle: str
    received_at: int
    receive_count: int = 1
    sent_at: int | None = None
    place: str = ""

    @property
    def waited_ms(self) -> int:
        """How long nobody took it up, once it was due. Zero if it was received before, as whoever did so let it wait,
        and if it was sent to be received later.
        """
        if self.receive_count > 1 or self.sent_at is None or self.order.second or self.order.wakes:
            return 0
        due_at = 0 if self.order.message is None else self.order.message.due_at
        return max(0, self.received_at - max(self.sent_at, due_at))

    @property
    def may_be_second(self) -> bool:
        """Whether it is the stream's order for an attempt that ingest has ordered, and was not received before."""
        return self.order.second and self.receive_count == 1

    def is_fresh(self, now: int) -> bool:
        """Whether it is ingest's order, not received before, for what was accepted a moment ago.

        The stream's order is still to come, so there is nobody but a queue that repeats itself who could have begun
        the attempt. That nobody did is not looked up: it costs a fifth of what an eager queue costs more.
        """
        order = self.order
        if order.until is None or self.receive_count > 1:
            return False
        return now - (order.until - GOOD_FOR_MS) < FRESH_MS

    def is_void(self, stored: Delivery | None) -> bool:
        """Whether it is for an earlier state of its delivery: the run that changed the state has already arranged the
        next step.

        An order received again may be the one that made the change, so it counts.
        """
        if self.may_be_second and stored is not None and stored.begun:
            return True
        version = self.order.version
        return version is not None and self.receive_count == 1 and stored is not None and stored.version != version


class ReadTogether(NamedTuple):
    """Deliveries and messages that were read in one call; what is not there is missing."""

    deliveries: dict[DeliveryKey, Delivery]
    messages: dict[MessageKey, Message]


class Loaded(NamedTuple):
    """An order with what was read for it.

    Attributes:
        stored: Its delivery; None if nothing is stored of it, or that was not read.
        read: Its message, if the order does not carry it and it was read, too.
        read_at: When, epoch milliseconds.
    """

    received: Received
    stored: Delivery | None
    read: Message | None = None
    read_at: int = 0

    def message(self, now: int, *, leased: bool) -> Message | None:
        """Its message; None if it has to be read, as nobody has done so, or too long ago.

        Args:
            leased: Whether it has a lease, and so may have waited in memory for many seconds, with its message.
        """
        good = 0 <= now - self.read_at < GOOD_MS
        carried = self.received.order.message
        if carried is not None and (good or not leased):
            return carried
        return self.read if good else None
