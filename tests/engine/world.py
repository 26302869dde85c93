"""The whole engine on fakes and a fake clock: what SQS, the stream and the schedules do, one step at a time.

A :class:`tests.fakes.Crash` ends the function that runs: nothing it received is deleted, and everything goes on with what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any

from tests.fakes import (
    Crash,
    FakeBodyStore,
    FakeClock,
    FakeConfigStore,
    FakeLineStore,
    FakeMessageStore,
    FakeSender,
    FakeWorkQueue,
    FaultPlan,
    faulty,
)
from tests.fakes.telemetry import FakeTelemetry

from pushhub.base.errors import Unavailable
from pushhub.engine.deliver import Deliver
from pushhub.engine.dispatch import Dispatch
from pushhub.engine.model.delivery import Delivery
from pushhub.engine.model.message import Message, NewMessage
from pushhub.engine.model.queue import PushSettings, Queue, QueueType, Subscriber
from pushhub.engine.push import Push
from pushhub.engine.target import HttpTarget, IronMqQueueTarget, IronWorkerQueueTarget, Targets
from pushhub.engine.wake import Wake
from pushhub.ironmq.error_queue import Exhausted
from pushhub.ironmq.post import Ingest

__all__ = ["BASE_URL", "PROJECT", "World", "subscribers"]

PROJECT = "5f0000000000000000000001"
BASE_URL = "https://hub.example"
ENDLESS_MS = 10**9


class InlineExecutor(Executor):
    """Runs each call at once, on the caller's thread, so that tests are deterministic."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Crash:
            raise
        except Exception as error:  # noqa: BLE001 (a future carries it)
            future.set_exception(error)
        return future


def subscribers(*urls: str) -> tuple[Subscriber, ...]:
    """Subscribers named and numbered in order."""
    return tuple(
        Subscriber(subscriber_id=f"s{number}", name=f"name-{number}", url=url) for number, url in enumerate(urls)
    )


class World:
    """A hub with one project.

    Args:
        plan: Which port call goes wrong; none by default.
        in_flight_limit: See :class:`pushhub.engine.deliver.Deliver`.
        config: Another configuration store than the plain fake.
    """

    def __init__(
        self, plan: FaultPlan | None = None, *, in_flight_limit: int = 100_000, config: FakeConfigStore | None = None
    ) -> None:
        plan = plan or FaultPlan()
        self.plan = plan
        self.clock = FakeClock()
        self.config = config or FakeConfigStore()
        self.messages = FakeMessageStore()
        self.lines = FakeLineStore()
        self.bodies = FakeBodyStore()
        self.sender = FakeSender(self.clock)
        self.push_queue = FakeWorkQueue(self.clock, max_receive_count=20)
        self.retry_queue = FakeWorkQueue(self.clock, max_receive_count=1000)
        self.errors_queue = FakeWorkQueue(self.clock, max_receive_count=100)
        self.poll_queue = FakeWorkQueue(self.clock, max_receive_count=1000)
        self.telemetry = FakeTelemetry()
        self._undispatched: list[Message] = []
        self._woken_at = self.clock.now()
        config = faulty(self.config, "config", plan)
        messages = faulty(self.messages, "messages", plan)
        lines = faulty(self.lines, "lines", plan)
        bodies = faulty(self.bodies, "bodies", plan)
        self._push_queue = faulty(self.push_queue, "push_queue", plan)
        self._retry_queue = faulty(self.retry_queue, "retry_queue", plan)
        self._errors_queue = faulty(self.errors_queue, "errors_queue", plan)
        self._poll_queue = faulty(self.poll_queue, "poll_queue", plan)
        self.ingest = Ingest(config=config, messages=messages, lines=lines, bodies=bodies, clock=self.clock)
        targets = Targets(
            raw={
                "http": HttpTarget(sender=self.sender, config=config, base_url=BASE_URL),
                "https": HttpTarget(sender=self.sender, config=config, base_url=BASE_URL),
                "ironmq": IronMqQueueTarget(
                    ingest=self.ingest, config=config, sender=self.sender, base_url=BASE_URL, clock=self.clock
                ),
                "ironworker": IronWorkerQueueTarget(sender=self.sender, config=config),
            }
        )
        self.deliver = Deliver(
            config=config,
            messages=messages,
            bodies=bodies,
            targets=targets,
            retry_queue=self._retry_queue,
            clock=self.clock,
            telemetry=self.telemetry,
            in_flight_limit=in_flight_limit,
        )
        self.push = Push(
            messages=messages,
            deliver=self.deliver,
            retry_queue=self._retry_queue,
            errors_queue=self._errors_queue,
            poll_queue=self._poll_queue,
            clock=self.clock,
            telemetry=self.telemetry,
            executor=InlineExecutor(),
        )
        self.dispatch = Dispatch(
            config=config, messages=messages, push_queue=self._push_queue, clock=self.clock, telemetry=self.telemetry
        )
        self.wake = Wake(
            messages=messages,
            retry_queue=self._retry_queue,
            poll_queue=self._poll_queue,
            clock=self.clock,
            telemetry=self.telemetry,
            executor=InlineExecutor(),
        )
        self.exhausted = Exhausted(
            config=config, messages=messages, bodies=bodies, ingest=self.ingest, telemetry=self.telemetry
        )

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
    ) -> Queue:
        """A push queue."""
        queue = Queue(
            project=project,
            name=name,
            uid=f"uid-{name}",
            line_uid=f"line-{name}",
            type=QueueType.UNICAST if unicast else QueueType.MULTICAST,
            message_expiration=expiration,
            push=PushSettings(
                subscribers=tuple(owed), retries=retries, retries_delay=retries_delay, error_queue=error_queue
            ),
            secret="5ec3e7",
            created_at=self.clock.now(),
        )
        self.config.create_queue(queue)
        return queue

    def post(self, queue: str, *bodies: bytes, delay_s: int = 0) -> list[str]:
        """Post messages as a producer would; raises what the producer would be told as an error."""
        return self.ingest.post(PROJECT, queue, [NewMessage(body=body, delay_s=delay_s) for body in bodies])

    def step(self) -> bool:
        """Let every function that has something to do run once; whether any had."""
        worked = self._dispatch()
        worked |= self._push(self.push_queue, self._push_queue)
        worked |= self._push(self.retry_queue, self._retry_queue)
        worked |= self._push(self.poll_queue, self._poll_queue)
        worked |= self._errors()
        return worked | self._wake()

    def run(self, *, seconds: float) -> None:
        """Run for that long on the fake clock, jumping from one moment that matters to the next."""
        end = self.clock.now() + round(seconds * 1000)
        while True:
            while self.step():
                pass
            moments = [
                each.next_at() for each in (self.push_queue, self.retry_queue, self.poll_queue, self.errors_queue)
            ]
            parked = [min(each.due_at or end, each.expires_at) + 60_000 for each in self.messages.parked()]
            coming = [moment for moment in [*moments, *parked] if moment is not None and moment > self.clock.now()]
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

    def line(self, name: str) -> list[bytes]:
        """Bodies waiting in a pull queue."""
        queue = self.config.queue(PROJECT, name)
        if queue is None:
            return []
        waiting = self.lines.peek(PROJECT, queue.line_uid, count=100, now=self.clock.now())
        return [self._bytes(each.message) for each in waiting]

    def _bytes(self, message: Message) -> bytes:
        if message.body is not None:
            return message.body
        assert message.body_ref is not None
        return self.bodies.get(message.body_ref)

    def dispatch_only(self) -> None:
        """Let the stream hand out what was stored, and nothing else happen."""
        self._dispatch()

    def _dispatch(self) -> bool:
        self._undispatched += self.messages.take_inserted()
        if not self._undispatched:
            return False
        try:
            self.dispatch.run(self._undispatched)
        except (Crash, Unavailable):
            return True  # the stream hands out the same records again
        self._undispatched = []
        return True

    def _push(self, real: FakeWorkQueue, source: FakeWorkQueue) -> bool:
        batch = real.receive()
        if not batch:
            return False
        try:
            keep = self.push.run(batch, source=source, remaining_ms=lambda: ENDLESS_MS)
        except Crash:
            return True
        for each in batch:
            if each.sqs_id not in keep:
                real.delete(each.receipt_handle)
        return True

    def _errors(self) -> bool:
        batch = self.errors_queue.receive()
        for each in batch:
            try:
                self.exhausted.run(each.order)
            except (Crash, Unavailable):
                continue
            self.errors_queue.delete(each.receipt_handle)
        return bool(batch)

    def _wake(self) -> bool:
        if self.clock.now() < self._woken_at + 60_000:
            return False
        self._woken_at = self.clock.now()
        try:
            return self.wake.run(lambda: ENDLESS_MS) > 0
        except (Crash, Unavailable):
            return True
