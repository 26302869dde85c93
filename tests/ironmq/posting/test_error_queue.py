"""Error queues: undelivered messages are there, complete where possible, and always readable."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from tests.engine.world import PROJECT, World, subscribers
from tests.fakes import Fault, FaultPlan
from tests.fakes.large_bodies import large_body
from tests.ironmq.api.hub import Hub

from pushhub.base.errors import Unavailable
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.message import BodyRef, NewMessage
from pushhub.engine.model.work import WorkOrder
from pushhub.ironmq.posting import error_queue
from pushhub.web.answer_size import ANSWER_BYTES

DEAD = "https://dead.example/in"
LARGEST = 4_194_304
BODIES = {
    "text": b"x" * LARGEST,
    "JSON": b'{"name":"value"},' * (LARGEST // 17),
    "quotes": b'"' * LARGEST,
    "control characters": b"\x01" * LARGEST,
    "no text": bytes(range(256)) * (LARGEST // 256),
    "other alphabets": "я".encode() * (LARGEST // 2),
    "little": b"\xff\x00 caf\xc3\xa9",
}


def failing_world(*queues: str, plan: FaultPlan | None = None) -> World:
    """A hub whose only subscriber is down; the queues are each other's error queues, in order."""
    world = World(plan)
    world.sender.script(DEAD, 500)
    for name, errors in zip(queues, [*queues[1:], "failed"], strict=True):
        world.make_queue(name, subscribers(DEAD), retries=0, error_queue=errors)
    return world


def original(error: dict[str, Any]) -> bytes:
    """The body an error message is about."""
    return base64.b64decode(error["body_base64"]) if "body_base64" in error else error["body"].encode()


@pytest.mark.parametrize("kind", BODIES)
def test_the_largest_messages_are_whole_in_the_error_queue_and_every_client_can_read_them(kind: str) -> None:
    # Given a message of the largest size that could not be delivered
    world = failing_world("q")
    world.ingest.post(PROJECT, "q", [NewMessage(body=BODIES[kind], headers={"X-Kind": '"' * 1024})])
    world.run(seconds=30)
    # When a client that accepts no compressed answers reads the error queue
    [error] = Hub(world).reserve("failed")
    # Then the whole body is in it
    answer = json.loads(error["body"])
    assert original(answer) == BODIES[kind]
    assert answer["subscribers"][0]["code"] == 500


def test_text_stays_text_where_it_can() -> None:
    world = failing_world("q")
    body = BODIES["JSON"][:1_000_008]
    world.post("q", body)
    world.run(seconds=30)
    answer = json.loads(Hub(world).reserve("failed")[0]["body"])
    assert (answer["body"].encode(), "body_base64" in answer) == (body, False)


@pytest.mark.parametrize("kind", ["quotes", "no text", "little"])
def test_errors_about_errors_do_not_grow_without_end(kind: str) -> None:
    # Given push queues that are each other's error queues, and subscribers that accept nothing
    world = failing_world(*[f"q{number}" for number in range(8)])
    world.post("q0", BODIES[kind])
    world.run(seconds=120)
    # Then every error message fits into an answer, and says so if a body was left out
    assert max(len(each.body) for each in world.sender.requests) <= ANSWER_BYTES
    [last] = Hub(world).reserve("failed")
    answer = json.loads(last["body"])
    assert answer.get("body_left_out", False) is (answer["body"] == "" and "body_base64" not in answer)
    assert answer["queue"] == "q7"


def test_a_message_whose_bytes_are_gone_is_in_the_error_queue_all_the_same() -> None:
    # Given a delivery that is exhausted when the bytes of its message are no longer there
    world = failing_world("q")
    [message_id] = world.post("q", large_body(10_000))
    world.dispatch_only()
    [received] = world.push_queue.receive()
    assert world.push.run([received], source=world.push_queue, remaining_ms=lambda: 10**6) == set()
    world.push_queue.delete([received.receipt_handle])
    world.bodies.objects.clear()
    # When it reaches the errors function
    world.run(seconds=60)
    # Then the error message is there, with everything known
    assert len(world.errors_queue) == 0
    [error] = world.pulled("failed")
    answer = json.loads(error)
    assert (answer["source_msg_id"], answer["body"], answer["body_left_out"]) == (message_id, "", True)
    assert answer["subscribers"][0]["code"] == 500


def exhausted(world: World, queue: str, count: int, body: bytes = b"x") -> list[WorkOrder]:
    """This many exhausted deliveries of a queue that have not been handled yet."""
    world.post(queue, *[body] * count)
    world.dispatch_only()
    keep = world.push.run(world.push_queue.receive(), source=world.push_queue, remaining_ms=lambda: 10**9)
    assert keep == set()
    return world.errors_queue.orders()


@pytest.mark.parametrize("count", [1, 10, 100])
def test_what_error_messages_of_a_queue_have_in_common_is_read_and_counted_once(count: int) -> None:
    # Given exhausted deliveries of one queue, several in an SQS message
    plan = FaultPlan()
    world = failing_world("q", plan=plan)
    orders = exhausted(world, "q", count)
    assert len(world.errors_queue) <= max(1, count // 2)
    assert all(each.message is None for each in orders)
    # When they are handled together
    before = len(plan.calls)
    assert world.error_queue_post.run(orders) == {}
    # Then each is one write, and six calls are enough for the rest, however many there are
    calls = Counter(plan.calls[before:])
    assert calls.pop("pull.put_once") == count
    assert calls == {
        "config.queue": 2,
        "config.create_queue": 1,
        "messages.deliveries": 1,
        "messages.messages": 1,
        "config.add_to_total": 1,
    }
    assert len(world.pulled("failed")) == count
    # And again, nothing is made or counted twice
    assert world.error_queue_post.run(orders) == {}
    assert len(world.pulled("failed")) == count
    queue = world.config.queue(PROJECT, "failed")
    assert queue is not None
    assert world.config.total(PROJECT, queue.uid) == count


@pytest.mark.parametrize("call", ["pull.put_once", "messages.messages", "config.queue"])
def test_error_messages_that_cannot_be_written_come_again(call: str) -> None:
    # Given ten exhausted deliveries, and a call that fails once
    plan = FaultPlan()
    world = failing_world("q", plan=plan)
    orders = exhausted(world, "q", 10)
    plan.strike(Fault.FAILS, of=call)
    # When they are handled, then some or all failed, and the others are there
    failed = world.error_queue_post.run(orders)
    assert len(failed) == (1 if call == "pull.put_once" else 10)
    assert len(world.pulled("failed")) == 10 - len(failed)
    # And all are posted once they are redelivered
    assert world.error_queue_post.run(orders) == {}
    assert len(world.pulled("failed")) == 10


@pytest.mark.parametrize("pushed", [False, True])
def test_more_than_a_run_has_time_for_is_posted_in_several(monkeypatch: pytest.MonkeyPatch, *, pushed: bool) -> None:
    # Given exhausted deliveries of large messages, and runs that have time for two of them
    monkeypatch.setattr(error_queue, "TOGETHER_BYTES", 50_000)
    world = failing_world("q")
    if pushed:
        world.make_queue("failed", subscribers("https://later.example/"))
    orders = exhausted(world, "q", 6, body=large_body(20_000))
    written: list[int] = []
    real = world.bodies.put

    def put(project_id: str, bodies: Sequence[bytes], now: int) -> list[BodyRef]:
        written.append(len(bodies))
        return real(project_id, bodies, now)

    monkeypatch.setattr(world.bodies, "put", put)
    repeated: set[DeliveryKey] = set()
    left: list[int] = []
    for run in range(3):
        # When they come again and again
        time = iter([30_000, 5_000])
        failed = world.error_queue_post.run(
            orders,
            repeated=repeated,
            remaining_ms=lambda time=time: next(time, 0),  # type: ignore[misc]
        )
        repeated = {each.key for each in orders}
        left.append(len(failed))
        assert all(isinstance(each, Unavailable) for each in failed.values()), run
    # Then each run goes on where the one before it ended, and nothing is done twice
    assert left == [4, 2, 0]
    assert written == [2, 2, 2]


def test_large_bodies_are_in_memory_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_queue, "TOGETHER_BYTES", 50_000)
    world = failing_world("q")
    world.post("q", *[large_body(20_000)] * 5)
    writes: list[int] = []
    real = world.bodies.put

    def put(project_id: str, bodies: Sequence[bytes], now: int) -> list[BodyRef]:
        writes.append(len(bodies))
        return real(project_id, bodies, now)

    world.bodies.put = put  # type: ignore[method-assign]
    world.run(seconds=30)
    assert writes == [2, 2, 1]
    assert len(world.pulled("failed")) == 5
