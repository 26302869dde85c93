"""Shows messages that an index or the catalogue names, of whatever protocol: as they are now, and for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.errors import MessageNotFound, Unavailable, Unreadable
from pushhub.engine.component import Component
from pushhub.engine.model.search import Found, IndexEntry, Receiver
from pushhub.ironmq.wire.statuses import asked_as

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pushhub.engine.model.catalogue import Seen
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.ports import Finder, QueueSource
    from pushhub.ironmq.pulling.pull import PullQueues
    from pushhub.ironmq.pushing.push_messages import PushMessages


QUEUE = "queue"
"""What messages of owners' queues belong to."""


class Lookup(Component):
    """Looks messages up."""

    config: QueueSource
    push_messages: PushMessages
    pull: PullQueues
    finders: Callable[[str], Sequence[Finder]]  # Find messages of internal queues, by the queue's name.

    def each(self, entries: Iterable[IndexEntry]) -> Iterator[Found]:
        """The messages that are still there, read one by one; those that cannot be read are left out. Queues are read
        once.
        """
        queues: dict[str, Queue | None] = {}
        for entry in entries:
            try:
                found = self._one(entry, queues)
            except Unreadable:
                continue
            if found is not None:
                yield found

    def _one(self, entry: IndexEntry, queues: dict[str, Queue | None]) -> Found | None:
        if "/" in entry.queue:
            return self._elsewhere(entry)
        if entry.queue not in queues:
            queues[entry.queue] = self.config.queue(entry.project, entry.queue, fresh=True)
        return self._found(queues[entry.queue], entry)

    def one(self, project_id: str, seen: Seen) -> Sequence[Found] | None:
        """A message of the catalogue, if it is still there; None while its table is asked too often."""
        try:
            return [*self.each([entry_of(project_id, seen)])]
        except Unavailable as error:
            if not error.throttled:
                raise
            return None

    def _elsewhere(self, entry: IndexEntry) -> Found | None:
        for finder in self.finders(entry.queue):
            return finder.found(entry)
        return None

    def _found(self, queue: Queue | None, entry: IndexEntry) -> Found | None:
        if queue is None or (queue.uid if queue.is_push else queue.pull_uid) != entry.queue_uid:
            return None
        try:
            return self._pushed(queue, entry) if queue.is_push else self._waiting(queue, entry)
        except MessageNotFound:
            return None

    def _pushed(self, queue: Queue, entry: IndexEntry) -> Found:
        pushed = self.push_messages.get(queue, entry.message_id)
        return Found(
            kind=QUEUE,
            of=queue.name,
            message_id=entry.message_id,
            field=entry.field,
            receivers=[_receiver(queue, each) for each in pushed.deliveries.values()],
            accepted_at=pushed.message.accepted_at,
            content=self.push_messages.body(pushed.message),
        )

    def _waiting(self, queue: Queue, entry: IndexEntry) -> Found:
        taken = self.pull.get(queue, entry.message_id)
        return Found(
            kind=QUEUE,
            of=queue.name,
            message_id=entry.message_id,
            field=entry.field,
            receivers=(),
            accepted_at=taken.held.message.accepted_at,
            state="reserved" if taken.held.reservation_id else "waiting",
            content=taken.body,
        )


def _receiver(queue: Queue, delivery: Delivery) -> Receiver:
    name, url = asked_as(queue, delivery.targets[delivery.cursor], delivery)
    return Receiver(delivery.subscriber_id, name or url, delivery.state.value, url)


def entry_of(project_id: str, seen: Seen) -> IndexEntry:
    """A message of the catalogue, as it is looked up."""
    return IndexEntry(
        project=project_id,
        value="",
        queue=seen.queue,
        queue_uid=seen.queue_uid,
        message_id=seen.message_id,
        field="",
        expires_at=0,
    )
