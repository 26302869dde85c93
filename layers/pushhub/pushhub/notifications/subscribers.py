"""Subscribers outside their connections: tokens for them, and their removal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.component import Component
from pushhub.notifications.wire.errors import SubscriberUnknown

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.notifications.connections import Connections
    from pushhub.notifications.consumer_tokens import ConsumerTokens
    from pushhub.notifications.consumers import Consumers
    from pushhub.notifications.model.backlog import Backlog
    from pushhub.notifications.ports import BacklogStore
    from pushhub.notifications.wire.requests import TokenRequest
    from pushhub.notifications.wire.tokens import Claims

_LEAVING_S = 3.0
"""How long closing consumers of a shared subscriber are given to disconnect, seconds."""

_LOOK_AGAIN_S = 0.25


class NotificationSubscribers(Component):
    """Makes tokens and removes subscribers."""

    tokens: ConsumerTokens
    backlogs: BacklogStore
    connections: Connections
    consumers: Consumers
    clock: Clock

    def token(self, request: TokenRequest, *, issued_by: str) -> str:
        """A token.

        Args:
            request: The claims requested.
            issued_by: Hash of the project's token that was used to request it.
        """
        return self.tokens.make(request, issued_by=issued_by)

    def verify(self, token: str) -> Claims:
        """The claims of a token.

        Raises:
            Unauthorized: The token is invalid or no longer valid.
        """
        return self.tokens.check(token)

    def unsubscribe(self, token: str) -> None:
        """Remove the subscriber of a token, with its backlog; its connections are closed.

        A shared subscriber is removed with its last consumer: when one asks after all others have asked or left.

        Raises:
            Unauthorized: The token is invalid or no longer valid.
            SubscriberUnknown: It does not exist, or other consumers stay connected to it.
        """
        claims = self.verify(token)
        backlog = self.backlogs.backlog(claims.topic, claims.subscriber)
        if backlog is not None and backlog.shared:
            self._mark_leaving(backlog, claims.token_id)
            if self._others_stay(backlog):
                raise SubscriberUnknown("Subscriber has connected consumers")
        if not self.consumers.remove(claims.topic, claims.subscriber):
            raise SubscriberUnknown

    def _mark_leaving(self, backlog: Backlog, token_id: str) -> None:
        """Mark the requesting consumer as leaving, whether its connection has ended or not.

        If several consumers use the token, it is unknown which one asks.
        """
        connections = self.connections.kept.connections([each.connection_id for each in backlog.consumers])
        own = [each.connection_id for each in connections.values() if each.token_id == token_id]
        if len(own) == 1:
            self.connections.kept.leave(own[0])

    def _others_stay(self, backlog: Backlog) -> bool:
        """Whether other consumers stay, after giving those that are closing a moment to disconnect."""
        deadline = self.clock.now() + round(_LEAVING_S * 1000)
        while staying := self._staying(backlog):
            gone = [each for each in staying if self.connections.sockets.active_at(each) is None]
            for each in gone:
                self.connections.drop(backlog.topic, backlog.subscriber, each)
            if len(gone) == len(staying):
                continue
            if self.clock.now() >= deadline:
                return True
            self.clock.sleep(_LOOK_AGAIN_S)
        return False

    def _staying(self, backlog: Backlog) -> list[str]:
        """Ids of the connections whose consumers have not asked to be unsubscribed."""
        now = self.backlogs.backlog(backlog.topic, backlog.subscriber)
        ids = [each.connection_id for each in now.consumers] if now else []
        connections = self.connections.kept.connections(ids)
        return [each for each in ids if each not in connections or not connections[each].leaving]
