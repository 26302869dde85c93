"""Attempts go by copies of queues; a change by another process is in force for what is posted after it, and costs no
message.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.engine.world import PROJECT, World, subscribers

from pushhub.base.ports import PushRequest
from pushhub.base.verdict import Answer
from pushhub.engine.bodies import body_of
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.queue import PushSettings, Queue
from pushhub.engine.projects.copies import ChangeNotes
from pushhub.engine.projects.queue_copies import KEPT_MS

A, B = "https://a.example/in", "https://b.example/in"


@pytest.fixture
def world() -> World:
    """A hub."""
    return World()


def remember(world: World, name: str) -> Queue:
    """Let the functions read a queue; returns it as stored."""
    world.post(name, b"first")
    world.run(seconds=1)
    queue = world.config.queue(PROJECT, name)
    assert queue is not None
    return queue


def change(world: World, queue: Queue, **push: object) -> None:
    """Change a queue's push settings as another process does."""
    assert queue.push is not None
    settings: PushSettings = replace(queue.push, **push)  # type: ignore[arg-type]
    ChangeNotes(world.config, world.clock).note(PROJECT, queue.name)
    world.config.update_queue(replace(queue, push=settings))
    world.clock.advance(ms=1)


@pytest.mark.parametrize("unicast", [False, True])
def test_a_subscriber_added_just_now_gets_its_first_message(world: World, unicast: bool) -> None:
    # Given functions that remember a queue with one subscriber
    world.make_queue("q", subscribers(A), unicast=unicast, retries=0)
    queue = remember(world, "q")
    # When another is added, the first one fails, and a message is posted
    change(world, queue, subscribers=subscribers(A, B))
    world.sender.script(A, 500)
    [message_id] = world.post("q", b"second")
    world.run(seconds=1)
    # Then it reaches the new one
    assert [request.body for request in world.sender.requests_to(B)] == [b"second"]
    assert DeliveryState.DELIVERED in {each.state for each in world.deliveries(message_id)}


def test_a_queue_made_anew_pushes_its_first_message(world: World) -> None:
    # Given functions that remember a queue
    world.make_queue("q", subscribers(A))
    queue = remember(world, "q")
    # When it is deleted and made again, and a message is posted
    world.config.delete_queue(queue)
    world.config.create_queue(replace(queue, uid="uid-again", pull_uid="line-again"))
    world.clock.advance(seconds=KEPT_MS / 1000)
    world.post("q", b"second")
    world.run(seconds=1)
    # Then it is pushed
    assert [request.body for request in world.sender.requests_to(A)] == [b"first", b"second"]


def test_a_retry_sees_what_was_changed(world: World) -> None:
    # Given a message that failed once
    world.make_queue("q", subscribers(A), retries=5, retries_delay=60)
    queue = remember(world, "q")
    world.sender.script(A, 500)
    world.post("q", b"second")
    world.run(seconds=1)
    # When the subscriber moves to another URL
    moved = tuple(replace(each, url=B) for each in subscribers(A))
    change(world, queue, subscribers=moved)
    world.run(seconds=70)
    # Then the retry goes there
    assert [request.body for request in world.sender.requests_to(B)] == [b"second"]


def test_an_error_queue_set_just_now_gets_the_error(world: World) -> None:
    # Given functions that remember a queue without an error queue
    world.make_queue("q", subscribers(A), retries=0)
    queue = remember(world, "q")
    # When it gets one, and a message fails
    change(world, queue, error_queue="failed")
    world.sender.script(A, 500)
    world.post("q", b"second")
    world.run(seconds=1)
    # Then the error is there
    assert len(world.pulled("failed")) == 1


@pytest.mark.parametrize("posted_before", [False, True])
def test_a_first_attempt_sees_what_was_changed(world: World, posted_before: bool) -> None:
    # Given functions that remember a queue, and a message that waits or comes later
    world.make_queue("q", subscribers(A))
    queue = remember(world, "q")
    if posted_before:
        world.post("q", b"second", delay_s=60)
    # When its subscriber moves to another URL, with other headers
    moved = tuple(replace(each, url=B, headers={"x-token": "new"}) for each in subscribers(A))
    change(world, queue, subscribers=moved)
    if not posted_before:
        world.post("q", b"second")
    world.run(seconds=60)
    # Then the first attempt goes there
    [request] = world.sender.requests_to(B)
    assert (request.body, request.headers["x-token"]) == (b"second", "new")
    assert [each.body for each in world.sender.requests_to(A)] == [b"first"]


@pytest.mark.parametrize("ended_by", ["clear", "delete", "remove"])
def test_a_delayed_message_is_not_pushed_once_its_owner_took_it_back(world: World, ended_by: str) -> None:
    # Given functions that remember a queue, and a message that waits in it
    world.make_queue("q", subscribers(A))
    queue = remember(world, "q")
    world.post("q", b"delayed", delay_s=10)
    world.run(seconds=9)
    # When its owner clears or deletes the queue, or removes the subscriber
    if ended_by == "remove":
        change(world, queue, subscribers=subscribers(B)[:0])
    else:
        ChangeNotes(world.config, world.clock).note(PROJECT, "q")
        if ended_by == "clear":
            world.config.update_queue(replace(queue, cleared_at=world.clock.now()))
        else:
            world.config.delete_queue(queue)
    world.run(seconds=20)
    # Then it is not sent
    assert [each.body for each in world.sender.requests_to(A)] == [b"first"]


def test_an_attempt_that_was_held_up_looks_at_its_queue_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a message whose body takes a second to load, while its subscriber moves
    world.make_queue("q", subscribers(A))
    queue = remember(world, "q")
    moved = tuple(replace(each, url=B) for each in subscribers(A))
    loads = iter([True])

    def slowly(*given: Any) -> bytes:
        if next(loads, False):
            change(world, queue, subscribers=moved)
            world.clock.advance(seconds=1)
        return body_of(*given)

    monkeypatch.setattr("pushhub.engine.attempts.deliver.body_of", slowly)
    # When it is attempted
    world.post("q", b"second")
    world.run(seconds=5)
    # Then it goes to the new URL, once
    assert [each.body for each in world.sender.requests_to(B)] == [b"second"]
    assert [each.body for each in world.sender.requests_to(A)] == [b"first"]


def test_the_next_of_a_round_goes_by_what_was_changed_during_the_one_before(world: World) -> None:
    # Given a message owed to any of two, the first of which fails slowly, while the other moves
    c = "https://c.example/in"
    world.make_queue("q", subscribers(A, B), unicast=True)
    queue = world.config.queue(PROJECT, "q")
    assert queue is not None
    moved = (*subscribers(A), replace(subscribers(A, B)[1], url=c))
    send = world.sender.send

    def slowly(request: PushRequest) -> Answer:
        if request.url == A:
            change(world, queue, subscribers=moved)
            world.clock.advance(seconds=3)
        return send(request)

    world.sender.script(A, 500)
    world.sender.send = slowly  # type: ignore[method-assign]
    # When it is attempted
    world.post("q", b"first")
    world.run(seconds=5)
    # Then the second one is asked where it is now
    assert not world.sender.requests_to(B)
    assert len(world.sender.requests_to(A)) + len(world.sender.requests_to(c)) >= 1
    assert {each.url for each in world.sender.requests} <= {A, c}
