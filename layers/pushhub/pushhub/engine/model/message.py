"""A message as a producer posted it, and where its body is stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pushhub.base.numerals import digits
from pushhub.engine.model.keys import DeliveryKey, MessageKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.engine.model.deflated import StoredBody
    from pushhub.engine.model.trace import Trace

MAX_HOPS = 10
"""How many queues a message may pass through before it is treated as a loop."""

HOPS_HEADER = "Pushhub-Hops"
"""Sent with what is passed on: how many queues, sources, applications and stores the message has passed, including the
next one.
"""
_HOPS_DIGITS = 9

KEPT_AFTER_EXPIRY_MS = 86_400_000
"""How long, at least, a message and its deliveries are kept after the message expires.

They are then removed one by one over the course of two days.
"""

KEPT_MS = 3 * 86_400_000
"""How long, at least, they are kept from when the message was due on, however soon it expires: push may be down for a
day, and what it lost is found by sweep, which looks at each message once a day, and ends as expired.
"""

DESCENDANTS = 1_000
"""How many messages may derive from one that a producer posted (copies in other queues, and copies of those), unless
the hub is configured otherwise.
"""


def kept_until(due_at: int, expires_at: int) -> int:
    """Until when a message and its deliveries are kept at least, epoch milliseconds.

    Args:
        due_at: When the message was due first, epoch milliseconds: at its acceptance, or when its delay was over.
    """
    return max(expires_at + KEPT_AFTER_EXPIRY_MS, due_at + KEPT_MS)


def hops_said(text: str) -> int:
    """What :data:`HOPS_HEADER` says; 0 if that is no number."""
    return digits(text, _HOPS_DIGITS) or 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyRef:
    """Where a claim-checked body is stored in the bodies bucket; one object may hold the bodies of a whole post.

    Attributes:
        key: Object key.
        offset: First byte of this body in the object.
    """

    key: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering:
    """The position of a message among those with the same ordering key, which each subscriber gets one after the other.

    Attributes:
        key: The ordering key, unique in the queue's generation.
        sequence: Its number within the key, from 1; 0 until it is stored, which assigns the number.
        previous: By the ``subscriber_id`` of each delivery: the message of this key that goes before it there; missing
            for the first message.
    """

    key: str
    sequence: int = 0
    previous: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """A message that a producer wants to post, already validated by its protocol.

    Attributes:
        body: The exact bytes to deliver.
        delay_s: Seconds before the message becomes available or is pushed (0..604800).
        headers: Per-message headers (IronMQ ``push_headers``) sent with every push.
        hops: How many hub queues the message has passed on its way here.
        descendants: How many messages may derive from it, if fewer than from a message that a producer posts.
        order_key: Messages of a push queue with the same key are delivered in order; None for no order.
        trace: The trace of the request, or of the attempt that posts it; None for none.
    """

    body: bytes
    delay_s: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    hops: int = 0
    descendants: int | None = None
    order_key: str | None = None
    trace: Trace | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Eager:
    """What ingest orders itself.

    Attributes:
        subscriber_ids: The deliveries (``*`` for unicast); the stream orders all others at once.
        again_s: Seconds from the stream's record until the stream's orders for these deliveries.
    """

    subscriber_ids: tuple[str, ...]
    again_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """An accepted message. It never changes; everything that happens to it is stored in its deliveries.

    Attributes:
        queue: Name of the queue it was posted to.
        queue_uid: Generation of that queue (a queue deleted and created again has another).
        message_id: See :mod:`pushhub.base.ids`.
        body: The body as it is stored with the message (:mod:`pushhub.engine.model.deflated`), or None when it is
            stored at ``body_ref``. Whoever wants its bytes calls :func:`pushhub.engine.bodies.body_of`.
        body_ref: Claim check, or None when ``body`` is the body.
        body_size: Bytes that were posted.
        accepted_at: Epoch milliseconds of acceptance.
        due_at: Epoch milliseconds from which it may be delivered (``accepted_at`` + delay).
        expires_at: Epoch milliseconds from which it counts as expired.
        subscriber_ids: The subscribers it is owed to, in the order of the queue at acceptance; empty on pull queues.
        unicast: Delivery to one of ``subscriber_ids`` is enough.
        hops: See :class:`NewMessage`.
        root: Id of the accepted message that this one descends from; None when it is not a descendant.
        descendants: How many messages may derive from it in total.
        ordering: Its position among messages delivered in order; None for no order.
        cause: Set on messages made by the hub itself: what they were made for, so that making one twice is noticed.
        eager: What ingest orders itself; None if the stream orders everything.
        trace: The trace it belongs to; None for none.
    """

    project: str
    queue: str
    queue_uid: str
    message_id: str
    body: StoredBody | None
    body_ref: BodyRef | None = None
    body_size: int
    headers: Mapping[str, str] = field(default_factory=dict)
    accepted_at: int
    due_at: int
    expires_at: int
    subscriber_ids: tuple[str, ...] = ()
    unicast: bool = False
    hops: int = 0
    root: str | None = None
    descendants: int = DESCENDANTS
    ordering: Ordering | None = None
    cause: str | None = None
    eager: Eager | None = None
    trace: Trace | None = None

    @property
    def key(self) -> MessageKey:
        """The key it is stored under."""
        return MessageKey(self.project, self.queue_uid, self.message_id)

    def delivery_key(self, subscriber_id: str) -> DeliveryKey:
        """The key of its delivery to a subscriber (``*`` for unicast)."""
        return DeliveryKey(*self.key, subscriber_id)

    @property
    def root_id(self) -> str:
        """Id of the message that this one's descendants count against: the one it descends from, or its own."""
        return self.root or self.message_id

    @property
    def delivery_subscribers(self) -> tuple[str, ...]:
        """The ``subscriber_id`` of each delivery owed: one per subscriber, or the single ``*`` for unicast."""
        return ("*",) if self.unicast else self.subscriber_ids

    def allowance(self, subscriber_id: str) -> int:
        """How many messages may derive from one of its deliveries, including the copy that the delivery itself may
        make.

        The deliveries share the message's allowance, so queues that feed each other make a bounded number of copies in
        total, however many subscribers they have. No counter is needed.

        Args:
            subscriber_id: One of :attr:`delivery_subscribers`.
        """
        deliveries = self.delivery_subscribers
        share, rest = divmod(self.descendants, max(1, len(deliveries)))
        return share + (subscriber_id in deliveries[:rest])
