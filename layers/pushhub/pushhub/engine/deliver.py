"""Works on one delivery until it waits or is settled: make an attempt, write the outcome, say what comes next.

No crash between two steps loses anything. The attempt is made and its outcome written under a version condition; then
the caller arranges the next step, and only after that deletes the SQS message. A crash before the write repeats the
attempt (at least once, same id); after it, SQS redelivers the order and the stored state says what is left to do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from pushhub.base.conflicts import until_saved
from pushhub.base.credentials import masked_url
from pushhub.base.errors import Conflict, MessageNotFound, Unavailable
from pushhub.base.verdict import Verdict
from pushhub.engine.bodies import body_of
from pushhub.engine.circuits import Circuits, Gate
from pushhub.engine.model.answer_rules import Asked, Stops
from pushhub.engine.model.backoff import MAX_DELAY_MS, RetryPolicy
from pushhub.engine.model.circuit import SubscriberKey
from pushhub.engine.model.delivery import (
    Delivery,
    DeliveryState,
    NextStep,
    Step,
    after_asked_try,
    after_attempt,
    close,
    counts_as_it_is,
    merge_attempt,
    next_step,
    opening,
    schedule,
    with_span,
    without_asked_try,
    without_target,
)
from pushhub.engine.model.flow import Terms
from pushhub.engine.model.subscriber_event import SubscriberEvent, SubscriberEventKind
from pushhub.engine.target import Outcome, PushOrder, Targets
from pushhub.engine.traces import span_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.credentials import Credentials
    from pushhub.engine.model.keys import DeliveryKey
    from pushhub.engine.model.message import Message
    from pushhub.engine.model.queue import PushSettings, Queue, Subscriber
    from pushhub.engine.model.trace import Span
    from pushhub.engine.model.work import WorkOrder
    from pushhub.engine.ports import (
        AttemptProjects,
        AttemptQueues,
        BodyStore,
        Received,
        StoredMessages,
        SubscriberBacklog,
        SubscriberEvents,
        Successors,
        Watcher,
        WorkQueue,
    )

DEADLINE_MARGIN_MS = 5_000
"""Time kept free at the end of an invocation for writing outcomes and arranging what comes next."""

MANUAL_HEAD_START_MS = 60_000
"""How long a manual try is left to its own order, before another order of the delivery makes it."""

PROBE_MARGIN_MS = 60_000
"""Time beyond the subscriber's timeout that a probe may take before another one is made."""

LOOKED_UP_MS = 200
"""An attempt that begins later than this after its queue was looked up looks again, milliseconds."""

SUSPENDED_WAIT_MS = 60_000
"""How long a poll of a suspended project waits before it is looked at again."""

CLOCK_SKEW_MS = 60_000
"""Maximum clock skew between two functions."""


SPANS_OF_ATTEMPT = 2
"""An attempt and, within it, its request."""


class Follow(StrEnum):
    """What to do with the SQS message of a delivery after working on it."""

    NOTHING = "nothing"
    """Settled, or scheduled: delete the message."""
    LATER = "later"
    """Look at the delivery again at ``due_at``."""
    POLL = "poll"
    """Look at it again at ``due_at``, from the poll queue."""
    ERROR = "error"
    """Exhausted or expired: pass it on to the errors queue."""
    TURN = "turn"
    """Not attempted: its subscriber has limits, and the order is to take its turn under ``terms``."""
    FAULT = "fault"
    """Our own code failed: look at it again at ``due_at``, until the message ends up in the dead-letter queue."""


@dataclass(frozen=True, slots=True)
class Following:
    """What comes next for a delivery.

    Attributes:
        follow: What.
        due_at: When, epoch milliseconds; with ``LATER`` and ``POLL`` only.
        answered: Whether the subscriber answered the last request and did not refuse it; None when none was made.
        terms: The terms that the subscriber's limits ask for; None when it has none, or was not looked at.
    """

    follow: Follow
    due_at: int = 0
    answered: bool | None = None
    terms: Terms | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """The context of a delivery being worked on.

    Attributes:
        received: The order.
        message: Its message.
        queue: The queue.
        push: Its push settings.
        looked_up_at: When the queue was looked up, epoch milliseconds.
    """

    received: Received
    message: Message
    queue: Queue
    push: PushSettings
    terms: Terms | None
    looked_up_at: int

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


class Deliver:
    """Works on deliveries.

    Args:
        queues: Provides a delivery's queue.
        messages: Messages and deliveries.
        bodies: Claim-checked bodies.
        targets: How each kind of subscriber is pushed to.
        credentials: Opens what the subscribers' settings hide.
        watchers: Told of every delivery of a queue; chosen by queue name.
        subscriber_events: Told about the subscribers of a queue; chosen by queue name.
        circuits: Decide which subscribers may be attempted.
        backlog: Holds orders whose subscriber may not be attempted.
        successors: Orders that wait for an earlier delivery with the same ordering key.
        next_queue: Where such an order goes when its turn comes.
        projects: Say which projects are suspended.
        internal: Whether the hub itself handles the messages of a queue, by queue name: that goes on while a project is
            suspended, as nobody outside is asked.
        tells_first_successes: Whether the log tells of attempts that delivered at the first try; records and metrics
            always have them.
    """

    def __init__(
        self,
        *,
        queues: AttemptQueues,
        messages: StoredMessages,
        bodies: BodyStore,
        targets: Targets,
        credentials: Credentials,
        clock: Clock,
        telemetry: Telemetry,
        watchers: Callable[[str], Sequence[Watcher]],
        subscriber_events: Callable[[str], Sequence[SubscriberEvents]],
        circuits: Circuits,
        backlog: SubscriberBacklog,
        successors: Successors,
        next_queue: WorkQueue,
        projects: AttemptProjects,
        internal: Callable[[str], bool],
        tells_first_successes: bool = True,
    ) -> None:
        self._tells_first_successes = tells_first_successes
        self._next_queue = next_queue
        self._projects = projects
        self._internal = internal
        self._successors = successors
        self._circuits = circuits
        self._backlog = backlog
        self._watchers = watchers
        self._subscriber_events = subscriber_events
        self._queues = queues
        self._messages = messages
        self._bodies = bodies
        self._targets = targets
        self._credentials = credentials
        self._clock = clock
        self._telemetry = telemetry

    def run(
        self,
        received: Received,
        stored: Delivery | None,
        remaining_ms: Callable[[], int],
        terms: Terms | None = None,
    ) -> Following:
        """Work on one delivery; arguments and errors as in :meth:`_run`."""
        following = self._run(received, stored, remaining_ms, terms)
        if received.order.manual and stored is not None and stored.settled and following.follow is Follow.ERROR:
            # It had ended before a person asked for another try; the watchers were told then.
            return replace(following, follow=Follow.NOTHING)
        return following

    def _run(
        self,
        received: Received,
        stored: Delivery | None,
        remaining_ms: Callable[[], int],
        terms: Terms | None,
    ) -> Following:
        """Work on one delivery.

        Args:
            received: The order.
            stored: The delivery as stored; None before its first attempt.
            remaining_ms: Milliseconds the invocation has left; no attempt begins that could take longer.
            terms: The terms under which it is the order's turn; None when it has not waited for that.

        Raises:
            Unavailable: One of our own calls failed; try again soon, the stored state decides.
        """
        key = received.order.key
        message = received.order.message or self._messages.message(key.message)
        if message is None:
            return self._without_message(stored)
        delivery = stored or opening(message, key.subscriber_id)
        looked_up_at = self._clock.now()
        queue = self._queue(received, message)
        if queue is None or queue.push is None or queue.uid != message.queue_uid:
            return self._close(message, delivery, DeliveryState.CANCELLED, "queue_deleted")
        if message.accepted_at <= queue.cleared_at:
            return self._close(message, delivery, DeliveryState.CANCELLED, "queue_cleared")
        job = _Job(
            received=received,
            message=message,
            queue=queue,
            push=queue.push,
            terms=terms,
            looked_up_at=looked_up_at,
        )
        return self._carry_on(job, delivery, remaining_ms)

    def _queue(self, received: Received, message: Message) -> Queue | None:
        """The queue of a message, with every change from before the message or half a second ago; for a try that a
        person wants, as it is now.

        So it is as well if the message's subscriber is missing: what was read before is used to go on, not to end
        something.
        """

        def fits(queue: Queue | None) -> bool:
            if queue is None or queue.push is None or queue.uid != message.queue_uid:
                return False
            owed = message.subscriber_ids if message.unicast else (received.order.key.subscriber_id,)
            return all(_may_be_asked(queue.push.subscriber(each)) for each in owed)

        if not received.order.manual:
            copied = self._queues.queue(message.project, message.queue, since=message.accepted_at)
            if fits(copied):
                return copied
        return self._queues.queue(message.project, message.queue)

    def _has_changed(self, job: _Job, subscriber: Subscriber) -> bool:
        """Whether an attempt would go by something else if the queue was looked up now."""
        queue = self._queue(job.received, job.message)
        if (
            queue is None
            or queue.push is None
            or queue.uid != job.queue.uid
            or queue.cleared_at != job.queue.cleared_at
        ):
            return True
        return queue.push != job.push or queue.push.subscriber(subscriber.subscriber_id) != subscriber

    def _carry_on(self, job: _Job, delivery: Delivery, remaining_ms: Callable[[], int]) -> Following:
        """Attempt as long as something is due: a unicast round asks one subscriber after another without a pause."""
        before = delivery
        following, delivery, terms = self._until_it_waits(job, delivery, remaining_ms)
        if delivery.attempts == before.attempts or delivery.last is None:
            return following
        answered = delivery.last.verdict is not Verdict.FAILED
        return replace(following, answered=answered, terms=terms)

    def _until_it_waits(
        self, job: _Job, delivery: Delivery, remaining_ms: Callable[[], int]
    ) -> tuple[Following, Delivery, Terms | None]:
        """What comes next, the delivery as it is then, and the terms of the subscriber asked last."""
        has_automatic_tries = delivery.due_at is not None
        terms: Terms | None = None
        while True:
            subscriber = job.push.subscriber(delivery.target)
            policy = job.push.policy_for(subscriber, delivery.subscriber_id)
            step = next_step(delivery, policy, self._clock.now())
            instead = self._instead_of_attempt(job, delivery, step)
            if instead:
                return instead, delivery, terms
            if subscriber is None or subscriber.disabled:
                delivery, changed = self._without_subscriber(job, delivery, policy, step.step)
                if changed:
                    return changed, delivery, terms
                continue
            if remaining_ms() < subscriber.timeout_s * 1000 + DEADLINE_MARGIN_MS:
                return _look_again(delivery, self._clock.now()), delivery, terms
            if terms is not None:
                # A turn is for one attempt.
                return _look_again(delivery, self._clock.now()), delivery, terms
            terms = _terms(subscriber, delivery)
            after = self._attempt_if_let(job, subscriber, delivery, step.step)
            if isinstance(after, Following):
                return after, delivery, terms
            delivery = after
            self._tell_watchers(job.message, delivery)
            over = self._over(job, delivery, has_automatic_tries=has_automatic_tries)
            if over:
                return over, delivery, terms

    def _over(self, job: _Job, delivery: Delivery, *, has_automatic_tries: bool) -> Following | None:
        """What comes next if nothing is to be done after an attempt; None to go on."""
        if job.received.order.manual and has_automatic_tries and delivery.settled:
            # The automatic tries ended with the manual one, and no order says so: the scheduled one is void now.
            return _when_settled(delivery)
        if job.received.order.manual and delivery.asked_at is not None:
            # Somebody asked again meanwhile, and that request has an order of its own.
            return Following(Follow.NOTHING)
        if delivery.scheduled and delivery.asked_at is None:
            return Following(Follow.NOTHING)
        return None

    def _instead_of_attempt(self, job: _Job, delivery: Delivery, step: NextStep) -> Following | None:
        """What comes next when this order has no attempt to make now."""
        manual = job.received.order.manual
        if manual and step.step not in (Step.ASKED_TRY, Step.CLOSE):
            return Following(Follow.NOTHING)
        if step.step not in (Step.ATTEMPT, Step.ASKED_TRY):
            return self._without_attempt(job.message, delivery, step)
        asked_by = (delivery.asked_at or 0) + MANUAL_HEAD_START_MS
        if step.step is Step.ASKED_TRY and not manual and self._clock.now() < asked_by:
            return _look_again(delivery, asked_by)  # an order of its own is on the way; both would make the try
        return None

    def _attempt_if_let(
        self, job: _Job, subscriber: Subscriber, delivery: Delivery, step: Step
    ) -> Delivery | Following:
        """Make an attempt if its project is not suspended, the subscriber is not paused, and its circuit and limits
        allow it; otherwise, say what comes next.

        A manual try ignores pause and circuit: the person who asked knows about them.
        """
        key = job.subscriber_key
        held = self._held(job, subscriber, delivery, step)
        if held:
            return held
        terms = _terms(subscriber, delivery)
        if terms is not None and terms != job.terms:
            return Following(Follow.TURN, terms=terms)
        if step is Step.ATTEMPT and self._must_wait_behind(job, delivery):
            return Following(Follow.NOTHING)
        gate = Gate.GO
        if job.watched and step is Step.ATTEMPT:
            gate = self._circuits.gate(key, probe_ms=subscriber.timeout_s * 1000 + PROBE_MARGIN_MS)
        if gate is Gate.WAIT:
            return self._held_back(job, delivery)
        return self._attempt(job, subscriber, delivery, probe=gate is Gate.PROBE)

    def _held(self, job: _Job, subscriber: Subscriber, delivery: Delivery, step: Step) -> Following | None:
        """Hold a delivery back if its project is suspended or its subscriber paused; None if neither is so."""
        message = job.message
        suspended = not self._internal(message.queue) and self._projects.is_suspended(
            message.project, since=message.accepted_at
        )
        if suspended and delivery.update_url is not None:
            # Its service has the message, and will be asked for the result later.
            return _look_again(delivery, self._clock.now() + SUSPENDED_WAIT_MS)
        paused = subscriber.paused and step is Step.ATTEMPT and delivery.subscriber_id != "*"
        if not (suspended or paused):
            return None
        self._circuits.hold(job.subscriber_key)
        return self._held_back(job, delivery)

    def _held_back(self, job: _Job, delivery: Delivery) -> Following:
        """Put an order into its subscriber's backlog, unless it is for an attempt now and another one will come."""
        if not job.is_for_now(delivery):
            self._backlog.add(job.subscriber_key, job.waiting_order, self._clock.now())
            self._telemetry.count("DeliveriesWaiting")
        return Following(Follow.NOTHING)

    def _must_wait_behind(self, job: _Job, delivery: Delivery) -> bool:
        """Whether an earlier delivery with the same ordering key is still in progress.

        If so, the order waits behind it.

        A delivery that ends looks for its successor, and an order that waits checks for the end, so whichever comes
        second finds the other. Where both do, one of them is the first to take the order, and only that one goes on.
        """
        ordering = job.message.ordering
        before = ordering.previous.get(delivery.subscriber_id) if ordering else None
        # Manual tries ignore the order, so one is no proof that the previous delivery has ended.
        if before is None or delivery.tries:
            return False
        key = delivery.key._replace(message_id=before)
        if self._has_ended(key):
            return False
        self._successors.wait_behind(key, job.waiting_order)
        if not self._has_ended(key) or not self._successors.take(key, job.waiting_order, by_itself=True):
            self._telemetry.count("DeliveriesInLine")
            return True
        self._successors.let_go(key)
        return False

    def _has_ended(self, key: DeliveryKey) -> bool:
        """Whether a delivery has ended, or its message is gone."""
        stored = self._messages.delivery(key)
        return stored.settled if stored else self._messages.message(key.message) is None

    def _let_next_go(self, ended: DeliveryKey) -> None:
        """Queue the order that waits behind a delivery that has ended.

        A crash before the wait is forgotten queues it twice, which is harmless.
        """
        following = self._successors.behind(ended)
        if following is not None and self._successors.take(ended, following, by_itself=False):
            self._next_queue.send([(following, 0)])
            self._successors.let_go(ended)

    def _without_attempt(self, message: Message, delivery: Delivery, step: NextStep) -> Following:
        if step.step is Step.CLOSE and step.closes_as is not None:
            return self._close(message, delivery, step.closes_as)
        self._tell_watchers(message, delivery)
        if step.step is Step.NOTHING:
            return _when_settled(delivery)
        # The schedule brings a scheduled delivery back by itself. Close to its time, this may be the order that the
        # schedule sent (its clock being slightly ahead of ours). No other order would follow, so this one is kept.
        if delivery.scheduled and step.wait_ms > CLOCK_SKEW_MS:
            return Following(Follow.NOTHING)
        return _look_again(delivery, self._clock.now() + step.wait_ms)

    def _tell_watchers(self, message: Message, delivery: Delivery) -> None:
        if delivery.order_key is not None and delivery.settled:
            self._let_next_go(delivery.key)
        for each in self._watchers(message.queue):
            each.seen(message, delivery)

    def _without_message(self, delivery: Delivery | None) -> Following:
        """The message itself is no longer stored, because it expired."""
        if delivery is None or delivery.settled:
            if delivery is not None and delivery.order_key is not None:
                self._let_next_go(delivery.key)
            return Following(Follow.NOTHING)
        return self._close(None, delivery, DeliveryState.EXPIRED, "message_gone")

    def _close(self, message: Message | None, delivery: Delivery, state: DeliveryState, reason: str = "") -> Following:
        if delivery.settled:
            if message is not None:
                self._tell_watchers(message, delivery)
            return _when_settled(delivery)
        return self._store_closed(message, close(delivery, state, self._clock.now(), reason))

    def _store_closed(self, message: Message | None, closed: Delivery) -> Following:
        try:
            self._messages.save(closed)
        except Conflict:
            return Following(Follow.LATER, self._clock.now())
        self._telemetry.count(_metric_of(closed.state))
        self._telemetry.event(
            "delivery_closed",
            project=closed.project,
            queue=closed.queue,
            message_id=closed.message_id,
            delivery_id=closed.delivery_id,
            state=closed.state.value,
            reason=closed.reason or None,
            tries=closed.tries,
        )
        if message is not None:
            self._tell_watchers(message, closed)
        elif closed.order_key is not None and closed.settled:
            self._let_next_go(closed.key)
        return _when_settled(closed)

    def _without_subscriber(
        self, job: _Job, delivery: Delivery, policy: RetryPolicy, step: Step
    ) -> tuple[Delivery, Following | None]:
        """The delivery when its next subscriber was removed or disabled, and what comes next; None when another
        subscriber is next.
        """
        if job.watched:
            self._circuits.start_over(job.subscriber_key)
        if step is Step.ASKED_TRY:
            reason = _unasked_reason(job.push.subscriber(delivery.target))
            tried = self._saved_or_fresh(job, without_asked_try(delivery, self._clock.now(), reason))
            self._tell_watchers(job.message, tried)
            return tried, None
        here = {each.subscriber_id for each in job.push.subscribers if not each.disabled}
        reason = _unasked_reason(job.push.subscriber(delivery.target))
        moved = without_target(
            delivery, here, policy, now=self._clock.now(), jitter=self._clock.jitter(), reason=reason
        )
        if moved.version == delivery.version:
            return moved, None
        if moved.due_at is None:
            return moved, self._store_closed(job.message, moved)
        moved = self._scheduled_if_long(moved)
        try:
            self._messages.save(moved)
        except Conflict:
            return moved, Following(Follow.LATER, self._clock.now())
        self._tell_watchers(job.message, moved)
        if moved.scheduled:
            return moved, Following(Follow.NOTHING)
        return moved, _look_again(moved, moved.due_at or self._clock.now())

    def _attempt(
        self, job: _Job, subscriber: Subscriber, delivery: Delivery, *, probe: bool = False
    ) -> Delivery | Following:
        """Make one attempt and write its outcome.

        Returns the delivery as stored afterwards; what comes next if the settings have changed since they were read.
        """
        policy = job.push.policy_for(subscriber, delivery.subscriber_id)
        try:
            body = body_of(job.message, self._bodies)
        except MessageNotFound:
            now = self._clock.now()
            gone = (
                without_asked_try(delivery, now, "")
                if delivery.settled
                else close(delivery, DeliveryState.EXPIRED, now)
            )
            return self._saved_or_fresh(job, gone)
        now = self._clock.now()
        if job.is_for_now(delivery) and now >= (job.received.order.until or 0):
            return Following(Follow.NOTHING)
        if now - job.looked_up_at >= LOOKED_UP_MS and self._has_changed(job, subscriber):
            return _look_again(delivery, now)
        target = self._targets.of(subscriber.url)
        order = PushOrder(
            queue=job.queue,
            push=job.push,
            subscriber=subscriber,
            message=job.message,
            body=body,
            delivery=delivery,
        )
        span = self._span(order)
        outcome = target.deliver(
            replace(order, subscriber=self._credentials.opened(job.queue.project, job.push, subscriber))
        )
        jitter = self._clock.jitter()
        asked = outcome.asked
        if asked is None:
            rules = subscriber.rules or job.push.rules
            before, failed = delivery.last, outcome.verdict is Verdict.FAILED
            asked = rules.asked(
                outcome.answer, failed=failed, jitter=jitter, before=before.status_code if before else None
            )
        if asked.stops is Stops.SUBSCRIBER:
            self._disable(job, subscriber, asked, outcome.answer.finished_at)

        def attempted(before: Delivery) -> Delivery:
            if order.manual:
                return after_asked_try(
                    before,
                    outcome.answer,
                    outcome.verdict,
                    asked_at=delivery.asked_at,
                    asked=asked,
                    subscriber=subscriber.name,
                    url=masked_url(subscriber.url),
                    dialect=target.dialect,
                )
            after = after_attempt(
                before,
                outcome.answer,
                outcome.verdict,
                policy=policy,
                reserve_ms=outcome.reserve_ms,
                jitter=jitter,
                subscriber=subscriber.name,
                url=masked_url(subscriber.url),
                dialect=target.dialect,
                update_url=outcome.update_url,
                asked=asked,
            )
            return self._scheduled_if_long(after)

        after = with_span(attempted(delivery), span)
        try:
            self._messages.save(after)
        except Conflict:
            after = self._merge_attempt(job, delivery, outcome, attempted, span)
        if job.watched and job.push.circuit is not None and outcome.reached:
            failure = outcome.verdict is Verdict.FAILED and asked.stops is not Stops.DELIVERY
            self._circuits.ended(job.subscriber_key, job.push.circuit, failure=failure, probe=probe)
        self._tell(job, subscriber, delivery, after, outcome)
        return after

    def _span(self, order: PushOrder) -> Span | None:
        """The span of an attempt that is about to be made, if its project exports spans."""
        span = span_of(order)
        if span is None:
            return None
        try:
            return span if self._projects.exports_spans(order.message.project) else None
        except Unavailable:
            # An attempt matters more than what is told of it.
            self._telemetry.count("SpansDropped", SPANS_OF_ATTEMPT)
            return None

    def _disable(self, job: _Job, subscriber: Subscriber, asked: Asked, at: int) -> None:
        """Have a subscriber disabled.

        This happens before the attempt is written: a crash in between leads to another attempt, or to none.
        """
        event = SubscriberEvent(
            kind=SubscriberEventKind.DISABLE,
            project=job.queue.project,
            queue=job.queue.name,
            queue_uid=job.queue.uid,
            subscriber_id=subscriber.subscriber_id,
            at=at,
            reason=asked.reason,
        )
        for each in self._subscriber_events(event.queue):
            each.happened(event)
        self._telemetry.count("SubscribersDisabled")
        self._telemetry.event("subscriber_disabled", **job.received.order.identity, reason=asked.reason)

    def _saved_or_fresh(self, job: _Job, after: Delivery) -> Delivery:
        try:
            self._messages.save(after)
        except Conflict:
            return self._messages.delivery(job.received.order.key) or after
        return after

    def _merge_attempt(
        self,
        job: _Job,
        begun: Delivery,
        outcome: Outcome,
        attempted: Callable[[Delivery], Delivery],
        span: Span | None,
    ) -> Delivery:
        """The delivery changed during the attempt: record the attempt if it still counts."""

        def once() -> Delivery:
            current = self._messages.delivery(job.received.order.key)
            if current is None:
                # Removed by its TTL; there is nothing left to record.
                return close(begun, DeliveryState.EXPIRED, self._clock.now())
            if counts_as_it_is(current, begun):
                folded: Delivery | None = attempted(current)
            else:
                folded = merge_attempt(current, begun, outcome.answer, outcome.verdict)
            if folded is None:
                return current
            folded = with_span(folded, span)
            self._messages.save(folded)
            return folded

        return until_saved(once, doing="recording an attempt under contention")

    def _scheduled_if_long(self, delivery: Delivery) -> Delivery:
        """Decide where a wait is spent. Called before the write, because saving also enters the delivery into the
        schedule.
        """
        if delivery.wakes_at is None or delivery.wakes_at - self._clock.now() <= MAX_DELAY_MS:
            return delivery
        self._telemetry.count("DeliveriesScheduled")
        return schedule(delivery)

    def _tell(self, job: _Job, subscriber: Subscriber, before: Delivery, after: Delivery, outcome: Outcome) -> None:
        """Emit the one wide event of this attempt; its fields are the columns of the delivery record."""
        answer = outcome.answer
        if outcome.verdict is Verdict.FAILED:
            self._telemetry.count("AttemptsFailed")
        if after.state is not before.state and (after.settled or after.state is DeliveryState.HELD):
            self._telemetry.count(_metric_of(after.state))
        last = after.last
        if not self._tells_first_successes and after.state is DeliveryState.DELIVERED and after.attempts == 1:
            return
        self._telemetry.event(
            "attempt",
            **job.received.order.identity,
            subscriber=subscriber.name,
            attempt=last.number if last else None,
            tries=after.tries,
            tries_max=job.push.policy_for(subscriber, before.subscriber_id).max_tries,
            verdict=None if outcome.verdict.value == after.state.value else outcome.verdict.value,
            state=after.state.value,
            reason=after.reason or None,
            manual=before.asked_at is not None,
            scheduled=after.scheduled,
            status_code=answer.status_code,
            error_class=answer.error_class,
            duration_ms=answer.duration_ms,
            bytes_out=answer.bytes_out,
            bytes_in=answer.bytes_in,
            wait_before_ms=last.wait_before_ms if last else None,
            wait_after_ms=last.wait_after_ms if last else None,
            trace_id=job.message.trace.trace_id if job.message.trace else None,
            receive_count=job.received.receive_count if job.received.receive_count > 1 else None,
        )


def _may_be_asked(subscriber: Subscriber | None) -> bool:
    return subscriber is not None and not subscriber.disabled


def _terms(subscriber: Subscriber, delivery: Delivery) -> Terms | None:
    """What a subscriber's limits ask for; a unicast delivery goes to whom it can."""
    if subscriber.limits is None or delivery.subscriber_id == "*":
        return None
    return Terms(limits=subscriber.limits, longest_ms=subscriber.timeout_s * 1000 + DEADLINE_MARGIN_MS)


def _unasked_reason(subscriber: Subscriber | None) -> str:
    return "subscriber_removed" if subscriber is None else "subscriber_disabled"


def _metric_of(state: DeliveryState) -> str:
    """The metric counted when a delivery enters a state."""
    return f"Deliveries{state.value.capitalize()}"


def _look_again(delivery: Delivery, at: int) -> Following:
    return Following(Follow.LATER if delivery.update_url is None else Follow.POLL, at)


def _when_settled(delivery: Delivery) -> Following:
    given_up = delivery.state in (DeliveryState.EXHAUSTED, DeliveryState.EXPIRED)
    return Following(Follow.ERROR if given_up else Follow.NOTHING)
