"""The push use case: works on a batch of SQS orders in parallel, and arranges what comes next for each.

What a run does and why is :class:`pushhub.engine.model.run.Run`'s to say. Here are its hands: they do each action that
it asks for, and say what came of it. A call that fails is told in one place, and answered by None.

Runs are short or long. A short one is over soon, so that its queue can show what it had in hand soon if it dies. What
may take longer than :data:`~pushhub.engine.model.flow.SHORT_ATTEMPT_MS` is never begun there: its order moves to the
poll queue, whose runs are long, as are those of the slow lane.

``docs/flow-control.md`` draws it all.
"""

from __future__ import annotations

import secrets
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Unavailable, Unreadable
from pushhub.engine.component import Component
from pushhub.engine.failed_calls import FailedCalls
from pushhub.engine.faults import described
from pushhub.engine.flow.finished import Finished
from pushhub.engine.flow.forwarding import Forwarding
from pushhub.engine.flow.in_hand import PROMPT_MS, InHand
from pushhub.engine.model.actions import (
    Action,
    AddToBacklog,
    AnswerWakeUp,
    AnyUnderWay,
    Arrange,
    Arranged,
    Await,
    Begin,
    ClearOut,
    Completions,
    Count,
    Delete,
    GiveBack,
    Glance,
    Granted,
    Hide,
    Hold,
    Keep,
    ListSlow,
    Look,
    Read,
    ReadSlowList,
    Receive,
    Send,
    Settle,
    SettleAside,
    SettleDuplicates,
    Sleep,
    States,
    Take,
    TellFault,
    To,
    ToSlowLane,
)
from pushhub.engine.model.backoff import MAX_DELAY_MS
from pushhub.engine.model.concurrency import ConcurrencyLimits
from pushhub.engine.model.flow import SHORT_ATTEMPT_MS
from pushhub.engine.model.following import Follow, Following, unsure
from pushhub.engine.model.run import Lane, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.attempts.deliver import Deliver
    from pushhub.engine.flow.delivery_reads import DeliveryReads
    from pushhub.engine.flow.forwarding import NextQueues
    from pushhub.engine.flow.leases import Leases
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.keys import Addressee, DeliveryKey
    from pushhub.engine.model.received import Received
    from pushhub.engine.ports import WorkQueue


class Push(Component):
    """Works on batches of orders."""

    reads: DeliveryReads
    deliver: Deliver
    queues: NextQueues  # Where orders go on to.
    leases: Leases  # At subscribers with limits, and slow ones.
    clock: Clock
    telemetry: Telemetry
    executor: Executor  # Runs the attempts; has more than :data:`~pushhub.engine.model.run.AT_ONCE` threads.
    # How long an attempt of its runs may take, including its follow-up. Runs are long if that is more than
    # :data:`~pushhub.engine.model.flow.SHORT_ATTEMPT_MS`.
    longest_ms: int

    def __post_init__(self) -> None:
        self.limits = ConcurrencyLimits()
        self.forwarding = Forwarding(self.queues, self.limits, self.clock, self.telemetry, self.longest_ms)

    def run(self, batch: Sequence[Received], *, source: WorkQueue, remaining_ms: Callable[[], int]) -> set[str]:
        """Work on a batch.

        Args:
            batch: As received; a delivery that occurs twice is attempted once.
            source: The queue it came from. Waits that belong to this queue are spent there.
            remaining_ms: Milliseconds this invocation has left.

        Returns:
            SQS ids of the orders to keep (batch item failures); all others are settled or passed on.
        """
        self.limits.start_over()
        self.leases.start_over()
        lane = self.queues.slow_lane
        run = Run(
            batch,
            lane=Lane.NONE if lane is None else Lane.SLOW if lane.queue is source else Lane.BESIDE,
            longest_ms=self.longest_ms,
            limits=self.limits,
            leases=self.leases.known,
            listed=lane.listed if lane else {},
            choose=secrets.choice,
        )
        hands = Hands(self, batch, source, remaining_ms)
        steps, answer = run.steps(), None
        while True:
            run.tick(self.clock.now(), remaining_ms())
            try:
                action = steps.send(answer)
            except StopIteration:
                return run.ledger.kept_of_batch
            answer = hands.do(action)


class Hands:
    """Do what one run asks for.

    Args:
        push: The collaborators.
        batch: What the run begins with.
        source: The queue that its batch, and everything it receives itself, came from.
        remaining_ms: Milliseconds this invocation has left.
    """

    def __init__(
        self, push: Push, batch: Sequence[Received], source: WorkQueue, remaining_ms: Callable[[], int]
    ) -> None:
        self._push = push
        self._source = source
        self._remaining_ms = remaining_ms
        self._failed = FailedCalls(push.telemetry)
        # The queue of a long run would hide what it had in hand for minutes if it died.
        first_ms = 0 if push.longest_ms > SHORT_ATTEMPT_MS else PROMPT_MS
        self._in_hand = InHand(source, push.clock, first_ms=first_ms)
        self._in_hand.take(batch)
        self._finished = Finished()
        self._attempts: dict[int, Future[Following]] = {}
        self._numbers: dict[Future[Following], int] = {}
        self._receive: Future[list[Received]] | None = None
        leases, forwarding = push.leases, push.forwarding
        self._do: dict[type[Action[Any]], Callable[[Any], Any]] = {
            Begin: self._begin,
            AnyUnderWay: lambda todo: any(not self._attempts[each].done() for each in todo.numbers),
            Await: self._await,
            Sleep: lambda todo: push.clock.sleep(todo.seconds),
            Receive: self._begin_to_receive,
            Hide: self._hide,
            Delete: self._delete,
            Arrange: lambda todo: forwarding.arrange(todo.ended, source),
            Keep: lambda todo: forwarding.keep(todo.waits, source),
            Send: lambda todo: forwarding.send(self._queue(todo.to), [(todo.order, todo.delay_s)]),
            ToSlowLane: lambda todo: forwarding.send_packed(self._queue(To.SLOW_LANE), todo.orders),
            Read: self._read,
            Glance: self._glance,
            ReadSlowList: lambda todo: self._slow_list(orders=todo.orders),
            ListSlow: lambda todo: self._slow_list(new=todo.addressees),
            Take: lambda todo: _granted(leases.take(todo.addressee, todo.queue, todo.terms, todo.part)),
            AnswerWakeUp: lambda todo: _granted(leases.answer(todo.order)),
            Hold: lambda todo: leases.hold(todo.lease),
            GiveBack: self._give_back,
            AddToBacklog: lambda todo: leases.add(todo.addressee, todo.orders, push.clock.now()),
            Look: lambda todo: leases.look(todo.lease),
            ClearOut: lambda todo: leases.clear_out(todo.lease, todo.busy),
            Settle: lambda todo: leases.settle(todo.lease, todo.received, keep=todo.keep),
            SettleDuplicates: lambda todo: leases.settle_duplicates(todo.lease, todo.in_hand),
            Arranged: lambda todo: leases.arranged(todo.lease, todo.received, keep=todo.keep),
            SettleAside: lambda todo: leases.settle_aside(todo.orders),
            Count: lambda todo: push.telemetry.count(todo.name, todo.number),
            TellFault: lambda todo: self._tell_fault(todo.received, todo.error),
        }

    def do(self, action: Action[Any]) -> Any:
        """Do something, and return what came of it; None if a call failed."""
        try:
            return self._do[type(action)](action)
        except Unavailable as error:
            self._failed.tell(action.failure, error, **action.identity)
            return None

    # -- attempts

    def _begin(self, todo: Begin) -> None:
        attempt = self._push.executor.submit(self._attempt, todo)
        self._attempts[todo.number], self._numbers[attempt] = attempt, todo.number
        self._finished.expect(attempt)

    def _may_take_ms(self) -> int:
        """How long an attempt that begins now may take."""
        return min(self._remaining_ms(), self._push.longest_ms)

    def _attempt(self, todo: Begin) -> Following:
        """Work on one delivery in its own thread; an internal error must not affect its neighbours."""
        received = todo.loaded.received
        terms = todo.lease.terms if todo.lease else None
        may_ask = todo.lease.pace.asks if todo.lease else None
        try:
            return self._push.deliver.run(todo.loaded, self._may_take_ms, terms, may_ask)
        except Exception as error:  # noqa: BLE001 (the dead-letter queue keeps it in sight)
            now = self._push.clock.now()
            if not isinstance(error, Unavailable) or isinstance(error, Unreadable):
                self._tell_fault(received, error)
                # Until somebody mends us: it must not use up its receives in an hour.
                until = unsure(received, now, MAX_DELAY_MS).until
                return Following(Follow.FAULT, until, answered=False, terms=terms)
            self._failed.tell("attempt_unrecorded", error, **received.order.identity)
        # A request may have been made.
        return Following(Follow.LATER, unsure(received, now).until, answered=False, terms=terms)

    def _tell_fault(self, received: Received, error: Exception) -> None:
        self._push.telemetry.count("PushFaults")
        self._push.telemetry.event("push_fault", **described(error), **received.order.identity)

    def _await(self, todo: Await) -> Completions:
        futures = self._finished.take(todo.at_most_s)
        ended = {self._numbers.pop(each): each.result() for each in futures if each in self._numbers}
        for number in ended:
            del self._attempts[number]
        if self._receive is None or self._receive not in futures:
            return Completions(ended)
        receive, self._receive = self._receive, None
        try:
            batch = receive.result()
        except Unavailable as error:
            self._failed.tell("orders_not_received", error)
            return Completions(ended, over=True)
        self._in_hand.take(batch)
        return Completions(ended, batch, over=True)

    # -- SQS messages

    def _begin_to_receive(self, todo: Receive) -> None:
        self._receive = self._push.executor.submit(self._source.receive, todo.wait_s)
        self._finished.expect(self._receive)

    def _hide(self, todo: Hide) -> None:
        failed = self._in_hand.keep_hidden(todo.kept)
        if failed:
            self._push.telemetry.event("visibility_unchanged", error="refused", orders=len(failed))

    def _delete(self, todo: Delete) -> None:
        self._in_hand.let_go(todo.handles)
        done = [handle for sqs_id, handle in todo.handles.items() if sqs_id not in todo.kept]
        if done:
            self._source.delete(done)

    def _queue(self, to: To) -> WorkQueue:
        queues = self._push.queues
        if to is To.SLOW_LANE and queues.slow_lane is not None:
            return queues.slow_lane.queue
        return queues.poll if to is To.POLL else queues.retry

    # -- deliveries, and slow subscribers

    def _read(self, todo: Read) -> States:
        """Read deliveries and messages; if the items of some cannot be read, deliveries one by one, and messages when
        they are needed.
        """
        read_at = self._push.clock.now()
        try:
            found, messages = self._push.reads.read(todo.keys, todo.messages)
            return States(found, {}, messages, read_at)
        except Unreadable:
            found = {}
            damaged: dict[DeliveryKey, Unreadable] = {}
            for key in todo.keys:
                try:
                    found |= self._push.reads.read([key])[0]
                except Unreadable as error:
                    damaged[key] = error
            return States(found, damaged, {}, read_at)

    def _glance(self, todo: Glance) -> Mapping[DeliveryKey, Delivery]:
        with suppress(Unavailable):
            return self._push.reads.glance(todo.keys)
        return {}

    def _slow_list(self, *, orders: int = 0, new: Sequence[Addressee] = ()) -> Mapping[Addressee, int]:
        lane = self._push.queues.slow_lane
        if lane is None:
            return {}
        lane.refresh(orders)
        lane.tell(new)
        return lane.listed

    # -- leases

    def _give_back(self, todo: GiveBack) -> bool:
        return self._push.leases.give_back(
            todo.lease,
            places=todo.places,
            wake_up_ms=todo.wake_up_ms,
            to=self._queue(todo.to),
            attempted=todo.attempted,
        )


def _granted(taken: tuple[Any, int] | None) -> Granted:
    """What came of asking for a lease."""
    return Granted(*taken) if taken else Granted(None)
