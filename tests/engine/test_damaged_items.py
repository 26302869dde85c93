"""An item that nobody can read, whichever it is: its own deliveries wait for somebody to mend it, and everybody else's
are made in time.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.world import World, subscribers
from tests.fakes import Reply
from tests.ironmq.api.hub import Hub

from pushhub.base.errors import Unreadable
from pushhub.engine.acceptance import accept
from pushhub.engine.model.deflated import Deflated
from pushhub.engine.model.delivery import DeliveryState

BAD, GOOD, DOWN = "https://bad.example/in", "https://good.example/in", "https://down.example/in"

READS = {
    "messages": ("message", "messages", "delivery", "deliveries"),
    "subscribers": ("health", "flow", "backlog", "waiting", "behind"),
    "config": ("queue",),
    "bodies": ("get",),
}
"""What runs that serve several projects read of one of them, by port."""


def poisoned(world: World, port: str, method: str) -> list[str]:
    """Let one read raise for whatever is of the bad queue; what was asked for so."""
    real = getattr(getattr(world, port, None) or getattr(world.ports, port), method)
    asked: list[str] = []

    def read(*given: Any, **named: Any) -> Any:
        if "bad" in repr((given, named)):
            asked.append(method)
            raise Unreadable
        return real(*given, **named)

    setattr(getattr(world, port, None) or getattr(world.ports, port), method, read)
    return asked


PLACES = [(port, method) for port, methods in READS.items() for method in methods]


def test_the_places_are_those_of_the_fakes() -> None:
    assert len(PLACES) >= 10


@pytest.mark.parametrize(("port", "method"), PLACES)
def test_whatever_cannot_be_read_of_one_queue_stops_no_other(port: str, method: str) -> None:
    # Given two queues, of which one has an endpoint that is there, and one whose messages are given up
    world = World()
    for name, url in (("bad", BAD), ("good", GOOD)):
        world.make_queue(name, subscribers(url, DOWN), retries=1, retries_delay=5, error_queue=f"{name}-errors")
    world.sender.script(DOWN, *[Reply(status_code=500)] * 8)
    # When something of one cannot be read from the moment on that its messages are stored
    world.post("bad", b"bad")
    poisoned(world, port, method)
    posted = world.post("good", b"1", b"2")
    world.run(seconds=600)
    # Then every message of the other was pushed, or given up and reported to its error queue
    assert {each.body for each in world.sender.requests_to(GOOD)} == {b"1", b"2"}
    states = [sorted(each.state for each in world.deliveries(message)) for message in posted]
    assert states == [[DeliveryState.DELIVERED, DeliveryState.EXHAUSTED]] * 2
    assert len(world.pulled("good-errors")) == 2


def test_a_poisoned_order_is_kept_apart_from_its_batch_and_named() -> None:
    # Given a delivery whose state cannot be read, in a batch with others
    world = World()
    world.make_queue("bad", subscribers(BAD))
    world.make_queue("good", subscribers(GOOD), retries_delay=5)
    for url in (BAD, GOOD):
        world.sender.script(url, Reply(status_code=500), Reply(status_code=200))
    world.post("bad", b"x")
    asked = poisoned(world, "messages", "deliveries")
    world.post("good", b"y")
    world.run(seconds=120)
    # When it comes back, then the other is tried again as it should be
    assert len(world.sender.requests_to(GOOD)) == 2
    assert asked
    assert {each["queue"] for each in world.telemetry.named("push_fault")} == {"bad"}
    assert world.telemetry.counts["PushFaults"] >= 1


def test_a_stored_body_that_nobody_can_open_goes_to_nobody_and_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a message whose body was damaged where it is stored
    world = World()
    for name, url in (("bad", BAD), ("good", GOOD)):
        world.make_queue(name, subscribers(url))
    with monkeypatch.context() as damaged:
        damaged.setattr(accept, "stored_as", lambda body: Deflated(b"\0" * 40, len(body)))
        world.post("bad", b"b" * 600)
    # When another one is posted
    world.post("good", b"1" * 600)
    world.run(seconds=60)
    # Then that arrives, and nothing of the first does, not even other bytes
    assert [each.body for each in world.sender.requests_to(GOOD)] == [b"1" * 600]
    assert world.sender.requests_to(BAD) == []
    assert {each["queue"] for each in world.telemetry.named("push_fault")} == {"bad"}


@pytest.mark.parametrize("dead_letter", [None, {"queue_name": "dead", "max_reservations": 1}])
def test_a_stored_body_that_nobody_can_open_stays_with_its_pull_queue_and_those_behind_it_are_handed_out(
    monkeypatch: pytest.MonkeyPatch, dead_letter: dict[str, Any] | None
) -> None:
    # Given a pull queue whose first message has a body that was damaged where it is stored
    hub = Hub()
    hub.make("q", dead_letter=dead_letter)
    with monkeypatch.context() as damaged:
        damaged.setattr(accept, "stored_as", lambda body: Deflated(b"\0" * 40, len(body)))
        hub.post("q", "b" * 600)
    hub.post("q", "1", "2", "3")
    # When a consumer asks for one after the other, again and again
    taken: list[str] = []
    for _ in range(4):
        taken += [each["body"] for _ in range(5) for each in hub.reserve("q", n=1, delete=True)]
        hub.world.clock.advance(seconds=120)
    # Then it gets all others, and it is told what is wrong
    assert taken == ["1", "2", "3"]
    assert hub.world.telemetry.counts["ItemsUnreadable"] >= 1
    # And who only looks sees those that can be read
    hub.post("q", "4")
    assert [each["body"] for each in hub.call("GET", "/queues/q/messages?n=10").body["messages"]] == ["4"]
