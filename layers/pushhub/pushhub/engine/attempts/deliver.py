"""Works on one delivery until it waits or is settled: make an attempt, write the outcome, say what comes next.

No crash between two steps loses anything. The attempt is made and its outcome written under a version condition; then
the caller arranges the next step, and only after that deletes the SQS message. A crash before the write repeats the
attempt (at least once, same id); after it, SQS redelivers the order and the stored state says what is left to do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Conflict, MessageNotFound, Unavailable
from pushhub.base.verdict import Verdict
from pushhub.engine.attempts.circuits import Gate
from pushhub.engine.attempts.completed_attempt import CompletedAttempt
from pushhub.engine.attempts.decision import Ask, End, Leave, Progress, Skip, begin, decide
from pushhub.engine.attempts.job import Job, MayAsk, after_the_other, longest_ms, look_again, when_settled
from pushhub.engine.attempts.traces import span_of
from pushhub.engine.bodies import body_of
from pushhub.engine.component import Component
from pushhub.engine.model.answer_rules import Stops
from pushhub.engine.model.backoff import MAX_DELAY_MS
from pushhub.engine.model.delivery import (
    DECLINED,
    Delivery,
    DeliveryState,
    close,
    opening,
    schedule,
    without_asked_try,
    without_target,
)
from pushhub.engine.model.flow import SHORT_ATTEMPT_MS
from pushhub.engine.model.following import Follow, Following
from pushhub.engine.target import Declined, Outcome, PushOrder, Targets

if TYPE_CHECKING:
    from collections.abc import Callable

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.attempts.admission import Admission
    from pushhub.engine.attempts.delivery_news import DeliveryNews
    from pushhub.engine.attempts.ports import AttemptProjects
    from pushhub.engine.model.flow import Terms
    from pushhub.engine.model.message import Message
    from pushhub.engine.model.queue import PushSettings, Queue, Subscriber
    from pushhub.engine.model.received import Loaded, Received
    from pushhub.engine.model.trace import Span
    from pushhub.engine.ports import AttemptQueues, BodyStore, StoredMessages
    from pushhub.engine.security.credentials import Credentials

LOOKED_UP_MS = 200
"""An attempt that begins later than this after its queue was looked up looks again, milliseconds."""

SPANS_OF_ATTEMPT = 2
"""An attempt and, within it, its request."""


@dataclass(frozen=True, slots=True)
class Worked:
    """A delivery after something was done, and what comes next; None to decide anew."""

    delivery: Delivery
    following: Following | None = None


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
    """Works on deliveries: does what :func:`pushhub.engine.attempts.decision.decide` says, until nothing is left."""

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
        loaded: Loaded,
        remaining_ms: Callable[[], int],
        terms: Terms | None = None,
        may_ask: MayAsk | None = None,
    ) -> Following:
        """Work on one delivery.

        Args:
            loaded: The order, with its delivery as stored.
            remaining_ms: Milliseconds that an attempt may take here; none begins that could take longer.
            terms: The terms of the lease that the order has; None when it has not waited for one.
            may_ask: Whether the lease lets a request be made at a time, epoch milliseconds.

        Raises:
            Unavailable: One of our own calls failed; try again soon, the stored state decides.
        """
        following = self._run(loaded, remaining_ms, terms, may_ask)
        received, stored = loaded.received, loaded.stored
        if received.order.manual and stored is not None and stored.settled and following.follow is Follow.ERROR:
            # It had ended before a person asked for another try; the watchers were told then.
            return replace(following, follow=Follow.NOTHING)
        return following

    def _run(
        self, loaded: Loaded, remaining_ms: Callable[[], int], terms: Terms | None, may_ask: MayAsk | None
    ) -> Following:
        received, stored = loaded.received, loaded.stored
        message = loaded.message(self.clock.now(), leased=terms is not None)
        message = message or self.messages.message(received.order.key.message)
        if message is None:
            return self._without_message(stored)
        delivery = stored or opening(message, received.order.key.subscriber_id)
        looked_up_at = self.clock.now()
        queue = self._queue(received, message)
        job = begin(received, message, queue, looked_up_at=looked_up_at)
        if isinstance(job, End):
            return self._end(message, delivery, job)
        return self._carry_on(replace(job, terms=terms, may_ask=may_ask), delivery, remaining_ms)

    def _carry_on(self, job: Job, begun: Delivery, remaining_ms: Callable[[], int]) -> Following:
        """Attempt as long as something is due: a unicast round asks one subscriber after another without a pause."""
        worked = Worked(begun)
        progress = Progress(had_automatic_tries=begun.due_at is not None)
        terms: Terms | None = None
        while worked.following is None:
            delivery = worked.delivery
            decision = decide(job, delivery, progress, now=self.clock.now(), remaining_ms=remaining_ms())
            match decision:
                case Leave():
                    if decision.tell:
                        self.news.seen(job.message, delivery)
                    worked = Worked(delivery, decision.following)
                case End():
                    worked = Worked(delivery, self._end(job.message, delivery, decision))
                case Skip():
                    worked = self._skip(job, delivery, decision)
                    progress = replace(progress, changed=True, attempted=False)
                case Ask():
                    terms = decision.terms
                    worked = self._ask(job, delivery, decision)
                    progress = replace(progress, changed=True, attempted=True, leased=terms is not None)
        return _with_attempt(job.push, begun, worked.delivery, worked.following, terms)

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

    def _without_message(self, delivery: Delivery | None) -> Following:
        """The message itself is no longer stored, because it expired."""
        if delivery is None or delivery.settled:
            if delivery is not None:
                self.news.gone(delivery)
            return Following(Follow.NOTHING)
        return self._end(None, delivery, End(state=DeliveryState.EXPIRED, reason="message_gone"))

    def _end(self, message: Message | None, delivery: Delivery, end: End) -> Following:
        if delivery.settled:
            if message is not None:
                self.news.seen(message, delivery)
            return when_settled(delivery)
        return self._store_closed(message, close(delivery, end.state, self.clock.now(), end.reason))

    def _store_closed(self, message: Message | None, closed: Delivery) -> Following:
        try:
            self.messages.save(closed)
        except Conflict:
            return Following(Follow.LATER, self.clock.now())
        self.news.closed(message, closed)
        return when_settled(closed)

    def _skip(self, job: Job, delivery: Delivery, skip: Skip) -> Worked:
        """Go on without a subscriber: with the next one, at another time, or not at all."""
        self.admission.start_over(job)
        if skip.asked_for:
            tried = self._saved_or_fresh(job, without_asked_try(delivery, self.clock.now(), skip.reason))
            self.news.seen(job.message, tried)
            return Worked(tried)
        here = {each.subscriber_id for each in job.push.subscribers if not each.disabled}
        now, jitter = self.clock.now(), self.clock.jitter()
        moved = without_target(delivery, here, skip.policy, now=now, jitter=jitter, reason=skip.reason)
        if moved.version == delivery.version:
            return Worked(moved)
        due_at = moved.due_at
        if due_at is None:
            return Worked(moved, self._store_closed(job.message, moved))
        moved = self._scheduled_if_long(moved)
        try:
            moved = self._saved(moved)
        except Conflict:
            return Worked(moved, Following(Follow.LATER, self.clock.now()))
        self.news.seen(job.message, moved)
        if moved.scheduled:
            return Worked(moved, Following(Follow.NOTHING))
        return Worked(moved, look_again(moved, due_at))

    def _ask(self, job: Job, delivery: Delivery, ask: Ask) -> Worked:
        """Make an attempt if it may be made."""
        gate = self.admission.ask(job, ask.subscriber, delivery, ask.step)
        if isinstance(gate, Following):
            return Worked(delivery, gate)
        try:
            body = self.requests.body(job.message)
        except MessageNotFound:
            gone = self._saved_or_fresh(job, self._without_body(delivery))
            self.news.seen(job.message, gone)
            return Worked(gone)
        instead = self._too_late(job, ask.subscriber, delivery, probe=gate is Gate.PROBE)
        if instead is not None:
            return Worked(delivery, instead)
        order = PushOrder(
            queue=job.queue,
            push=job.push,
            subscriber=ask.subscriber,
            message=job.message,
            body=body,
            delivery=delivery,
        )
        worked = self._attempt(job, order, ask, probe=gate is Gate.PROBE)
        if worked.following is None:
            self.news.seen(job.message, worked.delivery)
        return worked

    def _without_body(self, delivery: Delivery) -> Delivery:
        """A delivery whose message's body is gone."""
        now = self.clock.now()
        if delivery.settled:
            return without_asked_try(delivery, now, "")
        return close(delivery, DeliveryState.EXPIRED, now)

    def _too_late(self, job: Job, subscriber: Subscriber, delivery: Delivery, *, probe: bool) -> Following | None:
        """What comes next instead of an attempt for which something has passed since it was decided; None if nothing
        has.
        """
        now = self.clock.now()
        if job.is_for_now(delivery) and now >= (job.received.order.until or 0):
            return Following(Follow.ANOTHER)
        if now - job.looked_up_at >= LOOKED_UP_MS and self._has_changed(job, subscriber):
            return look_again(delivery, now)
        if not probe and job.may_ask is not None and not job.may_ask(now):
            return Following(Follow.LEASE, terms=job.terms)
        return None

    def _attempt(self, job: Job, order: PushOrder, ask: Ask, *, probe: bool) -> Worked:
        """Make one attempt and write its outcome."""
        span = self._span(order)
        try:
            outcome, dialect = self.requests.make(order)
        except Declined:
            return self._declined(job, order)
        attempt = CompletedAttempt(
            order=order,
            outcome=outcome,
            policy=ask.policy,
            dialect=dialect,
            jitter=self.clock.jitter(),
            span=span,
        )
        asked = attempt.asked
        if asked.stops is Stops.SUBSCRIBER:
            self.news.disable(job, order.subscriber, asked, outcome.answer.finished_at)
        after, counts = self._scheduled_if_long(attempt.recorded_in(order.delivery), attempt), True
        try:
            after = self._saved(after, may_wait_here=not order.manual)
        except Conflict:
            after, counts = self._folded(job, attempt)
        self.admission.learn(job, outcome, asked, probe=probe)
        self.news.attempted(job, order.subscriber, order.delivery, after, outcome)
        if not counts and not order.manual and after.wakes_at is not None and not after.scheduled:
            return Worked(order.delivery, after_the_other(job, after))
        return Worked(after)

    def _declined(self, job: Job, order: PushOrder) -> Worked:
        """End a delivery of which its subscriber's own rules want nothing. One that has ended before stays as it is."""
        delivery = order.delivery
        if not delivery.settled:
            closed = close(delivery, DeliveryState.CANCELLED, self.clock.now(), DECLINED)
            return Worked(closed, self._store_closed(job.message, closed))
        tried = self._saved_or_fresh(job, without_asked_try(delivery, self.clock.now(), DECLINED))
        self.news.seen(job.message, tried)
        return Worked(tried)

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

    def _folded(self, job: Job, attempt: CompletedAttempt) -> tuple[Delivery, bool]:
        """The delivery changed during the attempt: record the attempt if it still counts, and tell whether it does."""

        def once() -> tuple[Delivery, bool]:
            current = self.messages.delivery(job.received.order.key)
            if current is None:
                # Removed by its TTL; there is nothing left to record.
                return close(attempt.order.delivery, DeliveryState.EXPIRED, self.clock.now()), True
            folded = attempt.folded_into(current)
            if folded is None:
                return current, False
            folded = self._scheduled_if_long(folded, attempt)
            self.messages.save(folded)
            return folded, True

        return until_saved(once, doing="recording an attempt under contention")

    def _saved(self, after: Delivery, *, may_wait_here: bool = True) -> Delivery:
        """Write a delivery; returns it as it is stored. One that cannot be entered into the schedule waits in a queue:
        otherwise its attempt would be made again and again, and none would count.

        Args:
            may_wait_here: Whether its order goes on, so that it can.
        """
        try:
            self.messages.save(after)
        except Unavailable as error:
            if not (after.scheduled and may_wait_here):
                raise
            here = replace(after, scheduled=False)
            try:
                self.messages.save(here)
            except Conflict:
                # Only the answer to the first write was lost.
                if self.messages.delivery(after.key) != after:
                    raise
                return after
            self.telemetry.count("CallsFailed")
            self.telemetry.event("delivery_not_scheduled", error=str(error), project=after.project, queue=after.queue)
            return here
        return after

    def _scheduled_if_long(self, delivery: Delivery, attempt: CompletedAttempt | None = None) -> Delivery:
        """Decide where a wait is spent. Called before the write, because saving also enters the delivery into the
        schedule. A try that a person asked for changes nothing of how the automatic ones wait.
        """
        if attempt is not None and attempt.order.manual:
            return delivery
        if delivery.wakes_at is None or delivery.wakes_at - self.clock.now() <= MAX_DELAY_MS:
            return delivery
        self.telemetry.count("DeliveriesScheduled")
        return schedule(delivery)


def _with_attempt(
    push: PushSettings, begun: Delivery, delivery: Delivery, following: Following, terms: Terms | None
) -> Following:
    """What comes next, with what the run has to know of the attempt that was made, if one was."""
    subscriber = push.subscriber(delivery.target)
    if subscriber is not None and longest_ms(subscriber) > SHORT_ATTEMPT_MS:
        following = replace(following, long=True)
    if delivery.attempts == begun.attempts or delivery.last is None:
        return following
    return replace(following, answered=delivery.last.verdict is not Verdict.FAILED, terms=terms)


def _may_be_asked(subscriber: Subscriber | None) -> bool:
    return subscriber is not None and not subscriber.disabled
