"""Subscribers outside their connections: tokens for them, and their removal."""

from __future__ import annotations

from pushhub.base.ports import Clock
from pushhub.notifications.consumers import Consumers, Departures
from pushhub.notifications.model.backlog import Backlog
from pushhub.notifications.ports import BacklogStore, Sockets
from pushhub.notifications.wire.errors import SubscriberUnknown
from pushhub.notifications.wire.requests import TokenRequest
from pushhub.notifications.wire.tokens import Claims, Tokens

__all__ = ["NotificationSubscribers"]

_LEAVING_S = 3.0
"""How long consumers of a shared subscriber that are just closing may take to be gone."""

_LOOK_AGAIN_S = 0.25


class NotificationSubscribers:
    """Makes tokens and removes subscribers.

    Args:
        tokens: Makes and checks tokens.
        backlogs: The subscribers' backlogs.
        sockets: Asked whether a consumer is still connected.
        departures: Takes those off that are not.
        consumers: Removes.
        clock: Time.
    """

    def __init__(
        self,
        *,
        tokens: Tokens,
        backlogs: BacklogStore,
        sockets: Sockets,
        departures: Departures,
        consumers: Consumers,
        clock: Clock,
    ) -> None:
        self._tokens = tokens
        self._backlogs = backlogs
        self._sockets = sockets
        self._departures = departures
        self._consumers = consumers
        self._clock = clock

    def token(self, request: TokenRequest) -> str:
        """A token. Neither topic nor subscriber need exist: the first connection makes them."""
        now_s = self._clock.now() // 1000
        claims = Claims(
            topic=request.topic,
            subscriber=request.subscriber,
            shared=request.shared,
            issued_at=now_s,
            expires_at=now_s + request.minutes * 60,
        )
        return self._tokens.sign(claims)

    def verify(self, token: str) -> Claims:
        """What a token says.

        Raises:
            Unauthorized: It is bad or has expired.
        """
        return self._tokens.check(token, self._clock.now() / 1000)

    def unsubscribe(self, token: str) -> None:
        """Remove the subscriber of a token, with its backlog; connections of an exclusive one are closed.

        One of several consumers of a shared subscriber does not remove it under the others: the last one does.

        Raises:
            Unauthorized: The token is bad or has expired.
            SubscriberUnknown: There is none, or other consumers are connected to it.
        """
        claims = self.verify(token)
        backlog = self._backlogs.backlog(claims.topic, claims.subscriber)
        if backlog is not None and backlog.shared and self._remain_connected(backlog):
            raise SubscriberUnknown("Subscriber has connected consumers")
        if not self._consumers.remove(claims.topic, claims.subscriber):
            raise SubscriberUnknown

    def _remain_connected(self, backlog: Backlog) -> bool:
        """Whether a shared subscriber still has consumers after those that are closing had a moment to be gone."""
        now: Backlog | None = backlog
        deadline = self._clock.now() + round(_LEAVING_S * 1000)
        while now is not None and now.consumers:
            for each in now.consumers:
                if self._sockets.active_at(each.connection_id) is None:
                    self._departures.drop(now.topic, now.subscriber, each.connection_id)
            now = self._backlogs.backlog(backlog.topic, backlog.subscriber)
            if now is None or not now.consumers:
                return False
            if self._clock.now() >= deadline:
                return True
            self._clock.sleep(_LOOK_AGAIN_S)
        return False
