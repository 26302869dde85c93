"""Connections of consumers: what is kept of each, its other end, and its place on its subscriber's backlog."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.base.conflicts import until_saved
from pushhub.notifications.model.backlog import Backlog, Consumer, leave

if TYPE_CHECKING:
    from pushhub.notifications.model.topic import Topic
    from pushhub.notifications.ports import BacklogStore, Connection, ConnectionStore, Sockets
    from pushhub.notifications.waker import Waker

GRACE_MS = 5_000
"""How long a new connection may be unknown to API Gateway while its handshake finishes, milliseconds."""

IDLE_MS = 300_000
"""A connection is closed after this long without traffic (Notifications 2.0: 5 minutes), milliseconds."""


def known_dead(consumer: Consumer, now: int) -> bool:
    """Whether a consumer unknown to API Gateway is dead, rather than still finishing its handshake."""
    return consumer.active_at > consumer.joined_at or now - consumer.joined_at >= GRACE_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """The connections of consumers, and how they end.

    Attributes:
        kept: What is kept of each connection.
        sockets: Their other ends.
        waker: Wakes the sender for the remaining consumers.
    """

    backlogs: BacklogStore
    kept: ConnectionStore
    sockets: Sockets
    waker: Waker

    def gone(self, consumers: Iterable[Consumer]) -> list[Consumer]:
        """Those whose connection API Gateway does not know, either no longer or not yet."""
        return [each for each in consumers if self.sockets.active_at(each.connection_id) is None]

    def end(self, connection: Connection) -> None:
        """Close a connection, and take its consumer off its backlog."""
        self.sockets.close(connection.connection_id)
        self.drop(connection.topic, connection.subscriber, connection.connection_id)

    def drop(self, topic: Topic, subscriber: str, connection_id: str) -> Backlog | None:
        """Remove one consumer from its backlog; whatever it had not acknowledged will be sent again.

        Idempotent; does nothing if the consumer is not there.

        Returns:
            The resulting backlog, None when the subscriber is gone.
        """

        def once() -> Backlog | None:
            backlog = self.backlogs.backlog(topic, subscriber)
            if backlog is None or backlog.consumer(connection_id) is None:
                self.kept.close(connection_id)
                return backlog
            noted = self.kept.connections([connection_id]).get(connection_id)
            left = leave(backlog, connection_id, noted.acknowledged if noted else frozenset())
            self.backlogs.save(left)
            self.kept.close(connection_id)
            self.waker.these([left])
            return left

        return until_saved(once, doing="taking a consumer off its backlog")
