"""A delivery being worked on, and what comes next for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pushhub.engine.model.circuit import SubscriberKey
from pushhub.engine.model.delivery import Delivery, DeliveryState
from pushhub.engine.model.flow import Limits, Terms
from pushhub.engine.model.following import Follow, Following

if TYPE_CHECKING:
    from pushhub.engine.model.message import Message
    from pushhub.engine.model.queue import PushSettings, Queue, Subscriber
    from pushhub.engine.model.received import Received
    from pushhub.engine.model.work import WorkOrder

DEADLINE_MARGIN_MS = 5_000
"""Time kept free at the end of an invocation for writing outcomes and arranging what comes next."""

LONGEST_ATTEMPT_MS = 190_000
"""Maximum duration of an attempt and its follow-up: an endpoint of the hub protocol has three minutes to answer."""

EARLY_MS = 2_000
"""An order that comes so much before its delivery is due is not the one that will be on time. That is more than two
clocks of AWS differ by, and less than the shortest wait for a retry (3 s): two orders would go on together.
"""


MayAsk = Callable[[int], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The context of a delivery being worked on.

    Attributes:
        looked_up_at: When the queue was looked up, epoch milliseconds.
        may_ask: Whether a request may be made at a time within the lease (epoch milliseconds); None without a lease.
    """

    received: Received
    message: Message
    queue: Queue
    push: PushSettings
    terms: Terms | None
    looked_up_at: int
    may_ask: MayAsk | None = None

    @property
    def watched(self) -> bool:
        """Whether the subscriber has a circuit."""
        return self.push.circuit is not None and self.received.order.key.subscriber_id != "*"

    def is_for_now(self, delivery: Delivery) -> bool:
        """Whether the order is for the delivery's first attempt now, or none: another order will come."""
        return self.received.order.until is not None and not delivery.begun

    @property
    def waiting_order(self) -> WorkOrder:
        """The order as it waits outside a queue: it is for the delivery in its current state, and comes back in a new
        message, received for the first time.
        """
        return self.received.order.for_any_state

    @property
    def subscriber_key(self) -> SubscriberKey:
        """The subscriber that the message is owed to."""
        return SubscriberKey(
            project=self.queue.project,
            queue=self.queue.name,
            queue_uid=self.queue.uid,
            subscriber_id=self.received.order.key.subscriber_id,
        )


def longest_ms(subscriber: Subscriber) -> int:
    """How long an attempt may take, including its follow-up."""
    return subscriber.timeout_s * 1000 + DEADLINE_MARGIN_MS


def would_outlast(subscriber: Subscriber, delivery: Delivery, now: int) -> Following:
    """What comes next for an attempt that was not begun because it may take longer than its run lasts."""
    terms = Terms(limits=subscriber.limits or Limits(), longest_ms=longest_ms(subscriber))
    return replace(look_again(delivery, now), terms=terms)


def terms_of(subscriber: Subscriber, delivery: Delivery) -> Terms | None:
    """What a subscriber's limits ask for; a unicast delivery goes to whom it can."""
    if subscriber.limits is None or delivery.subscriber_id == "*":
        return None
    return Terms(limits=subscriber.limits, longest_ms=longest_ms(subscriber))


def look_again(delivery: Delivery, at: int) -> Following:
    """Look at a delivery again, from the queue that its next attempt needs."""
    return Following(Follow.LATER if delivery.update_url is None else Follow.POLL, at)


def after_the_other(job: Job, delivery: Delivery) -> Following:
    """Look at a delivery again when another order, which made its last attempt, must have made the next one.

    Two orders for one delivery (SQS delivers a message twice, a stream its records) would otherwise come at the same
    moment each time, and each make every try. The one behind is kept, as the other may be the one that gets lost.
    """
    subscriber = job.push.subscriber(delivery.target)
    over_ms = longest_ms(subscriber) if subscriber else DEADLINE_MARGIN_MS
    return look_again(delivery, (delivery.wakes_at or 0) + over_ms)


def when_settled(delivery: Delivery) -> Following:
    """What comes next for a delivery that has ended."""
    given_up = delivery.state in (DeliveryState.EXHAUSTED, DeliveryState.EXPIRED)
    return Following(Follow.ERROR if given_up else Follow.NOTHING)
