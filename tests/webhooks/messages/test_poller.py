"""Messages read in order by polling: none is skipped, however late it reaches the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.fakes import Crash, Fault, FaultPlan
from tests.webhooks.world import Answered, WebhooksWorld

from pushhub.base.ids import id_before
from pushhub.base.times import iso_time
from pushhub.engine.model.message import Message
from pushhub.webhooks.model.ids import message_id
from pushhub.webhooks.wiring import Webhooks


def post(world: WebhooksWorld, app: str, **more: Any) -> str:
    return str(world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}, **more})["id"])


def test_a_poller_without_an_iterator_gets_what_waits(world: WebhooksWorld, app: str) -> None:
    # Given messages that were posted before anybody polled
    ids = [post(world, app) for _ in range(3)]
    world.clock.advance(seconds=80 * 86_400)
    ids.append(post(world, app))
    world.clock.advance(seconds=3)
    # When a poller and a consumer come without an iterator
    for path in (f"/app/{app}/poller/sink", f"/app/{app}/poller/sink/consumer/one"):
        first = world.ask("GET", path, limit=2)
        # Then they get them from the oldest on, in order
        assert ([each["id"] for each in first["data"]], first["done"]) == (ids[:2], False)
        rest = world.ask("GET", path, iterator=first["iterator"])
        assert ([each["id"] for each in rest["data"]], rest["done"]) == (ids[2:], True)
    # And a consumer that does not acknowledge gets the same again
    again = world.ask("GET", f"/app/{app}/poller/sink/consumer/two", limit=2)
    assert world.ask("GET", f"/app/{app}/poller/sink/consumer/two", limit=2) == again
    assert [each["id"] for each in again["data"]] == ids[:2]
    # And without messages there is a place to go on from
    empty = world.ask("GET", f"/app/{world.make_app()}/poller/sink")
    assert (empty["data"], empty["done"]) == ([], True)
    assert empty["iterator"]


def test_whoever_has_a_clock_that_is_ahead_misses_nothing(world: WebhooksWorld, app: str) -> None:
    # Given readers that ask for what comes after a moment that is still to come
    path = f"/app/{app}/poller/sink"
    ahead = iso_time(world.clock.now() + 3_600_000)
    polled = world.ask("GET", path, after=ahead)["iterator"]
    sought = world.ask("POST", f"{path}/consumer/one/seek", {"after": ahead})["iterator"]
    # When a message is posted, then both get it
    world.clock.advance(seconds=1)
    message = post(world, app)
    world.clock.advance(seconds=5)
    for given in ({"path": path, "iterator": polled}, {"path": f"{path}/consumer/one"}):
        assert [each["id"] for each in world.ask("GET", **given)["data"]] == [message]
    assert sought == polled
    # And an iterator that leads to a time to come is none
    forged = message_id(id_before(world.clock.now() + 3_600_000))
    for each in (path, f"{path}/consumer/one"):
        assert world.call("GET", each, iterator=forged).status == 422
    assert world.ask("GET", f"{path}/consumer/one")["data"]


class Reader:
    """Reads on from its last position until there is nothing more."""

    def __init__(self, world: WebhooksWorld, app: str) -> None:
        self._world = world
        self._path = f"/app/{app}/poller/sink"
        self._iterator = world.ask("GET", self._path)["iterator"]

    def read(self) -> list[str]:
        self._world.clock.advance(seconds=3)
        ids: list[str] = []
        for _ in range(100):
            answer = self._world.ask("GET", self._path, iterator=self._iterator, limit=2)
            self._iterator = answer["iterator"]
            ids += [each["id"] for each in answer["data"]]
            if answer["done"]:
                return ids
        raise AssertionError("no end")


def test_messages_are_read_in_order_once_each(world: WebhooksWorld, app: str) -> None:
    reader = Reader(world, app)
    ids = [post(world, app) for _ in range(5)]
    assert reader.read() == ids
    ids = [post(world, app) for _ in range(2)]
    assert reader.read() == ids
    assert reader.read() == []


def test_a_message_whose_write_took_long_is_read_though_others_after_it_were(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a message whose write takes ten seconds, while others are posted and read
    world = WebhooksWorld()
    app = world.make_app()
    reader = Reader(world, app)
    real, before = world.messages.accept, []

    def slow(messages: Sequence[Message]) -> None:
        monkeypatch.setattr(world.messages, "accept", real)
        world.clock.advance(seconds=5)
        before.append(post(world, app))
        assert reader.read() == before
        world.clock.advance(seconds=5)
        real(messages)

    monkeypatch.setattr(world.messages, "accept", slow)
    late = post(world, app)
    after = [post(world, app) for _ in range(3)]
    # Then it is read once it is there, and a consumer that begins later reads it too
    assert reader.read() == [late, *after]
    assert reader.read() == []
    # And the list shows it once
    listed = [each["id"] for each in world.ask("GET", f"/app/{app}/msg")["data"]]
    assert sorted(listed) == sorted([late, *before, *after])


def posted_in_the_end(plan: FaultPlan) -> tuple[str, list[str]]:
    """Post with a key, by functions that the plan strikes; retry after a minute when that fails.

    Returns the message, and what a consumer read meanwhile and afterwards.
    """
    world = WebhooksWorld()
    app = world.make_app()
    reader = Reader(world, app)
    read: list[str] = []
    for _ in range(4):
        # As a cold start does.
        struck = world.ports.build(plan).part(Webhooks).api
        body = {"eventType": "a", "payload": {}}
        try:
            answer = world.call("POST", f"/app/{app}/msg", body, headers={"Idempotency-Key": "k"}, api=struck)
        except Crash:
            answer = Answered(500, None, {})
        if answer.status == 202:
            return str(answer.body["id"]), read + reader.read()
        world.clock.advance(seconds=60)
        post(world, app, eventType="b")
        read += reader.read()
    raise AssertionError("never taken")


@pytest.mark.parametrize("fault", Fault)
def test_whatever_fails_once_a_message_that_is_posted_again_a_minute_later_is_read(fault: Fault) -> None:
    learned = FaultPlan()
    posted_in_the_end(learned)
    for number, call in enumerate(learned.calls, 1):
        message, read = posted_in_the_end(FaultPlan(fault, at=number))
        assert message in read, f"call {number}: {call}"
