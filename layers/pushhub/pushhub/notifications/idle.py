"""Idle connections: closed after five minutes without traffic, and removed if they died unnoticed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from pushhub.base.errors import Unavailable
from pushhub.engine.component import Component
from pushhub.engine.projects.suspension import is_suspended
from pushhub.notifications.connections import IDLE_MS, Connections, known_dead

if TYPE_CHECKING:
    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.ports import ProjectDirectory
    from pushhub.notifications.ports import BacklogStore, Connection
    from pushhub.notifications.waker import Waker

_MOST = 10_000
"""Connections looked up in one run."""

_AT_A_TIME = 200
"""Connections read at a time, then checked in parallel."""

_DEADLINE_MARGIN_MS = 3_000
_REVOKED_MARGIN_MS = 7_000


class IdleConnections(Component):
    """Checks each connection about every five minutes, and closes those whose project's token was revoked, and those of
    suspended projects.
    """

    backlogs: BacklogStore
    connections: Connections
    waker: Waker  # Wakes subscribers whose wake-up was lost.
    projects: ProjectDirectory  # Tells which projects are suspended, and which of their tokens are still valid.
    clock: Clock
    telemetry: Telemetry
    executor: Executor  # Checks connections in parallel.

    def run(self, remaining_ms: Callable[[], int]) -> None:
        """Check every connection that is due, as time allows; the others are still due in the next run."""
        # Whoever has just seen that nobody is connected need not ask who idles: on most hubs, most minutes are so.
        nobody = self._close_revoked(remaining_ms)
        due = [] if nobody else self.connections.kept.idle(self.clock.now(), _MOST)
        checked = closed = failed = 0
        for start in range(0, len(due), _AT_A_TIME):
            if remaining_ms() < _DEADLINE_MARGIN_MS:
                break
            connections = self.connections.kept.connections(due[start : start + _AT_A_TIME]).values()
            results = list(
                self.executor.map(
                    lambda each: self._checked(each) if remaining_ms() >= _DEADLINE_MARGIN_MS else None, connections
                )
            )
            checked += sum(each is not None for each in results)
            closed += results.count("closed")
            failed += results.count("failed")
        self.telemetry.event("connections_checked", due=len(due), checked=checked, closed=closed, failed=failed)

    def _checked(self, connection: Connection) -> str:
        try:
            return "closed" if self._check(connection) else "open"
        except Unavailable:
            return "failed"

    def _close_revoked(self, remaining_ms: Callable[[], int]) -> bool:
        """Close connections of consumers whose token became invalid because the project's token it was issued with was
        revoked, or whose project is suspended.

        Returns:
            Whether there are no connections at all.
        """
        good: dict[tuple[str, str], bool] = {}
        closed, nobody = 0, True
        try:
            for connection in self.connections.kept.everyone():
                nobody = False
                if remaining_ms() < _REVOKED_MARGIN_MS:
                    # The others come earlier in a later run, as connections are read in the order they are due.
                    break
                project, issued_by = connection.topic.project, connection.issued_by
                if (project, issued_by) not in good:
                    valid = not issued_by or self.projects.project_of(issued_by) == project
                    good[project, issued_by] = valid and not is_suspended(self.projects, project)
                if not good[project, issued_by]:
                    self.connections.end(connection)
                    closed += 1
        except Unavailable as error:
            self.telemetry.event("revoked_unchecked", operation=error.operation)
            nobody = False
        if closed:
            self.telemetry.event("revoked_closed", closed=closed)
        return nobody

    def _check(self, connection: Connection) -> bool:
        """Check one connection; returns whether it was removed."""
        now = self.clock.now()
        backlog = self.backlogs.backlog(connection.topic, connection.subscriber)
        consumer = backlog.consumer(connection.connection_id) if backlog else None
        heard_at = self.connections.sockets.active_at(connection.connection_id)
        if backlog is None or consumer is None:
            self.connections.sockets.close(connection.connection_id)
            self.connections.kept.close(connection.connection_id)
            return True
        if heard_at is None and not known_dead(consumer, now):
            return False
        active_at = max(heard_at or 0, consumer.active_at)
        if heard_at is None or now - active_at >= IDLE_MS:
            self.connections.end(connection)
            return True
        self.connections.kept.check_again(connection.connection_id, active_at + IDLE_MS)
        # If a publisher died between writing and waking, its subscribers are woken here at the latest.
        self.waker.these([backlog])
        return False
