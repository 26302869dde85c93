"""Topics that are full of large notifications, of a table that gives 12 MB of a topic a second: each consumer gets all
of it, each record is made, and a search comes to an end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar
from unittest.mock import Mock

import pytest
from tests.notifications.store.test_changes import stream_record
from tests.notifications.world import PROJECT, NotificationWorld, recorded

from pushhub.base.errors import Unavailable
from pushhub.engine.model.catalogue import chunks_of
from pushhub.ironmq.model.finding import MOST_READ, EventQuery
from pushhub.ironmq.wiring import Ironmq
from pushhub.notifications.model.topic import Commit
from pushhub.notifications.store._items import encode_commit
from pushhub.notifications.store.changes import accepted_in_topic
from pushhub.notifications.wire.errors import BacklogFull
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
            Draft(
                api="events",
                source="1",
                action="CREATE",
                data={"n": first + place, "kind": "door", "text": SIZE * "x"},
            )
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


def test_what_has_expired_is_passed_over_in_parts(world: NotificationWorld) -> None:
    # Given a consumer that was sent all of a full topic, and one that was not, both away until all had expired
    for connection, name in (("a", "app"), ("b", "other")):
        world.connect(connection, world.token(name))
    world.disconnect("b")
    fill(world)
    send(world)
    world.disconnect("a")
    world.clock.advance(seconds=37 * 3_600)
    # When both connect again, and something is published
    world.connect("c")
    world.connect("d", world.token("other"))
    world.publish(4711)
    send(world)
    # Then both get it
    assert (world.numbers("c"), world.numbers("d")) == ([4711], [4711])


def test_what_waits_for_a_full_window_is_passed_over_in_parts(world: NotificationWorld) -> None:
    # Given a consumer whose window is full, and that acknowledges nothing
    world.ports.window = 50
    world.start()
    token = world.token(shared=True)
    world.connect("a", token)
    world.publish(*range(1_000, 1_050), source="1")
    send(world)
    # When a full topic waits for it, and something is published for one that it shares the subscriber with
    world.connect("b", token)
    fill(world)
    for number in range(10):
        world.publish(number, source=f"s{number}")
    send(world)
    # Then that one gets it
    assert len(world.numbers("a")) == 50
    assert world.numbers("b")


def test_one_of_each_large_commit_is_sent_again(world: NotificationWorld) -> None:
    # Given a consumer that has acknowledged all but one of the hundred notifications of each commit of a full topic
    world.ports.window = 10_000
    world.start()
    world.connect("a")
    for number in range(100):
        drafts = [Draft(api="events", source="1", action="CREATE", data={"n": number, "text": 2_500 * "x"})] * 100
        world.publishing.publish(PROJECT, drafts)
    send(world)
    frames = world.frames("a")
    assert len(frames) == 10_000
    for place, each in enumerate(frames):
        if place % 100:
            world.consumers.receive("a", each.ack_id)
    world.disconnect("a")
    # When it connects again
    world.connect("b")
    send(world)
    # Then it gets those
    assert world.numbers("b") == [*range(100)]


def test_a_publisher_is_told_at_once_whether_a_topic_is_full(world: NotificationWorld) -> None:
    # Given a full topic of which all has expired, while its subscriber was away
    world.connect("a")
    world.disconnect("a")
    fill(world)
    world.clock.advance(seconds=37 * 3_600)
    # When a topic full is published again, Then it is taken, within the second
    fill(world)
    # And what is more is not
    with pytest.raises(BacklogFull):
        fill(world)


@pytest.fixture
def listed(world: NotificationWorld) -> NotificationWorld:
    """A world whose topic is full, which the catalogue has."""
    world.connect("a")
    fill(world)
    images = [encode_commit(each.commit) for each in world.topics.changes]
    accepted = [each for image in images for each in accepted_in_topic(stream_record(after=image))]
    world.ports.catalogue.add([*chunks_of(accepted, "batch")])
    return world


def test_a_search_of_events_reads_a_part_and_goes_on_by_its_cursor(listed: NotificationWorld) -> None:
    events = listed.whole.part(Ironmq)._events
    pages, after = [], ""
    # When what only reading can tell is looked for
    while True:
        page = events.run(PROJECT, EventQuery(kind="topic", type="events UPDATE", after=after))
        pages.append(page)
        if page.after is None:
            break
        assert page.after != after
        after = page.after
        listed.clock.advance(seconds=1)
    # Then each page has read so much, and the last is the end
    assert len(pages) == 1 + COUNT * SIZE // MOST_READ
    assert [each.found for each in pages] == [[]] * len(pages)


def test_a_search_of_events_that_the_table_refuses_goes_on_where_it_was(listed: NotificationWorld) -> None:
    # Given clients that list a full topic side by side, within the same second
    events, after, found = listed.whole.part(Ironmq)._events, "", 0
    refused = 0
    while True:
        page = events.run(PROJECT, EventQuery(kind="topic", count=100, after=after))
        found += len(page.found)
        if page.after is None:
            break
        # Then a request that may read no more says so, and where it continues
        if not page.found:
            refused += 1
            listed.clock.advance(seconds=1)
        after = page.after
    assert (found, refused > 0) == (COUNT, True)


def test_a_search_by_value_reads_a_part_and_goes_on_by_its_cursor(listed: NotificationWorld) -> None:
    search = listed.whole.part(Ironmq)._search
    # When words are looked for that only some of the messages with the longest one may have
    found, after, requests = 0, None, 0
    while requests == 0 or after is not None:
        page = search.run(PROJECT, "door no", after)
        found += len(page.hits)
        after = page.after
        requests += 1
        listed.clock.advance(seconds=1)
    # Then it took some requests, of which none was refused
    assert (found, requests) == (0, 1 + COUNT * SIZE // MOST_READ)


def test_a_commit_is_read_once_for_all_its_notifications(
    world: NotificationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a hundred notifications of one request, which are one commit
    world.connect("a")
    world.publish(*range(100))
    (change,) = world.topics.changes
    accepted = accepted_in_topic(stream_record(after=encode_commit(change.commit)))
    world.ports.catalogue.add([*chunks_of(accepted, "batch")])
    commits_at = Mock(side_effect=world.topics.commits_at)
    monkeypatch.setattr(world.topics, "commits_at", commits_at)
    # When all are listed
    events = world.whole.part(Ironmq)._events
    assert len(events.run(PROJECT, EventQuery(kind="topic", count=100)).found) == 100
    # Then it was read once
    commits_at.assert_called_once()
