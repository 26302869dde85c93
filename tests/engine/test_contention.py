"""Several writers at once: changes build on each other, none is lost, and retries end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.engine.world import PROJECT, World
from tests.ironmq.api.hub import Hub

from pushhub.base.errors import Conflict
from pushhub.engine.model.delivery import Delivery
from pushhub.engine.model.queue import Queue

A, B = "https://a.example/in", "https://b.example/in"


def between(hub: Hub, other: Callable[[], Any]) -> None:
    """Let another writer come between the next read of a queue and its write."""
    real = hub.world.config.update_queue

    def late(queue: Queue) -> Queue:
        hub.world.config.update_queue = real  # type: ignore[method-assign]
        other()
        return real(queue)

    hub.world.config.update_queue = late  # type: ignore[method-assign]


def always_conflicting(hub: Hub) -> None:
    def conflict(queue: Queue) -> Queue:
        raise Conflict("busy")

    hub.world.config.update_queue = conflict  # type: ignore[method-assign]


CHANGES = [
    ("PATCH", "/queues/q", {"queue": {"push": {"retries": 9}}}),
    ("PUT", "/queues/q", {"queue": {"push": {"retries": 9}}}),
    ("POST", "/queues/q/subscribers", {"subscribers": [{"name": "x", "url": A}]}),
    ("DELETE", "/queues/q/subscribers", {"subscribers": [{"name": "s1"}]}),
    ("DELETE", "/queues/q/messages", {}),
]


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_concurrent_changes_of_a_queue_both_count(method: str, path: str, body: dict[str, Any]) -> None:
    # Given a change that another one comes before
    hub = Hub()
    hub.make_push("q", A, B)
    between(hub, lambda: hub.call("PATCH", "/queues/q", {"queue": {"message_expiration": 77}}))
    # Then both are in effect
    assert hub.call(method, path, body).status == 200
    assert hub.info("q")["message_expiration"] == 77
    push = hub.info("q")["push"]
    stored = hub.world.config.queue(PROJECT, "q")
    assert stored is not None
    assert push["retries"] == 9 or len(push["subscribers"]) != 2 or stored.cleared_at > 0


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_a_change_of_a_queue_that_never_comes_to_rest_is_to_be_repeated(
    method: str, path: str, body: dict[str, Any]
) -> None:
    hub = Hub()
    hub.make_push("q", A, B)
    always_conflicting(hub)
    assert hub.call(method, path, body).status == 503


def test_a_queue_deleted_during_a_change_is_not_found() -> None:
    hub = Hub()
    hub.make("q")
    between(hub, lambda: hub.call("DELETE", "/queues/q"))
    result = hub.call("PATCH", "/queues/q", {"queue": {"message_timeout": 9}})
    assert (result.status, result.msg) == (404, "Queue not found")


def test_a_queue_made_by_two_at_once_is_made_once() -> None:
    # Given another writer that creates the queue between our read and our write
    hub = Hub()
    real = hub.world.config.create_queue

    def late(queue: Queue) -> None:
        hub.world.config.create_queue = real  # type: ignore[method-assign]
        hub.make("q", message_timeout=9)
        real(queue)

    hub.world.config.create_queue = late  # type: ignore[method-assign]
    # Then our settings are merged into theirs
    queue = hub.make("q", message_expiration=77)
    assert (queue["message_timeout"], queue["message_expiration"]) == (9, 77)


def test_an_acknowledgement_comes_on_top_of_an_attempt_recorded_meanwhile() -> None:
    # Given a push that is being recorded as answered 202 just when its acknowledgement is written
    world = World()
    hub = Hub(world)
    world.sender.script(A, 202)
    hub.make_push("q", A)
    [message_id] = hub.post("q", "x")
    world.run(seconds=1)
    [pushed] = world.deliveries(message_id)
    real = world.messages.save

    def late(delivery: Delivery) -> None:
        world.messages.save = real  # type: ignore[method-assign]
        real(replace(pushed, version=pushed.version + 1))
        real(delivery)

    world.messages.save = late  # type: ignore[method-assign]
    headers = world.sender.requests[0].headers
    body = {"reservation_id": headers["Iron-Reservation-Id"]}
    assert hub.call("DELETE", f"/queues/q/messages/{message_id}", body).status == 200
    assert hub.statuses("q", message_id)[0]["status_code"] == 200


def test_a_deletion_of_deliveries_that_never_come_to_rest_is_to_be_repeated() -> None:
    world = World()
    hub = Hub(world)
    world.sender.script(A, 202)
    hub.make_push("q", A)
    [message_id] = hub.post("q", "x")
    world.run(seconds=1)

    def conflict(delivery: Delivery) -> None:
        raise Conflict("busy")

    world.messages.save = conflict  # type: ignore[method-assign]
    path = f"/queues/q/messages/{message_id}"
    body = {"reservation_id": world.sender.requests[0].headers["Iron-Reservation-Id"]}
    assert hub.call("DELETE", path, body).status == 503
    assert hub.call("DELETE", path).status == 503


def test_a_long_poll_follows_a_queue_that_is_cleared_meanwhile() -> None:
    # Given a consumer that waits while the queue gets a new line and then a message
    hub = Hub()
    hub.make("q")
    real = hub.world.clock.sleep

    def busy(seconds: float) -> None:
        hub.world.clock.sleep = real  # type: ignore[method-assign]
        hub.call("DELETE", "/queues/q/messages", {})
        hub.post("q", "after the clear")
        real(seconds)

    hub.world.clock.sleep = busy  # type: ignore[method-assign]
    assert [each["body"] for each in hub.reserve("q", wait=5)] == ["after the clear"]
