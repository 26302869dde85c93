"""What waits in all queues of a project, in one look: for the first page that a person opens."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from pushhub.engine.component import Component
from pushhub.ironmq.model.overview import Overview

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor

    from pushhub.base.ports import Clock
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.ports import QueueStore
    from pushhub.ironmq.model.overview import QueueInfo
    from pushhub.ironmq.pull import PullQueues
    from pushhub.ironmq.push_messages import PushMessages
    from pushhub.ironmq.queues import Queues

LOOKS_MS = 8_000
"""After this time a look says what it has counted, and where the next one continues."""

AT_ONCE = 8
"""Queues that are counted side by side."""

LARGEST = 8
"""In so many queues the oldest message is looked for: where the most waits, it most likely is."""

NAMES_PER_CALL = 1_000


class Overviews(Component):
    """Counts all queues of a project."""

    config: QueueStore
    queues: Queues
    push_messages: PushMessages
    pull: PullQueues
    executor: Callable[[], Executor]  # Counts side by side; made on first use.
    clock: Clock

    def run(self, project_id: str, after: str) -> Overview:
        """Count queues from a name on, by name, as many as there is time for."""
        began, counted = self.clock.now(), 0
        waiting: list[QueueInfo] = []
        errors: set[str] = set()
        names = self._names(project_id, after)
        while batch := [*islice(names, AT_ONCE)]:
            for queue, info in self.executor().map(lambda name: self._counted(project_id, name), batch):
                counted += 1
                if queue is not None and queue.push and queue.push.error_queue:
                    errors.add(queue.push.error_queue)
                if info is not None and info.size:
                    waiting.append(info)
            if self.clock.now() - began >= LOOKS_MS:
                break
        largest = sorted(waiting, key=lambda each: -each.size)[:LARGEST]
        found = self.executor().map(lambda each: (each.queue.name, self._oldest(each.queue)), largest)
        return Overview(
            counted=counted,
            waiting=waiting,
            error_queues=frozenset(errors),
            oldest={name: message_id for name, message_id in found if message_id},
            after=batch[-1] if batch else None,
        )

    def _oldest(self, queue: Queue) -> str:
        """The id of the message at the front of a queue; empty if none can be shown."""
        if queue.is_push:
            return next((str(each["id"]) for each in self.push_messages.peek(queue, 1, compressed=True)), "")
        shown = self.pull.peek(queue, 1, compressed=True)
        return next((each.held.message.message_id for each in shown), "")

    def _counted(self, project_id: str, name: str) -> tuple[Queue | None, QueueInfo | None]:
        queue = self.config.queue(project_id, name)
        return queue, self.queues.counted(queue) if queue else None

    def _names(self, project_id: str, after: str) -> Iterator[str]:
        while names := self.config.queues(project_id, prefix="", after=after, limit=NAMES_PER_CALL):
            yield from names
            after = names[-1]
