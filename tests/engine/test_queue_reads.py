"""How often attempts read their queue, and how old the result may be."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.fakes import FakeClock
from tests.fakes.waiting import waits_for_a_read

from pushhub.base.errors import Unavailable
from pushhub.engine.model.queue import Queue, QueueType
from pushhub.engine.queue_reads import RECENT_MS, QueueReads

QUEUE = Queue(project="p", name="q", uid="u", pull_uid="l", type=QueueType.PULL, push=None, secret="s", created_at=1)


class Source:
    """Stored queues; records each read, and may delay or refuse it."""

    def __init__(self) -> None:
        self.stored: Queue | None = QUEUE
        self.reads: list[bool] = []
        self.held_up = threading.Event()
        self.held_up.set()
        self.begun = threading.Event()
        self.refuses = False

    def queue(self, project_id: str, name: str, *, fresh: bool = False) -> Queue | None:
        self.reads.append(fresh)
        self.begun.set()
        self.held_up.wait()
        if self.refuses:
            raise Unavailable("refused")
        return self.stored if (project_id, name) == ("p", "q") else None


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def reads(source: Source, clock: FakeClock) -> QueueReads:
    return QueueReads(source, clock)


def fits(_: Queue | None) -> bool:
    return True


def for_a_retry(reads: QueueReads, fitting: Callable[[Queue | None], bool] = fits) -> Queue | None:
    return reads.find("p", "q", is_first=False, fits=fitting)


def test_a_hundred_retries_at_once_share_one_read(reads: QueueReads, source: Source) -> None:
    # Given a slow read
    source.held_up.clear()
    with ThreadPoolExecutor(100) as threads:
        found = [threads.submit(for_a_retry, reads) for _ in range(100)]
        source.begun.wait()
        # When it ends, callers from before and after have its result
        source.held_up.set()
        assert [each.result() for each in found] == [QUEUE] * 100
    assert source.reads == [True]


def test_first_tries_share_the_read_that_their_source_has_in_progress(
    reads: QueueReads, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a first try that reads
    waits = waits_for_a_read(monkeypatch)
    source.held_up.clear()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(reads.find, "p", "q", is_first=True, fits=fits)
        source.begun.wait()
        # When another one comes meanwhile, then it waits for that read
        second = threads.submit(reads.find, "p", "q", is_first=True, fits=fits)
        assert waits.wait(30)
        source.held_up.set()
        assert [first.result(), second.result()] == [QUEUE, QUEUE]
    assert source.reads == [False]


def test_a_retry_takes_what_was_read_within_a_second_and_reads_anew_after_it(
    reads: QueueReads, source: Source, clock: FakeClock
) -> None:
    for_a_retry(reads)
    source.stored = changed = replace(QUEUE, cleared_at=7)
    clock.advance(seconds=(RECENT_MS - 1) / 1000)
    assert for_a_retry(reads) == QUEUE
    clock.advance(seconds=0.001)
    assert for_a_retry(reads) == changed
    assert source.reads == [True, True]


def test_what_was_read_before_and_does_not_fit_is_read_anew_and_what_was_read_now_is_not(
    reads: QueueReads, source: Source
) -> None:
    # Given a queue that was read, and created again since
    for_a_retry(reads)
    source.stored = replace(QUEUE, uid="another")
    # When a retry of the new one comes, then it does not get the old one
    found = for_a_retry(reads, lambda queue: queue is not None and queue.uid == "another")
    assert found == source.stored
    # And a current queue that does not fit is not read twice
    assert reads.find("p", "gone", is_first=False, fits=lambda _: False) is None
    assert source.reads == [True, True, True]


def test_a_refused_read_fails_for_whoever_waits_for_it_and_not_for_who_comes_later(
    reads: QueueReads, source: Source
) -> None:
    # Given a read that will fail, and two that wait for it
    source.held_up.clear()
    source.refuses = True
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(for_a_retry, reads) for _ in range(2)]
        source.begun.wait()
        source.held_up.set()
        assert all(isinstance(each.exception(), Unavailable) for each in waiting)
    # When reading works again, then it is read again
    source.refuses = False
    assert for_a_retry(reads) == QUEUE


def test_of_what_is_wanted_as_it_is_now_each_is_a_read(reads: QueueReads, source: Source) -> None:
    for_a_retry(reads)
    source.stored = None
    assert reads.current("p", "q") is None
    assert source.reads == [True, True]
