"""Background tasks: worked on in slices, by one at a time, until they end or are cancelled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.engine.world import PROJECT
from tests.fakes import FakeClock
from tests.fakes.webhook_tasks import FakeTasks

from pushhub.base.errors import NotFound, Unavailable
from pushhub.webhooks.model.page import Window
from pushhub.webhooks.model.refusals import Refused, Unprocessable
from pushhub.webhooks.model.task import Task, TaskAsk, TaskKind, TaskStatus, allowance
from pushhub.webhooks.tasks import LEASE_MS, SLICE_MS, Tasks
from pushhub.webhooks.wire.fields import Fields
from pushhub.webhooks.wire.task import parse_replay, task_view

ASK = TaskAsk(since=0, until=10)
STEP_MS = 1_000
PLENTY_MS = 600_000


class Counting:
    """Sends one message a step, which takes a second, until it has sent a given number."""

    def __init__(self, clock: FakeClock, messages: int) -> None:
        self._clock = clock
        self._messages = messages
        self.before: Callable[[Task], None] = lambda _: None
        self.sent = 0

    def step(self, task: Task) -> Task:
        self.before(task)
        self._clock.advance(seconds=STEP_MS / 1000)
        if task.sent == self._messages:
            return task.ended(TaskStatus.FINISHED, self._clock.now())
        self.sent += 1
        return replace(task, sent=task.sent + 1, updated_at=self._clock.now())


class World:
    def __init__(self, messages: int = 2) -> None:
        self.clock = FakeClock()
        self.store = FakeTasks()
        self.worker = Counting(self.clock, messages)
        self.told: list[Task] = []
        self.tasks = Tasks(
            store=self.store,
            workers=dict.fromkeys(TaskKind, lambda: self.worker),
            ended=self.told.append,
            clock=self.clock,
        )

    def begin(self) -> Task:
        return self.tasks.begin(PROJECT, TaskKind.RECOVER, ASK, app_id="app_x", endpoint_id="ep_x")

    def now(self, task: Task) -> Task:
        return self.tasks.task(PROJECT, task.task_id)


def test_a_short_task_is_done_at_once_though_it_is_answered_as_it_was_begun() -> None:
    world = World(messages=1)
    begun = world.begin()
    assert begun.status is TaskStatus.RUNNING
    done = world.now(begun)
    assert (done.status, done.sent) == (TaskStatus.FINISHED, 1)
    assert task_view(done)["data"] == {"messagesSent": 1, "messagesLooked": 0}
    assert world.told == [done]


def test_a_long_task_goes_on_with_each_run() -> None:
    world = World(messages=100)
    begun = world.begin()
    assert world.now(begun).sent == SLICE_MS // STEP_MS
    # When a run has half a minute, of which it keeps ten seconds in reserve
    assert world.tasks.run(lambda: 30_000) == 1
    assert world.now(begun).sent == SLICE_MS // STEP_MS + 20
    for _ in range(20):
        world.tasks.run(lambda: 30_000)
    assert (world.now(begun).status, world.now(begun).sent) == (TaskStatus.FINISHED, 100)
    assert world.tasks.run(lambda: 30_000) == 0
    assert len(world.told) == 1


def test_no_two_work_on_one_task() -> None:
    world = World(messages=10)
    calls: list[int] = []
    world.worker.before = lambda _: calls.append(world.tasks.run(lambda: PLENTY_MS))
    begun = world.begin()
    # Then a run that comes in between leaves it alone
    assert world.now(begun).sent == world.worker.sent == SLICE_MS // STEP_MS
    assert len(calls) == SLICE_MS // STEP_MS


def test_a_task_whose_worker_went_away_goes_on_after_its_lease() -> None:
    world = World(messages=5)

    def dies(_: Task) -> None:
        raise Unavailable("the table")

    world.worker.before = dies
    begun = world.begin()
    world.worker.before = lambda _: None
    world.tasks.run(lambda: PLENTY_MS)
    assert world.now(begun).sent == 0
    world.clock.advance(seconds=LEASE_MS / 1000)
    world.tasks.run(lambda: PLENTY_MS)
    assert world.now(begun).status is TaskStatus.FINISHED


def test_one_task_that_cannot_be_done_now_does_not_keep_the_others() -> None:
    world = World(messages=50)
    first, second = world.begin(), world.begin()

    def dies(task: Task) -> None:
        if task.task_id == first.task_id:
            raise Unavailable("the table")

    world.worker.before = dies
    world.tasks.run(lambda: PLENTY_MS)
    assert world.now(first).status is TaskStatus.RUNNING
    assert world.now(second).status is TaskStatus.FINISHED


def test_a_task_is_cancelled_in_the_middle() -> None:
    world = World(messages=100)
    begun = world.begin()
    ended: list[Task] = []
    world.worker.before = lambda task: (
        ended.append(world.tasks.cancel(PROJECT, task.task_id)) if task.sent == 10 and not ended else None
    )
    world.tasks.run(lambda: PLENTY_MS)
    # Then nothing is sent beyond the part that was under way, and that is reported once
    assert world.worker.sent <= 11
    now = world.now(begun)
    assert (now.status, now.result) == (TaskStatus.FAILED, {"canceled": True})
    assert world.told == [now]
    assert world.tasks.run(lambda: PLENTY_MS) == 0
    with pytest.raises(Refused):
        world.tasks.cancel(PROJECT, begun.task_id)


def test_tasks_are_found_and_listed_by_kind_and_status() -> None:
    world = World(messages=1)
    first = world.begin()
    world.clock.advance(seconds=1)
    second = world.tasks.begin(PROJECT, TaskKind.REPLAY_MISSING, ASK)
    window = Window(ascending=False)

    def listed(**chosen: str) -> list[str]:
        return [each.task_id for each in world.tasks.page(PROJECT, window, **chosen).items]

    assert listed() == [second.task_id, first.task_id]
    assert listed(kind="endpoint.recover") == [first.task_id]
    assert listed(status="running") == []
    world.clock.advance(seconds=91 * 86_400)
    assert listed() == []
    for wrong in ("x", "qtask_" + "0" * 27):
        with pytest.raises(NotFound):
            world.tasks.task(PROJECT, wrong)


def test_a_rate_allows_so_many_a_second() -> None:
    task = Task(
        project=PROJECT,
        task_id="qtask_x",
        kind=TaskKind.RECOVER,
        ask=replace(ASK, rate=10),
        created_at=0,
        updated_at=0,
    )
    assert allowance(task, 0) == 10
    assert allowance(replace(task, sent=10), 0) == 0
    assert allowance(replace(task, sent=10), 1_500) == 15
    assert allowance(replace(task, ask=ASK), 0) is None


DAY_MS = 86_400_000
NOW = FakeClock().now()


def test_a_window_is_fourteen_days_unless_its_owner_means_more() -> None:
    body = {"since": "2026-11-01T00:00:00Z", "until": "2026-11-15T00:04:00Z"}
    assert parse_replay(Fields(body), NOW).until - parse_replay(Fields(body), NOW).since == 14 * DAY_MS + 240_000
    wide = {**body, "until": "2026-11-16T00:00:00Z"}
    with pytest.raises(Unprocessable) as refused:
        parse_replay(Fields(wide), NOW)
    assert refused.value.problems[0].where == ("body", "since")
    asked = parse_replay(Fields({**wide, "unlimited": True, "rate": 5, "dryRun": True}), NOW)
    assert (asked.rate, asked.dry_run) == (5, True)
    chosen = {"eventTypes": ["a"], "channel": "c", "tag": "t", "status": 2, "statusCodeClass": 500}
    assert parse_replay(Fields({**body, **chosen}), NOW, filtered=True).event_types == ("a",)
    for wrong in ({"since": "x"}, {}, {**body, "status": 9}, {**body, "statusCodeClass": 404}, {**body, "rate": 0}):
        with pytest.raises(Unprocessable):
            parse_replay(Fields(wrong), NOW, filtered=True)
