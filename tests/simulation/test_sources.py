"""What calls functions in the simulator, and when it does not: batching windows, reserved concurrency, shards that
split.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import partial
from typing import Any

from simulation.account import Account
from simulation.dynamodb import Change
from simulation.functions import Function, RunFailed
from simulation.items import pack
from simulation.scheduler import SECOND
from simulation.sources import QueueSource, StreamSource
from simulation.sqs import Queue
from simulation.template import StreamEvents, stack
from simulation.weather import CHOSEN, MINUTE, Kind, Storm, Weather, chosen

KEYS = ("a", "b", "c", "d", "e", "f", "g", "h")


class Runs(Function):
    """A function whose runs take some time, and fail as they are told to.

    Attributes:
        begun: When each run began, microseconds, and its event.
        fails: How many of the next runs fail.
    """

    def __init__(self, account: Account, name: str, *, takes: int = 0, fails: int = 0) -> None:
        super().__init__(account, account.functions[name].settings)
        self.takes, self.fails = takes, fails
        self.begun: list[tuple[int, Any]] = []

    def _run(self, event: Any, *_: object) -> Any:
        self.begun.append((self.account.scheduler.now, event))
        self.account.scheduler.sleep(self.takes)
        if self.fails:
            self.fails -= 1
            raise RunFailed("crashed")
        return {}


def account(*storms: Storm, **parameters: str) -> Account:
    return Account("sources/1", stack(**parameters), Weather(storms, "sources/1"))


def push(account: Account, **runs: int) -> tuple[Runs, Queue]:
    """A function that is called with what the push queue holds."""
    function, queue = Runs(account, "push", **runs), account.queues["PushQueue"]
    (events,) = (each for each in function.settings.queues if each.queue == queue.name)
    QueueSource(function, queue, events)
    return function, queue


def bodies(event: Any) -> list[str]:
    return sorted(each["body"] for each in event["Records"])


def test_by_default_a_message_is_handed_over_at_once() -> None:
    created = account()
    function, queue = push(created)
    queue.send("one")
    created.scheduler.run(SECOND)
    assert [bodies(event) for _, event in function.begun] == [["one"]]


def test_with_a_window_messages_wait_in_flight_until_it_is_over() -> None:
    # Given a stack with a batching window of five seconds
    created = account(**CHOSEN[Kind.WINDOW])
    function, queue = push(created)
    # When three messages come, a second after one another
    for number in range(3):
        created.scheduler.spawn(partial(queue.send, f"{number}"), after=number * SECOND)
    created.scheduler.run(4 * SECOND)
    # Then they are in flight, and no run has begun
    assert queue.in_flight == 3
    assert not function.begun
    # And five seconds after the first one they are one batch
    created.scheduler.run(10 * SECOND)
    [(at, event)] = function.begun
    assert bodies(event) == ["0", "1", "2"]
    assert 5 * SECOND <= at < 6 * SECOND
    assert created.weather.struck[Kind.WINDOW] == 1
    # And what comes later begins another
    queue.send("later")
    created.scheduler.run(20 * SECOND)
    assert [bodies(event) for _, event in function.begun][1:] == [["later"]]
    assert not queue.in_flight


def test_a_full_batch_does_not_wait_for_its_window() -> None:
    created = account(**CHOSEN[Kind.WINDOW])
    function, queue = push(created)
    for number in range(130):
        queue.send(f"{number}")
    created.scheduler.run(2 * SECOND)
    assert [len(event["Records"]) for _, event in function.begun] == [100]
    created.scheduler.run(10 * SECOND)
    assert [len(event["Records"]) for _, event in function.begun] == [100, 30]


def test_what_is_reserved_for_a_function_is_its_limit() -> None:
    # Given a function with one run reserved, and one without
    created = account(IngestConcurrency="1")
    refused: list[str] = []

    def invoke(function: Function) -> None:
        try:
            function.invoke({"Records": []})
        except RunFailed as failed:
            refused.append(str(failed))

    ingest, poll = Runs(created, "ingest", takes=SECOND), Runs(created, "poll", takes=SECOND)
    # When each is called three times at once
    for function in (ingest, poll):
        for _ in range(3):
            created.scheduler.spawn(partial(invoke, function))
    created.scheduler.run(10 * SECOND)
    # Then the first refuses what is beyond its limit, and takes another when its run has ended
    assert (len(ingest.begun), len(poll.begun), refused) == (1, 3, ["throttled"] * 2)
    created.scheduler.spawn(partial(invoke, ingest))
    created.scheduler.run(20 * SECOND)
    assert len(ingest.begun) == 2
    assert created.weather.struck[Kind.RESERVED] == 2


def test_nobody_else_uses_up_what_is_reserved() -> None:
    # Given an account whose concurrency is used up
    created = account(Storm("crowded", Kind.CROWDED, "", 0, MINUTE, 1.0), **CHOSEN[Kind.RESERVED])
    ingest = Runs(created, "ingest")
    created.scheduler.spawn(partial(ingest.invoke, {}))
    created.scheduler.run(SECOND)
    assert len(ingest.begun) == 1


def test_what_a_throttled_run_was_for_goes_back_to_its_queue_and_was_received() -> None:
    # Given a function that has one run at a time, and is busy
    created = account()
    settings = replace(created.functions["push"].settings, reserved=1)
    created.functions["push"].settings = settings
    function, queue = push(created, takes=30 * SECOND)
    queue.send("first")
    created.scheduler.run(SECOND)
    queue.send("second")
    # When the second message is received meanwhile
    created.scheduler.run(40 * SECOND)
    assert [bodies(event) for _, event in function.begun] == [["first"]]
    assert queue.in_flight == 1
    # Then it comes again when the queue's own time is over, as one that was received before
    created.scheduler.run((queue.settings.visibility_s + 40) * SECOND)
    event = function.begun[1][1]
    assert bodies(event) == ["second"]
    assert event["Records"][0]["attributes"]["ApproximateReceiveCount"] == "2"


def insert(source: StreamSource, account: Account, key: str, number: int) -> None:
    item = {"pk": {"S": key}, "sk": {"S": "M"}, "n": {"N": f"{number}"}}
    source.written(Change("MessagesTable", None, item, b"", pack(item), expired=False), number)


def test_the_shards_that_follow_one_are_read_when_it_is_done_and_each_item_keeps_its_order() -> None:
    # Given a stream with records of several keys, whose first batches fail
    created = account()
    function = Runs(created, "dispatch", takes=SECOND // 10, fails=3)
    source = StreamSource(function, StreamEvents("MessagesTable", batch=2, window_s=0, parallel=2))
    number = 0
    for _ in range(3):
        for key in KEYS:
            number += 1
            insert(source, created, key, number)
    before = number
    # When all its shards split, and split again, while those records wait
    for _ in range(2):
        for key in KEYS:
            source.split(key)
        for key in KEYS:
            number += 1
            insert(source, created, key, number)
    created.scheduler.run(10 * MINUTE)
    # Then each record is handled, those of a key in their order
    assert source.waiting == 0
    handled: dict[str, list[int]] = defaultdict(list)
    for _, event in function.begun:
        for each in event["Records"]:
            record = each["dynamodb"]["NewImage"]
            if int(record["n"]["N"]) not in handled[record["pk"]["S"]]:
                handled[record["pk"]["S"]].append(int(record["n"]["N"]))
    assert sum(map(len, handled.values())) == number
    assert all(each == sorted(each) for each in handled.values())
    # And nothing of a shard that follows was handed over before its parent's last record
    for parent in source._shards:
        for child in parent.children:
            assert parent.done
            assert child.parent is parent
    assert before < number


def test_a_record_after_a_split_waits_for_those_before_it() -> None:
    # Given a record whose run fails for a while
    created = account()
    function = Runs(created, "dispatch", fails=4)
    source = StreamSource(function, StreamEvents("MessagesTable", batch=10, window_s=0, parallel=1))
    insert(source, created, "a", 1)
    # When its shard splits before the next record, of the same item or of any other
    source.split("a")
    insert(source, created, "a", 2)
    created.scheduler.run(10 * MINUTE)
    numbers = [event["Records"][0]["dynamodb"]["SequenceNumber"].lstrip("0") for _, event in function.begun]
    # Then it is not handed over before the first is done
    assert numbers == ["1", "1", "1", "1", "1", "2"]


def test_a_stack_is_deployed_with_the_parameters_of_its_storms() -> None:
    storms = [Storm(kind.value, kind, "", 0, MINUTE, 1.0) for kind in CHOSEN]
    created = stack(**chosen(storms))
    functions = {each.name: each for each in created.functions}
    assert {name: each.reserved for name, each in functions.items() if each.reserved} == {
        "ingest": 10,
        "dispatch": 1,
        "control": 8,
    }
    assert {(each.batch, each.window_s) for each in functions["push"].queues} == {(100, 5)}
    # And by default with neither
    assert chosen([]) == {}
    plain = {each.name: each for each in stack().functions}
    assert all(each.reserved is None for each in plain.values())
    assert {each.window_s for function in plain.values() for each in function.queues} == {0}
