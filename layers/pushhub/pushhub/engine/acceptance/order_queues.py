"""Where the order of a delivery goes, by the name of its queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pushhub.engine.ports import WorkQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderQueues:
    """The queues of deliveries, either of their first attempts or of those that were tried, or polled, before.

    Attributes:
        usual: For all but those below.
        poll: For deliveries to be polled (hub protocol), or whose attempts may take long.
        route: For deliveries that the hub itself handles, so that they never queue behind attempts that wait for an
            answer.
        internal: Whether the hub itself handles the deliveries of a queue, by queue name.
        long: Whether attempts of a queue's deliveries may take long, by queue name: they are made where polls are.
    """

    usual: WorkQueue
    poll: WorkQueue
    route: WorkQueue
    internal: Callable[[str], bool]
    long: Callable[[str], bool]

    @property
    def all(self) -> tuple[WorkQueue, ...]:
        """Each of them."""
        return self.poll, self.route, self.usual

    def of(self, queue: str, *, polls: bool = False) -> WorkQueue:
        """The one for a delivery.

        Args:
            polls: Whether its target is to be asked for the outcome.
        """
        if polls or self.long(queue):
            return self.poll
        return self.route if self.internal(queue) else self.usual
