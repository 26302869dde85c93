"""What a run has in hand is hidden from others while it lives, and not for much longer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contract.samples import message, order
from tests.fakes import FakeClock, FakeWorkQueue, Fault, FaultPlan, faulty

from pushhub.base.errors import Unavailable
from pushhub.engine.flow.in_hand import AGAIN_MS, FAILED_MS, HIDDEN_S, PROMPT_MS, InHand
from pushhub.engine.model.received import Received

LATE_S = 120
"""What was promised: how soon work of a dead run is tried again."""


class Bench:
    """A queue of ten messages, and what a run does with it."""

    def __init__(self, *, messages: int = 10, plan: FaultPlan | None = None, first_ms: int = PROMPT_MS) -> None:
        self.clock = FakeClock()
        self.plan = plan or FaultPlan()
        self.queue = FakeWorkQueue(self.clock, visibility_s=450)
        self.queue.send([(order(message()), 0) for _ in range(messages)])
        self.source = faulty(self.queue, "queue", self.plan)
        self.in_hand = InHand(self.source, self.clock, first_ms=first_ms)

    def receive(self, orders: int = 1) -> list[Received]:
        """All messages, each with so many orders."""
        return [each for each in self.queue.receive() for _ in range(orders)]

    def work(self, ms: int, but: frozenset[str] = frozenset()) -> None:
        """Let time pass as a run does, five times a second."""
        for _ in range(ms // 200):
            self.clock.advance(ms=200)
            self.in_hand.keep_hidden(but)

    @property
    def requests(self) -> int:
        """Calls that changed how long messages are hidden."""
        return self.plan.calls.count("queue.defer")


@given(st.integers(600, 400_000), st.sampled_from([1, 3, 10]))
def test_messages_are_hidden_for_as_long_as_the_run_works_and_come_back_soon_when_it_dies(ms: int, orders: int) -> None:
    # Given a run that works for any time, When it dies
    bench = Bench()
    bench.in_hand.take(bench.receive(orders))
    for _ in range(ms // 200):
        bench.work(200)
        # Then nobody else has got its messages before
        assert bench.queue.receive() == []
    # And they come back within the promised time
    bench.clock.advance(seconds=HIDDEN_S)
    assert HIDDEN_S < LATE_S
    assert len(bench.queue.receive()) == 10


def test_a_run_of_few_orders_that_is_over_soon_makes_no_request() -> None:
    bench = Bench()
    bench.in_hand.take(bench.receive())
    bench.work(PROMPT_MS - 200)
    assert bench.requests == 0
    bench.work(400)
    assert bench.requests == 1


def test_a_long_run_hides_what_it_has_at_once_and_what_comes_later_too() -> None:
    bench = Bench(first_ms=0)
    bench.in_hand.take(bench.receive())
    bench.in_hand.keep_hidden(())
    assert bench.requests == 1
    bench.queue.send([(order(message()), 0)])
    bench.in_hand.take(bench.queue.receive())
    bench.in_hand.keep_hidden(())
    assert bench.requests == 2
    # And when it dies, they come back
    bench.clock.advance(seconds=HIDDEN_S)
    assert len(bench.queue.receive()) == 10


def test_a_run_that_goes_on_receiving_hides_what_is_new_and_not_all_of_it_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given a run that receives a hundred orders, ten messages, ten times a second
    bench = Bench(messages=0, first_ms=0)
    hidden: list[int] = []
    real = bench.queue.defer

    def defer(waits: Sequence[tuple[str, int]]) -> set[str]:
        hidden.append(len(waits))
        return real(waits)

    monkeypatch.setattr(bench.queue, "defer", defer)
    for _ in range(10):
        bench.queue.send([(order(message()), 0) for _ in range(10)])
        bench.in_hand.take(bench.receive(10))
        bench.in_hand.keep_hidden(())
        bench.clock.advance(ms=100)
    # Then each message is hidden once
    assert sum(hidden) == 100
    # And all of them again in time
    bench.work(AGAIN_MS)
    assert sum(hidden) == 200
    bench.clock.advance(seconds=HIDDEN_S - 25)
    assert bench.queue.receive() == []


def test_messages_that_come_later_are_hidden_with_the_others() -> None:
    bench = Bench(messages=4)
    first = bench.receive()
    bench.in_hand.take(first)
    bench.work(5_000)
    bench.queue.send([(order(message()), 0)])
    bench.in_hand.take(bench.queue.receive())
    bench.in_hand.take([])
    bench.work(PROMPT_MS + 200)
    bench.clock.advance(seconds=HIDDEN_S)
    assert len(bench.queue.receive()) == 5


def test_what_waits_until_a_time_of_its_own_and_what_was_deleted_is_left_alone() -> None:
    bench = Bench(messages=3)
    waits, deleted, worked_on = bench.receive()
    bench.in_hand.take([waits, deleted, worked_on])
    bench.queue.defer([(waits.receipt_handle, 600)])
    bench.queue.delete([deleted.receipt_handle])
    bench.in_hand.let_go([deleted.sqs_id])
    bench.work(1_000, frozenset({waits.sqs_id}))
    bench.clock.advance(seconds=HIDDEN_S)
    assert [each.sqs_id for each in bench.queue.receive()] == [worked_on.sqs_id]


@pytest.mark.parametrize("how", ["fails", "is refused"])
def test_what_cannot_be_hidden_is_told_and_tried_again_soon(how: str) -> None:
    bench = Bench(plan=FaultPlan(Fault.FAILS if how == "fails" else None))
    [*batch] = bench.receive()
    stale = replace(batch[0], receipt_handle="stale")
    bench.in_hand.take([stale, *batch[1:]] if how == "is refused" else batch)
    bench.clock.advance(ms=PROMPT_MS)
    if how == "fails":
        with pytest.raises(Unavailable):
            bench.in_hand.keep_hidden(())
    else:
        assert bench.in_hand.keep_hidden(()) == {"stale"}
    # Then the next call is not made at once, and much sooner than usual
    assert bench.in_hand.keep_hidden(()) == set()
    bench.clock.advance(ms=FAILED_MS)
    bench.in_hand.keep_hidden(())
    assert bench.requests == 2
    assert 3 * FAILED_MS + 2 * AGAIN_MS < 1000 * HIDDEN_S
