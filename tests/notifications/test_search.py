"""Notifications are found by what is in them, until they expire."""

from __future__ import annotations

from tests.contract.notification_samples import a_backlog
from tests.notifications.store.test_changes import stream_record
from tests.notifications.world import NotificationWorld

from pushhub.engine.model.search import Found, IndexEntry
from pushhub.notifications.store._items import encode_backlog, encode_commit
from pushhub.notifications.store.changes import accepted_in_topic


def test_a_commit_brings_its_notifications_which_are_shown_until_they_expire() -> None:
    world = NotificationWorld()
    world.rule()
    world.connect("c1")
    ids = world.publish(4711, 4712)
    # When the stream tells of what was published
    commits = [each.commit for each in world.topics.changes]
    brought = [each for commit in commits for each in accepted_in_topic(stream_record(after=encode_commit(commit)))]
    assert [each.message_id for each in brought] == ids
    assert [each.body for each in brought] == [b'{"n":4711}', b'{"n":4712}']
    # Then each is shown
    found = [show(world, brought[each].queue, brought[each].queue_uid) for each in (0, 1)]
    assert [(each.kind, each.of, each.message_id, each.type) for each in found if each] == [
        ("topic", "orders", ids[0], "events CREATE"),
        ("topic", "orders", ids[1], "events CREATE"),
    ]
    # And one that is not there, or has expired, is not
    assert show(world, brought[0].queue, "p999999") is None
    world.clock.advance(seconds=world.retention.age_ms / 1000 + 1)
    assert show(world, brought[0].queue, brought[0].queue_uid) is None


def test_other_items_bring_none() -> None:
    assert accepted_in_topic(stream_record(after=encode_backlog(a_backlog()))) == []


def show(world: NotificationWorld, queue: str, uid: str) -> Found | None:
    (finder,) = world.whole.engine.finders.of(queue)
    return finder.found(
        IndexEntry(
            project="5e0000000000000000000001",
            value="",
            queue=queue,
            queue_uid=uid,
            message_id="",
            field="",
            expires_at=0,
        )
    )
