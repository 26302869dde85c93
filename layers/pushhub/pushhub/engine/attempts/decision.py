"""What an order does with its delivery now: one pure step, asked for again after each thing that was done.

:class:`pushhub.engine.attempts.deliver.Deliver` does what is decided here, and comes back with the delivery as it is
then. Nothing here reads a clock or a store.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.engine.attempts.job import (
    EARLY_MS,
    Job,
    after_the_other,
    longest_ms,
    look_again,
    terms_of,
    when_settled,
    would_outlast,
)
from pushhub.engine.model.delivery import Delivery, DeliveryState, NextStep, Step, next_step
from pushhub.engine.model.following import Follow, Following

if TYPE_CHECKING:
    from pushhub.engine.model.backoff import RetryPolicy
    from pushhub.engine.model.flow import Terms
    from pushhub.engine.model.message import Message
    from pushhub.engine.model.queue import Queue, Subscriber
    from pushhub.engine.model.received import Received

MANUAL_HEAD_START_MS = 60_000
"""How long a manual try is left to its own order, before another order of the delivery makes it."""

CLOCK_SKEW_MS = 60_000
"""Maximum clock skew between two functions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """Nothing is done with it.

    Attributes:
        following: What comes next.
        tell: Whether those who watch its queue are told how it is.
    """

    following: Following
    tell: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """It ends without an attempt."""

    state: DeliveryState
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Its next subscriber was removed or disabled, and is not asked.

    Attributes:
        reason: Why, as records say it.
        asked_for: Whether a person had asked for the try.
    """

    reason: str
    policy: RetryPolicy
    asked_for: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """An attempt is due.

    Attributes:
        step: ``ATTEMPT``, or ``ASKED_TRY``.
        terms: What the subscriber's limits ask for.
    """

    subscriber: Subscriber
    policy: RetryPolicy
    step: Step
    terms: Terms | None


Decision = Leave | End | Skip | Ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an order has come with its delivery.

    Attributes:
        had_automatic_tries: Whether automatic tries were to come when it began.
        changed: Whether it has done anything yet.
        attempted: Whether the last thing it did was an attempt.
        leased: Whether it has made the one attempt for which it has a lease.
    """

    had_automatic_tries: bool
    changed: bool = False
    attempted: bool = False
    leased: bool = False


def begin(received: Received, message: Message, queue: Queue | None, *, looked_up_at: int) -> Job | End:
    """The work on a message's delivery by its queue as it is now; or how the delivery ends, because the queue was
    deleted, made again or cleared.

    Args:
        looked_up_at: When the queue was looked up, epoch milliseconds.
    """
    if queue is None or queue.push is None or queue.uid != message.queue_uid:
        return End(state=DeliveryState.CANCELLED, reason="queue_deleted")
    if message.accepted_at <= queue.cleared_at:
        return End(state=DeliveryState.CANCELLED, reason="queue_cleared")
    return Job(received=received, message=message, queue=queue, push=queue.push, terms=None, looked_up_at=looked_up_at)


def decide(job: Job, delivery: Delivery, progress: Progress, *, now: int, remaining_ms: int) -> Decision:
    """What to do now.

    Args:
        job: The order, and the settings it goes by.
        delivery: As stored; the order's own changes included.
        now: Epoch milliseconds.
        remaining_ms: Milliseconds that an attempt may take here; none begins that could take longer.
    """
    if progress.attempted:
        over = _over(job, delivery, progress)
        if over is not None:
            return Leave(following=over)
    subscriber = job.push.subscriber(delivery.target)
    policy = job.push.policy_for(subscriber, delivery.subscriber_id)
    step = next_step(delivery, policy, now)
    instead = _instead_of_attempt(job, delivery, step, progress, now)
    if instead is not None:
        return instead
    if subscriber is None or subscriber.disabled:
        reason = "subscriber_removed" if subscriber is None else "subscriber_disabled"
        return Skip(reason=reason, policy=policy, asked_for=step.step is Step.ASKED_TRY)
    if remaining_ms < longest_ms(subscriber):
        return Leave(following=would_outlast(subscriber, delivery, now))
    if progress.leased:
        # A lease is for one attempt of it.
        return Leave(following=look_again(delivery, now))
    return Ask(subscriber=subscriber, policy=policy, step=step.step, terms=terms_of(subscriber, delivery))


def _instead_of_attempt(
    job: Job, delivery: Delivery, step: NextStep, progress: Progress, now: int
) -> Leave | End | None:
    """What to do if this order has no attempt to make now."""
    manual = job.received.order.manual
    if step.step is Step.CLOSE and step.closes_as is not None:
        return End(state=step.closes_as)
    if manual and step.step is not Step.ASKED_TRY:
        return Leave(following=Following(Follow.NOTHING))
    if step.step is Step.NOTHING:
        return Leave(following=when_settled(delivery), tell=True)
    if step.step is Step.WAIT:
        return Leave(following=_wait(job, delivery, step.wait_ms, progress, now), tell=True)
    asked_by = (delivery.asked_at or 0) + MANUAL_HEAD_START_MS
    if step.step is Step.ASKED_TRY and not manual and now < asked_by:
        # An order of its own is on the way; both would make the try.
        return Leave(following=look_again(delivery, asked_by))
    return None


def _over(job: Job, delivery: Delivery, progress: Progress) -> Following | None:
    """What comes next if nothing is to be done after an attempt; None to go on."""
    if job.received.order.manual and progress.had_automatic_tries and delivery.settled:
        # The automatic tries ended with the manual one, and no order says so: the scheduled one is void now.
        return when_settled(delivery)
    if job.received.order.manual and delivery.asked_at is not None:
        # Somebody asked again meanwhile, and that request has an order of its own.
        return Following(Follow.NOTHING)
    if delivery.scheduled and delivery.asked_at is None:
        return Following(Follow.NOTHING)
    return None


def _wait(job: Job, delivery: Delivery, wait_ms: int, progress: Progress, now: int) -> Following:
    """What comes next for a delivery that is not due."""
    if not progress.changed and delivery.attempts and wait_ms > EARLY_MS and not delivery.scheduled:
        # Another order has made the last attempt, and is on its way as well.
        return after_the_other(job, delivery)
    # The schedule brings a scheduled delivery back by itself. Close to its time, this may be the order that the
    # schedule sent (its clock being slightly ahead of ours). No other order would follow, so this one is kept.
    if delivery.scheduled and wait_ms > CLOCK_SKEW_MS:
        return Following(Follow.NOTHING)
    return look_again(delivery, now + wait_ms)
