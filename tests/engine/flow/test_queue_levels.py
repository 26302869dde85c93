"""Queues that should be empty, and those near SQS's limit, are looked at every five minutes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.fakes import FakeClock
from tests.fakes.telemetry import FakeTelemetry

from pushhub.base.errors import Unavailable
from pushhub.engine.flow.ports import QueueLevel
from pushhub.engine.flow.queue_levels import CROWDED, LookAtQueues

DEAD, BUSY = "https://sqs/1/hub-PushDeadLetters", "https://sqs/1/hub-RetryQueue"


def looker(level: Callable[[str], QueueLevel]) -> tuple[LookAtQueues, FakeClock, FakeTelemetry]:
    clock, telemetry = FakeClock(), FakeTelemetry()
    look = LookAtQueues(level=level, set_aside=[DEAD], crowded=[BUSY], clock=clock, telemetry=telemetry)
    return look, clock, telemetry


def test_what_lies_in_a_queue_of_dead_letters_is_counted_at_each_look() -> None:
    asked: list[str] = []
    # Given dead letters, and work in flight as there may be
    levels = {DEAD: QueueLevel(messages=3, in_flight=0), BUSY: QueueLevel(messages=9, in_flight=CROWDED - 1)}

    def level(queue: str) -> QueueLevel:
        asked.append(queue)
        return levels[queue]

    look, clock, telemetry = looker(level)
    # When wake runs each minute for ten minutes
    for _ in range(10):
        look.run()
        clock.advance(seconds=60)
    # Then each queue was asked twice, and both looks counted: an alarm's period of five minutes is never without one
    assert asked == [DEAD, BUSY] * 2
    assert telemetry.counts == {"WorkStuck": 6}


def test_a_queue_near_its_limit_is_counted() -> None:
    look, _, telemetry = looker(lambda _: QueueLevel(messages=0, in_flight=CROWDED))
    look.run()
    assert telemetry.counts == {"WorkStuck": 1}
    assert [name for name, _ in telemetry.events] == ["queue_nearly_full"]


def test_a_look_that_fails_fails_the_run_and_is_made_again() -> None:
    # Given SQS, which does not answer
    answers: list[QueueLevel | None] = [None, QueueLevel(messages=1, in_flight=0), QueueLevel(messages=0, in_flight=0)]

    def level(_: str) -> QueueLevel:
        found = answers.pop(0)
        if found is None:
            raise Unavailable("sqs:GetQueueAttributes", "AccessDenied")
        return found

    look, clock, telemetry = looker(level)
    # When wake runs, then its run fails, which an alarm watches, too
    with pytest.raises(Unavailable):
        look.run()
    # And the next minute's looks again
    clock.advance(seconds=60)
    look.run()
    assert telemetry.counts == {"WorkStuck": 1}
