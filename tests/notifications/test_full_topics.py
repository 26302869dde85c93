"""Topics that are full of large notifications, of a table that gives 12 MB of a topic a second: each consumer gets all
of it, and each record is made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest
from tests.notifications.world import PROJECT, NotificationWorld, recorded

from pushhub.base.errors import Unavailable
from pushhub.notifications.model.topic import Commit
from pushhub.notifications.wire.publish import Draft

A_SECOND_BYTES = 12_000_000
SIZE, COUNT = 120_000, 210
AT_ONCE = 30

Read = TypeVar("Read", bound=Callable[..., object])


@pytest.fixture
def world(world: NotificationWorld, monkeypatch: pytest.MonkeyPatch) -> NotificationWorld:
    """A world whose table refuses what is more than it gives in a second."""
    given: Counter[int] = Counter()

    def count(commits: Iterable[Commit]) -> None:
        second = world.clock.now() // 1_000
        if given[second] >= A_SECOND_BYTES:
            raise Unavailable("dynamodb:BatchGetItem", "UnprocessedKeys")
        for each in commits:
            given[second] += sum(one.size for one in each.notifications)
        if given[second] >= 2 * A_SECOND_BYTES:
            raise Unavailable("dynamodb:BatchGetItem", "UnprocessedKeys")

    commits, commits_at = world.topics.commits, world.topics.commits_at

    def page(*where: object) -> list[Commit]:
        # An answer has a megabyte at most
        found = commits(*where)[:4]  # type: ignore[arg-type]
        count(found)
        return found

    def at(*where: object) -> dict[int, Commit]:
        found = commits_at(*where)  # type: ignore[arg-type]
        count(found.values())
        return found

    monkeypatch.setattr(world.topics, "commits", page)
    monkeypatch.setattr(world.topics, "commits_at", at)
    return world


def fill(world: NotificationWorld) -> None:
    for first in range(0, COUNT, AT_ONCE):
        drafts = [
            Draft(api="events", source="1", action="CREATE", data={"n": first + place, "text": SIZE * "x"})
            for place in range(AT_ONCE)
        ]
        world.publishing.publish(PROJECT, drafts)


def send(world: NotificationWorld) -> None:
    """The sender is woken for a while."""
    for _ in range(30):
        world.clock.advance(seconds=1)
        world.send_once()


def test_all_that_was_not_acknowledged_is_sent_again(world: NotificationWorld) -> None:
    # Given a consumer that was sent all of a full topic, and one that was away
    for connection, name in (("a", "app"), ("b", "other")):
        world.connect(connection, world.token(name))
    world.disconnect("b")
    fill(world)
    send(world)
    assert world.numbers("a") == [*range(COUNT)]
    # When both connect again
    world.disconnect("a")
    world.connect("c")
    send(world)
    world.connect("d", world.token("other"))
    send(world)
    # Then both get everything, in order
    assert world.numbers("c") == world.numbers("d") == [*range(COUNT)]


def test_records_of_a_subscriber_that_is_removed_are_made(world: NotificationWorld) -> None:
    # Given a consumer that was sent all of a full topic, and one that was away
    for connection, name in (("a", "app"), ("b", "other")):
        world.connect(connection, world.token(name))
    world.disconnect("b")
    fill(world)
    send(world)
    # When both subscribers are removed
    for name in ("app", "other"):
        world.subscribers.unsubscribe(world.token(name))
    # Then each delivery has an end
    kinds = Counter(each.kind for each in recorded(world))
    assert kinds == {"accepted": COUNT, "attempt": COUNT, "cancelled": 2 * COUNT}
