"""Handles what consumers do on the WebSocket routes: connect, acknowledge, leave."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Set
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Conflict, Unavailable
from pushhub.base.ids import new_uid
from pushhub.engine.component import Component
from pushhub.notifications.connections import IDLE_MS, Connections, known_dead
from pushhub.notifications.model.backlog import Backlog, Consumer, absorb, join, leave
from pushhub.notifications.model.topic import Topic, position_at
from pushhub.notifications.ports import BacklogStore, Connection, TopicStore
from pushhub.notifications.wire.frames import UNSUBSCRIBE, AckIds

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.notifications.consumer_tokens import ConsumerTokens
    from pushhub.notifications.log import Retention
    from pushhub.notifications.waker import Waker
    from pushhub.notifications.wire.tokens import Claims

FORGET_FROM = 200
"""Number of acknowledgements noted on a connection at which the sender is woken to absorb them."""

QUIET_MS = 30_000
"""A consumer that was sent nothing for this long is checked when a sibling connects, milliseconds."""

_LOOK_AGAIN_S = 0.25
_REMEMBERED = 20_000


class Consumers(Component):
    """The life of a connection."""

    tokens: ConsumerTokens
    ack_ids: AckIds  # Decodes acknowledgements.
    topics: TopicStore  # Tells where a new subscriber starts.
    backlogs: BacklogStore
    connections: Connections
    waker: Waker
    clock: Clock
    retention: Retention  # Limits of topics that are created here.

    def __post_init__(self) -> None:
        self._recent: OrderedDict[tuple[str, int], None] = OrderedDict()

    def may_connect(self, token: str, name: str = "") -> None:
        """Whether a handshake with this token and name would be accepted now; changes nothing.

        Raises:
            Unauthorized: The token is bad or has expired.
            AlreadyConnected: A consumer is in the way.
        """
        claims = self.tokens.check(token)
        backlog = self.backlogs.backlog(claims.topic, claims.subscriber)
        if backlog is not None:
            live = backlog
            for each in self.connections.gone(backlog.consumers):
                live = leave(live, each.connection_id, frozenset())
            join(live, self._consumer("-", name), shared=claims.shared, end=0)

    def connect(self, token: str, name: str, connection_id: str) -> Connection:
        """Make a connection a consumer of its token's subscriber, which is created if it does not exist.

        Args:
            token: From the handshake.
            name: The name the client gave itself; may be empty.
            connection_id: API Gateway's id of the connection.

        Raises:
            Unauthorized: The token is bad or has expired.
            AlreadyConnected: A consumer is in the way.
            Unavailable: The outcome is unknown; the client has to connect again.
        """
        claims = self.tokens.check(token)

        def once() -> tuple[Connection, Backlog]:
            backlog = self._subscriber(claims)
            if claims.shared and backlog.shared:
                backlog = self._without_long_dead(claims, backlog)
                if name:
                    backlog = self._without_dead(claims, backlog, name)
            else:
                backlog = self._without_dead(claims, backlog)
            head = self.topics.admit(claims.topic, backlog.uid, ceiling=self.retention.size)
            joined = join(
                backlog,
                self._consumer(connection_id, name),
                shared=claims.shared,
                end=position_at(head.sequence + 1),
            )
            connection = self._open(claims, joined.uid, connection_id)
            try:
                self.backlogs.save(joined)
            except Conflict:
                self._clear_up(joined)
                raise
            return connection, joined

        try:
            connection, joined = until_saved(once, doing="joining a backlog")
        except Unavailable:
            with suppress(Unavailable):
                self.connections.kept.close(connection_id)
            raise
        self.waker.these([joined])
        return connection

    def _clear_up(self, joined: Backlog) -> None:
        """Clean up after a lost race: nothing may be owed to a subscriber that was removed meanwhile."""
        now = self.backlogs.backlog(joined.topic, joined.subscriber)
        if now is None or now.uid != joined.uid:
            self.topics.dismiss(joined.topic, joined.uid)

    def _without_dead(self, claims: Claims, backlog: Backlog, name: str = "") -> Backlog:
        """The backlog without consumers in the way whose connection ended without our being notified.

        A consumer that has just joined may not have finished its handshake: it gets a grace period.

        Args:
            name: Only one of that name is in the way; empty if all are.
        """
        while gone := self.connections.gone([each for each in backlog.consumers if name in ("", each.name)]):
            dead = [each for each in gone if known_dead(each, self.clock.now())]
            for each in dead:
                self.connections.drop(claims.topic, claims.subscriber, each.connection_id)
            if len(dead) < len(gone):
                self.clock.sleep(_LOOK_AGAIN_S)
            backlog = self._subscriber(claims)
        return backlog

    def _without_long_dead(self, claims: Claims, backlog: Backlog) -> Backlog:
        """The backlog without sibling consumers that died unnoticed. They do not block each other, so only consumers
        that were idle for a while are checked.
        """
        now = self.clock.now()
        quiet = [each for each in backlog.consumers if now - each.active_at >= QUIET_MS]
        for each in self.connections.gone(quiet):
            self.connections.drop(claims.topic, claims.subscriber, each.connection_id)
            backlog = self._subscriber(claims)
        return backlog

    def disconnect(self, connection_id: str) -> None:
        """Handle the end of a connection. Idempotent."""
        connection = self.connections.kept.connections([connection_id]).get(connection_id)
        if connection is not None:
            self.connections.drop(connection.topic, connection.subscriber, connection_id)

    def receive(self, connection_id: str, text: str) -> None:
        """Handle a frame from a consumer: one or more acknowledgements, one per line, or a request to unsubscribe.

        Anything else is ignored.

        Raises:
            Unavailable: The acknowledgements may be lost; the notifications are then sent again after the next
                reconnect.
        """
        if text.strip() == UNSUBSCRIBE:
            connection = self.connections.kept.connections([connection_id]).get(connection_id)
            if connection is not None:
                self.remove(connection.topic, connection.subscriber, uid=connection.subscriber_uid)
            return
        read = [self.ack_ids.read(line.strip(), connection_id) for line in text.split("\n")]
        fresh = {ack for ack in read if ack is not None and (connection_id, ack.position) not in self._recent}
        for shared in (False, True):
            positions = {ack.position for ack in fresh if ack.shared is shared}
            if positions:
                self._acknowledge(connection_id, positions, shared=shared)

    def _acknowledge(self, connection_id: str, positions: Set[int], *, shared: bool) -> None:
        connection = self.connections.kept.acknowledge(connection_id, positions, shared=shared)
        if connection is None:
            return
        for position in positions:
            self._recent[connection_id, position] = None
        while len(self._recent) > _REMEMBERED:
            self._recent.popitem(last=False)
        if connection.stalled or len(connection.acknowledged) >= FORGET_FROM:
            self.waker.subscriber(connection.topic, connection.subscriber)

    def remove(self, topic: Topic, subscriber: str, *, uid: str = "") -> bool:
        """Remove a subscriber with its backlog, and close its connections. Returns whether the subscriber existed.

        Args:
            topic: What it reads.
            uid: The generation that is meant; empty for any. A frame may be processed after its subscriber was
                recreated.
        """

        def once() -> Backlog | None:
            backlog = self._absorbed(topic, subscriber)
            if backlog is None or uid not in ("", backlog.uid):
                return None
            # First stop owing it anything, then delete its backlog. A consumer that connects in between goes with it.
            self.topics.dismiss(topic, backlog.uid)
            self.backlogs.delete(backlog)
            return backlog

        removed = until_saved(once, doing="removing a subscriber")
        for consumer in removed.consumers if removed else ():
            self.connections.kept.close(consumer.connection_id)
            self.connections.sockets.close(consumer.connection_id)
        return removed is not None

    def _absorbed(self, topic: Topic, subscriber: str) -> Backlog | None:
        """The stored backlog after absorbing what its consumers acknowledged."""

        def once() -> Backlog | None:
            backlog = self.backlogs.backlog(topic, subscriber)
            if backlog is None:
                return None
            connections = self.connections.kept.connections([each.connection_id for each in backlog.consumers])
            noted = frozenset[int]().union(*(each.acknowledged for each in connections.values()))
            # A notification may be acknowledged before the sender has recorded that it was sent.
            early = backlog.acknowledged_early | {each for each in noted if each >= (backlog.next or 0)}
            absorbed = replace(absorb(backlog, noted), acknowledged_early=early, lapsed=(), version=backlog.version + 1)
            if replace(absorbed, lapsed=backlog.lapsed, version=backlog.version) == backlog:
                return backlog
            self.backlogs.save(absorbed)
            return absorbed

        return until_saved(once, doing="absorbing acknowledgements")

    def _subscriber(self, claims: Claims) -> Backlog:
        """The subscriber's backlog, created if it does not exist.

        It is stored before anything is owed to it, so nothing is ever owed to a subscriber that does not exist.
        """

        def once() -> Backlog:
            found = self.backlogs.backlog(claims.topic, claims.subscriber)
            if found is not None:
                return found
            head = self.topics.head(claims.topic)
            new = Backlog(
                topic=claims.topic,
                subscriber=claims.subscriber,
                uid=new_uid(),
                made_after=head.sequence if head else 0,
                created_at=self.clock.now(),
                version=1,
            )
            self.backlogs.save(new)
            return new

        return until_saved(once, doing="making a subscriber")

    def _consumer(self, connection_id: str, name: str) -> Consumer:
        now = self.clock.now()
        return Consumer(connection_id=connection_id, name=name or connection_id, joined_at=now, active_at=now)

    def _open(self, claims: Claims, uid: str, connection_id: str) -> Connection:
        # This comes before the backlog names it: a sender that finds a consumer without a connection takes it for dead.
        now = self.clock.now()
        connection = Connection(
            connection_id=connection_id,
            topic=claims.topic,
            subscriber=claims.subscriber,
            subscriber_uid=uid,
            shared=claims.shared,
            opened_at=now,
            token_id=claims.token_id,
            issued_by=claims.issued_by,
        )
        self.connections.kept.open(connection, check_at=now + IDLE_MS)
        return connection
