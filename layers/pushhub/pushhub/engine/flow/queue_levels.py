"""Looks at queues that should be empty, at those that SQS would stop when too much is in flight, and whether each queue
of work is read at all.

A look at each of them every few minutes costs a twentieth of a CloudWatch alarm for each of them, and does not wait for
CloudWatch, which takes a quarter of an hour for a queue that nobody has used for six hours (docs/decisions/cost.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.component import Component

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.flow.ports import QueueLevel

LOOK_MS = 270_000
"""Time between looks: less than the five minutes of an alarm's period by more than a run of ``wake`` may come late."""

CROWDED = 100_000
"""Messages in flight from which on a queue is close to the 120,000 at which SQS hands out no more."""


class LookAtQueues(Component):
    """Counts what the alarm ``WorkStuck`` watches: messages set aside, and queues near their limit. And, for the alarm
    ``WorkLate``, queues that nobody reads: whoever reads one says itself how long its messages have waited.
    """

    level: Callable[[str], QueueLevel]  # Asks for the level of one queue.
    set_aside: Sequence[str]  # Queues of dead letters and failures.
    crowded: Sequence[str]  # Queues whose messages stay in flight for long.
    brisk: Sequence[str]  # Queues whose messages do not; with the crowded ones, all that functions are run for.
    clock: Clock  # Time; what was looked at when is known to this execution environment only.
    telemetry: Telemetry

    def __post_init__(self) -> None:
        self._looked_at = 0
        self._unread: set[str] = set()

    def run(self) -> None:
        """Look, unless that was done a moment ago.

        Raises:
            Unavailable: A queue could not be looked at; the next run looks again.
        """
        now = self.clock.now()
        if now - self._looked_at < LOOK_MS:
            return
        for queue in self.set_aside:
            if messages := self.level(queue).messages:
                self.telemetry.count("WorkStuck", messages)
                self.telemetry.event("messages_set_aside", queue=_name(queue), messages=messages)
        levels = {queue: self.level(queue) for queue in (*self.crowded, *self.brisk)}
        for queue in self.crowded:
            if (in_flight := levels[queue].in_flight) >= CROWDED:
                self.telemetry.count("WorkStuck")
                self.telemetry.event("queue_nearly_full", queue=_name(queue), in_flight=in_flight)
        # A message that has just come is in nobody's hands either, so it takes two looks.
        unread = {queue for queue, level in levels.items() if level.messages and not level.in_flight}
        for queue in sorted(unread & self._unread):
            self.telemetry.count("QueueUnread")
            self.telemetry.event("queue_unread", queue=_name(queue), messages=levels[queue].messages)
        self._unread = unread
        self._looked_at = now


def _name(queue: str) -> str:
    return queue.rpartition("/")[2]
