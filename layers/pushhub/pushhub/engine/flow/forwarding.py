"""Where the orders of a run of push go next: each wait to the queue where it is spent, what is exhausted to the errors
queue, and what cannot be passed on stays where it came from.

From the moment an order is sent on, it is for its delivery in whatever state that is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from pushhub.base.errors import Unavailable
from pushhub.engine.failed_calls import FailedCalls
from pushhub.engine.model.backoff import MAX_DELAY_MS, visibility_seconds
from pushhub.engine.model.following import Ended, Follow, Following, Wait, unsure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.flow.slow_lane import SlowLane
    from pushhub.engine.model.concurrency import ConcurrencyLimits
    from pushhub.engine.model.received import Received
    from pushhub.engine.model.work import WorkOrder
    from pushhub.engine.ports import WorkQueue

_T = TypeVar("_T")

FRESH_AFTER_RECEIVES = 10
"""Number of receives after which a waiting order is moved to a new SQS message.

A queue gives up a message after 100 receives or more (as a guard against poison), and some waits are short and
frequent: a poll each second, retries without end.
"""

FRESH_AFTER_MS = 4 * 86_400_000
"""Age at which a waiting order is moved to a new SQS message; SQS drops a message 14 days after it was sent, however
often it was received.
"""

HIDDEN_WAIT_MS = 60_000
"""The longest wait spent as a visibility timeout, without a new message.

A hidden message is in flight, and SQS stops delivering at 120,000 in-flight messages. Longer waits therefore become
delays of new messages, which do not count: the queue can hold 2,000 retries per second that wait a minute each.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextQueues:
    """Where the orders of a function go on to.

    Attributes:
        retry: Where deliveries wait for their next try.
        poll: Where deliveries wait for their next poll (hub protocol), or for an attempt that may take long.
        errors: Where exhausted deliveries go.
        slow_lane: Where orders for slow subscribers go; None leaves them in the queue they came from.
    """

    retry: WorkQueue
    poll: WorkQueue
    errors: WorkQueue
    slow_lane: SlowLane | None = None


class Forwarding:
    """Passes orders on.

    Args:
        limits: Which subscribers are slow.
        longest_ms: How long an attempt of these runs may take, including its follow-up.
    """

    def __init__(
        self, queues: NextQueues, limits: ConcurrencyLimits, clock: Clock, telemetry: Telemetry, longest_ms: int
    ) -> None:
        self._queues = queues
        self._limits = limits
        self._clock = clock
        self._telemetry = telemetry
        self._failed = FailedCalls(telemetry)
        self._longest_ms = longest_ms

    def arrange(self, ended: Sequence[Ended], source: WorkQueue) -> set[str]:
        """Arrange the next step of orders.

        Args:
            source: The queue that they came from. Waits that belong to this queue are spent there.

        Returns:
            SQS ids of messages, and places in backlogs, to keep.
        """
        kept: list[Wait] = []
        errors = [received for received, following in ended if following.follow is Follow.ERROR]
        if errors and not self._give_up(errors):
            kept += [self._unsure(each) for each in errors]
        lane = self._queues.slow_lane
        if lane is not None and lane.queue is source:
            ended, kept_slow = self._stay_slow(ended, source)
            kept += kept_slow
        elsewhere = [received for received, following in ended if following.outlasts(self._longest_ms)]
        bare = [each.order.for_any_state for each in elsewhere]
        if elsewhere and not self.send_packed(self._queues.poll, bare):
            kept += [self._unsure(each) for each in elsewhere]
        for queue in (self._queues.retry, self._queues.poll):
            waits = [Wait(each, following.due_at) for each, following in ended if self._waits_in(following) is queue]
            if source is queue:
                until = self._clock.now() + HIDDEN_WAIT_MS
                kept += [each for each in waits if each.until <= until and not each.received.place]
                waits = [each for each in waits if each.until > until or each.received.place]
            if waits and not self._move(waits, queue):
                kept += [self._unsure(each.received) for each in waits]
        stuck = [Wait(received, following.due_at) for received, following in ended if following.follow is Follow.FAULT]
        return self.keep(kept, source) | self._hide(stuck, source)

    def keep(self, waits: Sequence[Wait], source: WorkQueue) -> set[str]:
        """Make orders wait in the queue they came from, or where they are in a backlog; returns the SQS ids and places
        to keep. Worn-out messages are replaced.
        """
        worn = [each for each in waits if _is_worn(each.received)]
        if worn and self._move(worn, source):
            waits = [each for each in waits if not _is_worn(each.received)]
        return self._hide(waits, source)

    def _unsure(self, received: Received) -> Wait:
        return unsure(received, self._clock.now())

    def send(self, queue: WorkQueue, orders: Sequence[tuple[WorkOrder, int]]) -> bool:
        """Send orders, each with a delay in seconds; returns whether that worked."""
        return self._sent(queue.send, orders)

    def send_packed(self, queue: WorkQueue, orders: Sequence[WorkOrder]) -> bool:
        """Send orders, those for one subscriber together; returns whether that worked."""
        return self._sent(queue.send_packed, orders)

    def _sent(self, send: Callable[[Sequence[_T]], None], orders: Sequence[_T]) -> bool:
        try:
            send(orders)
        except Unavailable as error:
            self._failed.tell("orders_not_sent", error, orders=len(orders))
            return False
        return True

    def _give_up(self, orders: Sequence[Received]) -> bool:
        """Pass orders to the errors queue, in packs; its consumers read the current messages and deliveries."""
        bare = [replace(each.order.for_any_state, message=None) for each in orders]
        return self.send_packed(self._queues.errors, bare)

    def _waits_in(self, following: Following) -> WorkQueue | None:
        """The queue in which a delivery waits."""
        if following.outlasts(self._longest_ms) or following.follow not in (Follow.LATER, Follow.POLL):
            return None
        return self._queues.poll if following.long or following.follow is Follow.POLL else self._queues.retry

    def _stay_slow(self, ended: Sequence[Ended], lane: WorkQueue) -> tuple[list[Ended], list[Wait]]:
        """Make orders wait in the slow lane if their subscriber is still slow.

        Returns the others, and those to retry because the lane did not accept them.
        """
        now = self._clock.now()
        slow: list[Wait] = []
        others: list[Ended] = []
        for each in ended:
            if each.following.follow is Follow.LATER and self._limits.slow(each.received.order.addressee, now):
                slow.append(Wait(each.received, each.following.due_at))
            else:
                others.append(each)
        taken = not slow or self._move(slow, lane)
        return others, [] if taken else [self._unsure(each.received) for each in slow]

    def _move(self, waits: Sequence[Wait], queue: WorkQueue) -> bool:
        """Send waiting orders to the queue where they belong."""
        now = self._clock.now()
        delays = [-(-min(MAX_DELAY_MS, max(0, each.until - now)) // 1000) for each in waits]
        orders = [each.received.order.for_any_state for each in waits]
        return self.send(queue, list(zip(orders, delays, strict=True)))

    def _hide(self, waits: Sequence[Wait], source: WorkQueue) -> set[str]:
        """Hide kept orders until their time; one that cannot be hidden comes back after the queue's own timeout."""
        places = {each.received.place for each in waits if each.received.place}
        waits = [each for each in waits if not each.received.place]
        if not waits:
            return places
        now = self._clock.now()
        hidden = [
            (
                each.received.receipt_handle,
                visibility_seconds(each.until - now, received_at=each.received.received_at, now=now),
            )
            for each in waits
        ]
        try:
            failed = source.defer(hidden)
        except Unavailable as error:
            self._failed.tell("visibility_unchanged", error, orders=len(hidden))
        else:
            if failed:
                self._telemetry.event("visibility_unchanged", error="refused", orders=len(failed))
        return places | {each.received.sqs_id for each in waits}


def _is_worn(received: Received) -> bool:
    """Whether the SQS message of an order is to be replaced by a new one."""
    age_ms = 0 if received.sent_at is None else received.received_at - received.sent_at
    return received.receive_count >= FRESH_AFTER_RECEIVES or age_ms >= FRESH_AFTER_MS
