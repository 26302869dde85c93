"""Tasks that go through messages: each is sent once, the right ones, at the rate asked for, and none after a cancel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.fakes import FakeClock
from tests.fakes.body_store import FakeBodyStore
from tests.fakes.webhook_tasks import FakeTaskRuns, FakeTasks
from tests.fakes.webhooks import FakeWebhooksSettings

from pushhub.base.errors import Forbidden, Unavailable, Unreadable
from pushhub.base.ids import MessageIds
from pushhub.base.json_text import write
from pushhub.base.verdict import Verdict
from pushhub.engine.bodies import body_of
from pushhub.engine.model.delivery import Attempt, Delivery, DeliveryState, added, opening
from pushhub.engine.model.message import Message
from pushhub.engine.model.reach import Reach
from pushhub.webhooks.model.application import Application, ApplicationFields
from pushhub.webhooks.model.endpoint import Endpoint, EndpointFields
from pushhub.webhooks.model.ids import IdPrefix, message_id, new_id
from pushhub.webhooks.model.internal_queues import OPERATIONAL_APP, queue_of
from pushhub.webhooks.model.message import ListedMessage, MessageFields
from pushhub.webhooks.model.page import KeyRange, taken
from pushhub.webhooks.model.payload_filter import Operator, PayloadFilter
from pushhub.webhooks.model.task import Task, TaskAsk, TaskKind, TaskStatus
from pushhub.webhooks.resending import replay
from pushhub.webhooks.resending.replay import BATCH, Counting, Erasing, Replay, payload_of
from pushhub.webhooks.resending.tasks import Tasks, Worker
from pushhub.webhooks.wire.task import task_view

PLENTY_MS = 10_000_000


class World:
    """An application with one endpoint; every message was owed to it unless stated otherwise."""

    def __init__(self, **fields: Any) -> None:
        self.clock = FakeClock()
        self.settings = FakeWebhooksSettings()
        self.store = FakeTasks()
        self.ids = MessageIds(1)
        self.began = self.clock.now()
        now = self.began
        application = Application(
            project=PROJECT,
            app_id=new_id(IdPrefix.APPLICATION, now),
            fields=ApplicationFields(name="a"),
            created_at=now,
            updated_at=now,
        )
        self.app = self.settings.put_application(application, None)
        endpoint = Endpoint(
            project=PROJECT,
            app_id=self.app.app_id,
            endpoint_id=new_id(IdPrefix.ENDPOINT, now),
            fields=EndpointFields(url="https://a.example/", **fields),
            reach=Reach.PROJECT,
            created_at=now,
            updated_at=now,
        )
        self.endpoint = self.settings.put_endpoint(endpoint, None)
        self.posted: list[ListedMessage] = []
        self.stored: dict[str, Message] = {}
        self.deliveries: dict[str, Delivery] = {}
        self.asked: list[str] = []
        self.added: list[str] = []
        self.expunged: list[str] = []
        replay = Replay(endpoints=self.settings, log=self, tries=self, flags_for=lambda _, __: (), clock=self.clock)
        self.workers: dict[TaskKind, Worker] = dict.fromkeys(TaskKind, replay)
        self.tasks = Tasks(
            store=self.store,
            runs=FakeTaskRuns(),
            note_id=lambda _, __, application: application,
            workers={kind: lambda kind=kind: self.workers[kind] for kind in TaskKind},  # type: ignore[misc]
            ended=lambda _: None,
            clock=self.clock,
        )

    def post(self, state: DeliveryState | None = None, *, code: int = 500, body: bytes = b"{}", **fields: Any) -> str:
        """Add a message with this state at the endpoint; None: it was never owed."""
        now = self.clock.advance(ms=8)
        message = Message(
            project=PROJECT,
            queue=queue_of(self.app.app_id),
            queue_uid=self.app.app_id,
            message_id=self.ids.next(now),
            body=body,
            body_size=len(body),
            accepted_at=now,
            due_at=now,
            expires_at=now + 10**9,
            subscriber_ids=() if state is None else (self.endpoint.endpoint_id,),
        )
        shown = message_id(message.message_id)
        listed = ListedMessage(
            project=PROJECT,
            app_id=self.app.app_id,
            engine_id=message.message_id,
            fields=MessageFields(**{"event_type": "a", **fields}),
            accepted_at=now,
            ends_at=message.expires_at,
            listed_until=message.expires_at,
        )
        self.posted.append(listed)
        self.stored[shown] = message
        if state is not None:
            created = opening(message, self.endpoint.endpoint_id)
            tried = state is not DeliveryState.PENDING
            last = self.attempt(code=code, manual=False) if tried else None
            self.deliveries[shown] = replace(created, state=state, attempts=int(tried), last=last)
        return shown

    def attempt(self, *, code: int, manual: bool) -> Attempt:
        now = self.clock.now()
        return Attempt(
            number=1,
            subscriber_id=self.endpoint.endpoint_id,
            verdict=Verdict.DELIVERED if code < 300 else Verdict.FAILED,
            status_code=code,
            error_class="",
            started_at=now,
            finished_at=now,
            bytes_out=2,
            bytes_in=0,
            wait_before_ms=0,
            wait_after_ms=None,
            manual=manual,
        )

    def messages(self, project_id: str, app_id: str, span: KeyRange) -> Iterator[ListedMessage]:
        found = self.posted if app_id == self.app.app_id else []
        return iter(taken(found, lambda each: each.engine_id, span))

    def expunge(self, project_id: str, app_id: str, name: str) -> None:
        self.expunged.append(name)

    def delivery(self, message: ListedMessage, endpoint_id: str) -> tuple[Message, Delivery | None] | None:
        name = message.message_id
        return (self.stored[name], self.deliveries.get(name)) if name not in self.expunged else None

    def ask(self, message: Message, endpoint_id: str) -> None:
        name = message_id(message.message_id)
        if message.expires_at <= self.clock.now():
            raise Forbidden("Delivery cannot be tried again")
        self.asked.append(name)
        before = self.deliveries.get(name) or added(message, endpoint_id, due_at=None)
        last = self.attempt(code=200, manual=True)
        self.deliveries[name] = replace(before, state=DeliveryState.DELIVERED, last=last, attempts=before.attempts + 1)

    def add(self, message: Message, endpoint_id: str) -> None:
        name = message_id(message.message_id)
        self.added.append(name)
        self.deliveries[name] = added(message, endpoint_id, due_at=self.clock.now())

    def payload(self, message: Message) -> Mapping[str, Any] | None:
        return payload_of(body_of(message, FakeBodyStore()))

    def ask_for(self, **fields: Any) -> TaskAsk:
        return TaskAsk(**{"since": self.began, "until": self.clock.now() + 4, **fields})

    def run(self, kind: TaskKind, **fields: Any) -> Task:
        """Run a task to its end."""
        ask = self.ask_for(**fields)
        begun = self.tasks.begin(PROJECT, kind, ask, app_id=self.app.app_id, endpoint_id=self.endpoint.endpoint_id)
        self.tasks.run_project(PROJECT, lambda: PLENTY_MS)
        return self.tasks.task(PROJECT, begun.task_id)


def test_recover_sends_what_failed_and_never_arrived() -> None:
    world = World()
    world.post(DeliveryState.DELIVERED, code=200)
    failed = [world.post(DeliveryState.EXHAUSTED), world.post(DeliveryState.RETRYING)]
    world.post(DeliveryState.PENDING)
    world.post(None)
    done = world.run(TaskKind.RECOVER)
    assert (done.status, done.sent, done.looked) == (TaskStatus.FINISHED, 2, 5)
    assert world.asked == failed


def test_replay_missing_sends_what_was_never_owed_and_the_endpoint_wants() -> None:
    world = World(event_types=("a",))
    world.post(DeliveryState.EXHAUSTED)
    world.post(DeliveryState.PENDING)
    world.post(None, event_type="b")
    missing = [world.post(None), world.post(None)]
    assert world.run(TaskKind.REPLAY_MISSING).sent == 2
    assert world.added == missing
    # And once only: the next such task finds nothing
    world.clock.advance(seconds=1)
    for each in missing:
        tried = world.attempt(code=500, manual=False)
        world.deliveries[each] = replace(world.deliveries[each], attempts=1, last=tried)
    world.clock.advance(seconds=1)
    assert world.run(TaskKind.REPLAY_MISSING).sent == 0


def test_replay_missing_sends_what_the_payload_filters_let_through() -> None:
    """Given an endpoint with payload filters, and messages that were never owed to it. When the missing ones are
    replayed. Then it gets those whose bytes pass; raw text passes none.
    """
    world = World(filters=(PayloadFilter(path="n", operator=Operator.DIFFERS, value=1),))
    bodies = (b'{"n": 1}', b'{"n": 2}', b"raw", b"[]", b"{}")
    missing = [world.post(None, body=body) for body in bodies]
    assert world.run(TaskKind.REPLAY_MISSING).sent == 2
    assert world.added == [missing[1], missing[4]]


@pytest.mark.parametrize(
    ("chosen", "sent"),
    [
        ({}, [0, 1, 2, 3]),
        ({"event_types": ("b",)}, [1]),
        ({"channel": "red"}, [2]),
        ({"tag": "t"}, [3]),
        ({"status": 0}, [0]),
        ({"status": 2}, [1, 2]),
        ({"status": 3}, [3]),
        ({"status_code_class": 400}, [1]),
    ],
)
def test_bulk_replay_sends_what_is_chosen_whatever_became_of_it(chosen: dict[str, Any], sent: list[int]) -> None:
    world = World()
    posted = [
        world.post(DeliveryState.DELIVERED, code=200),
        world.post(DeliveryState.EXHAUSTED, code=404, event_type="b"),
        world.post(DeliveryState.EXHAUSTED, channels=("red",)),
        world.post(DeliveryState.RETRYING, tags=("t",)),
    ]
    world.run(TaskKind.BULK_REPLAY, **chosen)
    assert world.asked == [posted[number] for number in sent]


def test_only_the_window_counts() -> None:
    world = World()
    world.post(DeliveryState.EXHAUSTED)
    since = world.clock.advance(ms=8)
    inside = world.post(DeliveryState.EXHAUSTED)
    until = world.clock.advance(ms=8)
    world.post(DeliveryState.EXHAUSTED)
    world.run(TaskKind.RECOVER, since=since, until=until)
    assert world.asked == [inside]


def test_a_dry_run_counts_and_sends_nothing() -> None:
    world = World()
    for _ in range(3):
        world.post(DeliveryState.EXHAUSTED)
    assert world.run(TaskKind.RECOVER, dry_run=True).sent == 3
    assert world.asked == []


def test_a_step_that_was_interrupted_sends_nothing_twice() -> None:
    world = World()
    for _ in range(BATCH):
        world.post(DeliveryState.EXHAUSTED)
    put, failures = world.store.put_task, [1]

    def lost(task: Task) -> Task:
        if task.sent and failures:
            failures.pop()
            raise Unavailable("the table")
        return put(task)

    world.store.put_task = lost  # type: ignore[method-assign]
    begun = world.tasks.begin(
        PROJECT, TaskKind.RECOVER, world.ask_for(), app_id=world.app.app_id, endpoint_id=world.endpoint.endpoint_id
    )
    world.tasks.run_project(PROJECT, lambda: PLENTY_MS)
    assert len(world.asked) == BATCH
    world.clock.advance(seconds=600)
    world.tasks.run_project(PROJECT, lambda: PLENTY_MS)
    assert world.tasks.task(PROJECT, begun.task_id).sent == len(world.asked) == BATCH


def test_what_was_added_by_a_run_that_died_before_it_was_queued_is_queued_by_the_next() -> None:
    # Given a replay of two messages, whose run dies when the first is added and not queued
    world = World()
    first, second = world.post(None), world.post(None)
    add, dies = world.add, [True]

    def added_and_dead(message: Message, endpoint_id: str) -> None:
        add(message, endpoint_id)
        if dies:
            dies.clear()
            world.added.clear()
            raise Unavailable("the queue")

    world.add = added_and_dead  # type: ignore[method-assign]
    begun = world.tasks.begin(
        PROJECT,
        TaskKind.REPLAY_MISSING,
        world.ask_for(),
        app_id=world.app.app_id,
        endpoint_id=world.endpoint.endpoint_id,
    )
    world.tasks.run_project(PROJECT, lambda: PLENTY_MS)
    assert world.added == []
    # When the next run continues, then both are queued
    world.clock.advance(seconds=60)
    world.tasks.run_project(PROJECT, lambda: PLENTY_MS)
    assert world.added == [first, second]
    assert world.tasks.task(PROJECT, begun.task_id).sent == 2
    # And what another task added long ago, and still waits, is left to it
    world.clock.advance(seconds=600)
    assert world.run(TaskKind.REPLAY_MISSING).sent == 2
    assert world.added == [first, second]


def test_a_cancel_in_the_middle_of_two_thousand_sends_no_more_than_a_batch() -> None:
    world = World()
    for _ in range(2_000):
        world.post(DeliveryState.EXHAUSTED)
    ask = world.ask
    cancelled: list[int] = []

    def cancelling(message: Message, endpoint_id: str) -> None:
        ask(message, endpoint_id)
        if len(world.asked) == 1_010:
            (task,) = world.store.running_tasks(PROJECT)
            world.tasks.cancel(PROJECT, task.task_id)
            cancelled.append(len(world.asked))

    world.ask = cancelling  # type: ignore[method-assign]
    done = world.run(TaskKind.RECOVER)
    assert (done.status, done.result["canceled"]) == (TaskStatus.FAILED, True)
    assert len(world.asked) - cancelled[0] < BATCH
    # And another task sends the rest, and earlier ones only if they failed again
    world.ask = ask  # type: ignore[method-assign]
    assert world.run(TaskKind.RECOVER).status is TaskStatus.FINISHED
    assert sorted(world.asked) == sorted(each.message_id for each in world.posted)


def test_a_rate_is_kept() -> None:
    world = World()
    for _ in range(200):
        world.post(DeliveryState.EXHAUSTED)
    ask = world.ask_for(rate=2)
    begun = world.tasks.begin(
        PROJECT, TaskKind.RECOVER, ask, app_id=world.app.app_id, endpoint_id=world.endpoint.endpoint_id
    )
    world.tasks.run_project(PROJECT, lambda: PLENTY_MS)
    assert len(world.asked) == 2
    for minute in range(1, 3):
        world.clock.advance(seconds=60)
        world.tasks.run_project(PROJECT, lambda: PLENTY_MS)
        assert 2 * 60 * minute <= len(world.asked) <= 2 * 60 * minute + 4 or len(world.asked) == 200
    assert world.tasks.task(PROJECT, begun.task_id).status is TaskStatus.FINISHED


@pytest.mark.parametrize("gone", [True, False])
def test_a_task_of_an_endpoint_that_takes_nothing_fails(gone: bool) -> None:
    world = World()
    world.post(DeliveryState.EXHAUSTED)
    if gone:
        world.settings.delete_endpoint(world.endpoint)
    else:
        fields = replace(world.endpoint.fields, disabled=True)
        world.settings.put_endpoint(replace(world.endpoint, fields=fields), world.endpoint)
    done = world.run(TaskKind.RECOVER)
    assert done.status is TaskStatus.FAILED
    assert ("deleted" if gone else "disabled") in str(done.result["detail"])
    assert world.asked == []


def test_what_cannot_be_tried_again_is_left_out() -> None:
    world = World()
    world.post(DeliveryState.EXHAUSTED)
    expunged = world.post(DeliveryState.EXHAUSTED)
    world.expunged.append(expunged)
    world.clock.advance(seconds=10**7)
    assert world.run(TaskKind.RECOVER).sent == 0


def test_all_contents_are_erased() -> None:
    world = World()
    posted = [world.post(DeliveryState.DELIVERED) for _ in range(2 * BATCH + 1)]
    world.workers[TaskKind.EXPUNGE] = Erasing(log=world, expunge=world.expunge, clock=world.clock)
    done = world.run(TaskKind.EXPUNGE, since=0)
    assert (done.status, done.sent) == (TaskStatus.FINISHED, len(posted))
    assert world.expunged == posted


def test_messages_are_counted() -> None:
    world = World()
    for number in range(600):
        world.post(None, event_type="ab"[number % 2])

    def next_app(project_id: str, after: str) -> str | None:
        found = next((each for each in (OPERATIONAL_APP, "app_0a", world.app.app_id) if each > after), None)
        counted.append(found)
        return found

    counted: list[str | None] = []

    world.workers[TaskKind.APP_STATS] = world.workers[TaskKind.EVENT_TYPES] = Counting(
        next_app=next_app, log=world, clock=world.clock
    )
    assert world.run(TaskKind.APP_STATS).result == {"messagesByApp": {world.app.app_id: 600}}
    # The application of operational webhooks is hidden
    assert counted == ["app_0a", world.app.app_id, None]
    assert world.run(TaskKind.EVENT_TYPES).result == {"messagesByEventType": {"a": 300, "b": 300}}
    assert world.run(TaskKind.APP_STATS, apps=("app_0a",)).result == {"messagesByApp": {}}


def test_a_count_ends_that_is_too_large_to_be_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given more applications with a message than fit into an item of the table
    monkeypatch.setattr(replay, "MOST_RESULT", 3_000)
    world = World()
    world.post(None)
    [message] = world.posted
    monkeypatch.setattr(world, "messages", lambda *_: iter([message]))
    apps = iter([f"app_{number:027d}" for number in range(200)])
    world.workers[TaskKind.APP_STATS] = Counting(next_app=lambda *_: next(apps, None), log=world, clock=world.clock)
    # When all of them are counted, then the task ends, and says why
    done = world.run(TaskKind.APP_STATS)
    assert done.status is TaskStatus.FAILED
    assert done.result["detail"] == "Too many to count together: name some of the applications"
    assert 2_900 < len(write(done.result["messagesByApp"])) < 3_000


@pytest.mark.parametrize("kind", [TaskKind.RECOVER, TaskKind.EXPUNGE])
def test_a_message_that_cannot_be_read_is_counted_and_keeps_none_behind_it_waiting(
    kind: TaskKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given messages, of which two cannot be read
    world = World()
    posted = [world.post(DeliveryState.EXHAUSTED) for _ in range(5)]
    damaged = {posted[0], posted[3]}
    delivery, expunge = world.delivery, world.expunge

    def read(message: ListedMessage, endpoint_id: str) -> object:
        if message.message_id in damaged:
            raise Unreadable
        return delivery(message, endpoint_id)

    def erase(project_id: str, app_id: str, name: str) -> None:
        if name in damaged:
            raise Unreadable
        expunge(project_id, app_id, name)

    monkeypatch.setattr(world, "delivery", read)
    world.workers[TaskKind.EXPUNGE] = Erasing(log=world, expunge=erase, clock=world.clock)
    # When a task is about all of them
    done = world.run(kind)
    # Then it ends, has done the others, and says so
    assert (done.status, done.sent, done.looked) == (TaskStatus.FINISHED, 3, 5)
    assert {*(world.asked or world.expunged)} == {*posted} - damaged
    assert task_view(done)["data"] == {"messagesSent": 3, "messagesLooked": 5, "messagesUnreadable": 2}
