"""The whole engine on fakes and a fake clock: what SQS, the stream and the schedules do, one step at a time.

A :class:`tests.fakes.Crash` ends the function that runs: nothing it received is deleted, and everything goes on with
what is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from tests.fakes import Crash, FakeClock, FakeConfigStore, FakeSender, FakeWorkQueue, FaultPlan, faulty
from tests.fakes.ports import BASE_URL, FakePorts, InlineExecutor

from pushhub.base.errors import Unavailable
from pushhub.engine.acceptance.dispatch import Dispatch
from pushhub.engine.flow.push import Push
from pushhub.engine.model.answer_rules import AnswerRules
from pushhub.engine.model.backoff import RetryPolicy
from pushhub.engine.model.catalogue import chunks_of
from pushhub.engine.model.circuit import Circuit
from pushhub.engine.model.deflated import plain
from pushhub.engine.model.delivery import Delivery
from pushhub.engine.model.message import DESCENDANTS, Message, NewMessage
from pushhub.engine.model.queue import PushSettings, Queue, QueueType, Subscriber
from pushhub.engine.model.subscriber_event import SubscriberEvent, SubscriberEventKind
from pushhub.engine.ports import WorkQueue
from pushhub.engine.projects.copies import ChangeNotes
from pushhub.engine.protocol import OWNERS, Protocol
from pushhub.engine.store.dynamodb_changes import accepted_message
from pushhub.engine.waiting.wake import Wake
from pushhub.ironmq.posting.error_queue import ErrorQueuePost
from pushhub.ironmq.posting.intake import QueueIntake
from pushhub.ironmq.posting.post import Post
from pushhub.ironmq.wiring import Ironmq
from pushhub.runtime.hub import Pushhub

__all__ = ["BASE_URL", "PROJECT", "InlineExecutor", "World", "subscribers"]

PROJECT = "5f0000000000000000000001"
ENDLESS_MS = 10**9


def subscribers(*urls: str) -> tuple[Subscriber, ...]:
    """Subscribers named and numbered in order."""
    return tuple(
        Subscriber(subscriber_id=f"s{number}", name=f"name-{number}", url=url) for number, url in enumerate(urls)
    )


class Owner:
    """A protocol's reaction to events of its subscribers: remembers them, and disables subscribers when asked to.

    Attributes:
        events: All, in order.
    """

    def __init__(self, config: FakeConfigStore, clock: FakeClock) -> None:
        self._config = config
        self._clock = clock
        self.events: list[SubscriberEvent] = []

    def happened(self, event: SubscriberEvent) -> None:
        self.events.append(event)
        # Queues of protocols have a slash in their names, and subscribers of their own.
        if event.kind is SubscriberEventKind.DISABLE and "/" not in event.queue:
            self.set_disabled(event.project, event.queue, event.subscriber_id, disabled=True)

    def set_disabled(self, project: str, queue: str, subscriber_id: str, *, disabled: bool) -> None:
        """Disable or enable a subscriber."""
        ChangeNotes(self._config, self._clock).note(project, queue)
        stored = self._config.queue(project, queue, fresh=True)
        assert stored is not None
        assert stored.push is not None
        changed = [
            replace(each, disabled=disabled) if each.subscriber_id == subscriber_id else each
            for each in stored.push.subscribers
        ]
        self._config.update_queue(replace(stored, push=replace(stored.push, subscribers=tuple(changed))))


class World:
    """A hub with one project.

    Args:
        plan: Which port call goes wrong; none by default.
        config: A configuration store other than the plain fake.
        clock: A clock other than one that stands still.
        descendants: How many messages may derive from one.
    """

    def __init__(
        self,
        plan: FaultPlan | None = None,
        *,
        config: FakeConfigStore | None = None,
        clock: FakeClock | None = None,
        descendants: int = DESCENDANTS,
    ) -> None:
        self.plan = plan or FaultPlan()
        self.ports = FakePorts(config, clock)
        self.ports.queue_descendants = descendants
        self.clock = self.ports.clock
        self.config = self.ports.config
        self.messages = self.ports.messages
        self.schedule = self.ports.schedule
        self.pull = self.ports.pull
        self.bodies = self.ports.bodies
        self.sender = FakeSender(self.clock)
        self.ports.sender = self.sender
        self.push_queue = self.ports.push_queue
        self.retry_queue = self.ports.retry_queue
        self.slow_queue = self.ports.slow_queue
        self.errors_queue = self.ports.errors_queue
        self.poll_queue = self.ports.poll_queue
        self.route_queue = self.ports.route_queue
        self.telemetry = self.ports.telemetry
        self.owner = Owner(self.config, self.clock)
        self._undispatched: list[Message] = []
        self._woken_at = self.clock.now()

    @cached_property
    def hub(self) -> Pushhub:
        """The hub on the ports, with the faults of the plan."""
        hub = self.ports.build(self.plan)
        owner = faulty(self.owner, "owner", self.plan)
        hub.engine.protocols.append(Protocol(name=OWNERS, subscriber_events=lambda: owner))
        return hub

    @property
    def ingest(self) -> Post:
        """Posts messages."""
        return self.hub.part(Ironmq).post

    @property
    def queue_intake(self) -> QueueIntake:
        """Posts messages that the hub makes itself."""
        return self.hub.part(Ironmq).intake

    @property
    def push(self) -> Push:
        """Attempts deliveries."""
        return self.hub.engine.push

    @property
    def dispatch(self) -> Dispatch:
        """Queues what was stored."""
        return self.hub.engine.dispatch

    @property
    def wake(self) -> Wake:
        """Wakes deliveries."""
        return self.hub.engine.wake

    @property
    def error_queue_post(self) -> ErrorQueuePost:
        """Posts to error queues."""
        return self.hub.part(Ironmq).error_queue_post

    def make_queue(
        self,
        name: str,
        owed: Sequence[Subscriber],
        *,
        project: str = PROJECT,
        unicast: bool = False,
        retries: int = 2,
        retries_delay: int = 60,
        error_queue: str = "",
        expiration: int = 604_800,
        retry: RetryPolicy | None = None,
        rules: AnswerRules | None = None,
        circuit: Circuit | None = None,
        eager: bool = False,
    ) -> Queue:
        """A push queue."""
        queue = Queue(
            project=project,
            name=name,
            uid=f"uid-{name}",
            pull_uid=f"line-{name}",
            type=QueueType.UNICAST if unicast else QueueType.MULTICAST,
            message_expiration=expiration,
            push=PushSettings(
                subscribers=tuple(owed),
                retries=retries,
                retries_delay=retries_delay,
                error_queue=error_queue,
                retry=retry,
                rules=rules or AnswerRules(),
                circuit=circuit,
                eager=eager,
            ),
            secret="5ec3e7",
            created_at=self.clock.now(),
        )
        self.config.create_queue(queue)
        return replace(queue, version=1)

    def post(self, queue: str, *bodies: bytes, delay_s: int = 0, order_key: str | None = None) -> list[str]:
        """Post messages as a producer would; raises the error that the producer would get."""
        return self.ingest.post(
            PROJECT, queue, [NewMessage(body=body, delay_s=delay_s, order_key=order_key) for body in bodies]
        )

    def step(self) -> bool:
        """Let every function that has something to do run once; returns whether any had."""
        worked = self._dispatch()
        ports = self.hub.engine.ports
        worked |= self._push(self.push_queue, ports.push_queue)
        worked |= self._push(self.retry_queue, ports.retry_queue)
        worked |= self._push(self.slow_queue, ports.slow_queue)
        worked |= self._push(self.poll_queue, ports.poll_queue)
        worked |= self._push(self.route_queue, ports.route_queue)
        worked |= self._errors()
        return worked | self._wake()

    def run(self, *, seconds: float) -> None:
        """Run for this long on the fake clock, jumping from one relevant moment to the next."""
        end = self.clock.now() + round(seconds * 1000)
        while True:
            while self.step():
                pass
            attempts = (self.push_queue, self.retry_queue, self.slow_queue)
            queues = (*attempts, self.poll_queue, self.route_queue, self.errors_queue)
            moments = [each.next_at() for each in queues]
            scheduled = [each.wakes_at + 60_000 for each in self.schedule.waiting()]
            if [*self.ports.subscribers.looked_after()]:
                moments.append(self._woken_at + 60_000)
            coming = [moment for moment in [*moments, *scheduled] if moment is not None and moment > self.clock.now()]
            following = min([*coming, end])
            if following >= end:
                self.clock.set(max(end, self.clock.now()))
                while self.step():
                    pass
                return
            self.clock.set(following)

    def deliveries(self, message_id: str) -> list[Delivery]:
        """Stored deliveries of a message."""
        return [each for each in self.messages.all_deliveries() if each.message_id == message_id]

    def pulled(self, name: str) -> list[bytes]:
        """Bodies waiting in a pull queue."""
        queue = self.config.queue(PROJECT, name)
        if queue is None:
            return []
        waiting = self.pull.peek(PROJECT, queue.pull_uid, count=100, now=self.clock.now())
        return [self._bytes(each.message) for each in waiting]

    def _bytes(self, message: Message) -> bytes:
        if message.body is not None:
            return plain(message.body)
        assert message.body_ref is not None
        return self.bodies.get(message.body_ref)

    def dispatch_only(self) -> None:
        """Let the stream deliver what was stored, and nothing else happen."""
        self._dispatch()

    def _dispatch(self) -> bool:
        self._undispatched += self.messages.take_inserted()
        if not self._undispatched:
            return False
        self.ports.catalogue.add([*chunks_of(map(accepted_message, self._undispatched), "stream")])
        try:
            self.dispatch.run(self._undispatched)
        except (Crash, Unavailable):
            return True  # the stream hands out the same records again
        self._undispatched = []
        return True

    def _push(self, real: FakeWorkQueue, source: WorkQueue) -> bool:
        batch = real.receive()
        if not batch:
            return False
        try:
            engine = self.hub.engine
            own = {"route": "route", "slow": "slow", "poll": "poll"}.get(real.name, "push")
            keep = getattr(engine, own).run(batch, source=source, remaining_ms=lambda: ENDLESS_MS)
        except Crash:
            return True
        for each in batch:
            if each.sqs_id not in keep:
                real.delete([each.receipt_handle])
        return True

    def _errors(self) -> bool:
        batch = self.errors_queue.receive()
        if not batch:
            return False
        try:
            failed = self.error_queue_post.run([each.order for each in batch])
        except Crash:
            return True
        again = {each.sqs_id for each in batch if each.order.key in failed}
        self.errors_queue.delete([each.receipt_handle for each in batch if each.sqs_id not in again])
        return True

    def _wake(self) -> bool:
        if self.clock.now() < self._woken_at + 60_000:
            return False
        self._woken_at = self.clock.now()
        try:
            engine = self.hub.engine
            return sum(each.run(lambda: ENDLESS_MS) for each in (engine.recover, engine.wake_ups, self.wake)) > 0
        except (Crash, Unavailable):
            return True
