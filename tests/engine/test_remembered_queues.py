"""Functions cache queues for a while; a change by another process in that time costs no message."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.engine.world import PROJECT, World, subscribers
from tests.fakes import FakeConfigStore

from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.queue import PushSettings, Queue

A, B = "https://a.example/in", "https://b.example/in"


class RememberingConfigStore(FakeConfigStore):
    """Never notices a change without a fresh read, like a process that did not make the change."""

    def __init__(self) -> None:
        super().__init__()
        self._remembered: dict[tuple[str, str], Queue] = {}

    def queue(self, project_id: str, name: str, *, fresh: bool = False) -> Queue | None:
        if not fresh and (project_id, name) in self._remembered:
            return self._remembered[project_id, name]
        stored = super().queue(project_id, name)
        if stored is not None:
            self._remembered[project_id, name] = stored
        return stored


@pytest.fixture
def world() -> World:
    """A hub whose functions cache."""
    return World(config=RememberingConfigStore())


def remember(world: World, name: str) -> Queue:
    """Let the functions read a queue; returns it as stored."""
    world.post(name, b"first")
    world.run(seconds=1)
    queue = world.config.queue(PROJECT, name)
    assert queue is not None
    return queue


def change(world: World, queue: Queue, **push: object) -> None:
    """Change a queue's push settings, as another process does, and read it for a post, as ingest's process does."""
    assert queue.push is not None
    settings: PushSettings = replace(queue.push, **push)  # type: ignore[arg-type]
    world.config.update_queue(replace(queue, push=settings))


def post_elsewhere(world: World, name: str, body: bytes) -> str:
    """Post through another process: this one keeps its cache."""
    config = world.config
    assert isinstance(config, RememberingConfigStore)
    before = dict(config._remembered)
    [message_id] = world.post(name, body)
    config._remembered = before
    return message_id


@pytest.mark.parametrize("unicast", [False, True])
def test_a_subscriber_added_just_now_gets_its_first_message(world: World, unicast: bool) -> None:
    # Given functions that remember a queue with one subscriber
    world.make_queue("q", subscribers(A), unicast=unicast, retries=0)
    queue = remember(world, "q")
    # When another is added, the first one fails, and a message is posted
    change(world, queue, subscribers=subscribers(A, B))
    world.sender.script(A, 500)
    message_id = post_elsewhere(world, "q", b"second")
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
    post_elsewhere(world, "q", b"second")
    world.run(seconds=1)
    # Then it is pushed
    assert [request.body for request in world.sender.requests_to(A)] == [b"first", b"second"]


def test_a_retry_sees_what_was_changed(world: World) -> None:
    # Given a message that failed once
    world.make_queue("q", subscribers(A), retries=5, retries_delay=60)
    queue = remember(world, "q")
    world.sender.script(A, 500)
    post_elsewhere(world, "q", b"second")
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
    post_elsewhere(world, "q", b"second")
    world.run(seconds=1)
    # Then the error is there
    assert len(world.pulled("failed")) == 1
