"""Works on one delivery until it waits or is settled: make an attempt, write the outcome, say what comes next.

No crash between two steps loses anything. The attempt is made and its outcome written under a version condition; then
the caller arranges the next step, and only after that deletes the SQS message. A crash before the write repeats the
attempt (at least once, same id); after it, SQS redelivers the order and the stored state says what is left to do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.conflicts import until_saved
from pushhub.base.credentials import masked_url
from pushhub.base.errors import Conflict, MessageNotFound, Unavailable
from pushhub.base.verdict import Verdict
from pushhub.engine.attempts.circuits import Gate
from pushhub.engine.attempts.job import (
    EARLY_MS,
    Job,
    MayAsk,
    after_the_other,
    longest_ms,
    look_again,
    terms_of,
    when_settled,
    would_outlast,
)
from pushhub.engine.attempts.traces import span_of
from pushhub.engine.bodies import body_of
from pushhub.engine.component import Component
from pushhub.engine.model.answer_rules import Stops
from pushhub.engine.model.backoff import MAX_DELAY_MS, RetryPolicy
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
    with_proof,
    with_span,
    without_asked_try,
    without_target,
)
from pushhub.engine.model.flow import SHORT_ATTEMPT_MS
from pushhub.engine.model.following import Follow, Following
from pushhub.engine.target import Outcome, PushOrder, Targets

if TYPE_CHECKING:
    from collections.abc import Callable

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.attempts.admission import Admission
    from pushhub.engine.attempts.delivery_news import DeliveryNews
    from pushhub.engine.attempts.ports import AttemptProjects
    from pushhub.engine.model.flow import Terms
    from pushhub.engine.model.message import Message
    from pushhub.engine.model.queue import Queue, Subscriber
    from pushhub.engine.model.received import Received
    from pushhub.engine.model.trace import Span
    from pushhub.engine.ports import AttemptQueues, BodyStore, StoredMessages
    from pushhub.engine.security.credentials import Credentials

MANUAL_HEAD_START_MS = 60_000
"""How long a manual try is left to its own order, before another order of the delivery makes it."""

LOOKED_UP_MS = 200
"""An attempt that begins later than this after its queue was looked up looks again, milliseconds."""

CLOCK_SKEW_MS = 60_000
"""Maximum clock skew between two functions."""

SPANS_OF_ATTEMPT = 2
"""An attempt and, within it, its request."""


class Requests(Component):
    """Makes the requests of attempts."""

    targets: Targets  # How each kind of subscriber is pushed to.
    credentials: Credentials  # Opens what the subscribers' settings hide.
    bodies: BodyStore

    def body(self, message: Message) -> bytes:
        """The body to send.

        Raises:
            MessageNotFound: It is gone.
        """
        return body_of(message, self.bodies)

    def make(self, order: PushOrder) -> tuple[Outcome, str]:
        """Push to a subscriber: the outcome, and the dialect in which it was asked."""
        target = self.targets.of(order.subscriber.url)
        opened = self.credentials.opened(order.queue.project, order.push, order.subscriber)
        return target.deliver(replace(order, subscriber=opened)), target.dialect


class Deliver(Component):
    """Works on deliveries."""

    queues: AttemptQueues  # Provides a delivery's queue.
    messages: StoredMessages
    requests: Requests
    admission: Admission  # Decides whether they may be asked now.
    news: DeliveryNews  # Tells what became of deliveries.
    projects: AttemptProjects  # Say which projects export spans.
    clock: Clock
    telemetry: Telemetry

    def run(
        self,
        received: Received,
        stored: Delivery | None,
        remaining_ms: Callable[[], int],
        terms: Terms | None = None,
        may_ask: MayAsk | None = None,
    ) -> Following:
        """Work on one delivery; arguments and errors as in :meth:`_run`."""
        following = self._run(received, stored, remaining_ms, terms, may_ask)
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
        may_ask: MayAsk | None,
    ) -> Following:
        """Work on one delivery.

        Args:
            received: The order.
            stored: The delivery as stored; None before its first attempt.
            remaining_ms: Milliseconds that an attempt may take here; none begins that could take longer.
            terms: The terms of the lease that the order has; None when it has not waited for one.
            may_ask: Whether the lease lets a request be made at a time, epoch milliseconds.

        Raises:
            Unavailable: One of our own calls failed; try again soon, the stored state decides.
        """
        key = received.order.key
        message = received.order.message or self.messages.message(key.message)
        if message is None:
            return self._without_message(stored)
        delivery = stored or opening(message, key.subscriber_id)
        looked_up_at = self.clock.now()
        queue = self._queue(received, message)
        if queue is None or queue.push is None or queue.uid != message.queue_uid:
            return self._close(message, delivery, DeliveryState.CANCELLED, "queue_deleted")
        if message.accepted_at <= queue.cleared_at:
            return self._close(message, delivery, DeliveryState.CANCELLED, "queue_cleared")
        job = Job(
            received=received,
            message=message,
            queue=queue,
            push=queue.push,
            terms=terms,
            looked_up_at=looked_up_at,
            may_ask=may_ask,
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
            copied = self.queues.queue(message.project, message.queue, since=message.accepted_at)
            if fits(copied):
                return copied
        return self.queues.queue(message.project, message.queue)

    def _has_changed(self, job: Job, subscriber: Subscriber) -> bool:
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

    def _carry_on(self, job: Job, delivery: Delivery, remaining_ms: Callable[[], int]) -> Following:
        """Attempt as long as something is due: a unicast round asks one subscriber after another without a pause."""
        before = delivery
        following, delivery, terms = self._until_it_waits(job, delivery, remaining_ms)
        subscriber = job.push.subscriber(delivery.target)
        if subscriber is not None and longest_ms(subscriber) > SHORT_ATTEMPT_MS:
            following = replace(following, long=True)
        if delivery.attempts == before.attempts or delivery.last is None:
            return following
        answered = delivery.last.verdict is not Verdict.FAILED
        return replace(following, answered=answered, terms=terms)

    def _until_it_waits(
        self, job: Job, delivery: Delivery, remaining_ms: Callable[[], int]
    ) -> tuple[Following, Delivery, Terms | None]:
        """What comes next, the delivery as it is then, and the terms of the subscriber asked last."""
        has_automatic_tries = delivery.due_at is not None
        terms: Terms | None = None
        begun = delivery
        while True:
            subscriber = job.push.subscriber(delivery.target)
            policy = job.push.policy_for(subscriber, delivery.subscriber_id)
            step = next_step(delivery, policy, self.clock.now())
            instead = self._instead_of_attempt(job, delivery, step, first_look=delivery is begun)
            if instead:
                return instead, delivery, terms
            if subscriber is None or subscriber.disabled:
                delivery, changed = self._without_subscriber(job, delivery, policy, step.step)
                if changed:
                    return changed, delivery, terms
                continue
            if remaining_ms() < longest_ms(subscriber):
                return would_outlast(subscriber, delivery, self.clock.now()), delivery, terms
            if terms is not None:
                # A lease is for one attempt of it.
                return look_again(delivery, self.clock.now()), delivery, terms
            terms = terms_of(subscriber, delivery)
            after = self._attempt_if_let(job, subscriber, delivery, step.step)
            if isinstance(after, Following):
                return after, delivery, terms
            delivery = after
            self.news.seen(job.message, delivery)
            over = self._over(job, delivery, has_automatic_tries=has_automatic_tries)
            if over:
                return over, delivery, terms

    def _over(self, job: Job, delivery: Delivery, *, has_automatic_tries: bool) -> Following | None:
        """What comes next if nothing is to be done after an attempt; None to go on."""
        if job.received.order.manual and has_automatic_tries and delivery.settled:
            # The automatic tries ended with the manual one, and no order says so: the scheduled one is void now.
            return when_settled(delivery)
        if job.received.order.manual and delivery.asked_at is not None:
            # Somebody asked again meanwhile, and that request has an order of its own.
            return Following(Follow.NOTHING)
        if delivery.scheduled and delivery.asked_at is None:
            return Following(Follow.NOTHING)
        return None

    def _instead_of_attempt(
        self, job: Job, delivery: Delivery, step: NextStep, *, first_look: bool
    ) -> Following | None:
        """What comes next when this order has no attempt to make now; it has made none yet at its ``first_look``."""
        manual = job.received.order.manual
        if manual and step.step not in (Step.ASKED_TRY, Step.CLOSE):
            return Following(Follow.NOTHING)
        if step.step not in (Step.ATTEMPT, Step.ASKED_TRY):
            following = self._without_attempt(job.message, delivery, step)
            waits = step.step is Step.WAIT and step.wait_ms > EARLY_MS and not delivery.scheduled
            # Another order has made the last attempt, and is on its way as well.
            return after_the_other(job, delivery) if first_look and delivery.attempts and waits else following
        asked_by = (delivery.asked_at or 0) + MANUAL_HEAD_START_MS
        if step.step is Step.ASKED_TRY and not manual and self.clock.now() < asked_by:
            return look_again(delivery, asked_by)  # an order of its own is on the way; both would make the try
        return None

    def _attempt_if_let(self, job: Job, subscriber: Subscriber, delivery: Delivery, step: Step) -> Delivery | Following:
        """Make an attempt if it may be made; otherwise, say what comes next."""
        gate = self.admission.ask(job, subscriber, delivery, step)
        if isinstance(gate, Following):
            return gate
        return self._attempt(job, subscriber, delivery, probe=gate is Gate.PROBE)

    def _without_attempt(self, message: Message, delivery: Delivery, step: NextStep) -> Following:
        if step.step is Step.CLOSE and step.closes_as is not None:
            return self._close(message, delivery, step.closes_as)
        self.news.seen(message, delivery)
        if step.step is Step.NOTHING:
            return when_settled(delivery)
        # The schedule brings a scheduled delivery back by itself. Close to its time, this may be the order that the
        # schedule sent (its clock being slightly ahead of ours). No other order would follow, so this one is kept.
        if delivery.scheduled and step.wait_ms > CLOCK_SKEW_MS:
            return Following(Follow.NOTHING)
        return look_again(delivery, self.clock.now() + step.wait_ms)

    def _without_message(self, delivery: Delivery | None) -> Following:
        """The message itself is no longer stored, because it expired."""
        if delivery is None or delivery.settled:
            if delivery is not None:
                self.news.gone(delivery)
            return Following(Follow.NOTHING)
        return self._close(None, delivery, DeliveryState.EXPIRED, "message_gone")

    def _close(self, message: Message | None, delivery: Delivery, state: DeliveryState, reason: str = "") -> Following:
        if delivery.settled:
            if message is not None:
                self.news.seen(message, delivery)
            return when_settled(delivery)
        return self._store_closed(message, close(delivery, state, self.clock.now(), reason))

    def _store_closed(self, message: Message | None, closed: Delivery) -> Following:
        try:
            self.messages.save(closed)
        except Conflict:
            return Following(Follow.LATER, self.clock.now())
        self.news.closed(message, closed)
        return when_settled(closed)

    def _without_subscriber(
        self, job: Job, delivery: Delivery, policy: RetryPolicy, step: Step
    ) -> tuple[Delivery, Following | None]:
        """The delivery when its next subscriber was removed or disabled, and what comes next; None when another
        subscriber is next.
        """
        self.admission.start_over(job)
        if step is Step.ASKED_TRY:
            reason = _unasked_reason(job.push.subscriber(delivery.target))
            tried = self._saved_or_fresh(job, without_asked_try(delivery, self.clock.now(), reason))
            self.news.seen(job.message, tried)
            return tried, None
        here = {each.subscriber_id for each in job.push.subscribers if not each.disabled}
        reason = _unasked_reason(job.push.subscriber(delivery.target))
        moved = without_target(delivery, here, policy, now=self.clock.now(), jitter=self.clock.jitter(), reason=reason)
        if moved.version == delivery.version:
            return moved, None
        if moved.due_at is None:
            return moved, self._store_closed(job.message, moved)
        moved = self._scheduled_if_long(moved)
        try:
            self.messages.save(moved)
        except Conflict:
            return moved, Following(Follow.LATER, self.clock.now())
        self.news.seen(job.message, moved)
        if moved.scheduled:
            return moved, Following(Follow.NOTHING)
        return moved, look_again(moved, moved.due_at or self.clock.now())

    def _attempt(
        self, job: Job, subscriber: Subscriber, delivery: Delivery, *, probe: bool = False
    ) -> Delivery | Following:
        """Make one attempt and write its outcome.

        Returns the delivery as stored afterwards; what comes next if the settings have changed since they were read.
        """
        policy = job.push.policy_for(subscriber, delivery.subscriber_id)
        try:
            body = self.requests.body(job.message)
        except MessageNotFound:
            now = self.clock.now()
            gone = (
                without_asked_try(delivery, now, "")
                if delivery.settled
                else close(delivery, DeliveryState.EXPIRED, now)
            )
            return self._saved_or_fresh(job, gone)
        now = self.clock.now()
        if job.is_for_now(delivery) and now >= (job.received.order.until or 0):
            return Following(Follow.ANOTHER)
        if now - job.looked_up_at >= LOOKED_UP_MS and self._has_changed(job, subscriber):
            return look_again(delivery, now)
        if not probe and job.may_ask is not None and not job.may_ask(now):
            return Following(Follow.LEASE, terms=job.terms)
        order = PushOrder(
            queue=job.queue,
            push=job.push,
            subscriber=subscriber,
            message=job.message,
            body=body,
            delivery=delivery,
        )
        span = self._span(order)
        outcome, dialect = self.requests.make(order)
        jitter = self.clock.jitter()
        asked = outcome.asked
        if asked is None:
            rules = subscriber.rules or job.push.rules
            before, failed = delivery.last, outcome.verdict is Verdict.FAILED
            asked = rules.asked(
                outcome.answer, failed=failed, jitter=jitter, before=before.status_code if before else None
            )
        if asked.stops is Stops.SUBSCRIBER:
            self.news.disable(job, subscriber, asked, outcome.answer.finished_at)

        def attempted(before: Delivery) -> Delivery:
            if order.manual:
                tried = after_asked_try(
                    before,
                    outcome.answer,
                    outcome.verdict,
                    asked_at=delivery.asked_at,
                    asked=asked,
                    subscriber=subscriber.name,
                    url=masked_url(subscriber.url),
                    dialect=dialect,
                )
                return with_proof(tried, outcome.proof)
            after = after_attempt(
                before,
                outcome.answer,
                outcome.verdict,
                policy=policy,
                reserve_ms=outcome.reserve_ms,
                jitter=jitter,
                subscriber=subscriber.name,
                url=masked_url(subscriber.url),
                dialect=dialect,
                update_url=outcome.update_url,
                asked=asked,
            )
            return self._scheduled_if_long(with_proof(after, outcome.proof))

        after, counts = with_span(attempted(delivery), span), True
        try:
            self.messages.save(after)
        except Conflict:
            after, counts = self._merge_attempt(job, delivery, outcome, attempted, span)
        self.admission.learn(job, outcome, asked, probe=probe)
        self.news.attempted(job, subscriber, delivery, after, outcome)
        if not counts and not order.manual and after.wakes_at is not None and not after.scheduled:
            return after_the_other(job, after)
        return after

    def _span(self, order: PushOrder) -> Span | None:
        """The span of an attempt that is about to be made, if its project exports spans."""
        span = span_of(order)
        if span is None:
            return None
        try:
            return span if self.projects.exports_spans(order.message.project) else None
        except Unavailable:
            # An attempt matters more than what is told of it.
            self.telemetry.count("SpansDropped", SPANS_OF_ATTEMPT)
            return None

    def _saved_or_fresh(self, job: Job, after: Delivery) -> Delivery:
        try:
            self.messages.save(after)
        except Conflict:
            return self.messages.delivery(job.received.order.key) or after
        return after

    def _merge_attempt(
        self,
        job: Job,
        begun: Delivery,
        outcome: Outcome,
        attempted: Callable[[Delivery], Delivery],
        span: Span | None,
    ) -> tuple[Delivery, bool]:
        """The delivery changed during the attempt: record the attempt if it still counts, and tell whether it does."""

        def once() -> tuple[Delivery, bool]:
            current = self.messages.delivery(job.received.order.key)
            if current is None:
                # Removed by its TTL; there is nothing left to record.
                return close(begun, DeliveryState.EXPIRED, self.clock.now()), True
            if counts_as_it_is(current, begun):
                folded: Delivery | None = attempted(current)
            else:
                folded = merge_attempt(current, begun, outcome.answer, outcome.verdict)
            if folded is None:
                return current, False
            folded = with_span(folded, span)
            if folded.attempts > current.attempts:
                folded = with_proof(folded, outcome.proof)
            self.messages.save(folded)
            return folded, True

        return until_saved(once, doing="recording an attempt under contention")

    def _scheduled_if_long(self, delivery: Delivery) -> Delivery:
        """Decide where a wait is spent. Called before the write, because saving also enters the delivery into the
        schedule.
        """
        if delivery.wakes_at is None or delivery.wakes_at - self.clock.now() <= MAX_DELAY_MS:
            return delivery
        self.telemetry.count("DeliveriesScheduled")
        return schedule(delivery)


def _may_be_asked(subscriber: Subscriber | None) -> bool:
    return subscriber is not None and not subscriber.disabled


def _unasked_reason(subscriber: Subscriber | None) -> str:
    return "subscriber_removed" if subscriber is None else "subscriber_disabled"
