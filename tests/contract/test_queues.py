"""What every store of queues does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.filled import filled
from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT, queue
from tests.fakes.credentials import credentials

from pushhub.base.errors import Conflict
from pushhub.engine.model.project import Project
from pushhub.engine.model.queue import Queue
from pushhub.engine.ports import QueueStore
from pushhub.engine.stores import ConfigStore


def full_queue() -> Queue:
    """A queue with every field set."""
    given = filled(Queue, project=PROJECT, name="fan out + é:1")
    assert given.push is not None
    return replace(given, push=replace(given.push, credentials=b""))


def opened(stored: Queue) -> Queue:
    """A queue as it was given."""
    if stored.push is None:
        return stored
    sealing, push = credentials(), stored.push
    subscribers = tuple(sealing.opened(stored.project, push, each) for each in push.subscribers)
    return replace(stored, push=replace(push, subscribers=subscribers, credentials=b""))


@pytest.mark.parametrize("given", [queue(), full_queue(), queue("x" * 600)], ids=["plain", "full", "long name"])
@pytest.mark.parametrize("fresh", [True, False])
def test_a_queue_is_found_again_with_every_field(config_store: QueueStore, given: Queue, fresh: bool) -> None:
    config_store.create_queue(given)
    stored = config_store.queue(PROJECT, given.name, fresh=fresh)
    assert stored is not None
    # What opens something is sealed
    assert opened(stored) == replace(given, version=1)
    assert "Bearer" not in repr(stored)
    assert config_store.queue(OTHER_PROJECT, given.name, fresh=fresh) is None


def test_a_name_is_given_once(config_store: QueueStore) -> None:
    # Given a queue
    config_store.create_queue(queue(uid="first0000000"))
    # When another of that name is created, then that fails and the first one stays
    with pytest.raises(Conflict):
        config_store.create_queue(queue(uid="second000000"))
    stored = config_store.queue(PROJECT, "orders", fresh=True)
    assert stored is not None
    assert stored.uid == "first0000000"
    # When another project uses the name, then that is not a conflict
    config_store.create_queue(queue(project=OTHER_PROJECT))


def test_creating_the_very_same_queue_again_is_harmless(config_store: QueueStore) -> None:
    config_store.create_queue(queue())
    config_store.create_queue(queue())
    assert config_store.queue(PROJECT, "orders") == queue(version=1)


def test_an_update_wins_only_on_the_version_it_was_made_from(config_store: QueueStore) -> None:
    # Given a queue read by two
    config_store.create_queue(queue())
    read = config_store.queue(PROJECT, "orders", fresh=True)
    assert read is not None
    # When both change it, then the second gets a conflict
    changed = config_store.update_queue(replace(read, message_timeout=10))
    assert changed == replace(read, message_timeout=10, version=2)
    with pytest.raises(Conflict):
        config_store.update_queue(replace(read, message_timeout=20))
    # Then the first change is in force, for cached and fresh readers, and can be changed further
    assert config_store.queue(PROJECT, "orders") == changed
    assert config_store.queue(PROJECT, "orders", fresh=True) == changed
    assert config_store.update_queue(replace(changed, message_timeout=20)).version == 3


def test_a_queue_that_is_gone_is_not_updated(config_store: QueueStore) -> None:
    config_store.create_queue(queue())
    assert config_store.delete_queue(queue(version=1))
    with pytest.raises(Conflict):
        config_store.update_queue(queue(version=1))
    assert config_store.queue(PROJECT, "orders") is None


def test_deleting_says_whether_there_was_a_queue(config_store: QueueStore) -> None:
    config_store.create_queue(queue())
    assert config_store.queue(PROJECT, "orders") is not None
    assert config_store.delete_queue(queue(version=1))
    assert not config_store.delete_queue(queue(version=1))
    assert config_store.queue(PROJECT, "orders") is None


def test_a_queue_that_has_changed_is_not_deleted(config_store: QueueStore) -> None:
    # Given a queue that was read, and then changed
    config_store.create_queue(queue())
    config_store.update_queue(queue(version=1, message_timeout=5))
    # When it is deleted as it was read, then that is a conflict, and it stays
    with pytest.raises(Conflict):
        config_store.delete_queue(queue(version=1))
    assert config_store.queue(PROJECT, "orders", fresh=True) is not None


@pytest.mark.parametrize("deleting", [True, False])
def test_a_queue_made_anew_is_not_taken_for_the_one_before(config_store: QueueStore, deleting: bool) -> None:
    # Given a queue that was read, deleted, and made anew under its name
    config_store.create_queue(queue())
    assert config_store.delete_queue(queue(version=1))
    config_store.create_queue(queue(uid="anew00000000"))
    anew = config_store.queue(PROJECT, "orders", fresh=True)
    # When the one that was read is deleted, or changed, then that is a conflict, and the new one stays as it is
    change = config_store.delete_queue if deleting else config_store.update_queue
    with pytest.raises(Conflict):
        change(queue(version=1))
    assert config_store.queue(PROJECT, "orders", fresh=True) == anew


def test_the_queues_of_a_page_are_as_each_alone(config_store: ConfigStore) -> None:
    # Given queues of two projects, besides totals
    for name in ("b", "a b", "a", "ä"):
        config_store.create_queue(queue(name))
    config_store.create_queue(queue("a c", project=OTHER_PROJECT))
    config_store.add_to_total(PROJECT, "a", 1)
    # When a page of them is read
    found = config_store.whole_queues(PROJECT, prefix="a", after="a", limit=10)
    # Then these are as each alone, in the order of their names
    assert found == [config_store.queue(PROJECT, "a b", fresh=True)]
    assert [each.name for each in config_store.whole_queues(PROJECT, prefix="", after="", limit=3)] == ["a", "a b", "b"]


def test_names_are_listed_in_byte_order_by_page_and_prefix(config_store: ConfigStore) -> None:
    # Given queues of two projects, besides tokens, totals and a project
    names = ["B", "a", "a-1", "a b", "aé", "a\U0001f600", "b", "z+y", "ä"]
    for name in names:
        config_store.create_queue(queue(name))
    config_store.create_queue(queue("a-2", project=OTHER_PROJECT))
    config_store.put_project(Project(project_id=PROJECT, created_at=NOW))
    config_store.put_token(PROJECT, "ab" * 32, "", NOW)
    config_store.add_to_total(PROJECT, "a", 1)
    in_order = sorted(names, key=str.encode)

    def listed(prefix: str = "", after: str = "", limit: int = 100) -> list[str]:
        return config_store.queues(PROJECT, prefix=prefix, after=after, limit=limit)

    # Then all are listed in byte order
    assert listed() == in_order
    # And pages follow one another without gaps or repetitions
    assert listed(limit=4) == in_order[:4]
    assert listed(limit=4, after=in_order[3]) == in_order[4:8]
    assert listed(limit=4, after=in_order[7]) == in_order[8:]
    # And a prefix restricts the list, even with a page that starts before, within or after it
    with_prefix = [name for name in in_order if name.startswith("a")]
    assert listed("a") == with_prefix
    assert listed("a", after="B") == with_prefix
    assert listed("a", after="a b") == [name for name in with_prefix if name > "a b"]
    assert listed("a", after="b") == []
    assert listed("nothing") == []
    # And the name to start after need not exist
    assert listed(after="a-0", limit=1) == ["a-1"]


def test_the_last_note_of_each_slot_is_kept(config_store: ConfigStore) -> None:
    assert config_store.noted_changes() == {}
    config_store.note_change(7, 1_000)
    config_store.note_change(255, 2_000)
    config_store.note_change(7, 900)
    assert config_store.noted_changes() == {7: 900, 255: 2_000}
