"""Looks at queues that should be empty, and at those that SQS would stop when too much is in flight.

A look at each of them every few minutes costs a twentieth of a CloudWatch alarm for each of them, and does not wait for
CloudWatch, which takes a quarter of an hour for a queue that nobody has used for six hours (decision 0083).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.ports import QueueLevel

LOOK_MS = 270_000
"""Time between looks: less than the five minutes of an alarm's period by more than a run of ``wake`` may come late."""

CROWDED = 100_000
"""Messages in flight from which on a queue is close to the 120,000 at which SQS hands out no more."""


class LookAtQueues:
    """Counts what the alarm ``WorkStuck`` watches: messages set aside, and queues near their limit.

    Args:
        level: Asks for the level of one queue.
        set_aside: Queues of dead letters and failures.
        crowded: Queues whose messages stay in flight for long.
        clock: Time; what was looked at when is known to this execution environment only.
        telemetry: Metrics, and events that name the queue.
    """

    def __init__(
        self,
        *,
        level: Callable[[str], QueueLevel],
        set_aside: Sequence[str],
        crowded: Sequence[str],
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._level = level
        self._set_aside = set_aside
        self._crowded = crowded
        self._clock = clock
        self._telemetry = telemetry
        self._looked_at = 0

    def run(self) -> None:
        """Look, unless that was done a moment ago.

        Raises:
            Unavailable: A queue could not be looked at; the next run looks again.
        """
        now = self._clock.now()
        if now - self._looked_at < LOOK_MS:
            return
        for queue in self._set_aside:
            if messages := self._level(queue).messages:
                self._telemetry.count("WorkStuck", messages)
                self._telemetry.event("messages_set_aside", queue=_name(queue), messages=messages)
        for queue in self._crowded:
            if (in_flight := self._level(queue).in_flight) >= CROWDED:
                self._telemetry.count("WorkStuck")
                self._telemetry.event("queue_nearly_full", queue=_name(queue), in_flight=in_flight)
        self._looked_at = now


def _name(queue: str) -> str:
    return queue.rpartition("/")[2]
