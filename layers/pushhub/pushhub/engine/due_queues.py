"""Where the order of a delivery goes whose wait is over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pushhub.engine.ports import WorkQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class DueQueues:
    """The queues of deliveries that were tried, or polled, before.

    Attributes:
        retry: For deliveries that wait for a try.
        poll: For deliveries to be polled (hub protocol).
        route: For deliveries that the hub itself handles, so that they never queue behind attempts that wait for an
            answer.
        internal: Whether the hub itself handles the deliveries of a queue, by queue name.
    """

    retry: WorkQueue
    poll: WorkQueue
    route: WorkQueue
    internal: Callable[[str], bool]

    @property
    def all(self) -> tuple[WorkQueue, ...]:
        """Each of them."""
        return self.poll, self.route, self.retry

    def of(self, queue: str, *, polls: bool = False) -> WorkQueue:
        """The one for a delivery.

        Args:
            queue: Name of its queue.
            polls: Whether its target is to be asked for the outcome.
        """
        if polls:
            return self.poll
        return self.route if self.internal(queue) else self.retry
