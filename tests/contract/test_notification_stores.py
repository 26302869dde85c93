"""The stores of Notifications 2.0, each twice: the fake that other tests use,
and the adapter on DynamoDB in this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.contract.notification_samples import (
    NOW,
    TOPIC,
    VOLATILE,
    a_backlog,
    a_busy_backlog,
    a_commit,
    a_connection,
    a_subscription,
)
from tests.contract.samples import OTHER_PROJECT
from tests.fakes import FakeClock
from tests.fakes.notification_stores import (
    FakeBacklogStore,
    FakeConnectionStore,
    FakeRequestStore,
    FakeSubscriptionStore,
    FakeTopicStore,
)
from tests.fakes.racing import together
from tests.notifications.store import aws_notifications as aws

from pushhub.base.errors import Conflict
from pushhub.notifications.model.request import REPEATABLE_MS, CommitPart, PublishRequest
from pushhub.notifications.model.subscription import Context
from pushhub.notifications.ports import (
    AlreadyAppended,
    BacklogStore,
    ConnectionStore,
    RequestStore,
    SubscriptionStore,
    TopicFull,
    TopicStore,
)
from pushhub.notifications.store.dynamodb_backlogs import DynamoDBBacklogStore, DynamoDBConnectionStore
from pushhub.notifications.store.dynamodb_requests import DynamoDBRequestStore
from pushhub.notifications.store.dynamodb_subscriptions import DynamoDBSubscriptionStore
from pushhub.notifications.store.dynamodb_topics import DynamoDBTopicStore


@dataclass(frozen=True)
class Stores:
    topics: TopicStore
    requests: RequestStore
    backlogs: BacklogStore
    connections: ConnectionStore
    subscriptions: SubscriptionStore


@pytest.fixture(params=["fake", "dynamodb"])
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    if request.param == "fake":
        requests = FakeRequestStore()
        yield Stores(
            FakeTopicStore(requests), requests, FakeBacklogStore(), FakeConnectionStore(), FakeSubscriptionStore()
        )
        return
    clock = FakeClock()
    with aws.dynamodb() as client:
        yield Stores(
            DynamoDBTopicStore(client, aws.BACKLOGS_TABLE, clock),
            DynamoDBRequestStore(client, aws.BACKLOGS_TABLE, clock),
            DynamoDBBacklogStore(client, aws.BACKLOGS_TABLE, clock),
            DynamoDBConnectionStore(client, aws.BACKLOGS_TABLE, clock),
            DynamoDBSubscriptionStore(client, aws.BACKLOGS_TABLE, clock),
        )


def test_a_topic_begins_with_its_first_subscriber(stores: Stores) -> None:
    assert stores.topics.head(TOPIC) is None
    assert stores.topics.reserve(TOPIC, 10, NOW) is None
    head = stores.topics.admit(TOPIC, "a", ceiling=100)
    assert (head.sequence, head.size, head.ceiling, head.subscribers) == (0, 0, 100, frozenset("a"))
    assert stores.topics.admit(TOPIC, "a", ceiling=7) == head
    assert stores.topics.head(TOPIC) == head
    assert stores.topics.head(VOLATILE) is None


def test_places_are_given_one_after_the_other_with_what_was_before(stores: Stores) -> None:
    stores.topics.admit(TOPIC, "a", ceiling=100)
    first = stores.topics.reserve(TOPIC, 10, NOW)
    stores.topics.admit(TOPIC, "b", ceiling=100)
    second = stores.topics.reserve(TOPIC, 20, NOW + 5)
    assert first is not None
    assert second is not None
    assert (first.sequence, first.size_before, first.previous_at, first.subscribers) == (1, 0, 0, frozenset("a"))
    assert (second.sequence, second.size_before, second.previous_at, second.subscribers) == (
        2,
        10,
        NOW,
        frozenset("ab"),
    )
    assert first.topic_uid == second.topic_uid


def test_a_full_topic_gives_no_place_until_its_ceiling_is_raised(stores: Stores) -> None:
    stores.topics.admit(TOPIC, "a", ceiling=10)
    stores.topics.reserve(TOPIC, 10, NOW)
    with pytest.raises(TopicFull) as full:
        stores.topics.reserve(TOPIC, 1, NOW)
    assert full.value.head.size == 10
    stores.topics.raise_ceiling(TOPIC, 5)
    with pytest.raises(TopicFull):
        stores.topics.reserve(TOPIC, 1, NOW)
    stores.topics.raise_ceiling(TOPIC, 11)
    assert stores.topics.reserve(TOPIC, 1, NOW) is not None


def test_a_request_that_was_admitted_gets_its_further_places_in_a_full_topic(stores: Stores) -> None:
    stores.topics.admit(TOPIC, "a", ceiling=10)
    stores.topics.reserve(TOPIC, 10, NOW)
    place = stores.topics.reserve(TOPIC, 7, NOW, admitted=True)
    assert place is not None
    assert (place.sequence, place.size_before) == (2, 10)
    assert stores.topics.reserve(VOLATILE, 7, NOW, admitted=True) is None


def a_request(**more: Any) -> PublishRequest:
    fields: dict[str, Any] = {"project": TOPIC.project, "key": "k ~1", "digest": "d", "ids": ("1", "2")}
    return PublishRequest(**fields | more)


def test_a_key_stands_for_its_first_request_for_a_day(stores: Stores) -> None:
    taken = {TOPIC: 3, VOLATILE: 7}
    assert stores.requests.note(a_request(taken=taken), NOW) == a_request(taken=taken)
    assert stores.requests.note(a_request(digest="other"), NOW + REPEATABLE_MS - 1) == a_request(taken=taken)
    # In another project, it is a different key
    assert stores.requests.note(a_request(project=OTHER_PROJECT), NOW) == a_request(project=OTHER_PROJECT)
    later = a_request(digest="other", ids=())
    assert stores.requests.note(later, NOW + REPEATABLE_MS) == later


def test_a_part_of_a_request_is_appended_once(stores: Stores) -> None:
    stores.requests.note(a_request(), NOW)
    stores.topics.append(a_commit(1), CommitPart(key="k ~1", up_to=5))
    # The same part again, in its own place or in another
    for sequence in (1, 2):
        with pytest.raises(AlreadyAppended):
            stores.topics.append(a_commit(sequence), CommitPart(key="k ~1", up_to=5))
    # The next part, where the place is taken, and where it is not
    with pytest.raises(Conflict):
        stores.topics.append(a_commit(1, notifications=()), CommitPart(key="k ~1", up_to=9))
    stores.topics.append(a_commit(2), CommitPart(key="k ~1", up_to=9))
    stores.topics.append(a_commit(1, topic=VOLATILE), CommitPart(key="k ~1", up_to=1))
    assert stores.requests.note(a_request(), NOW).taken == {TOPIC: 9, VOLATILE: 1}
    assert [each.sequence for each in stores.topics.commits(TOPIC, 1, 9)] == [1, 2]


def test_without_subscribers_a_topic_gives_no_place_again(stores: Stores) -> None:
    stores.topics.dismiss(TOPIC, "a")
    stores.topics.admit(TOPIC, "a", ceiling=10)
    stores.topics.dismiss(TOPIC, "b")
    assert stores.topics.reserve(TOPIC, 1, NOW) is not None
    stores.topics.dismiss(TOPIC, "a")
    stores.topics.dismiss(TOPIC, "a")
    assert stores.topics.reserve(TOPIC, 1, NOW) is None
    # And a later one does not start anew
    assert stores.topics.admit(TOPIC, "c", ceiling=10).sequence == 1


def test_commits_are_read_in_order_from_a_place_on(stores: Stores) -> None:
    for sequence in (3, 1, 10, 2):
        stores.topics.append(a_commit(sequence))
    stores.topics.append(a_commit(1, topic=VOLATILE))
    assert [each.sequence for each in stores.topics.commits(TOPIC, 2, 100)] == [2, 3, 10]
    assert [each.sequence for each in stores.topics.commits(TOPIC, 0, 2)] == [1, 2]
    assert stores.topics.commits(TOPIC, 11, 5) == []
    assert stores.topics.commits(TOPIC, 3, 1) == [a_commit(3)]
    assert stores.topics.commits_at(TOPIC, [2, 4, 10]) == {2: a_commit(2), 10: a_commit(10)}
    assert stores.topics.commits_at(TOPIC, []) == {}


def test_a_place_is_filled_once(stores: Stores) -> None:
    stores.topics.append(a_commit(1))
    stores.topics.append(a_commit(1))
    with pytest.raises(Conflict):
        stores.topics.append(a_commit(1, notifications=(), owed_to=()))
    stores.topics.append(a_commit(2, notifications=(), owed_to=()))
    with pytest.raises(Conflict):
        stores.topics.append(a_commit(2))
    assert stores.topics.commits(TOPIC, 2, 1) == [a_commit(2, notifications=(), owed_to=())]


def test_large_commits_come_whole(stores: Stores) -> None:
    (first, _) = a_commit(1).notifications
    large = tuple(replace(first, message_id=str(number), body="ä" * 60_000) for number in range(2))
    for sequence in range(1, 8):
        stores.topics.append(a_commit(sequence, notifications=large))
    read: list[int] = []
    while found := stores.topics.commits(TOPIC, len(read) + 1, 100):
        read += [each.sequence for each in found]
    assert read == list(range(1, 8))


def test_a_backlog_is_stored_whole(stores: Stores) -> None:
    assert stores.backlogs.backlog(TOPIC, "app") is None
    stores.backlogs.save(a_backlog())
    assert stores.backlogs.backlog(TOPIC, "app") == a_backlog()
    busy = a_busy_backlog(version=2)
    stores.backlogs.save(busy)
    assert stores.backlogs.backlog(TOPIC, "app") == busy
    assert stores.backlogs.backlog(VOLATILE, "app") is None


def test_a_backlog_is_written_over_the_version_before_only(stores: Stores) -> None:
    stores.backlogs.save(a_backlog(version=1))
    stores.backlogs.save(a_backlog(version=1))
    with pytest.raises(Conflict):
        stores.backlogs.save(a_backlog(version=1, uid="other"))
    with pytest.raises(Conflict):
        stores.backlogs.save(a_backlog(version=3))
    with pytest.raises(Conflict):
        stores.backlogs.save(a_backlog(version=2, uid="other"))
    stores.backlogs.save(a_backlog(version=2, next=5))
    stores.backlogs.save(a_backlog(version=2, next=5))
    with pytest.raises(Conflict):
        stores.backlogs.save(a_backlog(version=2, next=6))


def test_a_removed_backlog_cannot_be_written(stores: Stores) -> None:
    stores.backlogs.save(a_backlog())
    stores.backlogs.delete(a_backlog(uid="other"))
    assert stores.backlogs.backlog(TOPIC, "app") is not None
    with pytest.raises(Conflict):
        stores.backlogs.delete(a_backlog(version=9))
    stores.backlogs.delete(a_backlog())
    stores.backlogs.delete(a_backlog())
    assert stores.backlogs.backlog(TOPIC, "app") is None
    with pytest.raises(Conflict):
        stores.backlogs.save(a_backlog(version=2))


def test_all_backlogs_of_a_topic(stores: Stores) -> None:
    for name in ("b", "a", "ü#"):
        stores.backlogs.save(a_backlog(subscriber=name))
    stores.backlogs.save(a_backlog(topic=VOLATILE))
    stores.topics.admit(TOPIC, "a", ceiling=1)
    assert [each.subscriber for each in stores.backlogs.backlogs(TOPIC)] == ["a", "b", "ü#"]


def test_of_many_writers_one_wins(stores: Stores) -> None:
    stores.backlogs.save(a_backlog())

    def wins(number: int) -> bool:
        try:
            stores.backlogs.save(a_backlog(version=2, next=number))
        except Conflict:
            return False
        return True

    won = together(8, wins)
    assert won.count(True) == 1
    assert stores.backlogs.backlog(TOPIC, "app") == a_backlog(version=2, next=won.index(True))


def test_acknowledgements_gather_on_their_connection(stores: Stores) -> None:
    stores.connections.open(a_connection(), check_at=NOW)
    for positions in ({5}, {3}, {5, 2**62}):
        connection = stores.connections.acknowledge("c1=", positions, shared=False)
    assert connection == a_connection(acknowledged=frozenset({3, 5, 2**62}))
    assert stores.connections.connections(["c1=", "c2="]) == {"c1=": connection}
    stores.connections.forget("c1=", [5, 7])
    stores.connections.forget("c2=", [5])
    assert stores.connections.connections(["c1="])["c1="].acknowledged == {3, 2**62}
    assert stores.connections.connections([]) == {}


def test_an_acknowledgement_of_the_other_kind_or_on_no_connection_is_not_noted(stores: Stores) -> None:
    stores.connections.open(a_connection(shared=True), check_at=NOW)
    assert stores.connections.acknowledge("c1=", {5}, shared=False) is None
    assert stores.connections.acknowledge("gone", {5}, shared=False) is None
    assert stores.connections.acknowledge("c1=", {5}, shared=True) is not None
    assert stores.connections.connections(["gone"]) == {}


def test_a_stalled_connection_says_so_with_each_acknowledgement(stores: Stores) -> None:
    stores.connections.open(a_connection(), check_at=NOW)
    assert stores.connections.stall("c1=", stalled=True) == a_connection(stalled=True)
    noted = stores.connections.acknowledge("c1=", {1}, shared=False)
    assert noted is not None
    assert noted.stalled
    stores.connections.stall("c1=", stalled=False)
    assert not stores.connections.connections(["c1="])["c1="].stalled
    assert stores.connections.stall("gone", stalled=True) is None
    assert stores.connections.connections(["gone"]) == {}


def test_a_closed_connection_is_gone_and_gives_what_it_had(stores: Stores) -> None:
    stores.connections.open(a_connection(), check_at=NOW)
    stores.connections.acknowledge("c1=", {1}, shared=False)
    assert stores.connections.close("c1=") == a_connection(acknowledged=frozenset({1}))
    assert stores.connections.close("c1=") is None
    assert stores.connections.connections(["c1="]) == {}


def test_connections_are_due_for_a_check_in_order(stores: Stores) -> None:
    for number in range(5):
        stores.connections.open(a_connection(f"c{number}"), check_at=NOW + number)
    assert stores.connections.idle(NOW + 2, 10) == ["c0", "c1", "c2"]
    assert stores.connections.idle(NOW + 2, 2) == ["c0", "c1"]
    stores.connections.check_again("c0", NOW + 9)
    stores.connections.check_again("gone", NOW)
    assert stores.connections.connections(["gone"]) == {}
    stores.connections.close("c1")
    assert stores.connections.idle(NOW + 8, 10) == ["c2", "c3", "c4"]


def test_a_connection_tells_whose_it_is_and_that_it_goes(stores: Stores) -> None:
    stores.connections.open(a_connection(token_id="t", issued_by="0f" * 32), check_at=NOW)
    stores.connections.leave("c1=")
    stores.connections.leave("gone")
    leaving = a_connection(token_id="t", issued_by="0f" * 32, leaving=True)
    assert stores.connections.connections(["c1=", "gone"]) == {"c1=": leaving}


def test_every_connection_is_found_whenever_it_is_due(stores: Stores) -> None:
    for number in range(120):
        stores.connections.open(a_connection(f"c{number}"), check_at=NOW * number)
    stores.connections.close("c7")
    assert sorted(each.connection_id for each in stores.connections.everyone()) == sorted(
        f"c{number}" for number in range(120) if number != 7
    )


def test_many_connections_at_once(stores: Stores) -> None:
    for number in range(50):
        stores.connections.open(a_connection(f"c{number}"), check_at=NOW)
    assert len(stores.connections.connections([f"c{number}" for number in range(60)])) == 50


def test_a_subscription_is_unique_by_source_context_and_name(stores: Stores) -> None:
    rule = a_subscription(apis=("events", "*"), type_filter="'a' or 'b'", fragments=("x y", "ü"), non_persistent=True)
    stores.subscriptions.create(rule)
    with pytest.raises(Conflict):
        stores.subscriptions.create(a_subscription("2"))
    assert stores.subscriptions.subscription(TOPIC.project, "2") is None
    stores.subscriptions.create(a_subscription("3", name="other"))
    stores.subscriptions.create(a_subscription("4", source="11"))
    stores.subscriptions.create(a_subscription("5", context=Context.TENANT, source=""))
    assert stores.subscriptions.subscription(TOPIC.project, "1") == rule
    assert stores.subscriptions.subscription(OTHER_PROJECT, "1") is None
    assert [each.subscription_id for each in stores.subscriptions.subscriptions(TOPIC.project)] == ["1", "3", "4", "5"]


def test_subscriptions_concerning_a_source_are_its_own_and_the_tenant_s(stores: Stores) -> None:
    stores.subscriptions.create(a_subscription("1", source="a"))
    stores.subscriptions.create(a_subscription("2", source="a#b"))
    stores.subscriptions.create(a_subscription("3", source="a#"))
    stores.subscriptions.create(a_subscription("10", context=Context.TENANT, source=""))
    stores.subscriptions.create(a_subscription("11", project=OTHER_PROJECT, source="a"))

    def concerning(source: str) -> list[str]:
        return [each.subscription_id for each in stores.subscriptions.concerning(TOPIC.project, source)]

    assert concerning("a") == ["1", "10"]
    assert concerning("a#") == ["3", "10"]
    assert concerning("a#b") == ["2", "10"]
    assert concerning("b") == ["10"]


def test_sources_of_any_characters_and_length_are_keys_of_their_own(stores: Stores) -> None:
    # Given the longest sources accepted, two of which differ only at the end
    sources = ["\U0001f600" * 200, "\U0001f600" * 199 + "\U0001f601", "%F0" * 66]
    for number, source in enumerate(sources, start=1):
        stores.subscriptions.create(a_subscription(str(number), source=source, name="x" * 200))
    with pytest.raises(Conflict):
        stores.subscriptions.create(a_subscription("9", source=sources[0], name="x" * 200))
    for number, source in enumerate(sources, start=1):
        assert [each.source for each in stores.subscriptions.concerning(TOPIC.project, source)] == [source]
        found = stores.subscriptions.subscription(TOPIC.project, str(number))
        assert found is not None
        assert stores.subscriptions.delete(found)


def test_a_deleted_subscription_can_be_made_again(stores: Stores) -> None:
    stores.subscriptions.create(a_subscription("1"))
    assert stores.subscriptions.delete(a_subscription("1"))
    assert not stores.subscriptions.delete(a_subscription("1"))
    assert stores.subscriptions.subscription(TOPIC.project, "1") is None
    stores.subscriptions.create(a_subscription("2"))
    assert stores.subscriptions.subscriptions(TOPIC.project) == [a_subscription("2")]
