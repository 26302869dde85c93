"""Accepting messages: where they go, to whom they are owed, and that a 201 is answered only for stored messages."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.fakes import (
    Crash,
    Fault,
    FaultPlan,
)
from tests.fakes.large_bodies import large_body
from tests.fakes.ports import FakePorts

from pushhub.base.errors import Conflict, Contended, Unavailable
from pushhub.engine.acceptance.accept import INLINE_BODY_LIMIT
from pushhub.engine.model.deflated import plain
from pushhub.engine.model.message import Message, NewMessage
from pushhub.engine.model.queue import PushSettings, Queue, QueueType, Subscriber
from pushhub.ironmq.posting.intake import QueueIntake
from pushhub.ironmq.posting.post import Post
from pushhub.ironmq.wiring import Ironmq

PROJECT = "p"
SMALL, LARGE = large_body(INLINE_BODY_LIMIT), large_body(INLINE_BODY_LIMIT + 1, seed=1)


class Hub:
    """Stores, and an ingest on them that may have a fault; another Hub call makes a fresh process."""

    def __init__(self) -> None:
        self.ports = FakePorts()
        self.clock = self.ports.clock
        self.config = self.ports.config
        self.messages = self.ports.messages
        self.pull = self.ports.pull
        self.bodies = self.ports.bodies

    def ingest(self, plan: FaultPlan | None = None) -> Post:
        return self.ports.build(plan or FaultPlan()).part(Ironmq).post

    def intake(self) -> QueueIntake:
        return self.ports.build(FaultPlan()).part(Ironmq).intake

    def make(self, name: str, kind: QueueType = QueueType.PULL, *, cleared_at: int = 0) -> Queue:
        subscribers = tuple(Subscriber(subscriber_id=each, name=each, url="http://a") for each in ("s1", "s2"))
        queue = Queue(
            project=PROJECT,
            name=name,
            uid=f"uid-{name}",
            pull_uid=f"line-{name}",
            type=kind,
            push=None if kind is QueueType.PULL else PushSettings(subscribers=subscribers),
            message_expiration=100,
            secret="s",
            created_at=0,
            cleared_at=cleared_at,
        )
        self.config.create_queue(queue)
        return queue

    def waiting(self, name: str) -> list[Message]:
        queue = self.config.queue(PROJECT, name)
        if queue is None:
            return []
        shown = self.pull.peek(PROJECT, queue.pull_uid, count=1000, now=self.clock.now())
        return [each.message for each in shown]

    def body(self, message: Message) -> bytes:
        if message.body is not None:
            return plain(message.body)
        assert message.body_ref is not None
        return self.bodies.get(message.body_ref)


@pytest.fixture
def hub() -> Hub:
    return Hub()


def test_a_pull_queues_message_carries_its_line_and_owes_nobody(hub: Hub) -> None:
    hub.make("q")
    [message_id] = hub.ingest().post(PROJECT, "q", [NewMessage(body=b"x", delay_s=0, headers={"X": "1"}, hops=2)])
    [message] = hub.waiting("q")
    now = hub.clock.now()
    assert message == Message(
        project=PROJECT,
        queue="q",
        queue_uid="line-q",
        message_id=message_id,
        body=b"x",
        body_size=1,
        headers={"X": "1"},
        accepted_at=now,
        due_at=now,
        expires_at=now + 100_000,
        hops=2,
    )
    assert hub.config.total(PROJECT, "uid-q") == 1


@pytest.mark.parametrize("kind", [QueueType.MULTICAST, QueueType.UNICAST])
def test_a_push_queues_message_carries_whom_it_is_owed_to(hub: Hub, kind: QueueType) -> None:
    hub.make("q", kind)
    hub.ingest().post(PROJECT, "q", [NewMessage(body=b"x", delay_s=10)])
    [message] = hub.messages.all_messages()
    assert (message.queue_uid, message.subscriber_ids) == ("uid-q", ("s1", "s2"))
    assert message.unicast is (kind is QueueType.UNICAST)
    assert (message.due_at - message.accepted_at, message.expires_at - message.due_at) == (10_000, 100_000)
    # push queues are counted when they are dispatched
    assert hub.config.total(PROJECT, "uid-q") == 0


def test_large_bodies_of_a_post_lie_in_one_object(hub: Hub) -> None:
    ids = hub.ingest().post(PROJECT, "q", [NewMessage(body=body) for body in (LARGE, SMALL, b"", LARGE + b"2")])
    messages = hub.waiting("q")
    assert [each.message_id for each in messages] == ids
    assert [hub.body(each) for each in messages] == [LARGE, SMALL, b"", LARGE + b"2"]
    assert [each.body is None for each in messages] == [True, False, False, True]
    assert [each.body_size for each in messages] == [8193, 8192, 0, 8194]
    assert len(hub.bodies.objects) == 1


def test_an_unknown_queue_is_made_once_by_whoever_comes_first(hub: Hub) -> None:
    # Given another process that creates the queue between our read and our write
    real = hub.config.create_queue

    def late(queue: Queue) -> None:
        hub.config.create_queue = real  # type: ignore[method-assign]
        hub.make(queue.name)
        real(queue)

    hub.config.create_queue = late  # type: ignore[method-assign]
    hub.ingest().post(PROJECT, "q", [NewMessage(body=b"x")])
    assert [each.queue_uid for each in hub.waiting("q")] == ["line-q"]


@dataclass
class DeletedAndMadeAgain:
    """A queue that somebody else makes before each of the first few writes, and deletes before the read after it."""

    hub: Hub
    left: int

    def __post_init__(self) -> None:
        self.real_create, self.real_queue = self.hub.config.create_queue, self.hub.config.queue

    def create_queue(self, queue: Queue) -> None:
        if not self.left:
            return self.real_create(queue)
        self.left -= 1
        raise Conflict(f"queue {queue.name} exists")

    def queue(self, project_id: str, name: str, *, fresh: bool = False) -> Queue | None:
        return None if self.left else self.real_queue(project_id, name, fresh=fresh)


@pytest.mark.parametrize("times", [1, 5])
def test_a_post_to_a_queue_that_is_deleted_and_made_again_arrives(hub: Hub, times: int) -> None:
    others = DeletedAndMadeAgain(hub, times)
    hub.config.create_queue = others.create_queue  # type: ignore[method-assign]
    hub.config.queue = others.queue  # type: ignore[method-assign]
    hub.ingest().post(PROJECT, "q", [NewMessage(body=b"x")])
    assert [each.body for each in hub.waiting("q")] == [b"x"]


def test_a_post_to_a_queue_that_others_never_stop_making_is_asked_to_come_again(hub: Hub) -> None:
    others = DeletedAndMadeAgain(hub, 1_000)
    hub.config.create_queue = others.create_queue  # type: ignore[method-assign]
    hub.config.queue = others.queue  # type: ignore[method-assign]
    with pytest.raises(Contended):
        hub.ingest().post(PROJECT, "q", [NewMessage(body=b"x")])
    assert others.left >= 900


def test_ids_taken_by_another_message_are_made_anew(hub: Hub) -> None:
    # Given two processes with the same worker number, at the same moment
    hub.make("q", QueueType.MULTICAST)
    hub.config.next_worker = lambda: 7  # type: ignore[method-assign]
    [first] = hub.ingest().post(PROJECT, "q", [NewMessage(body=b"1")])
    [second] = hub.ingest().post(PROJECT, "q", [NewMessage(body=b"2")])
    # Then neither message overwrites the other
    assert first != second
    assert sorted(plain(each.body or b"") for each in hub.messages.all_messages()) == [b"1", b"2"]


def test_a_message_posted_in_the_moment_of_a_clear_is_not_cleared(hub: Hub) -> None:
    queue = hub.make("q", QueueType.MULTICAST, cleared_at=hub.clock.now() + 5)
    hub.ingest().post(PROJECT, "q", [NewMessage(body=b"x")])
    assert hub.messages.all_messages()[0].accepted_at > queue.cleared_at


@pytest.mark.parametrize("kind", list(QueueType))
def test_a_caused_message_is_posted_once_however_often_it_is_asked_for(hub: Hub, kind: QueueType) -> None:
    queue = hub.make("q", kind)
    ids = set()
    for _ in range(3):
        hub.clock.advance(seconds=1)
        ids.add(hub.intake().post_caused(PROJECT, "q", NewMessage(body=LARGE), cause="c", at=5_000))
    assert len(ids) == 1
    assert len(hub.waiting("q")) + len(hub.messages.all_messages()) == 1
    # And counted once; those of push queues are counted when they are dispatched
    assert hub.config.total(PROJECT, queue.uid) == (0 if queue.is_push else 1)


def test_caused_messages_of_different_causes_never_replace_each_other(hub: Hub) -> None:
    # Given enough causes in one millisecond for two of them to clash
    intake = hub.intake()
    ids = {
        intake.post_caused(PROJECT, "q", NewMessage(body=b"x"), cause=f"c{number}", at=hub.clock.now())
        for number in range(4000)
    }
    assert len(ids) == 4000


@pytest.mark.parametrize("kind", [QueueType.PULL, QueueType.MULTICAST])
@pytest.mark.parametrize("fault", list(Fault))
def test_whatever_call_fails_an_answer_means_stored(kind: QueueType, fault: Fault) -> None:
    # Given the calls that a post makes
    learned = FaultPlan()
    probe = Hub()
    probe.make("q", kind)
    probe.ingest(learned).post(PROJECT, "q", [NewMessage(body=LARGE), NewMessage(body=SMALL)])
    assert len(learned.calls) >= 4
    for number in range(1, len(learned.calls) + 1):
        hub = Hub()
        hub.make("q", kind)
        plan = FaultPlan(fault, at=number)
        # When one of them goes wrong
        try:
            ids = hub.ingest(plan).post(PROJECT, "q", [NewMessage(body=LARGE), NewMessage(body=SMALL)])
        except (Unavailable, Crash):
            ids = []
        assert plan.struck
        # Then whatever was accepted is stored with its bytes, and whatever is stored is complete
        stored = hub.waiting("q") + hub.messages.all_messages()
        assert {each.message_id for each in stored} >= set(ids)
        assert sorted(hub.body(each) for each in stored) in ([], [LARGE, SMALL])
        # And the producer's next try works
        assert len(hub.ingest().post(PROJECT, "q", [NewMessage(body=b"again")])) == 1


@pytest.mark.parametrize("fault", [Fault.FAILS, Fault.TIMES_OUT])
def test_a_failed_count_does_not_make_the_producer_post_again(hub: Hub, fault: Fault) -> None:
    plan = FaultPlan(fault, of="config.add_to_total")
    assert len(hub.ingest(plan).post(PROJECT, "q", [NewMessage(body=b"x")])) == 1
    assert plan.struck


@pytest.mark.parametrize("kind", [QueueType.PULL, QueueType.MULTICAST])
def test_a_transferred_message_keeps_its_id_and_goes_over_once(hub: Hub, kind: QueueType) -> None:
    # Given a message in one queue
    hub.make("dead", kind)
    [message_id] = hub.ingest().post(PROJECT, "q", [NewMessage(body=LARGE, headers={"X": "1"})])
    [message] = hub.waiting("q")
    # When it is moved, twice because a crash came in between
    for _ in range(2):
        hub.clock.advance(seconds=1)
        hub.intake().transfer(PROJECT, "dead", message, LARGE, reserved_count=3)
    # Then it is in the other queue once, unchanged, with a new time
    [moved] = hub.waiting("dead") + hub.messages.all_messages()
    assert (moved.message_id, hub.body(moved), moved.headers) == (message_id, LARGE, {"X": "1"})
    assert moved.expires_at == hub.clock.now() - 1000 + 100_000


def test_a_transferred_message_whose_id_is_taken_gets_another(hub: Hub) -> None:
    hub.ingest().post(PROJECT, "q", [NewMessage(body=b"moved")])
    [message] = hub.waiting("q")
    target = hub.make("dead")
    other = Message(
        project=PROJECT,
        queue="dead",
        queue_uid=target.pull_uid,
        message_id=message.message_id,
        body=b"other",
        body_size=5,
        accepted_at=0,
        due_at=0,
        expires_at=message.expires_at,
    )
    hub.pull.put([other])
    hub.intake().transfer(PROJECT, "dead", message, b"moved", reserved_count=1)
    assert {each.body for each in hub.waiting("dead")} == {b"other", b"moved"}
