"""What every count of descendants does."""

from __future__ import annotations

from functools import partial

from tests.cloud import aws_services as aws
from tests.contract.both import both
from tests.contract.samples import OTHER_PROJECT, PROJECT
from tests.fakes.descendants import FakeDescendants
from tests.fakes.racing import together

from pushhub.engine.ports import Descendants
from pushhub.engine.store.dynamodb_descendants import DynamoDBDescendants

MOST = 10


descendants = both(lambda: FakeDescendants(MOST), partial(DynamoDBDescendants, most=MOST), aws.HUB_TABLE)


def test_there_are_so_many_and_no_more(descendants: Descendants) -> None:
    assert descendants.spend(PROJECT, "1", cause="a", count=4)
    assert descendants.spend(PROJECT, "1", cause="b", count=4)
    assert not descendants.spend(PROJECT, "1", cause="c", count=3)
    assert descendants.spend(PROJECT, "1", cause="d", count=2)
    assert not descendants.spend(PROJECT, "1", cause="e", count=1)
    # Other messages, of this project and of others, have their own
    assert descendants.spend(PROJECT, "2", cause="a", count=MOST)
    assert descendants.spend(OTHER_PROJECT, "1", cause="a", count=MOST)
    assert not descendants.spend(PROJECT, "3", cause="a", count=MOST + 1)


def test_what_was_spent_for_a_cause_is_spent_once(descendants: Descendants) -> None:
    assert descendants.spend(PROJECT, "1", cause="a", count=6)
    assert descendants.spend(PROJECT, "1", cause="a", count=6)
    assert descendants.spend(PROJECT, "1", cause="b", count=4)
    assert descendants.spend(PROJECT, "1", cause="a", count=6)
    assert not descendants.spend(PROJECT, "1", cause="c", count=1)


def test_of_racing_causes_only_so_many_get_theirs(descendants: Descendants) -> None:
    got = together(8, lambda number: descendants.spend(PROJECT, "1", cause=str(number), count=4))
    assert sum(got) == 2
