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
from pushhub.engine.model.queue import PushSettings, Queue
from pushhub.engine.projects.copies import ChangeNotes

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
