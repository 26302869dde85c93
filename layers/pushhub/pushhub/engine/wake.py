"""Scheduled deliveries whose time has come go back to a queue. Runs each minute."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor

from pushhub.base.ports import Clock, Telemetry
from pushhub.engine.model.delivery import Delivery
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.ports import DueIndex, WorkQueue

BATCH = 1000
"""Deliveries woken per look into the due index."""

MARGIN_MS = 10_000
"""Kept free at the end of an invocation."""


class Wake:
    """Wakes scheduled deliveries.

    Args:
        due_index: Knows whose time has come.
        retry_queue: Where woken deliveries go.
        poll_queue: Where those go that are to be polled (hub protocol).
        route_queue: Where those go that the hub itself works on.
        internal: Says by a queue's name whether its deliveries are such.
        telemetry: Metrics.
        executor: Takes deliveries out of the index side by side.
    """

    def __init__(
        self,
        *,
        due_index: DueIndex,
        retry_queue: WorkQueue,
        poll_queue: WorkQueue,
        route_queue: WorkQueue,
        internal: Callable[[str], bool],
        clock: Clock,
        telemetry: Telemetry,
        executor: Executor,
    ) -> None:
        self._due_index = due_index
        self._retry_queue = retry_queue
        self._poll_queue = poll_queue
        self._route_queue = route_queue
        self._internal = internal
        self._clock = clock
        self._telemetry = telemetry
        self._executor = executor

    def run(self, remaining_ms: Callable[[], int]) -> int:
        """Queue every due delivery, then take it out of the index; a crash between the two queues it twice, which is harmless.

        Args:
            remaining_ms: Milliseconds this invocation has left; what is not woken in time is woken by the next.

        Returns:
            How many were woken.

        Raises:
            Unavailable: They could not be queued or taken out; the next run goes on.
        """
        woken: set[str] = set()
        while remaining_ms() > MARGIN_MS:
            # The index lags behind the table for a moment: what was woken just now may still be listed.
            due = [each for each in self._due_index.due(self._clock.now(), BATCH) if _key(each) not in woken]
            if not due:
                break
            for queue in (self._poll_queue, self._route_queue, self._retry_queue):
                orders = [(_order(each), 0) for each in due if self._queue_of(each) is queue]
                if orders:
                    queue.send(orders)
            list(self._executor.map(self._due_index.unschedule, due))
            woken.update(_key(each) for each in due)
        self._telemetry.count("DeliveriesWoken", len(woken))
        return len(woken)

    def _queue_of(self, delivery: Delivery) -> WorkQueue:
        if delivery.update_url is not None:
            return self._poll_queue
        return self._route_queue if self._internal(delivery.queue) else self._retry_queue


def _key(delivery: Delivery) -> str:
    return f"{delivery.project}/{delivery.queue_uid}/{delivery.delivery_id}/{delivery.version}"


def _order(delivery: Delivery) -> WorkOrder:
    """An order without the message, which is not needed until the attempt is really made."""
    return WorkOrder(key=delivery.key, queue=delivery.queue)
