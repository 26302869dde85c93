"""Whoever waits for many futures gets each of them once, as they finish."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from pushhub.engine.flow.finished import Finished


def test_futures_are_taken_once_as_they_finish() -> None:
    # Given three futures, one of which has finished already
    finished = Finished()
    first, second, third = (Future[int]() for _ in range(3))
    first.set_result(1)
    for each in (first, second, third):
        finished.expect(each)
    # Then that one is there at once, and only once
    assert finished.take(60) == {first}
    assert finished.take(0) == set()
    # When the others finish, by a result or an error, then both are there
    second.set_result(2)
    third.set_exception(ValueError("no"))
    assert finished.take(60) == {second, third}
    assert finished.take(0) == set()


def test_who_waits_misses_none_of_those_that_other_threads_finish() -> None:
    # Given a thread that waits for a hundred futures
    finished, futures = Finished(), [Future[int]() for _ in range(100)]
    for each in futures:
        finished.expect(each)
    taken: list[Future[Any]] = []
    begun = threading.Event()

    def take_all() -> None:
        begun.set()
        while len(taken) < len(futures):
            taken.extend(finished.take(60))

    def finish(half: list[Future[int]]) -> None:
        for each in half:
            each.set_result(1)

    with ThreadPoolExecutor(3) as threads:
        waiting = threads.submit(take_all)
        begun.wait()
        # When they finish in other threads, then each is taken, once
        threads.submit(finish, futures[::2])
        threads.submit(finish, futures[1::2])
        waiting.result()
    assert len(taken) == len(futures)
    assert set(taken) == set(futures)
