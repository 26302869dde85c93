"""Whether an attempt may be made now, and where its order waits if not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.verdict import Verdict
from pushhub.engine.attempts.circuits import Circuits, Gate
from pushhub.engine.attempts.job import Job, look_again, terms_of
from pushhub.engine.component import Component
from pushhub.engine.model.answer_rules import Asked, Stops
from pushhub.engine.model.delivery import Delivery, Step
from pushhub.engine.model.following import Follow, Following

if TYPE_CHECKING:
    from collections.abc import Callable

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.attempts.in_order import InOrder
    from pushhub.engine.attempts.ports import AttemptProjects, SubscriberBacklog
    from pushhub.engine.model.queue import Subscriber
    from pushhub.engine.target import Outcome

PROBE_MARGIN_MS = 60_000
"""Time beyond the subscriber's timeout that a probe may take before another one is made."""

SUSPENDED_WAIT_MS = 60_000
"""How long a poll of a suspended project waits before it is looked at again."""


class Admission(Component):
    """Decides about attempts."""

    circuits: Circuits  # Decide which subscribers may be attempted.
    backlog: SubscriberBacklog  # Holds orders whose subscriber may not be attempted.
    projects: AttemptProjects  # Say which projects are suspended.
    # Whether the hub itself handles the messages of a queue, by queue name: that goes on while a project is suspended,
    # as nobody outside is asked.
    internal: Callable[[str], bool]
    in_order: InOrder  # Holds orders whose message waits for the one before it.
    clock: Clock
    telemetry: Telemetry

    def ask(self, job: Job, subscriber: Subscriber, delivery: Delivery, step: Step) -> Gate | Following:
        """Whether an attempt may be made, which needs that its project is not suspended, the subscriber is not paused,
        its circuit and limits allow it, and it is the message's turn; otherwise, what comes next.

        A manual try ignores pause and circuit: the person who asked knows about them.
        """
        held = self._held(job, subscriber, delivery, step)
        if held:
            return held
        terms = terms_of(subscriber, delivery)
        if terms is not None and terms != job.terms:
            return Following(Follow.LEASE, terms=terms)
        if step is Step.ATTEMPT and self.in_order.must_wait(job, delivery):
            return Following(Follow.ANOTHER)
        gate = Gate.GO
        if job.watched and step is Step.ATTEMPT:
            gate = self.circuits.gate(job.subscriber_key, probe_ms=subscriber.timeout_s * 1000 + PROBE_MARGIN_MS)
        if gate is Gate.WAIT:
            return self._held_back(job, delivery)
        return gate

    def _held(self, job: Job, subscriber: Subscriber, delivery: Delivery, step: Step) -> Following | None:
        """Hold a delivery back if its project is suspended or its subscriber paused; None if neither is so."""
        message = job.message
        suspended = not self.internal(message.queue) and self.projects.is_suspended(
            message.project, since=message.accepted_at
        )
        if suspended and delivery.update_url is not None:
            # Its service has the message, and will be asked for the result later.
            return look_again(delivery, self.clock.now() + SUSPENDED_WAIT_MS)
        paused = subscriber.paused and step is Step.ATTEMPT and delivery.subscriber_id != "*"
        if not (suspended or paused):
            return None
        self.circuits.hold(job.subscriber_key)
        return self._held_back(job, delivery)

    def _held_back(self, job: Job, delivery: Delivery) -> Following:
        """Put an order into its subscriber's backlog, unless it is for an attempt now and another one will come."""
        if not job.is_for_now(delivery):
            self.backlog.add(job.subscriber_key, job.waiting_order, self.clock.now())
            self.telemetry.count("DeliveriesWaiting")
        return Following(Follow.ANOTHER)

    def start_over(self, job: Job) -> None:
        """Forget what was learned of a subscriber that was removed or disabled."""
        if job.watched:
            self.circuits.start_over(job.subscriber_key)

    def learn(self, job: Job, outcome: Outcome, asked: Asked, *, probe: bool) -> None:
        """Learn from an attempt."""
        if job.watched and job.push.circuit is not None and outcome.reached:
            failure = outcome.verdict is Verdict.FAILED and asked.stops is not Stops.DELIVERY
            self.circuits.ended(job.subscriber_key, job.push.circuit, failure=failure, probe=probe)
