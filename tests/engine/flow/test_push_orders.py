"""What happens to an order after its delivery was processed: given up, passed on, or kept; on in-memory queues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import Any

import pytest
from tests.contract.samples import message
from tests.fakes import Crash, FakeClock, FakeWorkQueue, Fault, FaultPlan, faulty
from tests.fakes.attempt_reads import FakeAttemptReads
from tests.fakes.config_store import FakeConfigStore
from tests.fakes.ports import InlineExecutor
from tests.fakes.subscribers import FakeSubscribers
from tests.fakes.telemetry import FakeTelemetry

from pushhub.base.errors import Unavailable
from pushhub.engine.attempts.job import LONGEST_ATTEMPT_MS, MayAsk
from pushhub.engine.flow.delivery_reads import DeliveryReads
from pushhub.engine.flow.forwarding import (
    FRESH_AFTER_MS,
    FRESH_AFTER_RECEIVES,
    HIDDEN_WAIT_MS,
    NextQueues,
)
from pushhub.engine.flow.in_hand import HIDDEN_S, PROMPT_MS
from pushhub.engine.flow.leases import Leases
from pushhub.engine.flow.push import Push
from pushhub.engine.flow.slow_lane import SlowLane
from pushhub.engine.model import run as module
from pushhub.engine.model.actions import Begin
from pushhub.engine.model.backoff import MAX_DELAY_MS
from pushhub.engine.model.concurrency import SLOW_MS
from pushhub.engine.model.delivery import Delivery, opening
from pushhub.engine.model.flow import SHORT_ATTEMPT_MS, FlowKey, Limits, Terms
from pushhub.engine.model.following import UNSURE_WAIT_MS, Follow, Following
from pushhub.engine.model.keys import DeliveryKey, MessageKey
from pushhub.engine.model.message import Message
from pushhub.engine.model.received import Loaded, Received
from pushhub.engine.model.run import REFILL_AFTER_MS
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.projects.copies import Changes

Outcome = Following | Exception | list[Following]
LOOKS = 5_000
"""Reads of the clock after which a run counts as endless."""


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test really waits."""
    monkeypatch.setattr(module, "FLUSH_SECONDS", 0)


class BoundedClock(FakeClock):
    """A clock that can be read a limited number of times, and that may trigger something when read."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        self.at_look: dict[int, Callable[[], None]] = {}

    def now(self) -> int:
        self.looks += 1
        assert self.looks < LOOKS, "the run does not end"
        self.at_look.pop(self.looks, lambda: None)()
        return super().now()


class Bench:
    """A push whose deliveries have the outcome that the test sets."""

    def __init__(self, plan: FaultPlan | None = None, *, lane: bool = True, long: bool = False) -> None:
        self.plan = plan or FaultPlan()
        self.clock = BoundedClock()
        self.telemetry = FakeTelemetry()
        self.queues = {
            name: FakeWorkQueue(self.clock, name=name) for name in ("push", "retry", "errors", "poll", "slow")
        }
        self.stored: dict[DeliveryKey, Delivery] = {}
        self.outcomes: dict[str, Outcome] = {}
        self.looked_at: list[tuple[Received, Delivery | None]] = []
        self.before: dict[DeliveryKey, Delivery] | None = None
        self.read: list[float] = []
        self.subscribers = FakeSubscribers()
        self.remaining_ms = 10**6
        self.longest_ms = LONGEST_ATTEMPT_MS if long else SHORT_ATTEMPT_MS
        self._takes: dict[str, int] = {}
        self.ports = {name: faulty(queue, name, self.plan) for name, queue in self.queues.items()}
        slow_lane = (
            SlowLane(
                queue=self.ports["slow"], subscribers=self.subscribers, clock=self.clock, telemetry=FakeTelemetry()
            )
            if lane
            else None
        )
        self.push = Push(
            reads=self._reads(),
            deliver=self,  # type: ignore[arg-type]
            queues=NextQueues(
                retry=self.ports["retry"], poll=self.ports["poll"], errors=self.ports["errors"], slow_lane=slow_lane
            ),
            leases=Leases(
                store=self.subscribers, calls=self.ports["retry"], clock=self.clock, telemetry=FakeTelemetry()
            ),
            clock=self.clock,
            telemetry=self.telemetry,
            executor=InlineExecutor(),
            longest_ms=self.longest_ms,
        )

    def _reads(self) -> DeliveryReads:
        messages: Any = faulty(self, "messages", self.plan)
        config = FakeConfigStore()
        together = FakeAttemptReads(messages, config)
        return DeliveryReads(messages=messages, together=together, changes=Changes(config, FakeClock()))

    def deliveries(self, keys: Sequence[DeliveryKey], *, consistent: bool = True) -> dict[DeliveryKey, Delivery]:
        """As the store of deliveries; a read that is not consistent shows :attr:`before`, if there is one."""
        self.read.append(len(keys) if consistent else len(keys) / 2)
        stored = self.stored if consistent or self.before is None else self.before
        return {key: stored[key] for key in keys if key in stored}

    def messages(self, keys: Sequence[MessageKey]) -> dict[MessageKey, Message]:
        """As the store of messages: all are there."""
        return {each: a_message(each.message_id) for each in keys}

    def run(
        self,
        loaded: Loaded,
        remaining_ms: Callable[[], int],
        terms: Terms | None,
        may_ask: MayAsk | None,
    ) -> Following:
        """As what carries a delivery on."""
        del terms, may_ask
        received = loaded.received
        assert remaining_ms() == min(self.remaining_ms, self.longest_ms)
        self.looked_at.append((received, loaded.stored))
        self.clock.advance(ms=self._takes.get(received.order.key.message_id, 0))
        outcome = self.outcomes.get(received.order.key.message_id, Following(Follow.NOTHING))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome.pop(0) if isinstance(outcome, list) else outcome

    def received(self, source: str = "push", *orders: WorkOrder, times: int = 1) -> list[Received]:
        """Orders, received from a queue so many times."""
        for each in orders:
            self.queues[source].send([(each, 0)])
        batch: list[Received] = []
        for _ in range(times):
            batch = self.queues[source].receive()
            if times > 1:
                self.clock.advance(seconds=1200)
        if times > 1:
            self.clock.advance(seconds=-1200)
        return batch

    def work(self, batch: Sequence[Received], source: str = "push") -> set[str]:
        """Let push work on a batch; returns the SQS ids to keep. The others are deleted, as Lambda does."""
        keep = self.push.run(batch, source=self.ports[source], remaining_ms=lambda: self.remaining_ms)
        self.queues[source].delete([each.receipt_handle for each in batch if each.sqs_id not in keep])
        return keep

    def follow(self, follow: Follow, wait_ms: int = 0, of: str = "1") -> None:
        """Set the outcome of a delivery."""
        self.outcomes[of] = Following(follow, self.clock.now() + wait_ms)

    def takes(self, takes_ms: int, *, of: str) -> None:
        """Let an attempt take this long."""
        self._takes[of] = takes_ms

    def waits(self, source: str) -> int | None:
        """Milliseconds until the next message of a queue can be received."""
        at = self.queues[source].next_at()
        return None if at is None else at - self.clock.now()


def a_message(message_id: str = "1", to: str = "s") -> Message:
    ids = {"project": "p", "queue": "orders", "queue_uid": "u", "message_id": message_id}
    return message(**ids, body=b"x", accepted_at=1, due_at=1, expires_at=10**15, subscriber_ids=(to,))


def an_order(message_id: str = "1", to: str = "s", **changes: object) -> WorkOrder:
    return replace(WorkOrder.carrying(a_message(message_id, to), to), **changes)  # type: ignore[arg-type]


def bare(message_id: str = "1") -> WorkOrder:
    """The order without the message."""
    return an_order(message_id, message=None)


def a_stored(message_id: str = "1", *, version: int = 3) -> Delivery:
    return replace(opening(a_message(message_id), "s"), version=version)


# -- where a wait is spent


def test_what_is_over_is_given_up() -> None:
    bench = Bench()
    assert bench.work(bench.received("push", an_order())) == set()
    assert [len(each) for each in bench.queues.values()] == [0] * 5
    assert bench.telemetry.events == []
    assert bench.telemetry.counts == {}


@pytest.mark.parametrize(("follow", "to"), [(Follow.LATER, "retry"), (Follow.POLL, "poll")])
@pytest.mark.parametrize(
    ("wait_ms", "delay_s"), [(-5, 0), (0, 0), (1, 1), (60_000, 60), (60_001, 61), (MAX_DELAY_MS + 1, 900)]
)
def test_a_wait_is_spent_in_the_queue_that_it_belongs_to(follow: Follow, to: str, wait_ms: int, delay_s: int) -> None:
    # Given a delivery that is to be processed later, with an order from another queue
    bench = Bench()
    bench.follow(follow, wait_ms)
    assert bench.work(bench.received("push", an_order(version=3))) == set()
    # Then the order waits there, with its message, for whatever its delivery is then
    assert bench.queues[to].sent == [(an_order(), delay_s)]
    assert sum(len(each) for each in bench.queues.values()) == 1


@pytest.mark.parametrize(("follow", "source"), [(Follow.LATER, "retry"), (Follow.POLL, "poll")])
def test_a_wait_of_up_to_a_minute_is_spent_where_the_order_is_and_a_longer_one_in_a_new_message(
    follow: Follow, source: str
) -> None:
    for wait_ms, messages in ((HIDDEN_WAIT_MS, 1), (HIDDEN_WAIT_MS + 1, 2)):
        bench = Bench()
        batch = bench.received(source, an_order())
        bench.follow(follow, wait_ms)
        keep = bench.work(batch, source)
        assert (len(keep), len(bench.queues[source].sent)) == (2 - messages, messages)
        assert bench.waits(source) == -(-wait_ms // 1000) * 1000


def test_each_of_a_batch_goes_its_own_way() -> None:
    # Given one order for each thing that can follow, of the retry queue
    bench = Bench()
    batch = bench.received("retry", *(an_order(str(number)) for number in range(1, 7)))
    bench.follow(Follow.LATER, 5_000, of="2")
    bench.follow(Follow.LATER, 90_000, of="3")
    bench.follow(Follow.POLL, 7_000, of="4")
    bench.follow(Follow.ERROR, of="5")
    bench.follow(Follow.FAULT, 20_000, of="6")
    # When they are worked on
    keep = bench.work(batch, "retry")
    # Then the second and the sixth stay, each for its time, and the others are elsewhere
    assert keep == {batch[1].sqs_id, batch[5].sqs_id}
    assert bench.queues["retry"].sent[6:] == [(an_order("3"), 90)]
    assert bench.queues["poll"].sent == [(an_order("4"), 7)]
    assert bench.queues["errors"].sent == [(bare("5"), 0)]
    bench.clock.advance(seconds=5)
    assert [each.order.key.message_id for each in bench.queues["retry"].receive()] == ["2"]
    bench.clock.advance(seconds=15)
    assert [each.order.key.message_id for each in bench.queues["retry"].receive()] == ["6"]


def test_what_is_given_up_goes_to_the_errors_queue_without_its_message_and_for_any_version() -> None:
    bench = Bench()
    bench.follow(Follow.ERROR)
    assert bench.work(bench.received("push", an_order(version=1))) == set()
    assert bench.queues["errors"].sent == [(bare(), 0)]


# -- failed calls of our own


def test_what_cannot_be_given_up_is_looked_at_again() -> None:
    bench = Bench(FaultPlan(Fault.FAILS, of="errors.send_packed"))
    bench.follow(Follow.ERROR)
    [received] = bench.received("push", an_order())
    assert bench.work([received]) == {received.sqs_id}
    assert bench.waits("push") == UNSURE_WAIT_MS
    assert bench.telemetry.events == [("orders_not_sent", {"error": "errors.send_packed failed", "orders": 1})]
    assert bench.telemetry.counts == {"CallsFailed": 1}


@pytest.mark.parametrize(("follow", "call"), [(Follow.LATER, "retry.send"), (Follow.POLL, "poll.send")])
def test_what_cannot_be_handed_on_is_looked_at_again(follow: Follow, call: str) -> None:
    bench = Bench(FaultPlan(Fault.FAILS, of=call))
    bench.follow(follow, 300_000)
    [received] = bench.received("push", an_order())
    assert bench.work([received]) == {received.sqs_id}
    assert bench.waits("push") == UNSURE_WAIT_MS
    assert bench.telemetry.events == [("orders_not_sent", {"error": f"{call} failed", "orders": 1})]


@pytest.mark.parametrize(
    ("receives", "wait_ms"), [(1, 10_000), (2, 20_000), (3, 40_000), (4, 80_000), (5, 120_000), (30, 120_000)]
)
def test_the_more_often_the_longer_up_to_two_minutes(receives: int, wait_ms: int) -> None:
    bench = Bench()
    bench.outcomes["1"] = Unavailable("dynamodb:PutItem")
    batch = bench.received("retry", an_order(), times=receives)
    bench.work(batch, "retry")
    assert bench.waits("retry") == wait_ms
    identity = {"project": "p", "queue": "orders", "message_id": "1", "subscriber_id": "s"}
    assert bench.telemetry.events == [("attempt_unrecorded", {"error": "dynamodb:PutItem failed", **identity})]
    assert bench.telemetry.counts == {"CallsFailed": 1}


@pytest.mark.parametrize(("receives", "wait_ms"), [(7, 640_000), (8, 900_000), (30, 900_000)])
def test_after_a_fault_of_ours_up_to_a_quarter_of_an_hour(receives: int, wait_ms: int) -> None:
    bench = Bench()
    bench.outcomes["1"] = KeyError("a fault of ours")
    bench.work(bench.received("push", an_order(), times=receives))
    assert bench.waits("push") == wait_ms


def test_a_fault_of_ours_leaves_the_order_in_its_queue_and_its_neighbours_alone() -> None:
    # Given two orders, our own code failing on the first
    bench = Bench()
    bench.outcomes["1"] = KeyError("https://secret")
    batch = bench.received("push", an_order("1"), an_order("2"))
    # Then it stays where it will reach the dead-letter queue, however often it was received
    assert bench.work(batch) == {batch[0].sqs_id}
    assert bench.waits("push") == UNSURE_WAIT_MS
    assert [each.order.key.message_id for each, _ in bench.looked_at] == ["1", "2"]
    assert bench.telemetry.counts == {"PushFaults": 1}
    [(name, fields)] = bench.telemetry.events
    assert (name, fields["error"], fields["message_id"]) == ("push_fault", "KeyError", "1")


def test_a_fault_is_not_handed_on_however_worn_its_message_is() -> None:
    bench = Bench()
    bench.outcomes["1"] = KeyError("x")
    batch = bench.received("push", an_order(), times=FRESH_AFTER_RECEIVES)
    assert bench.work(batch) == {batch[0].sqs_id}
    assert len(bench.queues["push"].sent) == 1


def test_when_deliveries_cannot_be_read_nothing_is_looked_at_yet() -> None:
    bench = Bench(FaultPlan(Fault.FAILS, of="messages.deliveries"))
    batch = bench.received("push", an_order("1"), an_order("2"))
    assert bench.work(batch) == {each.sqs_id for each in batch}
    assert bench.looked_at == []
    assert bench.waits("push") == UNSURE_WAIT_MS
    assert bench.telemetry.events == [("states_unreadable", {"error": "messages.deliveries failed", "orders": 2})]


def test_what_cannot_be_hidden_is_kept_all_the_same() -> None:
    bench = Bench(FaultPlan(Fault.FAILS, of="retry.defer"))
    bench.work([], "retry")
    bench.follow(Follow.LATER, 5_000)
    [received] = bench.received("retry", an_order())
    assert bench.work([received], "retry") == {received.sqs_id}
    assert bench.telemetry.events == [("visibility_unchanged", {"error": "retry.defer failed", "orders": 1})]
    # And so are messages that SQS refuses to hide, because they are no longer in flight
    bench = Bench()
    bench.work([], "retry")
    bench.follow(Follow.LATER, 5_000)
    [received] = bench.received("retry", an_order())
    bench.queues["retry"].purge()
    assert bench.work([received], "retry") == {received.sqs_id}
    assert bench.telemetry.events == [("visibility_unchanged", {"error": "refused", "orders": 1})]
    assert bench.telemetry.counts == {}


# -- messages that wear out


@pytest.mark.parametrize(("receives", "messages"), [(FRESH_AFTER_RECEIVES - 1, 1), (FRESH_AFTER_RECEIVES, 2)])
def test_a_message_received_often_is_replaced(receives: int, messages: int) -> None:
    bench = Bench()
    batch = bench.received("retry", an_order(version=3), times=receives)
    bench.follow(Follow.LATER, 5_000)
    assert len(bench.work(batch, "retry")) == 2 - messages
    assert bench.queues["retry"].sent[1:] == [(an_order(), 5)] * (messages - 1)
    assert len(bench.queues["retry"]) == 1


@pytest.mark.parametrize(("age_ms", "messages"), [(FRESH_AFTER_MS - 1, 1), (FRESH_AFTER_MS, 2)])
def test_an_old_message_is_replaced(age_ms: int, messages: int) -> None:
    bench = Bench()
    bench.queues["retry"].send([(an_order(), 0)])
    bench.clock.advance(ms=age_ms)
    bench.follow(Follow.LATER, 5_000)
    bench.work(bench.received("retry"), "retry")
    assert len(bench.queues["retry"].sent) == messages


def test_one_whose_age_is_not_known_is_not_old() -> None:
    bench = Bench()
    [received] = bench.received("retry", an_order())
    bench.follow(Follow.LATER, 5_000)
    assert bench.work([replace(received, sent_at=None)], "retry") == {received.sqs_id}


def test_one_that_cannot_be_replaced_is_kept() -> None:
    # Given a worn message and a fresh one
    bench = Bench()
    [worn] = bench.received("retry", an_order("1"), times=FRESH_AFTER_RECEIVES)
    [fresh] = bench.received("retry", an_order("2"))
    for each in ("1", "2"):
        bench.follow(Follow.LATER, 5_000, of=each)
    bench.plan.strike(Fault.FAILS, of="retry.send")
    # Then both wait where they are
    assert bench.work([worn, fresh], "retry") == {worn.sqs_id, fresh.sqs_id}
    assert bench.waits("retry") == 5_000


# -- subscribers that are slow


def deferred(bench: Bench, source: str) -> list[tuple[str, int]]:
    """Message ids and delays of the orders sent to a queue after those that the test sent."""
    return [(order.key.message_id, delay_s) for order, delay_s in bench.queues[source].sent]


def test_a_poll_that_is_put_aside_stays_a_poll() -> None:
    bench = Bench(lane=False)
    bench.stored[an_order("2").key] = replace(a_stored("2"), update_url="https://a.example/status")
    bench.takes(SLOW_MS + 1, of="1")
    bench.work(bench.received("push", an_order("1"), an_order("2")))
    assert (deferred(bench, "poll"), deferred(bench, "retry")) == ([("2", 15)], [])


def test_a_poll_never_goes_to_the_slow_lane() -> None:
    bench = Bench()
    bench.stored[an_order("2").key] = replace(a_stored("2"), update_url="https://a.example/status")
    bench.takes(SLOW_MS + 1, of="1")
    bench.work(bench.received("push", an_order("1"), an_order("2")))
    assert (deferred(bench, "poll"), deferred(bench, "slow")) == ([("2", 15)], [])
    # Nor from the poll queue, nor back to it
    bench = Bench(long=True)
    bench.stored[an_order("2").key] = replace(a_stored("2"), update_url="https://a.example/status")
    bench.takes(SLOW_MS + 1, of="1")
    assert bench.work(bench.received("poll", an_order("1"), an_order("2"), an_order("3")), "poll") == {"sqs-2"}
    assert [each.key.message_id for each, _ in bench.queues["slow"].sent] == ["3"]
    bench = Bench(long=True)
    bench.stored[an_order("2").key] = replace(a_stored("2"), update_url="https://a.example/status")
    bench.takes(SLOW_MS + 1, of="1")
    bench.work(bench.received("slow", an_order("1")), "slow")
    bench.remaining_ms = 2 * LONGEST_ATTEMPT_MS - 1
    bench.work(bench.received("slow", an_order("2")), "slow")
    assert (deferred(bench, "poll"), len(bench.queues["slow"])) == ([("2", 15)], 0)


def test_a_retry_of_one_that_is_still_slow_waits_in_the_slow_lane_and_of_a_prompt_one_does_not() -> None:
    # Given two attempts from the slow lane that fail, one of them slowly
    bench = Bench()
    bench.takes(SLOW_MS + 1, of="1")
    for each in ("1", "2"):
        bench.follow(Follow.LATER, 60_000 + SLOW_MS + 1, of=each)
    assert bench.work(bench.received("slow", an_order("1"), an_order("2", to="prompt")), "slow") == set()
    assert deferred(bench, "slow")[2:] == [("1", 60)]
    assert deferred(bench, "retry") == [("2", 60)]


def test_a_retry_that_the_slow_lane_does_not_take_is_looked_at_again() -> None:
    bench = Bench()
    bench.takes(SLOW_MS + 1, of="1")
    bench.follow(Follow.LATER, 90_000)
    batch = bench.received("slow", an_order("1"))
    bench.plan.strike(Fault.FAILS, of="slow.send")
    assert bench.work(batch, "slow") == {batch[0].sqs_id}
    assert bench.waits("slow") == UNSURE_WAIT_MS


# -- orders that a run receives itself


class Meanwhile(Executor):
    """Attempts are in progress until nothing is left to receive; then all of them end at once.

    Attributes:
        begins_ms: How long the attempts that begin take until the next look, one after the other.
        receives: How often orders were received.
        most: Most attempts in progress at the same time.
        receiving: While set, receives are in progress, too.
    """

    def __init__(self, bench: Bench, *begins_ms: int) -> None:
        self.bench = bench
        self.begins_ms = [*begins_ms]
        self.pending: list[tuple[Future[object], Callable[[], object]]] = []
        self.receives = 0
        self.most = 0
        self.receiving = False
        self.over = False

    def submit(self, fn: Callable[..., object], /, *args: object, **kwargs: object) -> Future[object]:  # type: ignore[override]
        future: Future[object] = Future()
        receives = not (args and isinstance(args[0], Begin))
        self.receives += receives
        if not self.over and (self.receiving or not receives):
            if not receives:
                self.bench.clock.advance(ms=self.begins_ms.pop(0) if self.begins_ms else 0)
            self.pending.append((future, lambda: fn(*args, **kwargs)))
            self.most = max(self.most, len(self.pending))
            return future
        try:
            future.set_result(fn(*args, **kwargs))
        except Unavailable as error:
            future.set_exception(error)
        if receives and not future.exception() and not future.result():
            self.end()
        return future

    def end(self) -> None:
        """End all attempts."""
        self.over = True
        for each, result in self.pending:
            each.set_result(result())


def with_meanwhile(
    *begins_ms: int,
    plan: FaultPlan | None = None,
    lane: bool = True,
    long: bool = False,
    ends_at_look: int | None = None,
) -> tuple[Bench, Meanwhile]:
    bench = Bench(plan, lane=lane, long=long)
    executor = Meanwhile(bench, *(begins_ms or (REFILL_AFTER_MS,)))
    bench.push.__dict__["executor"] = executor
    if ends_at_look is not None:
        bench.clock.at_look[ends_at_look] = executor.end
    return bench, executor


def test_a_run_that_waits_receives_more_and_deletes_what_it_is_through_with() -> None:
    # Given a run whose attempt takes half a second, and two orders more in its queue, one of which will have to wait
    bench, executor = with_meanwhile()
    batch = bench.received("push", an_order("1"))
    bench.queues["push"].send([(an_order("2", to="b"), 0), (an_order("3", to="c"), 0)])
    bench.outcomes["3"] = KeyError("a fault of ours")
    assert bench.work(batch) == set()
    assert executor.receives == 2
    assert sorted(each.order.key.message_id for each, _ in bench.looked_at) == ["1", "2", "3"]
    # Then of what it received itself only the one that waits is left
    assert [each.key.message_id for each in bench.queues["push"].orders()] == ["3"]


def test_what_cannot_be_deleted_comes_again() -> None:
    bench, _ = with_meanwhile(plan=FaultPlan(Fault.FAILS, of="push.delete"))
    batch = bench.received("push", an_order("1"))
    bench.queues["push"].send([(an_order("2", to="b"), 0)])
    assert bench.work(batch) == set()
    assert bench.telemetry.events == [("orders_not_deleted", {"error": "push.delete failed", "orders": 1})]
    assert [each.key.message_id for each in bench.queues["push"].orders()] == ["2"]


def test_a_run_that_cannot_receive_does_not_try_again() -> None:
    bench, executor = with_meanwhile(plan=FaultPlan(Fault.FAILS, of="push.receive"), ends_at_look=200)
    assert bench.work(bench.received("push", an_order("1"))) == set()
    assert bench.telemetry.events == [("orders_not_received", {"error": "push.receive failed"})]
    assert executor.receives == 1


@pytest.mark.parametrize("source", ["push", "slow"])
@pytest.mark.parametrize("follow", [Follow.ANOTHER, Follow.NOTHING, Follow.LATER, Follow.POLL, Follow.ERROR])
def test_an_order_that_comes_while_the_first_is_put_behind_another_is_carried_out(follow: Follow, source: str) -> None:
    # Given an order that is put behind another delivery, which ends in that moment and lets it go (policies 4 of the
    # simulator): the order that it sends comes, twice, before the run is done with the first
    bench, _ = with_meanwhile()
    batch = bench.received(source, an_order("1"))
    bench.queues[source].send([(bare("1"), 0), (bare("1"), 0)])
    bench.outcomes["1"] = [Following(follow), Following(Follow.NOTHING)]
    assert bench.work(batch, source) == set()
    # Then it is looked at, once; but not if the first goes on by itself
    looks = [each.order.message is None for each, _ in bench.looked_at]
    assert looks == ([False, True] if follow is Follow.ANOTHER else [False])
    assert len(bench.queues[source]) == 0


@pytest.mark.parametrize("together", [1, 2])
def test_an_order_that_comes_too_late_for_its_try_leaves_it_to_the_other(together: int) -> None:
    # Given ingest's order, too late for the only try that it is for, and the stream's for the same delivery
    bench, _ = with_meanwhile()
    late, other = an_order("1", until=1), an_order("1", second=True, message=None)
    batch = bench.received("push", *[late, other][:together])
    if together == 1:
        bench.queues["push"].send([(other, 0)])
    bench.outcomes["1"] = [Following(Follow.ANOTHER), Following(Follow.NOTHING)]
    bench.work(batch)
    # Then that makes the try, whether they come together or one after the other
    assert [each.order.until for each, _ in bench.looked_at] == [1, None]
    assert len(bench.queues["push"]) == 0


@pytest.mark.parametrize("source", ["push", "slow"])
@pytest.mark.parametrize("ms", [PROMPT_MS - 1, PROMPT_MS])
def test_what_a_run_has_in_hand_is_hidden_for_a_minute_once_it_works_for_half_a_second(ms: int, source: str) -> None:
    # Given a run that follows another, waits for an answer, and has received another order meanwhile
    bench, executor = with_meanwhile(ms)
    bench.work([], source)
    batch = bench.received(source, an_order("1"))
    bench.queues[source].send([(an_order("2", to="b"), 0)])
    hidden: list[int] = []

    def look(end: Callable[[], None] = executor.end) -> None:
        waits = [each.visible_at - bench.clock.now() for each in bench.queues[source]._stored.values()]
        hidden.extend(each for each in waits if each > 0)
        end()

    executor.end = look  # type: ignore[method-assign]
    bench.clock.at_look[200] = look
    bench.work(batch, source)
    # Then, if it had died before its end, its orders would have come back that soon
    assert hidden == ([1000 * HIDDEN_S] * 2 if ms >= PROMPT_MS else [1_200_000 - ms])


def test_what_a_long_run_has_in_hand_is_hidden_before_its_first_read() -> None:
    # Given a run that dies over its first read
    for long, hidden in ((True, 1000 * HIDDEN_S), (False, 1_200_000)):
        bench = Bench(FaultPlan(Fault.CRASHES_BEFORE, of="messages.deliveries"), long=long)
        batch = bench.received("poll", an_order("1"))
        with pytest.raises(Crash):
            bench.work(batch, "poll")
        [stored] = bench.queues["poll"]._stored.values()
        assert stored.visible_at - bench.clock.now() == hidden


def too_long(limits: Limits | None = None, longest_ms: int = SHORT_ATTEMPT_MS + 1) -> Following:
    """What becomes of an order whose attempt may take longer than its run lasts."""
    return Following(Follow.LATER, 0, terms=Terms(limits=limits or Limits(), longest_ms=longest_ms), long=True)


def test_what_may_take_longer_than_a_short_run_goes_to_the_long_ones_at_once() -> None:
    bench = Bench()
    bench.outcomes |= dict.fromkeys("123", too_long())
    orders = [an_order("1", version=None), an_order("2", until=10**15), an_order("3", manual=True)]
    assert bench.work(bench.received("push", *orders)) == set()
    # Then it goes by whatever state its delivery has by then, and what is for a hurry or a person's try still is
    assert bench.queues["poll"].sent == [(each, 0) for each in orders]
    assert bench.queues["retry"].sent == []


def test_what_the_poll_queue_does_not_take_is_looked_at_again() -> None:
    bench = Bench(FaultPlan(Fault.FAILS, of="poll.send_packed"))
    bench.outcomes["1"] = too_long()
    assert len(bench.work(bench.received("push", an_order("1")))) == 1
    assert bench.waits("push") == UNSURE_WAIT_MS


def test_a_retry_waits_where_its_attempt_can_be_made() -> None:
    for long, queue in ((True, "poll"), (False, "retry")):
        for source in ("push", "poll", "slow"):
            bench = Bench(long=source != "push")
            bench.outcomes["1"] = Following(Follow.LATER, bench.clock.now() + 90_000, answered=False, long=long)
            bench.work(bench.received(source, an_order("1")), source)
            assert [(each.key.message_id, delay_s) for each, delay_s in bench.queues[queue].sent[-1:]] == [("1", 90)]


def test_all_that_cannot_be_handed_on_is_kept_whatever_it_waits_for() -> None:
    # Given queues that accept nothing
    def refuse(*given: object) -> None:
        raise Unavailable("sqs")

    bench = Bench()
    batch = bench.received("retry", *(an_order(each, to=each) for each in "1234"))
    for name in ("errors", "poll", "retry"):
        bench.queues[name].send = bench.queues[name].send_packed = refuse  # type: ignore[method-assign, assignment]
    bench.follow(Follow.ERROR, of="1")
    bench.follow(Follow.LATER, 5_000, of="2")
    bench.follow(Follow.LATER, 100_000, of="3")
    bench.follow(Follow.POLL, 5_000, of="4")
    assert bench.work(batch, "retry") == {each.sqs_id for each in batch}
    # And so it is in the slow lane
    bench = Bench()
    batch = bench.received("slow", *(an_order(each, to=each) for each in "12"))
    for name in ("errors", "slow"):
        bench.queues[name].send = bench.queues[name].send_packed = refuse  # type: ignore[method-assign, assignment]
    bench.follow(Follow.ERROR, of="1")
    bench.takes(SLOW_MS + 1, of="2")
    bench.follow(Follow.LATER, 5_000, of="2")
    assert bench.work(batch, "slow") == {each.sqs_id for each in batch}


def test_an_order_from_the_backlog_that_cannot_be_put_back_stays_where_it_stood() -> None:
    # Given an order in the line of a subscriber with a rate, and a wake-up for its lease
    bench = Bench()
    flow, now = FlowKey.of_subscriber("p", "u", "s"), bench.clock.now()
    terms = Terms(limits=Limits(rate_per_s=0.1), longest_ms=10_000)
    bench.subscribers.take_lease(flow, "earlier", terms, now=now, until=now + 1)
    bench.subscribers.give_back(flow, "earlier", mark=now * 1000 + 10**7, places=1)
    bench.subscribers.add_to_backlog(flow, [bare()], now)

    def fails(*_: object) -> None:
        raise Unavailable("the line")

    bench.subscribers.list_backlog = fails  # type: ignore[method-assign,assignment]

    class Late(InlineExecutor):
        """Attempts take some rounds of the run."""

        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            bench.clock.at_look[bench.clock.looks + 40] = lambda: future.set_result(fn(*args, **kwargs))
            return future

    bench.push.__dict__["executor"] = Late()
    # When the terms are asked for, and the run has meanwhile given the turn back, taken it again, and found the order
    # a second time
    bench.outcomes["1"] = Following(Follow.LEASE, terms=terms)
    wake_up = WorkOrder.wake_up(DeliveryKey("p", "u", "", "s"), "orders")
    bench.work(bench.received("retry", wake_up), "retry")
    # Then it still stands in the line, as there is nothing else of it
    assert [each.key.message_id for place in bench.subscribers.backlog(flow, 9) for each in place.orders] == ["1"]


def a_wake_up(bench: Bench, *standing: WorkOrder) -> list[Received]:
    """A wake-up for the lease at a subscriber whose next attempt is ten seconds away; in one entry of its backlog are
    some orders.
    """
    flow, now = FlowKey.of_subscriber("p", "u", "s"), bench.clock.now()
    terms = Terms(limits=Limits(rate_per_s=2), longest_ms=10_000)
    bench.subscribers.take_lease(flow, "earlier", terms, now=now, until=now + 1)
    bench.subscribers.give_back(flow, "earlier", mark=now * 1000 + 10**7, places=1)
    bench.subscribers.add_to_backlog(flow, [*standing], now)
    for each in standing:
        bench.outcomes[each.key.message_id] = Following(Follow.LEASE, terms=terms)
    wake_up = WorkOrder.wake_up(DeliveryKey("p", "u", "", "s"), "orders")
    return bench.received("retry", wake_up)


def in_backlog(bench: Bench) -> set[tuple[str, bool]]:
    """Messages in the line, each with whether the order is for a manual try."""
    places = bench.subscribers.backlog(FlowKey.of_subscriber("p", "u", "s"), 9)
    return {(each.key.message_id, each.manual) for place in places for each in place.orders}


def test_an_order_that_stands_twice_in_a_entry_is_not_lost_when_the_lease_is_given_back() -> None:
    # Given an order that was sent twice, in one place behind another (policies 4 of the simulator)
    bench = Bench()
    bench.work(a_wake_up(bench, bare("1"), bare("2"), bare("2")), "retry")
    # When the run takes them in hand and gives the turn back, as the next attempt is far away
    assert in_backlog(bench) == {("1", False), ("2", False)}


def test_an_automatic_order_stays_in_backlog_behind_that_of_a_manual_try() -> None:
    bench = Bench()
    bench.work(a_wake_up(bench, bare("1"), replace(bare("2"), manual=True), bare("2")), "retry")
    assert in_backlog(bench) >= {("1", False), ("2", False)}
    # And also when the manual try is made now
    bench = Bench()
    batch = a_wake_up(bench, replace(bare("2"), manual=True), bare("2"))
    bench.follow(Follow.NOTHING, of="2")
    bench.work(batch, "retry")
    assert in_backlog(bench) == {("2", False)}


def test_a_second_order_is_not_struck_for_one_whose_entry_another_run_may_have_taken_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given two places with an order of the same delivery, and one whose former holder takes the first place away while
    # this run has it in hand: it has just passed the order on, so it stands in the second place (hub 2026112400)
    bench, flow = Bench(), FlowKey.of_subscriber("p", "u", "s")
    batch = a_wake_up(bench, bare("3"), bare("1"))
    first = bench.subscribers.backlog(flow, 9)[0].place
    bench.clock.advance(ms=1)
    bench.subscribers.add_to_backlog(flow, [bare("2"), bare("1")], bench.clock.now())
    bench.outcomes["2"] = Following(Follow.LEASE, terms=Terms(limits=Limits(rate_per_s=2), longest_ms=10_000))
    line = bench.subscribers.backlog

    def taken_away(*arguments: Any, **more: Any) -> Any:
        found = line(*arguments, **more)
        bench.subscribers.remove_from_backlog(flow, first, ())
        return found

    monkeypatch.setattr(bench.subscribers, "backlog", taken_away)
    # When it gives its turn back, as the next attempt is far away
    bench.work(batch, "retry")
    # Then the order still stands in line
    monkeypatch.undo()
    assert in_backlog(bench) >= {("1", False), ("2", False)}


@pytest.mark.parametrize(("follow", "looks"), [(Follow.NOTHING, 1), (Follow.ANOTHER, 2)])
@pytest.mark.parametrize("places", [1, 2])
def test_a_second_order_leaves_the_backlog_with_the_first(follow: Follow, looks: int, places: int) -> None:
    bench, flow = Bench(), FlowKey.of_subscriber("p", "u", "s")
    terms = Terms(limits=Limits(concurrency=5), longest_ms=10_000)
    bench.subscribers.take_lease(flow, "earlier", terms, now=bench.clock.now(), until=bench.clock.now() + 1)
    bench.subscribers.give_back(flow, "earlier", mark=0, places=5)
    for _ in range(places):
        bench.subscribers.add_to_backlog(flow, [bare("1")] * (2 // places), bench.clock.now())
        bench.clock.advance(ms=1)
    bench.outcomes["1"] = [Following(follow), Following(Follow.NOTHING)]
    bench.work(bench.received("retry", WorkOrder.wake_up(DeliveryKey("p", "u", "", "s"), "orders")), "retry")
    # Then it was tried once, or the second as well if the first waits elsewhere, and nothing is left
    assert [each.order.key.message_id for each, _ in bench.looked_at] == ["1"] * looks
    assert in_backlog(bench) == set()


@pytest.mark.parametrize(
    "standing",
    [
        # In one place as a queue that repeats itself left them (policies 90003 of the simulator, for days).
        [bare("1"), bare("1"), bare("2"), bare("3")],
        [bare("1"), bare("1"), bare("1")],
        # And as a person does who asks twice, or beside the automatic one.
        [replace(bare("1"), manual=True), replace(bare("1"), manual=True)],
        [bare("1"), replace(bare("1"), manual=True), bare("2")],
        [replace(bare("1"), manual=True), bare("1"), bare("2")],
    ],
)
@pytest.mark.parametrize("takes_long", [False, True])
@pytest.mark.parametrize("concurrency", [1, 5])
def test_orders_for_one_delivery_in_one_entry_leave_the_backlog_in_one_lease(
    standing: list[WorkOrder], concurrency: int, takes_long: bool
) -> None:
    bench, flow = (
        with_meanwhile(0, ends_at_look=100)[0] if takes_long else Bench(),
        FlowKey.of_subscriber("p", "u", "s"),
    )
    terms = Terms(limits=Limits(concurrency=concurrency), longest_ms=10_000)
    bench.subscribers.take_lease(flow, "earlier", terms, now=bench.clock.now(), until=bench.clock.now() + 1)
    bench.subscribers.give_back(flow, "earlier", mark=0, places=concurrency)
    bench.subscribers.add_to_backlog(flow, standing, bench.clock.now())
    bench.clock.advance(ms=1)
    bench.work(bench.received("retry", WorkOrder.wake_up(DeliveryKey("p", "u", "", "s"), "orders")), "retry")
    # Then each was looked at, also what a person asked for, and nothing is left that would be looked at again for ever
    looked_at = {(each.order.key.message_id, each.order.manual) for each, _ in bench.looked_at}
    assert looked_at == {(each.key.message_id, each.manual) for each in standing}
    assert in_backlog(bench) == set()
