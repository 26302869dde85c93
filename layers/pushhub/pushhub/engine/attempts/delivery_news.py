"""What is told of deliveries: to those who watch their queue, in the log, in metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.verdict import Verdict
from pushhub.engine.component import Component
from pushhub.engine.model.delivery import Delivery, DeliveryState
from pushhub.engine.model.subscriber_event import SubscriberEvent, SubscriberEventKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.base.ports import Telemetry
    from pushhub.engine.attempts.in_order import InOrder
    from pushhub.engine.attempts.job import Job
    from pushhub.engine.model.answer_rules import Asked
    from pushhub.engine.model.message import Message
    from pushhub.engine.model.queue import Subscriber
    from pushhub.engine.ports import SubscriberEvents, Watcher
    from pushhub.engine.target import Outcome


class DeliveryNews(Component):
    """Tells of deliveries."""

    watchers: Callable[[str], Sequence[Watcher]]  # Told of every delivery of a queue; chosen by queue name.
    # Told about the subscribers of a queue; chosen by queue name.
    subscriber_events: Callable[[str], Sequence[SubscriberEvents]]
    in_order: InOrder  # Told of ends, for the deliveries behind.
    telemetry: Telemetry
    # Whether the log tells of attempts that delivered at the first try; records and metrics always have them.
    tells_first_successes: bool = True

    def seen(self, message: Message, delivery: Delivery) -> None:
        """Tell who watches the queue how a delivery is now; if it has ended, the one behind it goes on."""
        self.gone(delivery)
        for each in self.watchers(message.queue):
            each.seen(message, delivery)

    def gone(self, delivery: Delivery) -> None:
        """Let the delivery behind one that has ended go on; its message may be gone."""
        if delivery.order_key is not None and delivery.settled:
            self.in_order.let_next_go(delivery)

    def closed(self, message: Message | None, closed: Delivery) -> None:
        """Tell that a delivery has ended without an attempt."""
        self.telemetry.count(_metric_of(closed.state))
        self.telemetry.event(
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
            self.seen(message, closed)
        else:
            self.gone(closed)

    def disable(self, job: Job, subscriber: Subscriber, asked: Asked, at: int) -> None:
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
        for each in self.subscriber_events(event.queue):
            each.happened(event)
        self.telemetry.count("SubscribersDisabled")
        self.telemetry.event("subscriber_disabled", **job.received.order.identity, reason=asked.reason)

    def attempted(self, job: Job, subscriber: Subscriber, before: Delivery, after: Delivery, outcome: Outcome) -> None:
        """Emit the one wide event of this attempt; its fields are the columns of the delivery record."""
        answer = outcome.answer
        if outcome.verdict is Verdict.FAILED:
            self.telemetry.count("AttemptsFailed")
        if after.state is not before.state and (after.settled or after.state is DeliveryState.HELD):
            self.telemetry.count(_metric_of(after.state))
        last = after.last
        if not self.tells_first_successes and after.state is DeliveryState.DELIVERED and after.attempts == 1:
            return
        self.telemetry.event(
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


def _metric_of(state: DeliveryState) -> str:
    """The metric counted when a delivery enters a state."""
    return f"Deliveries{state.value.capitalize()}"
