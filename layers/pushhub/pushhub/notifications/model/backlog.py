r"""The backlog of a subscriber: what it still has to be sent, and what its consumers have not acknowledged.

Pure, no clock, no I/O.

::

                    next                       Every position below ``next`` is in exactly one of three places:
    ... ------------|-----------> log          * unacknowledged at a live consumer,
    dealt with      | not assigned yet         * returned: to be assigned again, oldest first,
                                               * done with (acknowledged or expired), which nothing needs to remember.

    join     a consumer connects; the first one ever sets ``next`` to the end of the log
    assign   positions go to consumers: returned ones first, then the log from ``next`` on
    record   what was sent is unacknowledged now, what no consumer had room for is returned
    absorb   acknowledged positions are done with
    leave    what the consumer had not acknowledged is returned

Rules and sources (Notifications 2.0): at most 1000 unacknowledged notifications per connection; no acknowledgement
timeout; what was not acknowledged is sent again after a reconnect, in order; consumers of a shared subscriber divide
the sources among them, each source going to one consumer. Acknowledgements arrive independently, before or after the
sending is recorded; both orders lead to the same backlog.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from pushhub.base.errors import RequestRefused

if TYPE_CHECKING:
    from pushhub.notifications.model.topic import Topic

WINDOW = 1000
"""Unacknowledged notifications a connection may have (Notifications 2.0)."""

MAX_CONSUMERS = 50
"""Connections a shared subscriber may have; limits the size of its state."""

MAX_HELD = 15_000
"""Positions that may be skipped because their consumer's window is full, before the whole subscriber waits for it.

Each takes up to five bytes of the backlog's single item, in addition to those that 50 consumers may hold unacknowledged
(250 KB). An item is limited to 400 KB.
"""


class AlreadyConnected(RequestRefused):
    """The subscriber accepts no further consumer now (409 at the handshake)."""


class Entry(NamedTuple):
    """A position, and the bucket of its source."""

    position: int
    bucket: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """A live connection.

    Attributes:
        name: The client's ``consumer`` parameter. A stable name keeps its share of the sources the same across
            reconnects.
        active_at: When it was last sent something, epoch milliseconds; initially ``joined_at``.
        unacknowledged: Entries sent to it and not yet acknowledged, in order.
    """

    connection_id: str
    name: str
    joined_at: int
    active_at: int
    unacknowledged: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """A subscriber: its place in a topic, and its consumers.

    Attributes:
        uid: Its generation: a subscriber that is removed and recreated gets a new one.
        shared: Whether several consumers may be connected; set by a consumer that connects when there is no other.
        made_after: Sequence of the topic's last commit before it was created: nothing up to there is owed to it. None
            if unknown.
        next: The first position not assigned yet; None until the first consumer has joined.
        returned: Positions below ``next`` to be assigned (again), in order.
        acknowledged_early: Positions from ``next`` on that were acknowledged by a consumer that has left.
        consumers: In the order they joined.
        lapsed: Positions that expired unsent in the last write, as (first, last) pairs; delivery records are made from
            them.
        version: Raised by one with each write. Guards concurrent writes, and identifies the wake-ups that lead to the
            next one (see ``docs/notifications.md``).
    """

    topic: Topic
    subscriber: str
    uid: str
    shared: bool = False
    made_after: int | None = None
    next: int | None = None
    returned: tuple[Entry, ...] = ()
    acknowledged_early: frozenset[int] = frozenset()
    consumers: tuple[Consumer, ...] = ()
    lapsed: tuple[tuple[int, int], ...] = ()
    created_at: int
    version: int = 0

    def consumer(self, connection_id: str) -> Consumer | None:
        """The consumer on a connection, or None."""
        return next((each for each in self.consumers if each.connection_id == connection_id), None)

    @property
    def oldest(self) -> int | None:
        """The oldest position it still needs; None until the first consumer has joined."""
        if self.next is None:
            return None
        firsts = [each.unacknowledged[0].position for each in self.consumers if each.unacknowledged]
        return min([self.next, *firsts, *(entry.position for entry in self.returned[:1])])


def join(backlog: Backlog, consumer: Consumer, *, shared: bool, end: int) -> Backlog:
    """The backlog after a consumer connected.

    Args:
        backlog: As stored.
        consumer: The new one.
        shared: The token's ``shared`` claim.
        end: The end of the log, where the very first consumer starts. On a non-persistent topic, so does any consumer
            that connects when there is no other.

    Raises:
        AlreadyConnected: An exclusive subscriber already has a consumer, the token's ``shared`` claim differs from that
            of the connected consumers, one of them has the same name, or there are too many consumers.
    """
    if backlog.consumers and not (shared and backlog.shared):
        raise AlreadyConnected("Subscriber already has an exclusive consumer connected")
    if any(each.name == consumer.name for each in backlog.consumers):
        raise AlreadyConnected(f"A consumer named {consumer.name!r} is connected already: names must be unique")
    if len(backlog.consumers) >= MAX_CONSUMERS:
        raise AlreadyConnected(f"Subscriber already has {MAX_CONSUMERS} consumers connected")
    starts_anew = backlog.next is None or (backlog.topic.non_persistent and not backlog.consumers)
    joined = replace(
        backlog,
        shared=shared,
        consumers=(*backlog.consumers, consumer),
        lapsed=(),
        version=backlog.version + 1,
    )
    return replace(joined, next=end, returned=(), acknowledged_early=frozenset()) if starts_anew else joined


def leave(backlog: Backlog, connection_id: str, acknowledged: Set[int]) -> Backlog:
    """The backlog after a connection ended; the same object if the connection is not a consumer's.

    Args:
        backlog: As stored.
        connection_id: The connection.
        acknowledged: Positions it acknowledged, whether absorbed before or not.
    """
    if backlog.consumer(connection_id) is None or backlog.next is None:
        return backlog
    absorbed = absorb(backlog, acknowledged)
    consumer = absorbed.consumer(connection_id)
    owed = set() if backlog.topic.non_persistent or consumer is None else {*consumer.unacknowledged}
    early = {each for each in acknowledged if each >= backlog.next}
    return replace(
        absorbed,
        returned=tuple(sorted({*absorbed.returned, *owed})),
        acknowledged_early=backlog.acknowledged_early | early,
        consumers=tuple(each for each in absorbed.consumers if each is not consumer),
        lapsed=(),
        version=backlog.version + 1,
    )


def absorb(backlog: Backlog, acknowledged: Set[int]) -> Backlog:
    """The backlog without positions that were acknowledged; the same object if that changes nothing.

    The version is not raised.

    A position may be acknowledged by a different consumer than the one it is recorded with: it was sent there first,
    and a crash prevented that from being recorded.

    Args:
        backlog: As stored.
        acknowledged: Positions. Those already done with, or not assigned yet, are ignored.
    """
    consumers = tuple(_without(each, acknowledged) for each in backlog.consumers)
    returned = tuple(each for each in backlog.returned if each.position not in acknowledged)
    if consumers == backlog.consumers and returned == backlog.returned:
        return backlog
    return replace(backlog, consumers=consumers, returned=returned)


def _without(consumer: Consumer, acknowledged: Set[int]) -> Consumer:
    left = tuple(each for each in consumer.unacknowledged if each.position not in acknowledged)
    return replace(consumer, unacknowledged=left)


@dataclass(slots=True)
class Assigner:
    """Assigns positions, in order, to the consumers of a backlog, and counts them against the consumers' windows.

    While a consumer has unacknowledged notifications of a source, the source stays with that consumer, so that a source
    is never sent to two at a time. Otherwise consumers share the buckets by highest random weight, so that when one
    joins or leaves, only the buckets it gains or gives up are moved.

    Args:
        backlog: With acknowledgements absorbed.
        acknowledged: Positions that live consumers acknowledged, whether their sending was recorded or not.
        window: Unacknowledged notifications a connection may have.
    """

    backlog: Backlog
    acknowledged: Set[int]
    window: int = WINDOW
    _room: dict[str, int] = field(init=False)
    _holders: dict[int, str] = field(init=False)
    _chosen: dict[int, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        consumers = self.backlog.consumers
        self._room = {each.connection_id: self.window - len(each.unacknowledged) for each in consumers}
        self._holders = {entry.bucket: each.connection_id for each in consumers for entry in each.unacknowledged}

    @property
    def room(self) -> int:
        """Notifications that can still be assigned, over all consumers."""
        return sum(max(0, room) for room in self._room.values())

    @property
    def full(self) -> frozenset[str]:
        """Connections whose window is full."""
        return frozenset(connection_id for connection_id, room in self._room.items() if room <= 0)

    def owner(self, bucket: int) -> str:
        """The connection that notifications of a bucket go to now."""
        if bucket not in self._holders:
            if bucket not in self._chosen:
                self._chosen[bucket] = max(
                    self.backlog.consumers, key=lambda each: (_weight(each.name, bucket), each.connection_id)
                ).connection_id
            return self._chosen[bucket]
        return self._holders[bucket]

    def done(self, entry: Entry) -> bool:
        """Whether it was acknowledged although sending it was never recorded."""
        return entry.position in self.acknowledged or entry.position in self.backlog.acknowledged_early

    def assign(self, entry: Entry) -> str | None:
        """The connection to send to, or None when its window is full."""
        connection_id = self.owner(entry.bucket)
        if self._room[connection_id] <= 0:
            return None
        self._room[connection_id] -= 1
        self._holders[entry.bucket] = connection_id
        return connection_id


def _weight(name: str, bucket: int) -> bytes:
    return hashlib.blake2b(f"{bucket}/{name}".encode("utf-8", "surrogatepass"), digest_size=8).digest()


def record(
    backlog: Backlog,
    *,
    sent: Mapping[str, Sequence[Entry]],
    held: Iterable[Entry],
    done: Set[int],
    lapsed: Sequence[tuple[int, int]],
    up_to: int,
    now: int,
) -> Backlog:
    """The backlog after a round of sending.

    The backlog may have changed since the round began (a consumer joined or left): what was sent to a consumer that has
    left is returned. It may even have this round in it already: the client repeats a call that it had no answer to, and
    between the two a consumer left. So what is done with by now stays so, or acknowledged notifications would be sent
    again.

    Args:
        backlog: As stored now, acknowledgements absorbed.
        sent: What was sent, by connection.
        held: What no consumer had room for, or what could not be sent.
        done: Positions that need no sending: acknowledged before, or expired.
        lapsed: Those of them that expired, as (first, last) pairs.
        up_to: Every position below was dealt with, or is returned or held.
    """
    known = {*backlog.returned, *(entry for each in backlog.consumers for entry in each.unacknowledged)}

    def owed(entries: Iterable[Entry]) -> list[Entry]:
        return [each for each in entries if each.position >= (backlog.next or 0) or each in known]

    sent = {connection_id: owed(entries) for connection_id, entries in sent.items()}
    live = {each.connection_id for each in backlog.consumers}
    placed = {entry.position for connection_id, entries in sent.items() if connection_id in live for entry in entries}
    unsent = {*backlog.returned, *owed(held)}
    if not backlog.topic.non_persistent:
        unsent.update(
            entry for connection_id, entries in sent.items() if connection_id not in live for entry in entries
        )
    settled = placed | done | backlog.acknowledged_early
    next_position = max(backlog.next or 0, up_to)
    return replace(
        backlog,
        next=next_position,
        returned=tuple(sorted(each for each in unsent if each.position not in settled)),
        acknowledged_early=frozenset(each for each in backlog.acknowledged_early if each >= next_position),
        consumers=tuple(_with(each, sent.get(each.connection_id, ()), now) for each in backlog.consumers),
        lapsed=tuple(
            (first, last)
            for first, last in lapsed
            if last >= (backlog.next or 0) or any(first <= each.position <= last for each in backlog.returned)
        ),
        version=backlog.version + 1,
    )


def _with(consumer: Consumer, sent: Sequence[Entry], now: int) -> Consumer:
    if not sent:
        return consumer
    return replace(
        consumer,
        unacknowledged=tuple(sorted({*consumer.unacknowledged, *sent})),
        active_at=max(consumer.active_at, now),
    )
