"""What every store of waiting requests does."""

from __future__ import annotations

from functools import partial

from tests.cloud import aws_services as aws
from tests.contract.both import both
from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT
from tests.fakes.waits import FakeWaits

from pushhub.engine.ports import Waits
from pushhub.engine.store.dynamodb_waits import DynamoDBWaits

waits = both(lambda: FakeWaits(3), partial(DynamoDBWaits, kind="WAIT", places=3), aws.CONFIG_TABLE)
"""With three places."""


def test_a_project_has_so_many_places_and_each_can_be_taken_again(waits: Waits) -> None:
    # Given a project whose places are all taken
    places = [waits.enter(PROJECT, now=NOW, until=NOW + 1_000) for _ in range(3)]
    assert None not in places
    assert len(set(places)) == 3
    # Then no other request of it can wait, but those of other projects can
    assert waits.enter(PROJECT, now=NOW, until=NOW + 1_000) is None
    assert waits.enter(OTHER_PROJECT, now=NOW, until=NOW + 1_000) is not None
    # When one leaves, then another can wait; leaving twice changes nothing
    waits.leave(PROJECT, places[1] or "")
    again = waits.enter(PROJECT, now=NOW, until=NOW + 5_000)
    waits.leave(PROJECT, places[1] or "")
    assert again is not None
    assert waits.enter(PROJECT, now=NOW, until=NOW + 1_000) is None
    # When the time of the others is over, then their places are free, although they never left
    later = NOW + 1_000
    assert waits.enter(PROJECT, now=later, until=later + 1) is not None
    assert waits.enter(PROJECT, now=later, until=later + 1) is not None
    assert waits.enter(PROJECT, now=later, until=later + 1) is None
