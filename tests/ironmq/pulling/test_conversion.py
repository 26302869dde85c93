"""A pull queue becomes a push queue while producers post, and nothing is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import pytest
from tests.engine.world import PROJECT, World
from tests.fakes import Crash, Fault, FaultPlan
from tests.ironmq.api.hub import Hub, Result

from pushhub.engine.model.message import Message
from pushhub.ironmq.pulling.conversion import SETTLES_S

URL = "https://a.example/in"
PUSH = {"convert": True, "push": {"subscribers": [{"name": "s0", "url": URL}], "retries": 3}}


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def hub(world: World) -> Hub:
    return Hub(world)


def convert(hub: Hub, **more: object) -> Result:
    return hub.call("PUT", "/queues/q", {"queue": PUSH | more})


def pushed(world: World) -> list[bytes]:
    return [each.body for each in world.sender.requests]


def test_what_waits_is_pushed_with_its_id_and_what_is_posted_from_then_on_too(hub: Hub, world: World) -> None:
    # Given a pull queue that posts have made, with more messages than one reservation takes
    ids = hub.post("q", *(f"{n}" for n in range(50)))
    # When it is converted
    answer = convert(hub)
    assert (answer.status, answer.body["queue"]["type"], answer.body["queue"]["left"]) == (200, "multicast", 0)
    later = hub.post("q", "later")
    world.run(seconds=5)
    # Then all of it is pushed once, under the same ids
    assert Counter(pushed(world)) == Counter([*(f"{n}".encode() for n in range(50)), b"later"])
    sent = {each.headers["Iron-Message-Id"] for each in world.sender.requests}
    assert sent == {*ids, *later}
    assert "left" not in hub.call("GET", "/queues/q").body["queue"]
    # And nothing happens when the request is repeated
    assert convert(hub).body["queue"]["left"] == 0
    world.run(seconds=5)
    assert len(pushed(world)) == 51


def test_what_a_consumer_has_and_what_is_delayed_is_left_and_told_of_until_a_later_request_moves_it(
    hub: Hub, world: World
) -> None:
    hub.post("q", "reserved")
    [reserved] = hub.reserve("q", timeout=300)
    hub.post("q", "delayed", delay=600)
    hub.post("q", "free")
    assert convert(hub).body["queue"]["left"] == 2
    world.run(seconds=5)
    assert pushed(world) == [b"free"]
    assert hub.call("GET", "/queues/q").body["queue"]["left"] == 2
    world.run(seconds=700)
    assert convert(hub).body["queue"]["left"] == 0
    world.run(seconds=5)
    assert Counter(pushed(world)) == Counter([b"free", b"reserved", b"delayed"])
    assert reserved["body"] == "reserved"


def test_a_project_converts_few_queues_at_a_time(hub: Hub, world: World) -> None:
    # Given a project whose requests occupy all the environments that they may keep for long
    hub.post("q", "a")
    waits, now = world.ports.calls, world.clock.now()
    places = [waits.enter(PROJECT, now=now, until=now + 60_000) for _ in range(waits.places)]
    # When it converts a queue, Then that is refused without a wait, and can be repeated
    assert convert(hub).status == 429
    assert world.clock.now() - now < 1_000 * SETTLES_S
    waits.leave(PROJECT, places[0] or "")
    assert convert(hub).body["queue"]["left"] == 0
    # And a request that has ended leaves its place
    assert len(waits.waiting[PROJECT]) == waits.places - 1


def stores_late(hub: Hub, world: World) -> Callable[[], None]:
    """A post that finds the queue a pull queue now, and stores its message when it is called."""
    found = world.config.queue(PROJECT, "q", fresh=True)
    assert found is not None

    def store() -> None:
        now = world.clock.now()
        late = Message(
            project=PROJECT,
            queue="q",
            queue_uid=found.pull_uid,
            message_id="1900000000000000000",
            body=b"late",
            body_size=4,
            accepted_at=now,
            due_at=now,
            expires_at=now + 1_000_000,
            subscriber_ids=(),
        )
        world.pull.put([late])

    return store


def test_a_post_that_was_under_way_is_not_lost(hub: Hub, world: World) -> None:
    # Given a post that stores its message after the queue was converted
    hub.post("q", "before")
    store = stores_late(hub, world)
    convert(hub)
    store()
    # Then the queue says that something is left, and the next request moves it
    assert hub.call("GET", "/queues/q").body["queue"]["left"] == 1
    assert convert(hub).body["queue"]["left"] == 0
    world.run(seconds=5)
    assert Counter(pushed(world)) == Counter([b"before", b"late"])


def test_a_post_that_was_under_way_is_waited_for(hub: Hub, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a post that stores its message within a second after the queue was converted
    hub.post("q", "before")
    store = stores_late(hub, world)
    monkeypatch.setattr(world.clock, "sleep", lambda seconds: store())
    # When it is converted, then one request moves it
    assert convert(hub).body["queue"]["left"] == 0
    world.run(seconds=5)
    assert Counter(pushed(world)) == Counter([b"before", b"late"])


def test_without_being_asked_for_the_type_stays_what_it_is(hub: Hub) -> None:
    hub.post("q", "x")
    subscribers = [{"name": "s0", "url": URL}]
    typed = hub.call("PUT", "/queues/q", {"queue": {"type": "multicast", "push": {"subscribers": subscribers}}})
    assert (typed.status, typed.msg) == (403, "Trying to Change Immutable Queue Parameters")
    assert hub.call("PUT", "/queues/q", {"queue": {"push": {"subscribers": subscribers}}}).status == 400
    # Nor does it change without subscribers, or into what cannot be
    for wrong in ({"convert": True}, {"convert": True, "push": {"retries": 1}}, PUSH | {"dead_letter": DEAD}):
        assert hub.call("PUT", "/queues/q", {"queue": wrong}).status == 400
    assert hub.call("GET", "/queues/q").body["queue"]["type"] == "pull"
    assert len(hub.reserve("q")) == 1


DEAD = {"queue_name": "dead", "max_reservations": 2}


def test_what_only_pull_queues_have_ends_and_clearing_clears_what_is_left(hub: Hub, world: World) -> None:
    hub.make("q", dead_letter=DEAD)
    hub.post("q", "x", delay=600)
    assert convert(hub, type="unicast").body["queue"]["type"] == "unicast"
    shown = hub.call("GET", "/queues/q").body["queue"]
    assert (shown["left"], "dead_letter" in shown) == (1, False)
    assert hub.call("DELETE", "/queues/q/messages", {}).status == 200
    assert "left" not in hub.call("GET", "/queues/q").body["queue"]


def test_what_a_failed_request_had_reserved_is_moved_by_the_next_one_at_once(hub: Hub, world: World) -> None:
    # Given a conversion of which one message could not be put into what is pushed
    hub.post("q", *(f"{n}" for n in range(10)))
    failed = convert(hub.struck(FaultPlan(Fault.FAILS, at=3, of="pull.delete"), "pull"))
    assert failed.status == 500
    # When the same request comes again, Then nothing waits for a reservation that nobody has any more
    assert convert(hub).body["queue"]["left"] == 0
    world.run(seconds=5)
    assert set(pushed(world)) == {f"{n}".encode() for n in range(10)}


@pytest.mark.parametrize("fault", [*Fault])
def test_a_failure_in_the_middle_loses_nothing_and_the_request_can_be_repeated(fault: Fault) -> None:
    for at in range(1, 100):
        world = World()
        hub = Hub(world)
        hub.post("q", "1", "2", "3")
        plan = FaultPlan(fault, at=at)
        # When one of the calls that a conversion makes fails
        status = 0
        with suppress(Crash):
            status = convert(hub.struck(plan, "config", "pull", "messages")).status
        if not plan.struck:
            assert at > 10
            return
        # Then its sender is told, and whoever repeats the request until nothing is left has lost nothing
        assert status in (0, 200, 500)
        for _ in range(3):
            world.run(seconds=70)
            left = convert(hub).body["queue"]["left"]
        world.run(seconds=70)
        assert left == 0
        assert set(pushed(world)) == {b"1", b"2", b"3"}
    raise AssertionError("it makes very many calls")
