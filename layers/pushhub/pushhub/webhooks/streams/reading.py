"""Sinks that the hub writes to: each reads its stream from its own position on, batch by batch, in order.

An order of the engine says that a sink is to get at least as far as an event. Whoever has the order takes the sink's
lease, stores which batch it is about to write, writes it, and then moves the position; the order is done when the
position is there. A batch that fails stops its sink: other orders wait with it.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from pushhub.base import json_text
from pushhub.base.errors import Conflict, Unavailable
from pushhub.base.ids import id_before, time_of_message_id
from pushhub.base.sink_url import BATCHED_SCHEMES
from pushhub.base.times import iso_time
from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.component import Component
from pushhub.engine.model.answer_rules import Asked
from pushhub.engine.model.message import Ordering
from pushhub.engine.model.queue import Subscriber
from pushhub.engine.target import OUT_OF_REACH, BatchedMessage, Declined, Outcome, PushOrder, Targets
from pushhub.webhooks.endpoints.credentials import opened
from pushhub.webhooks.messages.listing import SETTLED_MS
from pushhub.webhooks.model.ids import message_id
from pushhub.webhooks.model.internal_queues import PROTOCOL, READERS_QUEUE, queue_of
from pushhub.webhooks.model.message import MessageFields
from pushhub.webhooks.model.reading import Reader, Reading
from pushhub.webhooks.model.transformation import CodeFailed
from pushhub.webhooks.queues import ENDPOINT, subscriber_of
from pushhub.webhooks.wire.endpoint import is_http

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pushhub.base.ports import Clock
    from pushhub.engine.model.message import Message
    from pushhub.engine.security.credentials import Credentials
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.ports import ReadApplications, ReadEndpoints
    from pushhub.webhooks.streams.forms import BatchForms
    from pushhub.webhooks.streams.log import StreamLog

WRITE_S = 10
"""Seconds that a service has to take a batch."""

READ_MS = 15_000
"""An order goes on to a further batch for so long, milliseconds."""

BUSY_MS = 2_000
"""When to look again at a sink that somebody else writes to, milliseconds."""

MOST_BYTES = 4_194_304
"""A batch ends when its payloads have so many bytes. As JSON they may have twice as many, which every service takes."""

MOST_CODE_BYTES = 524_288
"""A batch that code is given ends earlier: as JSON in JSON it has to fit into one call of the function that runs it."""

MOST_LOOKED = 1_000
"""Events that are looked at for a batch, selected or not."""

_LOCKS = 1_000
_SIX_AS_JSON = bytes(each for each in range(0x20) if each not in b"\b\t\n\f\r")


class Readers(Protocol):
    """Where sinks are. May raise ``Unavailable``."""

    def reader(self, sink: Endpoint) -> Reader | None:
        """Where a sink is; None if it has read nothing yet."""

    def put_reader(self, sink: Endpoint, reader: Reader) -> Reader:
        """Store where a sink is, in place of its version; returns it with its version raised.

        Raises:
            Conflict: The stored one has another version.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What is next for a sink.

    Attributes:
        events: In order; empty if there is nothing for it up to ``last``.
        last: The place up to which it reads.
        wait_ms: Milliseconds to wait for more; 0 if it is to be written now.
    """

    events: Sequence[tuple[Message, bytes]]
    last: str
    wait_ms: int = 0


def first_reader(sink: Endpoint) -> Reader:
    """Where a new sink is: it gets what is posted after it was made."""
    return Reader(position=id_before(sink.created_at))


def next_batch(log: StreamLog, sink: Endpoint, reader: Reader, now: int) -> Batch:
    """The next batch of a sink; the one that was begun, if it was."""
    reading = sink.reads or Reading()
    events: list[tuple[Message, bytes]] = []
    known: set[str] = set()
    size, looked, last = 0, 0, reader.position
    most_bytes = MOST_CODE_BYTES if sink.transforms else MOST_BYTES
    for place, message in log.events(sink, reader.position, reading.size):
        if (reader.planned and place > reader.planned) or looked == MOST_LOOKED:
            break
        # An event that was stored late has several places, and is needed once.
        body = None if message is None or message.message_id in known else log.body(message)
        if message is not None and body is not None:
            taken = _bytes_of(body)
            if events and size + taken > most_bytes:
                break
            events.append((message, body))
            known.add(message.message_id)
            size += taken
        last, looked = place, looked + 1
        if len(events) == reading.size:
            break
    else:
        if reader.planned:
            last = max(last, reader.planned)
        elif not events:
            # Nothing can appear below any more.
            last = max(last, id_before(now - SETTLED_MS))
        else:
            due = events[0][0].accepted_at + reading.wait_s * 1000
            return Batch(events=events, last=last, wait_ms=max(0, due - now))
    return Batch(events=events, last=last)


def _bytes_of(body: bytes) -> int:
    """The bytes of a payload, in which each character counts as six that JSON writes with six: many of them would make
    a batch that no data stream takes, however often it is tried.
    """
    return len(body) + 5 * (len(body) - len(body.translate(None, _SIX_AS_JSON)))


class Turns:
    """Lets one thread at a time read for a sink: the others then find the work done."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._of: OrderedDict[str, Lock] = OrderedDict()

    @contextmanager
    def of(self, sink: Endpoint) -> Iterator[bool]:
        """Whether it is the caller's turn now."""
        with self._lock:
            lock = self._of.setdefault(sink.receiver, Lock())
            self._of.move_to_end(sink.receiver)
            if len(self._of) > _LOCKS:
                self._of.popitem(last=False)
        mine = lock.acquire(timeout=READ_MS / 1000)
        try:
            yield mine
        finally:
            if mine:
                lock.release()


class ReaderTarget(Component):
    """Implements :class:`pushhub.engine.target.Target` for sinks."""

    dialect = PROTOCOL

    applications: ReadApplications
    endpoints: ReadEndpoints
    readers: Readers
    log: StreamLog
    credentials: Credentials
    forms: BatchForms
    targets: Callable[[], Targets]  # What a sink's URL leads to.
    clock: Clock

    def __post_init__(self) -> None:
        self._turns = Turns()

    def check(self, url: str) -> None:
        """Nothing to do: owners create sinks, and the API checks what they give."""

    def reaches(self, url: str, *, project: str, queue: str) -> str | None:
        """Where the service is called."""
        place = url.partition(":")[2]
        return self.targets().of(place).reaches(place, project=project, queue=queue) if place else None

    def deliver(self, order: PushOrder) -> Outcome:
        """Read as far as an order demands.

        Raises:
            Unavailable: Nothing was sent because of a fault of ours.
        """
        if order.queue.name != READERS_QUEUE:
            return self._in_turn(order, ENDPOINT.of(order.subscriber), order.message.message_id)
        asked = json_text.stored(order.body)
        stream = self.applications.application(order.queue.project, asked["stream"])
        sink = self.endpoints.endpoint(order.queue.project, asked["stream"], asked["sink"])
        if stream is None or sink is None or not sink.active or sink.reads is None:
            return self._done(self.clock.now())
        goal = id_before(order.message.accepted_at)
        own = replace(
            order,
            queue=replace(order.queue, name=queue_of(sink.app_id)),
            subscriber=subscriber_of(sink, stream),
        )
        outcome = self._in_turn(own, sink, goal)
        if outcome.verdict is not Verdict.FAILED:
            return outcome
        # It is no message of its own that could fail: the sink's state says what is wrong.
        wait_ms = outcome.asked.wait_ms if outcome.asked else BUSY_MS
        return replace(outcome, verdict=Verdict.POSTPONED, reserve_ms=wait_ms, asked=None)

    def _in_turn(self, order: PushOrder, sink: Endpoint, goal: str) -> Outcome:
        begun = self.clock.now()
        with self._turns.of(sink) as mine:
            return self._read(order, sink, goal, begun) if mine else self._later(begun, BUSY_MS)

    def _read(self, order: PushOrder, sink: Endpoint, goal: str, begun: int) -> Outcome:
        """Read batch after batch until the goal is reached, or something has to be waited for."""
        outcome: Outcome | None = None
        while outcome is None:
            reader = self.readers.reader(sink) or first_reader(sink)
            if reader.position >= goal:
                return self._done(begun)
            outcome = self._instead(reader, begun)
            if outcome is None:
                try:
                    outcome = self._read_batch(order, sink, reader, goal, begun)
                except Conflict:
                    outcome = self._later(begun, BUSY_MS)
        return outcome

    def _instead(self, reader: Reader, begun: int) -> Outcome | None:
        """The outcome if no batch may be begun now."""
        now = self.clock.now()
        wait_ms = reader.waits_ms(now)
        if wait_ms and reader.next_at > now:
            return self._stopped(begun, reader.reason, wait_ms)
        if wait_ms:
            return self._later(begun, min(wait_ms, BUSY_MS))
        return self._later(begun, 0) if now - begun > READ_MS else None

    def _read_batch(self, order: PushOrder, sink: Endpoint, reader: Reader, goal: str, begun: int) -> Outcome | None:
        """Go on by one batch; the outcome if that has to wait or fails.

        Raises:
            Conflict: Somebody else goes on just now.
        """
        now = self.clock.now()
        batch = next_batch(self.log, sink, reader, now)
        if batch.wait_ms:
            return self._later(begun, batch.wait_ms)
        if batch.events:
            return self._write(order, sink, reader, batch)
        if batch.last > reader.position:
            self.readers.put_reader(sink, reader.moved(batch.last))
            return None
        # What the order is about is not settled yet.
        return self._later(begun, max(500, SETTLED_MS - (now - time_of_message_id(goal))))

    def _write(self, order: PushOrder, sink: Endpoint, reader: Reader, batch: Batch) -> Outcome | None:
        """Write a batch and move on; the outcome if it cannot be written."""
        begun = self.clock.now()
        claimed = self.readers.put_reader(sink, reader.begun(batch.last, begun))
        url = opened(sink, self.credentials).fields.url
        if not self.targets().within(sink.reach, url):
            answer = self._answer(begun, error_class="refused_by_guard", text=OUT_OF_REACH)
            return self._failed(sink, claimed, answer, 0)
        try:
            outcome = self._delivered(order, sink, url, batch)
        except Declined:
            # Its code leaves out the whole batch.
            self._ended(sink, claimed, Reader.written)
            return None
        except CodeFailed as failed:
            answer = self._answer(begun, error_class="transformation", text=f"transformation: {failed.text}")
            return self._failed(sink, claimed, answer, 0)
        except Unavailable:
            self._ended(sink, claimed, Reader.released)
            raise
        if outcome.verdict is Verdict.DELIVERED:
            self._ended(sink, claimed, Reader.written)
            return None
        return self._failed(sink, claimed, outcome.answer, outcome.asked.wait_ms if outcome.asked else 0)

    def _delivered(self, order: PushOrder, sink: Endpoint, url: str, batch: Batch) -> Outcome:
        """Hand a batch to the kind of the sink's URL. That of HTTP asks the sink's code itself."""
        if is_http(url):
            handed = _posted(order, batch)
        else:
            handed = _handed(order, sink, url, batch)
            if sink.transforms:
                handed = self.forms.formed(handed, sink)
        return self.targets().of(handed.subscriber.url).deliver(handed)

    def _failed(self, sink: Endpoint, claimed: Reader, answer: Answer, asked_ms: int) -> Outcome:
        now = self.clock.now()
        reason = answer.message or f"status {answer.status_code}"

        def failed(reader: Reader) -> Reader:
            after = reader.failed(reason, now, asked_ms)
            # What was changed while it was written is to be tried at once.
            return after.due_now() if claimed.next_at and not reader.next_at else after

        after = self._ended(sink, claimed, failed)
        asked = Asked(wait_ms=max(0, after.next_at - now), spares=True)
        return Outcome(answer=answer, verdict=Verdict.FAILED, asked=asked)

    def _ended(self, sink: Endpoint, claimed: Reader, after: Callable[[Reader], Reader]) -> Reader:
        """Store what became of the batch that was claimed. Its owner may have wanted it tried at once meanwhile, which
        changes the version and nothing that counts here: otherwise the sink would wait for the end of the lease, and a
        batch that has arrived would be written again.

        Raises:
            Conflict: Somebody else goes on.
        """
        try:
            return self.readers.put_reader(sink, after(claimed))
        except Conflict:
            stored = self.readers.reader(sink)
            ours = stored is not None and (stored.planned, stored.busy_until) == (claimed.planned, claimed.busy_until)
            if stored is None or not ours:
                raise
            return self.readers.put_reader(sink, after(stored))

    def _stopped(self, begun: int, reason: str, wait_ms: int) -> Outcome:
        """The outcome for an order that waits with its sink; it counts as a failure of the sink, as it is one, so that
        many of them open its circuit and wait without being looked at.
        """
        answer = self._answer(begun, status=503, text=f"The sink waits: {reason}")
        return Outcome(answer=answer, verdict=Verdict.FAILED, asked=Asked(wait_ms=wait_ms, spares=True))

    def _later(self, begun: int, wait_ms: int) -> Outcome:
        answer = self._answer(begun, status=200, text="Not yet")
        return Outcome(answer=answer, verdict=Verdict.POSTPONED, reserve_ms=wait_ms, reached=False)

    def _done(self, begun: int) -> Outcome:
        return Outcome(answer=self._answer(begun, status=200, text="Written"), verdict=Verdict.DELIVERED)

    def _answer(self, begun: int, *, text: str, status: int = 0, error_class: str = "") -> Answer:
        return Answer(
            status_code=status,
            message=text[:200],
            error_class=error_class,
            body=text.encode(),
            started_at=begun,
            finished_at=self.clock.now(),
        )


def _posted(order: PushOrder, batch: Batch) -> PushOrder:
    """The request to a URL: all events of the batch in one body, signed like any webhook, under the first one's id."""
    message, _ = batch.events[0]
    events = [
        {
            "eventType": MessageFields.of(each).event_type,
            "payload": content.decode(errors="replace"),
            "timestamp": iso_time(each.accepted_at),
        }
        for each, content in batch.events
    ]
    subscriber = order.subscriber
    url = f"{PROTOCOL}:{subscriber.url.partition(':')[2]}"
    return replace(
        order,
        subscriber=replace(subscriber, url=url, timeout_s=WRITE_S),
        message=message,
        body=json_text.write({"events": events}).encode(),
        batch=_together(batch),
    )


def _handed(order: PushOrder, sink: Endpoint, url: str, batch: Batch) -> PushOrder:
    """What the kind of the sink's URL is handed: the batch, or its only event, if the kind takes one at a time."""
    subscriber = Subscriber(
        subscriber_id=sink.endpoint_id, name=sink.uid or sink.endpoint_id, url=url, timeout_s=WRITE_S
    )
    message, body = batch.events[0]
    event_type = MessageFields.of(message).event_type
    headers = {"webhook-id": message_id(message.message_id), "webhook-event-type": event_type}
    # All of a sink's events are one group: a FIFO queue or topic keeps their order, too.
    grouped = replace(message, headers=headers, ordering=Ordering(key=sink.endpoint_id))
    alone = replace(order, subscriber=subscriber, message=grouped, body=body, reach=sink.reach)
    if url.partition(":")[0] not in BATCHED_SCHEMES:
        return alone
    return replace(alone, body=b"", batch=_together(batch))


def _together(batch: Batch) -> tuple[BatchedMessage, ...]:
    return tuple(
        BatchedMessage(
            message_id=message_id(each.message_id),
            about=MessageFields.of(each).event_type,
            at=each.accepted_at,
            body=content,
        )
        for each, content in batch.events
    )
