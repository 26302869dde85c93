"""What waits for each subscriber of a topic."""

from __future__ import annotations

from tests.notifications.world import PROJECT, NotificationWorld

from pushhub.notifications.log import Retention
from pushhub.notifications.waiting import Waiting
from pushhub.notifications.wiring import Notifications


def waiting(world: NotificationWorld, name: str = "orders") -> dict[str, Waiting]:
    return {each.subscriber: each for each in world.whole.part(Notifications).waiting.of(PROJECT, name)}


def size_of(*numbers: int) -> int:
    return sum(len(f'{{"n":{each}}}') + len("111") + len("events") + len("CREATE") for each in numbers)


def test_what_waits_is_what_the_topic_s_limit_counts() -> None:
    # Given one subscriber that reads and one that is away
    world = NotificationWorld()
    world.rule()
    for name in ("away", "reads"):
        world.connect(name, world.token(name))
    world.disconnect("away")
    began = world.clock.now()
    world.publish(1, 2, 3)
    world.clock.advance(seconds=1)
    world.publish(4)
    world.send_all()
    # Then all of it waits for both, and one was sent it
    found = waiting(world)
    assert {name: each.size for name, each in found.items()} == dict.fromkeys(found, size_of(1, 2, 3, 4))
    assert [(each.consumers, each.unacknowledged) for each in (found["away"], found["reads"])] == [(0, 0), (1, 4)]
    assert found["away"].oldest_at == began
    # And an acknowledgement counts at once
    world.acknowledge("reads", 1, 2)
    assert waiting(world)["reads"].size == size_of(3, 4)
    assert waiting(world)["reads"].oldest_at == began
    world.acknowledge("reads", 3)
    assert waiting(world)["reads"].oldest_at == began + 1_000
    world.acknowledge("reads", 4)
    assert (waiting(world)["reads"].size, waiting(world)["reads"].oldest_at) == (0, None)
    assert waiting(world)["away"] == found["away"]


def test_what_has_expired_does_not_wait_and_topics_are_told_apart() -> None:
    world = NotificationWorld(retention=Retention(age_ms=10_000))
    world.rule()
    world.rule("others", source="7")
    world.connect("a", world.token("app"))
    world.disconnect("a")
    world.publish(1)
    assert waiting(world)["app"].size > 0
    assert waiting(world, "others") == {}
    world.clock.advance(seconds=20)
    assert (waiting(world)["app"].size, waiting(world)["app"].oldest_at) == (0, None)
