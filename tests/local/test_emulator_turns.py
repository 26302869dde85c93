"""Runs wait for a free process rather than start many at once, and none waits for a process that cannot start."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from local.emulator.turns import BACKLOG, LATELY_S, MANY, Owners, Turns


class Worker:
    """What is started in its first run."""

    in_use = False
    turn: Any = None


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


def turns(patience_s: float = 0.0) -> tuple[Turns, dict[str, list[Any]]]:
    workers: dict[str, list[Any]] = {}
    return Turns(workers, threading.Lock(), patience_s), workers


def waiting(pool: ThreadPoolExecutor, taken_from: Turns) -> Future[tuple[Any, str]]:
    """A run on a thread of its own."""
    return pool.submit(taken_from.take, "function", Worker)


def test_one_process_starts_at_a_time_and_who_waits_takes_what_is_free_first(pool: ThreadPoolExecutor) -> None:
    # Given a process that starts, and two runs that want one
    given, workers = turns()
    first, _ = given.take("function", Worker)
    runs = [waiting(pool, given) for _ in range(2)]
    # When its run ends, Then one of them has it, and only then another is started for the other one
    assert workers["function"] == [first]
    given.give_back(first)
    taken = {how: worker for worker, how in (run.result(90) for run in runs)}
    assert taken["reused"] is first
    assert workers["function"] == [first, taken["spawn"]]


def test_a_run_does_not_wait_for_a_process_that_could_not_start(pool: ThreadPoolExecutor) -> None:
    # Given a run that waits while a process starts
    given, workers = turns()
    failed, _ = given.take("function", Worker)
    run = waiting(pool, given)
    # When that fails, and is taken out
    workers["function"].clear()
    given.started(failed)
    # Then another one is started
    assert run.result(90)[1] == "spawn"


def test_a_run_waits_a_moment_for_another_to_end(pool: ThreadPoolExecutor) -> None:
    # Given a process at work, and as much patience as one likes
    given, workers = turns(patience_s=3_600)
    only, _ = given.take("function", Worker)
    given.started(only)
    run = waiting(pool, given)
    # When its run ends, then the next one has it and none was started
    given.give_back(only)
    assert run.result(90) == (only, "reused")
    assert workers["function"] == [only]
    assert only.in_use


def test_a_function_does_not_wait_for_another_ones_process() -> None:
    # Given a process of one function that starts, When another function runs, Then it has one at once
    given, _ = turns(patience_s=3_600)
    given.take("function", Worker)
    assert given.take("other", Worker)[1] == "spawn"


def test_runs_for_those_who_have_runs_already_have_workers_of_their_own() -> None:
    # Given a worker that is free
    given, workers = turns(patience_s=3_600)
    usual, _ = given.take("function", Worker)
    given.give_back(usual)
    # When a run of a backlog comes, then it does not get that, and leaves it to others
    other, how = given.take("function", Worker, backlog=True)
    assert (how, workers["function"]) == ("spawn", [usual, other])
    assert given.take("function", Worker) == (usual, "reused")
    # And its worker is for the next one of a backlog
    given.give_back(other)
    assert given.take("function", Worker, backlog=True) == (other, "reused")


def beside_others() -> Owners:
    """Owners of whom one that no test is about had a run."""
    owners = Owners()
    with owners.run("push", {"another"}):
        pass
    return owners


def test_a_further_run_of_the_same_function_is_of_its_owners_backlog_until_the_first_has_ended() -> None:
    owners = beside_others()
    with owners.run("push", {"busy"}):
        assert not BACKLOG.get()
        with owners.run("push", {"busy"}):
            assert BACKLOG.get()
        # And a run for others too is not
        with owners.run("push", {"busy", "quiet"}):
            assert not BACKLOG.get()
    with owners.run("push", {"busy"}):
        assert not BACKLOG.get()
    assert not BACKLOG.get()


def test_runs_of_several_functions_for_one_message_are_no_backlog_and_many_are() -> None:
    # Given a message on its way, whose runs overlap
    owners = beside_others()
    assert MANY == 3
    with owners.run("ingest", {"one"}), owners.run("dispatch", {"one"}), owners.run("push", {"one"}):
        # Then the third is of none, and a fourth is
        assert not BACKLOG.get()
        with owners.run("errors", {"one"}):
            assert BACKLOG.get()


def test_what_nobody_waits_for_gives_way_and_makes_nobody_else_do_so() -> None:
    owners = beside_others()
    with owners.run("records", {"one"}, urgent=False):
        assert BACKLOG.get()
        with owners.run("records", {"one"}):
            assert not BACKLOG.get()


def test_a_run_for_nobody_is_of_no_backlog() -> None:
    owners = beside_others()
    with owners.run("wake", set()), owners.run("wake", set()):
        assert not BACKLOG.get()


def test_a_run_that_fails_has_ended() -> None:
    owners = beside_others()
    with pytest.raises(ValueError, match="on purpose"), owners.run("push", {"one"}):
        raise ValueError("on purpose")
    with owners.run("push", {"one"}):
        assert not BACKLOG.get()


def test_nobody_gives_way_who_is_alone() -> None:
    # Given an owner with many runs, and another one's run long ago
    now = 0.0
    owners = Owners(lambda: now)
    with owners.run("push", {"another"}):
        pass
    now = LATELY_S + 1
    with owners.run("push", {"one"}), owners.run("push", {"one"}):
        assert not BACKLOG.get()
        # When somebody comes, then further runs give way
        with owners.run("push", {"another"}):
            assert not BACKLOG.get()
        with owners.run("push", {"one"}):
            assert BACKLOG.get()
        with owners.run("records", {"one"}, urgent=False):
            assert BACKLOG.get()
    # And no more once they are gone
    now += LATELY_S + 1
    with owners.run("push", {"one"}), owners.run("push", {"one"}):
        assert not BACKLOG.get()
