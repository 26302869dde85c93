"""Connections nobody uses: closed after five minutes without traffic, and cleared away when they died unnoticed."""

from __future__ import annotations

from collections.abc import Callable

from pushhub.base.errors import Unavailable
from pushhub.base.ports import Clock, Telemetry
from pushhub.notifications.consumers import IDLE_MS, Departures, known_dead
from pushhub.notifications.ports import BacklogStore, Connection, ConnectionStore, Sockets
from pushhub.notifications.waker import Waker

__all__ = ["IdleConnections"]

_AT_A_TIME = 200
_DEADLINE_MARGIN_MS = 5_000


class IdleConnections:
    """Checks connections whose time has come, each about every five minutes.

    Args:
        backlogs: The subscribers' backlogs.
        connections: Their connections.
        sockets: Knows when a client was last heard of.
        departures: Takes consumers off.
        waker: Wakes subscribers that were forgotten, if ever one is.
        clock: Time.
        telemetry: Wide events.
    """

    def __init__(
        self,
        *,
        backlogs: BacklogStore,
        connections: ConnectionStore,
        sockets: Sockets,
        departures: Departures,
        waker: Waker,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._backlogs = backlogs
        self._connections = connections
        self._sockets = sockets
        self._departures = departures
        self._waker = waker
        self._clock = clock
        self._telemetry = telemetry

    def run(self, remaining_ms: Callable[[], int]) -> None:
        """Check every connection that is due, as far as time allows; the rest is due again in the next run."""
        due = self._connections.idle(self._clock.now(), _AT_A_TIME)
        closed = failed = 0
        for connection in self._connections.connections(due).values():
            if remaining_ms() < _DEADLINE_MARGIN_MS:
                break
            try:
                closed += self._check(connection)
            except Unavailable:
                failed += 1
        self._telemetry.event("connections_checked", due=len(due), closed=closed, failed=failed)

    def _check(self, connection: Connection) -> bool:
        """Check one; whether it was cleared away."""
        now = self._clock.now()
        backlog = self._backlogs.backlog(connection.topic, connection.subscriber)
        consumer = backlog.consumer(connection.connection_id) if backlog else None
        heard_at = self._sockets.active_at(connection.connection_id)
        if backlog is None or consumer is None:
            self._sockets.close(connection.connection_id)
            self._connections.close(connection.connection_id)
            return True
        if heard_at is None and not known_dead(consumer, now):
            return False
        active_at = max(heard_at or 0, consumer.active_at)
        if heard_at is None or now - active_at >= IDLE_MS:
            self._sockets.close(connection.connection_id)
            self._departures.drop(connection.topic, connection.subscriber, connection.connection_id)
            return True
        self._connections.check_again(connection.connection_id, active_at + IDLE_MS)
        # Should a publisher have died between writing and waking, its subscribers are woken here at the latest.
        self._waker.these([backlog])
        return False
