"""What is specific to the configuration in DynamoDB: its cache, and repeated calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, cast

import pytest
from mypy_boto3_dynamodb import DynamoDBClient
from tests.cloud import aws_services as aws
from tests.cloud.aws_services import Intercepted
from tests.contract.samples import NOW, PROJECT, queue
from tests.fakes import FakeClock

from pushhub.base import shared_reads
from pushhub.base.errors import Unavailable
from pushhub.base.signature_schemes import PRESETS
from pushhub.engine.model.project import Project
from pushhub.engine.model.quota import Quota
from pushhub.engine.model.trace import Traces
from pushhub.engine.store._project_items import OPTIONAL, encode_project
from pushhub.engine.store.dynamodb_config import CACHE_TTL_MS, DynamoDBConfigStore

TOKEN_HASH = "ab" * 32


class Bench:
    """A store whose calls are recorded, and another process with a store of its own."""

    def __init__(self, client: DynamoDBClient) -> None:
        self.client = Intercepted(client)
        self.clock = FakeClock()
        self.store = DynamoDBConfigStore(cast(DynamoDBClient, self.client), aws.CONFIG_TABLE, self.clock)
        self.elsewhere = DynamoDBConfigStore(client, aws.CONFIG_TABLE, FakeClock())

    def reads(self) -> int:
        return self.client.count("get_item")


@pytest.fixture
def bench() -> Iterator[Bench]:
    with aws.dynamodb() as client:
        yield Bench(client)


def test_what_exists_is_read_once_in_thirty_seconds(bench: Bench) -> None:
    # Given a project, a token and a queue made elsewhere
    bench.elsewhere.put_project(Project(project_id=PROJECT, created_at=NOW))
    bench.elsewhere.put_token(PROJECT, TOKEN_HASH, "", NOW)
    bench.elsewhere.create_queue(queue())
    # When they are read again and again for 30 s
    for _ in range(5):
        assert bench.store.project(PROJECT)
        assert bench.store.has_token(PROJECT, TOKEN_HASH)
        assert bench.store.queue(PROJECT, "orders")
        bench.clock.advance(seconds=6)
    # Then each was read once; after that once more
    assert bench.reads() == 3
    assert bench.store.queue(PROJECT, "orders")
    assert bench.reads() == 4


@pytest.mark.parametrize(
    "look",
    [
        lambda store: store.project(PROJECT),
        lambda store: store.has_token(PROJECT, TOKEN_HASH),
        lambda store: store.queue(PROJECT, "orders"),
    ],
)
def test_threads_that_miss_the_cache_together_share_one_read(
    look: Callable[[DynamoDBConfigStore], object], bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a project, a token and a queue, and a thread whose read takes its time
    bench.elsewhere.put_project(Project(project_id=PROJECT, created_at=NOW))
    bench.elsewhere.put_token(PROJECT, TOKEN_HASH, "", NOW)
    bench.elsewhere.create_queue(queue())
    begun, waits, goes_on = threading.Event(), threading.Event(), threading.Event()

    class Waiting(Future[Any]):
        def result(self, timeout: float | None = None) -> Any:
            waits.set()
            return super().result(timeout)

    monkeypatch.setattr(shared_reads, "Future", Waiting)

    def held_up(real: Callable[..., dict[str, Any]], parameters: dict[str, Any]) -> dict[str, Any]:
        begun.set()
        goes_on.wait()
        return real(**parameters)

    bench.client.next("get_item", held_up)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(look, bench.store)
        begun.wait()
        # When another one looks meanwhile
        second = threads.submit(look, bench.store)
        while not second.done() and not waits.wait(0.01):
            pass
        goes_on.set()
        # Then both have what was read once
        assert first.result() == second.result()
    assert bench.reads() == 1


def test_whose_a_token_is_is_read_once_in_thirty_seconds_and_whether_it_is_good_no_seldomer(bench: Bench) -> None:
    # Given a token without a project's name
    assert bench.store.project_of(TOKEN_HASH) is None
    bench.elsewhere.put_token(PROJECT, TOKEN_HASH, "", NOW)
    before = bench.reads()
    for _ in range(5):
        assert bench.store.project_of(TOKEN_HASH) == PROJECT
    # Then its project and itself are read once each
    assert bench.reads() == before + 2
    # When it is revoked elsewhere, then that takes effect after 30 s; when it is revoked here, at once
    bench.elsewhere.remove_token(PROJECT, TOKEN_HASH)
    bench.clock.advance(seconds=30)
    assert bench.store.project_of(TOKEN_HASH) is None
    bench.store.put_token(PROJECT, TOKEN_HASH, "", NOW)
    assert bench.store.project_of(TOKEN_HASH) == PROJECT
    bench.store.remove_token(PROJECT, TOKEN_HASH)
    assert bench.store.project_of(TOKEN_HASH) is None


def test_what_does_not_exist_is_asked_for_each_time(bench: Bench) -> None:
    # Given nothing
    assert bench.store.project(PROJECT) is None
    assert not bench.store.has_token(PROJECT, TOKEN_HASH)
    assert bench.store.queue(PROJECT, "orders") is None
    # When it is made elsewhere, then it is seen at once
    bench.elsewhere.put_project(Project(project_id=PROJECT, created_at=NOW))
    bench.elsewhere.put_token(PROJECT, TOKEN_HASH, "", NOW)
    bench.elsewhere.create_queue(queue())
    assert bench.store.project(PROJECT)
    assert bench.store.has_token(PROJECT, TOKEN_HASH)
    assert bench.store.queue(PROJECT, "orders")


def test_a_change_made_elsewhere_is_seen_fresh_at_once_and_cached_in_time(bench: Bench) -> None:
    # Given a queue that is cached here and changed elsewhere
    bench.elsewhere.create_queue(queue())
    cached = bench.store.queue(PROJECT, "orders")
    assert cached is not None
    changed = bench.elsewhere.update_queue(replace(cached, message_timeout=5))
    # Then cached reads return the old one, fresh reads the new one, and after those all reads the new one
    assert bench.store.queue(PROJECT, "orders") == cached
    assert bench.store.queue(PROJECT, "orders", fresh=True) == changed
    assert bench.store.queue(PROJECT, "orders") == changed
    # And without a fresh read it is new once the time is over
    again = bench.elsewhere.update_queue(replace(changed, message_timeout=6))
    bench.clock.advance(ms=CACHE_TTL_MS)
    assert bench.store.queue(PROJECT, "orders") == again


def test_a_queue_deleted_elsewhere_is_forgotten_by_a_fresh_look(bench: Bench) -> None:
    bench.elsewhere.create_queue(queue())
    assert bench.store.queue(PROJECT, "orders")
    bench.elsewhere.delete_queue(queue(version=1))
    assert bench.store.queue(PROJECT, "orders", fresh=True) is None
    assert bench.store.queue(PROJECT, "orders") is None


def test_own_writes_go_through_the_cache(bench: Bench) -> None:
    # Given a queue made and changed here
    bench.store.create_queue(queue())
    created = bench.store.queue(PROJECT, "orders")
    assert created == queue(version=1)
    changed = bench.store.update_queue(replace(created, message_timeout=5))
    assert bench.store.queue(PROJECT, "orders") == changed
    assert bench.reads() == 0
    # When it is deleted here, then it is gone here
    bench.store.delete_queue(changed)
    assert bench.store.queue(PROJECT, "orders") is None


def test_after_a_write_of_unknown_effect_the_table_is_asked(bench: Bench) -> None:
    # Given an update whose answer never comes
    bench.store.create_queue(queue())
    bench.client.next("put_item", aws.times_out)
    with pytest.raises(Unavailable):
        bench.store.update_queue(queue(version=1, message_timeout=5))
    # Then the next reader sees the outcome
    assert bench.store.queue(PROJECT, "orders") == queue(version=2, message_timeout=5)


def test_a_call_the_client_repeats_after_a_lost_answer_is_no_conflict(bench: Bench) -> None:
    bench.client.next("put_item", aws.repeated)
    bench.store.create_queue(queue())
    bench.client.next("put_item", aws.repeated)
    assert bench.store.update_queue(queue(version=1, message_timeout=5)).version == 2


def test_names_are_read_a_page_at_a_time(bench: Bench) -> None:
    for number in range(30):
        bench.elsewhere.create_queue(queue(f"q{number:02d}"))
    assert len(bench.store.queues(PROJECT, prefix="", after="", limit=10)) == 10
    assert [operation for operation, _ in bench.client.calls] == ["query"]


def test_a_copy_of_a_project_may_be_as_old_as_its_reader_says(bench: Bench) -> None:
    # Given a project that this environment has read
    project = Project(project_id="p", created_at=0)
    bench.elsewhere.put_project(project)
    other = bench.store
    assert other.project("p") == project
    # When another one changes it
    bench.elsewhere.put_project(replace(project, suspended_at=1))
    bench.clock.advance(ms=3_000)
    # Then whoever takes an older copy gets it, and nobody else does
    assert other.project("p") == project
    assert other.project("p", within_ms=3_001) == project
    assert other.project("p", within_ms=3_000) == replace(project, suspended_at=1)
    assert other.project("p") == replace(project, suspended_at=1)
    bench.elsewhere.put_project(project)
    assert other.project("p", within_ms=0) == project


def test_a_change_of_a_project_keeps_what_this_version_does_not_know(bench: Bench) -> None:
    # Given a project that a newer version has written something of
    bench.elsewhere.put_project(Project(project_id=PROJECT, created_at=NOW))
    key = {"pk": {"S": f"P#{PROJECT}"}, "sk": {"S": "PROJECT"}}
    bench.client.update_item(
        TableName=aws.CONFIG_TABLE,
        Key=key,
        UpdateExpression="SET newer = :newer",
        ExpressionAttributeValues={":newer": {"L": [{"S": "x"}]}},
    )
    # When it is changed, and the change is repeated after a lost answer
    bench.client.next("put_item", aws.repeated)
    changed = bench.store.change_project(PROJECT, lambda stored: replace(stored, name="new", suspended_at=NOW))
    again = bench.store.change_project(PROJECT, lambda stored: replace(stored, suspended_at=None))
    # Then both are there
    assert (changed.name, changed.suspended, again.name, again.suspended) == ("new", True, "new", False)
    item = bench.client.get_item(TableName=aws.CONFIG_TABLE, Key=key)["Item"]
    assert (item["newer"], item["name"], "suspended_at" in item) == ({"L": [{"S": "x"}]}, {"S": "new"}, False)


def test_what_not_every_project_has_is_known() -> None:
    quota, schemes = Quota.of(5), (PRESETS["stripe"],)
    plain = encode_project(Project(project_id="p", created_at=0))
    full = encode_project(
        Project(
            project_id="p",
            created_at=0,
            quota=quota,
            suspended_at=0,
            erased_since=0,
            traces=Traces.ALL,
            signatures=schemes,
            external_secret="s",
        )
    )
    assert sorted(OPTIONAL) == sorted(full.keys() - plain.keys())
