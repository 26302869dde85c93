"""Threads that want the same thing at the same time read it once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.fakes.waiting import waits_for_a_read

from pushhub.base.shared_reads import SharedReads


def test_who_comes_during_a_read_has_its_result_and_who_comes_later_reads_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = waits_for_a_read(monkeypatch)
    reads, begun, goes_on = SharedReads[str](), threading.Event(), threading.Event()

    def held_up() -> str:
        begun.set()
        goes_on.wait()
        return "read"

    with ThreadPoolExecutor(2) as threads:
        # Given a read in progress
        first = threads.submit(reads.read, "key", held_up)
        begun.wait()
        # When a thread comes for something else, then it reads that
        assert reads.read("another", lambda: "read too") == ("read too", True)
        # And when one comes for the same, then it waits
        second = threads.submit(reads.read, "key", lambda: "read twice")
        assert waits.wait(90)
        goes_on.set()
        assert [first.result(), second.result()] == [("read", True), ("read", False)]
    # And who comes later reads again
    assert reads.read("key", lambda: "read again") == ("read again", True)
