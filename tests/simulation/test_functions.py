"""What the simulator's functions know, and what still waits for them: rules use this to excuse them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from simulation.account import Account
from simulation.dynamodb import Change
from simulation.functions import Environment
from simulation.ids import ids_in
from simulation.items import pack
from simulation.scheduler import SECOND
from simulation.sources import StreamSource
from simulation.template import StreamEvents, stack
from simulation.weather import Weather

from pushhub.engine.model.keys import MessageKey
from pushhub.engine.store._keys import message_key


@pytest.mark.parametrize("queue_uid", ["u", "~app_1"])
def test_a_message_whose_record_waits_in_the_stream_is_known_to_wait_wherever_it_lies(queue_uid: str) -> None:
    # Given a function that is invoked with a table's stream
    scheduler = SimpleNamespace(spawn=lambda *_, **__: None)
    random = SimpleNamespace(randrange=lambda *_: 0)
    account = SimpleNamespace(now_ms=lambda: 1, scheduler=scheduler, random=random)
    function: Any = SimpleNamespace(account=account)
    source = StreamSource(function, StreamEvents("MessagesTable", batch=10, window_s=0, parallel=1))
    # When messages are stored, one of them of a listed queue
    item = message_key(MessageKey("p", queue_uid, "1910849223729873408"))
    source.written(Change("MessagesTable", None, item, b"", pack(item), expired=False), 1)
    # Then their records are known to be unhandled
    assert any("1910849223729873408" in each for each in source.unhandled())


ANYTHING_BUT = {"dynamodb": {"OldImage": {"state": {"S": [{"anything-but": ["delivered", "expired"]}, "expired"]}}}}


@pytest.mark.parametrize(
    ("record", "taken"),
    [
        ({"dynamodb": {"OldImage": {"state": {"S": "pending"}}}}, True),
        ({"dynamodb": {"OldImage": {"state": {"S": "delivered"}}}}, False),
        ({"dynamodb": {"OldImage": {"state": {"S": "expired"}}}}, True),
        ({"dynamodb": {"OldImage": {}}}, False),
        ({"dynamodb": {"NewImage": {"state": {"S": "pending"}}}}, False),
    ],
)
def test_a_filter_takes_what_it_names_and_anything_but_what_it_excludes(record: dict[str, Any], taken: bool) -> None:
    events = StreamEvents("MessagesTable", batch=10, window_s=0, parallel=1, filters=(ANYTHING_BUT,))
    assert events.takes(record) == taken


@pytest.mark.parametrize("event", ["INSERT", "MODIFY", "REMOVE"])
@pytest.mark.parametrize("kind", ["message", "delivery", "commit"])
@pytest.mark.parametrize("images", [("NewImage",), ("OldImage",), ("OldImage", "NewImage")])
def test_every_filter_of_the_stack_can_be_tried_on_every_record(event: str, kind: str, images: tuple[str, ...]) -> None:
    image = {"kind": {"S": kind}, "state": {"S": "pending"}}
    record = {"eventName": event, "dynamodb": {"Keys": {"sk": {"S": "M"}}} | dict.fromkeys(images, image)}
    filtered = [each for function in stack().functions for each in function.streams if each.filters]
    assert filtered
    for each in filtered:
        each.takes(record)


@pytest.mark.parametrize(
    ("function", "operation", "in_hand"),
    [
        *(("push", "receive_message", True), ("push", "query", True), ("push", "get_item", False)),
        *(("poll", "receive_message", True), ("wake", "query", False)),
    ],
)
def test_a_run_of_push_has_in_hand_what_it_received_or_read_from_a_line(
    function: str, operation: str, in_hand: bool
) -> None:
    # Given an environment whose event names no message
    message_id = "1910849223729873408"
    scheduler = SimpleNamespace(now=0, sleep=lambda _: None, note=lambda *_: None)
    weather = SimpleNamespace(worst=lambda *_: 0, strikes=lambda *_: False, over=0)
    random = SimpleNamespace(randrange=lambda *_: 0)
    account: Any = SimpleNamespace(seed="s", scheduler=scheduler, weather=weather, random=random, calls=0, chosen=None)
    settings: Any = SimpleNamespace(name=function, timeout_s=60)
    environment = Environment(account, settings, 1)
    # When it is answered with an order
    environment.call("a service", operation, lambda: {"Messages": [message_id]}, {})
    # Then what strikes it from here on strikes that message, if the order is now its own
    assert (message_id in ids_in(str(environment.work))) == in_hand


@pytest.mark.parametrize(
    ("sent_with_delay_s", "long_polls", "found_after_s"),
    [(0, True, 0.3), (2, True, 2.3), (None, True, 5), (0, False, 5)],
)
def test_a_receive_that_waits_ends_when_a_message_comes(
    sent_with_delay_s: int | None, long_polls: bool, found_after_s: float
) -> None:
    # Given an account whose receives wait for messages, and two that wait at an empty queue
    account = Account("long polls", stack(), Weather((), "long polls"))
    account.long_polls = long_polls
    name, queue = next((name, each) for name, each in account.queues.items() if not each.settings.fifo)
    settings = next(each for each in stack().functions if each.name == "wake")
    found: list[int] = []

    def receive(number: int) -> None:
        Environment(account, settings, number).await_message(f"https://sqs/{name}", 5)
        found.append(account.scheduler.now)

    for number in (1, 2):
        account.scheduler.spawn(lambda number=number: receive(number))  # type: ignore[misc]
    # When a message is sent meanwhile
    if sent_with_delay_s is not None:
        account.scheduler.spawn(lambda: queue.send("x", delay_s=sent_with_delay_s) and None, after=3 * SECOND // 10)
    account.scheduler.run(10 * SECOND)
    # Then both look at once
    assert [each / SECOND for each in found] == pytest.approx([found_after_s] * 2, abs=0.01)


def test_a_function_that_is_renewed_begins_in_new_environments() -> None:
    # Given a function with an environment that is never idle for long
    account = Account("renew/1", stack(), Weather([], "renew/1"))
    function, names = account.functions["control"], list[str]()

    def invoke() -> None:
        ran: list[str] = []
        function.invoke({}, instead=lambda _: None, ran=ran)
        names.extend(ran)

    for renews in (False, True):
        # When it is renewed, or not
        if renews:
            function.renew()
        for _ in range(2):
            account.scheduler.spawn(invoke)
            account.scheduler.run(account.scheduler.now + 10_000_000)
    # Then only what runs since then is new, and stays
    first, second, third, fourth = names
    assert first == second != third == fourth
