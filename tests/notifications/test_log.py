"""One order for all publishers, and the effect of a full backlog."""

from __future__ import annotations

import itertools
import threading

import pytest
from tests.fakes import Crash, Fault, FaultPlan
from tests.notifications.world import PROJECT, NotificationWorld

from pushhub.base.errors import TooLarge, Unavailable
from pushhub.notifications.log import Retention
from pushhub.notifications.model.request import CommitPart
from pushhub.notifications.model.topic import Commit, Topic, sequence_of
from pushhub.notifications.wire.errors import BacklogFull
from pushhub.notifications.wire.publish import Draft

TOPIC = Topic(project=PROJECT, name="orders")


@pytest.fixture
def world() -> NotificationWorld:
    world = NotificationWorld()
    world.rule()
    world.connect("a")
    world.send_all()
    return world


def draft(number: int, text: str = "") -> Draft:
    return Draft(api="events", source="111", action="CREATE", data={"n": number, "text": text})


def test_concurrent_publishers_are_put_into_one_order_that_every_subscriber_sees(world: NotificationWorld) -> None:
    world.connect("b", world.token("other"))

    def publish(start: int) -> None:
        for number in range(start, start + 25):
            world.publish(number)

    def send_often() -> None:
        for _ in range(400):
            world.send_once()

    threads = [threading.Thread(target=publish, args=(start,)) for start in range(0, 200, 25)]
    sender = threading.Thread(target=send_often)
    for each in (*threads, sender):
        each.start()
    for each in (*threads, sender):
        each.join()
    world.send_all()
    assert sorted(world.numbers("a")) == list(range(200))
    assert world.numbers("a") == world.numbers("b")
    for start in range(0, 200, 25):
        mine = [each for each in world.numbers("a") if start <= each < start + 25]
        assert mine == sorted(mine)


def test_a_reader_never_passes_a_commit_that_appears_later(world: NotificationWorld) -> None:
    # Given a publisher that has reserved its place but not filled it, and another one after it
    place = world.topics.reserve(TOPIC, 10, world.clock.now())
    assert place is not None
    world.publish(2)
    # When the sender looks
    world.send_once()
    # Then nothing is sent yet
    assert world.numbers("a") == []
    # And when the slow one comes in time, order is kept
    world.topics.append(world.log._filled(TOPIC, place, ()))
    world.send_all()
    assert world.numbers("a") == [2]


def test_a_place_that_nobody_fills_is_given_up_and_its_slow_publisher_takes_another(world: NotificationWorld) -> None:
    # Given a publisher that is slow between reserving its place and filling it
    real = world.topics.append
    slow = threading.Event()

    def publish_in_between(commit: Commit, part: CommitPart | None = None) -> None:
        world.topics.append = real  # type: ignore[method-assign]
        world.clock.advance(seconds=3)
        world.publish(2)
        world.send_all()
        slow.set()
        real(commit, part)

    world.topics.append = publish_in_between  # type: ignore[method-assign]
    # When another one publishes meanwhile and the sender voids the empty place
    world.publish(1)
    world.send_all()
    # Then both arrive, in the order of the places they got
    assert slow.is_set()
    assert world.numbers("a") == [2, 1]


def test_a_publisher_that_died_delays_its_topic_by_two_seconds_at_most(world: NotificationWorld) -> None:
    world._plan = FaultPlan(Fault.CRASHES_AFTER, of="topics.reserve")
    world.start()
    with pytest.raises(Crash):
        world.publish(1)
    world._plan = FaultPlan()
    world.start()
    world.publish(2)
    began = world.clock.now()
    world.send_all()
    assert world.numbers("a") == [2]
    assert world.clock.now() - began <= 2_000


def test_a_wide_hole_is_passed_once_nobody_can_be_writing_there(world: NotificationWorld) -> None:
    # Given a gap left by expired notifications, with a publisher right before the next commit
    for _ in range(40):
        world.topics.reserve(TOPIC, 10, world.clock.now())
    world.publish(2)
    began = world.clock.now()
    world.send_all()
    assert world.numbers("a") == [2]
    assert 55_000 <= world.clock.now() - began <= 61_000


def test_a_subscriber_that_comes_back_after_the_retention_gets_what_is_still_kept(world: NotificationWorld) -> None:
    world.publish(1)
    world.send_all()
    world.disconnect("a")
    for number in range(2, 50):
        world.publish(number)
    world.clock.advance(seconds=36 * 3600)
    world.publish(100)
    # Whether the table has already deleted what expired or not
    for deleted in (False, True):
        if deleted:
            world.topics.expire(world.clock.now())
        connection_id = f"b{deleted}"
        world.connect(connection_id)
        world.send_all()
        assert world.numbers(connection_id) == [100]
        world.disconnect(connection_id)


def test_very_much_that_expired_unsent_is_passed_in_steps_and_told_in_few_pairs(world: NotificationWorld) -> None:
    # Given many small commits that expired while nobody was connected, with a place among them that was never filled
    world.disconnect("a")
    for number in range(3000):
        world.publish(number)
    world.topics.reserve(TOPIC, 1, world.clock.now())
    for number in range(3000, 4000):
        world.publish(number)
    world.clock.advance(seconds=36 * 3600)
    world.publish(5000)
    # When the subscriber comes back, and each run of the sender has little time
    before = len(world.backlogs.changes)
    world.connect("b")
    for _ in range(50):
        world.send_once(remaining_ms=4_001)
        world.clock.advance(seconds=60)
    assert world.numbers("b") == [5000]
    # Then no write of its backlog was large, none passed many positions at once, and all are recorded
    written = [change.after for change in world.backlogs.changes[before:] if change.after]
    assert max(len(each.lapsed) for each in written) < 10
    steps = [sequence_of(two.next or 0) - sequence_of(one.next or 0) for one, two in itertools.pairwise(written)]
    assert max(steps) <= 1100
    lapsed = [pair for each in written for pair in each.lapsed]
    world.topics.page = 9999
    positions = [position for commit in world.topics.commits(TOPIC, 1, 9999) for position, _ in commit.positions]
    expired = [each for each in positions if any(first <= each <= last for first, last in lapsed)]
    assert len(expired) == 4000


def publish_until_full(world: NotificationWorld) -> int:
    """Publish until the topic is full; returns how many were accepted."""
    for number in range(1000):
        try:
            world.publish(number)
        except BacklogFull:
            return number
    raise AssertionError("never full")


def test_a_full_backlog_is_told_to_the_publisher_and_room_appears_with_acknowledgements() -> None:
    world = NotificationWorld(retention=Retention(size=1000))
    world.rule()
    world.connect("a")
    world.send_all()
    published = publish_until_full(world)
    # Given slightly more than the quota accepted
    taken = sum(each.size for commit in world.topics.commits(TOPIC, 1, 999) for each in commit.notifications)
    assert 1000 <= taken < 1100
    world.send_all()
    assert len(world.numbers("a")) == published
    # When it is acknowledged, out of order except for the first
    world.acknowledge("a", *range(1, published))
    world.disconnect("a")
    with pytest.raises(BacklogFull):
        world.publish(published)
    world.connect("b")
    world.send_all()
    world.acknowledge("b", 0)
    world.disconnect("b")
    # Then there is room again
    world.publish(published)
    world.connect("c")
    world.send_all()
    assert world.numbers("c") == [published]


def test_an_expired_backlog_is_not_full() -> None:
    world = NotificationWorld(retention=Retention(size=100))
    world.rule()
    world.connect("a")
    world.disconnect("a")
    publish_until_full(world)
    world.clock.advance(seconds=36 * 3600)
    world.publish(100)
    world.connect("b")
    world.send_all()
    assert world.numbers("b") == [100]


@pytest.mark.parametrize("fault", list(Fault))
def test_what_was_answered_is_delivered_whatever_failed_before(fault: Fault) -> None:
    at = 0
    while True:
        at += 1
        world = NotificationWorld()
        world.rule()
        world.connect("a")
        world.send_all()
        world._plan = plan = FaultPlan(fault, at=at)
        world.start()
        answered = True
        try:
            world.publish(1)
        except (Crash, Unavailable):
            answered = False
        if not plan.struck:
            break
        world._plan = FaultPlan()
        world.start()
        world.publish(2)
        world.send_all()
        assert world.numbers("a") in ([[1, 2]] if answered else [[2], [1, 2]]), (fault, at)
    assert at > 4


def test_a_notification_too_large_for_a_frame_is_refused_whole(world: NotificationWorld) -> None:
    with pytest.raises(TooLarge):
        world.publishing.publish(PROJECT, [draft(1), draft(2, "x" * 131_000)])
    world.send_all()
    assert world.numbers("a") == []


def test_large_batches_are_cut_into_commits_that_fit_an_item(world: NotificationWorld) -> None:
    world.publishing.publish(PROJECT, [draft(each, "x" * 60_000) for each in range(20)])
    world.send_all()
    assert world.numbers("a") == list(range(20))
    assert len(world.topics.commits(TOPIC, 1, 99)) == 5
