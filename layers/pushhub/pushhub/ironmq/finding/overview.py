"""What waits in all queues of a project, in one look: for the first page that a person opens."""

from __future__ import annotations

from itertools import chain, islice
from math import ceil
from typing import TYPE_CHECKING

from pushhub.engine.component import Component
from pushhub.engine.model.subscriber_health import worst_of
from pushhub.ironmq.model.overview import Overview, QueueSeen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Executor

    from pushhub.base.ports import Clock
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.model.subscriber_health import SubscriberHealth
    from pushhub.engine.ports import QueueStore
    from pushhub.ironmq.model.overview import QueueInfo
    from pushhub.ironmq.pulling.pull import PullQueues
    from pushhub.ironmq.pushing.push_messages import PushMessages
    from pushhub.ironmq.queues.queues import Queues
    from pushhub.ironmq.queues.subscribers import Subscribers
    from pushhub.ironmq.wire.queues import QueueListQuery

LOOKS_MS = 8_000
"""After this time a look says what it has counted, and where the next one continues."""

AT_ONCE = 8
"""Groups of queues that are counted side by side. Those of a group are counted one after the other, and what is asked
of all of them is asked once.
"""

ROUND = 64
"""Queues that are counted between two looks at the time."""

LARGEST = 8
"""In so many queues the oldest message is looked for: where the most waits, it most likely is."""

QUEUES_PER_CALL = 100


class Overviews(Component):
    """Counts all queues of a project."""

    config: QueueStore
    queues: Queues
    subscribers: Subscribers  # For their health.
    push_messages: PushMessages
    pull: PullQueues
    executor: Callable[[], Executor]  # Counts side by side; made on first use.
    clock: Clock

    def run(self, project_id: str, after: str) -> Overview:
        """Count queues from a name on, by name, as many as there is time for."""
        began, counted = self.clock.now(), 0
        waiting: list[QueueInfo] = []
        errors: set[str] = set()
        there = self._queues(project_id, after)
        while batch := [*islice(there, ROUND)]:
            counted += len(batch)
            errors |= {each.push.error_queue for each in batch if each.push and each.push.error_queue}
            waiting += [each for each in self._counted(batch) if each.size]
            if self.clock.now() - began >= LOOKS_MS:
                break
        largest = sorted(waiting, key=lambda each: -each.size)[:LARGEST]
        found = self.executor().map(lambda each: (each.queue.name, self._oldest(each.queue)), largest)
        return Overview(
            counted=counted,
            waiting=waiting,
            error_queues=frozenset(errors),
            oldest={name: message_id for name, message_id in found if message_id},
            after=batch[-1].name if batch else None,
        )

    def page(self, project_id: str, page: QueueListQuery) -> list[QueueSeen]:
        """The queues of a page, with what waits in each and how its subscribers are doing."""
        found = self.config.whole_queues(project_id, prefix=page.prefix, after=page.after, limit=page.limit)
        push = [each for each in found if each.push]
        pull = [each for each in found if not each.push]
        healths = {
            queue.name: worst_of([health for _, health in shown])
            for queue, shown in zip(push, self.subscribers.healths_in(push), strict=True)
        }
        sizes = {each.queue.name: each.size for each in self._counted(pull)}
        return [_seen(each, healths.get(each.name), sizes.get(each.name, 0)) for each in found]

    def _counted(self, queues: Sequence[Queue]) -> Iterator[QueueInfo]:
        """What waits in each of some queues; pull queues and push queues are asked differently, so they form groups."""
        alike = sorted(queues, key=lambda each: each.is_push)
        size = ceil(len(alike) / AT_ONCE)
        groups = [alike[start : start + size] for start in range(0, len(alike), size or 1)]
        return chain.from_iterable(self.executor().map(self.queues.counted, groups))

    def _oldest(self, queue: Queue) -> str:
        """The id of the message at the front of a queue; empty if none can be shown."""
        if queue.is_push:
            return next((str(each["id"]) for each in self.push_messages.peek(queue, 1, compressed=True)), "")
        shown = self.pull.peek(queue, 1, compressed=True)
        return next((each.held.message.message_id for each in shown), "")

    def _queues(self, project_id: str, after: str) -> Iterator[Queue]:
        while some := self.config.whole_queues(project_id, prefix="", after=after, limit=QUEUES_PER_CALL):
            yield from some
            after = some[-1].name


def _seen(queue: Queue, health: SubscriberHealth | None, size: int) -> QueueSeen:
    waiting, complete = (health.owed.waiting, health.owed.complete) if health else (size, True)
    return QueueSeen(queue=queue, waiting=waiting, complete=complete, health=health)
