"""What :class:`pushhub.webhooks.applications.portal.PortalTokens` and
:class:`pushhub.webhooks.resending.tasks.TaskStore` promise, of the fakes and of DynamoDB.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.cloud import aws_services as aws
from tests.contract.both import both
from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT
from tests.fakes import FakeClock
from tests.fakes.webhook_tasks import FakePortalFrames, FakePortalTokens, FakeTasks, FakeToldCounts

from pushhub.base.errors import Conflict
from pushhub.webhooks.applications.portal import PortalFrames, PortalTokens
from pushhub.webhooks.model.ids import IdPrefix, new_id
from pushhub.webhooks.model.page import KeyRange
from pushhub.webhooks.model.portal import Capability, PortalAccess
from pushhub.webhooks.model.portal_frame import PortalFrame
from pushhub.webhooks.model.task import Task, TaskAsk, TaskKind, TaskStatus
from pushhub.webhooks.operational.operational import ToldCounts
from pushhub.webhooks.resending.tasks import TaskStore
from pushhub.webhooks.store.dynamodb_portal import DynamoDBPortalTokens
from pushhub.webhooks.store.dynamodb_portal_frames import DynamoDBPortalFrames
from pushhub.webhooks.store.dynamodb_tasks import DynamoDBTasks, DynamoDBToldCounts

APP = new_id(IdPrefix.APPLICATION, NOW)


@pytest.fixture(params=["fake", "dynamodb"])
def stores(request: pytest.FixtureRequest) -> Iterator[tuple[PortalTokens, TaskStore, ToldCounts]]:
    if request.param == "fake":
        yield FakePortalTokens(), FakeTasks(), FakeToldCounts()
        return
    with aws.dynamodb() as client:
        arguments = client, aws.WEBHOOKS_TABLE, FakeClock()
        yield DynamoDBPortalTokens(*arguments), DynamoDBTasks(*arguments), DynamoDBToldCounts(*arguments)


@pytest.fixture
def tokens(stores: tuple[PortalTokens, TaskStore, ToldCounts]) -> PortalTokens:
    return stores[0]


@pytest.fixture
def tasks(stores: tuple[PortalTokens, TaskStore, ToldCounts]) -> TaskStore:
    return stores[1]


def access(digest: str = "d1", **changes: object) -> PortalAccess:
    full = PortalAccess(
        project=PROJECT,
        app_id=APP,
        digest=digest,
        capabilities=frozenset({Capability.VIEW_BASE, Capability.CREATE_ATTEMPTS}),
        flags=frozenset({"beta"}),
        session="s",
        created_at=NOW,
        expires_at=NOW + 5,
    )
    return replace(full, **changes)  # type: ignore[arg-type]


def task(at: int = NOW, **changes: object) -> Task:
    full = Task(
        project=PROJECT,
        task_id=new_id(IdPrefix.TASK, at),
        kind=TaskKind.BULK_REPLAY,
        app_id=APP,
        endpoint_id="ep_x",
        ask=TaskAsk(
            since=1,
            until=2,
            event_types=("a", "b"),
            channel="c",
            tag="t",
            status=2,
            status_code_class=500,
            rate=3,
            dry_run=True,
            apps=("x",),
        ),
        cursor="msg_x",
        looked=7,
        sent=6,
        result={"some": ["thing"]},
        created_at=NOW,
        updated_at=NOW + 1,
    )
    return replace(full, **changes)  # type: ignore[arg-type]


def test_a_token_is_kept_whole_listed_and_removed(tokens: PortalTokens) -> None:
    kept = [access(), access("d2", session=None, flags=frozenset(), capabilities=frozenset({Capability.VIEW_BASE}))]
    for each in (*kept, access(project=OTHER_PROJECT), access(app_id=new_id(IdPrefix.APPLICATION, NOW))):
        tokens.put_access(each)
    assert tokens.access(PROJECT, APP, "d1") == kept[0]
    assert sorted(tokens.accesses(PROJECT, APP), key=lambda each: each.digest) == kept
    tokens.remove_accesses([kept[0], access("never")])
    assert tokens.access(PROJECT, APP, "d1") is None
    assert list(tokens.accesses(PROJECT, APP)) == [kept[1]]


def test_a_token_that_was_taken_back_does_not_come_back_by_being_shortened(tokens: PortalTokens) -> None:
    tokens.put_access(access())
    tokens.shorten_access(access(expires_at=NOW + 1))
    assert tokens.access(PROJECT, APP, "d1") == access(expires_at=NOW + 1)
    tokens.remove_accesses([access()])
    tokens.shorten_access(access())
    assert tokens.access(PROJECT, APP, "d1") is None


def test_a_task_is_kept_whole_and_changed_by_one_at_a_time(tasks: TaskStore) -> None:
    begun = tasks.put_task(task())
    assert begun.version == 1
    assert tasks.task(PROJECT, begun.task_id) == begun
    assert tasks.task(OTHER_PROJECT, begun.task_id) is None
    changed = tasks.put_task(replace(begun, sent=9))
    with pytest.raises(Conflict):
        tasks.put_task(replace(begun, sent=10))
    with pytest.raises(Conflict):
        tasks.put_task(replace(begun, version=0))
    assert tasks.task(PROJECT, begun.task_id) == changed


def test_tasks_are_listed_in_a_span_both_ways(tasks: TaskStore) -> None:
    made = [tasks.put_task(task(NOW + 4 * number)) for number in range(5)]
    tasks.put_task(task(project=OTHER_PROJECT))
    assert list(tasks.tasks(PROJECT, KeyRange())) == made
    assert list(tasks.tasks(PROJECT, KeyRange(up=False))) == made[::-1]
    between = KeyRange(above=made[0].task_id, below=made[3].task_id)
    assert list(tasks.tasks(PROJECT, between)) == made[1:3]
    assert list(tasks.tasks(PROJECT, KeyRange(above=made[3].task_id, below=made[0].task_id))) == []


def test_those_that_run_are_found_by_project_until_they_end(tasks: TaskStore) -> None:
    first, third = tasks.put_task(task()), tasks.put_task(task(NOW + 8))
    second = tasks.put_task(task(NOW + 4, project=OTHER_PROJECT))
    assert sorted(tasks.projects_with_tasks()) == sorted((PROJECT, OTHER_PROJECT))
    assert list(tasks.running_tasks(PROJECT)) == [first, third]
    assert list(tasks.running_tasks(OTHER_PROJECT)) == [second]
    for each in (first, third):
        tasks.put_task(each.ended(TaskStatus.FINISHED, NOW))
    assert list(tasks.running_tasks(PROJECT)) == []
    assert list(tasks.projects_with_tasks()) == [OTHER_PROJECT]


def test_one_at_a_time_has_a_projects_turn_until_it_gives_it_back_or_it_is_over(tasks: TaskStore) -> None:
    assert not tasks.has_turn(PROJECT, now=NOW)
    assert tasks.take_turn(PROJECT, now=NOW, until=NOW + 100)
    assert tasks.has_turn(PROJECT, now=NOW + 99)
    assert not tasks.has_turn(PROJECT, now=NOW + 100)
    assert not tasks.has_turn(OTHER_PROJECT, now=NOW)
    assert not tasks.take_turn(PROJECT, now=NOW + 99, until=NOW + 200)
    assert tasks.take_turn(OTHER_PROJECT, now=NOW, until=NOW + 100)
    # When it is over, then another one has it, and keeps it
    assert tasks.take_turn(PROJECT, now=NOW + 100, until=NOW + 300)
    tasks.give_turn_back(PROJECT, NOW + 100)
    assert not tasks.take_turn(PROJECT, now=NOW + 101, until=NOW + 400)
    tasks.give_turn_back(PROJECT, NOW + 300)
    assert tasks.take_turn(PROJECT, now=NOW + 102, until=NOW + 400)
    tasks.give_turn_back(PROJECT, 0)
    tasks.give_turn_back(OTHER_PROJECT, NOW + 100)
    tasks.give_turn_back(OTHER_PROJECT, NOW + 100)


def test_what_is_told_is_counted_by_project_kind_and_minute(
    stores: tuple[PortalTokens, TaskStore, ToldCounts],
) -> None:
    counts = stores[2]
    assert [counts.count(PROJECT, "a", 1) for _ in range(3)] == [1, 2, 3]
    assert [counts.count(*each) for each in ((PROJECT, "a", 2), (PROJECT, "b", 1), (OTHER_PROJECT, "a", 1))] == [1] * 3


frames = both(FakePortalFrames, DynamoDBPortalFrames, aws.WEBHOOKS_TABLE)


def test_a_frame_is_kept_replaced_and_removed(frames: PortalFrames) -> None:
    project, app = PortalFrame(project=PROJECT), PortalFrame(project=PROJECT, app_id="app_1")
    frames.put_frame(replace(project, origins=("https://a.example",)))
    assert frames.frame(app) == app
    frames.put_frame(replace(app, origins=("https://b.example", "https://c.example")))
    assert frames.frame(app).origins == ("https://b.example", "https://c.example")
    assert frames.frame(project).origins == ("https://a.example",)
    frames.put_frame(app)
    frames.put_frame(app)
    assert frames.frame(app) == app
    assert frames.frame(project).origins == ("https://a.example",)
