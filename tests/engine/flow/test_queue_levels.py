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
BRISK = "https://sqs/1/hub-ErrorsQueue"


def looker(level: Callable[[str], QueueLevel]) -> tuple[LookAtQueues, FakeClock, FakeTelemetry]:
    clock, telemetry = FakeClock(), FakeTelemetry()
    look = LookAtQueues(level=level, set_aside=[DEAD], crowded=[BUSY], brisk=[BRISK], clock=clock, telemetry=telemetry)
    return look, clock, telemetry


def test_what_lies_in_a_queue_of_dead_letters_is_counted_at_each_look() -> None:
    asked: list[str] = []
    # Given dead letters, and work in flight as there may be
    levels = {
        DEAD: QueueLevel(messages=3, in_flight=0),
        BUSY: QueueLevel(messages=9, in_flight=CROWDED - 1),
        BRISK: QueueLevel(messages=1, in_flight=1),
    }

    def level(queue: str) -> QueueLevel:
        asked.append(queue)
        return levels[queue]

    look, clock, telemetry = looker(level)
    # When wake runs each minute for ten minutes
    for _ in range(10):
        look.run()
        clock.advance(seconds=60)
    # Then each queue was asked twice, and both looks counted: an alarm's period of five minutes is never without one
    assert asked == [DEAD, BUSY, BRISK] * 2
    assert telemetry.counts == {"WorkStuck": 6}


def test_a_queue_near_its_limit_is_counted() -> None:
    look, _, telemetry = looker(lambda _: QueueLevel(messages=0, in_flight=CROWDED))
    look.run()
    assert telemetry.counts == {"WorkStuck": 1}
    assert [name for name, _ in telemetry.events] == ["queue_nearly_full"]


def test_a_look_that_fails_fails_the_run_and_is_made_again() -> None:
    # Given SQS, which does not answer
    empty = QueueLevel(messages=0, in_flight=0)
    answers: list[QueueLevel | None] = [None, QueueLevel(messages=1, in_flight=0), empty, empty]

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


@pytest.mark.parametrize("queue", [BUSY, BRISK])
def test_a_queue_that_nobody_reads_is_counted_from_the_second_look_on(queue: str) -> None:
    # Given messages that nobody has in hand
    levels = {queue: QueueLevel(messages=2, in_flight=0)}
    look, clock, telemetry = looker(lambda each: levels.get(each, QueueLevel(messages=0, in_flight=0)))
    look.run()
    # Then they may just have come
    assert telemetry.counts == {}
    # When nobody has any of them in hand five minutes later, then nobody reads the queue
    clock.advance(seconds=300)
    look.run()
    assert telemetry.counts == {"QueueUnread": 1}
    assert [name for name, _ in telemetry.events] == ["queue_unread"]
    # And once somebody does, all is well, and what comes later may again just have come
    for messages, in_flight in ((9, 1), (9, 0)):
        levels[queue] = QueueLevel(messages=messages, in_flight=in_flight)
        clock.advance(seconds=300)
        look.run()
    assert telemetry.counts == {"QueueUnread": 1}
