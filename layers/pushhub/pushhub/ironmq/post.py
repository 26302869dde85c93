"""Accepting messages: once a call returns, the hub owes them.

A push queue's message is one durable write; the table's stream is the outbox that dispatch reads (decision 0001). A pull queue's
message is put in its line. Large bodies are written to the bodies bucket first, so a stored message always has its bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from pushhub.base.errors import Conflict, Unavailable
from pushhub.base.ids import MessageIds, derived_message_id
from pushhub.base.ports import Clock
from pushhub.engine.model.message import BodyRef, Message, NewMessage
from pushhub.engine.model.queue import Queue, QueueType
from pushhub.engine.ports import BodyStore, ConfigStore, MessageStore
from pushhub.ironmq.alerts import Alerts
from pushhub.ironmq.ports import LineStore, Once
from pushhub.ironmq.queue_changes import pull_queue

__all__ = ["INLINE_BODY_LIMIT", "Ingest"]

INLINE_BODY_LIMIT = 8_192
"""Bodies up to this many bytes lie in the table with their message; larger ones in the bodies bucket."""

ID_ROUNDS = 5
"""How often ids are made anew when another message has one of them already."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A new message and where its bytes lie."""

    new: NewMessage
    ref: BodyRef | None


class Ingest:
    """Accepts messages from producers and from the hub itself.

    Args:
        config: Queues and counts.
        messages: Messages of push queues.
        lines: Lines of pull queues.
        bodies: Large bodies.
        clock: Time.
    """

    def __init__(
        self, *, config: ConfigStore, messages: MessageStore, lines: LineStore, bodies: BodyStore, clock: Clock
    ) -> None:
        self._config = config
        self._messages = messages
        self._lines = lines
        self._bodies = bodies
        self._clock = clock
        self._alerts = Alerts(config=config, lines=lines, clock=clock)
        self._made_ids: MessageIds | None = None

    def post(self, project_id: str, queue_name: str, messages: Sequence[NewMessage]) -> list[str]:
        """Accept messages from a producer; their ids in order. An unknown queue is made, as a pull queue.

        Args:
            project_id: Owner of the queue.
            queue_name: A checked name.
            messages: 1..100 messages.

        Raises:
            Unavailable: Nothing may be assumed; the producer has to post again.
        """
        queue = self._queue(project_id, queue_name)
        placed = self._placed(project_id, messages)
        for _ in range(ID_ROUNDS):
            now = self._clock.now()
            ids = [self._ids().next(now) for _ in placed]
            accepted = [_compose(queue, message_id, each, now) for message_id, each in zip(ids, placed, strict=True)]
            try:
                self._store(queue, accepted)
            except Conflict:
                continue
            self._stored(queue, len(accepted))
            return ids
        raise Unavailable("finding free message ids")

    def post_caused(self, project_id: str, queue_name: str, message: NewMessage, *, cause: str, at: int) -> str:
        """Accept a message that the hub itself made; its id. Repeating the call does not post it again.

        Args:
            project_id: Owner of the queue.
            queue_name: A checked name; an unknown queue is made, as a pull queue.
            message: What to post.
            cause: What it is made for: the same each time it is made for the same reason, and never for another.
            at: When the cause happened, epoch milliseconds; the same each time.

        Raises:
            Unavailable: Nothing may be assumed; call again.
        """
        queue = self._queue(project_id, queue_name)
        (placed,) = self._placed(project_id, [message])
        for bump in itertools.count():
            message_id = derived_message_id(at, cause, bump)
            once = self._store_once(queue, _compose(queue, message_id, placed, self._clock.now(), cause))
            if once is Once.STORED:
                self._stored(queue, 1)
            if once is not Once.TAKEN:
                break
        return message_id

    def transfer(self, project_id: str, queue_name: str, message: Message, body: bytes, *, reserved_count: int) -> None:
        """Put a pull queue's message into another queue with its id and count (dead letters). Safe to repeat.

        Its time starts anew, so its body is stored anew as well.

        Args:
            project_id: Owner of both queues.
            queue_name: The target; an unknown queue is made, as a pull queue.
            message: As it stands in its line.
            body: Its bytes.
            reserved_count: Times it was reserved so far.

        Raises:
            Unavailable: Nothing may be assumed; call again.
        """
        cause = f"dead-letter/{message.queue_uid}/{message.message_id}"
        new = NewMessage(body=body, headers=message.headers, hops=message.hops)
        queue = self._queue(project_id, queue_name)
        (placed,) = self._placed(project_id, [new])
        moved = _compose(queue, message.message_id, placed, self._clock.now(), cause)
        once = self._store_once(queue, moved, reserved_count=reserved_count)
        if once is Once.STORED:
            self._stored(queue, 1)
        elif once is Once.TAKEN:
            # The id belongs to another message there; keeping the message matters more than keeping its id.
            self.post_caused(project_id, queue_name, new, cause=cause, at=message.accepted_at)

    def size_changed(self, queue: Queue, change: int) -> None:
        """Fire the alerts of a pull queue that a change of its size crossed. Never fails: the change itself is done.

        Args:
            queue: The queue, as read for the change.
            change: Messages added, or (negative) taken away.
        """
        if not queue.alerts:
            return
        try:
            for fired in self._alerts.fired(queue, change):
                target = self._queue(queue.project, fired.queue)
                now = self._clock.now()
                message = _compose(target, self._ids().next(now), _Placed(NewMessage(body=fired.body), None), now)
                self._store(target, [message])
                # Alerts about alert messages could answer each other for ever; those messages are only counted.
                self._count(target, 1)
        except (Conflict, Unavailable):
            return

    def _queue(self, project_id: str, name: str) -> Queue:
        # Read consistently: a message put into the line that a clear has just left, or owed to subscribers that were just
        # replaced, would be accepted and lost.
        queue = self._config.queue(project_id, name, fresh=True)
        if queue is not None:
            return queue
        created = pull_queue(project_id, name, self._clock.now())
        try:
            self._config.create_queue(created)
        except Conflict:
            made_by_another = self._config.queue(project_id, name, fresh=True)
            if made_by_another is None:
                raise
            return made_by_another
        return created

    def _ids(self) -> MessageIds:
        if self._made_ids is None:
            self._made_ids = MessageIds(self._config.next_worker())
        return self._made_ids

    def _placed(self, project_id: str, messages: Sequence[NewMessage]) -> list[_Placed]:
        """Write the large bodies of a post, all into one object."""
        large = [each.body for each in messages if len(each.body) > INLINE_BODY_LIMIT]
        refs = iter(self._bodies.put(project_id, large, self._clock.now()) if large else ())
        return [_Placed(each, next(refs) if len(each.body) > INLINE_BODY_LIMIT else None) for each in messages]

    def _store(self, queue: Queue, messages: Sequence[Message]) -> None:
        if queue.is_push:
            self._messages.accept(messages)
        else:
            self._lines.put(messages)

    def _store_once(self, queue: Queue, message: Message, *, reserved_count: int = 0) -> Once:
        if queue.is_push:
            return Once.STORED if self._messages.accept_once(message) else Once.TAKEN
        return self._lines.put_once(message, reserved_count=reserved_count)

    def _stored(self, queue: Queue, count: int) -> None:
        self._count(queue, count)
        self.size_changed(queue, count)

    def _count(self, queue: Queue, count: int) -> None:
        """Count a pull queue's messages; those of push queues are counted when they are dispatched."""
        if queue.is_push:
            return
        try:
            self._config.add_to_total(queue.project, queue.uid, count)
        except Unavailable:
            # A statistic; the messages are stored, and an error would make the producer post them again.
            return


def _compose(queue: Queue, message_id: str, placed: _Placed, now: int, cause: str | None = None) -> Message:
    """The message to store. Its life is counted from when it is due, so that a long delay does not use it up."""
    new = placed.new
    # A push queue's clear counts everything up to its moment as deleted; this message came after it.
    accepted_at = max(now, queue.cleared_at + 1)
    due_at = accepted_at + new.delay_s * 1000
    subscribers = queue.push.subscribers if queue.push else ()
    return Message(
        project=queue.project,
        queue=queue.name,
        queue_uid=queue.uid if queue.is_push else queue.line_uid,
        message_id=message_id,
        body=new.body if placed.ref is None else None,
        body_ref=placed.ref,
        body_size=len(new.body),
        headers=new.headers,
        accepted_at=accepted_at,
        due_at=due_at,
        expires_at=due_at + queue.message_expiration * 1000,
        subscriber_ids=tuple(each.subscriber_id for each in subscribers),
        unicast=queue.type is QueueType.UNICAST,
        hops=new.hops,
        cause=cause,
    )
