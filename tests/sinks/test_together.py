"""What waits together is sent together: one call at a time for each destination."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from pushhub.sinks.together import Bounds, Together

TEN = Bounds(most=10, most_bytes=1_000)


class Calls:
    """A service that answers when it is told to.

    Attributes:
        batches: What each call sent.
    """

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []
        self.under_way = threading.Semaphore(0)
        self.go_on = threading.Semaphore(0)
        self.fails: Exception | None = None

    def __call__(self, items: Sequence[Any]) -> list[Any]:
        self.batches.append(list(items))
        self.under_way.release()
        assert self.go_on.acquire(timeout=30)
        if self.fails is not None:
            raise self.fails
        return [f"sent {each}" for each in items]


class Senders:
    """Threads that send at the same time, in a known order."""

    def __init__(self, calls: Calls, bounds: Bounds = TEN) -> None:
        self.together = Together[Any, Any]()
        self._calls = calls
        self._bounds = bounds
        self._pool = ThreadPoolExecutor(40)

    def send(self, item: Any, *, lane: str = "a", size: int = 1, patience_s: float = 30) -> Future[Any]:
        """Begin to send, and return when it waits or is under way."""
        before = self._waiting(lane)
        sending = self._pool.submit(
            lambda: self.together.send(
                lane, item, size=size, bounds=self._bounds, patience_s=patience_s, call=self._calls
            )
        )
        while self._waiting(lane) == before and not sending.done():
            pass
        return sending

    def _waiting(self, lane: str) -> int:
        waiting = self.together._lanes.get(lane)
        return -1 if waiting is None else len(waiting)


def test_one_alone_is_sent_at_once() -> None:
    calls = Calls()
    calls.go_on.release()
    assert Senders(calls).send(1).result(90) == "sent 1"
    assert calls.batches == [[1]]


def test_those_that_come_while_a_call_is_under_way_are_the_next_one_ten_at_most() -> None:
    # Given a call under way, and twenty-four others that come meanwhile
    calls = Calls()
    senders = Senders(calls)
    sending = [senders.send(number) for number in range(25)]
    # When the calls are answered
    for _ in range(4):
        calls.go_on.release()
    # Then there were ten in a call, in the order in which they came, and each knows what became of it
    assert [each.result(90) for each in sending] == [f"sent {number}" for number in range(25)]
    assert calls.batches == [[0], [*range(1, 11)], [*range(11, 21)], [*range(21, 25)]]
    # And nothing is left of it
    assert senders.together._lanes == {}


def test_a_call_is_no_larger_than_the_service_takes() -> None:
    calls = Calls()
    senders = Senders(calls)
    sending = [senders.send(number, size=size) for number, size in enumerate((1, 600, 400, 1, 1_000, 5))]
    for _ in range(5):
        calls.go_on.release()
    assert [each.result(90) for each in sending] == [f"sent {number}" for number in range(6)]
    assert calls.batches == [[0], [1, 2], [3], [4], [5]]


def test_destinations_do_not_wait_for_each_other() -> None:
    calls = Calls()
    senders = Senders(calls)
    one, other = senders.send(1, lane="a"), senders.send(2, lane="b")
    for _ in range(2):
        assert calls.under_way.acquire(timeout=30)
    for _ in range(2):
        calls.go_on.release()
    assert (one.result(90), other.result(90)) == ("sent 1", "sent 2")


def test_what_a_call_raises_is_raised_by_each_and_the_next_ones_go_on() -> None:
    calls = Calls()
    senders = Senders(calls)
    calls.fails = RuntimeError("no")
    sending = [senders.send(number) for number in range(3)]
    for _ in range(2):
        calls.go_on.release()
    for each in sending:
        with pytest.raises(RuntimeError, match="no"):
            each.result(90)
    calls.fails = None
    calls.go_on.release()
    assert senders.send(3).result(90) == "sent 3"


def test_who_waits_too_long_is_told_and_is_not_sent() -> None:
    # Given a call that hangs
    calls = Calls()
    senders = Senders(calls)
    first = senders.send(1)
    assert calls.under_way.acquire(timeout=30)
    # When another one has waited as long as it can
    assert senders.send(2, patience_s=0.01).result(90) is None
    # Then it is not in the next call
    last = senders.send(3)
    for _ in range(2):
        calls.go_on.release()
    assert (first.result(90), last.result(90)) == ("sent 1", "sent 3")
    assert calls.batches == [[1], [3]]
