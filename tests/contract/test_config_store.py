"""What every configuration store does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.cloud import aws_services as aws
from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT, full_pull_queue, full_push_queue, queue
from tests.fakes import FakeClock

from pushhub.base.errors import Conflict
from pushhub.engine.model.queue import Project, Queue
from pushhub.engine.ports import ConfigStore
from pushhub.engine.store.dynamodb_config import TOTAL_PARTS, DynamoDBConfigStore


def test_a_project_is_found_again_and_replaced(config_store: ConfigStore) -> None:
    # Given a stored project
    project = Project(project_id=PROJECT, name="Café", created_at=NOW, allowed_targets=("10.0.0.0/8", "intern"))
    config_store.put_project(project)
    # Then it is found, and no other one
    assert config_store.project(PROJECT) == project
    assert config_store.project(OTHER_PROJECT) is None
    # When it is stored again with another name, then that is what is found
    renamed = replace(project, name="Tea")
    config_store.put_project(renamed)
    assert config_store.project(PROJECT) == renamed


def test_a_token_acts_for_its_own_project_until_it_is_removed(config_store: ConfigStore) -> None:
    # Given a token of one project
    token_hash = "ab" * 32
    config_store.put_token(PROJECT, token_hash, "laptop", NOW)
    # Then it acts for that project only, and others do not
    assert config_store.has_token(PROJECT, token_hash)
    assert not config_store.has_token(OTHER_PROJECT, token_hash)
    assert not config_store.has_token(PROJECT, "cd" * 32)
    # When it is removed (twice), then it does not act any more
    config_store.remove_token(PROJECT, token_hash)
    config_store.remove_token(PROJECT, token_hash)
    assert not config_store.has_token(PROJECT, token_hash)


def test_a_token_that_expired_does_not_act(config_store: ConfigStore) -> None:
    # Given tokens that expire at the moment, a second later, and never
    for token_hash, expires_at in (("ab" * 32, NOW), ("cd" * 32, NOW + 1_000), ("ef" * 32, None)):
        config_store.put_token(PROJECT, token_hash, "", NOW, expires_at=expires_at)
    # Then only the others act, and all are listed
    assert [config_store.has_token(PROJECT, each * 32) for each in ("ab", "cd", "ef")] == [False, True, True]
    assert config_store.project_of("ab" * 32) is None
    assert [each.expires_at for each in config_store.tokens(PROJECT)] == [NOW, NOW + 1_000, None]


def test_tokens_are_listed_by_age_for_their_own_project(config_store: ConfigStore) -> None:
    config_store.put_token(PROJECT, "cd" * 32, "new", NOW + 1)
    config_store.put_token(PROJECT, "ef" * 32, "old", NOW)
    config_store.put_token(OTHER_PROJECT, "ab" * 32, "other", NOW)
    assert [(each.token_id, each.label) for each in config_store.tokens(PROJECT)] == [
        ("ef" * 6, "old"),
        ("cd" * 6, "new"),
    ]


def test_projects_are_listed_by_age(config_store: ConfigStore) -> None:
    for project_id, created_at in ((PROJECT, NOW + 1), (OTHER_PROJECT, NOW)):
        config_store.put_project(Project(project_id=project_id, created_at=created_at))
    config_store.put_token(PROJECT, "ab" * 32, "", NOW)
    assert [each.project_id for each in config_store.projects()] == [OTHER_PROJECT, PROJECT]


def test_a_token_tells_its_project(config_store: ConfigStore) -> None:
    config_store.put_token(PROJECT, "ab" * 32, "laptop", NOW)
    assert config_store.project_of("ab" * 32) == PROJECT
    assert config_store.project_of("cd" * 32) is None
    config_store.remove_token(PROJECT, "ab" * 32)
    assert config_store.project_of("ab" * 32) is None


@pytest.mark.parametrize("given", [queue(), full_push_queue(), full_pull_queue(), queue("x" * 600)])
@pytest.mark.parametrize("fresh", [True, False])
def test_a_queue_is_found_again_with_every_field(config_store: ConfigStore, given: Queue, fresh: bool) -> None:
    config_store.create_queue(given)
    assert config_store.queue(PROJECT, given.name, fresh=fresh) == replace(given, version=1)
    assert config_store.queue(OTHER_PROJECT, given.name, fresh=fresh) is None


def test_a_name_is_given_once(config_store: ConfigStore) -> None:
    # Given a queue
    config_store.create_queue(queue(uid="first0000000"))
    # When another of that name is created, then that fails and the first one stays
    with pytest.raises(Conflict):
        config_store.create_queue(queue(uid="second000000"))
    stored = config_store.queue(PROJECT, "orders", fresh=True)
    assert stored is not None
    assert stored.uid == "first0000000"
    # When another project uses the name, then that is no conflict
    config_store.create_queue(queue(project=OTHER_PROJECT))


def test_creating_the_very_same_queue_again_is_harmless(config_store: ConfigStore) -> None:
    config_store.create_queue(queue())
    config_store.create_queue(queue())
    assert config_store.queue(PROJECT, "orders") == queue(version=1)


def test_an_update_wins_only_on_the_version_it_was_made_from(config_store: ConfigStore) -> None:
    # Given a queue read by two
    config_store.create_queue(queue())
    read = config_store.queue(PROJECT, "orders", fresh=True)
    assert read is not None
    # When both change it, then the second is told
    changed = config_store.update_queue(replace(read, message_timeout=10))
    assert changed == replace(read, message_timeout=10, version=2)
    with pytest.raises(Conflict):
        config_store.update_queue(replace(read, message_timeout=20))
    # Then the first change stands, for cached and fresh readers, and can be built upon
    assert config_store.queue(PROJECT, "orders") == changed
    assert config_store.queue(PROJECT, "orders", fresh=True) == changed
    assert config_store.update_queue(replace(changed, message_timeout=20)).version == 3


def test_a_queue_that_is_gone_is_not_updated(config_store: ConfigStore) -> None:
    config_store.create_queue(queue())
    assert config_store.delete_queue(PROJECT, "orders")
    with pytest.raises(Conflict):
        config_store.update_queue(queue(version=1))
    assert config_store.queue(PROJECT, "orders") is None


def test_deleting_says_whether_there_was_a_queue(config_store: ConfigStore) -> None:
    config_store.create_queue(queue())
    assert config_store.queue(PROJECT, "orders") is not None
    assert config_store.delete_queue(PROJECT, "orders")
    assert not config_store.delete_queue(PROJECT, "orders")
    assert config_store.queue(PROJECT, "orders") is None


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
    # And pages join without gap or repetition
    assert listed(limit=4) == in_order[:4]
    assert listed(limit=4, after=in_order[3]) == in_order[4:8]
    assert listed(limit=4, after=in_order[7]) == in_order[8:]
    # And a prefix restricts, also together with a page that starts before, inside or behind it
    with_prefix = [name for name in in_order if name.startswith("a")]
    assert listed("a") == with_prefix
    assert listed("a", after="B") == with_prefix
    assert listed("a", after="a b") == [name for name in with_prefix if name > "a b"]
    assert listed("a", after="b") == []
    assert listed("nothing") == []
    # And the name to start after need not exist
    assert listed(after="a-0", limit=1) == ["a-1"]


def test_worker_numbers_never_repeat(config_store: ConfigStore) -> None:
    given = [config_store.next_worker() for _ in range(5)]
    assert len(set(given)) == 5


def test_totals_add_up_for_each_queue(config_store: ConfigStore) -> None:
    config_store.add_to_total(PROJECT, "u1", 100)
    config_store.add_to_total(PROJECT, "u1", 1)
    config_store.add_to_total(PROJECT, "u2", 7)
    assert config_store.total(PROJECT, "u1") == 101
    assert config_store.total(PROJECT, "u2") == 7
    assert config_store.total(OTHER_PROJECT, "u1") == 0


def test_totals_of_all_environments_are_one_and_each_part_takes_its_share() -> None:
    # Given more environments than a total has parts, and a total from when it had one
    queue_uid, clock = "aaaaaaaaaaaa", FakeClock()
    with aws.dynamodb() as client:
        for number in range(2 * TOTAL_PARTS):
            clock.jitter_value = number / (2 * TOTAL_PARTS)
            store = DynamoDBConfigStore(client, aws.CONFIG_TABLE, clock)
            store.add_to_total(PROJECT, queue_uid, 3)
            store.add_to_total(PROJECT, "bbbbbbbbbbbb", 1)
        # Then everybody reads the sum, and no key has more than its share of the writes
        assert store.total(PROJECT, queue_uid) == 6 * TOTAL_PARTS
        assert store.total(PROJECT, "cccccccccccc") == 0
        items = client.scan(TableName=aws.CONFIG_TABLE)["Items"]
        parts = [int(each["posted"]["N"]) for each in items if queue_uid in each["sk"]["S"]]
    assert parts == [6] * TOTAL_PARTS
