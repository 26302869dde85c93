"""Attempts that end at about the same time are logged by one write, and none continues before that is done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.contract.samples import NOW, PROJECT
from tests.fakes import Crash, FakeClock

from pushhub.base.errors import Unavailable
from pushhub.webhooks.model.attempt import LoggedAttempt
from pushhub.webhooks.sending.attempt_groups import AttemptGroups

ATTEMPT = LoggedAttempt(
    project=PROJECT,
    app_id="app_1",
    endpoint_id="ep_1",
    engine_id="1",
    number=1,
    manual=False,
    url="https://a.example/",
    status_code=200,
    success=True,
    response="",
    duration_ms=20,
    started_at=NOW,
    event_type="a",
    listed_until=NOW + 1,
)


class Log:
    """Remembers what was logged together."""

    def __init__(self, failure: BaseException | None = None) -> None:
        self.written: list[list[str]] = []
        self.failure = failure

    def log_attempts(self, attempts: Sequence[LoggedAttempt]) -> None:
        if self.failure is not None:
            raise self.failure
        self.written.append([each.engine_id for each in attempts])


class Waits(FakeClock):
    """Holds up every caller that waits until a test releases it.

    Attributes:
        waiting: Released by each caller that begins to wait.
    """

    def __init__(self) -> None:
        super().__init__()
        self.waiting = threading.Semaphore(0)
        self.go = threading.Event()

    def sleep(self, seconds: float) -> None:
        self.waiting.release()
        assert self.go.wait(90)
        # The others look often; the writer has to get its turn between their looks.
        time.sleep(seconds)
        super().sleep(seconds)


def logged(groups: AttemptGroups, clock: Waits, count: int) -> list[Future[None]]:
    """This many attempts end while one more, which ends last, is under way."""
    for _ in range(count):
        groups.begin("ep_1")
    with ThreadPoolExecutor(count) as pool:
        ended: list[Future[None]] = []
        for number in range(count):
            ended.append(pool.submit(groups.log, replace(ATTEMPT, engine_id=str(number))))
            # Each waits: the first for others, the others for the first.
            assert clock.waiting.acquire(timeout=30)
        clock.go.set()
    return ended


def test_one_that_is_alone_is_logged_at_once() -> None:
    log, clock = Log(), FakeClock()
    groups = AttemptGroups(log=log, clock=clock)
    for number in ("1", "2"):
        groups.begin("ep_1")
        groups.log(replace(ATTEMPT, engine_id=number))
    assert log.written == [["1"], ["2"]]
    assert clock.slept == []


def test_others_at_the_same_endpoint_are_waited_for_and_those_that_came_to_nothing_are_not() -> None:
    log, clock = Log(), FakeClock()
    groups = AttemptGroups(log=log, clock=clock)
    for endpoint in ("ep_1", "ep_1", "ep_2"):
        groups.begin(endpoint)
    groups.log(ATTEMPT)
    assert len(clock.slept) == 1
    groups.begin("ep_1")
    groups.give_up("ep_1")
    groups.give_up("ep_1")
    groups.begin("ep_1")
    groups.log(ATTEMPT)
    assert len(clock.slept) == 1


def test_what_ends_together_is_one_write() -> None:
    log, clock = Log(), Waits()
    ended = logged(AttemptGroups(log=log, clock=clock), clock, 5)
    assert [each.result() for each in ended] == [None] * 5
    assert log.written == [["0", "1", "2", "3", "4"]]


@pytest.mark.parametrize("failure", [Unavailable("log"), Crash("log")])
def test_when_the_write_fails_each_of_them_is_told(failure: BaseException) -> None:
    clock = Waits()
    ended = logged(AttemptGroups(log=Log(failure), clock=clock), clock, 3)
    errors = [each.exception() for each in ended]
    assert errors[0] is failure
    assert {type(each) for each in errors[1:]} == {Unavailable}


def test_nobody_waits_for_ever() -> None:
    # Given a writer that never finishes
    clock, stuck, free = FakeClock(), threading.Event(), threading.Event()

    class Hangs(Log):
        def log_attempts(self, attempts: Sequence[LoggedAttempt]) -> None:
            stuck.set()
            assert free.wait(90)
            super().log_attempts(attempts)

    log = Hangs()
    groups = AttemptGroups(log=log, clock=_Gathering(clock, lambda: groups.log(ATTEMPT)))
    groups.begin("ep_1")
    groups.begin("ep_1")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(groups.log, ATTEMPT)
        assert stuck.wait(90)
        # Then the other, which joined it meanwhile, has given up
        assert clock.slept.count(0.01) == 3_000
        free.set()
        assert first.result() is None


class _Gathering:
    """While the first waits, another attempt ends."""

    def __init__(self, clock: FakeClock, meanwhile: Callable[[], None]) -> None:
        self._clock = clock
        self._meanwhile = meanwhile
        self.jitter = clock.jitter
        self.now = clock.now

    def sleep(self, seconds: float) -> None:
        if not self._clock.slept:
            self._clock.sleep(seconds)
            with pytest.raises(Unavailable):
                self._meanwhile()
            return
        self._clock.sleep(seconds)
