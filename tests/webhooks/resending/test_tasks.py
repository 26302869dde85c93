"""Background tasks: worked on in slices, by one at a time, until they end or are cancelled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.engine.world import PROJECT
from tests.fakes import FakeClock
from tests.fakes.webhook_tasks import FakeTaskRuns, FakeTasks

from pushhub.base.errors import NotFound, Unavailable
from pushhub.webhooks.model.page import Window
from pushhub.webhooks.model.refusals import Refused, Unprocessable
from pushhub.webhooks.model.task import Task, TaskAsk, TaskKind, TaskStatus, allowance
from pushhub.webhooks.ports import RequestKey
from pushhub.webhooks.resending.tasks import Tasks
from pushhub.webhooks.wire.fields import Fields
from pushhub.webhooks.wire.task import parse_replay, task_view

ASK = TaskAsk(since=0, until=10)
STEP_MS = 1_000
PLENTY_MS = 6_000_000
OTHER = "5f0000000000000000000002"


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
        self.runs = FakeTaskRuns()
        self.worker = Counting(self.clock, messages)
        self.ended: list[Task] = []
        self.noted: dict[tuple[str, RequestKey], str] = {}
        self.tasks = Tasks(
            store=self.store,
            runs=self.runs,
            note_id=lambda project, key, resources: self.noted.setdefault((project, key), resources),
            workers=dict.fromkeys(TaskKind, lambda: self.worker),
            ended=self.ended.append,
            clock=self.clock,
        )

    def begin(self, project: str = PROJECT, key: str = "") -> Task:
        given = RequestKey(key, "c") if key else None
        return self.tasks.begin(project, TaskKind.RECOVER, ASK, app_id="app_x", endpoint_id="ep_x", key=given)

    def run(self, seconds: int, project: str = PROJECT) -> int:
        """A run that has this much time, of which it keeps ten seconds in reserve."""
        ends = self.clock.now() + seconds * 1000
        return self.tasks.run_project(project, lambda: ends - self.clock.now())

    def now(self, task: Task) -> Task:
        return self.tasks.task(task.project, task.task_id)


def test_a_request_for_a_task_is_answered_before_anything_is_done() -> None:
    world = World(messages=1)
    before = world.clock.now()
    begun = world.begin()
    assert (begun.status, world.worker.sent, world.clock.now()) == (TaskStatus.RUNNING, 0, before)
    # And it is begun by a run of its project's
    assert world.runs.started == [PROJECT]
    world.run(55)
    done = world.now(begun)
    assert (done.status, done.sent) == (TaskStatus.FINISHED, 1)
    assert task_view(done)["data"] == {"messagesSent": 1, "messagesLooked": 0}
    assert world.ended == [done]


def test_a_task_is_stored_though_no_run_can_be_started() -> None:
    world = World()

    def refused(_: str) -> None:
        raise Unavailable("lambda:Invoke")

    world.runs.start = refused  # type: ignore[method-assign,assignment]
    begun = world.begin()
    assert world.tasks.run(lambda: PLENTY_MS) == 0
    # Then the next minute makes up for it
    del world.runs.start
    assert world.tasks.run(lambda: PLENTY_MS) == 1
    assert world.runs.started == [PROJECT]
    assert world.now(begun).status is TaskStatus.RUNNING


def test_a_repeated_request_is_the_same_task_whatever_became_of_it() -> None:
    world = World()
    begun = world.begin(key="d")
    world.clock.advance(seconds=1)
    assert world.begin(key="d") == begun
    world.run(55)
    assert world.now(begun).status is TaskStatus.FINISHED
    assert world.begin(key="d") == begun
    # And another project's, another key's and one without a key are others
    others = [world.begin(OTHER, key="d"), world.begin(key="e"), world.begin(), world.begin()]
    assert len({begun.task_id, *(each.task_id for each in others)}) == 5
    assert len(list(world.store.running_tasks(PROJECT))) == 3


def test_a_request_that_was_cut_off_after_its_id_was_noted_makes_the_task_with_that_id() -> None:
    world = World()
    put = world.store.put_task

    def lost(_: Task) -> Task:
        raise Unavailable("the table")

    world.store.put_task = lost  # type: ignore[method-assign,assignment]
    with pytest.raises(Unavailable):
        world.begin(key="d")
    world.store.put_task = put  # type: ignore[method-assign]
    begun = world.begin(key="d")
    assert [begun.task_id] == [*world.noted.values()]
    assert world.begin(key="d") == begun


def test_while_a_run_works_on_a_projects_tasks_no_other_is_started_and_it_finds_what_is_stored_meanwhile() -> None:
    # Given a project whose task is worked on, When another one is requested meanwhile
    world = World(messages=3)
    later: list[Task] = []
    first = world.begin()
    world.runs.started.clear()
    world.worker.before = lambda task: None if later or task.sent < 2 else later.append(world.begin())
    world.run(55)
    # Then no run is started for it, and it is done
    assert world.runs.started == []
    assert [world.now(each).status for each in (first, *later)] == [TaskStatus.FINISHED] * 2
    # And a run that died with the turn keeps nobody from it for longer than its time
    now = world.clock.now()
    assert world.store.take_turn(PROJECT, now=now, until=now + 55_000)
    world.clock.advance(seconds=55)
    world.begin()
    assert world.runs.started == [PROJECT]


def test_a_task_that_is_stored_when_a_run_has_looked_for_the_last_time_gets_a_run() -> None:
    # Given a run that has found nothing left, and has the turn still, When a task is stored at each of its calls
    for place in range(1, 6):
        world = World(messages=0)
        world.begin()
        world.runs.started.clear()
        calls, real = [0], world.store.running_tasks
        stored: list[Task] = []

        def looks(project_id: str, calls: list[int] = calls, stored: list[Task] = stored, place: int = place) -> object:
            found = [*real(project_id)]  # noqa: B023 (called in this round only)
            calls[0] += 1
            if calls[0] == place:
                stored.append(world.begin())  # noqa: B023 (as above)
            return iter(found)

        world.store.running_tasks = looks  # type: ignore[method-assign,assignment]
        world.run(55)
        # Then this run has done it, or another was started
        if stored:
            done = world.now(stored[0]).status is TaskStatus.FINISHED
            assert done or world.runs.started, place


def test_each_project_with_tasks_gets_a_run_of_its_own() -> None:
    # Given a project with sixty long tasks, and another one with a short one
    world = World(messages=100)
    for _ in range(60):
        world.begin()
    short = world.begin(OTHER)
    world.runs.started.clear()
    # When a minute begins, then a run is started for each
    assert world.tasks.run(lambda: 55_000) == 2
    assert sorted(world.runs.started) == sorted((PROJECT, OTHER))
    # And while one of the first project's is under way, the other's does its task
    calls: list[int] = []
    world.worker.before = lambda task: (
        calls.append(world.run(200, OTHER)) if task.project == PROJECT and not calls else None
    )
    world.run(55)
    assert world.now(short).status is TaskStatus.FINISHED


def test_tasks_of_a_project_take_turns() -> None:
    # Given ten long tasks, and one that comes later
    world = World(messages=30)
    tasks = [world.begin() for _ in range(10)]
    world.run(10 + 30)
    # Then all are worked on
    assert {world.now(each).sent for each in tasks} == {3}
    world.run(10 + 300)
    assert {world.now(each).status for each in tasks} == {TaskStatus.FINISHED}


def test_a_long_task_goes_on_with_each_run() -> None:
    world = World(messages=100)
    begun = world.begin()
    world.run(10 + 20)
    assert world.now(begun).sent == 20
    for _ in range(20):
        world.run(10 + 20)
    assert (world.now(begun).status, world.now(begun).sent) == (TaskStatus.FINISHED, 100)
    assert world.run(55) == 0
    assert world.tasks.run(lambda: 55_000) == 0
    assert len(world.ended) == 1


def test_one_run_at_a_time_works_on_a_project_and_sees_what_came_meanwhile() -> None:
    # Given a run under way, and a task that is stored when it has looked for the last time
    world = World(messages=2)
    first = world.begin()
    later: list[Task] = []
    give_back = world.store.give_turn_back

    def late(project_id: str, until: int) -> None:
        if not later:
            later.append(world.begin())
            # Then the run that is started for it leaves it alone
            assert world.run(55) == 0
        give_back(project_id, until)

    world.store.give_turn_back = late  # type: ignore[method-assign]
    # And the first one finds it when it has given its turn back
    assert world.run(55) == 2
    assert {world.now(each).status for each in (first, later[0])} == {TaskStatus.FINISHED}


def test_a_run_that_died_holds_its_project_up_for_no_longer_than_it_had() -> None:
    class Killed(BaseException):
        """Not an error that anything handles."""

    world = World(messages=5)
    begun = world.begin()
    world.store.give_turn_back = lambda *_: None  # type: ignore[method-assign]

    def dies(_: Task) -> None:
        raise Killed

    world.worker.before = dies
    with pytest.raises(Killed):
        world.run(55)
    world.worker.before = lambda _: None
    assert world.run(55) == 0
    world.clock.advance(seconds=55)
    world.run(55)
    assert world.now(begun).status is TaskStatus.FINISHED


def test_one_task_that_cannot_be_done_now_does_not_keep_the_others() -> None:
    world = World(messages=50)
    first, second = world.begin(), world.begin()

    def dies(task: Task) -> None:
        if task.task_id == first.task_id:
            raise Unavailable("the table")

    world.worker.before = dies
    world.run(PLENTY_MS // 1000)
    assert world.now(first).status is TaskStatus.RUNNING
    assert world.now(second).status is TaskStatus.FINISHED


def test_a_task_is_cancelled_in_the_middle() -> None:
    world = World(messages=100)
    begun = world.begin()
    ended: list[Task] = []
    world.worker.before = lambda task: (
        ended.append(world.tasks.cancel(PROJECT, task.task_id)) if task.sent == 10 and not ended else None
    )
    world.run(PLENTY_MS // 1000)
    # Then nothing is sent beyond the part that was under way, and that is reported once
    assert world.worker.sent <= 11
    now = world.now(begun)
    assert (now.status, now.result) == (TaskStatus.FAILED, {"canceled": True})
    assert world.ended == [now]
    assert world.tasks.run(lambda: PLENTY_MS) == 0
    with pytest.raises(Refused):
        world.tasks.cancel(PROJECT, begun.task_id)


def test_tasks_are_found_and_listed_by_kind_and_status() -> None:
    world = World(messages=1)
    first = world.begin()
    world.clock.advance(seconds=1)
    second = world.tasks.begin(PROJECT, TaskKind.REPLAY_MISSING, ASK)
    world.run(55)
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
