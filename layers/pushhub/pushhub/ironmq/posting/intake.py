"""How messages enter queues, push and pull: posted by producers, and made by the hub itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Conflict, Unavailable
from pushhub.engine.component import Component
from pushhub.engine.model.message import DESCENDANTS, Message, NewMessage, Ordering
from pushhub.engine.model.queue import Queue, QueueType
from pushhub.engine.ports import MessageSink, Once, QueuesAndTotals
from pushhub.engine.projects.queue_copies import QueueCopies
from pushhub.ironmq.ports import PullSink, PullSizes
from pushhub.ironmq.queues.queue_changes import pull_queue

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pushhub.base.ports import Clock
    from pushhub.engine.acceptance.accept import AcceptBodies, PlacedBody, Sink
    from pushhub.ironmq.posting.named_fields import FieldIndex
    from pushhub.ironmq.queues.size_alerts import Alerts


@dataclass(frozen=True, slots=True, kw_only=True)
class Caused:
    """A message made by the hub itself.

    Attributes:
        message: What to post.
        cause: What it is made for: the same on each repetition for the same reason, and never used for another.
        at: When the cause happened, epoch milliseconds; the same on each repetition.
    """

    message: NewMessage
    cause: str
    at: int


class _PullSink:
    """Implements :class:`pushhub.engine.acceptance.accept.Sink` on the store of pull queues.

    Args:
        reserved_count: Times the messages were reserved before.
    """

    def __init__(self, pull: PullSink, *, reserved_count: int = 0) -> None:
        self._pull = pull
        self._reserved_count = reserved_count

    def accept(self, messages: Sequence[Message]) -> None:
        self._pull.put(messages)

    def accept_once(self, message: Message) -> Once:
        return self._pull.put_once(message, reserved_count=self._reserved_count)


Mark = Callable[[Sequence[Message]], Sequence[Message]]
"""Changes messages before they are stored."""


class _Pull(PullSink, PullSizes, Protocol):
    """Accepts messages and reports sizes."""


class QueueIntake(Component):
    """Accepts messages into queues: those that producers post, and those that the hub itself makes."""

    accept: AcceptBodies  # The engine's entry point for messages.
    config: QueuesAndTotals
    messages: MessageSink
    pull: _Pull
    alerts: Alerts
    fields: FieldIndex  # Enters messages of queues with named fields into the index.
    clock: Clock
    descendants: int = DESCENDANTS  # How many messages may derive from one that a producer posts.

    def __post_init__(self) -> None:
        self._copies = QueueCopies(self.config, self.clock)

    def posted(self, queue: Queue, messages: Sequence[NewMessage], mark: Mark | None = None) -> Sequence[Message]:
        """Accept messages from a producer, in order.

        Args:
            queue: As :meth:`queue` returned it.
            messages: 1..100 messages.
            mark: Changes them before they are stored.

        Raises:
            Unavailable: The effect is unknown; the producer has to post again.
        """
        placed = self.accept.placed(queue.project, [each.body for each in messages])

        def messages_of(ids: Sequence[str]) -> Sequence[Message]:
            now = self.clock.now()
            given = zip(ids, messages, placed, strict=True)
            composed = [self._composed(queue, message_id, new, body, now=now) for message_id, new, body in given]
            self.fields.add(queue, zip(composed, messages, strict=True))
            return mark(composed) if mark is not None else composed

        return self.accept.new(self._sink(queue), len(messages), messages_of)

    def post_caused(self, project_id: str, queue_name: str, message: NewMessage, *, cause: str, at: int) -> str:
        """Accept a message made by the hub itself; returns its id. Repeating the call does not post it again.

        Args:
            queue_name: A validated name; an unknown queue is created as a pull queue.
            message: What to post.
            cause: What it is made for: the same on each repetition for the same reason, and never used for another.
            at: When the cause happened, epoch milliseconds; the same on each repetition.
        """
        queue = self.queue(project_id, queue_name)
        began = self.clock.now()
        (body,) = self.accept.placed(project_id, [message.body])
        message_id, once = self._once(queue, Caused(message=message, cause=cause, at=at), body)
        if once is Once.STORED:
            self.stored(queue, 1, began=began)
        return message_id

    def post_all_caused(
        self, project_id: str, queue_name: str, caused: Sequence[Caused], executor: Executor
    ) -> list[str | Exception]:
        """Accept messages made by the hub itself, in parallel; the data they share is read and counted once.

        Safe to repeat, like :meth:`post_caused`.

        Args:
            queue_name: A validated name; an unknown queue is created as a pull queue.
            caused: At least one.

        Returns:
            Each message's id, or the error it failed with; failed ones have to be posted again.

        Raises:
            Unavailable: The effect is unknown for all of them; call again.
        """
        queue = self.queue(project_id, queue_name)
        began = self.clock.now()
        placed = self.accept.placed(project_id, [each.message.body for each in caused])

        def one(each: Caused, body: PlacedBody) -> tuple[str | Exception, Once]:
            try:
                return self._once(queue, each, body)
            except Exception as error:  # noqa: BLE001 (the caller is told; it must not touch the others)
                return error, Once.TAKEN

        outcomes = list(executor.map(one, caused, placed))
        count = sum(once is Once.STORED for _, once in outcomes)
        if count:
            self.stored(queue, count, began=began)
        return [outcome for outcome, _ in outcomes]

    def _once(self, queue: Queue, caused: Caused, body: PlacedBody) -> tuple[str, Once]:
        def message_of(message_id: str) -> Message:
            new, now = caused.message, self.clock.now()
            composed = self._composed(queue, message_id, new, body, now=now, cause=caused.cause)
            self.fields.add(queue, [(composed, new)])
            return composed

        accepted, once = self.accept.once(self._sink(queue), message_of, cause=caused.cause, at=caused.at)
        return accepted.message_id, once

    def transfer(self, project_id: str, queue_name: str, message: Message, body: bytes, *, reserved_count: int) -> None:
        """Move a pull queue's message into another queue with its id and count (dead letters). Safe to repeat.

        Its lifetime starts again, so its body is stored again as well.

        Args:
            queue_name: The target; an unknown queue is created as a pull queue.
            message: The message in its current queue.
        """
        cause = f"dead-letter/{message.queue_uid}/{message.message_id}"
        new = NewMessage(
            body=body,
            headers=message.headers,
            hops=message.hops,
            descendants=message.descendants,
            trace=message.trace,
        )
        queue = self.queue(project_id, queue_name)
        began = self.clock.now()
        (placed,) = self.accept.placed(project_id, [body])
        moved = self._composed(queue, message.message_id, new, placed, now=began, cause=cause)
        self.fields.add(queue, [(moved, new)])
        once = self._sink(queue, reserved_count=reserved_count).accept_once(moved)
        if once is Once.STORED:
            self.stored(queue, 1, began=began)
        elif once is Once.TAKEN:
            # The id is taken by another message there; keeping the message matters more than keeping its id.
            self.post_caused(project_id, queue_name, new, cause=cause, at=message.accepted_at)

    def size_changed(self, queue: Queue, change: int, *, began: int, exact: bool = True) -> None:
        """Fire the alerts of a pull queue triggered by a change of its size. Never fails: the change itself is done.

        Args:
            queue: The queue, as read for the change.
            change: Messages added, or (negative) removed.
            began: Before the change was made, epoch milliseconds.
            exact: As for :meth:`pushhub.ironmq.ports.PullSizes.size`. Functions that only post may not delete.
        """
        if not queue.alerts:
            return
        try:
            for fired in self.alerts.fired(queue, change, began=began, exact=exact):
                target = self.queue(queue.project, fired.queue)
                new = NewMessage(body=fired.body)
                (body,) = self.accept.placed(queue.project, [fired.body])
                message = self._composed(target, self.accept.next_id(), new, body, now=self.clock.now())
                self._sink(target).accept([message])
                # Alerts about alert messages could trigger each other for ever, so those messages are only counted.
                self._count(target, 1)
        except (Conflict, Unavailable) as error:
            self.alerts.unseen(queue, error)

    def queue(self, project_id: str, name: str) -> Queue:
        """A queue to post to; an unknown one is created as a pull queue.

        Args:
            name: A validated name.

        Raises:
            Contended: Others kept creating and deleting it.
        """

        def once() -> Queue:
            queue = self._copies.queue(project_id, name)
            if queue is None:
                queue = pull_queue(project_id, name, self.clock.now())
                self.config.create_queue(queue)
            return queue

        return until_saved(once, doing="creating a queue that is posted to")

    def _sink(self, queue: Queue, *, reserved_count: int = 0) -> Sink:
        return self.messages if queue.is_push else _PullSink(self.pull, reserved_count=reserved_count)

    def stored(self, queue: Queue, count: int, *, began: int, exact: bool = False) -> None:
        """Count messages that were stored, and fire the alerts of the queue's size.

        Args:
            queue: The queue, as read for the change.
            count: Messages added.
            began: Before they were stored, epoch milliseconds.
            exact: See :meth:`size_changed`.
        """
        self._count(queue, count)
        self.size_changed(queue, count, began=began, exact=exact)

    def _count(self, queue: Queue, count: int) -> None:
        """Count a pull queue's messages; those of push queues are counted when they are dispatched."""
        if queue.is_push:
            return
        try:
            self.config.add_to_total(queue.project, queue.uid, count)
        except Unavailable:
            # A statistic: the messages are stored, and an error would make the producer post them again.
            return

    def _composed(
        self, queue: Queue, message_id: str, new: NewMessage, body: PlacedBody, *, now: int, cause: str | None = None
    ) -> Message:
        """The message to store. Its lifetime starts when it is due, so that a long delay does not use it up."""
        # Clearing a push queue deletes everything up to that moment; this message came after it.
        accepted_at = max(now, queue.cleared_at + 1)
        due_at = accepted_at + new.delay_s * 1000
        subscribers = queue.push.subscribers if queue.push else ()
        return Message(
            project=queue.project,
            queue=queue.name,
            queue_uid=queue.uid if queue.is_push else queue.pull_uid,
            message_id=message_id,
            body=body.inline,
            body_ref=body.ref,
            body_size=body.size,
            headers=new.headers,
            accepted_at=accepted_at,
            due_at=due_at,
            expires_at=due_at + queue.message_expiration * 1000,
            subscriber_ids=tuple(each.subscriber_id for each in subscribers),
            unicast=queue.type is QueueType.UNICAST,
            hops=new.hops,
            ordering=Ordering(key=new.order_key) if new.order_key is not None and queue.is_push else None,
            descendants=min(self.descendants, self.descendants if new.descendants is None else new.descendants),
            cause=cause,
            trace=new.trace,
        )
