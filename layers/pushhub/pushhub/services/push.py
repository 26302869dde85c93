"""The push use case: look at a batch of deliveries, attempt those that are due, all at once, and say what becomes of each.

Order of steps, and why a crash between any two loses nothing: the attempt is made, its outcome is written under a version
condition, then the next look is arranged (retry queue, visibility, due index, errors queue), and only then is the SQS message given up. A crash
before the write repeats the attempt (at least once, same id); a crash after it makes SQS hand the order over again, and the stored state says what is left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, replace
from enum import StrEnum

from pushhub.domain.backoff import FixedDelay, RetryPolicy, holds_in_queue, visibility_seconds
from pushhub.domain.delivery import (
    Delivery,
    DeliveryState,
    Step,
    absorb,
    close,
    look,
    opening,
    park,
    settle,
)
from pushhub.domain.errors import Conflict, MessageNotFound, Unavailable
from pushhub.domain.message import Message
from pushhub.domain.queue import PushSettings, Queue, Subscriber
from pushhub.domain.verdict import Answer, Verdict
from pushhub.domain.work import WorkOrder
from pushhub.ports import BodyStore, Clock, ConfigStore, MessageStore, Received, Telemetry, WorkQueue
from pushhub.services.targets import Outcome, PushOrder, Targets

__all__ = ["Push"]

DEADLINE_MARGIN_MS = 5_000
"""Kept free at the end of an invocation to write outcomes and arrange what follows."""

UNSURE_WAIT_MS = 10_000
"""How soon an order is looked at again when one of our own calls failed and its effect is unknown."""

ABSORB_ROUNDS = 8
"""How often an outcome is folded into a delivery that keeps changing before the order is left for later."""

CLOCK_SKEW_MS = 60_000
"""How far the clocks of two functions may be apart."""

FLUSH_SECONDS = 0.2
"""How long a finished delivery may wait for its neighbours before its next look is arranged."""

GIVE_UP = FixedDelay(retries=0, delay_s=3)
"""The policy for a subscriber that is no longer there: no further try."""


class _Next(StrEnum):
    """What happens to the SQS message of a delivery that was looked at."""

    DONE = "done"
    LATER = "later"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class _Result:
    next: _Next
    due_at: int = 0


class Push:
    """Attempts deliveries.

    Args:
        config: Queues and projects.
        messages: Messages and deliveries.
        bodies: Claim-checked bodies.
        targets: How each kind of subscriber is pushed to.
        retry_queue: Where deliveries wait for their next try.
        errors_queue: Where exhausted deliveries go.
        clock: Time.
        telemetry: Wide events and metrics.
        executor: Runs the attempts of a batch side by side.
        in_flight_limit: From this many messages in flight in the retry queue on, every wait is parked.
    """

    def __init__(
        self,
        *,
        config: ConfigStore,
        messages: MessageStore,
        bodies: BodyStore,
        targets: Targets,
        retry_queue: WorkQueue,
        errors_queue: WorkQueue,
        clock: Clock,
        telemetry: Telemetry,
        executor: Executor,
        in_flight_limit: int,
    ) -> None:
        self._config = config
        self._messages = messages
        self._bodies = bodies
        self._targets = targets
        self._retry_queue = retry_queue
        self._errors_queue = errors_queue
        self._clock = clock
        self._telemetry = telemetry
        self._executor = executor
        self._in_flight_limit = in_flight_limit

    def run(
        self, batch: Sequence[Received], *, source: WorkQueue, is_retry: bool, remaining_ms: Callable[[], int]
    ) -> set[str]:
        """Look at a batch of orders.

        Args:
            batch: As received.
            source: The queue they came from, for changing their visibility.
            is_retry: They came from the retry queue, so that waiting there costs no send.
            remaining_ms: Milliseconds this invocation has left.

        Returns:
            SQS ids of the orders to keep (batch item failures); all others are settled or handed on.
        """
        firsts: dict[tuple[str, str], Received] = {}
        for received in batch:
            firsts.setdefault((received.order.message.message_id, received.order.subscriber_id), received)
        try:
            stored = self._messages.deliveries([each.order for each in firsts.values()])
        except Unavailable as error:
            self._telemetry.event("states_unreadable", error=str(error), orders=len(batch))
            return {each.sqs_id for each in batch}
        running = {
            self._executor.submit(self._handle, received, stored.get(key), remaining_ms): received
            for key, received in firsts.items()
        }
        return self._arrange_as_they_finish(running, source=source, is_retry=is_retry)

    def _arrange_as_they_finish(
        self, running: dict[Future[_Result], Received], *, source: WorkQueue, is_retry: bool
    ) -> set[str]:
        """Arrange what follows for each delivery soon after it is through, in batches, while slower neighbours go on."""
        keep: set[str] = set()
        pending = set(running)
        finished: list[tuple[Received, _Result]] = []
        while pending or finished:
            done, pending = wait(pending, timeout=FLUSH_SECONDS if pending else 0, return_when=FIRST_COMPLETED)
            finished += [(running[each], self._result(each, running[each])) for each in done]
            if finished and (not done or not pending or len(finished) >= 10):
                keep |= self._arrange(finished, source=source, is_retry=is_retry)
                finished = []
        return keep

    def _result(self, future: Future[_Result], received: Received) -> _Result:
        error = future.exception()
        if error is None:
            return future.result()
        if not isinstance(error, Exception):
            raise error
        # A fault of ours in one delivery must not touch its neighbours; the dead-letter queue keeps it in sight.
        self._telemetry.count("PushFaults")
        self._telemetry.event("push_fault", error=repr(error), **_identity(received.order))
        return _Result(_Next.LATER, self._clock.now() + UNSURE_WAIT_MS)

    def _arrange(self, finished: Sequence[tuple[Received, _Result]], *, source: WorkQueue, is_retry: bool) -> set[str]:
        """Errors to the errors queue, waits to where they are spent; the SQS ids to keep are returned."""
        keep: set[str] = set()
        errors = [received for received, result in finished if result.next is _Next.ERROR]
        waits = [(received, result.due_at) for received, result in finished if result.next is _Next.LATER]
        if errors and not self._sent(self._errors_queue, [(each.order, 0) for each in errors]):
            waits += [(each, self._clock.now() + UNSURE_WAIT_MS) for each in errors]
        now = self._clock.now()
        if waits and not is_retry:
            moves = [(each.order, min(900, -(-max(0, due_at - now) // 1000))) for each, due_at in waits]
            if self._sent(self._retry_queue, moves):
                waits = []
            else:
                waits = [(each, now + UNSURE_WAIT_MS) for each, _ in waits]
        if waits:
            hidden = [
                (each.receipt_handle, visibility_seconds(due_at - now, received_at=each.received_at, now=now))
                for each, due_at in waits
            ]
            keep = {each.sqs_id for each, _ in waits}
            self._defer(source, hidden)
        return keep

    def _sent(self, queue: WorkQueue, orders: Sequence[tuple[WorkOrder, int]]) -> bool:
        try:
            queue.send(orders)
        except Unavailable as error:
            self._telemetry.event("orders_not_sent", error=str(error), orders=len(orders))
            return False
        return True

    def _defer(self, source: WorkQueue, hidden: Sequence[tuple[str, int]]) -> None:
        """Change visibilities; one that cannot be changed comes back when the queue's own timeout ends."""
        try:
            failed = source.defer(hidden)
        except Unavailable as error:
            self._telemetry.event("visibility_unchanged", error=str(error), orders=len(hidden))
            return
        if failed:
            self._telemetry.event("visibility_unchanged", error="refused", orders=len(failed))

    def _handle(self, received: Received, stored: Delivery | None, remaining_ms: Callable[[], int]) -> _Result:
        """Look at one delivery and go on until it waits or is settled. Runs on a thread of its own."""
        order = received.order
        try:
            return self._advance(received, stored, remaining_ms)
        except Unavailable as error:
            self._telemetry.event("attempt_unrecorded", error=str(error), **_identity(order))
            return _Result(_Next.LATER, self._clock.now() + UNSURE_WAIT_MS)

    def _advance(self, received: Received, stored: Delivery | None, remaining_ms: Callable[[], int]) -> _Result:
        order = received.order
        delivery = stored
        queue = self._config.queue(order.message.project, order.message.queue)
        if delivery is None or not order.carries_body:
            full = order.message if order.carries_body else self._message(order)
            if full is None:
                return self._gone(order, delivery)
            order = replace(order, message=full)
            delivery = delivery or opening(full, order.subscriber_id)
        while True:
            if queue is None or queue.push is None or queue.uid != order.message.queue_uid:
                return self._close(delivery, DeliveryState.CANCELLED, "queue_deleted")
            if order.message.accepted_at <= queue.cleared_at:
                return self._close(delivery, DeliveryState.CANCELLED, "queue_cleared")
            subscriber = queue.push.subscriber(delivery.target)
            policy = self._policy(queue.push, subscriber)
            seen = look(delivery, policy, self._clock.now())
            if seen.step is Step.NOTHING:
                return _Result(_Next.ERROR if delivery.state is DeliveryState.EXHAUSTED else _Next.DONE)
            if seen.step is Step.WAIT:
                # The due index brings a parked delivery back by itself. Close to its time the waker may just have
                # taken it out of the index (by a clock a little ahead of ours), so then the order is kept.
                if delivery.parked and seen.wait_ms > CLOCK_SKEW_MS:
                    return _Result(_Next.DONE)
                return _Result(_Next.LATER, self._clock.now() + seen.wait_ms)
            if seen.step is Step.CLOSE and seen.closes_as is not None:
                return self._close(delivery, seen.closes_as, "out_of_time")
            if subscriber and remaining_ms() < subscriber.timeout_s * 1000 + DEADLINE_MARGIN_MS:
                return _Result(_Next.LATER, self._clock.now())
            delivery = self._attempt(received, order, queue, queue.push, subscriber, delivery, policy)

    def _policy(self, push: PushSettings, subscriber: Subscriber | None) -> RetryPolicy:
        if subscriber is None:
            return push.policy
        return self._targets.of(subscriber).policy(push, subscriber.subscriber_id)

    def _message(self, order: WorkOrder) -> Message | None:
        message = order.message
        return self._messages.message(message.project, message.queue_uid, message.message_id)

    def _gone(self, order: WorkOrder, delivery: Delivery | None) -> _Result:
        """The message itself is no longer stored: its time was over."""
        if delivery is None or delivery.settled:
            return _Result(_Next.DONE)
        return self._close(delivery, DeliveryState.EXPIRED, "message_gone")

    def _close(self, delivery: Delivery, state: DeliveryState, reason: str) -> _Result:
        if not delivery.settled:
            delivery = close(delivery, state, self._clock.now())
            try:
                self._messages.save(delivery)
            except Conflict:
                return _Result(_Next.LATER, self._clock.now())
            self._telemetry.count(f"Deliveries{state.value.capitalize()}")
            self._telemetry.event(
                "delivery_closed",
                project=delivery.project,
                queue=delivery.queue,
                message_id=delivery.message_id,
                delivery_id=delivery.delivery_id,
                state=state.value,
                reason=reason,
                tries=delivery.tries,
            )
        return _Result(_Next.ERROR if delivery.state is DeliveryState.EXHAUSTED else _Next.DONE)

    def _attempt(
        self,
        received: Received,
        order: WorkOrder,
        queue: Queue,
        push: PushSettings,
        subscriber: Subscriber | None,
        delivery: Delivery,
        policy: RetryPolicy,
    ) -> Delivery:
        """One attempt and its outcome, written. Returns the delivery as it is stored then."""
        if subscriber is None:
            outcome = self._removed_subscriber()
            policy = GIVE_UP if len(delivery.targets) == 1 else policy
        else:
            try:
                body = self._body(order.message)
            except MessageNotFound:
                return self._saved_or_fresh(order, delivery, close(delivery, DeliveryState.EXPIRED, self._clock.now()))
            outcome = self._targets.of(subscriber).deliver(
                PushOrder(
                    queue=queue, push=push, subscriber=subscriber, message=order.message, body=body, delivery=delivery
                )
            )
        after = settle(
            delivery,
            outcome.answer,
            outcome.verdict,
            policy=policy,
            reserve_ms=outcome.reserve_ms,
            jitter=self._clock.jitter(),
        )
        after = self._parked_if_long(after)
        try:
            self._messages.save(after)
        except Conflict:
            after = self._absorb(order, delivery, outcome)
        self._tell(received, subscriber, after, outcome, policy)
        return after

    def _removed_subscriber(self) -> Outcome:
        now = self._clock.now()
        answer = Answer(
            status_code=0,
            message="Subscriber was removed from the queue",
            error_class="removed",
            started_at=now,
            finished_at=now,
        )
        return Outcome(answer=answer, verdict=Verdict.FAILED)

    def _body(self, message: Message) -> bytes:
        if message.body is not None:
            return message.body
        if message.body_ref is None:
            raise MessageNotFound
        return self._bodies.get(message.body_ref)

    def _saved_or_fresh(self, order: WorkOrder, before: Delivery, after: Delivery) -> Delivery:
        try:
            self._messages.save(after)
        except Conflict:
            return self._messages.delivery(order) or before
        return after

    def _absorb(self, order: WorkOrder, begun: Delivery, outcome: Outcome) -> Delivery:
        """The delivery changed during the attempt: fold the attempt in where it still counts."""
        for _ in range(ABSORB_ROUNDS):
            current = self._messages.delivery(order)
            if current is None:
                # Deleted by its time to live; there is nothing left to record.
                return close(begun, DeliveryState.EXPIRED, self._clock.now())
            folded = absorb(current, begun, outcome.answer, outcome.verdict)
            if folded is None:
                return current
            try:
                self._messages.save(folded)
            except Conflict:
                continue
            return folded
        raise Unavailable("recording an attempt under contention")

    def _parked_if_long(self, delivery: Delivery) -> Delivery:
        """Decide where a wait is spent; before the write, which enters a parked one into the due index."""
        if delivery.due_at is None:
            return delivery
        wait_ms = min(delivery.due_at, delivery.expires_at) - self._clock.now()
        if wait_ms <= 0 or holds_in_queue(wait_ms, in_flight=self._in_flight(), in_flight_limit=self._in_flight_limit):
            return delivery
        self._telemetry.count("DeliveriesParked")
        return park(delivery)

    def _in_flight(self) -> int:
        """The retry queue's load; a failed measurement must not cost the record of an attempt that was made."""
        try:
            return self._retry_queue.in_flight()
        except Unavailable:
            return 0

    def _tell(
        self, received: Received, subscriber: Subscriber | None, after: Delivery, outcome: Outcome, policy: RetryPolicy
    ) -> None:
        """The one wide event of this attempt; its fields are the columns of the delivery record."""
        answer = outcome.answer
        if outcome.verdict is Verdict.FAILED:
            self._telemetry.count("AttemptsFailed")
        if after.settled:
            self._telemetry.count(f"Deliveries{after.state.value.capitalize()}")
        last = after.last
        self._telemetry.event(
            "attempt",
            **_identity(received.order),
            subscriber=subscriber.name if subscriber else None,
            asked=last.subscriber_id if last else None,
            attempt=last.number if last else None,
            tries=after.tries,
            tries_max=policy.max_tries,
            verdict=outcome.verdict.value,
            state=after.state.value,
            parked=after.parked,
            status_code=answer.status_code,
            error_class=answer.error_class,
            duration_ms=answer.duration_ms,
            bytes_out=answer.bytes_out,
            bytes_in=answer.bytes_in,
            wait_before_ms=last.wait_before_ms if last else None,
            wait_after_ms=last.wait_after_ms if last else None,
            receive_count=received.receive_count,
        )


def _identity(order: WorkOrder) -> dict[str, str]:
    """The fields that say which delivery an event is about."""
    message = order.message
    return {
        "project": message.project,
        "queue": message.queue,
        "message_id": message.message_id,
        "delivery_id": f"{message.message_id}.{order.subscriber_id}",
    }
