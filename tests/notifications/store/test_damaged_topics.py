"""A commit or a connection that nobody can read keeps no other waiting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.contract.notification_samples import TOPIC, a_commit, a_connection
from tests.fakes import FakeClock
from tests.notifications.store import aws_notifications as aws

from pushhub.cloud.table import Table, number
from pushhub.notifications.store._items import commit_key, connection_key
from pushhub.notifications.store.dynamodb_backlogs import DynamoDBConnectionStore
from pushhub.notifications.store.dynamodb_topics import DynamoDBTopicStore

CLOCK = FakeClock()


@pytest.fixture
def client() -> Iterator[Any]:
    with aws.dynamodb() as tables:
        yield tables


def test_the_place_of_a_commit_that_cannot_be_read_is_passed(client: Any) -> None:
    # Given three commits, of which the second is damaged
    topics, commits = DynamoDBTopicStore(client, aws.BACKLOGS_TABLE, CLOCK), [a_commit(each) for each in (1, 2, 3)]
    for each in commits:
        topics.append(each)
    Table(client, aws.BACKLOGS_TABLE, CLOCK).put(commit_key(TOPIC, 2) | {"expires_at": number(7)})
    # When the log is read, then there is a place with nothing in it
    first, second, third = topics.commits(TOPIC, 1, 10)
    assert [first, third] == [commits[0], commits[2]]
    assert (second.sequence, second.notifications, second.expires_at) == (2, (), 7)
    # And what is asked for by its place is as if it were gone
    assert topics.commits_at(TOPIC, [1, 2, 3]) == {1: commits[0], 3: commits[2]}


def test_a_connection_that_cannot_be_read_is_as_one_that_is_gone(client: Any) -> None:
    connections = DynamoDBConnectionStore(client, aws.BACKLOGS_TABLE, CLOCK)
    connections.open(a_connection("a"), check_at=1)
    Table(client, aws.BACKLOGS_TABLE, CLOCK).put(connection_key("b"))
    assert connections.connections(["b"]) == {}
    assert [*connections.connections(["a", "b"])] == ["a"]
