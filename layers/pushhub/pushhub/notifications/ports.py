"""What the use cases of Notifications 2.0 need from the outside.

The rules of :mod:`pushhub.engine.ports` hold here, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pushhub.base.errors import HubError

if TYPE_CHECKING:
    from pushhub.notifications.model.backlog import Backlog
    from pushhub.notifications.model.request import Part, PublishRequest
    from pushhub.notifications.model.subscription import Subscription
    from pushhub.notifications.model.topic import Commit, Head, Reservation, Topic


class SubscriptionStore(Protocol):
    """Publishing rules. Every read is consistent: a subscription holds from the moment its creation is answered."""

    def create(self, rule: Subscription) -> None:
        """Store a new one.

        Raises:
            Conflict: One of the same source, context and name exists.
        """
        ...

    def subscription(self, project_id: str, subscription_id: str) -> Subscription | None:
        """One by its id, or None."""
        ...

    def subscriptions(self, project_id: str) -> list[Subscription]:
        """All of a project, oldest first."""
        ...

    def concerning(self, project_id: str, source: str) -> list[Subscription]:
        """Those that watch a source, and those that watch the whole project."""
        ...

    def delete(self, rule: Subscription) -> bool:
        """Remove one; whether it was there."""
        ...


class TopicFull(HubError):
    """A topic's backlog has reached its ceiling.

    Args:
        head: Where the topic stands.
    """

    def __init__(self, head: Head) -> None:
        super().__init__("topic is full")
        self.head = head


class AlreadyAppended(HubError):
    """The part of a request that a commit was to hold is in its topic: another commit of the same request holds it."""


class RequestStore(Protocol):
    """Publish requests that may be repeated."""

    def note(self, request: PublishRequest, now: int) -> PublishRequest:
        """Note a request; the one already noted under its key where there is one. Safe to repeat.

        A key may stand for another request once :data:`~pushhub.notifications.model.request.REPEATABLE_MS` have passed.

        Args:
            request: The request.
            now: Epoch milliseconds.
        """
        ...


class TopicStore(Protocol):
    """Topics: their heads, and the commits in their logs. Every read is consistent."""

    def admit(self, topic: Topic, subscriber_uid: str, *, ceiling: int) -> Head:
        """Owe a subscriber every commit from now on; makes the topic if need be. Safe to repeat.

        Args:
            topic: The topic.
            subscriber_uid: Id of the subscriber.
            ceiling: Of a topic that is made.

        Returns:
            The head at that moment: commits up to its ``sequence`` are not owed unless they were before.
        """
        ...

    def dismiss(self, topic: Topic, subscriber_uid: str) -> None:
        """Owe a subscriber nothing from now on. Safe to repeat."""
        ...

    def head(self, topic: Topic) -> Head | None:
        """Where a topic stands; None before its first subscriber."""
        ...

    def reserve(self, topic: Topic, size: int, now: int, *, admitted: bool = False) -> Reservation | None:
        """Take the next place in a topic's log; None when it has no subscriber.

        Args:
            topic: The topic.
            size: Bytes of the commit.
            now: Epoch milliseconds.
            admitted: Whether the ceiling does not matter, as an earlier part of the same request was taken.

        Raises:
            TopicFull: The backlog has reached its ceiling.
        """
        ...

    def raise_ceiling(self, topic: Topic, ceiling: int) -> None:
        """Set the ceiling if that raises it."""
        ...

    def append(self, commit: Commit, part: Part | None = None) -> None:
        """Write a commit into its place. Safe to repeat.

        Args:
            commit: The commit.
            part: What of a noted request it holds; noted as taken in the same moment.

        Raises:
            AlreadyAppended: That part is in the topic, by this commit or another one.
            Conflict: The place was given up meanwhile, or is another's.
        """
        ...

    def commits(self, topic: Topic, first: int, limit: int) -> list[Commit]:
        """Commits in order from sequence ``first`` on, at most ``limit`` and perhaps fewer.

        None only when there are none.
        """
        ...

    def commits_at(self, topic: Topic, sequences: Sequence[int]) -> dict[int, Commit]:
        """Commits by sequence; those that are gone are missing."""
        ...


class BacklogStore(Protocol):
    """Subscribers' backlogs. Every read is consistent."""

    def backlog(self, topic: Topic, subscriber: str) -> Backlog | None:
        """One, or None."""
        ...

    def backlogs(self, topic: Topic) -> list[Backlog]:
        """All of a topic."""
        ...

    def save(self, backlog: Backlog) -> None:
        """Write one if the stored one has version ``backlog.version - 1`` and the same uid (absent when the version is
        1).

        Raises:
            Conflict: It has not.
        """
        ...

    def delete(self, backlog: Backlog) -> None:
        """Remove one if it still has that uid; its version does not matter."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A WebSocket connection of a consumer.

    Attributes:
        connection_id: API Gateway's id.
        topic: What it consumes.
        subscriber: As whom.
        subscriber_uid: Generation of the subscriber.
        shared: Whether the subscriber is shared.
        opened_at: Epoch milliseconds.
        acknowledged: Positions it acknowledged that were not absorbed for good.
        stalled: Whether more waits for it than its window has room for: then an acknowledgement wakes the sender.
        token_id: Id of the consumer's token it was opened with.
        issued_by: Hash of the project's token that one was made with; empty for connections older than that.
        leaving: Whether its consumer has asked to be unsubscribed, and goes.
    """

    connection_id: str
    topic: Topic
    subscriber: str
    subscriber_uid: str
    shared: bool
    opened_at: int
    acknowledged: frozenset[int] = frozenset()
    stalled: bool = False
    token_id: str = ""
    issued_by: str = ""
    leaving: bool = False


class ConnectionStore(Protocol):
    """Connections, and what arrives on them. Every read is consistent but :meth:`idle`."""

    def open(self, connection: Connection, *, check_at: int) -> None:
        """Store a new connection.

        Args:
            connection: The connection.
            check_at: When to see whether it idles, epoch milliseconds.
        """
        ...

    def connections(self, connection_ids: Sequence[str]) -> dict[str, Connection]:
        """Connections by id; those that are gone are missing."""
        ...

    def acknowledge(self, connection_id: str, positions: Set[int], *, shared: bool) -> Connection | None:
        """Note acknowledgements: one write, whatever the backlog holds. Safe to repeat.

        Args:
            connection_id: Where they arrived.
            positions: What is acknowledged, at least one.
            shared: Whether their ack ids were made for a shared subscriber's connection.

        Returns:
            The connection as it is now; None when nothing was noted: it is gone, or of the other kind.
        """
        ...

    def stall(self, connection_id: str, *, stalled: bool) -> Connection | None:
        """Set or clear ``stalled``; the connection as it is now, None when it is gone."""
        ...

    def leave(self, connection_id: str) -> None:
        """Set ``leaving``; nothing happens when the connection is gone."""
        ...

    def everyone(self) -> Iterator[Connection]:
        """Every connection, read as they are asked for (eventually consistent)."""
        ...

    def forget(self, connection_id: str, positions: Iterable[int]) -> None:
        """Drop noted acknowledgements that a backlog has absorbed; nothing happens when the connection is gone."""
        ...

    def close(self, connection_id: str) -> Connection | None:
        """Remove a connection; as it was at that moment, None when it was gone before."""
        ...

    def idle(self, now: int, limit: int) -> list[str]:
        """Ids of connections whose ``check_at`` has come (eventually consistent)."""
        ...

    def check_again(self, connection_id: str, check_at: int) -> None:
        """Set when to check next; nothing happens when the connection is gone."""
        ...


class Sockets(Protocol):
    """The other ends of the connections (API Gateway's management API)."""

    def send(self, connection_id: str, text: str) -> bool:
        """Send a text frame; False when the connection is gone."""
        ...

    def close(self, connection_id: str) -> None:
        """Close a connection normally; one that is gone is ignored."""
        ...

    def active_at(self, connection_id: str) -> int | None:
        """When its client was last heard of, epoch milliseconds; None when the connection is gone."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """Tells the sender to look at a backlog.

    Attributes:
        topic: The topic.
        subscriber: The subscriber's name.
        subscriber_uid: Its generation.
        version: Of the backlog, as its sender read it *after* whatever there is to look at was written. Wake-ups of one
            version are one.
    """

    topic: Topic
    subscriber: str
    subscriber_uid: str
    version: int

    @classmethod
    def of(cls, backlog: Backlog) -> Wake:
        """The wake-up for a backlog just read or written."""
        return cls(
            topic=backlog.topic,
            subscriber=backlog.subscriber,
            subscriber_uid=backlog.uid,
            version=backlog.version,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedWake:
    """A wake-up as received from SQS.

    Attributes:
        wake: What to look at.
        sqs_id: SQS message id, the key of a batch item failure.
        receipt_handle: For changing its visibility.
    """

    wake: Wake
    sqs_id: str
    receipt_handle: str


class WakeQueue(Protocol):
    """The FIFO queue of wake-ups: one group per subscriber, so one sender at a time."""

    def wake(self, wakes: Sequence[Wake]) -> None:
        """Send wake-ups; those of a version sent within the last minutes are dropped.

        All are sent, or ``Unavailable`` is raised.
        """
        ...

    def defer(self, waits: Mapping[str, int]) -> None:
        """Let received wake-ups (receipt handle) come back after so many seconds.

        Never raises: they come back later otherwise.
        """
        ...


class Projects(Protocol):
    """The projects and their tokens."""

    def project(self, project_id: str) -> object | None:
        """A project, or None when there is none."""
        ...

    def project_of(self, token_hash: str) -> str | None:
        """The project a token acts for at this moment; None when it acts for none."""
        ...


class SigningKeys(Protocol):
    """The secrets that tokens and ack ids are made with."""

    def secrets(self) -> Sequence[bytes]:
        """The current one first, then those still good for checking."""
        ...
