"""Creating, changing, showing, listing, clearing and deleting queues."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Conflict, NotFound, QueueNotFound
from pushhub.base.ids import new_uid
from pushhub.engine.component import Component
from pushhub.engine.model.delivery import DeliveryState
from pushhub.ironmq.model.overview import QueueInfo
from pushhub.ironmq.queues.queue_changes import changed_queue, new_queue, pull_queue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.base.ports import Clock
    from pushhub.engine.attempts.ports import Unsettled
    from pushhub.engine.model.queue import Queue, Subscriber
    from pushhub.engine.ports import QueuesAndTotals
    from pushhub.engine.projects.queue_copies import QuietQueues
    from pushhub.ironmq.ports import PullSizes
    from pushhub.ironmq.queues.senders import QueueSenders
    from pushhub.ironmq.queues.size_alerts import Alerts
    from pushhub.ironmq.queues.subscribers import Registration
    from pushhub.ironmq.wire.queues import QueueListQuery, QueueSettings

CHANGING = "changing a queue under contention"

COUNT_PAGE = 500
COUNT_PAGES = 20
"""Up to how many waiting deliveries of a cleared push queue are counted one by one: 10,000."""


def named_subscriber(queue: Queue, name: str) -> Subscriber:
    """The subscriber of a queue with a given name; if there are several, the first.

    Raises:
        NotFound: There is none.
    """
    subscribers = queue.push.subscribers if queue.push else ()
    found = next((each for each in subscribers if each.name == name), None)
    if found is None:
        raise NotFound("Subscriber not found")
    return found


def subscriber_called(queue: Queue, name: str) -> Subscriber:
    """The subscriber of a queue with a given name, or with that as its id, which those without a name have as well.

    Raises:
        NotFound: There is none.
    """
    found = queue.push.subscriber(name) if queue.push else None
    return found or named_subscriber(queue, name)


class Queues(Component):
    """Manages queues. Methods raise ``QueueNotFound`` for what is not there."""

    config: QueuesAndTotals
    messages: Unsettled  # For the size of push queues.
    pull: PullSizes  # For the size of pull queues.
    alerts: Alerts  # Those of pull queues.
    registration: Registration  # Checks subscribers.
    quiet: QuietQueues  # Lets changes wait for copies.
    senders: QueueSenders  # Seals the secrets of senders.
    clock: Clock

    def get(self, project_id: str, name: str) -> Queue:
        """The queue as it is now."""
        queue = self.config.queue(project_id, name, fresh=True)
        if queue is None:
            raise QueueNotFound
        return queue

    def subscriber(self, project_id: str, queue_name: str, name: str) -> Subscriber:
        """A subscriber of a queue.

        Raises:
            NotFound: It has no subscriber of that name.
        """
        return named_subscriber(self.get(project_id, queue_name), name)

    def info(self, queue: Queue) -> QueueInfo:
        """The queue's counts."""
        size = self._size(queue)
        return QueueInfo(queue=queue, size=size, total_messages=self.config.total(queue.project, queue.uid))

    def counted(self, queues: Sequence[Queue]) -> list[QueueInfo]:
        """What waits in queues of one project, at the least cost, in their order: the number of messages ever posted
        is left at 0.
        """
        if not queues:
            return []
        project = queues[0].project
        pull = [each.pull_uid for each in queues if not each.is_push]
        push = [each.uid for each in queues if each.is_push and not each.cleared_at]
        sizes = dict(zip(pull, self.pull.sizes(project, pull, self.clock.now()), strict=True)) if pull else {}
        waiting = dict(zip(push, self.messages.unsettled_counts(project, push), strict=True)) if push else {}

        def size(queue: Queue) -> int:
            if not queue.is_push:
                return sizes[queue.pull_uid]
            return self._waiting_since_cleared(queue) if queue.cleared_at else waiting[queue.uid]

        return [QueueInfo(queue=each, size=size(each), total_messages=0) for each in queues]

    def _size(self, queue: Queue) -> int:
        if not queue.is_push:
            return self.pull.size(queue.project, queue.pull_uid, self.clock.now(), exact=True)
        (counted,) = self.counted([queue])
        return counted.size

    def _waiting_since_cleared(self, queue: Queue) -> int:
        """Number of waiting deliveries of a queue that was cleared once.

        Deliveries voided by that stay in the index until they are next looked at; they are not counted.
        """
        count, cursor = 0, None
        for _ in range(COUNT_PAGES):
            page, cursor = self.messages.unsettled(queue.project, queue.uid, limit=COUNT_PAGE, after=cursor)
            waiting = [each for each in page if each.state is not DeliveryState.EXHAUSTED]
            count += sum(each.accepted_at > queue.cleared_at for each in waiting)
            # Exhausted deliveries come after all waiting ones.
            if cursor is None or len(waiting) < len(page):
                break
        return count

    def put(self, project_id: str, name: str, settings: QueueSettings) -> Queue:
        """Create a queue, or change an existing one: settings missing from the request stay unchanged.

        Raises:
            Invalid: A setting is not acceptable for this type of queue.
            Forbidden: The type differs from the queue's.
        """

        def once() -> Queue:
            stored = self.config.queue(project_id, name, fresh=True)
            return self._created(project_id, name, settings) if stored is None else self._changed(stored, settings)

        queue = until_saved(once, doing=CHANGING)
        self._make_dead_letter_queue(queue)
        self.alerts.begin(queue)
        return queue

    def planned(self, project_id: str, name: str, settings: QueueSettings) -> Queue:
        """The queue that :meth:`put` would leave, which it refuses for the same reasons; nothing is stored."""
        stored = self.config.queue(project_id, name, fresh=True)
        return self._new(project_id, name, settings) if stored is None else self._with(stored, settings)

    def planned_change(self, project_id: str, name: str, settings: QueueSettings) -> Queue:
        """The queue that :meth:`change` would leave, which it refuses for the same reasons; nothing is stored."""
        return self._with(self.get(project_id, name), settings)

    def change(self, project_id: str, name: str, settings: QueueSettings) -> Queue:
        """Change a queue: settings missing from the request stay unchanged.

        Raises:
            Invalid: A setting is not acceptable for this type of queue.
            Forbidden: The type differs from the queue's.
        """
        queue = self._retried(project_id, name, lambda stored: self._changed(stored, settings))
        self._make_dead_letter_queue(queue)
        self.alerts.begin(queue)
        return queue

    def delete(self, project_id: str, name: str) -> None:
        """Delete a queue with its contents: a queue created again under its name sees none of them."""

        def once() -> bool:
            return self.config.delete_queue(self.quiet.quiet(self.get(project_id, name)))

        if not until_saved(once, doing="deleting a queue under contention"):
            raise QueueNotFound

    def names(self, project_id: str, page: QueueListQuery) -> list[str]:
        """Names of queues in byte order."""
        return self.config.queues(project_id, prefix=page.prefix, after=page.after, limit=page.limit)

    def clear(self, project_id: str, name: str) -> None:
        """Remove all messages from a queue.

        A pull queue gets a new generation of messages; all that a push queue still owes becomes void.
        """

        def cleared(stored: Queue) -> Queue:
            return self.config.update_queue(self._cleared(self.quiet.quiet(stored)))

        self.alerts.begin(self._retried(project_id, name, cleared))

    def _cleared(self, queue: Queue) -> Queue:
        if queue.is_push:
            now = max(self.clock.now(), queue.cleared_at + 1)
            return replace(queue, cleared_at=now, pull_uid=new_uid() if queue.converted_at else queue.pull_uid)
        return replace(queue, pull_uid=new_uid())

    def _created(self, project_id: str, name: str, settings: QueueSettings) -> Queue:
        queue = self._new(project_id, name, settings)
        self.config.create_queue(queue)
        return queue

    def _new(self, project_id: str, name: str, settings: QueueSettings) -> Queue:
        admit = self.registration.of(project_id, name)
        queue = new_queue(project_id, name, settings, admit=admit, now=self.clock.now())
        return replace(queue, sender=self.senders.changed(project_id, None, settings.sender))

    def _changed(self, stored: Queue, settings: QueueSettings) -> Queue:
        changed = self._with(stored, settings)
        return stored if changed == stored else self.quiet.save(stored, changed)

    def _with(self, stored: Queue, settings: QueueSettings) -> Queue:
        admit = self.registration.of(stored.project, stored.name)
        queue = changed_queue(stored, settings, admit=admit, now=self.clock.now())
        return replace(queue, sender=self.senders.changed(stored.project, stored.sender, settings.sender))

    def _retried(self, project_id: str, name: str, change: Callable[[Queue], Queue]) -> Queue:
        return until_saved(lambda: change(self.get(project_id, name)), doing=CHANGING)

    def _make_dead_letter_queue(self, queue: Queue) -> None:
        """A dead letter queue exists as soon as it is named (IronMQ v3); an existing one is used as it is."""
        if queue.dead_letter is None:
            return
        name = queue.dead_letter.queue_name
        if self.config.queue(queue.project, name, fresh=True) is not None:
            return
        try:
            self.config.create_queue(pull_queue(queue.project, name, self.clock.now()))
        except Conflict:
            return
